"""sync.files: the host's writes into a mount, on a disk and in memory (SANDBOX.md, Decisions 9, 14; CONTRACT D.5)."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memkernel.errors import InvalidPathError, SyncError
from memkernel.folders import remove_tree
from memkernel.sync import renames
from memkernel.sync.files import MountFiles, PutAside, Unwritable
from tests.fix_folders import ORDINARY, mounted, ordinary_rights
from tests.sync.places import put, raw, sha256

OWNER = (ORDINARY, ORDINARY) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


@pytest.fixture(params=["exchange", "two steps"])
def mount(roomy: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mount's folder; also as on a system that cannot exchange two names."""
    if request.param == "two steps":
        monkeypatch.setattr(renames, "_renameat2", lambda: None)
    folder = roomy / "mount"
    folder.mkdir()
    return folder


@pytest.fixture
def files(mount: Path) -> Iterator[MountFiles]:
    files = MountFiles(mount, mount.with_name("aside"), owner=OWNER)
    yield files
    files.close()


def entries(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def contents(put_aside: tuple[PutAside, ...]) -> dict[str, bytes | None]:
    return {put.path: put.content for put in put_aside}


# -- writing ---------------------------------------------------------------------------------------


def test_a_file_is_written_with_its_folders_and_belongs_to_the_sandbox(mount: Path, files: MountFiles) -> None:
    written = files.write("/a/b/c.md", b"text\r\n", ())
    file = mount / "a" / "b" / "c.md"
    assert file.read_bytes() == b"text\r\n"
    assert (written.status.st_size, written.put_aside) == (6, ())
    for made, mode in ((file, 0o644), (mount / "a" / "b", 0o755), (mount / "a", 0o755)):
        status = made.stat()
        assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (mode, *OWNER)
    assert entries(mount.with_name("aside")) == []


def test_the_umask_of_the_host_is_not_the_sandboxs(mount: Path, files: MountFiles) -> None:
    before = os.umask(0o077)
    try:
        files.write("/a/b.md", b"x", ())
    finally:
        os.umask(before)
    assert stat.S_IMODE((mount / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((mount / "a" / "b.md").stat().st_mode) == 0o644


@pytest.mark.as_root
def test_the_sandboxs_user_can_append_to_what_was_pulled_and_make_files_beside_it(
    mount: Path, files: MountFiles
) -> None:
    files.write("/d/a.md", b"one", ())
    os.chmod(mount.parent, 0o755)
    with ordinary_rights():
        with (mount / "d" / "a.md").open("a") as file:
            file.write(" two")
        (mount / "d" / "b.md").write_text("x")
    assert (mount / "d" / "a.md").read_text() == "one two"


def test_without_an_owner_files_stay_this_accounts(mount: Path) -> None:
    files = MountFiles(mount, mount.with_name("aside"), owner=None)
    files.write("/d/a.md", b"x", ())
    assert ((mount / "d").stat().st_uid, (mount / "d" / "a.md").stat().st_uid) == (os.geteuid(), os.geteuid())
    files.close()


def test_an_ordinary_user_writes_files_of_its_own(account: Path) -> None:
    (account / "mount").mkdir()
    files = MountFiles(account / "mount", account / "aside", owner=(os.geteuid(), os.getegid()))
    files.write("/d/a.md", b"x", ())
    assert (account / "mount" / "d" / "a.md").read_text() == "x"
    files.close()


@pytest.mark.as_root
def test_an_ordinary_user_that_may_not_give_files_away_is_told(disk: Path) -> None:
    os.chown(disk, ORDINARY, ORDINARY)
    with ordinary_rights():
        (disk / "mount").mkdir()
        files = MountFiles(disk / "mount", disk / "aside", owner=(ORDINARY + 1, ORDINARY + 1))
        with pytest.raises(SyncError, match=r"/a\.md cannot be written to the mount: operation not permitted"):
            files.write("/a.md", b"x", ())
        files.close()
        assert entries(disk / "mount") == entries(disk / "aside") == []


def test_a_known_text_is_replaced_and_an_unknown_one_is_put_aside(mount: Path, files: MountFiles) -> None:
    """Decision 9."""
    files.write("/a.md", b"base", ())
    assert files.write("/a.md", b"head", (sha256("base"),)).put_aside == ()
    put(mount, "/a.md", "somebody's")
    (aside,) = files.write("/a.md", b"newer", (sha256("head"),)).put_aside
    assert (mount / "a.md").read_text() == "newer"
    assert (aside.path, aside.size_bytes, aside.sha256, aside.reason) == ("/a.md", 10, sha256("somebody's"), None)
    assert aside.content == b"somebody's"
    files.discard(aside)
    assert aside.content is None


def test_many_files_are_written_at_once(mount: Path, files: MountFiles) -> None:
    texts = {f"/{number % 7}/{number}.md": f"{number}".encode() for number in range(100)}
    put(mount, "/3/3.md", "local")
    put(mount, "/4/4.md", "known")
    writes = files.write_all(texts, lambda path: {sha256("known")} if path == "/4/4.md" else ())
    assert writes.unwritable == {}
    assert {path: (mount / path[1:]).read_bytes() for path in texts} == texts
    assert {path: contents(one.put_aside) for path, one in writes.written.items() if one.put_aside} == {
        "/3/3.md": {"/3/3.md": b"local"}
    }


def test_a_name_that_is_too_long_for_a_file_does_not_stop_the_others(mount: Path, files: MountFiles) -> None:
    """CONTRACT 0.3, row 14."""
    long, longer = f"/{'x' * 256}", f"/{'y' * 256}/b"
    writes = files.write_all({"/a": b"1", long: b"2", longer: b"3", "/b": b"4"}, lambda _: ())
    assert list(writes.written) == ["/a", "/b"]
    assert writes.unwritable == dict.fromkeys(
        (long, longer), "a segment of it is longer than a file's name may be here"
    )
    with pytest.raises(Unwritable, match="a segment of it is longer"):
        files.write(long, b"", ())
    assert files.remove(long, ()) == files.put_aside(long) == ()
    assert entries(mount.with_name("aside")) == []


def test_where_case_is_folded_the_second_of_two_twins_is_not_written(mount: Path) -> None:
    files = MountFiles(mount, mount.with_name("aside"), owner=None, folds_case=True)
    writes = files.write_all({"/Notes/a.md": b"1", "/Notes/A.md": b"2", "/notes/b.md": b"3"}, lambda _: ())
    assert list(writes.written) == ["/Notes/a.md"]
    reason = "another name there differs from it in case only, which are one name here"
    assert writes.unwritable == dict.fromkeys(("/Notes/A.md", "/notes/b.md"), reason)
    files.write("/Notes/a.md", b"again", {sha256("1")})
    files.close()


def test_where_case_is_not_folded_twins_are_two_files(mount: Path, files: MountFiles) -> None:
    files.write_all({"/a.md": b"1", "/A.md": b"2"}, lambda _: ())
    assert entries(mount) == ["A.md", "a.md"]


@pytest.mark.parametrize("path", ["/../x", "/a/../../x", "a", "/", "/a//b", "/a/.", "/new\nline"])
def test_an_illegal_path_is_never_touched(mount: Path, files: MountFiles, path: str) -> None:
    for call in (lambda: files.write(path, b"", ()), lambda: files.remove(path, ()), lambda: files.put_aside(path)):
        with pytest.raises(InvalidPathError):
            call()
    assert entries(mount.parent) == ["aside", "mount"]


# -- what is in the way ------------------------------------------------------------------------------


def test_a_file_in_the_place_of_a_folder_makes_way(mount: Path, files: MountFiles) -> None:
    put(mount, "/a", "a file")
    assert contents(files.write("/a/b.md", b"x", ()).put_aside) == {"/a": b"a file"}
    assert (mount / "a" / "b.md").read_text() == "x"


def test_a_folder_in_the_place_of_a_file_makes_way_with_each_file_in_it(mount: Path, files: MountFiles) -> None:
    put(mount, "/a/x.md", "one")
    put(mount, "/a/deep/er/y.bin", b"\xff")
    (mount / "a" / "link").symlink_to("/etc/passwd")
    os.mkfifo(mount / "a" / "deep" / "pipe")
    written = files.write("/a", b"now a file", ())
    assert contents(written.put_aside) == {"/a/x.md": b"one", "/a/deep/er/y.bin": b"\xff"}
    assert (mount / "a").read_text() == "now a file"
    for aside in written.put_aside:
        files.discard(aside)
    assert entries(mount.with_name("aside")) == []


def test_an_empty_folder_in_the_place_of_a_file_is_no_loss(mount: Path, files: MountFiles) -> None:
    (mount / "a" / "b").mkdir(parents=True)
    assert files.write("/a", b"x", ()).put_aside == ()
    assert entries(mount.with_name("aside")) == []


def test_links_pipes_and_huge_files_make_way_and_say_what_they_are(mount: Path, files: MountFiles) -> None:
    """Decision 13: a remote change at a refused path."""
    (mount / "link").symlink_to("/etc/passwd")
    os.mkfifo(mount / "pipe")
    with (mount / "huge").open("w") as file:
        os.truncate(file.fileno(), 1 << 40)
    put(mount, "/large", b"x" * 102_401)
    expected = {
        "link": ("it is a symbolic link", None),
        "pipe": ("it is a pipe", None),
        "huge": ("1,099,511,627,776 bytes, the limit is 102,400", None),
        "large": ("102,401 bytes, the limit is 102,400", b"x" * 102_401),
    }
    for name, (reason, content) in expected.items():
        (aside,) = files.write(f"/{name}", b"text", ()).put_aside
        assert (aside.sha256, aside.reason, aside.content) == (None, reason, content)
        assert (mount / name).read_text() == "text"
        files.discard(aside)
    assert entries(mount.with_name("aside")) == []


def test_folders_and_files_that_are_closed_to_their_owner_are_replaced_all_the_same(account: Path) -> None:
    mount = account / "mount"
    put(mount, "/d/e/a.md", "local").chmod(0)
    put(mount, "/f/g/h.md", "below").chmod(0)
    put(mount, "/gone.md", "x")
    for folder in ("d/e", "d", "f/g", "f"):
        (mount / folder).chmod(0)
    files = MountFiles(mount, account / "aside", owner=None)
    mount.chmod(0)
    assert contents(files.write("/d/e/a.md", b"head", ()).put_aside) == {"/d/e/a.md": b"local"}
    mount.chmod(0)
    assert contents(files.write("/f", b"head", ()).put_aside) == {"/f/g/h.md": b"below"}
    mount.chmod(0o500)
    assert files.remove("/gone.md", {sha256("x")}) == ()
    files.write("/new/folder.md", b"x", ())
    files.close()
    assert entries(mount) == ["d", "f", "new"]


# -- removing --------------------------------------------------------------------------------------


def test_a_known_text_is_removed_and_an_unknown_one_put_aside(mount: Path, files: MountFiles) -> None:
    put(mount, "/a/known.md", "known")
    put(mount, "/a/edited.md", "edited")
    assert files.remove("/a/known.md", {sha256("known")}) == ()
    assert contents(files.remove("/a/edited.md", {sha256("known")})) == {"/a/edited.md": b"edited"}
    assert files.remove("/a/missing.md", ()) == files.remove("/no/folder.md", ()) == ()
    assert entries(mount / "a") == []


def test_a_folder_at_a_removed_path_stays_and_is_put_aside_only_by_name(mount: Path, files: MountFiles) -> None:
    put(mount, "/a/b.md", "x")
    assert files.remove("/a", ()) == ()
    assert files.remove("/a/b.md/c", ()) == ()
    assert (mount / "a" / "b.md").exists()
    assert contents(files.put_aside("/a")) == {"/a/b.md": b"x"}
    assert entries(mount) == []


def test_folders_that_removals_have_emptied_go_and_others_stay(mount: Path, files: MountFiles) -> None:
    put(mount, "/a/b/c/x.md", "x")
    put(mount, "/a/y.md", "x")
    put(mount, "/d/e/z.md", "x")
    (mount / "made" / "by-a-cell").mkdir(parents=True)
    for path in ("/a/b/c/x.md", "/d/e/z.md"):
        files.remove(path, {sha256("x")})
    files.prune_folders()
    assert entries(mount) == ["a", "made"]
    assert entries(mount / "a") == ["y.md"]
    files.remove("/a/y.md", {sha256("x")})
    put(mount, "/a/new.md", "x")
    files.prune_folders()
    assert entries(mount / "a") == ["new.md"]


# -- those who write meanwhile -----------------------------------------------------------------------


def test_what_is_written_into_a_replaced_file_afterwards_is_found(mount: Path, files: MountFiles) -> None:
    put(mount, "/log", "known")
    put(mount, "/quiet", "known")
    with (mount / "log").open("a") as late, (mount / "quiet").open("a"):
        assert files.write("/log", b"head", {sha256("known")}).put_aside == ()
        assert files.remove("/quiet", {sha256("known")}) == ()
        late.write(" and more")
    (aside,) = files.latecomers()
    assert (aside.path, aside.content) == ("/log", b"known and more")
    assert files.latecomers() == ()
    files.discard(aside)
    assert entries(mount.with_name("aside")) == []


def test_a_text_that_made_way_goes_at_once_where_nobody_can_write_to_it(mount: Path, files: MountFiles) -> None:
    put(mount, "/log", "known")
    put(mount, "/quiet", "known")
    aside = mount.with_name("aside")
    with (mount / "log").open("a") as late:
        files.write("/log", b"head", {sha256("known")})
        files.remove("/quiet", {sha256("known")})
        files.let_go()
        (held,) = entries(aside)
        assert (aside / held).read_bytes() == b"known"
        late.write(" and more")
    files.let_go()
    (found,) = files.latecomers()
    assert (found.path, found.content) == ("/log", b"known and more")
    files.discard(found)
    assert entries(aside) == []


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_folder_that_goes_between_two_of_its_files_is_made_again_and_one_that_moves_takes_both(
    mount: Path, files: MountFiles, monkeypatch: pytest.MonkeyPatch, *, is_removed: bool
) -> None:
    place = renames.place

    def meddled(source: str, target: str, **folders: int) -> None:
        place(source, target, **folders)
        if target == "1.md" and is_removed:
            remove_tree(mount / "d")
        elif target == "1.md":
            (mount / "d").rename(mount / "moved")

    monkeypatch.setattr(renames, "place", meddled)
    writes = files.write_all({"/d/1.md": b"1", "/d/2.md": b"2", "/e/3.md": b"3"}, lambda _: ())
    assert list(writes.written) == ["/d/1.md", "/d/2.md", "/e/3.md"]
    there = {str(file.relative_to(mount)) for file in mount.rglob("*.md")}
    assert there == ({"d/2.md", "e/3.md"} if is_removed else {"moved/1.md", "moved/2.md", "e/3.md"})


def test_a_reader_finds_the_old_text_or_the_new_and_never_none(
    mount: Path, files: MountFiles, request: pytest.FixtureRequest
) -> None:
    """Where two names can be exchanged; else there is a moment without one, and never a part of a text."""
    texts = [bytes([letter]) * 50_000 for letter in b"abc"]
    files.write("/a.md", texts[0], ())
    done = threading.Event()
    found: set[bytes | None] = set()

    def read() -> None:
        while not done.is_set():
            try:
                found.add((mount / "a.md").read_bytes())
            except FileNotFoundError:
                found.add(None)

    reader = threading.Thread(target=read)
    reader.start()
    known = {sha256(text) for text in texts}
    for turn in range(300):
        assert files.write("/a.md", texts[turn % 3], known).put_aside == ()
    done.set()
    reader.join()
    may_be_missing = "two steps" in request.node.name
    assert found - ({None} if may_be_missing else set()) == set(texts)


def test_against_a_background_writer_each_of_its_texts_is_in_the_mount_or_aside(mount: Path, files: MountFiles) -> None:
    count, written = 400, list[bytes]()

    def background() -> None:
        for number in range(count):
            put(mount, f"/tmp-{number}", f"local {number}").replace(mount / "a.md")
            written.append(f"local {number}".encode())

    writer = threading.Thread(target=background)
    writer.start()
    found: list[bytes | None] = []
    turn = 0
    while writer.is_alive():
        turn += 1
        done = files.write("/a.md", f"head {turn}".encode(), {sha256(f"head {turn - 1}")})
        found += [aside.content for aside in done.put_aside]
    writer.join()
    found += [aside.content for aside in files.latecomers()]
    assert None not in found
    assert len(set(found)) == len(found)
    # The writer's own renames replace each other; ours replace none that we did not see.
    heads = [content for content in found if content is not None and content.startswith(b"head")]
    assert heads == []
    assert set(found) <= set(written)
    last = (mount / "a.md").read_bytes()
    assert last == written[-1] or written[-1] in found


# -- crashes, disks ----------------------------------------------------------------------------------


def test_after_a_crash_what_had_to_make_way_is_found_with_its_path(mount: Path, files: MountFiles) -> None:
    put(mount, "/a/b.md", "one")
    put(mount, "/c.md", "two")
    long = "/" + "/".join(["é" * 100] * 5)
    put(mount, long, "three")
    files.write("/a/b.md", b"head", ())
    files.remove("/c.md", ())
    files.put_aside(long)
    raw(mount.with_name("aside"), b"0123456789abcdef", b"a new file that was never placed")
    os.symlink("x.md", mount.with_name("aside") / "fedcba9876543210.path")  # noted, and never moved
    files.close()
    again = MountFiles(mount, mount.with_name("aside"), owner=OWNER)
    left = again.leftovers()
    assert contents(left) == {"/a/b.md": b"one", "/c.md": b"two", long: b"three"}
    assert contents(again.leftovers()) == contents(left)
    for aside in left:
        again.discard(aside)
    assert entries(mount.with_name("aside")) == []
    again.close()


def test_what_made_way_for_a_file_that_could_not_be_placed_after_all_is_told_of_later(
    mount: Path, files: MountFiles
) -> None:
    put(mount, "/a", "in the way")
    with pytest.raises(Unwritable):
        files.write(f"/a/{'x' * 256}/b.md", b"x", ())
    (aside,) = files.latecomers()
    assert (aside.path, aside.content) == ("/a", b"in the way")
    files.discard(aside)
    assert files.latecomers() == ()
    assert entries(mount.with_name("aside")) == []


def test_an_interrupt_right_after_an_exchange_loses_nothing(
    mount: Path, files: MountFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = renames.swap

    def interrupted(*names: str, **folders: int) -> bool:
        swap(*names, **folders)
        raise KeyboardInterrupt

    put(mount, "/a.md", "somebody's")
    monkeypatch.setattr(renames, "swap", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_all({"/new.md": b"1", "/a.md": b"2", "/b.md": b"3"}, lambda _: ())
    texts = {(mount / "a.md").read_bytes(), *contents(files.leftovers()).values()}
    assert texts == {b"somebody's", b"2"}
    assert len(entries(mount.with_name("aside"))) == 2


def test_folders_that_are_removed_all_the_time_are_made_again(mount: Path, files: MountFiles) -> None:
    done = threading.Event()

    def demolish() -> None:
        while not done.is_set():
            remove_tree(mount / "a")

    thread = threading.Thread(target=demolish)
    thread.start()
    try:
        for number in range(200):
            files.write("/a/b/c.md", f"{number}".encode(), {sha256(f"{number - 1}")})
    finally:
        done.set()
        thread.join()
    assert files.leftovers() == ()


def test_leftovers_are_not_what_rests_in_this_process(mount: Path, files: MountFiles) -> None:
    files.write("/a.md", b"one", ())
    files.write("/a.md", b"two", {sha256("one")})
    assert files.leftovers() == files.latecomers() == ()


def test_a_flush_survives_folders_that_are_gone(mount: Path, files: MountFiles) -> None:
    files.write_all({f"/{number}/a/b": b"x" for number in range(40)}, lambda _: ())
    files.flush()
    files.write("/deep/er/c", b"x", ())
    files.remove("/deep/er/c", {sha256("x")})
    files.prune_folders()
    files.flush()
    assert not (mount / "deep").exists()


@pytest.mark.as_root
def test_a_full_disk_is_an_error_that_leaves_everything_as_it_was(roomy: Path) -> None:
    small = roomy / "small"
    small.mkdir()
    with mounted(small, "-o", "size=200k"):
        (small / "mount").mkdir()
        put(small, "/mount/a.md", "old")
        files = MountFiles(small / "mount", small / "aside", owner=None)
        with pytest.raises(
            SyncError, match=r"/b\.md cannot be written to the mount: no space left on device"
        ) as caught:
            files.write_all({"/a.md": b"x" * 50_000, "/b.md": b"x" * 400_000}, lambda _: {sha256("old")})
        assert caught.value.hint == "What lies in the mount is kept; the next sync tries again."
        assert (small / "mount" / "a.md").read_text() == "old"
        assert entries(small / "aside") == []
        files.close()


@pytest.mark.as_root
def test_two_file_systems_cannot_serve_one_mount(roomy: Path) -> None:
    for name in ("mount", "elsewhere"):
        (roomy / name).mkdir()
    with mounted(roomy / "elsewhere"), pytest.raises(SyncError, match="lie on two file systems"):
        MountFiles(roomy / "mount", roomy / "elsewhere" / "aside", owner=None)


@pytest.mark.parametrize("successor", ["folder", "link", "nothing"])
def test_nothing_is_written_to_another_folder_in_the_mounts_place(
    mount: Path, files: MountFiles, successor: str
) -> None:
    outside = mount.with_name("outside")
    put(outside, "/a.md", "kept")
    mount.rename(mount.with_name("moved"))
    if successor == "folder":
        outside.rename(mount)
        outside = mount
    elif successor == "link":
        mount.symlink_to(outside)
    calls: list[Callable[[], object]] = [
        lambda: files.write("/a.md", b"x", ()),
        lambda: files.remove("/a.md", ()),
        lambda: files.put_aside("/a.md"),
    ]
    for call in calls:
        with pytest.raises(SyncError, match="mount is no longer the folder that was mounted"):
            call()
    assert (outside / "a.md").read_text() == "kept"


def test_a_folder_that_is_missing_or_a_link_cannot_be_written_to(roomy: Path) -> None:
    (roomy / "link").symlink_to(roomy)
    for name in ("missing", "link"):
        with pytest.raises(SyncError, match=f"{name} cannot be synced"):
            MountFiles(roomy / name, roomy / "aside", owner=None)
