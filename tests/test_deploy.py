"""The files for a deployment, as far as they can be tried without an engine for containers: they can be read, every
command in them is one of ours, every setting exists, and no file holds a secret."""

import configparser
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from seckill.backends.payment.provider_choice import open_provider
from seckill.cli import app
from seckill.operations.production_refusals import make_believe
from seckill.settings import TABLE, read, require_production
from seckill.settings.otel import Tracing
from tests.fixtures import missing

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
ROLES = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "seckill"}
EXAMPLE = (ROOT / "deploy" / "env.example").read_text()
VARIABLES = dict(re.findall(r"^([A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE))
OPTIONAL = set(re.findall(r"^([A-Z_]+)=", EXAMPLE.partition("may stay empty.")[2], re.MULTILINE))
# Variables of compose itself, and of the servers that it starts.
NO_SETTINGS = {"VALKEY_PASSWORD", "POSTGRES_PASSWORD", "RABBITMQ_PASSWORD", "PROXY_PORT"}
# The proxy, Prometheus and the health checks know them.
FIXED = {"SECKILL_HOST", "SECKILL_PORT", "SECKILL_METRICS_HOST", "SECKILL_METRICS_PORT"}


IMAGES = {
    f"{name}_IMAGE" for name in ("PYTHON", "CADDY", "VALKEY", "POSTGRES", "RABBITMQ", "PROMETHEUS", "GRAFANA", "JAEGER")
}


TRACING = {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER_ARG"}


def filled_in() -> dict[str, str]:
    """An .env in which every line is filled in that may not stay empty."""
    values = {name: value or secrets.token_hex(24) for name, value in VARIABLES.items()}
    return values | dict.fromkeys(OPTIONAL, "")


def interpolated(text: str, values: Mapping[str, str]) -> str:
    """Interpolates as compose does, defaults within defaults included."""
    begin = text.find("${")
    if begin < 0:
        return text
    end = next(i for i in range(begin, len(text)) if text.count("{", begin, i) == text.count("}", begin, i + 1) > 0)
    found = re.fullmatch(r"([A-Z_]+)(?:(:?[-?])(.*))?", text[begin + 2 : end])
    assert found, text
    name, way, other = found.groups()
    if values.get(name) if way in (":-", ":?") else name in values:
        value = values[name]
    else:
        assert way in (":-", "-"), f"compose refuses to start without {name}"
        value = interpolated(other, values)
    return text[:begin] + value + interpolated(text[end + 1 :], values)


def environment_of(role: str, values: Mapping[str, str]) -> dict[str, str]:
    """Returns what the role's container gets: all of `.env`, and over it what compose.yaml says."""
    assert ROLES[role]["env_file"] == [".env"]
    given = {name: interpolated(value, values) for name, value in ROLES[role]["environment"].items()}
    return {**values, **given}


STEPS = """
# The steps of an image, in small.
ARG BASE=python
FROM ${BASE} AS build
WORKDIR /build
COPY one.txt two ./
RUN mkdir /opt/it \\
    && cp one.txt here.txt /opt/it/ \\
    && test ! -e left_out.txt && python -c 'print(1 + 1)' > /opt/it/python
FROM ${BASE}
COPY --from=build /opt/it /opt/it
RUN useradd --system --uid 10001 --home-dir /nonexistent it 2>/dev/null
USER 10001
ENV PATH=/opt/it:$PATH NAME=value
ENTRYPOINT ["sh", "-c"]
CMD ["true"]
"""
SAYS = """
id -un; cat /opt/it/*; echo $NAME $SECKILL_HOST
for file in /opt/it/x /usr/x /etc/x /x /tmp/x; do touch $file 2>/dev/null && echo wrote $file; done
test ! -e /build
"""


def run_steps(folder: Path, steps: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "Dockerfile").write_text(steps)
    command = [sys.executable, str(ROOT / "scripts" / "run-dockerfile"), str(folder / "Dockerfile")]
    environ = os.environ | {"SECKILL_HOST": "a.host"}
    return subprocess.run(
        [*command, str(folder / "roots"), *arguments], env=environ, capture_output=True, text=True, check=False
    )


def test_the_steps_of_an_image_run_without_privileges(tmp_path: Path) -> None:
    """The test is a small one: `make image-steps` runs the steps of the Dockerfile itself, which fetch much."""
    unshared = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    if shutil.which("unshare") is None or subprocess.run(unshared, check=False, capture_output=True).returncode:
        missing("namespaces cannot be had here")
    (tmp_path / "one.txt").write_text("one\n")
    (tmp_path / "two").mkdir()
    for name in ("here.txt", "left_out.txt"):
        (tmp_path / "two" / name).write_text(f"{name}\n")
    (tmp_path / ".dockerignore").write_text("*\n!one.txt\n!two\n**/left_*\n")
    done = run_steps(tmp_path, STEPS, "--", SAYS, "--", "exit 0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["it", "here.txt", "one", "2", "value a.host", "wrote /tmp/x", ""]
    shutil.rmtree(tmp_path / "roots")
    for steps, told in (
        (STEPS.replace("test ! -e", "test -e"), "ended with 1"),
        (STEPS.replace("CMD", "VOLUME /x\nCMD"), "VOLUME is not known here"),
    ):
        failed = run_steps(tmp_path, steps)
        assert (failed.returncode, told in failed.stderr) == (1, True), failed.stderr
        shutil.rmtree(tmp_path / "roots", ignore_errors=True)


def test_every_role_runs_twice_and_is_a_command_of_ours() -> None:
    assert {"migrate", "api", "worker", "keeper", "doctor"} == set(ROLES)
    for name, service in ROLES.items():
        [command] = service["command"]
        assert command in set(app), name
        assert service.get("deploy", {}).get("replicas") == (2 if name in ("api", "worker", "keeper") else None)
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("role", ["api", "worker", "keeper"])
def test_its_settings_are_enough_for_each_role(role: str) -> None:
    environ = environment_of(role, filled_in())
    assert set(environ) <= {setting.variable for setting in TABLE} | TRACING | NO_SETTINGS
    assert not Tracing.from_environment(environ).on, "unless it is asked for"
    settings = read(environ)
    require_production(settings, role)  # type: ignore[arg-type]
    assert (settings.durability, settings.rehearsal) == ("strict", "off")
    assert make_believe(settings, open_provider(settings)) == []


@pytest.mark.parametrize("setting", [each.variable for each in TABLE])
def test_a_setting_in_the_env_file_reaches_every_role(setting: str) -> None:
    """A setting that compose.yaml forgets to pass on would silently have no effect."""
    for role in ROLES:
        given = environment_of(role, filled_in() | {setting: "as I say"})
        assert (given[setting] == "as I say") is (setting not in FIXED), role


def test_what_is_fixed_is_said_where_settings_are_filled_in() -> None:
    beginning = re.search(r"Only (.*?) are fixed in\s+#?\s*compose.yaml", EXAMPLE, re.DOTALL)
    assert beginning
    assert set(re.findall(r"SECKILL_[A-Z_]+", beginning[1])) == FIXED


def test_every_line_of_the_example_is_for_somebody() -> None:
    used = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    assert set(VARIABLES) <= {setting.variable for setting in TABLE} | TRACING | NO_SETTINGS
    assert NO_SETTINGS <= used <= {setting.variable for setting in TABLE} | IMAGES | NO_SETTINGS


def test_there_are_no_default_secrets() -> None:
    for name, value in VARIABLES.items():
        if re.search("PASSWORD|SECRET|KEY", name):
            assert value == "", name
            for found in re.findall(rf"\$\{{{name}[^}}]*\}}", (ROOT / "compose.yaml").read_text()):
                assert "?" in found, f"compose refuses to start without {name}"


def test_a_service_that_others_wait_for_has_a_health_check() -> None:
    for name, service in COMPOSE["services"].items():
        for other, condition in service.get("depends_on", {}).items():
            if condition["condition"] == "service_healthy":
                assert "healthcheck" in COMPOSE["services"][other], f"{name} waits for {other}"


@pytest.mark.parametrize("role", ["worker", "keeper"])
def test_a_role_without_an_api_is_asked_on_its_metrics_port(role: str) -> None:
    port = ROLES[role]["environment"]["SECKILL_METRICS_PORT"]
    assert f"http://127.0.0.1:{port}/readyz" in ROLES[role]["healthcheck"]["test"][-1]


def test_prometheus_scrapes_every_role_on_its_metrics_port() -> None:
    configuration = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    scraped = {job["job_name"]: job["dns_sd_configs"][0] for job in configuration["scrape_configs"]}
    assert {(name, each["names"][0], str(each["port"])) for name, each in scraped.items()} == {
        (f"seckill-{role}", role, ROLES[role]["environment"]["SECKILL_METRICS_PORT"])
        for role in ("api", "worker", "keeper")
    }


def test_what_is_mounted_is_there() -> None:
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


def test_grafana_finds_its_dashboards_and_nobody_can_sign_in() -> None:
    grafana = COMPOSE["services"]["grafana"]
    [provider] = yaml.safe_load(
        (ROOT / "deploy" / "grafana" / "provisioning" / "dashboards" / "seckill.yml").read_text()
    )["providers"]
    assert f"./deploy/grafana/dashboards:{provider['options']['path']}:ro" in grafana["volumes"]
    assert grafana["environment"]["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true", "it would be admin, admin"
    assert all(port.startswith("127.0.0.1:") for port in grafana["ports"] + COMPOSE["services"]["prometheus"]["ports"])


def test_jaeger_is_seen_from_this_machine_alone() -> None:
    assert all(port.startswith("127.0.0.1:") for port in COMPOSE["services"]["jaeger"]["ports"])


def test_valkey_keeps_every_write() -> None:
    command = COMPOSE["services"]["valkey"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert (options["--appendonly"], options["--appendfsync"], options["--maxmemory-policy"]) == (
        "yes",
        "always",
        "noeviction",
    )


def test_the_image_is_of_what_is_here_and_nobody_is_root() -> None:
    text = (ROOT / "Dockerfile").read_text()
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001$", last, re.MULTILINE)
    assert 'ENTRYPOINT ["seckill"]' in last
    for sources in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists(), source
            assert f"!{source}" in (ROOT / ".dockerignore").read_text()


def test_the_unit_runs_the_roles() -> None:
    path = ROOT / "deploy" / "seckill@.service"
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    assert unit["Service"]["ExecStart"].endswith("/bin/seckill %i")
    assert unit["Service"]["User"] == "seckill"
    named = set(re.findall(r"seckill@(\w+)", path.read_text()))
    assert named == {"api", "worker", "keeper"} <= set(app)


@pytest.mark.parametrize("role", ["api", "worker", "keeper"])
def test_the_example_of_the_units_settings_is_enough_once_filled_in(role: str) -> None:
    text = (ROOT / "deploy" / "environment.example").read_text()
    environ = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
    assert set(environ) <= {setting.variable for setting in TABLE}
    assert not [name for name, value in environ.items() if value and re.search("SECRET|KEY", name)]
    settings = read({name: value or secrets.token_hex(24) for name, value in environ.items()})
    require_production(settings, role)  # type: ignore[arg-type]
    assert settings.rehearsal == "off"
    assert make_believe(settings, open_provider(settings)) == []


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """The test runs only where systemd runs: it is no program that one could fetch and try alone. What the unit says of
    us, the tests above read wherever they run."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    program = tmp_path / "seckill"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (ROOT / "deploy" / "seckill@.service").read_text()
    text = text.replace("/opt/seckill/bin/seckill", str(program)).replace("User=seckill", "User=daemon")
    (tmp_path / "seckill@.service").write_text(text.replace("Group=seckill", "Group=daemon"))
    (tmp_path / "seckill@api.service").symlink_to(tmp_path / "seckill@.service")
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(tmp_path / "seckill@api.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "seckill" in line]
    assert ours == [], done.stderr


@pytest.mark.parametrize("page", ["deploy.md"])
def test_files_and_settings_that_the_page_names_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    for path in re.findall(r"`(deploy/[\w@./-]+|compose\.yaml|Dockerfile)`", text):
        made = f"\n{path}\n" in (ROOT / ".gitignore").read_text()  # by a command, for one deployment
        assert made or (ROOT / path).exists(), path
    assert set(re.findall(r"SECKILL_[A-Z_]+[A-Z]", text)) <= {setting.variable for setting in TABLE}
