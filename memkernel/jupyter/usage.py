"""The words of `%memory help`, `%agent help`, `%sandbox help`, and of `%memory?` and the like."""

from __future__ import annotations

from typing import Final

from memkernel.jupyter.command import Command, Magic

_GRAMMARS: Final = {
    "memory": """\
PATH     /path in the store in use (`%memory use STORE`), or STORE:/path with a store's id, name or slug.
VERSION  @3, @-1 (the one before the head), @head, @memver_… or @2026-11-30T10:00 (UTC), glued to a path or alone.
         A path that itself ends like this is written with @head behind it: /odd@3@head
Quotes   "/my notes/it's.md" or /my\\ notes/it's.md; after -- everything is a plain word: cat -- -x.md
Results  x = %memory ls, the underscore, or -o x; lists have .df(). $name and {expression} stand for Python values.
""",
    "agent": """\
RUN      last, or an id as `%agent ls` shows it: of this kernel, of another one, of a kernel that is gone.
STORE    a store's id, name or slug: the agent's memory. Without it the store in use; with --sandbox none, for the
         sandbox's folders are the memory.
Going on A conversation goes on from cell to cell, one for each store and sandbox, until `%%agent --new`.
         --resume goes on with an earlier run's, after a restart of the kernel, too.
Limits   What a run may take: --max-turns, --max-total-tokens, --max-cost, --max-time. At one of them it ends in order.
Approval --approve ask asks before each call, --approve-tool bash=ask before those of one tool.
Offline  --replay demo answers from a recording, --model scripted by rules; both say so, and their calls are real.
No text  Where the options say all, it is a line and no cell: `%agent --replay demo`, `%agent --resume`.
""",
    "sandbox": """\
STORE    a store's id, name or slug; it is the folder /mnt/memory/SLUG in the sandbox. Without --store and --ro it is
         the store in use (`%memory use STORE`), read and written.
SANDBOX  a name of your choice. What names none means the sandbox that was started last.
PATH     /path in the store that is mounted, or STORE:/path where several are.
Saving   When a cell ends, also one that failed, its changes are versions in the stores; the report says which.
         What was changed in a store meanwhile is never overwritten: `%sandbox changes` shows both texts.
""",
}


def overview(magic: Magic) -> str:
    """The commands in a line each, and the grammar; of a magic without commands its options."""
    if not magic.commands:
        return "\n".join(command.parser.format_help() for command in magic.all_commands())
    rows = "\n".join(map(_row, [*magic.all_commands(), *magic.see_also]))
    more = f"`%{magic.name} COMMAND --help` tells all about one command."
    return f"%{magic.name}: {_begun_small(magic.summary)}\n\n{rows}\n\n{_GRAMMARS[magic.name]}\n{more}"


def _row(command: Command) -> str:
    return f"  {command.magic:<18} {command.summary}"


def _begun_small(sentence: str) -> str:
    """As it goes on after a colon; a name keeps its capital."""
    first, space, rest = sentence.partition(" ")
    return f"{first.lower() if first in ('A', 'An', 'The') else first}{space}{rest}"
