"""sync.scan: what lies in a mount, on a disk and in memory (CONTRACT D.3; SANDBOX.md, section 5)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memkernel.errors import InvalidPathError, SyncError
from memkernel.sync.scan import LocalFile, Scanner
from tests.sync.places import put, sha256, sums

Scanners = Callable[..., Scanner]


@pytest.fixture
def mount(roomy: Path) -> Path:
    folder = roomy / "mount"
    folder.mkdir()
    return folder


@pytest.fixture
def scanner(mount: Path) -> Iterator[Scanner]:
    scanner = Scanner(mount)
    yield scanner
    scanner.close()


# -- files -----------------------------------------------------------------------------------------


def test_a_scan_has_every_file_by_its_memory_path(mount: Path, scanner: Scanner) -> None:
    put(mount, "/a.md", "one")
    put(mount, "/notes/deep/b.md", "two\r\n")
    put(mount, "/notes/empty", b"")
    scan = scanner.scan()
    assert sums(scan) == {
        "/a.md": sha256("one"),
        "/notes/deep/b.md": sha256("two\r\n"),
        "/notes/empty": sha256(b""),
    }
    assert scan.files["/notes/deep/b.md"].size_bytes == 5
    assert (scan.refused, scan.unreadable, scan.complete, scan.changed) == ({}, (), True, True)


def test_an_empty_mount_and_empty_folders_are_no_files(mount: Path, scanner: Scanner) -> None:
    (mount / "a" / "b").mkdir(parents=True)
    assert scanner.scan().files == {}


def test_contents_are_handed_out_once_and_read_again_on_demand(mount: Path, scanner: Scanner) -> None:
    put(mount, "/a.md", "one")
    assert scanner.scan().files["/a.md"].content == b"one"
    assert scanner.scan().files["/a.md"].content is None
    assert scanner.read("/a.md") == b"one"


def test_of_many_bytes_the_contents_stay_on_the_disk(
    mount: Path, scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memkernel.sync.walk.KEPT_BYTES", 10)
    for name in "abc":
        put(mount, f"/{name}", name * 4)
    contents = [file.content for file in scanner.scan().files.values()]
    assert sorted(content is None for content in contents) == [False, False, True]


def test_names_of_many_scripts_and_signs_are_legal(mount: Path, scanner: Scanner) -> None:
    names = ["café.md", "日本語", "a b ", "back\\slash", ".git", "-rf", "new~", "%41", "~", "\u00a0", "🙂", "x" * 255]
    for name in names:
        put(mount, f"/{name}", name)
    assert sums(scanner.scan()) == {f"/{name}": sha256(name) for name in names}


def test_names_that_differ_in_case_only_are_two_files(mount: Path, scanner: Scanner) -> None:
    put(mount, "/A.md", "upper")
    put(mount, "/a.md", "lower")
    assert sums(scanner.scan()) == {"/A.md": sha256("upper"), "/a.md": sha256("lower")}


def test_a_hard_link_is_a_file_like_any_other(mount: Path, scanner: Scanner) -> None:
    os.link(put(mount, "/a.md", "both"), mount / "b.md")
    assert sums(scanner.scan()) == {"/a.md": sha256("both"), "/b.md": sha256("both")}
    with (mount / "b.md").open("a") as file:
        file.write("!")
    assert sums(scanner.scan()) == {"/a.md": sha256("both!"), "/b.md": sha256("both!")}


def test_twenty_segments_are_scanned_and_one_more_is_refused(mount: Path, scanner: Scanner) -> None:
    put(mount, "/d" * 19 + "/f", "twenty")
    put(mount, "/d" * 20 + "/f", "twenty-one")
    scan = scanner.scan()
    assert sums(scan) == {"/d" * 19 + "/f": sha256("twenty")}
    assert scan.refused == {"/d" * 20: "what lies in it would have more than 20 segments"}
    assert (scan.complete, scan.unreadable) == (True, ())


# -- changes ---------------------------------------------------------------------------------------


def test_nothing_done_is_no_change(mount: Path, scanner: Scanner) -> None:
    put(mount, "/a/b.md")
    first = scanner.scan()
    again = scanner.scan()
    assert not again.changed
    assert again.files == first.files
    assert scanner.scan().files is again.files


def test_every_kind_of_edit_is_a_change(mount: Path, scanner: Scanner) -> None:
    for number in range(6):
        put(mount, f"/d/{number}", "old")
    scanner.scan()
    (mount / "d" / "0").write_text("new")
    with (mount / "d" / "1").open("a") as file:
        file.write("er")
    (mount / "d" / "2").unlink()
    (mount / "d" / "3").rename(mount / "moved")
    put(mount, "/tmp", "replaced")
    (mount / "tmp").replace(mount / "d" / "4")
    put(mount, "/new/file", "n")
    scan = scanner.scan()
    assert scan.changed
    assert sums(scan) == {
        "/d/0": sha256("new"),
        "/d/1": sha256("older"),
        "/moved": sha256("old"),
        "/d/4": sha256("replaced"),
        "/d/5": sha256("old"),
        "/new/file": sha256("n"),
    }
    assert not scanner.scan().changed


def test_a_file_written_anew_with_its_own_bytes_is_no_change(mount: Path, scanner: Scanner) -> None:
    """F.248."""
    put(mount, "/a.md", "same")
    scanner.scan()
    put(mount, "/a.md", "same")
    os.utime(mount / "a.md")
    (mount / "a.md").chmod(0o600)
    assert not scanner.scan().changed


def test_an_edit_of_the_same_size_and_mtime_is_seen(mount: Path, scanner: Scanner) -> None:
    file = put(mount, "/a.md", "one")
    scanner.scan()
    before = file.stat()
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert sums(scanner.scan()) == {"/a.md": sha256("two")}


@pytest.mark.parametrize("mtime_s", [0, 2**33])
def test_an_mtime_of_another_age_hides_nothing(mount: Path, scanner: Scanner, mtime_s: int) -> None:
    file = put(mount, "/a.md", "one")
    os.utime(file, (mtime_s, mtime_s))
    scanner.scan()
    file.write_text("two")
    os.utime(file, (mtime_s, mtime_s))
    assert sums(scanner.scan()) == {"/a.md": sha256("two")}


def test_a_file_becomes_a_folder_and_a_folder_a_file(mount: Path, scanner: Scanner) -> None:
    """F.263."""
    put(mount, "/a", "file")
    put(mount, "/b/c/d", "below")
    scanner.scan()
    (mount / "a").unlink()
    put(mount, "/a/x", "now below")
    shutil.rmtree(mount / "b")
    put(mount, "/b", "now a file")
    scan = scanner.scan()
    assert sums(scan) == {"/a/x": sha256("now below"), "/b": sha256("now a file")}
    assert not scanner.scan().changed


def test_an_emptied_mount_has_no_files(mount: Path, scanner: Scanner) -> None:
    put(mount, "/a/b", "x")
    put(mount, "/c", "x")
    scanner.scan()
    shutil.rmtree(mount / "a")
    (mount / "c").unlink()
    scan = scanner.scan()
    assert (dict(scan.files), scan.changed, scan.complete) == ({}, True, True)


def test_what_the_caller_wrote_and_removed_is_no_change(mount: Path, scanner: Scanner) -> None:
    put(mount, "/old/gone.md", "x")
    scanner.scan()
    for path in ("/new/made.md", "/top.md"):
        scanner.wrote(path, put(mount, path, "mine").stat(), sha256("mine"))
    (mount / "old" / "gone.md").unlink()
    scanner.removed("/old/gone.md")
    scan = scanner.scan()
    assert not scan.changed
    assert sums(scan) == {"/new/made.md": sha256("mine"), "/top.md": sha256("mine")}
    assert scan.files["/top.md"] == LocalFile(sha256("mine"), 4)


def test_an_edit_of_what_the_caller_wrote_is_a_change(mount: Path, scanner: Scanner) -> None:
    scanner.scan()
    status = put(mount, "/a.md", "mine").stat()
    put(mount, "/a.md", "ours")
    scanner.wrote("/a.md", status, sha256("mine"))
    scan = scanner.scan()
    assert scan.changed
    assert sums(scan) == {"/a.md": sha256("ours")}


def test_what_the_caller_wrote_and_another_removed_is_gone(mount: Path, scanner: Scanner) -> None:
    scanner.scan()
    scanner.wrote("/d/a.md", put(mount, "/d/a.md", "mine").stat(), sha256("mine"))
    shutil.rmtree(mount / "d")
    scan = scanner.scan()
    assert (dict(scan.files), scan.changed) == ({}, True)


# -- the folder itself -----------------------------------------------------------------------------


def test_no_folder_a_file_or_a_link_cannot_be_scanned(roomy: Path) -> None:
    put(roomy, "/file")
    (roomy / "link").symlink_to(roomy)
    for name in ("missing", "file", "link"):
        with pytest.raises(SyncError, match=f"{name} cannot be synced: "):
            Scanner(roomy / name)


@pytest.mark.parametrize("successor", ["folder", "link", "nothing"])
def test_another_folder_in_the_mounts_place_is_an_error_and_no_deletion(
    mount: Path, scanner: Scanner, successor: str
) -> None:
    put(mount, "/a.md", "x")
    scanner.scan()
    mount.rename(mount.with_name("moved"))
    if successor == "folder":
        mount.mkdir()
    elif successor == "link":
        mount.symlink_to(mount.with_name("moved"))
    for call in (scanner.scan, lambda: scanner.read("/a.md")):
        with pytest.raises(SyncError, match="mount is no longer the folder that was mounted") as caught:
            call()
        assert caught.value.hint == "Stop the sandbox and start it anew; what lies in the folder is kept."


# -- reading one file ------------------------------------------------------------------------------


def test_one_file_is_read_whatever_its_bytes(mount: Path, scanner: Scanner) -> None:
    put(mount, "/a/b.bin", b"\xff\x00")
    assert scanner.read("/a/b.bin") == b"\xff\x00"


def test_what_is_no_file_of_a_legal_size_is_not_read(mount: Path, scanner: Scanner) -> None:
    put(mount, "/large", b"x" * 102_401)
    put(mount, "/dir/file", "x")
    os.mkfifo(mount / "pipe")
    (mount / "link").symlink_to(mount / "dir" / "file")
    (mount / "linked").symlink_to(mount / "dir")
    for path in ("/missing", "/large", "/dir", "/pipe", "/link", "/linked/file", "/dir/file/below"):
        assert scanner.read(path) is None


@pytest.mark.parametrize("path", ["/../secret", "/a/../../secret", "//a", "/.", "a", "/a/"])
def test_an_illegal_path_is_not_read(mount: Path, scanner: Scanner, path: str) -> None:
    put(mount.parent, "/secret", "x")
    with pytest.raises(InvalidPathError):
        scanner.read(path)
