"""What a sandbox can put into a mount to mislead the scan (SANDBOX.md, section 6: files, host side)."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkernel.folders import open_folder
from memkernel.sync.scan import Scanner
from tests.fix_folders import ORDINARY, mounted, ordinary_rights
from tests.sync.places import put, raw, sha256, sums

SECRET = "the host's secret"


@pytest.fixture
def mount(roomy: Path) -> Path:
    folder = roomy / "mount"
    folder.mkdir()
    put(roomy, "/outside/secret.md", SECRET)
    return folder


@pytest.fixture
def scanner(mount: Path) -> Iterator[Scanner]:
    scanner = Scanner(mount)
    yield scanner
    scanner.close()


# -- what is no file -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "/etc", "../outside/secret.md", "../outside", "self", "/proc/self/environ", "nowhere", "/", "."],
)
def test_a_link_is_refused_wherever_it_leads(mount: Path, scanner: Scanner, target: str) -> None:
    """F.260, F.261."""
    put(mount, "/good.md", "good")
    (mount / "self").symlink_to(target)
    scan = scanner.scan()
    assert sums(scan) == {"/good.md": sha256("good")}
    assert scan.refused == {"/self": "it is a symbolic link"}
    assert scanner.read("/self") is None
    assert scanner.read("/self/secret.md") is None


def test_pipes_and_sockets_are_refused_without_waiting(mount: Path, scanner: Scanner) -> None:
    os.mkfifo(mount / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(mount / "socket"))
        assert scanner.scan().refused == {"/pipe": "it is a pipe", "/socket": "it is a socket"}
        assert scanner.read("/pipe") is None
        assert scanner.read("/socket") is None


@pytest.mark.as_root
def test_a_device_is_refused_without_being_opened(mount: Path, scanner: Scanner) -> None:
    os.mknod(mount / "kmsg", 0o666 | stat.S_IFCHR, os.makedev(1, 11))
    os.mknod(mount / "disk", 0o666 | stat.S_IFBLK, os.makedev(7, 0))
    assert scanner.scan().refused == {"/kmsg": "it is a device", "/disk": "it is a device"}
    assert scanner.read("/kmsg") is None


def test_a_link_that_becomes_a_file_and_back_is_followed_in_neither_state(mount: Path, scanner: Scanner) -> None:
    link = mount / "f.md"
    link.symlink_to("../outside/secret.md")
    assert scanner.scan().refused == {"/f.md": "it is a symbolic link"}
    link.unlink()
    link.write_text("benign")
    scan = scanner.scan()
    assert (sums(scan), dict(scan.refused)) == ({"/f.md": sha256("benign")}, {})
    link.unlink()
    link.symlink_to("../outside/secret.md")
    scan = scanner.scan()
    assert (sums(scan), dict(scan.refused), scan.changed) == ({}, {"/f.md": "it is a symbolic link"}, True)
    assert not scanner.scan().changed
    link.unlink()
    assert (scanner.scan().refused, scanner.scan().changed) == ({}, False)


# -- contents --------------------------------------------------------------------------------------


def test_a_file_that_is_no_text_is_refused_alone(mount: Path, scanner: Scanner) -> None:
    """F.260."""
    put(mount, "/good.md", "good")
    put(mount, "/bad.bin", b"ab\xff")
    scan = scanner.scan()
    assert sums(scan) == {"/good.md": sha256("good")}
    assert scan.refused == {"/bad.bin": "it is not text: byte 2 is not UTF-8"}
    put(mount, "/bad.bin", b"abc")
    assert sums(scanner.scan())["/bad.bin"] == sha256("abc")


def test_the_size_limit_is_in_bytes_and_exact(mount: Path, scanner: Scanner) -> None:
    put(mount, "/full.md", "é" * 51_200)
    put(mount, "/over.md", "x" * 102_401)
    scan = scanner.scan()
    assert list(scan.files) == ["/full.md"]
    assert scan.refused == {"/over.md": "102,401 bytes, the limit is 102,400"}


def test_a_sparse_terabyte_is_not_read(mount: Path, scanner: Scanner) -> None:
    with (mount / "huge").open("w") as file:
        os.truncate(file.fileno(), 1 << 40)
    assert scanner.scan().refused == {"/huge": "1,099,511,627,776 bytes, the limit is 102,400"}


def test_a_file_that_grows_is_read_as_it_was_at_one_moment_or_not_at_all(mount: Path, scanner: Scanner) -> None:
    done = threading.Event()
    text = b"0123456789" * 20_000

    def grow() -> None:
        while not done.is_set():
            with (mount / "log").open("wb", buffering=0) as file:
                for start in range(0, 60_000, 10):
                    file.write(text[start : start + 10])

    thread = threading.Thread(target=grow)
    thread.start()
    states = {sha256(text[:size]) for size in range(0, 60_001, 10)}
    try:
        for _ in range(300):
            scan = scanner.scan()
            assert set(sums(scan).values()) <= states
            assert set(scan.refused.values()) <= {"it changes while it is read"}
    finally:
        done.set()
        thread.join()
    assert sums(scanner.scan()) == {"/log": sha256((mount / "log").read_bytes())}


def test_setuid_bits_and_attributes_make_no_difference(mount: Path, scanner: Scanner) -> None:
    file = put(mount, "/run.sh", "echo")
    file.chmod(0o6755)
    assert sums(scanner.scan()) == {"/run.sh": sha256("echo")}


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spelling", "reason"),
    [
        (b"new\nline", "/new\\x0aline", "it holds U+000A"),
        (b"\x1b[31mred", "/\\x1b[31mred", "it holds U+001B"),
        ("\u202egnp.exe".encode(), "/\\u202egnp.exe", "it holds U+202E"),
        ("zero\u200bwidth".encode(), "/zero\\u200bwidth", "it holds U+200B"),
        ("line\u2028".encode(), "/line\\u2028", "it holds U+2028"),
        (b"latin-\xe9", "/latin-\\xe9", "its name is not UTF-8"),
        ("cafe\u0301".encode(), "/cafe\u0301", "it is not in Unicode normal form C"),
        ("\U000e0001tag".encode(), "/\\U000e0001tag", "it holds U+E0001"),
    ],
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_illegal_name_is_refused_and_spelt_so_that_it_can_be_printed(
    mount: Path, scanner: Scanner, *, name: bytes, spelling: str, reason: str, kind: str
) -> None:
    put(mount, "/good.md", "good")
    if kind == "folder":
        os.mkdir(os.path.join(os.fsencode(mount), name))
        name += b"/inside"
    raw(mount, name)
    scan = scanner.scan()
    assert (sums(scan), dict(scan.refused)) == ({"/good.md": sha256("good")}, {spelling: reason})
    assert not scanner.scan().changed


def test_an_illegal_name_that_goes_is_forgotten(mount: Path, scanner: Scanner) -> None:
    raw(mount, b"bad\n")
    (mount / "worse\x1b").mkdir()
    assert len(scanner.scan().refused) == 2
    (mount / "bad\n").unlink()
    (mount / "worse\x1b").rmdir()
    assert (scanner.scan().refused, scanner.scan().changed) == ({}, False)


def test_a_name_that_looks_like_an_escape_is_not_taken_for_the_illegal_one(mount: Path, scanner: Scanner) -> None:
    put(mount, "/a\\x1b", "legal")
    raw(mount, b"a\x1b")
    raw(mount, b"\x1b")
    raw(mount, b"b\xff")
    raw(mount, b"b\xc3")
    scan = scanner.scan()
    assert sums(scan) == {"/a\\x1b": sha256("legal")}
    assert sorted(scan.refused) == ["/\\x1b", "/a\\x1b'", "/b\\xc3", "/b\\xff"]


def test_of_two_normal_forms_of_a_name_one_is_legal(mount: Path, scanner: Scanner) -> None:
    raw(mount, "café".encode(), b"composed")
    raw(mount, "cafe\u0301".encode(), b"decomposed")
    scan = scanner.scan()
    assert sums(scan) == {"/café": sha256("composed")}
    assert scan.refused == {"/cafe\u0301": "it is not in Unicode normal form C"}


def test_a_path_of_more_than_1024_bytes_is_refused(mount: Path, scanner: Scanner) -> None:
    long = "/".join(["x" * 200] * 5)
    put(mount, f"/{long}/{'y' * 18}", "1,024 bytes")
    put(mount, f"/{long}/{'y' * 19}", "1,025 bytes")
    scan = scanner.scan()
    assert sums(scan) == {f"/{long}/{'y' * 18}": sha256("1,024 bytes")}
    assert list(scan.refused.values()) == ["it has 1,025 bytes, the limit is 1,024"]


def test_the_sdks_marker_is_never_a_memory_at_the_root(mount: Path, scanner: Scanner) -> None:
    """F.269."""
    put(mount, "/.anthropic-memory-store", "version 1\nmemstore_x")
    put(mount, "/a/.anthropic-memory-store", "below")
    scan = scanner.scan()
    assert sums(scan) == {"/a/.anthropic-memory-store": sha256("below")}
    assert scan.refused == {"/.anthropic-memory-store": "it is the SDK's own marker, which is never saved"}


# -- how many, how deep ------------------------------------------------------------------------------


def test_a_chain_of_folders_deeper_than_any_path_is_refused_at_its_twenty_first(mount: Path, scanner: Scanner) -> None:
    fd = open_folder(mount)
    for _ in range(1_000):
        os.mkdir("d", dir_fd=fd)
        below = open_folder("d", dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    put(mount, "/good.md", "good")
    scan = scanner.scan()
    assert sums(scan) == {"/good.md": sha256("good")}
    assert list(scan.refused) == ["/d" * 20]
    assert scan.complete


@pytest.mark.parametrize("per_folder", [1_000, 50])
def test_of_too_many_files_the_rest_is_not_looked_at_and_said_so(mount: Path, per_folder: int) -> None:
    for number in range(1_000):
        put(mount, f"/{number // per_folder}/{number}", "x")
    scanner = Scanner(mount, max_files=300)
    scan = scanner.scan()
    assert not scan.complete
    assert 250 <= len(scan.files) <= 300
    assert not scanner.scan().changed
    for number in range(100, 1_000):
        (mount / f"{number // per_folder}" / f"{number}").unlink()
    scan = scanner.scan()
    assert scan.complete
    assert sorted(scan.files) == sorted(f"/{number // per_folder}/{number}" for number in range(100))
    scanner.close()


def test_exactly_as_many_as_may_be_are_all_seen(mount: Path) -> None:
    for number in range(10):
        put(mount, f"/d/{number}")
    scanner = Scanner(mount, max_files=11)
    assert (scanner.scan().complete, len(scanner.scan().files)) == (True, 10)
    put(mount, "/d/10")
    assert not scanner.scan().complete
    scanner.close()


def test_files_beyond_the_cap_are_no_deletions(mount: Path) -> None:
    put(mount, "/d/kept.md", "kept")
    scanner = Scanner(mount, max_files=100)
    scanner.scan()
    for number in range(300):
        put(mount, f"/flood-{number}")
        put(mount, f"/d/flood-{number}")
    scan = scanner.scan()
    assert (scan.complete, sums(scan)["/d/kept.md"]) == (False, sha256("kept"))
    scanner.close()


# -- what cannot be read -----------------------------------------------------------------------------


@pytest.mark.as_root
def test_what_is_closed_even_to_its_owner_is_no_deletion(disk: Path) -> None:
    os.chown(disk, ORDINARY, ORDINARY)
    with ordinary_rights():
        for path in ("/file.md", "/closed/a.md", "/listable/b.md", "/enterable/c.md"):
            put(disk, path, path)
        scanner = Scanner(disk)
        assert len(scanner.scan().files) == 4
        (disk / "file.md").chmod(0)
        (disk / "closed").chmod(0)
        (disk / "listable").chmod(0o400)
        (disk / "enterable").chmod(0o100)
        scan = scanner.scan()
        assert (dict(scan.files), scan.complete, scan.changed) == ({}, True, True)
        assert scan.refused == {"/file.md": "it cannot be read: permission denied"}
        assert scan.unreadable == ("/closed/", "/enterable/", "/listable/")
        assert not scanner.scan().changed
        for name in ("file.md", "closed", "listable", "enterable"):
            (disk / name).chmod(0o700)
        scan = scanner.scan()
        assert (len(scan.files), scan.refused, scan.unreadable, scan.changed) == (4, {}, (), True)
        disk.chmod(0)
        scan = scanner.scan()
        assert (dict(scan.files), scan.unreadable, scan.changed) == ({}, ("/",), True)
        disk.chmod(0o700)
        assert len(scanner.scan().files) == 4
        scanner.close()


@pytest.mark.as_root
def test_another_file_system_inside_is_not_looked_at_and_is_no_deletion(mount: Path, scanner: Scanner) -> None:
    put(mount, "/a/b.md", "ours")
    put(mount, "/c.md", "ours")
    scanner.scan()
    with mounted(mount / "a"):
        put(mount, "/a/foreign.md", "theirs")
        scan = scanner.scan()
    assert (sums(scan), scan.unreadable) == ({"/c.md": sha256("ours")}, ("/a/",))
    assert list(scanner.scan().files) == ["/c.md", "/a/b.md"]


@pytest.mark.as_root
def test_root_reads_what_is_closed_to_others(mount: Path, scanner: Scanner) -> None:
    put(mount, "/closed/a.md", "x").chmod(0)
    (mount / "closed").chmod(0)
    assert sums(scanner.scan()) == {"/closed/a.md": sha256("x")}
