"""`text_of` and `html_of`: memkernel's records, and lists of them, as plain text and as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import singledispatch
from typing import Any, Final

from memkernel import paths
from memkernel.models import (
    GrepMatch,
    Memory,
    MemoryPrefix,
    MemoryStore,
    MemoryVersion,
    Page,
    StoreProblem,
    Verified,
)
from memkernel.render.cells import code, moment, moment_text, size_text
from memkernel.render.contents import headed_html, headed_text
from memkernel.render.diffs import diff_html, diff_text
from memkernel.render.lists import ROWS, records_html, records_text
from memkernel.render.marks import html_line, one_line
from memkernel.render.style import framed
from memkernel.render.tables import facts_html, facts_text
from memkernel.textdiff import TextDiff

HEAD_CHARACTERS: Final = 1_100


@singledispatch
def text_of(thing: object) -> str:
    """A record, or a list of records, as plain text: at most 60 lines, or 60 rows."""
    if is_dataclass(thing):
        return facts_text(_title(thing), _facts(thing))
    return headed_text("", str(thing))


@singledispatch
def html_of(thing: object) -> str:
    """The same as HTML: at most 24 KB, no script, no link, readable without its style."""
    if is_dataclass(thing):
        return facts_html(_title(thing), _facts(thing))
    return headed_html("", str(thing))


def _title(thing: object) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(thing).__name__).capitalize()


def _facts(thing: Any) -> Iterator[tuple[str, object]]:
    for field in fields(thing):
        value = getattr(thing, field.name)
        yield field.name.replace("_", " "), moment(value) if isinstance(value, datetime) else value


@text_of.register(list)
@text_of.register(tuple)
def _(thing: Sequence[object]) -> str:
    return records_text(thing[:ROWS], len(thing))


@html_of.register(list)
@html_of.register(tuple)
def _(thing: Sequence[object]) -> str:
    return records_html(thing[:ROWS], len(thing))


@text_of.register(Page)
def _(thing: Page[object]) -> str:
    return records_text(thing.data[:ROWS], len(thing.data))


@html_of.register(Page)
def _(thing: Page[object]) -> str:
    return records_html(thing.data[:ROWS], len(thing.data))


# -- stores ----------------------------------------------------------------------------------------


@text_of.register
def _(thing: MemoryStore) -> str:
    return facts_text(thing.name, _store_facts(thing))


@html_of.register
def _(thing: MemoryStore) -> str:
    return facts_html(thing.name, _store_facts(thing))


def _store_facts(store: MemoryStore) -> Iterator[tuple[str, object]]:
    yield "slug", code(paths.mount_slug(store.name, store.id))
    if store.description:
        yield "description", store.description
    yield "memories", store.memory_count
    yield "changes", store.head_seq
    yield "created", moment(store.created_at)
    if store.archived_at:
        yield "archived", moment(store.archived_at)
    if store.metadata:
        yield "metadata", ", ".join(f"{key}={value}" for key, value in store.metadata.items())
    yield "id", code(store.id)


@text_of.register
def _(thing: Verified) -> str:
    return headed_text(_verdict(thing), "\n".join(map(_problem_line, thing.problems)) or None)


@html_of.register
def _(thing: Verified) -> str:
    return headed_html(
        html_line(_verdict(thing), HEAD_CHARACTERS), "\n".join(map(_problem_line, thing.problems)) or None
    )


def _verdict(checked: Verified) -> str:
    counts = f"changes {checked.changes:,}, versions left {checked.versions:,}, memories {checked.memories:,}"
    if checked.problems:
        count = len(checked.problems)
        return one_line(f"{checked.name}: {count:,} {'thing is' if count == 1 else 'things are'} wrong ({counts})")
    return one_line(f"{checked.name} is whole: every number, text and memory is as it was written ({counts})")


def _problem_line(problem: StoreProblem) -> str:
    """`change 7, /a.md: its text has 6 bytes, and should have 2`."""
    about = ", ".join(filter(None, (f"change {problem.seq:,}" if problem.seq else "", problem.path)))
    return one_line(f"{about}: {problem.problem}" if about else problem.problem)


# -- memories and their versions -------------------------------------------------------------------


@text_of.register
def _(thing: Memory) -> str:
    facts = f"{size_text(thing.content_size_bytes)} · {moment_text(thing.updated_at)} UTC · {thing.memory_version_id}"
    return headed_text(f"{one_line(thing.path)} · {facts}", thing.content)


@html_of.register
def _(thing: Memory) -> str:
    exactly = thing.updated_at.isoformat()
    time = f'<time datetime="{exactly}" title="{exactly}">{moment_text(thing.updated_at)} UTC</time>'
    path, version = html_line(thing.path, HEAD_CHARACTERS), html_line(thing.memory_version_id, HEAD_CHARACTERS)
    facts = f"{size_text(thing.content_size_bytes)} · {time} · <code>{version}</code>"
    return headed_html(f"<strong>{path}</strong> · {facts}", thing.content)


@text_of.register
def _(thing: MemoryPrefix) -> str:
    return one_line(thing.path)


@html_of.register
def _(thing: MemoryPrefix) -> str:
    return framed(f"<p><code>{html_line(thing.path, HEAD_CHARACTERS)}</code></p>")


@text_of.register
def _(thing: MemoryVersion) -> str:
    return headed_text(version_line(thing), thing.content)


@html_of.register
def _(thing: MemoryVersion) -> str:
    return headed_html(html_line(version_line(thing), HEAD_CHARACTERS), thing.content)


def version_line(version: MemoryVersion, *, with_path: bool = True) -> str:
    """`@7 /a.md modified by user_ann 2026-11-30 09:21`; without its path where that is said elsewhere."""
    by = f" by {version.created_by.id}" if version.created_by else ""
    path = f"{version.path or '(redacted)'} " if with_path else ""
    line = f"@{version.ordinal} {path}{version.operation}{by} {moment_text(version.created_at)}"
    return one_line(f"{line}, {redaction(version)}" if version.redacted_at else line)


def redaction(version: MemoryVersion) -> str:
    """`redacted by user_ann 2026-11-30 09:25`; nothing where it is not."""
    by = f" by {version.redacted_by.id}" if version.redacted_by else ""
    return f"redacted{by} {moment_text(version.redacted_at)}" if version.redacted_at else ""


@text_of.register
def _(thing: GrepMatch) -> str:
    return f"{one_line(thing.path)}:{thing.line}: {one_line(thing.text)}"


@html_of.register
def _(thing: GrepMatch) -> str:
    return framed(f"<p><code>{html_line(text_of(thing), HEAD_CHARACTERS)}</code></p>")


@text_of.register
def _(thing: TextDiff) -> str:
    return diff_text(thing, "old", "new")


@html_of.register
def _(thing: TextDiff) -> str:
    return diff_html(thing, "old → new", "")
