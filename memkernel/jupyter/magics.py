"""The magics: parse a line, let a command run, hand over what it returns."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from memkernel.errors import DatabaseUnavailableError
from memkernel.jupyter import usage, words
from memkernel.jupyter.arguments import HelpShown
from memkernel.jupyter.command import Command, Magic
from memkernel.jupyter.commands import table
from memkernel.jupyter.commands.agent import stopped
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.shell import Shell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_HELP = ("-h", "--help")


@magics_class
class MemoryMagics(Magics):
    """`%memory`, `%agent`, `%sandbox`, and the same as cells."""

    def __init__(self, shell: Shell, notebook: Notebook) -> None:
        super().__init__(cast("InteractiveShell", shell))
        self.notebook = notebook

    @line_cell_magic
    def memory(self, line: str, cell: str | None = None) -> Any:
        return self._obey(table.MEMORY, line, cell)

    @line_cell_magic
    def agent(self, line: str, cell: str | None = None) -> Any:
        try:
            return self._obey(table.AGENT, line, cell)
        except KeyboardInterrupt:  # before a run has begun, or after it: in between it ends as stopped
            raise stopped() from None

    @line_cell_magic
    def sandbox(self, line: str, cell: str | None = None) -> Any:
        return self._obey(table.SANDBOX, line, cell)

    def _obey(self, magic: Magic, line: str, cell: str | None) -> Any:
        name, _, rest = line.strip().partition(" ")
        if name == "help" or (name in _HELP and (cell is None or magic.cell is None)):
            return _help(magic, rest.strip())
        command, rest = magic.choose(line, is_cell=cell is not None)
        if not set(_HELP) & set(words.split(rest)):
            _check_body(command, cell)
        return self._run(command, rest, cell)

    def _run(self, command: Command, line: str, cell: str | None) -> Any:
        try:
            args = command.parser.parse_line(line)
        except HelpShown:
            return None
        if not command.offline:
            self.notebook.tell_settled()
        try:
            return self._deliver(command.run(self.notebook, args, cell), args)
        except DatabaseUnavailableError as error:
            self.notebook.lost(f"{command.magic} {line}", error)
            raise
        finally:
            self.notebook.known.expire()

    def _deliver(self, result: Any, args: Namespace) -> Any:
        given = vars(args)
        if given.get("df"):
            result = result.df()
        if given.get("out"):
            self.notebook.shell.push({args.out: result})
        return None if given.get("quiet") else result


def _help(magic: Magic, name: str) -> None:
    if not name:
        print(usage.overview(magic))
        return
    cells = {command.of: command for command in (*magic.all_commands(), *magic.see_also) if not command.name}
    command = cells.get(name) or magic.find(name)
    print(command.parser.format_help())


def _check_body(command: Command, cell: str | None) -> None:
    if cell is not None and command.body == "never":
        raise UsageError(
            f"{command.name} takes no cell body\nWrite it in a line of its own: `%{command.of} {command.name} …`"
        )
    if cell is None and command.body == "always":
        raise UsageError(
            f"{command.name} needs a cell\nWrite `{command.magic}` in the cell's first line, the text below."
        )


MemoryMagics.memory.__doc__ = usage.overview(table.MEMORY)
MemoryMagics.agent.__doc__ = usage.overview(table.AGENT)
MemoryMagics.sandbox.__doc__ = usage.overview(table.SANDBOX)
