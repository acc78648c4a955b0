"""Records, lists, tables, diffs, trees and runs as text and HTML: what they say, and that they stay within bounds."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel import render
from memkernel.models import Actor, GrepMatch, Memory, MemoryPrefix, MemoryStore, MemoryVersion
from memkernel.models import Page as PageOf
from memkernel.render import TranscriptEntry, html_of, text_of
from memkernel.render.diffs import spoken
from memkernel.textdiff import diff
from tests.unit.html_pages import Page

MORNING = datetime(2026, 11, 30, 9, 21, 7, tzinfo=UTC)
ANN = Actor("user_actor", "user_ann")
HOSTILE = "<script>alert(1)</script> <img src=x onerror=y> \x1b[2J \u202e & \"'"

STORE = MemoryStore(
    id="memstore_1",
    name="Team notes",
    description="House rules",
    metadata={"team": "blue"},
    created_at=MORNING,
    updated_at=MORNING,
    archived_at=None,
    head_seq=45,
    memory_count=12,
)
MEMORY = Memory(
    id="mem_1",
    memory_store_id="memstore_1",
    memory_version_id="memver_7",
    path="/units.md",
    content="SI\n",
    content_size_bytes=3,
    content_sha256="0" * 64,
    created_at=MORNING,
    updated_at=MORNING,
)
VERSION = MemoryVersion(
    id="memver_7",
    memory_store_id="memstore_1",
    memory_id="mem_1",
    seq=41,
    ordinal=7,
    operation="modified",
    path="/a.md",
    content="SI\n",
    content_sha256="0" * 64,
    content_size_bytes=3,
    created_at=MORNING,
    created_by=ANN,
    redacted_at=None,
    redacted_by=None,
)
REDACTED = replace(
    VERSION,
    path=None,
    content=None,
    content_size_bytes=None,
    redacted_at=MORNING + timedelta(minutes=4),
    redacted_by=ANN,
)


@dataclass(frozen=True)
class SomeStatus:
    """A record that render does not know."""

    server_version: str
    memory_count: int
    started_at: datetime
    missing: str | None = None


def lines(text: str) -> list[str]:
    return text.split("\n")


# -- one thing -------------------------------------------------------------------------------------


def test_a_version_is_one_line_and_its_text() -> None:
    assert lines(text_of(VERSION)) == ["@7 /a.md modified by user_ann 2026-11-30 09:21", "", "SI"]
    assert text_of(replace(VERSION, content=None)) == "@7 /a.md modified by user_ann 2026-11-30 09:21"
    assert text_of(REDACTED) == (
        "@7 (redacted) modified by user_ann 2026-11-30 09:21, redacted by user_ann 2026-11-30 09:25"
    )


def test_a_memory_says_where_how_large_when_and_which_version() -> None:
    assert lines(text_of(MEMORY)) == ["/units.md · 3 B · 2026-11-30 09:21 UTC · memver_7", "", "SI"]
    page = Page(html_of(MEMORY))
    assert "/units.md · 3 B · 2026-11-30 09:21 UTC · memver_7" in page.text
    assert page.inside["pre"] == ["SI\n"]
    assert f'title="{MORNING.isoformat()}"' in html_of(MEMORY)


def test_an_empty_memory_is_empty_and_one_without_its_content_is_a_line() -> None:
    assert lines(text_of(replace(MEMORY, content="")))[-1] == "(empty)"
    assert len(lines(text_of(replace(MEMORY, content=None)))) == 1
    assert "pre" not in Page(html_of(replace(MEMORY, content=None))).inside


def test_a_store_is_a_table_of_facts() -> None:
    text = text_of(STORE)
    assert lines(text)[0] == "Team notes"
    facts = dict(line.split(maxsplit=1) for line in lines(text)[1:])
    assert facts["slug"] == "team-notes"
    assert facts["memories"] == "12"
    assert facts["metadata"] == "team=blue"
    assert "archived" not in facts
    assert "archived" in text_of(replace(STORE, archived_at=MORNING))
    assert Page(html_of(STORE)).inside["caption"] == ["Team notes"]


def test_small_records_are_one_line() -> None:
    assert text_of(MemoryPrefix("/a/")) == "/a/"
    assert text_of(GrepMatch("/a.md", 3, "\tSI")) == "/a.md:3: ⇥SI"
    assert "/a.md:3: ⇥SI" in Page(html_of(GrepMatch("/a.md", 3, "\tSI"))).text


def test_a_record_that_is_not_known_is_a_table_of_its_fields() -> None:
    text = text_of(SomeStatus("18.1", 3, MORNING))
    assert lines(text) == [
        "Some status",
        "  server version  18.1",
        "  memory count    3",
        "  started at      2026-11-30 09:21",
        "  missing         NULL",
    ]
    assert Page(html_of(SomeStatus("18.1", 3, MORNING))).inside["th"][0] == "server version"


def test_anything_else_is_its_text() -> None:
    assert text_of("a\x1bb") == "a⟨ESC⟩b"
    assert Page(html_of(object)).inside["pre"] == ["<class 'object'>\n"]


# -- lists and tables ------------------------------------------------------------------------------


def test_a_listing_shows_directories_and_memories_in_one_table() -> None:
    assert lines(text_of([MemoryPrefix("/a/"), MEMORY])) == [
        "path       size  updated",
        "─────────  ────  ────────────────",
        "/a/",
        "/units.md   3 B  2026-11-30 09:21",
    ]
    assert Page(html_of([MemoryPrefix("/a/"), MEMORY])).inside["th"] == ["path", "size", "updated"]


def test_a_log_shows_versions_with_their_actors() -> None:
    table = lines(text_of([REDACTED, VERSION]))
    assert table[0].split() == ["version", "path", "operation", "size", "by", "time", "id"]
    assert "modified, redacted" in table[2]
    assert "@7       /a.md  modified" in table[3]


def test_60_of_2000_are_shown_and_it_says_so() -> None:
    memories = [replace(MEMORY, path=f"/{number:04}.md", content=None) for number in range(2_000)]
    text, page = text_of(memories), Page(html_of(memories))
    assert len(lines(text)) == 63
    assert lines(text)[-1] == "60 of 2,000 shown"
    assert len(page.inside["tr"]) == 61
    assert "60 of 2,000 shown" in page.text


def test_an_empty_list_says_so() -> None:
    assert text_of([]) == "(none)"
    assert "(none)" in Page(html_of([])).text
    assert lines(render.table_text(["a"], []))[-1] == "(none)"
    assert "(none)" in Page(render.table_html(["a"], [])).text


def test_a_page_is_a_table() -> None:
    assert "/units.md" in text_of(PageOf([MEMORY], None))
    assert "/units.md" in html_of(PageOf([MEMORY], None))


def test_values_of_every_type_have_a_cell() -> None:
    row = [None, True, 12000, 1.5, Decimal("0.10"), MORNING, b"\x00", {"a": [1]}, "x\ny\tz", "<b>"]
    columns = [f"c{index}" for index in range(len(row))]
    cells = lines(render.table_text(columns, [row]))[2].split("  ")
    shown = ["NULL", "true", "12000", "1.5", "0.10", "2026-11-30 09:21:07", "b'\\x00'", "{'a': [1]}", "x↵y⇥z", "<b>"]
    assert [cell.strip() for cell in cells if cell] == shown
    assert Page(render.table_html(columns, [row])).inside["td"] == shown


def test_numbers_stand_at_the_right_and_their_heads_too() -> None:
    assert lines(render.table_text(["n", "s"], [[5, "a"], [None, "b"], [12000, "c"]])) == [
        "    n  s",
        "─────  ─",
        "    5  a",
        " NULL  b",
        "12000  c",
    ]


def test_wide_letters_keep_the_columns_straight() -> None:
    rows = lines(render.table_text(["p", "n"], [["日本語", 1], ["e\u0301t", 2], ["abc", 3]]))
    assert rows[2:] == ["日本語  1", "e\u0301t      2", "abc     3"]


def test_a_table_of_very_many_columns_says_how_many_there_are() -> None:
    columns = [f"c{index}" for index in range(1_000)]
    text, page = render.table_text(columns, [range(1_000)]), Page(render.table_html(columns, [range(1_000)]))
    assert "40 of 1,000 columns shown" in text
    assert "40 of 1,000 columns shown" in page.text


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1 KB"),
        (1_741, "1.7 KB"),
        (102_399, "100 KB"),
        (102_400, "100 KB"),
        (1_048_575, "1 MB"),
        (2_411_725, "2.3 MB"),
    ],
)
def test_sizes_are_humane(size_bytes: int, shown: str) -> None:
    assert render.size_text(size_bytes) == shown
    assert render.size(size_bytes).title == f"{size_bytes:,} bytes"


def test_times_are_utc_to_the_minute_and_exact_in_the_title() -> None:
    bern = MORNING.astimezone(timezone(timedelta(hours=1)))
    assert render.moment_text(bern) == "2026-11-30 09:21"
    assert render.moment(bern).title == bern.isoformat()


# -- diffs, trees ----------------------------------------------------------------------------------


def test_a_static_diff_folds_what_is_equal_and_marks_words() -> None:
    old = "".join(f"line {number}\n" for number in range(40))
    new = old.replace("line 20\n", "line twenty\n").replace("line 39\n", "line 39\nthe end")
    page = Page(render.diff_html(diff(old, new), "/a.md", "@1 → @2"))
    assert "/a.md @1 → @2 · +2 −1 in 2 places" in page.text
    assert "  ⋯ 17 unchanged lines\n  line 17" in page.text
    assert "- line 20\n+ line twenty\n" in page.text
    assert "  ⋯ 13 unchanged lines\n" in page.text
    assert "+ the end (no newline at the end)\n" in page.text
    assert page.inside["del"] == ["20"]
    assert page.inside["ins"] == ["twenty", "the end"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("a\nb\n", "a\nc\nd\n", "2 lines added, 1 removed in 1 place"),
        ("a\n" * 9, "b\n" + "a\n" * 8 + "c\n", "2 lines added, 1 removed in 2 places"),
        ("a", "a", "no difference"),
    ],
)
def test_a_difference_is_told_to_who_cannot_see_it(old: str, new: str, said: str) -> None:
    """Without the signs, which no screen reader says."""
    assert spoken(diff(old, new)) == said


def test_nothing_that_differs_is_said() -> None:
    assert render.diff_text(diff("a", "a"), "old", "new") == "no difference"
    page = Page(render.diff_html(diff("a", "a"), "/a.md", "@1 → @2"))
    assert "no difference" in page.text
    assert "pre" not in page.inside


def test_a_diff_that_cannot_be_known_is_its_notes() -> None:
    assert render.diff_text(None, "old", "new", ["@1: gone"]) == "@1: gone"
    assert "@1: gone" in Page(render.diff_html(None, "/a.md", "@1 → @2", ["@1: gone"])).text


def test_of_a_long_line_the_words_around_a_change_are_shown() -> None:
    old = " ".join(f"word{number}" for number in range(5_000))
    page = Page(render.diff_html(diff(old, old.replace("word4000 ", "other ")), "/a.md", "@1 → @2"))
    assert page.inside["ins"] == ["other"]
    assert "word3999 other word4001" in page.text
    assert len(page.text) < 2_000


def test_a_diff_that_has_no_room_says_how_much_is_shown() -> None:
    old = "".join(f"{number}\n" for number in range(5_000))
    page = Page(render.diff_html(diff(old, ""), "/a.md", "@1 → @2"))
    assert " of 5,000 lines shown" in page.text
    text = lines(render.diff_text(diff(old, ""), "old", "new"))
    assert len(text) == 60
    assert text[-1] == "… 59 of 5,003 lines shown"


def test_a_tree_is_drawn_with_lines() -> None:
    assert lines(render.tree_text("/", ["/b.md", "/a/x.md", "/a/y/z.md"])) == [
        "/",
        "├── a/",
        "│   ├── x.md",
        "│   └── y/",
        "│       └── z.md",
        "└── b.md",
    ]
    assert lines(render.tree_text("/a/", ["/a/x.md"])) == ["/a/", "└── x.md"]
    assert "└── b.md" in Page(render.tree_html("/", ["/b.md"])).text
    assert lines(render.tree_text("/", [f"/{number}" for number in range(99)]))[-1] == "… 59 of 100 lines shown"


# -- runs ------------------------------------------------------------------------------------------

CALL = TranscriptEntry("tool", "memory view /memories", '{"command": "view"}', "nothing\nhere", duration_s=0.25)
RUN = [TranscriptEntry("prompt", "Go\non"), TranscriptEntry("text", "I "), TranscriptEntry("text", "look."), CALL]


def test_a_run_is_read_from_top_to_bottom() -> None:
    text = render.transcript_text(RUN, heading="claude · done", badge="scripted", footer="100 tokens")
    assert lines(text) == [
        "[scripted]",
        "claude · done",
        "> Go",
        "> on",
        "I look.",
        "→ memory view /memories",
        "  │ nothing",
        "  │ here",
        "100 tokens",
    ]


def test_the_same_run_as_html() -> None:
    page = Page(render.transcript_html(RUN, heading="claude · done", badge="scripted", footer="100 tokens"))
    assert page.inside["strong"] == ["claude · done"]
    assert page.inside["summary"] == ["→ memory view /memories  · 250 ms"]
    assert page.inside["pre"] == ['{"command": "view"}', "nothing\nhere"]
    assert "I look." in page.inside["p"]
    assert page.text.endswith("100 tokens")


def test_errors_notices_and_thinking_of_a_run_are_told_apart() -> None:
    entries = [
        TranscriptEntry("thinking", "hm"),
        TranscriptEntry("tool", "bash ls", result="no\n" * 9, is_error=True, duration_s=3),
        TranscriptEntry("notice", "Stopped."),
    ]
    assert lines(render.transcript_text(entries)) == [
        "… thought 2 characters",
        "→ bash ls",
        *["  ✗ no"] * 6,
        "  ✗ … 4 more lines",
        "! Stopped.",
    ]
    assert lines(render.transcript_text([TranscriptEntry("thinking", "x")])) == ["… thought 1 character"]
    page = Page(render.transcript_html(entries))
    assert page.inside["summary"] == ["thinking", "→ bash ls error  · 3.0 s"]


def test_of_a_long_run_the_beginning_and_the_end_are_shown() -> None:
    entries = [TranscriptEntry("text" if number % 2 else "notice", f"entry {number}") for number in range(4_000)]
    text = lines(render.transcript_text(entries, heading="head", footer="foot"))
    assert len(text) == 60
    assert text[1:5] == ["! entry 0", "entry 1", "! entry 2", "… 3,943 lines left out"]
    assert text[-2:] == ["entry 3999", "foot"]
    page = Page(render.transcript_html(entries))
    assert "entry 2…" in page.text
    assert " left out" in page.text
    assert page.text.endswith("entry 3999")


# -- bounds and safety -----------------------------------------------------------------------------

LONG: dict[str, str] = {
    "one line": "x" * 102_400,
    "many lines": "ab\n" * 34_000,
    "empty lines": "\n" * 102_400,
    "markup": "<&>" * 34_000,
    "marks": "\u202e" * 34_000,
    "marked lines": "\u202e\n" * 25_000,
    "emoji": "🙂" * 25_600,
    "hostile": HOSTILE * 1_000,
}


def renderings(text: str) -> dict[str, tuple[str, str]]:
    """Text and HTML of everything that can hold this text."""
    shuffled = list(text)
    random.Random(0).shuffle(shuffled)
    path = "/" + text[:1_000].replace("\n", "")
    memory = replace(MEMORY, path=path, content=text)
    match = GrepMatch(path, 1, text.split("\n", maxsplit=1)[0])
    entries = [TranscriptEntry("prompt", text), replace(CALL, text=text, arguments=text, result=text)] * 30
    changed = {"created": diff("", text), "edited": diff(text, text[:50_000] + " y " + text[50_000:])}
    every = {"shuffled": diff(text, "".join(shuffled)), **changed}
    run = {"heading": text[:99], "badge": text[:99], "footer": text[:99]}
    facts = [(text[:300], text)] * 300
    return {
        "memory": (text_of(memory), html_of(memory)),
        "version": (text_of(replace(VERSION, content=text)), html_of(replace(VERSION, content=text))),
        "list": (text_of([memory] * 300), html_of([memory] * 300)),
        "grep": (text_of([match] * 300), html_of([match] * 300)),
        "anything": (text_of(text), html_of(text)),
        "table": (render.table_text([text] * 9, [[text] * 9] * 60), render.table_html([text] * 9, [[text] * 9] * 60)),
        "facts": (render.facts_text("t", facts[:50]), render.facts_html(text[:255], facts)),
        "tree": (render.tree_text("/", [path] * 300), render.tree_html("/", [path + str(n) for n in range(300)])),
        "run": (render.transcript_text(entries, **run), render.transcript_html(entries, **run)),
        **{name: (text_of(found), html_of(found)) for name, found in every.items()},
    }


@pytest.mark.parametrize("name", LONG)
def test_every_rendering_has_at_most_60_lines_or_rows_and_24_kb_of_html(name: str) -> None:
    for kind, (text, html) in renderings(LONG[name]).items():
        assert len(lines(text)) <= (63 if kind in ("list", "grep", "table") else 60), kind
        assert len(text) <= 130_000, kind
        assert len(html.encode()) <= render.HTML_BYTES, (kind, len(html.encode()))
        assert Page(html).text, kind


def test_stored_text_is_never_markup_and_never_steers_a_terminal() -> None:
    for kind, (text, html) in renderings(HOSTILE).items():
        page = Page(html)  # refuses every element and attribute that could act or fetch
        assert "script" not in page.inside, kind
        assert not any(ord(character) < 32 and character not in "\n\t" for character in text + page.text), kind
        assert "\u202e" not in text + page.text, kind


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_can_be_rendered(old: str, new: str) -> None:
    for _, html in ((text_of(diff(old, new)), html_of(diff(old, new))), (text_of(old), html_of(new))):
        Page(html)


def test_a_dollar_sign_starts_no_formula() -> None:
    assert "mathjax_ignore" in html_of(MEMORY)
    assert "tex2jax_ignore" in html_of(MEMORY)


def test_a_field_that_is_no_text_does_no_harm() -> None:
    strange: Any = SomeStatus("x", 1, MORNING, "y")
    object.__setattr__(strange, "server_version", ["<b>", {1: 2}])
    assert "['<b>', {1: 2}]" in text_of(strange)
    assert "['<b>', {1: 2}]" in Page(html_of(strange)).text
