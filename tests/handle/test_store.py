"""mk.Store on a real PostgreSQL: what a person reads, writes and undoes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import memkernel as mk
from memkernel import errors
from memkernel.models import Actor


@pytest.fixture
def connection(dsn: str) -> Iterator[mk.Connection]:
    with mk.connect(dsn) as connected:
        yield connected


@pytest.fixture
def notes(connection: mk.Connection) -> mk.Store:
    return connection.store("Team notes", create=True)


# -- which store -----------------------------------------------------------------------------------


def test_a_store_is_found_by_id_name_and_slug(connection: mk.Connection, notes: mk.Store) -> None:
    assert {connection.store(ref).id for ref in (notes.id, "Team notes", "team-notes")} == {notes.id}


def test_a_connection_lists_and_makes_the_stores_of_its_workspace(dsn: str, notes: mk.Store) -> None:
    with mk.connect(dsn, workspace="lab") as lab:
        made = lab.store("Team notes", create=True)
        assert made.id != notes.id
        assert [store.id for store in lab.stores()] == [made.id]
        assert lab.sql("SELECT count(*) FROM memory_stores").rows == [(1,)]
        assert lab.store(notes.id).id == notes.id  # an id reaches any
        lab.store(notes.id).write("/a.md", "text")
    assert [store.id for store in notes.connection.stores()] == [notes.id]
    assert notes.read("/a.md") == "text"
    with pytest.raises(errors.InvalidInputError, match="workspace id"):
        mk.connect(dsn, workspace="a/b")


def test_get_or_create_from_many_threads_makes_one_store(connection: mk.Connection) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(connection.store, "One", create=True) for _ in range(16)]
    assert len({each.result().id for each in asked}) == 1


def test_an_unknown_store_names_its_neighbours(connection: mk.Connection, notes: mk.Store) -> None:
    with pytest.raises(errors.StoreNotFoundError) as caught:
        connection.store("team-nots")
    assert "team-notes" in caught.value.hint.lower().replace(" ", "-")


def test_two_stores_of_one_name_are_ambiguous_and_the_candidates_are_listed(connection: mk.Connection) -> None:
    made = [connection.create_store("Twin").id for _ in range(2)]
    with pytest.raises(errors.AmbiguousStoreError) as caught:
        connection.store("Twin")
    assert all(identifier in caught.value.hint for identifier in made)


def test_an_active_store_is_taken_before_an_archived_one(connection: mk.Connection) -> None:
    old = connection.create_store("Twin")
    old.archive()
    new = connection.create_store("Twin")
    assert connection.store("Twin").id == new.id


def test_a_unique_name_is_refused_where_it_is_taken(connection: mk.Connection, notes: mk.Store) -> None:
    with pytest.raises(errors.AlreadyExistsError):
        connection.create_store("Team notes", unique=True)


def test_all_stores_are_listed_beyond_one_page(connection: mk.Connection) -> None:
    for number in range(120):
        connection.create_store(f"store {number}")
    assert len(connection.stores()) == 120


# -- read and write --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "SI\n", "a\r\nb\r\n", "\ufeffhello\n", "nul \x00 inside", "żółw ☃ 🐢"])
def test_what_was_written_is_what_is_read(notes: mk.Store, text: str) -> None:
    made = notes.write("/units.md", text)
    assert notes.read("/units.md") == text
    assert notes.read_bytes("/units.md") == text.encode()
    assert made.content_sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_bytes_are_taken_where_they_are_utf8(notes: mk.Store) -> None:
    notes.write("/a.md", "é".encode())
    assert notes.read("/a.md") == "é"
    with pytest.raises(errors.InvalidContentError):
        notes.write("/b.md", b"\xff\xfe")
    with pytest.raises(errors.MemoryNotFoundError):
        notes.read("/b.md")


def test_the_same_content_makes_no_version(notes: mk.Store) -> None:
    first = notes.write("/a.md", "x")
    assert notes.write("/a.md", "x") == first
    assert len(notes.log("/a.md")) == 1


def test_expect_a_hash_guards_against_a_lost_update(notes: mk.Store) -> None:
    first = notes.write("/a.md", "one")
    notes.write("/a.md", "two")
    with pytest.raises(errors.PreconditionFailedError):
        notes.write("/a.md", "three", expect=first.content_sha256)
    assert notes.read("/a.md") == "two"


def test_expect_a_hash_on_a_missing_memory_fails(notes: mk.Store) -> None:
    with pytest.raises(errors.PreconditionFailedError):
        notes.write("/a.md", "x", expect="0" * 64)


def test_expect_absent_makes_it_a_create(notes: mk.Store) -> None:
    notes.write("/a.md", "x", expect=mk.ABSENT)
    with pytest.raises(errors.ConflictError):
        notes.write("/a.md", "y", expect=mk.ABSENT)
    assert notes.read("/a.md") == "x"


def test_a_missing_memory_names_its_neighbours(notes: mk.Store) -> None:
    notes.write("/units.md", "SI")
    with pytest.raises(errors.MemoryNotFoundError) as caught:
        notes.read("/unit.md")
    assert caught.value.near == ("/units.md",)


def test_replace_wants_one_occurrence_or_every(notes: mk.Store) -> None:
    notes.write("/a.md", "foo bar foo")
    with pytest.raises(errors.InvalidInputError, match="2 times"):
        notes.replace("/a.md", "foo", "x")
    with pytest.raises(errors.InvalidInputError, match="does not occur"):
        notes.replace("/a.md", "nowhere", "x")
    notes.replace("/a.md", "foo", "x", every=True)
    assert notes.read("/a.md") == "x bar x"


# -- lists -----------------------------------------------------------------------------------------


def test_ls_rolls_directories_up_and_depth_0_does_not(notes: mk.Store) -> None:
    for path in ("/a.md", "/d/b.md", "/d/e/c.md"):
        notes.write(path, "x")
    assert [entry.path for entry in notes.ls()] == ["/a.md", "/d/"]
    assert [entry.path for entry in notes.ls("/d")] == ["/d/b.md", "/d/e/"]
    assert [entry.path for entry in notes.ls("/", depth=0)] == ["/a.md", "/d/b.md", "/d/e/c.md"]
    assert [entry.path for entry in notes.ls("/a.md")] == ["/a.md"]


def test_ls_of_nothing_is_an_error_except_at_the_root(notes: mk.Store) -> None:
    assert list(notes.ls()) == []
    with pytest.raises(errors.MemoryNotFoundError):
        notes.ls("/nowhere/")


def test_search_finds_memories_by_words_and_tells_of_the_others(notes: mk.Store) -> None:
    notes.write("/retry/policy.md", "Wait.")
    notes.write("/http.md", "Retry, says the policy.\nRetry!")
    found = notes.search("RETRY policy")
    assert [(hit.path, hit.count) for hit in found] == [("/retry/policy.md", 0), ("/http.md", 3)]
    assert "1: Retry, says the policy. · 2: Retry!" in repr(found)
    assert notes.search("retry", limit=1).total == 2
    assert list(found.df()["path"]) == ["/retry/policy.md", "/http.md"]
    assert [hit.path for hit in notes.search("retry", "/retry/")] == ["/retry/policy.md"]
    with pytest.raises(errors.InvalidInputError):
        notes.search("")


def test_browse_is_a_table_of_what_is_below_the_prefix(notes: mk.Store) -> None:
    assert "%%memory put" in repr(notes.browse())
    notes.write("/a.md", "A")
    notes.write("/d/b.md", "B")
    everything, below, one = notes.browse(), notes.browse("/d"), notes.browse("/a.md")
    assert [(each.prefix, each.selected, len(each)) for each in (everything, below, one)] == [
        ("/", "", 2),
        ("/d/", "", 1),
        ("/", "/a.md", 2),
    ]
    assert repr(everything) == f"{notes.name}: 2 memories\n{notes.ls('/', depth=0)!r}"
    assert list(everything.df()["path"]) == ["/a.md", "/d/b.md"]
    assert "<table>" in everything._repr_mimebundle_()["text/html"]  # pyright: ignore[reportPrivateUsage]  # IPython's
    with pytest.raises(errors.MemoryNotFoundError):
        notes.browse("/nothing")


def test_browse_without_a_presenter_prints_the_table(notes: mk.Store, capsys: pytest.CaptureFixture[str]) -> None:
    notes.write("/a.md", "A")
    assert notes.browse().show() is None
    assert "/a.md" in capsys.readouterr().out


def test_grep_finds_lines_in_path_order(notes: mk.Store) -> None:
    notes.write("/b.md", "one\nSI units\n")
    notes.write("/a.md", "si\nSI\n")
    assert [(match.path, match.line, match.text) for match in notes.grep("SI")] == [
        ("/a.md", 2, "SI"),
        ("/b.md", 2, "SI units"),
    ]
    assert len(notes.grep("si", ignore_case=True)) == 3
    assert [match.path for match in notes.grep("^S", "/b.md")] == ["/b.md"]
    with pytest.raises(errors.InvalidInputError, match="regular expression"):
        notes.grep("(")


# -- rename and delete -----------------------------------------------------------------------------


def test_a_renamed_memory_keeps_its_id_and_history(notes: mk.Store) -> None:
    made = notes.write("/units.md", "SI")
    assert notes.rename("/units.md", "/prefs/units.md") == 1
    assert notes.memory("/prefs/units.md").id == made.id
    assert [version.operation for version in notes.log("/prefs/units.md")] == ["modified", "created"]


def test_a_directory_moves_and_goes_as_one(notes: mk.Store) -> None:
    for path in ("/d/a.md", "/d/e/b.md"):
        notes.write(path, "x")
    assert notes.rename("/d", "/f") == 2
    with pytest.raises(errors.MemoryNotFoundError):
        notes.delete("/f")
    assert notes.delete("/f", recursive=True) == 2
    assert list(notes.ls()) == []


def test_delete_with_an_old_hash_deletes_nothing(notes: mk.Store) -> None:
    first = notes.write("/a.md", "one")
    notes.write("/a.md", "two")
    with pytest.raises(errors.PreconditionFailedError):
        notes.delete("/a.md", expect=first.content_sha256)
    assert notes.read("/a.md") == "two"


# -- history ---------------------------------------------------------------------------------------


def test_versions_are_named_by_ordinal_id_time_and_head(notes: mk.Store) -> None:
    notes.write("/a.md", "one")
    notes.write("/a.md", "two")
    between = notes.log("/a.md")[0].created_at
    notes.write("/a.md", "three")
    newest, second, _ = notes.log("/a.md")
    specs = [1, "@1", -2, second, second.id, f"@{second.id}", "@-1", between, between.isoformat(), "@head", "head"]
    texts = [notes.version("/a.md", spec).content for spec in specs]
    assert texts == ["one"] * 3 + ["two"] * 6 + ["three"] * 2
    assert newest.ordinal == 3


@pytest.mark.parametrize("spec", [0, "@0", "", "@", "yesterday-ish", "@0001-01-01T00:00+14:00", "@memver_", "1.5"])
def test_what_names_no_version_is_refused(notes: mk.Store, spec: int | str) -> None:
    notes.write("/a.md", "one")
    with pytest.raises(errors.InvalidInputError):
        notes.version("/a.md", spec)


@pytest.mark.parametrize("spec", [2, -1, datetime(2020, 1, 1, tzinfo=UTC)])
def test_a_version_that_is_not_there_is_not_found(notes: mk.Store, spec: int | datetime) -> None:
    notes.write("/a.md", "one")
    with pytest.raises(errors.VersionNotFoundError):
        notes.version("/a.md", spec)


def test_a_moment_without_a_zone_is_utc(notes: mk.Store) -> None:
    notes.write("/a.md", "one")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(tzinfo=None)
    assert notes.version("/a.md", tomorrow).content == "one"


def test_diff_compares_the_last_two_by_default(notes: mk.Store) -> None:
    notes.write("/a.md", "one\n")
    assert "+one" in str(notes.diff("/a.md"))
    notes.write("/a.md", "two\n")
    notes.write("/a.md", "three\n")
    assert "-two" in str(notes.diff("/a.md"))
    assert "-one" in str(notes.diff("/a.md", 1))
    assert "+two" in str(notes.diff("/a.md", 1, 2))


def test_restore_appends_and_brings_back_what_was_deleted(notes: mk.Store) -> None:
    notes.write("/a.md", "one")
    notes.write("/a.md", "two")
    notes.restore("/a.md", 1)
    assert notes.read("/a.md") == "one"
    assert [version.ordinal for version in notes.log("/a.md")] == [3, 2, 1]
    notes.delete("/a.md")
    notes.restore("/a.md", 2)
    assert notes.read("/a.md") == "two"


def test_restore_of_the_current_text_makes_no_version(notes: mk.Store) -> None:
    notes.write("/a.md", "one")
    notes.restore("/a.md", 1)
    assert len(notes.log("/a.md")) == 1


def test_restore_after_somebody_else_wrote_is_refused_where_that_is_asked(notes: mk.Store) -> None:
    seen = notes.write("/a.md", "one")
    notes.write("/a.md", "two")
    with pytest.raises(errors.PreconditionFailedError):
        notes.restore("/a.md", 1, expect=seen.content_sha256)
    assert notes.read("/a.md") == "two"


def test_a_redacted_version_keeps_its_place_and_cannot_be_restored(notes: mk.Store) -> None:
    notes.write("/a.md", "secret")
    notes.write("/a.md", "public")
    erased = notes.redact("/a.md", 1)
    assert (erased.content, erased.path, erased.ordinal) == (None, None, 1)
    assert erased.redacted_by == notes.connection.actor
    with pytest.raises(errors.RedactedError):
        notes.restore("/a.md", 1)
    with pytest.raises(errors.HeadRedactionError):
        notes.redact("/a.md", "@head")


def test_the_log_of_a_store_tells_who_wrote(notes: mk.Store) -> None:
    notes.write("/a.md", "x")
    tool = notes.memory_tool(session_id="sesn_one")
    tool.call({"command": "create", "path": "/memories/b.md", "file_text": "y"})
    by = [(version.path, version.created_by) for version in notes.log()]
    assert by[0] == ("/b.md", Actor("session_actor", "sesn_one"))
    assert by[1] == ("/a.md", notes.connection.actor)
    assert notes.connection.actor.type == "user_actor"


def test_log_limits_and_pages(notes: mk.Store) -> None:
    for number in range(130):
        notes.write("/a.md", str(number))
    assert len(notes.log("/a.md")) == 130
    assert [version.ordinal for version in notes.log("/a.md", limit=3)] == [130, 129, 128]
    assert len(notes.log(limit=120)) == 120
    with pytest.raises(errors.MemoryNotFoundError):
        notes.log("/b.md")


# -- the store itself ------------------------------------------------------------------------------


def test_an_archived_store_can_be_read_and_not_written(notes: mk.Store) -> None:
    notes.write("/a.md", "x")
    notes.archive()
    assert notes.record.archived_at is not None
    assert notes.read("/a.md") == "x"
    with pytest.raises(errors.StoreArchivedError):
        notes.write("/a.md", "y")


def test_a_dropped_store_is_gone(connection: mk.Connection, notes: mk.Store) -> None:
    notes.write("/a.md", "x")
    notes.drop()
    with pytest.raises(errors.StoreNotFoundError):
        connection.store(notes.id)


# -- what a person gets wrong ----------------------------------------------------------------------


def test_what_ls_prints_for_a_directory_can_be_renamed_and_deleted(notes: mk.Store) -> None:
    notes.write("/d/a.md", "x")
    (directory,) = notes.ls()
    assert notes.rename(directory.path, "/e/") == 1
    assert notes.delete("/e/", recursive=True) == 1


def test_a_hash_cannot_be_expected_of_a_directory(notes: mk.Store) -> None:
    notes.write("/d/a.md", "x")
    with pytest.raises(errors.InvalidInputError):
        notes.delete("/d", recursive=True, expect="1" * 64)
    assert notes.read("/d/a.md") == "x"


@pytest.mark.parametrize("path", ["", "a.md", "/a//b", "/../a", "/a\x00b", "/cafe\u0301.md", "/\ud800"])
def test_a_path_that_is_none_is_refused_by_every_call(notes: mk.Store, path: str) -> None:
    calls: list[Callable[[str], object]] = [notes.read, notes.ls, notes.log, notes.delete, notes.diff]
    calls.append(lambda at: notes.write(at, "x"))
    for call in calls:
        with pytest.raises(errors.InvalidPathError):
            call(path)
    assert len(notes.log()) == 0


@pytest.mark.parametrize("pattern", ["(", "\ud800", b"SI"])
def test_a_pattern_that_is_none_is_refused(notes: mk.Store, pattern: Any) -> None:
    with pytest.raises(errors.InvalidInputError):
        notes.grep(pattern)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(notes: mk.Store, limit: int) -> None:
    with pytest.raises(errors.InvalidInputError):
        notes.log(limit=limit)


def test_the_history_of_a_path_that_never_was_names_its_neighbours(notes: mk.Store) -> None:
    notes.write("/units.md", "x")
    calls: list[Callable[[str], object]] = [notes.diff, notes.log]
    calls.append(lambda at: notes.restore(at, 1))
    calls.append(lambda at: notes.version(at, "head"))
    for call in calls:
        with pytest.raises(errors.MemoryNotFoundError) as caught:
            call("/unit.md")
        assert caught.value.near == ("/units.md",)


def test_a_deleted_memory_comes_back_where_it_was_asked_for(notes: mk.Store) -> None:
    notes.write("/a.md", "1")
    notes.rename("/a.md", "/b.md")
    notes.delete("/b.md")
    assert notes.restore("/b.md", 1).path == "/b.md"


def test_get_or_create_finds_what_a_slug_or_an_id_names(connection: mk.Connection, notes: mk.Store) -> None:
    assert connection.store("team-notes", create=True).id == notes.id
    assert connection.store(notes.id, create=True).id == notes.id
    with pytest.raises(errors.StoreNotFoundError):
        connection.store("memstore_01m8p9j6k9e00bmdebqw7fg5wf", create=True)


def test_a_tool_can_be_marked_for_the_prompt_cache(notes: mk.Store) -> None:
    tool = notes.memory_tool(cache_control={"type": "ephemeral"})
    assert tool.to_dict() == {
        "type": "memory_20250818",
        "name": "memory",
        "cache_control": {"type": "ephemeral"},
    }
