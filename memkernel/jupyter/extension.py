"""`%load_ext memkernel`: the magics, their completion, and how records look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from memkernel.errors import MemkernelError
from memkernel.jupyter import presenters
from memkernel.jupyter.commands.table import MAGICS
from memkernel.jupyter.complete import MATCHER_ID, Completer
from memkernel.jupyter.magics import MemoryMagics
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.shell import Shell

BEFORE_CELL: Final = "pre_run_cell"
AFTER_CELL: Final = "post_run_cell"

_notebooks: Final[WeakKeyDictionary[Shell, Notebook]] = WeakKeyDictionary()


def load(shell: Shell) -> None:
    """Register everything, connect, and print one line: which PostgreSQL is used.

    Where none can be reached the magics are there all the same, and the error is told in two lines; the next
    command tries again.
    """
    unload(shell)
    notebook = _notebooks.setdefault(shell, Notebook(shell))
    notebook.preferences.apply()
    shell.register_magics(MemoryMagics(shell, notebook))
    shell.Completer.custom_matchers.append(Completer(notebook).match)
    shell.events.register(AFTER_CELL, notebook.sandboxes.after_cell)
    shell.events.register(BEFORE_CELL, notebook.outputs.living.begin_cell)
    presenters.register(shell, notebook.outputs)
    try:
        print(notebook.begin())
    except MemkernelError as error:
        print("\n".join(error.lines()))


def unload(shell: Shell) -> None:
    """Take everything back; nothing happens where nothing was loaded.

    What the notebook remembers stays for the next load: `%reload_ext` is an unload and a load, and must lose neither
    the store in use nor a change whose outcome is still unknown; sandboxes and the server go on, and are
    saved and ended with the kernel.
    """
    notebook = _notebooks.get(shell)
    if notebook is None:
        return
    for kind in ("line", "cell"):
        for name in MAGICS:
            shell.magics_manager.magics[kind].pop(name, None)
    _stop_calling(shell, AFTER_CELL, notebook.sandboxes.after_cell)
    _stop_calling(shell, BEFORE_CELL, notebook.outputs.living.begin_cell)
    shell.Completer.custom_matchers[:] = [
        matcher
        for matcher in shell.Completer.custom_matchers
        if getattr(matcher, "matcher_identifier", None) != MATCHER_ID
    ]
    if notebook.sandboxes.open:
        names = ", ".join(notebook.sandboxes.names)
        print(f"Still running: sandbox {names}. `%load_ext memkernel` brings `%sandbox` back.")
    if notebook.serving is not None and notebook.serving.is_alive:
        print(f"Still serving: {notebook.serving.url}. `%load_ext memkernel` brings `%memory serve --stop` back.")
    if notebook.agents.running:
        runs = ", ".join(run.id for run in notebook.agents.running)
        print(f"Still running: {runs}. `%load_ext memkernel` brings `%agent stop` back.")
    presenters.unregister(shell)
    Preferences().apply()
    notebook.rest()


def _stop_calling(shell: Shell, event: str, callback: Callable[..., None]) -> None:
    if callback in shell.events.callbacks[event]:
        shell.events.unregister(event, callback)
