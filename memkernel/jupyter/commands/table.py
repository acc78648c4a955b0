"""All commands of `%memory` by name, in the order in which the help lists them."""

from __future__ import annotations

import difflib
from typing import Final

from IPython.core.error import UsageError

from memkernel.jupyter.command import Command
from memkernel.jupyter.commands import configuring, history, query, reading, stores, writing

COMMANDS: Final[dict[str, Command]] = {
    command.name: command
    for group in (stores, reading, writing, history, query, configuring)
    for command in group.COMMANDS
}

# What other tools call these.
_OTHER_WORDS: Final = {
    "cp": "put",
    "delete": "rm",
    "edit": "replace",
    "find": "grep",
    "history": "log",
    "init": "connect",
    "list": "ls",
    "move": "mv",
    "query": "sql",
    "read": "cat",
    "rename": "mv",
    "search": "grep",
    "show": "cat",
    "undo": "restore",
    "write": "put",
}


def find(name: str) -> Command:
    """The command of this name.

    Raises:
        UsageError: there is none; names that look like it are told.
    """
    if name in COMMANDS:
        return COMMANDS[name]
    alike = difflib.get_close_matches(name, [*COMMANDS, *_OTHER_WORDS], n=3)
    near = dict.fromkeys(_OTHER_WORDS.get(word, word) for word in alike)
    hint = f"Near: {', '.join(near)}" if near else f"Commands: {', '.join(COMMANDS)}"
    raise UsageError(f"%memory has no command {name!r}\n{hint}")
