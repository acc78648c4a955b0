"""folders: what others write to is counted, emptied and held without following a link (SANDBOX.md, section 6)."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memkernel.folders import HeldFolder, Usage, make_private_folder, open_folder, opened, remove_tree, usage
from tests.fix_folders import ORDINARY, mounted, ordinary_rights

NO_LIMIT = 10**12


def deep_chain(top: Path, depth: int) -> None:
    """Folders in folders, deeper than any path can be."""
    fd = open_folder(top)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = open_folder("d", dir_fd=fd)
        os.close(fd)
        fd = below
    with os.fdopen(os.open("leaf.md", os.O_WRONLY | os.O_CREAT, dir_fd=fd), "w") as leaf:
        leaf.write("deep")
    os.close(fd)


def deep_comb(top: Path, depth: int) -> None:
    """As `deep_chain`, and each folder holds others besides: whatever the order, in half of them some come later."""
    fd = open_folder(top)
    for level in range(depth):
        names = ["e", "f", f"d{level}"]
        for name in names if level % 2 else reversed(names):
            os.mkdir(name, dir_fd=fd)
        below = open_folder(f"d{level}", dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


# -- usage -----------------------------------------------------------------------------------------


def test_usage_counts_every_entry_and_what_it_takes_of_the_disk(roomy: Path) -> None:
    (roomy / "a").mkdir()
    (roomy / "a" / "b.md").write_bytes(b"x" * 100_000)
    (roomy / "c.md").write_text("c")
    counted = usage(roomy, NO_LIMIT, NO_LIMIT)
    assert counted.files == 3
    assert 100_000 <= counted.bytes <= 200_000


def test_a_sparse_terabyte_takes_nothing(roomy: Path) -> None:
    with (roomy / "huge").open("w") as file:
        os.truncate(file.fileno(), 1 << 40)
    assert usage(roomy, NO_LIMIT, NO_LIMIT) == Usage(1, 0)


def test_usage_stops_at_either_limit(roomy: Path) -> None:
    for number in range(50):
        (roomy / f"{number}").write_bytes(b"x" * 4096)
    assert usage(roomy, 10, NO_LIMIT).files == 10
    assert 20_000 <= usage(roomy, NO_LIMIT, 20_000).bytes <= 24_576


def test_usage_follows_no_link_at_the_top_or_below(roomy: Path) -> None:
    (roomy / "inside").mkdir()
    (roomy / "inside" / "usr").symlink_to("/usr")
    assert usage(roomy / "inside", NO_LIMIT, NO_LIMIT).files == 1
    assert usage(roomy / "inside" / "usr", NO_LIMIT, NO_LIMIT) == Usage(0, 0)
    assert usage(roomy / "missing", NO_LIMIT, NO_LIMIT) == Usage(0, 0)


def test_what_a_folder_hides_from_its_own_owner_counts(account: Path) -> None:
    hidden = account / "hidden"
    (hidden / "below").mkdir(parents=True)
    for number in range(20):
        (hidden / "below" / f"{number}").write_text("x")
    (hidden / "below").chmod(0o300)
    hidden.chmod(0)
    assert usage(account, NO_LIMIT, NO_LIMIT).files == 22


def test_a_chain_of_folders_of_any_depth_is_counted(roomy: Path) -> None:
    before = open_descriptors()
    deep_chain(roomy, 1_500)
    assert usage(roomy, NO_LIMIT, NO_LIMIT).files == 1_501
    assert open_descriptors() == before


def test_folders_nested_beyond_all_reason_count_as_too_many(roomy: Path) -> None:
    before = open_descriptors()
    deep_comb(roomy, 400)
    assert usage(roomy, 10_000, NO_LIMIT).files == 10_000
    assert open_descriptors() == before


def test_usage_survives_others_that_come_and_go(roomy: Path) -> None:
    (roomy / "stays").write_text("x")
    done = threading.Event()

    def bustle() -> None:
        while not done.is_set():
            (roomy / "d").mkdir()
            (roomy / "d" / "f").write_text("x")
            (roomy / "d" / "f").unlink()
            (roomy / "d").rmdir()

    thread = threading.Thread(target=bustle)
    thread.start()
    try:
        counts = {usage(roomy, NO_LIMIT, NO_LIMIT).files for _ in range(500)}
    finally:
        done.set()
        thread.join()
    assert counts <= {1, 2, 3}


# -- removal ---------------------------------------------------------------------------------------


def test_a_tree_of_any_depth_and_kind_is_removed(roomy: Path) -> None:
    before = open_descriptors()
    tree = roomy / "tree"
    tree.mkdir()
    deep_chain(tree, 1_500)
    os.mkfifo(tree / "pipe")
    (tree / "link").symlink_to("/usr")
    (tree / os.fsdecode(b"\xff\n")).write_text("x")
    remove_tree(tree)
    assert list(roomy.iterdir()) == []
    assert open_descriptors() == before


def test_folders_that_their_owner_may_not_enter_are_removed(account: Path) -> None:
    tree = account / "tree"
    (tree / "a" / "b" / "c").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_text("x")
    for folder in (tree / "a" / "b" / "c", tree / "a" / "b", tree / "a", tree):
        folder.chmod(0)
    remove_tree(tree)
    assert not tree.exists()


def test_a_link_or_a_file_is_removed_itself(roomy: Path) -> None:
    (roomy / "kept").mkdir()
    (roomy / "kept" / "file").write_text("x")
    (roomy / "link").symlink_to(roomy / "kept")
    (roomy / "file").write_text("x")
    for name in ("link", "file", "missing"):
        remove_tree(roomy / name)
    assert [entry.name for entry in roomy.iterdir()] == ["kept"]
    assert (roomy / "kept" / "file").read_text() == "x"


def test_what_is_above_a_tree_may_be_a_link(roomy: Path) -> None:
    (roomy / "real" / "tree").mkdir(parents=True)
    (roomy / "link").symlink_to("real")
    remove_tree(roomy / "link" / "tree")
    assert list((roomy / "real").iterdir()) == []
    remove_tree(roomy / "missing" / "tree")


_SWAPPER = """
import ctypes, os, sys
top, outside = sys.argv[1:]
rename = ctypes.CDLL(None).renameat2
os.chdir(top)
while True:
    try:
        os.makedirs("a/b/c", exist_ok=True)
        open("a/b/f", "w").close()
        if not os.path.islink("s"):
            os.symlink(outside, "s")
        for _ in range(50):
            rename(-100, b"a", -100, b"s", 2)
        rename(-100, b"a/b", -100, b"b", 0)
    except OSError:
        pass
    print(".", end="", flush=True)
"""


def test_a_folder_that_is_swapped_with_a_link_while_it_is_removed_leads_nowhere(roomy: Path) -> None:
    top, outside = roomy / "top", roomy / "outside"
    for folder in (top, outside):
        folder.mkdir()
    for number in range(20):
        (outside / f"{number}").write_text("kept")
    rounds = removed = 0
    with subprocess.Popen([sys.executable, "-c", _SWAPPER, str(top), str(outside)], stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            while rounds < 150 or removed <= 10:  # on a busy machine fewer of them are won
                rounds += 1
                assert swapper.stdout.read(1) == b"."
                for entry in list(top.iterdir()):
                    with contextlib.suppress(OSError):  # filled again as fast as it was emptied
                        remove_tree(entry)
                        removed += 1
        finally:
            swapper.kill()
    assert all((outside / f"{number}").read_text() == "kept" for number in range(20))


@pytest.mark.as_root
def test_another_file_system_inside_is_not_emptied(roomy: Path) -> None:
    tree = roomy / "tree"
    (tree / "mounted").mkdir(parents=True)
    with mounted(tree / "mounted"):
        (tree / "mounted" / "kept").write_text("x")
        with pytest.raises(OSError, match="another file system is mounted at mounted"):
            remove_tree(tree)
        assert (tree / "mounted" / "kept").read_text() == "x"


# -- private folders, held folders -------------------------------------------------------------------


def test_a_private_folder_is_made_with_what_is_above_it(account: Path) -> None:
    make_private_folder(account / "a" / "b")
    make_private_folder(account / "a" / "b")
    assert stat.S_IMODE((account / "a" / "b").stat().st_mode) == 0o700


def test_a_folder_that_is_there_is_made_private(account: Path) -> None:
    (account / "open").mkdir(mode=0o755)
    make_private_folder(account / "open")
    assert stat.S_IMODE((account / "open").stat().st_mode) == 0o700


def test_a_link_is_no_private_folder(roomy: Path) -> None:
    (roomy / "link").symlink_to("/usr")
    with pytest.raises(NotADirectoryError):
        make_private_folder(roomy / "link")


@pytest.mark.as_root
def test_a_folder_of_somebody_else_is_not_private(disk: Path) -> None:
    (disk / "roots").mkdir()
    (disk / "roots").chmod(0o777)
    os.chmod(disk, 0o777)
    with ordinary_rights(), pytest.raises(PermissionError, match="roots belongs to another account"):
        make_private_folder(disk / "roots")
    os.chown(disk / "roots", ORDINARY, ORDINARY)
    with ordinary_rights():
        make_private_folder(disk / "roots")


def test_a_folder_in_the_place_of_a_held_one_is_noticed(roomy: Path) -> None:
    (roomy / "held").mkdir()
    held = HeldFolder(roomy / "held")
    assert held.is_in_place()
    (roomy / "held").rmdir()
    assert not held.is_in_place()
    (roomy / "held").mkdir()  # the very inode might be used again, were it not held
    assert not held.is_in_place()
    (roomy / "held").rmdir()
    (roomy / "held").symlink_to(roomy)
    assert not held.is_in_place()
    held.close()


def test_a_folder_is_known_again_and_another_in_its_place_is_not(roomy: Path) -> None:
    """Also by a later process, and where its inode is used again at once."""

    def identity() -> str:
        held = HeldFolder(roomy / "mount")
        try:
            return held.identity()
        finally:
            held.close()

    seen: set[str] = set()
    for _ in range(20):
        (roomy / "mount").mkdir()
        first = identity()
        (roomy / "mount" / "file").write_text("x")
        (roomy / "mount").chmod(0o700)
        (roomy / "mount").rename(roomy / "moved")
        (roomy / "moved").rename(roomy / "mount")
        assert identity() == first
        assert first not in seen
        seen.add(first)
        remove_tree(roomy / "mount")


def test_an_opened_folder_is_closed(roomy: Path) -> None:
    with opened(roomy) as fd:
        assert os.listdir(fd) == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
