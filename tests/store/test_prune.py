"""Pruning: CONTRACT 0.3, rows 18 and 19; B.10, retention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from memkernel.errors import (
    HistoryPrunedError,
    InvalidInputError,
    MemkernelError,
    StoreNotFoundError,
    VersionNotFoundError,
)
from memkernel.models import AttachmentParams, Cause, Memory, MemoryStore, MemoryVersion, Pruned
from memkernel.store import Database, migrate
from tests.fix_postgres import PostgresServer
from tests.store.ageing import let_pass
from tests.store.people import ANN, CAUSE
from tests.store.test_histories import STEPS, Step, all_versions

MONTH = timedelta(days=30)
YEAR = timedelta(days=365)
WHILE = ("/a", "/b", "/a/x", "/a/y", "/b/x/z", "/c", "/d/é")


class History:
    """A store whose past can be made."""

    def __init__(self, database: Database, dsn: str, store_id: str) -> None:
        self.database, self.dsn, self.id = database, dsn, store_id

    def write(self, path: str, text: str) -> Memory:
        return self.database.memories.write(self.id, path, text, actor=ANN)

    def delete(self, memory: Memory) -> None:
        self.database.memories.delete(memory.id, memory_store_id=self.id, actor=ANN)

    def rename(self, path: str, new_path: str) -> None:
        self.database.memories.rename_tree(self.id, path, new_path, actor=ANN)

    def age(self, days: int) -> None:
        """Let time pass."""
        let_pass(self.dsn, timedelta(days=days), self.id)

    def prune(self, older_than: timedelta = MONTH, *, keep: int = 3, dry_run: bool = False) -> Pruned | None:
        """None where nothing went."""
        pruning = self.database.pruning.prune(
            older_than=older_than, keep=keep, memory_store_id=self.id, dry_run=dry_run
        )
        return next(pruning, None)

    def versions(self) -> list[MemoryVersion]:
        """Oldest first."""
        return all_versions(self.database, self.id)

    def log(self) -> list[int]:
        """The numbers of the changes that are left."""
        return [version.seq for version in self.versions()]

    def at(self, path: str, which: int | datetime) -> str | None:
        """The text of a version."""
        versions = self.database.memory_versions
        if isinstance(which, datetime):
            return versions.at_time(self.id, path, which).content
        return versions.at_ordinal(self.id, path, which).content


@pytest.fixture
def history(database: Database, shared_dsn: str, store: MemoryStore) -> History:
    """An empty store."""
    return History(database, shared_dsn, store.id)


@pytest.fixture
def owner(shared_dsn: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """The owner's own connection to the shared database."""
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def written(history: History) -> list[Memory]:
    """A memory at /a.md whose five texts were written a year ago; its versions are 1 to 5."""
    made = [history.write("/a.md", text) for text in ("one", "two", "three", "four", "five")]
    history.age(365)
    return made


# -- what goes and what stays ----------------------------------------------------------------------


def test_a_live_memory_keeps_its_newest_versions(history: History, written: list[Memory]) -> None:
    assert history.prune() == Pruned(history.id, "Notes", 2, len("onetwo"), 5)
    assert history.log() == [3, 4, 5]
    left = history.versions()
    assert [version.ordinal for version in left] == [3, 4, 5]
    assert [version.content for version in left] == ["three", "four", "five"]
    assert history.database.memories.at_path(history.id, "/a.md").content == "five"
    assert history.database.memory_stores.retrieve(history.id).head_seq == 5


def test_one_version_is_the_least_that_is_kept(history: History, written: list[Memory]) -> None:
    history.prune(keep=1)
    assert history.log() == [5]


def test_what_is_pruned_once_is_not_there_twice(history: History, written: list[Memory]) -> None:
    assert history.prune() is not None
    assert history.prune() is None


def test_what_was_current_within_the_time_stays(history: History) -> None:
    history.write("/a.md", "before")
    history.write("/a.md", "current for long")
    history.age(50)
    history.write("/a.md", "now")
    history.age(20)
    history.prune(keep=1)
    assert history.log() == [2, 3]  # 2 was superseded 20 days ago
    history.age(20)
    history.prune(keep=1)
    assert history.log() == [3]


def test_a_deleted_memory_goes_once_its_end_is_old(history: History) -> None:
    memory = history.write("/a.md", "one")
    history.write("/a.md", "two")
    history.age(30)
    history.delete(memory)
    history.age(29)
    history.prune()
    assert history.log() == [2, 3]  # the text that was deleted within the time can still be restored
    history.age(1)
    assert history.prune() == Pruned(history.id, "Notes", 2, 3, 3)
    assert history.log() == []
    assert history.write("/a.md", "again").id != memory.id
    assert history.log() == [4]


def test_a_store_goes_on_as_if_nothing_had_been_pruned(history: History, written: list[Memory]) -> None:
    history.prune(keep=2)
    history.write("/a.md", "six")
    history.rename("/a.md", "/b.md")
    history.database.memory_versions.restore(written[3].memory_version_id, memory_store_id=history.id, actor=ANN)
    left = history.versions()
    assert [(version.seq, version.ordinal) for version in left] == [(n, n) for n in range(4, 9)]
    assert left[-1].content == "four"


def test_causes_go_with_their_versions(history: History, owner: psycopg.Connection[tuple[object, ...]]) -> None:
    for number in range(5):
        history.database.memories.write(
            history.id, "/a.md", f"text {number}", actor=ANN, cause=Cause(CAUSE.run_id, f"{number}")
        )
    history.age(365)
    history.prune()
    causes = owner.execute(
        "SELECT seq, tool_use_id FROM memkernel.run_changes WHERE memory_store_id = %s ORDER BY seq", [history.id]
    ).fetchall()
    assert causes == [(3, "2"), (4, "3"), (5, "4")]
    made = history.database.memory_versions.list_by_run(history.id, CAUSE.run_id)
    assert [version.seq for version in made] == [3, 4, 5]


def test_a_redacted_version_goes_as_any_other(history: History, written: list[Memory]) -> None:
    history.database.memory_versions.redact(written[0].memory_version_id, memory_store_id=history.id, actor=ANN)
    assert history.prune() == Pruned(history.id, "Notes", 2, len("two"), 5)
    assert history.log() == [3, 4, 5]


def test_a_dry_run_counts_what_would_go_and_leaves_it(history: History, written: list[Memory]) -> None:
    would = history.prune(dry_run=True)
    assert history.log() == [1, 2, 3, 4, 5]
    assert history.at("/a.md", 1) == "one"
    with pytest.raises(VersionNotFoundError):
        history.at("/a.md", datetime(2001, 1, 1, tzinfo=UTC))
    assert would is not None
    assert history.prune() == would


@pytest.mark.parametrize(
    ("older_than", "keep", "named"),
    [
        (timedelta(days=29, hours=23), 3, "30 days"),
        (timedelta(0), 3, "30 days"),
        (-YEAR, 3, "30 days"),
        (30, 3, "older_than is a timedelta, not int"),
        (None, 3, "older_than is a timedelta, not null"),
        (MONTH, 0, "keep is 0"),
        (MONTH, -1, "keep is -1"),
        (MONTH, 2**31, "keep is 2147483648"),
        (MONTH, True, "keep is a whole number"),
        (MONTH, "3", "keep is a whole number"),
    ],
)
def test_less_than_30_days_and_other_nonsense_is_refused_at_once(
    history: History, written: list[Memory], older_than: timedelta, keep: int, named: str
) -> None:
    with pytest.raises(InvalidInputError, match=named):
        history.prune(older_than, keep=keep)
    assert history.log() == [1, 2, 3, 4, 5]


def test_nothing_is_older_than_all_time(history: History, written: list[Memory]) -> None:
    assert history.prune(timedelta.max) is None


# -- which stores ----------------------------------------------------------------------------------


def old_store(database: Database, dsn: str, name: str) -> MemoryStore:
    """A store with a memory of four versions, a year old."""
    store = database.memory_stores.create(name=name)
    for number in range(4):
        database.memories.write(store.id, "/a.md", f"text {number}", actor=ANN)
    let_pass(dsn, YEAR, store.id)
    return store


def test_all_stores_of_a_workspace_are_pruned_archived_and_attached_ones_too(
    fresh_database: Database, dsn: str
) -> None:
    plain, archived, attached = (old_store(fresh_database, dsn, name) for name in ("plain", "archived", "attached"))
    fresh_database.memory_stores.archive(archived.id)
    fresh_database.sessions.create([AttachmentParams(attached.id)])
    fresh_database.memory_stores.create(name="empty")
    with Database(dsn, workspace_id="other") as other:
        apart = old_store(other, dsn, "apart")
        pruned = list(fresh_database.pruning.prune(older_than=MONTH))
        assert {each.memory_store_id for each in pruned} == {plain.id, archived.id, attached.id}
        assert [each.versions for each in pruned] == [1, 1, 1]
        assert len(all_versions(other, apart.id)) == 4
        assert [each.name for each in other.pruning.prune(older_than=MONTH)] == ["apart"]


def test_one_store_is_pruned_alone(fresh_database: Database, dsn: str) -> None:
    one, other = (old_store(fresh_database, dsn, name) for name in ("one", "other"))
    pruned = list(fresh_database.pruning.prune(older_than=MONTH, memory_store_id=one.id))
    assert [each.memory_store_id for each in pruned] == [one.id]
    assert len(all_versions(fresh_database, other.id)) == 4


@pytest.mark.parametrize("store_id", ["memstore_01aaaaaaaaaaaaaaaaaaaaaaaa", "notes", ""])
def test_a_store_that_is_not_there_is_told(database: Database, store_id: str) -> None:
    with pytest.raises(StoreNotFoundError):
        list(database.pruning.prune(older_than=MONTH, memory_store_id=store_id))


def test_a_store_that_is_deleted_meanwhile_does_not_stop_the_others(fresh_database: Database, dsn: str) -> None:
    stores = [old_store(fresh_database, dsn, f"store {number}") for number in range(3)]
    pruning = fresh_database.pruning.prune(older_than=MONTH)
    assert next(pruning).memory_store_id == stores[2].id
    fresh_database.memory_stores.delete(stores[0].id)
    fresh_database.memory_stores.delete(stores[1].id)
    assert list(pruning) == []


def test_the_status_counts_what_is_there(fresh_database: Database, dsn: str) -> None:
    for name in ("one", "other"):
        old_store(fresh_database, dsn, name)
    assert fresh_database.status().memory_versions == 8
    list(fresh_database.pruning.prune(older_than=MONTH, keep=2))
    assert fresh_database.status().memory_versions == 4
    list(fresh_database.pruning.prune(older_than=MONTH, keep=1))
    assert fresh_database.status().memory_versions == 2


def test_the_rows_are_vacuumed_away_once_at_the_end(fresh_database: Database, dsn: str) -> None:
    def vacuums() -> object:
        with psycopg.connect(dsn) as connection:
            return connection.execute(
                "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'memory_versions'"
            ).fetchall()

    for name in ("one", "other"):
        old_store(fresh_database, dsn, name)
    list(fresh_database.pruning.prune(older_than=MONTH, dry_run=True))
    assert vacuums() == [(0,)]
    pruning = fresh_database.pruning.prune(older_than=MONTH)
    next(pruning)
    next(pruning)
    assert vacuums() == [(0,)]
    assert list(pruning) == []
    assert vacuums() == [(1,)]
    assert list(fresh_database.pruning.prune(older_than=MONTH)) == []
    assert vacuums() == [(1,)]


def test_a_database_of_the_first_release_is_migrated_and_pruned(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.migrations()
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "migrations", lambda: known[:11])
        with Database(empty_dsn) as database:
            store = database.memory_stores.create(name="Notes")
            for number in range(4):
                database.memories.write(store.id, "/a.md", f"text {number}", actor=ANN)
    with Database(empty_dsn, migrate=True) as database:
        assert database.status().memory_versions == 4
        let_pass(empty_dsn, YEAR)
        assert [one.versions for one in database.pruning.prune(older_than=MONTH)] == [1]
        assert database.status().memory_versions == 3


# -- asking for what was pruned --------------------------------------------------------------------


def test_an_ordinal_that_was_pruned_is_told_from_one_that_never_was(history: History, written: list[Memory]) -> None:
    history.prune()
    assert [history.at("/a.md", n) for n in (3, 4, 5, -1, -2)] == ["three", "four", "five", "four", "three"]
    for ordinal in (1, 2, -3, -4):
        with pytest.raises(HistoryPrunedError, match=rf"@{ordinal} of /a\.md: .* change 5 was pruned") as told:
            history.at("/a.md", ordinal)
        assert told.value.pruned_through_seq == 5
    for ordinal in (6, -5, -99):
        with pytest.raises(VersionNotFoundError):
            history.at("/a.md", ordinal)


def test_ordinals_of_a_deleted_memory_too(history: History, written: list[Memory]) -> None:
    history.delete(written[0])
    history.prune()
    assert history.at("/a.md", 5) == "five"
    with pytest.raises(HistoryPrunedError):
        history.at("/a.md", 4)


def test_a_moment_before_what_is_left_is_told(history: History) -> None:
    history.write("/a.md", "one")
    history.age(100)
    history.write("/a.md", "two")
    history.age(100)
    now = datetime.now(UTC)
    assert history.at("/a.md", now - timedelta(days=150)) == "one"
    history.prune(keep=1)
    with pytest.raises(HistoryPrunedError, match=r"of /a\.md: the store's history up to change 2 was pruned"):
        history.at("/a.md", now - timedelta(days=150))
    assert history.at("/a.md", now - timedelta(days=90)) == "two"  # it is known, though older than 30 days
    assert history.at("/a.md", now) == "two"
    with pytest.raises(VersionNotFoundError):
        history.at("/b.md", now)


def test_a_moment_is_not_answered_with_another_memory_that_was_elsewhere_then(history: History) -> None:
    old = history.write("/a.md", "the old one")
    history.write("/b.md", "another")
    history.age(10)
    history.delete(old)
    history.rename("/b.md", "/a.md")
    history.age(100)
    then = datetime.now(UTC) - timedelta(days=105)
    assert history.at("/a.md", then) == "the old one"
    history.prune()
    with pytest.raises(HistoryPrunedError):
        history.at("/a.md", then)


def test_the_version_before_the_first_that_is_left_is_told(history: History, written: list[Memory]) -> None:
    history.prune()
    before = history.database.memory_versions.before
    assert before(written[3].memory_version_id, memory_store_id=history.id).content == "three"
    with pytest.raises(HistoryPrunedError, match="before memver_"):
        before(written[2].memory_version_id, memory_store_id=history.id)


def test_a_first_version_has_none_before_it_in_a_pruned_store_either(history: History, written: list[Memory]) -> None:
    history.prune()
    first = history.write("/b.md", "first")
    with pytest.raises(VersionNotFoundError):
        history.database.memory_versions.before(first.memory_version_id, memory_store_id=history.id)
    with pytest.raises(VersionNotFoundError):
        history.at("/b.md", -1)


def test_a_pruned_id_is_an_unknown_one(history: History, written: list[Memory]) -> None:
    history.prune()
    pruned, versions = written[0].memory_version_id, history.database.memory_versions
    with pytest.raises(VersionNotFoundError):
        versions.retrieve(pruned, memory_store_id=history.id)
    with pytest.raises(VersionNotFoundError):
        versions.restore(pruned, memory_store_id=history.id, actor=ANN)
    with pytest.raises(VersionNotFoundError):
        versions.redact(pruned, memory_store_id=history.id, actor=ANN)
    with pytest.raises(VersionNotFoundError):
        versions.before(pruned, memory_store_id=history.id)


def test_bounds_in_time_hold_over_gaps(history: History) -> None:
    for number in range(6):
        history.write(f"/{number % 2}.md", f"text {number}")
        history.age(20)
    moments = {version.seq: version.created_at for version in history.versions()}
    history.prune(keep=2)
    left = history.log()
    assert left == [3, 4, 5, 6]
    for lowest in range(1, 7):
        for highest in range(lowest, 7):
            found = history.database.memory_versions.list(
                history.id, created_at_gte=moments[lowest], created_at_lte=moments[highest]
            ).data
            assert [version.seq for version in found[::-1]] == [seq for seq in left if lowest <= seq <= highest]


# -- nothing else gets through ---------------------------------------------------------------------


def test_a_deletion_by_hand_is_refused_as_before(
    history: History, written: list[Memory], owner: psycopg.Connection[tuple[object, ...]]
) -> None:
    pruned = owner.execute(
        "SELECT versions FROM memkernel.memory_store_prune(%s, '30 days', 3, false)", [history.id]
    ).fetchone()
    assert pruned == (2,)
    with pytest.raises(psycopg.Error, match="immutable"):
        owner.execute("DELETE FROM memkernel.memory_versions WHERE memory_store_id = %s AND seq = 3", [history.id])
    with owner.transaction():
        owner.execute("SELECT memkernel.memory_store_prune(%s, '30 days', 2, false)", [history.id])
        with pytest.raises(psycopg.Error, match="immutable"), owner.transaction():
            owner.execute("DELETE FROM memkernel.memory_versions WHERE memory_store_id = %s AND seq = 4", [history.id])
    assert history.log() == [4, 5]


def test_an_owner_who_is_no_superuser_migrates_and_prunes(server: PostgresServer, empty_dsn: str) -> None:
    with server.connect() as superuser:
        superuser.execute("DROP ROLE IF EXISTS plain_owner")
        superuser.execute("CREATE ROLE plain_owner LOGIN")
        superuser.execute(f"GRANT CREATE ON DATABASE {conninfo_to_dict(empty_dsn)['dbname']} TO plain_owner".encode())
    with Database(empty_dsn.replace("postgres@", "plain_owner@")) as database:
        store = old_store(database, empty_dsn, "Notes")
        assert [each.versions for each in database.pruning.prune(older_than=MONTH)] == [1]
        assert len(all_versions(database, store.id)) == 3


def test_a_head_is_not_deleted_whatever_is_set(
    history: History, written: list[Memory], owner: psycopg.Connection[tuple[object, ...]]
) -> None:
    owner.execute("SET memkernel.is_pruning = 'on'")
    with pytest.raises(psycopg.Error, match="immutable"):
        owner.execute("DELETE FROM memkernel.memory_versions WHERE memory_store_id = %s", [history.id])
    assert history.log() == [1, 2, 3, 4, 5]


def test_a_prune_that_is_cut_off_leaves_all_as_it_was(
    history: History, written: list[Memory], owner: psycopg.Connection[tuple[object, ...]]
) -> None:
    with psycopg.connect(history.dsn) as pruning:
        pruning.execute("SELECT memkernel.memory_store_prune(%s, '30 days', 3, false)", [history.id])
        owner.execute("SELECT pg_terminate_backend(%s)", [pruning.info.backend_pid])
        with suppress(psycopg.OperationalError):
            pruning.commit()
    assert history.log() == [1, 2, 3, 4, 5]
    assert history.at("/a.md", 1) == "one"


def test_a_prune_waits_for_the_stores_lock_and_readers_do_not(
    history: History, written: list[Memory], owner: psycopg.Connection[tuple[object, ...]]
) -> None:
    with ThreadPoolExecutor(1) as thread, owner.transaction():
        owner.execute("SELECT memkernel.lock_store(%s, false)", [history.id])
        pruning = thread.submit(history.prune)
        with psycopg.connect(history.dsn, autocommit=True) as watcher:
            while not watcher.execute(
                "SELECT FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE '%memory_store_prune%' "
                "AND datname = current_database()"
            ).fetchall():
                assert not pruning.done()
        assert history.log() == [1, 2, 3, 4, 5]
        owner.execute("UPDATE memkernel.memory_stores SET pruned_count = 100 WHERE id = %s", [history.id])
    assert pruning.result() is not None
    (counted,) = owner.execute(
        "SELECT pruned_count FROM memkernel.memory_stores WHERE id = %s", [history.id]
    ).fetchall()
    assert counted == (102,)  # it read the store only then


def test_writers_and_prunes_at_once_lose_nothing(history: History, written: list[Memory]) -> None:
    def work(number: int) -> None:
        if number % 5 == 4:
            history.prune(keep=1)
        else:
            history.write(f"/{number}.md", f"text {number}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(40)))
    assert history.log() == list(range(5, 38))
    assert len(history.database.memories.entries(history.id)) == 33


# -- any history -----------------------------------------------------------------------------------

Answer = str | None
"""The id of a version; None: there is none."""


def asked(question: Callable[[], MemoryVersion]) -> Answer:
    try:
        return question().id
    except VersionNotFoundError:
        return None


def answers(database: Database, store_id: str, moments: list[datetime]) -> dict[tuple[str, datetime], Answer]:
    """What was at each path at each moment."""
    at = database.memory_versions.at_time
    return {
        (path, moment): asked(lambda path=path, moment=moment: at(store_id, path, moment, view="basic"))
        for path in WHILE
        for moment in moments
    }


def expected(versions: list[MemoryVersion], cutoff: datetime, keep: int) -> list[MemoryVersion]:
    """What the rule leaves."""
    lineages: dict[str, list[MemoryVersion]] = {}
    for version in versions:
        lineages.setdefault(version.memory_id, []).append(version)
    gone: set[str] = set()
    for lineage in lineages.values():
        old = [one.id for one, later in pairwise(lineage) if later.created_at < cutoff]
        if lineage[-1].operation == "deleted":
            gone.update(old, [lineage[-1].id] if lineage[-1].created_at < cutoff else [])
        else:
            gone.update(set(old) - {one.id for one in lineage[-keep:]})
    return [version for version in versions if version.id not in gone]


# One database serves all examples, each with a store of its own; time says nothing about what is tested.
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(STEPS, st.sampled_from([0, 0, 1, 10, 31, 60])), max_size=14),
    prunes=st.lists(st.tuples(st.integers(30, 90), st.integers(1, 4)), min_size=1, max_size=3),
)
def test_any_history_is_exact_since_the_time_it_was_pruned_to(
    database: Database, shared_dsn: str, steps: list[tuple[Step, int]], prunes: list[tuple[int, int]]
) -> None:
    store_id = database.memory_stores.create(name="history").id
    for step, days in steps:
        with suppress(MemkernelError):
            step(database, store_id)
        let_pass(shared_dsn, timedelta(days=days), store_id)
    whole = all_versions(database, store_id)
    moments = [version.created_at for version in whole]
    before = answers(database, store_id, moments)
    store, memories = database.memory_stores.retrieve(store_id), database.memories.list(store_id, view="full").data
    for days, keep in prunes:
        check_prune(database, store_id, timedelta(days=days), keep)
    assert database.memory_stores.retrieve(store_id) == store
    assert database.memories.list(store_id, view="full").data == memories
    left = all_versions(database, store_id)
    assert left == [version for version in whole if version in left]
    lost = len(left) < len(whole)
    check_answers(database, store_id, before, datetime.now(UTC) - timedelta(days=min(prunes)[0]), exact=not lost)


def check_prune(database: Database, store_id: str, older_than: timedelta, keep: int) -> None:
    """A prune takes what the rule says, as its dry run foretold, and nothing more when it is repeated."""
    then = expected(all_versions(database, store_id), datetime.now(UTC) - older_than, keep)
    foretold, done, again = (
        list(database.pruning.prune(older_than=older_than, keep=keep, memory_store_id=store_id, dry_run=dry_run))
        for dry_run in (True, False, False)
    )
    assert all_versions(database, store_id) == then
    assert (foretold, again) == (done, [])


def check_answers(
    database: Database, store_id: str, before: dict[tuple[str, datetime], Answer], cutoff: datetime, *, exact: bool
) -> None:
    """Since the cutoff every answer is what it was; before it, it is that or none at all."""
    for (path, moment), answer in before.items():
        try:
            found = asked(lambda path=path, moment=moment: database.memory_versions.at_time(store_id, path, moment))
        except HistoryPrunedError:
            assert moment < cutoff
            assert not exact
        else:
            assert found == answer
