"""One mount and its store, row by row of CONTRACT D.4 and F.16."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Iterator

import psycopg
import pytest

from memkernel.errors import SyncError
from memkernel.models import Actor, Cause, Limits
from memkernel.store import Database
from tests.sync.mounted import ANN, Mounter, saved


@pytest.fixture
def small(dsn: str) -> Iterator[Database]:
    """The same database for somebody whose stores hold four memories."""
    with Database(dsn, limits=Limits(memories_per_store=4)) as database:
        yield database


TWO = (("/a.md", "alpha\n"), ("/notes/b.md", "beta\n"))


def test_f243_at_the_start_the_mount_holds_exactly_the_memories(mounter: Mounter) -> None:
    texts = {"/a.md": "no final newline", "/crlf.md": "a\r\nb\r\n", "/deep/er/é.md": "\ufeffbom\0", "/empty.md": ""}
    mounted = mounter(*texts.items())
    assert mounted.on_disk() == {path: text.encode() for path, text in texts.items()}


def test_f245_files_become_versions_by_the_session(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.write("/new.md", "new\n")
    mounted.write("/a.md", "other\n")
    mounted.remove("/notes/b.md")
    report = mounted.sync()
    made = mounted.versions()[2:]
    assert [(one.operation, one.path) for one in made] == [
        ("deleted", "/notes/b.md"),
        ("modified", "/a.md"),
        ("created", "/new.md"),
    ]
    assert {one.created_by for one in made} == {Actor("session_actor", mounted.session_id)}
    assert (report.created, report.modified, report.deleted) == ((made[2],), (made[1],), (made[0],))
    assert report.ok
    assert not report.pulled
    assert mounted.in_store() == mounted.on_disk() == {"/a.md": b"other\n", "/new.md": b"new\n"}


def test_f246_the_changes_of_a_cell_are_one_transaction(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    for number in range(20):
        mounted.write(f"/{number}.md", str(number))
    mounted.sync()
    assert len({version.created_at for version in mounted.versions()[2:]}) == 1
    assert [version.seq for version in mounted.versions()] == list(range(1, 23))


def test_f247_unchanged_files_make_no_versions(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    for _ in range(10):
        report = mounted.sync()
        assert saved(report) == list(report.pulled) == []
    assert len(mounted.versions()) == 2


def test_f248_a_file_with_the_same_bytes_makes_no_version(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.write("/a.md", "alpha\n")
    os.utime(mounted.files / "notes/b.md", (0, 0))
    mounted.sync()
    mounted.sync(deep=True)
    assert len(mounted.versions()) == 2


def test_f249_an_edit_of_the_store_appears_on_disk(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/a.md", "from afar\n"), ("/c/d.md", "new\n"))
    report = mounted.sync()
    assert report.pulled == ("/a.md", "/c/d.md")
    assert mounted.on_disk() == {"/a.md": b"from afar\n", "/notes/b.md": b"beta\n", "/c/d.md": b"new\n"}
    assert len(mounted.versions()) == 4


def test_f250_renames_and_deletions_of_the_store_are_mirrored(mounter: Mounter) -> None:
    mounted = mounter(*TWO, ("/c.md", "gamma\n"))
    mounted.database.memories.rename_tree(mounted.store_id, "/notes", "/later", actor=ANN)
    mounted.remote(("/c.md", None))
    report = mounted.sync()
    assert (report.pulled, report.removed) == (("/later/b.md",), ("/c.md", "/notes/b.md"))
    assert mounted.on_disk() == mounted.in_store() == {"/a.md": b"alpha\n", "/later/b.md": b"beta\n"}
    assert not (mounted.files / "notes").exists()


def test_f246_what_is_written_while_a_sync_runs_belongs_to_the_next_one(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    over = threading.Event()

    def write() -> None:
        for number in itertools.count():
            if over.wait(0.001):
                return
            (mounted.files / f"w{number % 10}.md").write_text(f"line {number}\n" * 50)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        reports = [mounted.sync() for _ in range(15)]
    finally:
        over.set()
        writer.join()
    batches = [sorted({*report.created, *report.modified}, key=lambda one: one.seq) for report in reports]
    assert sum(len(batch) for batch in batches) > 15
    for report, batch in zip(reports, batches, strict=True):
        assert len({version.created_at for version in batch}) <= 1, "one transaction"
        assert len(set(saved(report))) == len(batch)
    mounted.sync()
    assert mounted.in_store() == mounted.on_disk()


def test_trouble_names_the_mount_and_no_folder_of_the_host(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.files.rename(mounted.home / "elsewhere")
    mounted.files.mkdir()
    trouble = mounted.mount.sync().trouble
    assert isinstance(trouble, SyncError)
    assert str(trouble).startswith("/mnt/memory/store-1 is no longer the folder that was mounted")
    assert str(mounted.home) not in str(trouble)


def test_f251_f252_f253_a_conflict_saves_nothing_and_loses_nothing(mounter: Mounter) -> None:
    mounted = mounter(*TWO, ("/gone.md", "going\n"))
    mounted.remote(("/a.md", "theirs\n"))
    mounted.write("/a.md", "ours\n")
    mounted.write("/notes/b.md", "ours, too\n")
    mounted.write("/new.md", "new\n")
    mounted.remove("/gone.md")
    (mounted.files / "link").symlink_to("/etc/passwd")
    report = mounted.sync()
    assert not report.ok
    assert {one.path: one.reason for one in report.conflicts} == {
        "/a.md": "was edited both here and in the store",
        "/gone.md": "was not saved, because /a.md was edited both here and in the store",
        "/new.md": "was not saved, because /a.md was edited both here and in the store",
        "/notes/b.md": "was not saved, because /a.md was edited both here and in the store",
    }
    assert len(mounted.versions()) == 4
    heads = {"/a.md": b"theirs\n", "/notes/b.md": b"beta\n", "/gone.md": b"going\n"}
    assert mounted.in_store() == mounted.on_disk() == heads
    assert (mounted.files / "link").is_symlink()
    put_aside = {"/a.md": b"ours\n", "/notes/b.md": b"ours, too\n", "/new.md": b"new\n", "/gone.md": None}
    assert mounted.put_aside() == put_aside
    assert not list((mounted.home / "aside").iterdir()), "erasure reaches the rejected changes, and no other copy"
    for conflict, one in zip(report.conflicts, sorted(mounted.rejections(), key=lambda one: one.path), strict=True):
        assert conflict.rejected_id == one.id
        assert mounted.rejected.get(one.id) == one
    mounted.write("/a.md", "ours on theirs\n")
    assert mounted.sync().ok
    assert mounted.in_store()["/a.md"] == b"ours on theirs\n"


def test_f254_the_same_bytes_on_both_sides_are_no_conflict(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/a.md", "same\n"), ("/c.md", "same\n"))
    mounted.write("/a.md", "same\n")
    mounted.write("/c.md", "same\n")
    report = mounted.sync()
    assert report.ok
    assert len(mounted.versions()) == 4
    mounted.write("/a.md", "edited\n")  # the baseline has learned of it
    assert mounted.sync().ok


@pytest.mark.parametrize("policy", ["error", "merge"])
def test_f255_a_deletion_against_an_edit_is_a_conflict(mounter: Mounter, policy: str) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/a.md", "edited\n"))
    mounted.remove("/a.md")
    report = mounted.sync(on_conflict=policy)
    assert [one.reason for one in report.conflicts] == ["was deleted here and edited in the store"]
    assert mounted.on_disk() == mounted.in_store() == {"/a.md": b"edited\n", "/notes/b.md": b"beta\n"}


@pytest.mark.parametrize("policy", ["error", "merge"])
def test_an_edit_against_a_deletion_survives_aside(mounter: Mounter, policy: str) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/a.md", None))
    mounted.write("/a.md", "edited\n")
    report = mounted.sync(on_conflict=policy)
    assert [one.reason for one in report.conflicts] == ["was edited here and deleted in the store"]
    assert mounted.on_disk() == mounted.in_store() == {"/notes/b.md": b"beta\n"}
    (one,) = mounted.rejections()
    assert (one.content, one.base_sha256) == (b"edited\n", mounted.versions()[0].content_sha256)
    assert one.base_version_id == mounted.versions()[0].id


@pytest.mark.parametrize("here", ["edited", "deleted"])
def test_a_change_against_a_move_is_a_conflict(mounter: Mounter, here: str) -> None:
    mounted = mounter(*TWO)
    mounted.database.memories.rename_tree(mounted.store_id, "/a.md", "/moved.md", actor=ANN)
    if here == "edited":
        mounted.write("/a.md", "edited\n")
    else:
        mounted.remove("/a.md")
    report = mounted.sync()
    assert [one.reason for one in report.conflicts] == [f"was {here} here and moved to /moved.md in the store"]
    assert mounted.on_disk() == mounted.in_store() == {"/moved.md": b"alpha\n", "/notes/b.md": b"beta\n"}


def test_the_same_move_on_both_sides_is_no_conflict(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.database.memories.rename_tree(mounted.store_id, "/a.md", "/moved.md", actor=ANN)
    (mounted.files / "a.md").rename(mounted.files / "moved.md")
    assert mounted.sync().ok
    assert len(mounted.versions()) == 3


def test_a_chain_of_renames_arrives(mounter: Mounter) -> None:
    mounted = mounter(("/a", "1"), ("/b", "2"), ("/c", "3"))
    for old, new in (("/c", "/d"), ("/b", "/c"), ("/a", "/b"), ("/d", "/a")):
        mounted.database.memories.rename_tree(mounted.store_id, old, new, actor=ANN)
    assert mounted.sync().ok
    assert mounted.on_disk() == mounted.in_store() == {"/a": b"3", "/b": b"1", "/c": b"2"}
    for old, new in (("c", "d"), ("b", "c"), ("a", "b"), ("d", "a")):
        (mounted.files / old).rename(mounted.files / new)
    assert mounted.sync().ok
    assert mounted.on_disk() == mounted.in_store() == {"/a": b"2", "/b": b"3", "/c": b"1"}


def test_a_creation_on_both_sides_is_a_conflict(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/c.md", "theirs\n"))
    mounted.write("/c.md", "ours\n")
    report = mounted.sync(on_conflict="merge")
    assert [one.reason for one in report.conflicts] == ["was created both here and in the store"]
    assert mounted.put_aside() == {"/c.md": b"ours\n"}
    assert mounted.on_disk()["/c.md"] == b"theirs\n"


def test_what_overlaps_with_the_store_is_a_conflict(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remote(("/c", "a file\n"), ("/d/e/f", "below\n"))
    mounted.write("/c/x.md", "ours\n")
    mounted.write("/d", "ours, above\n")
    report = mounted.sync()
    assert [one.reason for one in report.conflicts] == [
        "overlaps with /c, which the store has",
        "overlaps with /d/e/f, which the store has",
    ]
    assert mounted.put_aside() == {"/c/x.md": b"ours\n", "/d": b"ours, above\n"}
    assert mounted.on_disk() == mounted.in_store()


def test_f256_what_a_crash_left_is_saved_first(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.write("/a.md", "left\n")
    mounted.remove("/notes/b.md")
    mounted.reopen()
    mounted.remote(("/c.md", "later\n"))
    report = mounted.sync()
    assert [one.path for one in report.modified + report.deleted] == ["/a.md", "/notes/b.md"]
    assert mounted.on_disk() == mounted.in_store() == {"/a.md": b"left\n", "/c.md": b"later\n"}


@pytest.mark.parametrize("nonce", ["missing", "foreign", "garbage", "of another folder"])
def test_f257_files_that_nobody_vouches_for_are_pulled_again(mounter: Mounter, nonce: str) -> None:
    mounted = mounter(*TWO)
    place = mounted.home / "nonce"
    if nonce == "missing":
        place.unlink()
    elif nonce == "foreign":
        lines = place.read_text().splitlines()
        place.write_text("\n".join([*lines[:2], "0" * 32, lines[3]]) + "\n")
    elif nonce == "of another folder":
        shutil.copytree(mounted.files, mounted.home / "copy")
        shutil.rmtree(mounted.files)
        (mounted.home / "copy").rename(mounted.files)
    else:
        place.write_bytes(b"\xff\xfe")
    mounted.write("/a.md", "whose?\n")
    mounted.write("/stray.md", "whose?\n")
    mounted.remove("/notes/b.md")
    mounted.reopen()
    report = mounted.sync()
    assert len(mounted.versions()) == 2
    assert mounted.on_disk() == mounted.in_store() == {path: text.encode() for path, text in TWO}
    assert mounted.put_aside() == {"/a.md": b"whose?\n", "/stray.md": b"whose?\n"}
    assert [one.path for one in report.conflicts] == ["/a.md", "/stray.md"]
    mounted.write("/a.md", "mine\n")
    assert [one.path for one in mounted.sync().modified] == ["/a.md"]


def test_f258_nothing_of_the_baseline_is_in_the_mount(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    assert sorted(os.listdir(mounted.files)) == ["a.md", "notes"]
    assert "nonce" in os.listdir(mounted.home)


@pytest.mark.parametrize("what", ["another store", "another format", "another format in the database"])
def test_f259_a_baseline_of_another_store_or_format_is_not_synced(mounter: Mounter, what: str, dsn: str) -> None:
    mounted = mounter(*TWO)
    place = mounted.home / "nonce"
    lines = place.read_text().splitlines()
    if what == "another store":
        lines[1] = mounter(("/x.md", "x")).store_id
    elif what == "another format":
        lines[0] = "memkernel mount 2"
    else:
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute("UPDATE memkernel.mount_baselines SET format = 2")
    place.write_text("\n".join(lines) + "\n")
    mounted.write("/a.md", "edited\n")
    mounted.reopen()
    report = mounted.mount.sync()
    assert isinstance(report.trouble, SyncError)
    assert ("another memory store" if what == "another store" else "format") in str(report.trouble)
    assert mounted.on_disk()["/a.md"] == b"edited\n"
    assert len(mounted.versions()) == 2
    assert not mounted.rejections()


def test_f260_f261_files_that_can_be_no_memory_are_refused_one_by_one(mounter: Mounter) -> None:
    mounted = mounter(*TWO, ("/c.md", "gamma\n"), ("/d.md", "delta\n"))
    (mounted.files / "link.md").symlink_to("/etc/passwd")
    (mounted.files / "c.md").unlink()
    os.mkfifo(mounted.files / "c.md")
    mounted.write("/large.md", b"x" * 102_401)
    mounted.write("/d.md", b"\xff")
    mounted.write("/good.md", "good\n")
    report = mounted.sync()
    assert [one.path for one in report.created] == ["/good.md"]
    assert [one.path for one in report.refused] == ["/c.md", "/d.md", "/large.md", "/link.md"]
    assert all(one.reason for one in report.refused)
    assert report.ok
    assert len(mounted.versions()) == 5
    assert mounted.in_store()["/c.md"] == b"gamma\n"  # refused is not deleted
    assert not any(b"root:" in text for text in mounted.in_store().values())
    assert not mounted.sync().refused  # told once
    mounted.write("/large.md", "small\n")
    mounted.write("/d.md", "fixed\n")
    report = mounted.sync()
    assert [one.path for one in report.created + report.modified] == ["/large.md", "/d.md"]


def test_a_change_of_the_store_at_a_refused_path_puts_the_file_aside(mounter: Mounter) -> None:
    mounted = mounter(*TWO, ("/c.md", "gamma\n"))
    mounted.write("/a.md", b"\xff\xfe")
    mounted.sync()
    mounted.remote(("/a.md", "theirs\n"))
    report = mounted.sync()
    assert mounted.on_disk()["/a.md"] == b"theirs\n"
    assert mounted.put_aside() == {"/a.md": b"\xff\xfe"}
    assert [one.path for one in report.conflicts] == ["/a.md"]
    mounted.write("/c.md", b"\xff")
    mounted.sync()
    mounted.remote(("/c.md", None))
    mounted.sync()
    assert "/c.md" not in mounted.on_disk()
    assert mounted.put_aside()["/c.md"] == b"\xff"


def test_f262_deleting_all_files_at_once_is_held_back(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remove("/a.md")
    mounted.remove("/notes/b.md")
    report = mounted.sync()
    assert report.held_back
    assert report.held_back.paths == ("/a.md", "/notes/b.md")
    assert not report.ok
    assert mounted.on_disk() == mounted.in_store() == {path: text.encode() for path, text in TWO}
    report = mounted.mount.apply_held_back()
    assert mounted.on_disk() == mounted.in_store() == {}
    assert (saved(report), report.removed, report.ok) == (["/a.md", "/notes/b.md"], (), True)
    assert {one.created_by for one in mounted.versions()[2:]} == {Actor("session_actor", mounted.session_id)}


def test_f262_a_wipe_that_is_allowed_is_made(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remove("/a.md")
    mounted.remove("/notes/b.md")
    assert [one.path for one in mounted.sync(allow_wipe=True).deleted] == ["/a.md", "/notes/b.md"]
    assert mounted.in_store() == {}


def test_what_was_held_back_is_not_deleted_where_the_store_has_changed_it(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.remove("/a.md")
    mounted.remove("/notes/b.md")
    mounted.sync()
    mounted.remote(("/a.md", "edited since\n"))
    mounted.mount.apply_held_back()
    assert mounted.in_store() == mounted.on_disk() == {"/a.md": b"edited since\n"}


def test_the_only_file_may_be_deleted(mounter: Mounter) -> None:
    mounted = mounter(("/a.md", "alpha\n"))
    mounted.remove("/a.md")
    assert mounted.sync().ok
    assert mounted.in_store() == {}


def test_f263_a_file_gives_way_to_a_folder_of_its_name_and_back(mounter: Mounter) -> None:
    mounted = mounter(("/a", "file\n"), ("/b", "other\n"))
    mounted.remove("/a")
    mounted.write("/a/x.md", "below\n")
    assert mounted.sync().ok
    assert mounted.in_store() == {"/a/x.md": b"below\n", "/b": b"other\n"}
    mounted.remove("/a/x.md")
    (mounted.files / "a").rmdir()
    mounted.write("/a", "file again\n")
    assert mounted.sync().ok
    assert mounted.in_store() == mounted.on_disk() == {"/a": b"file again\n", "/b": b"other\n"}


def test_f263_also_when_the_store_does_it(mounter: Mounter) -> None:
    mounted = mounter(("/a", "file\n"), ("/b", "other\n"))
    mounted.remote(("/a", None), ("/a/x.md", "below\n"))
    assert mounted.sync().ok
    assert mounted.on_disk() == {"/a/x.md": b"below\n", "/b": b"other\n"}
    mounted.remote(("/a/x.md", None), ("/a", "file\n"))
    assert mounted.sync().ok
    assert mounted.on_disk() == {"/a": b"file\n", "/b": b"other\n"}


def test_f264_more_memories_than_may_be_are_put_aside(mounter: Mounter, small: Database) -> None:
    mounted = mounter(*TWO, database=small)
    for number in range(3):
        mounted.write(f"/{number}.md", str(number))
    mounted.write("/a.md", "edited\n")
    report = mounted.sync()
    assert {one.reason for one in report.conflicts} == {
        "was not saved: the memory store would hold more than 4 memories"
    }
    assert len(mounted.versions()) == 2
    assert mounted.put_aside() == {"/0.md": b"0", "/1.md": b"1", "/2.md": b"2", "/a.md": b"edited\n"}
    assert mounted.on_disk() == mounted.in_store()
    mounted.write("/a.md", "edited\n")
    assert mounted.sync().ok


def test_f267_two_sessions_see_what_the_other_saved(mounter: Mounter) -> None:
    one = mounter(*TWO)
    other = mounter(store_id=one.store_id)
    one.write("/a.md", "from one\n")
    one.sync()
    other.write("/c.md", "from the other\n")
    report = other.sync()
    assert report.pulled == ("/a.md",)
    assert one.sync().pulled == ("/c.md",)
    assert one.on_disk() == other.on_disk() == one.in_store()


def test_f269_the_sdks_marker_is_never_saved(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.write("/.anthropic-memory-store", "version 1\n")
    mounted.write("/sub/.anthropic-memory-store", "a file like any other\n")
    report = mounted.sync()
    assert [one.path for one in report.created] == ["/sub/.anthropic-memory-store"]
    assert not report.refused
    mounted.remote(("/.anthropic-memory-store", "theirs\n"))
    mounted.sync()
    assert mounted.on_disk()["/.anthropic-memory-store"] == b"version 1\n"
    mounted.sync()
    assert "/.anthropic-memory-store" in mounted.in_store()


def test_strays_of_editors_are_passed_over_unless_the_store_has_them(mounter: Mounter) -> None:
    mounted = mounter(*TWO, ("/kept~", "a memory\n"))
    mounted.write("/.a.md.swp", "vim\n")
    mounted.write("/4913", "")
    mounted.write("/a.md~", "backup\n")
    report = mounted.sync()
    assert saved(report) == list(report.refused) == []
    assert "/a.md~" in mounted.on_disk()
    mounted.write("/kept~", "edited\n")
    assert [one.path for one in mounted.sync().modified] == ["/kept~"]


def test_a_cause_is_recorded_with_the_changes(mounter: Mounter) -> None:
    mounted = mounter(*TWO)
    mounted.write("/a.md", "edited\n")
    mounted.sync(cause=Cause("run_1", "toolu_1"))
    made = mounted.database.memory_versions.list_by_run(mounted.store_id, "run_1", tool_use_id="toolu_1")
    assert [one.path for one in made] == ["/a.md"]
