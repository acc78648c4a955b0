"""Runs as records: alone and in lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from memkernel.models import Cause, MemoryVersion, RunRecord, RunStatus, Usage
from memkernel.render import (
    HTML_BYTES,
    RUN_WORDS,
    TEXT_LINES,
    Cell,
    caused_row,
    dollars_text,
    html_of,
    request_html,
    request_text,
    text_of,
    who_answered,
)

BEGUN = datetime(2026, 11, 30, 9, 21, tzinfo=UTC)
RUN = RunRecord(
    id="run_1",
    session_id="sesn_1",
    kind="live",
    model="claude-sonnet-5-5",
    prompt="Tidy the notes\nand <b>say</b> so\u202e",
    status="done",
    turns=3,
    stop_reason="end_turn",
    usage=Usage(1_000, 200, 30, 4),
    cost_usd=0.0123,
    memory_store_ids=("memstore_1",),
    previous_run_id=None,
    error="",
    started_at=BEGUN,
    seen_at=BEGUN,
    ended_at=BEGUN + timedelta(seconds=90),
)
VERSION = MemoryVersion(
    id="memver_1",
    memory_store_id="memstore_1",
    memory_id="mem_1",
    seq=1,
    ordinal=1,
    operation="created",
    path="/units.md",
    content=None,
    content_sha256="0" * 64,
    content_size_bytes=3,
    created_at=BEGUN,
    created_by=None,
    redacted_at=None,
    redacted_by=None,
)


def test_a_list_of_runs_is_a_table() -> None:
    head, _, row, *_ = text_of([RUN]).splitlines()
    assert head.split() == ["started", "status", "model", "turns", "tokens", "cost", "prompt", "id"]
    for said in ("2026-11-30 09:21", "done", "claude-sonnet-5-5", "1,234", "$0.0123", "Tidy the notes↵", "run_1"):
        assert said in row
    html = html_of([RUN])
    assert "&lt;b&gt;say" in html
    assert "1,000 tokens in, 200 out, 34 through the cache" in html


def test_one_run_is_told_whole() -> None:
    text = text_of(replace(RUN, status="error", error="the API refused", previous_run_id="run_0"))
    assert text.splitlines()[0] == "run_1 · failed"
    for name, value in {
        "prompt": "Tidy the notes↵and <b>say</b> so⟨U+202E⟩",
        "cost": "$0.0123",
        "took": "1 min 30 s",
        "error": "the API refused",
        "stop reason": "end_turn",
        "store": "memstore_1",
        "goes on with": "run_0",
        "session": "sesn_1",
    }.items():
        assert any(line.split() == [*name.split(), *value.split()] for line in text.splitlines()), name
    assert "<b>say" not in html_of(RUN)


def test_what_is_not_known_is_said_or_left_out() -> None:
    running = replace(RUN, status="running", stop_reason=None, ended_at=None, cost_usd=None, memory_store_ids=())
    text = text_of(running)
    assert "unknown: no price is known for the model" in text
    assert not {"took", "error", "store", "goes"} & {line.split()[0] for line in text.splitlines()}
    assert "$" not in text_of([running])


@pytest.mark.parametrize("status", get_args(RunStatus))
def test_every_status_has_words(status: RunStatus) -> None:
    assert RUN_WORDS[status] in text_of([replace(RUN, status=status)])


@pytest.mark.parametrize(
    ("cost_usd", "text"),
    [
        (None, ""),
        (0, "$0"),
        (0.000_001, "under $0.0001"),
        (0.0042, "$0.0042"),
        (0.42, "$0.42"),
        (1_234.5, "$1,234.50"),
    ],
)
def test_money_is_short_and_never_rounded_to_nothing(cost_usd: float | None, text: str) -> None:
    assert dollars_text(cost_usd) == text


def test_who_answered_names_what_is_no_model() -> None:
    assert who_answered("claude-sonnet-5-5", "live") == "claude-sonnet-5-5"
    assert who_answered("claude-sonnet-5-5", "recorded") == "claude-sonnet-5-5, recorded"
    assert who_answered("scripted", "scripted") == "scripted"


# -- a request that is not sent ------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    part: str
    tokens: int


PARTS = [Part("system", 24), Part("prompts", 7)]


def test_a_request_is_its_head_its_parts_and_the_two_ends_of_its_body() -> None:
    body = "\n".join(f"line {number}" for number in range(1_000))
    lines = request_text("Not sent.", PARTS, body).split("\n")
    assert len(lines) <= TEXT_LINES
    assert lines[0] == "Not sent."
    assert [line.split() for line in lines[1:5:2]] == [["part", "tokens"], ["system", "24"]]
    assert {"line 0", "line 999"} < set(lines)
    assert request_text("Not sent.", [], "{}") == "Not sent.\n{}"


def test_as_html_it_is_within_limits_and_nothing_of_it_is_markup() -> None:
    html = request_html("Not <b>sent</b>.", PARTS, '{"text": "<script>\u202e"}\n' * 5_000)
    assert len(html.encode()) <= HTML_BYTES
    assert "<script" not in html
    assert "Not &lt;b&gt;sent" in html
    assert "of 5,001 lines shown" in html


# -- versions and what made them -----------------------------------------------------------------------


def test_a_version_names_its_run_and_call_where_an_agent_made_it() -> None:
    by_agent = caused_row(VERSION, Cause("run_1", "toolu_1"))
    by_person = caused_row(VERSION, None)
    assert list(by_agent)[-2:] == ["run", "call"]
    assert "run_1" in text_of([by_agent, by_person])
    assert [row["run"] for row in (by_agent, by_person)] == [Cell("run_1", is_code=True), Cell("", is_code=True)]
