"""Homes, socket directories, other hosts and poor disks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memkernel.cluster import filesystem, home_directory
from memkernel.cluster.places import Place, existing_majors, make_directory, make_private
from memkernel.errors import ClusterError, ServerStartError
from tests.cluster.conftest import IS_ROOT, KINDS
from tests.cluster.homes import Home, RemoteError

OWN = (os.geteuid(), os.getegid())


def test_the_default_home_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert home_directory() == (Path("/var/lib/memkernel") if IS_ROOT else tmp_path / "memkernel")


def test_two_spellings_of_a_home_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    expected = tmp_path.resolve() / "x"
    assert {home_directory(path) for path in ("x", "~/x", tmp_path / "link" / "x", "./y/../x")} == {expected}


def test_a_home_with_a_line_break_is_refused() -> None:
    with pytest.raises(ClusterError, match="line break"):
        home_directory("/tmp/a\nb")


def test_the_socket_lies_beside_the_data_while_its_path_fits() -> None:
    longest = "/" + "x" * (107 - len("//pg18/run/.s.PGSQL.5432.lock"))
    assert Place(Path(longest), 18).socket_directory == Path(longest) / "pg18" / "run"
    too_long = Place(Path(longest + "x"), 18).socket_directory
    assert too_long.parent == Path("/tmp")
    assert too_long.name.startswith(f"memkernel-{os.geteuid()}-")
    assert too_long != Place(Path(longest + "x"), 15).socket_directory


def test_only_directories_that_hold_a_cluster_count(tmp_path: Path) -> None:
    for name in ("pg18/data", "pg9x/data", "pg17", "pg16/data"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("pg18", "pg16"):
        (tmp_path / name / "data" / "PG_VERSION").touch()
    assert existing_majors(tmp_path) == [18, 16]
    assert existing_majors(tmp_path / "nowhere") == []


def test_directories_are_made_with_their_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        make_directory(tmp_path / "a" / "b", 0o755)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b")] == [0o755] * 2


def test_a_home_that_cannot_be_made_is_one_error_with_a_way_out() -> None:
    with pytest.raises(ClusterError, match="cannot make /proc/memkernel") as caught:
        make_directory(Path("/proc/memkernel/x"), 0o700)
    assert "MEMKERNEL_HOME" in caught.value.hint


@pytest.mark.parametrize("home", ["rel", "~nobody-of-this-name/x", "/tmp/a\0b"])
def test_a_home_that_is_no_place_is_one_error_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """The first one where the working directory is gone."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ClusterError, match="is no place: ") as caught:
        home_directory(home)
    assert "MEMKERNEL_HOME" in caught.value.hint


def test_a_private_directory_is_made_private_again(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o777)
    make_private(tmp_path / "run", *OWN)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_a_link_is_no_private_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ServerStartError, match="cannot be used"):
        make_private(tmp_path / "run", *OWN)


@pytest.mark.as_root
def test_another_users_directory_is_no_private_directory(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    os.chown(tmp_path / "run", 12_345, 12_345)
    with pytest.raises(ServerStartError, match="belongs to another user"):
        make_private(tmp_path / "run", *OWN)


def test_a_disk_that_keeps_no_modes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir(mode=0o777)
    (tmp_path / "run").chmod(0o777)
    monkeypatch.setattr(os, "fchmod", keep_no_mode)
    with pytest.raises(ServerStartError, match="does not keep owner and mode 0700") as caught:
        make_private(tmp_path / "run", *OWN)
    assert "MEMKERNEL_HOME" in caught.value.hint


def keep_no_mode(*_: int) -> None:
    """What chmod does on FAT and on some network disks."""


# -- other hosts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_data_that_another_host_left_unclean_is_refused_until_a_person_says_so(home: Home) -> None:
    kernel = home.running_kernel()
    home.kill_server()
    home.place.host_file.write_text("another-host")
    with pytest.raises(RemoteError, match="is in use on the host another-host, or was left unclean there") as caught:
        kernel("cluster.ensure()")
    assert str(home.place.host_file) in caught.value.hint
    home.place.host_file.unlink()
    assert kernel("cluster.ensure()") == home.dsn


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_data_that_another_host_left_clean_is_taken_over(home: Home) -> None:
    home.place.host_file.write_text("another-host")
    home.running_kernel()
    assert home.place.host_file.read_text() == os.uname().nodename


# -- poor disks --------------------------------------------------------------------------------------

MOUNTINFO = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:44 / /home rw - nfs4 server:/home rw
31 22 0:45 / /mnt/c rw - 9p drvfs rw,aname=drvfs;path=C:
32 22 0:46 / /mnt/my\\040drive rw - fuse.google-drive-ocamlfuse x rw
33 30 8:1 / /home/ann/fast rw - xfs /dev/sdb1 rw
34 22 0:47 / /srv/fuse-ish rw - fuseblk /dev/sdc1 rw
"""
MOUNT = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled)
//ann@nas/share on /Volumes/share (smbfs, nodev, nosuid)
"""


@pytest.mark.parametrize(
    ("path", "kind", "is_poor"),
    [
        ("/var/lib/memkernel", "ext4", False),
        ("/home/ann/.local/share/memkernel", "nfs4", True),
        ("/home/ann/fast/memkernel", "xfs", False),
        ("/mnt/c/Users/ann", "9p", True),
        ("/mnt/my drive/x", "fuse.google-drive-ocamlfuse", True),
        ("/srv/fuse-ish", "fuseblk", True),
    ],
)
def test_a_poor_disk_is_known_by_its_kind(monkeypatch: pytest.MonkeyPatch, path: str, kind: str, is_poor: bool) -> None:
    monkeypatch.setattr(filesystem, "_mounts", lambda: filesystem.parse_mountinfo(MOUNTINFO))
    assert filesystem.filesystem_of(Path(path)) == kind
    assert bool(filesystem.warnings_for(Path(path))) is is_poor


def test_the_kinds_of_disks_of_macos_are_read() -> None:
    assert dict(filesystem.parse_mount(MOUNT))[Path("/Volumes/share")] == "smbfs"


def test_this_machines_disk_is_known(tmp_path: Path) -> None:
    assert filesystem.filesystem_of(tmp_path)


# -- a socket directory in /tmp ----------------------------------------------------------------------


@pytest.mark.as_root
def test_a_socket_directory_that_somebody_else_made_first_is_refused(new_home: Callable[..., Home]) -> None:
    home = new_home(("root", None), "com,ma")
    home.socket_directory.mkdir()
    os.chown(home.socket_directory, 12_345, 12_345)
    with pytest.raises(RemoteError, match="belongs to another user"):
        home.running_kernel()
