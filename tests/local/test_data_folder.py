import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from seckill.errors import StartError
from seckill.local.data_folder import DataFolder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    with DataFolder.open(tmp_path / "a" / "data") as folder:
        assert folder.path == tmp_path / "a" / "data"
        assert mode(folder.path) == 0o700


def test_a_second_owner_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    code = "import sys, pathlib; from seckill.local.data_folder import DataFolder\n"
    code += "f = DataFolder.open(pathlib.Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"open\n"
        sentence = (
            f"The data folder {tmp_path} is in use by another seckill (pid {first.pid}): "
            "stop it, or choose another with --data."
        )
        with pytest.raises(StartError, match=f"^{re.escape(sentence)}$"):
            DataFolder.open(tmp_path)
        first.kill()
    # A killed owner leaves its lock file behind, but no lock.
    with DataFolder.open(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_it_can_be_opened_again_after_close(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    folder.close()
    folder.close()
    DataFolder.open(tmp_path).close()


def test_a_child_that_outlives_us_does_not_keep_the_lock(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    code = "import sys; print('there', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"there\n"
        folder.close()
        DataFolder.open(tmp_path).close()
        child.kill()


def test_secrets_are_made_once(tmp_path: Path) -> None:
    with DataFolder.open(tmp_path) as folder:
        made = folder.secrets()
        assert folder.secrets() == made
    with DataFolder.open(tmp_path) as folder:
        assert folder.secrets() == made
    assert len(made.jwt_secret) >= 32
    assert len(made.admin_key) >= 32
    assert len({made.jwt_secret, made.admin_key, made.payment_secret}) == 3
    assert {entry.name for entry in tmp_path.iterdir()} == {"lock", "secrets.json"}


def test_secrets_of_two_folders_differ(tmp_path: Path) -> None:
    with DataFolder.open(tmp_path / "a") as a, DataFolder.open(tmp_path / "b") as b:
        assert a.secrets().jwt_secret != b.secrets().jwt_secret


def test_secrets_do_not_show_themselves(tmp_path: Path) -> None:
    with DataFolder.open(tmp_path) as folder:
        made = folder.secrets()
    assert made.jwt_secret not in f"{made} {made!r}"
    assert made.admin_key not in f"{made} {made!r}"


def test_the_secrets_file_is_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not even while it is being written, whatever the umask."""
    modes: list[int] = []
    sync = os.fsync

    def watch(descriptor: int) -> None:
        modes.extend(mode(file) for file in tmp_path.glob("secrets.*"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    before = os.umask(0)
    try:
        with DataFolder.open(tmp_path) as folder:
            folder.secrets()
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]  # synced before the renaming and after it


def test_a_mode_that_lets_others_read_is_mended(tmp_path: Path) -> None:
    with DataFolder.open(tmp_path) as folder:
        made = folder.secrets()
        (tmp_path / "secrets.json").chmod(0o644)
        assert folder.secrets() == made
        assert mode(tmp_path / "secrets.json") == 0o600


def test_a_start_that_was_interrupted_leaves_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "secrets.new").write_text("{")
    with DataFolder.open(tmp_path) as folder:
        assert folder.secrets() == folder.secrets()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b'"text"',
        b"{}",
        json.dumps({"jwt_secret": "s" * 64}).encode(),
        json.dumps({"jwt_secret": "s" * 64, "admin_key": None}).encode(),
        json.dumps({"jwt_secret": "s" * 64, "admin_key": "short"}).encode(),
    ],
)
def test_damaged_secrets_are_told_and_kept(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secrets.json"
    file.write_bytes(content)
    with (
        DataFolder.open(tmp_path) as folder,
        pytest.raises(StartError, match=r"^The secrets in .*secrets\.json are damaged: .*\.$"),
    ):
        folder.secrets()
    assert file.read_bytes() == content


def test_a_file_in_the_folder_s_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    for path in (tmp_path / "data", tmp_path / "data" / "below"):
        with pytest.raises(StartError, match=r"^.*/data.* cannot be used \(.*\): .* --data\.$"):
            DataFolder.open(path)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "data"
    if os.geteuid() == 0:
        path = Path("/proc/seckill")  # modes do not stop root, but not even root can make a folder there
        if not path.parent.is_dir():
            pytest.skip("root can write everywhere on this machine")
    else:
        path.mkdir(mode=0o500)
    with pytest.raises(StartError, match=r"cannot be used \(.*\): .* --data\.$"):
        DataFolder.open(path)


def test_secrets_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").mkdir()
    with DataFolder.open(tmp_path) as folder, pytest.raises(StartError, match=r"cannot be used \(.*\): "):
        folder.secrets()


def test_the_pid_is_left_out_when_it_is_not_known(tmp_path: Path) -> None:
    with DataFolder.open(tmp_path):
        (tmp_path / "lock").write_text("")
        with pytest.raises(StartError, match="in use by another seckill: stop it"):
            DataFolder.open(tmp_path)
