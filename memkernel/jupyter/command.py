"""One command of `%memory`: its name, its arguments, and the function that carries it out."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from memkernel.jupyter.arguments import Parser
from memkernel.jupyter.notebook import Notebook

Run = Callable[[Notebook, Namespace, str | None], object]


@dataclass(frozen=True)
class Command:
    """A command. `run` gets the notebook, the parsed line and the cell's body, and returns what is to be shown.

    `body` says whether the command stands in a line (`never`), in a cell (`always`), or in either; `offline`, that
    it needs no database.
    """

    name: str
    summary: str
    declare: Callable[[Parser], None]
    run: Run
    examples: tuple[str, ...] = ()
    body: Literal["never", "either", "always"] = "never"
    offline: bool = False

    @property
    def magic(self) -> str:
        """How it is called in front of its arguments."""
        return f"{'%%' if self.body == 'always' else '%'}memory {self.name}"

    @cached_property
    def parser(self) -> Parser:
        """The parser of its line, made when it is first needed."""
        parser = Parser(self.magic, summary=self.summary, examples=self.examples)
        self.declare(parser)
        return parser
