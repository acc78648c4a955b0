"""`%memory config`: how this kernel shows things."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from memkernel.jupyter.arguments import Parser
from memkernel.jupyter.command import Command
from memkernel.jupyter.done import Done
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.preferences import Preferences, find


def _declare_config(parser: Parser) -> None:
    parser.add_argument("name", metavar="SETTING", nargs="?", help="default: all of them")
    parser.add_argument("value", metavar="VALUE", nargs="?", help="its new value")


def config(notebook: Notebook, args: Namespace, body: str | None) -> Preferences | Done:
    """Show the settings of this kernel, or change one."""
    preferences = notebook.preferences
    if args.name is None:
        return preferences
    find(args.name)
    if args.value is not None:
        preferences.set(args.name, args.value)
    return Done(1, preferences.line(args.name))


COMMANDS: Final = (
    Command(
        "config",
        "Show or change how this kernel shows things.",
        _declare_config,
        config,
        ("%memory config", "%memory config traceback on", "%memory config limit 200"),
        offline=True,
    ),
)
