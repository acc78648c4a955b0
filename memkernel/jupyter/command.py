"""What a magic can be told: its commands, and which of them a line or a cell means."""

from __future__ import annotations

import difflib
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from IPython.core.error import UsageError

from memkernel.jupyter.arguments import Parser
from memkernel.jupyter.notebook import Notebook

Run = Callable[[Notebook, Namespace, str | None], object]


@dataclass(frozen=True)
class Command:
    """A command. `run` gets the notebook, the parsed line and the cell's body, and returns what is to be shown.

    `body` says whether the command stands in a line (`never`), in a cell (`always`), or in either; `offline`, that
    it needs no database. A command without a name is what the cell magic alone means, as `%%agent`; in a line it stands
    with its options, as `%agent --replay demo`.
    """

    name: str
    summary: str
    declare: Callable[[Parser], None]
    run: Run
    examples: tuple[str, ...] = ()
    body: Literal["never", "either", "always"] = "never"
    offline: bool = False
    of: str = "memory"

    @property
    def magic(self) -> str:
        """How it is called in front of its arguments."""
        return f"{'%%' if self.body == 'always' or not self.name else '%'}{self.of} {self.name}".rstrip()

    @cached_property
    def parser(self) -> Parser:
        """The parser of its line, made when it is first needed."""
        parser = Parser(self.magic, summary=self.summary, examples=self.examples)
        self.declare(parser)
        return parser


@dataclass(frozen=True)
class Magic:
    """A magic and all its commands.

    Attributes:
        name: as it is typed, without its marks.
        summary: what it is, in a line.
        commands: by name, in the order in which the help lists them.
        bare: the command that a line without one means.
        cell: what a cell is whose first line names no command, as `%%agent`; None where a cell needs one.
        other_words: what other tools call the commands.
        see_also: what other magics there are, for the overview.
    """

    name: str
    summary: str
    commands: Mapping[str, Command] = field(default_factory=dict[str, Command])
    bare: str = ""
    cell: Command | None = None
    other_words: Mapping[str, str] = field(default_factory=dict[str, str])
    see_also: tuple[Command, ...] = ()

    def all_commands(self) -> list[Command]:
        """The cell's own command and all that have a name."""
        return [*([self.cell] if self.cell else []), *self.commands.values()]

    def choose(self, line: str, *, is_cell: bool) -> tuple[Command, str]:
        """The command that a line means, and the rest of the line.

        Raises:
            UsageError: there is no such command; names that look like it are told.
        """
        name, _, rest = line.strip().partition(" ")
        if self.cell is not None and name not in self.commands and (is_cell or self._is_cell_in_a_line(name)):
            return self.cell, line
        return (self.find(self.bare), line) if name.startswith("-") else (self.find(name or self.bare), rest)

    def _is_cell_in_a_line(self, name: str) -> bool:
        """IPython takes no cell without a body: where the options say all, they stand in a line."""
        return self.cell is not None and self.cell.body == "either" and name.startswith("-")

    def find(self, name: str) -> Command:
        """The command of this name.

        Raises:
            UsageError: there is none; names that look like it are told.
        """
        if name in self.commands:
            return self.commands[name]
        alike = difflib.get_close_matches(name, [*self.commands, *self.other_words], n=3)
        near = dict.fromkeys(self.other_words.get(word, word) for word in alike)
        cell = f"; or a cell: %%{self.name}" if self.cell is not None else ""
        hint = f"Near: {', '.join(near)}" if near else f"Commands: {', '.join(self.commands)}{cell}"
        raise UsageError(f"%{self.name} has no command {name!r}\n{hint}")

    def names(self, mark: str) -> list[str]:
        """The commands that a line (`%`) or a cell (`%%`) can begin with."""
        unfit = "always" if mark == "%" else "never"
        return [name for name, command in self.commands.items() if command.body != unfit]


def by_name(commands: Iterable[Command]) -> dict[str, Command]:
    """The commands by their names, in their order."""
    return {command.name: command for command in commands}
