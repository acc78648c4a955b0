"""What a cell did and what became of its files, as text and HTML: what is said, in which order, within which bounds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkernel import render
from memkernel.errors import DatabaseUnavailableError
from memkernel.models import (
    Actor,
    CellError,
    CellResult,
    HeldBack,
    MemoryVersion,
    RefusedFile,
    StoreReport,
    SyncConflict,
    SyncReport,
)
from memkernel.render import html_of, text_of
from tests.unit.html_pages import Page

MORNING = datetime(2026, 11, 30, 9, 21, 7, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script> <img src=x onerror=y> \x1b[2J \u202e & \"'"

MODIFIED = MemoryVersion(
    id="memver_7",
    memory_store_id="memstore_1",
    memory_id="mem_1",
    seq=41,
    ordinal=7,
    operation="modified",
    path="/plan.md",
    content=None,
    content_sha256="0" * 64,
    content_size_bytes=1_740,
    created_at=MORNING,
    created_by=Actor("session_actor", "sesn_1"),
    redacted_at=None,
    redacted_by=None,
)
CREATED = replace(MODIFIED, id="memver_8", operation="created", path="/units.md", ordinal=1, content_size_bytes=3)
DELETED = replace(MODIFIED, id="memver_9", operation="deleted", path="/old.md", ordinal=4, content_size_bytes=None)
COUNTS = {"memver_7": (2, 1), "memver_8": (1, 0), "memver_9": (0, 1_200)}

NOTHING = StoreReport("memstore_1", "Team notes", "/mnt/memory/team-notes")
SAVED = replace(NOTHING, created=(CREATED,), modified=(MODIFIED,), deleted=(DELETED,), pulled=("/new.md",))
BAD = replace(
    SAVED,
    conflicts=(SyncConflict("/a.md", "the store's text is @8 by user_ann", "rej_1"),),
    refused=(RefusedFile("/big.csv", "104,220 bytes, the limit is 102,400"),),
)
WIPED = replace(
    NOTHING, name="Handbook", mount_path="/mnt/memory/handbook", held_back=HeldBack("2", ("/x.md", "/y.md"))
)
LOST = replace(NOTHING, trouble=DatabaseUnavailableError("PostgreSQL does not answer"))


def lines(report: StoreReport, *more: StoreReport) -> list[str]:
    return render.report_text(SyncReport((report, *more)), COUNTS).split("\n")


# -- reports ---------------------------------------------------------------------------------------


def test_a_changed_file_is_a_line_with_operation_path_lines_ordinal_and_size() -> None:
    assert lines(SAVED) == [
        "3 changes saved in team-notes, 1 file brought up to team-notes",
        "  − deleted    /old.md    −1,200  @4",
        "  ~ modified   /plan.md   +2 −1   @7  1.7 KB",
        "  + created    /units.md  +1      @1  3 B",
        "  ↓ pulled     /new.md    as it is in the store now",
    ]


def test_what_needs_a_person_comes_first_with_its_reason_and_the_way_out() -> None:
    found = lines(BAD)
    assert "1 change NOT saved in team-notes" in found[0]
    assert " ".join(found[1].split()) == "✗ not saved /a.md the store's text is @8 by user_ann"
    assert found[2].split()[:3] == ["!", "refused", "/big.csv"]
    assert "`%sandbox changes` shows both." in found[-2]
    assert "stays in the sandbox" in found[-1]


def test_that_a_change_is_not_saved_is_said_once() -> None:
    full = replace(NOTHING, conflicts=(SyncConflict("/a.md", "was not saved: the memory store is full", "rej_1"),))
    assert lines(full)[1] == "  ✗ not saved  /a.md  the memory store is full"


def test_nothing_changed_is_one_line_and_nothing_in_a_line_of_the_notebook() -> None:
    quiet = SyncReport((NOTHING, WIPED))
    assert render.report_text(SyncReport((NOTHING,)), title="sandbox main") == "sandbox main · nothing changed"
    assert render.report_line(SyncReport((NOTHING,))) == ""
    assert render.report_line(quiet) == "2 deletions held back in handbook (/x.md, /y.md)"


def test_several_stores_are_told_apart() -> None:
    text = "\n".join(lines(SAVED, WIPED))
    assert "  /mnt/memory/team-notes\n" in text
    assert "  /mnt/memory/handbook\n  ✗ restored   /x.md  its deletion was held back\n" in text
    assert "`%sandbox sync --allow-wipe` deletes them." in text
    assert "/mnt/memory/handbook/x.md" in Page(render.report_html(SyncReport((SAVED, WIPED)))).text


def test_a_store_that_could_not_be_synced_says_why_and_leaves_the_way_out_to_the_error() -> None:
    text = "\n".join(lines(LOST))
    assert "✗ not synced" in text
    assert "PostgreSQL does not answer" in text
    assert "`" not in text


def test_without_counts_nothing_is_said_of_lines() -> None:
    text = render.report_text(SyncReport((replace(NOTHING, modified=(MODIFIED,)),)))
    assert text.split("\n")[1].split() == ["~", "modified", "/plan.md", "@7", "1.7", "KB"]


def test_a_line_for_the_notebook_names_three_paths_at_most() -> None:
    line = render.report_line(SyncReport((SAVED,)))
    assert line.endswith("(/old.md, /plan.md, /units.md, …)")
    assert render.report_line(SyncReport((BAD,))).endswith("; `%sandbox changes` shows both")
    assert "PostgreSQL does not answer" in render.report_line(SyncReport((LOST,)))
    assert "\n" not in line


def test_the_html_says_the_same_and_its_commands_are_code() -> None:
    page = Page(render.report_html(SyncReport((BAD,)), COUNTS, title="sandbox main · 85 ms"))
    for said in (
        "sandbox main · 85 ms",
        "/plan.md",
        "+2 −1",
        "@7",
        "1.7 KB",
        "104,220 bytes",
        "the store's text is @8",
    ):
        assert said in page.text
    assert "%sandbox changes" in page.inside["code"]
    assert "`" not in page.text


def test_thousands_of_files_stay_within_the_bounds_and_the_bad_ones_are_seen() -> None:
    many = tuple(replace(CREATED, id=f"memver_{n}", path=f"/{'long' * 40}/{n}.md") for n in range(2_000))
    report = SyncReport((replace(BAD, created=many),))
    text, html = render.report_text(report), render.report_html(report)
    assert len(text.split("\n")) == render.TEXT_LINES
    assert len(html.encode()) <= render.HTML_BYTES
    for shown in (text, Page(html).text):
        assert "/a.md" in shown
        assert "shown" in shown


@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_a_path_or_a_reason_holds_is_no_markup_and_steers_no_terminal(path: str, reason: str) -> None:
    report = SyncReport((replace(NOTHING, refused=(RefusedFile(path + HOSTILE, reason + HOSTILE),)),))
    html = render.report_html(report)
    assert "<script" not in html
    assert "<img" not in html
    Page(html)
    assert not {"\x1b", "\u202e"} & set(render.report_text(report) + render.report_line(report))


# -- results ---------------------------------------------------------------------------------------

FAILED = CellResult(
    status="error",
    stdout="hello\n",
    stderr="careful\n",
    result=None,
    outputs=(),
    error=CellError("ZeroDivisionError", "division by zero", ()),
    exit_code=None,
    duration_s=1.234,
    notes=("One output of text/html was left out.",),
    report=SyncReport((SAVED,)),
)


def test_a_result_is_its_output_how_it_ended_its_notes_and_its_report() -> None:
    assert text_of(FAILED).split("\n")[:6] == [
        "hello",
        "careful",
        "ZeroDivisionError: division by zero",
        "error: ZeroDivisionError · 1.2 s",
        "  One output of text/html was left out.",
        "3 changes saved in team-notes, 1 file brought up to team-notes",
    ]
    assert "/units.md" in Page(html_of(FAILED)).text


@pytest.mark.parametrize(
    ("status", "exit_code", "said"),
    [
        ("ok", 0, "done"),
        ("error", 2, "error: exit status 2"),
        ("timeout", None, "timed out"),
        ("interrupted", None, "interrupted"),
        ("died", None, "the kernel died"),
        ("out_of_memory", -9, "out of memory"),
    ],
)
def test_every_end_of_a_cell_has_its_words(status: str, exit_code: int | None, said: str) -> None:
    result = replace(FAILED, status=status, exit_code=exit_code, error=None, report=None, notes=())  # pyright: ignore[reportArgumentType]  # a parameter is a str
    assert text_of(result).split("\n")[-1] == f"{said} · 1.2 s"


def test_a_long_output_keeps_its_ends_and_the_report() -> None:
    result = replace(FAILED, stdout="".join(f"line {n}\n" for n in range(50_000)))
    text, html = text_of(result), html_of(result)
    assert len(text.split("\n")) <= render.TEXT_LINES
    assert len(html.encode()) <= render.HTML_BYTES
    for shown in (text, Page(html).text):
        assert "line 0" in shown
        assert "lines left out" in shown
        assert "/units.md" in shown


def test_hostile_output_is_text() -> None:
    html = html_of(replace(FAILED, stdout=HOSTILE, error=CellError(HOSTILE, HOSTILE, ())))
    assert "<script" not in html
    Page(html)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0004, "0 ms"), (0.085, "85 ms"), (0.9996, "1.0 s"), (59.94, "59.9 s"), (185, "3 min 5 s")]
)
def test_a_duration_is_told_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert render.duration_text(seconds) == said


def test_reports_and_results_are_shown_wherever_records_are() -> None:
    assert text_of(SAVED) == text_of(SyncReport((SAVED,)))
    assert html_of(SAVED) == html_of(SyncReport((SAVED,)))


# -- without a notebook ------------------------------------------------------------------------------


def test_a_report_that_is_printed_has_a_line_a_path_and_its_repr_is_one_line() -> None:
    assert str(SyncReport((SAVED,))).split("\n") == [
        "/mnt/memory/team-notes",
        "  deleted /old.md @4",
        "  modified /plan.md @7",
        "  created /units.md @1",
        "  pulled /new.md as it is in the store now",
    ]
    assert str(SyncReport((NOTHING,))) == "/mnt/memory/team-notes\n  nothing changed"
    assert repr(SyncReport((SAVED,))) == (
        "<SyncReport <StoreReport /mnt/memory/team-notes: "
        "deleted /old.md @4, modified /plan.md @7, created /units.md @1, 1 more>>"
    )
    assert "\x1b" not in str(replace(NOTHING, refused=(RefusedFile("/\x1b[2J", "it has a control character"),)))


def test_a_result_that_is_printed_says_how_it_ended_its_notes_and_its_report() -> None:
    assert str(FAILED).split("\n")[:3] == [
        "error after 1.23 s",
        "One output of text/html was left out.",
        "/mnt/memory/team-notes",
    ]


def test_a_file_that_went_because_its_memory_did_is_told_apart_from_a_deletion() -> None:
    gone = replace(NOTHING, removed=("/gone.md",))
    assert lines(gone) == [
        "1 file brought up to team-notes",
        "  ↓ removed    /gone.md  as it is no longer in the store",
    ]
    assert "/gone.md" in Page(render.report_html(SyncReport((gone,)))).text


def test_a_merged_path_is_told_once() -> None:
    merged = replace(NOTHING, merged=(MODIFIED,), pulled=("/plan.md",))
    assert [line.outcome for line in merged.lines()] == ["merged"]
    assert lines(merged)[0] == "1 change saved in team-notes"


def test_a_report_of_thousands_of_paths_is_a_text_of_sixty_lines() -> None:
    refused = tuple(RefusedFile(f"/{number:04}.bin", "it is not text") for number in range(2_100))
    report = replace(SAVED, refused=refused, notes=("a note",))
    lines = str(SyncReport((report,))).splitlines()
    assert len(lines) == 62
    assert lines[1] == "  refused /0000.bin it is not text"
    assert lines[-2:] == ["  … 59 of 2,104 lines shown", "  a note"]
    assert len(report.lines()) == 2_104


def test_what_is_not_saved_is_said_once_in_its_line() -> None:
    because = SyncConflict("/b.md", "was not saved, because /a.md was edited both here and in the store", "rej_2")
    assert str(replace(NOTHING, conflicts=(because,))).endswith(
        "not saved /b.md because /a.md was edited both here and in the store"
    )
