"""The words of `%memory help`, `%memory?` and `%%agent?`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from memkernel.jupyter.command import Command

_GRAMMAR: Final = """\
PATH     /path in the store in use (`%memory use STORE`), or STORE:/path with a store's id, name or slug.
VERSION  @3, @-1 (the one before the head), @head, @memver_… or @2026-11-30T10:00 (UTC), glued to a path or alone.
         A path that itself ends like this is written with @head behind it: /odd@3@head
Quotes   "/my notes/it's.md" or /my\\ notes/it's.md; after -- everything is a plain word: cat -- -x.md
Results  x = %memory ls, the underscore, or -o x; lists have .df(). $name and {expression} stand for Python values.

`%memory COMMAND --help` tells all about one command."""


def overview(commands: Iterable[Command]) -> str:
    """The commands in a line each, and the grammar."""
    rows = "\n".join(f"  {command.magic:<18} {command.summary}" for command in commands)
    return f"%memory: an agent's memory, kept in PostgreSQL, every change a version.\n\n{rows}\n\n{_GRAMMAR}"
