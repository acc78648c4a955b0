"""`Connection.prune` and `memkernel prune`: CONTRACT 0.3, rows 18 and 19."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

import memkernel as mk
from memkernel import cli, errors
from memkernel.models import Pruned
from tests.store.ageing import let_pass

MONTH = timedelta(days=30)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def connection(dsn: str) -> Iterator[mk.Connection]:
    with mk.connect(dsn) as connected:
        yield connected


@pytest.fixture
def notes(connection: mk.Connection, dsn: str) -> mk.Store:
    """A store with a memory of five versions and one that was deleted, a year old."""
    store = connection.store("Team notes", create=True)
    for text in ("one\n", "two\n", "three\n", "four\n", "five\n"):
        store.write("/units.md", text)
    store.write("/old.md", "gone\n")
    store.delete("/old.md")
    let_pass(dsn, timedelta(days=365))
    return store


@pytest.fixture
def run(dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`memkernel …`: its exit status, what it printed, and what it complained of."""
    monkeypatch.setenv("MEMKERNEL_DSN", dsn)

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = cli.main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
        told, complained = capsys.readouterr()
        return status, told, complained

    return run


# -- in Python -------------------------------------------------------------------------------------


def test_what_went_is_a_table(connection: mk.Connection, notes: mk.Store) -> None:
    pruned = connection.prune(older_than=MONTH)
    assert pruned == [Pruned(notes.id, "Team notes", 4, len("one\ntwo\ngone\n"), 7)]
    assert repr(pruned).splitlines()[0].split() == ["store", "versions", "size", "through", "change", "id"]
    assert "Team notes" in repr(pruned)
    assert pruned.df().loc[0, "versions"] == 4
    assert repr(connection.prune(older_than=MONTH)) == "Nothing is to be pruned."
    assert list(connection.prune(older_than=MONTH).df().columns) == list(pruned.df().columns)


def test_one_store_is_named_by_any_of_its_names_or_is_the_store(connection: mk.Connection, notes: mk.Store) -> None:
    other = connection.store("Other", create=True)
    for store in (other, other.id, "Other", "other"):
        assert connection.prune(older_than=MONTH, store=store) == []
    assert [each.name for each in connection.prune(older_than=MONTH, store="team-notes", dry_run=True)] == [notes.name]
    with pytest.raises(errors.StoreNotFoundError):
        connection.prune(older_than=MONTH, store="nots")


def test_a_workspace_is_pruned_alone(connection: mk.Connection, notes: mk.Store, dsn: str) -> None:
    with mk.connect(dsn, workspace="elsewhere") as elsewhere:
        assert elsewhere.prune(older_than=MONTH) == []
    assert len(notes.log()) == 7


def test_the_log_shows_what_is_left_by_its_numbers(connection: mk.Connection, notes: mk.Store) -> None:
    connection.prune(older_than=MONTH)
    assert [version.ordinal for version in notes.log("/units.md")] == [5, 4, 3]
    assert notes.version("/units.md", "@3").content == "three\n"
    assert [version.seq for version in notes.log()] == [5, 4, 3]
    with pytest.raises(errors.MemoryNotFoundError):
        notes.log("/old.md")
    notes.write("/units.md", "six\n")
    assert notes.log("/units.md")[0].ordinal == 6


def test_what_was_pruned_is_told_by_two_lines(connection: mk.Connection, notes: mk.Store) -> None:
    connection.prune(older_than=MONTH)
    with pytest.raises(errors.HistoryPrunedError) as told:
        notes.version("/units.md", "@1")
    assert told.value.lines() == [
        "HistoryPrunedError: there is no version @1 of /units.md: the store's history up to change 7 was pruned",
        "`%memory log` shows the versions that are left.",
    ]
    for ask in (
        lambda: notes.version("/units.md", datetime.now(UTC) - timedelta(days=400)),
        lambda: notes.diff("/units.md", 1),
        lambda: notes.diff("/units.md", None, "@3"),
        lambda: notes.restore("/units.md", "@2"),
        lambda: notes.redact("/units.md", -4),
    ):
        with pytest.raises(errors.HistoryPrunedError):
            ask()
    assert notes.read("/units.md") == "five\n"


def test_a_diff_of_what_is_left_is_what_it_was(connection: mk.Connection, notes: mk.Store) -> None:
    before = notes.diff("/units.md", 3).patch
    connection.prune(older_than=MONTH)
    assert notes.diff("/units.md", 3).patch == before
    assert notes.diff("/units.md").added == 1


def test_a_text_that_is_left_is_restored(connection: mk.Connection, notes: mk.Store) -> None:
    connection.prune(older_than=MONTH)
    notes.restore("/units.md", "@3")
    assert notes.read("/units.md") == "three\n"
    assert notes.log("/units.md")[0].ordinal == 6


def test_queries_see_the_versions_that_are_left(connection: mk.Connection, notes: mk.Store) -> None:
    connection.prune(older_than=MONTH)
    rows = connection.sql("SELECT seq, ordinal, operation FROM memory_versions ORDER BY seq").df()
    assert rows.to_numpy().tolist() == [[3, 3, "modified"], [4, 4, "modified"], [5, 5, "modified"]]
    numbers = connection.sql("SELECT head_seq, pruned_through_seq FROM memory_stores").df()
    assert numbers.to_numpy().tolist() == [[7, 7]]
    assert notes.log().df()["seq"].tolist() == [5, 4, 3]


# -- on the command line ---------------------------------------------------------------------------


def test_the_command_tells_each_store_and_the_total(run: Run, notes: mk.Store) -> None:
    line = f"Team notes  {notes.id}  4 versions (13 B)"
    status, told, _ = run("prune", "--older-than", "30d", "--dry-run")
    assert (status, told.splitlines()[1:]) == (
        0,
        [line, "4 versions (13 B) would go; this is a dry run: nothing was removed."],
    )
    assert len(notes.log()) == 7
    status, told, _ = run("prune", "--older-than", "30d")
    assert (status, told.splitlines()[1:]) == (0, [line, "4 versions (13 B) removed."])
    assert len(notes.log()) == 3
    assert run("prune", "--older-than", "30d")[1].splitlines()[1:] == ["Nothing is to be pruned."]


@pytest.mark.parametrize(
    ("older_than", "left"), [("53w", 7), ("366d", 7), ("51w", 3), ("364d", 3), ("1y", 3), ("2y", 7)]
)
def test_lengths_of_time(run: Run, notes: mk.Store, older_than: str, left: int) -> None:
    assert run("prune", "--older-than", older_than)[0] == 0
    assert len(notes.log()) == left


def test_the_command_takes_what_python_takes(run: Run, notes: mk.Store) -> None:
    assert run("prune", "--older-than", "30d", "--workspace", "elsewhere")[1].endswith("Nothing is to be pruned.\n")
    assert run("prune", "--older-than", "30d", "--store", "team-notes", "--keep", "1")[0] == 0
    assert [version.seq for version in notes.log()] == [5]


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["--older-than", "29d"], 1, "the history of the last 30 days is not pruned"),
        (["--older-than", "30d", "--keep", "0"], 1, "keep is 0"),
        (["--older-than", "30d", "--store", "nots"], 1, "nots"),
        (["--older-than", "30d", "--workspace", "no spaces"], 1, "no spaces"),
        (["--older-than", "30"], 2, "'30' is no length of time: 30d, 8w and 1y are some"),
        (["--older-than", "-30d"], 2, "--older-than"),
        (["--older-than", "30 days"], 2, "'30 days' is no length of time"),
        (["--older-than", "9999999y"], 2, "no length of time"),
        (["--older-than", "30d", "--keep", "x"], 2, "--keep"),
        ([], 2, "--older-than"),
    ],
)
def test_nonsense_is_told_in_a_sentence(
    run: Run, notes: mk.Store, arguments: list[str], status: int, complaint: str
) -> None:
    ended, _, complained = run("prune", *arguments)
    assert ended == status
    assert complaint in complained
    assert "Traceback" not in complained
    assert len(notes.log()) == 7
