"""A run as something to read: while it goes on, and afterwards."""

from __future__ import annotations

import io
from typing import Any

import pytest

from memkernel.agent import transcript
from memkernel.agent.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Notice,
    NoticeKind,
    RunEnded,
    RunStarted,
    Status,
    TextDelta,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    TurnStarted,
    Usage,
)
from memkernel.models import RunKind
from memkernel.render import TranscriptEntry

USAGE = Usage(100, 20)
VIEW: dict[str, Any] = {"command": "view", "path": "/memories"}


def started(kind: RunKind = "live") -> RunStarted:
    return RunStarted("run_1", "Go on", "claude-sonnet-5-5" if kind == "live" else kind, kind)


def ended(status: Status = "done", turns: int = 1) -> RunEnded:
    return RunEnded("run_1", status, turns, USAGE)


def turn(*events: Event, number: int = 1) -> list[Event]:
    return [TurnStarted(number), *events, TurnEnded(number, "end_turn", USAGE)]


def returned(content: str, *, is_error: bool = False) -> ToolReturned:
    return ToolReturned("toolu_1", "memory", content, is_error, 0.25)


def printed(*events: Event) -> list[str]:
    out = io.StringIO()
    sink = transcript.TextTranscript(out)
    for event in events:
        sink(event)
    return out.getvalue().splitlines()


def test_a_run_is_a_list_of_what_was_said_and_done() -> None:
    events = [
        started(),
        *turn(ThinkingDelta("hm"), TextDelta("I look."), ToolCalled("toolu_1", "memory", VIEW), returned("nothing")),
        *turn(TextDelta("Done."), number=2),
        ended(turns=2),
    ]
    called = '{\n  "command": "view",\n  "path": "/memories"\n}'
    assert transcript.entries(events) == [
        TranscriptEntry("prompt", "Go on"),
        TranscriptEntry("thinking", "hm"),
        TranscriptEntry("text", "I look."),
        TranscriptEntry(
            "tool", "memory view /memories", id="toolu_1", arguments=called, result="nothing", duration_s=0.25
        ),
        TranscriptEntry("text", "Done."),
    ]


def test_what_a_call_made_stands_below_it_and_cannot_be_markup() -> None:
    events = [started(), *turn(ToolCalled("toolu_1", "memory", VIEW), returned("nothing")), ended()]
    made = {"toolu_1": ["~ /<b>\u202e.md @3 +2 −1"], "toolu_2": ["of another run"]}
    assert "\n  │ nothing\n  ~ /<b>⟨U+202E⟩.md @3 +2 −1\n" in transcript.as_text(events, made)
    html = transcript.as_html(events, made)
    assert "</details><p><code>~ /&lt;b&gt;" in html
    assert "of another run" not in html


def test_fault_53_a_turn_that_was_begun_anew_is_left_out() -> None:
    """fault 53"""
    events = [
        started(),
        *turn(TextDelta("First.")),
        TurnStarted(2),
        TextDelta("Half a sen"),
        Notice("retry", "The API broke off its reply; trying again."),
        *turn(TextDelta("A sentence."), number=2),
    ]
    assert [entry.text for entry in transcript.entries(events)] == [
        "Go on",
        "First.",
        "The API broke off its reply; trying again.",
        "A sentence.",
    ]


def test_a_failure_before_the_first_word_takes_nothing_away() -> None:
    events = [started(), *turn(TextDelta("First.")), Notice("retry", "Busy."), Notice("retry", "Busy again.")]
    assert [entry.text for entry in transcript.entries(events)] == ["Go on", "First.", "Busy.", "Busy again."]


def test_a_failure_before_the_first_reply_leaves_the_prompt_there() -> None:
    events = [started(), Notice("retry", "Busy."), *turn(TextDelta("Hello."))]
    assert [entry.text for entry in transcript.entries(events)] == ["Go on", "Busy.", "Hello."]


def test_a_turn_that_was_stopped_counts_in_the_heading_as_it_does_elsewhere() -> None:
    events = [started(), TurnStarted(1), TextDelta("Hm."), ended("stopped", turns=1)]
    assert "stopped by the user · 1 turn\n" in transcript.as_text(events)


def test_a_run_that_was_gone_on_with_without_a_prompt_shows_none() -> None:
    events = [RunStarted("run_1", "", "scripted", "scripted"), *turn(TextDelta("Hello."))]
    assert [entry.kind for entry in transcript.entries(events)] == ["text"]


def test_a_call_that_has_not_returned_has_no_duration() -> None:
    (_, call) = transcript.entries([started(), TurnStarted(1), ToolCalled("toolu_1", "memory", VIEW)])
    assert (call.duration_s, call.result) == (None, "")


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("memory", VIEW, "memory view /memories"),
        ("memory", {"command": "rename", "old_path": "/a", "new_path": "/b"}, "memory rename /a /b"),
        ("memory", {"command": "create", "path": "/memories/a b\n.md"}, "memory create /memories/a b .md"),
        ("memory", {}, "memory()"),
        ("memory", {"command": 3}, "memory(command=3)"),
        ("weather", {"city": "Bern", "days": [1, 2]}, 'weather(city="Bern", days=[1, 2])'),
        ("f", {"x": "y" * 500}, f'f(x="{"y" * 155}…'),
    ],
)
def test_a_call_is_one_short_line(name: str, given: dict[str, Any], line: str) -> None:
    assert transcript.call_line(name, given) == line


def test_as_text_tells_the_model_the_end_and_the_tokens() -> None:
    text = transcript.as_text([started(), *turn(TextDelta("Done.")), ended()])
    assert "claude-sonnet-5-5 · done · 1 turn" in text
    assert "100 tokens in, 20 out" in text
    assert "Done." in text
    assert "scripted" not in text


def test_the_badge_is_on_every_form_of_a_scripted_run() -> None:
    events = [started("scripted"), *turn(TextDelta("Done.")), ended()]
    for form in (transcript.as_text(events), transcript.as_html(events), "\n".join(printed(*events))):
        assert "scripted, not a language model" in form


def test_hostile_text_is_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    events = [started(), ToolCalled("toolu_1", hostile, {"x": hostile}), returned(hostile), TextDelta(hostile), ended()]
    assert "<script" not in transcript.as_html(events)


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = "".join(printed(TextDelta("a\x1b]0;title\x07b\r"), returned("\x1b[2J")))
    assert not {"\x1b", "\x07", "\r"} & set(text)
    assert "]0;title" in text


def test_before_anything_has_happened_it_can_be_read_too() -> None:
    assert "running" in transcript.as_text([])
    assert "running" in transcript.as_html([])


def test_words_are_printed_as_they_come_and_lines_begin_at_the_margin() -> None:
    events = [
        started(),
        TurnStarted(1),
        TextDelta("I "),
        TextDelta("look."),
        ToolCalled("toolu_1", "memory", VIEW),
        returned("Here're the files\n4K\t/memories"),
        TextDelta("Done.\n"),
        ended(),
    ]
    assert printed(*events) == [
        "I look.",
        "→ memory view /memories",
        "  │ Here're the files",
        "  │ 4K      /memories",
        "Done.",
        "done · 1 turn · 100 tokens in, 20 out",
    ]


def test_a_run_that_is_printed_again_says_so_and_what_was_asked() -> None:
    out = io.StringIO()
    transcript.TextTranscript(out, again=transcript.SHOWN_AGAIN)(
        RunStarted("run_1", "One\nTwo", "scripted", "scripted")
    )
    assert out.getvalue() == f"[{transcript.SHOWN_AGAIN}]\n> One\n> Two\n"


def test_what_a_terminal_cannot_hold_is_a_question_mark() -> None:
    """As with LANG=C, where Python is kept from taking UTF-8."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    write = transcript.TextTranscript(out)
    for event in (ToolCalled("toolu_1", "memory", VIEW), returned("été \N{SNOWMAN}"), TextDelta("Fertig. Schön.")):
        write(event)
    assert raw.getvalue().decode("ascii").splitlines() == ["? memory view /memories", "  ? ?t? ?", "Fertig. Sch?n."]


def test_errors_notices_and_long_results_are_printed() -> None:
    assert printed(returned("No.", is_error=True)) == ["  ✗ No."]
    assert printed(Notice("refusal", "The model refused.")) == ["! The model refused."]
    assert printed(returned("\n".join("abcdefghij"))) == [
        *(f"  │ {letter}" for letter in "abcdef"),
        "  │ … 4 more lines",
    ]
    assert printed(returned("\n".join("abcdefg")))[-1] == "  │ … 1 more line"
    assert printed(returned("x" * 1000)) == [f"  │ {'x' * 160}…"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("done", "done"),
        ("stopped", "stopped by the user"),
        ("error", "failed"),
        ("refused", "refused"),
        ("max_turns", "out of turns"),
        ("max_tokens", "cut off"),
    ],
)
def test_every_ending_has_its_words(status: Status, words: str) -> None:
    assert printed(ended(status, turns=2)) == [f"{words} · 2 turns · 100 tokens in, 20 out"]


@pytest.mark.parametrize(("kind", "sign"), [("recording", "·"), ("compaction", "·"), ("max_cost", "!")])
def test_what_is_as_it_should_be_does_not_look_like_trouble(kind: NoticeKind, sign: str) -> None:
    events = [started(), Notice(kind, "It is so.")]
    assert f"{sign} It is so." in transcript.as_text(events)
    assert ('class="bad"' in transcript.as_html(events)) == (sign == "!")
    assert printed(*events)[-1] == f"{sign} It is so."


# -- approvals, costs, calls ---------------------------------------------------------------------------


def asked(answer: ApprovalAnswered | None = None) -> list[Event]:
    """A run whose one call had to be approved."""
    called = [ToolCalled("toolu_1", "bash", {"command": "rm -r /"}), ApprovalAsked("toolu_1", "bash", {})]
    return [started(), TurnStarted(1), *called, *([answer] if answer else [])]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "waits for your approval"),
        (ApprovalAnswered("toolu_1", "approved", "person"), "approved"),
        (ApprovalAnswered("toolu_1", "denied", "person"), "denied"),
        (ApprovalAnswered("toolu_1", "denied", "person", "not <b>now</b>\u202e"), "denied: not <b>now</b>⟨U+202E⟩"),
        (ApprovalAnswered("toolu_1", "denied", "policy"), "not allowed"),
        (ApprovalAnswered("toolu_1", "denied", "stop"), "not run"),
    ],
)
def test_how_it_stands_with_an_approval_is_said_below_its_call(answer: ApprovalAnswered | None, words: str) -> None:
    sign = "?" if answer is None else "✓" if answer.decision == "approved" else "✗"
    assert f"→ bash rm -r /\n  {sign} {words}" in transcript.as_text(asked(answer))
    assert "<b>now" not in transcript.as_html(asked(answer))
    assert printed(*asked(answer))[-1] == f"  {sign} {words}"


def test_a_call_that_was_denied_has_taken_no_time_and_has_not_failed() -> None:
    told = ToolReturned("toolu_1", "bash", "Not run.", True, 0.0)
    denied = transcript.as_html([*asked(ApprovalAnswered("toolu_1", "denied", "person")), told])
    assert ("✗ denied" in denied, "error" in denied, " ms" in denied) == (True, False, False)
    approved = transcript.as_html([*asked(ApprovalAnswered("toolu_1", "approved", "person")), told])
    assert ("error" in approved, " ms" in approved) == (True, True)


def test_answers_find_their_calls_in_whatever_order_they_come() -> None:
    calls = [ToolCalled(f"toolu_{n}", "bash", {"command": f"echo {n}"}) for n in (1, 2)]
    results = [ToolReturned(f"toolu_{n}", "bash", f"said {n}", False, 0.1) for n in (2, 1)]
    entries = transcript.entries([started(), TurnStarted(1), *calls, *results])
    assert [(entry.text, entry.result) for entry in entries[1:]] == [
        ("bash echo 1", "said 1"),
        ("bash echo 2", "said 2"),
    ]


def test_a_cost_that_is_known_stands_beside_the_tokens() -> None:
    events = [started(), *turn(TextDelta("Done.")), ended()]
    assert transcript.as_text(events, cost_usd=0.0123).endswith("20 out · $0.0123")
    assert "20 out · $1.50" in transcript.as_html(events, cost_usd=1.5)
    assert transcript.as_text(events).endswith("20 out")


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("bash", {"command": "ls -l\necho"}, "bash ls -l echo"),
        ("bash", {"restart": True}, "bash(restart=true)"),
        ("edit", {"file_path": "/a.md", "old_string": "x"}, "edit /a.md"),
        ("grep", {"pattern": "SI", "path": "/mnt"}, "grep SI /mnt"),
        ("glob", {"pattern": 5}, "glob(pattern=5)"),
        ("weather", {"city": "Bern"}, 'weather(city="Bern")'),
    ],
)
def test_a_call_is_a_line_that_says_what_it_does(name: str, given: dict[str, Any], line: str) -> None:
    assert transcript.call_line(name, given) == line
