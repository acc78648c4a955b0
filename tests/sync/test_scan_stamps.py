"""When a file's times stand for its content, and when they do not (SANDBOX.md, section 5)."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkernel.folders import opened
from memkernel.sync.scan import Scanner
from memkernel.sync.walk import Known, Walk
from tests.sync.places import put, sha256, sums

SETTLED_NS = 20_000_000


@pytest.fixture(autouse=True)
def settles_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 ms in place of two seconds."""
    monkeypatch.setattr("memkernel.sync.walk.SETTLED_NS", SETTLED_NS)


@pytest.fixture
def scanner(roomy: Path) -> Iterator[Scanner]:
    scanner = Scanner(roomy)
    yield scanner
    scanner.close()


def settle() -> None:
    time.sleep(2 * SETTLED_NS / 1e9)


def walked(known: Known, folder: Path, *, stamps_tell: bool = True, deep: bool = False) -> Walk:
    with opened(folder) as fd:
        walk = Walk(known, fd, max_file_bytes=100, max_files=100, stamps_tell=stamps_tell, deep=deep)
        walk.run()
    return walk


def test_a_young_stamp_does_not_stand_for_a_content(disk: Path) -> None:
    """Within one tick of the clock a second write would leave no trace."""
    known = Known()
    put(disk, "/a.md")
    walked(known, disk)
    assert known.root.stamps == {"a.md": None}
    settle()
    assert not walked(known, disk).changed
    assert known.root.stamps["a.md"] is not None


def test_a_ctime_in_the_future_never_stands_for_a_content(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known()
    put(disk, "/a.md")
    settle()
    now_ns = time.time_ns()
    monkeypatch.setattr("memkernel.sync.walk.time.time_ns", lambda: now_ns - 3_600 * 10**9)
    walked(known, disk)
    assert known.root.stamps == {"a.md": None}


def test_a_future_mtime_does_not_keep_a_file_from_being_trusted(disk: Path) -> None:
    known = Known()
    os.utime(put(disk, "/a.md"), (2**33, 2**33))
    settle()
    walked(known, disk)
    assert known.root.stamps["a.md"] is not None


def test_in_memory_no_stamp_stands_for_a_content(disk: Path) -> None:
    known = Known()
    put(disk, "/a.md")
    settle()
    walked(known, disk, stamps_tell=False)
    assert known.root.stamps == {"a.md": None}


def test_a_deep_walk_trusts_nothing_and_finds_nothing_new(disk: Path) -> None:
    known = Known()
    put(disk, "/d/a.md")
    put(disk, "/pipe-to-be")
    settle()
    walked(known, disk)
    known.files["/d/a.md"] = known.files["/pipe-to-be"].__class__(b"stale", 1)
    assert not walked(known, disk).changed
    assert walked(known, disk, deep=True).changed
    assert known.files["/d/a.md"].sha256 == sha256("x")


@pytest.mark.parametrize("files", [1, 40])
def test_stores_through_a_mapping_are_seen_each_time(roomy: Path, scanner: Scanner, files: int) -> None:
    """The first, and the next ones into pages that are dirty already; also where many files are flushed together."""
    maps: list[mmap.mmap] = []
    for number in range(files):
        with put(roomy, f"/{number}", b"0" * 100).open("r+b") as file:
            maps.append(mmap.mmap(file.fileno(), 100))
            assert maps[-1][0] == ord("0")  # read before it is written: the page is there
    settle()
    assert set(sums(scanner.scan()).values()) == {sha256(b"0" * 100)}
    for turn in b"abcd":
        for each in maps:
            each[0] = turn
        settle()
        scan = scanner.scan()
        assert set(sums(scan).values()) == {sha256(bytes([turn]) + b"0" * 99)}
        assert scan.changed
    for each in maps:
        each.close()


@pytest.mark.parametrize("is_open", [False, True])
def test_a_mapping_made_after_the_scan_is_seen(roomy: Path, scanner: Scanner, is_open: bool) -> None:
    """The page is dirty, and nobody had it mapped when the file was read; perhaps it was open already."""
    path = put(roomy, "/a", b"0" * 100)
    file = path.open("r+b") if is_open else None
    settle()
    scanner.scan()
    file = file or path.open("r+b")
    with file, mmap.mmap(file.fileno(), 100) as mapped:
        for turn in b"ab":
            assert mapped[1] == ord("0")
            mapped[0] = turn
            settle()
            assert sums(scanner.scan()) == {"/a": sha256(mapped[:])}


def test_who_opens_a_file_while_it_is_scanned_waits_for_no_time_and_harms_nobody(roomy: Path, scanner: Scanner) -> None:
    """The lease that tells whether a file is held is broken again and again."""
    file, done = put(roomy, "/a", "x"), threading.Event()

    def reopen() -> None:
        while not done.is_set():
            with file.open("r+b"):
                pass

    threads = [threading.Thread(target=reopen) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(500):
        put(roomy, "/a", "x")
        assert sums(scanner.scan()) in ({"/a": sha256("x")}, {"/a": sha256("")}, {})
    done.set()
    for thread in threads:
        thread.join()


def test_two_stores_between_three_scans_in_a_hurry_are_seen(roomy: Path, scanner: Scanner) -> None:
    with put(roomy, "/a", b"0" * 100).open("r+b") as file, mmap.mmap(file.fileno(), 100) as mapped:
        for turn in range(200):
            mapped[turn % 100] = 65 + turn % 26
            assert sums(scanner.scan()) == {"/a": sha256(mapped[:])}


def test_writes_in_a_hurry_are_all_seen(roomy: Path, scanner: Scanner) -> None:
    file = put(roomy, "/a", "000")
    for turn in range(300):
        file.write_text(f"{turn:03}")
        assert sums(scanner.scan()) == {"/a": sha256(f"{turn:03}")}
