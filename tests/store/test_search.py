"""A search for words: which memories are found, in which order, with which lines (UX 3.1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memkernel.errors import InvalidInputError, InvalidPathError, StoreNotFoundError
from memkernel.models import Memory, MemoryStore, SearchResult
from memkernel.store import Database
from tests.store.people import ANN

Write = Callable[..., Memory]
Search = Callable[..., SearchResult]


@pytest.fixture
def search(database: Database, store: MemoryStore) -> Search:
    """Search the test's store."""
    return lambda *args, **options: database.memories.search(store.id, *args, **options)


@pytest.fixture
def found(search: Search) -> Callable[..., list[str]]:
    """The paths that a search finds, best first."""
    return lambda *args: [hit.path for hit in search(*args).hits]


def test_all_words_must_occur_in_content_or_path_in_any_case(write: Write, found: Callable[..., list[str]]) -> None:
    write("/retry/policy.md", "Wait a second.")
    write("/http.md", "RETRY three times, says the policy")
    write("/other.md", "a policy without the other word")
    assert found("Retry POLICY") == ["/retry/policy.md", "/http.md"]
    assert found("retry second") == ["/retry/policy.md"]
    assert found("retry fourth") == []


def test_a_path_that_holds_a_word_comes_first_and_then_the_most_occurrences(
    write: Write, found: Callable[..., list[str]]
) -> None:
    write("/a.md", "unit")
    write("/b.md", "unit unit unit\nunit")
    write("/c.md", "unit unit")
    write("/units.md", "SI")
    assert found("unit") == ["/units.md", "/b.md", "/c.md", "/a.md"]


def test_letters_of_all_scripts_are_found_in_any_case(write: Write, found: Callable[..., list[str]]) -> None:
    write("/a.md", "Größe ÄRGER Привет ΛΌΓΟΣ café")
    write("/Ärger.md", "nothing of this")
    assert found("größe ärger ПРИВЕТ λόγο CAFÉ") == ["/a.md"]
    assert found("äRGER") == ["/Ärger.md", "/a.md"]


def test_quotes_make_one_word_of_many(write: Write, found: Callable[..., list[str]]) -> None:
    write("/a.md", "one two three")
    write("/b.md", "two one")
    assert found('"one two" THREE') == ["/a.md"]
    assert found("one two") == ["/a.md", "/b.md"]


@pytest.mark.parametrize("query", ["50%", "a_b", r"c\d", r"\000", "(x", "'; DROP", "[1]", "^", "$1"])
def test_every_sign_means_itself(write: Write, found: Callable[..., list[str]], query: str) -> None:
    write("/a.md", f"before {query} after")
    write("/b.md", "50 axb cd 000 x DROP 1")
    assert found(query) == ["/a.md"]


@pytest.mark.parametrize(
    ("content", "query", "line"),
    [
        ("first\nx\0needle\0y", "needle", "x\0needle\0y"),
        ("\\000 \0\0 \\\\\0 Größe", "größe", "\\000 \0\0 \\\\\0 Größe"),
        ("a\0b \\134 end", r"\134", "a\0b \\134 end"),
    ],
)
def test_contents_with_nul_are_found(search: Search, write: Write, content: str, query: str, line: str) -> None:
    write("/a.md", content)
    (hit,) = search(query).hits
    assert hit.count == 1
    assert [each.text for each in hit.lines] == [line]


def test_a_nul_keeps_two_words_apart(write: Write, found: Callable[..., list[str]]) -> None:
    write("/a.md", "one\0two")
    assert found("onetwo") == []
    assert found('"one two"') == []


def test_only_heads_at_or_below_the_path_are_searched(
    database: Database, store: MemoryStore, write: Write, found: Callable[..., list[str]]
) -> None:
    write("/a.md", "needle")
    write("/a.md", "no longer")
    gone = write("/gone.md", "needle")
    database.memories.delete(gone.id, memory_store_id=store.id, actor=ANN)
    write("/d/1.md", "needle")
    write("/d0.md", "needle")
    write("/d-x/2.md", "needle")
    assert found("needle") == ["/d-x/2.md", "/d/1.md", "/d0.md"]
    assert found("needle", "/d") == found("needle", "/d/") == found("needle", "/d/1.md") == ["/d/1.md"]
    assert found("needle", "/nothing") == []


def test_other_stores_are_not_searched(database: Database, write: Write, found: Callable[..., list[str]]) -> None:
    other = database.memory_stores.create(name="Other")
    database.memories.write(other.id, "/needle.md", "needle", actor=ANN)
    assert found("needle") == []


def test_what_a_hit_tells(search: Search, write: Write) -> None:
    text = "\n".join([*(f"line {n} with red" for n in range(1, 6)), "Red and GREEN", "green", ""])
    memory = write("/a.md", text)
    (hit,) = search("red green").hits
    assert (hit.path, hit.memory_version_id, hit.count) == ("/a.md", memory.memory_version_id, 8)
    assert (hit.content_size_bytes, hit.updated_at) == (len(text), memory.updated_at)
    assert [(each.line, each.text) for each in hit.lines] == [
        (1, "line 1 with red"),
        (2, "line 2 with red"),
        (6, "Red and GREEN"),
    ]


def test_of_a_long_line_the_part_around_the_word_is_told(search: Search, write: Write) -> None:
    write("/a.md", "x" * 60_000 + " needle " + "y" * 40_000)
    (hit,) = search("needle").hits
    (line,) = hit.lines
    assert len(line.text) == 202
    assert "x needle y" in line.text
    assert line.text.startswith("…x")
    assert line.text.endswith("y…")


def test_a_word_of_the_path_alone_has_no_lines(search: Search, write: Write) -> None:
    write("/needle.md", "")
    (hit,) = search("needle").hits
    assert (hit.count, hit.lines) == (0, ())


def test_the_limit_cuts_the_hits_and_the_total_stays(search: Search, write: Write) -> None:
    for number in range(30):
        write(f"/{number:02}.md", "needle")
    result = search("needle", limit=7)
    assert [hit.path for hit in result.hits] == [f"/{number:02}.md" for number in range(7)]
    assert result.total == 30
    assert search("nothing").total == 0


@pytest.mark.parametrize("query", ["", "  ", '""', '" "', "a\0b", "a\udc80", " ".join(map(str, range(17))), 7])
def test_a_query_that_cannot_be_searched_for_is_refused(search: Search, query: str) -> None:
    with pytest.raises(InvalidInputError):
        search(query)


def test_bad_places_are_refused(database: Database, store: MemoryStore) -> None:
    with pytest.raises(StoreNotFoundError):
        database.memories.search("memstore_none", "needle")
    with pytest.raises(InvalidPathError):
        database.memories.search(store.id, "needle", "no/slash")
    with pytest.raises(InvalidInputError):
        database.memories.search(store.id, "needle", limit=0)


def test_it_is_answered_through_the_role_of_a_workspace_and_only_there(database: Database, store: MemoryStore) -> None:
    database.memories.write(store.id, "/a.md", "needle größe", actor=ANN)
    here, elsewhere = database.in_workspace("default"), database.in_workspace("elsewhere")
    assert [hit.path for hit in here.memories.search(store.id, "needle GRÖSSE größe").hits] == []
    assert [hit.path for hit in here.memories.search(store.id, "needle GRÖßE").hits] == ["/a.md"]
    with pytest.raises(StoreNotFoundError):
        elsewhere.memories.search(store.id, "needle")
