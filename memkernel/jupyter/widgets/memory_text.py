"""What the page shows of one version: its text, what is told of it, and why there may be no text."""

from __future__ import annotations

from typing import Any, Final

from memkernel.handle.diff import absence
from memkernel.jupyter.widgets.diff_rows import marked_part
from memkernel.jupyter.widgets.preview import preview
from memkernel.jupyter.widgets.rows import version_row
from memkernel.models import MemoryVersion
from memkernel.render import moment_text, one_line, size_text

_ACTORS: Final = {
    "session_actor": "session",
    "user_actor": "person",
    "api_actor": "API key",
    "service_account_actor": "service account",
}


def content_of(version: MemoryVersion, newest: MemoryVersion, *, readonly: bool) -> dict[str, Any]:
    """A version with its content, as the page wants it.

    Args:
        version: with its content.
        newest: of the same memory.
        readonly: nothing can be changed there.

    Returns:
        path (as it is stored, `""` once erased), version (a row), text (None where there is none), nodes (the text as
        Markdown), cut (nodes are not all), note (why there is no text), facts (a sentence), state (a word or two),
        sha256, live (its memory is), head (it is the head of a live memory), restorable.
    """
    text = None if version.operation == "deleted" else version.content
    is_live = newest.operation != "deleted"
    is_head = is_live and newest.id == version.id
    nodes, is_cut = ([], False) if text is None else preview(text)
    return {
        "path": version.path or "",
        "version": version_row(version),
        "text": None if text is None else marked_part(text),
        "nodes": nodes,
        "cut": is_cut,
        "note": one_line(absence(version)),
        "facts": facts(version),
        "state": "" if is_head else "not the head" if is_live else "deleted",
        "sha256": version.content_sha256 or "",
        "live": is_live,
        "head": is_head,
        "restorable": text is not None and not is_head and not readonly,
    }


def facts(version: MemoryVersion) -> str:
    """`@7 · modified 2026-11-30 09:21 UTC · session sesn_… · 12.3 KB`"""
    size = version.content_size_bytes
    parts = [
        f"@{version.ordinal}",
        f"{version.operation} {moment_text(version.created_at)} UTC",
        actor_words(version),
        "" if size is None else size_text(size),
    ]
    return " · ".join(part for part in parts if part)


def by_whom(version: MemoryVersion) -> str:
    """`by person user_ann at 2026-11-30 09:21 UTC (@3)`"""
    who = actor_words(version)
    return f"{f'by {who} ' if who else ''}at {moment_text(version.created_at)} UTC (@{version.ordinal})"


def actor_words(version: MemoryVersion) -> str:
    """`session sesn_…`, `person user_ann`; `""` where nobody is known."""
    by = version.created_by
    return one_line(f"{_ACTORS[by.type]} {by.id}") if by else ""
