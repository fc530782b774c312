import os
import tempfile
from pathlib import Path

import pytest

from seckill.errors import StartError
from seckill.local.socket_path import SOCKET_PATH_BYTES_MAX, make_private, socket_path


def test_a_short_path_is_in_the_data_folder() -> None:
    assert socket_path(Path("/data"), "s.sock") == Path("/data/s.sock")


def test_the_limit_is_counted_in_bytes() -> None:
    fits = Path("/" + "é" * ((SOCKET_PATH_BYTES_MAX - len("/" + "/s.sock")) // 2))
    assert socket_path(fits, "s.sock").parent == fits
    too_long = Path(f"{fits}éé")
    assert socket_path(too_long, "s.sock").parent != too_long


def test_a_long_path_goes_to_the_same_place_every_time_and_to_one_per_folder() -> None:
    one, other = Path("/" + "x" * 200), Path("/" + "y" * 200)
    assert socket_path(one, "s.sock") == socket_path(one, "s.sock")
    assert socket_path(one, "s.sock") != socket_path(other, "s.sock")
    assert socket_path(one, "s.sock").is_relative_to(Path(tempfile.gettempdir()))
    assert f"-{os.geteuid()}-" in str(socket_path(one, "s.sock"))


def test_a_long_temp_folder_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/" + "t" * 100)
    with pytest.raises(StartError, match=r"too long for a socket: choose a shorter data folder with --data\.$"):
        socket_path(Path("/" + "x" * 200), "s.sock")


def test_a_private_folder_is_made_or_taken(tmp_path: Path) -> None:
    make_private(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    make_private(tmp_path / "a")


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o710)
    with pytest.raises(StartError, match="others could get at it"):
        make_private(tmp_path / "a")


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    with pytest.raises(StartError, match="others could get at it"):
        make_private(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder that belongs to somebody else")
def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    os.chown(tmp_path / "a", 65534, 65534)
    with pytest.raises(StartError, match="others could get at it"):
        make_private(tmp_path / "a")
