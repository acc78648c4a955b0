"""memkernel: an agent's memory that is real, in a Jupyter notebook.

    import memkernel as mk
    notes = mk.connect().store("Team notes", create=True)
    notes.write("/units.md", "SI")

or, in a notebook, `%load_ext memkernel`. Names are loaded when they are first used: importing
memkernel itself costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from memkernel.agent.memory_tool import AsyncMemoryTool as AsyncMemoryTool
    from memkernel.agent.memory_tool import MemoryTool as MemoryTool
    from memkernel.errors import MemkernelError as MemkernelError
    from memkernel.errors import MemoryToolError as MemoryToolError
    from memkernel.handle.agent import Agent as Agent
    from memkernel.handle.connection import Connection as Connection
    from memkernel.handle.connection import connect as connect
    from memkernel.handle.diff import Diff as Diff
    from memkernel.handle.mounts import read_only as read_only
    from memkernel.handle.mounts import read_write as read_write
    from memkernel.handle.sandbox import Sandbox as Sandbox
    from memkernel.handle.store import Store as Store
    from memkernel.models import ABSENT as ABSENT
    from memkernel.models import Memory as Memory
    from memkernel.models import MemoryPrefix as MemoryPrefix
    from memkernel.models import MemoryStore as MemoryStore
    from memkernel.models import MemoryVersion as MemoryVersion
    from memkernel.tool.commands import MemoryBackend as MemoryBackend
    from memkernel.tool.paths import MemoryPath as MemoryPath

__version__ = "0.1.0"

_HOMES = {
    "ABSENT": "models",
    "Agent": "handle.agent",
    "AsyncMemoryTool": "agent.memory_tool",
    "Connection": "handle.connection",
    "Diff": "handle.diff",
    "MemkernelError": "errors",
    "Memory": "models",
    "MemoryBackend": "tool.commands",
    "MemoryPath": "tool.paths",
    "MemoryPrefix": "models",
    "MemoryStore": "models",
    "MemoryTool": "agent.memory_tool",
    "MemoryToolError": "errors",
    "MemoryVersion": "models",
    "Sandbox": "handle.sandbox",
    "Store": "handle.store",
    "connect": "handle.connection",
    "read_only": "handle.mounts",
    "read_write": "handle.mounts",
}

__all__ = [
    "ABSENT",
    "Agent",
    "AsyncMemoryTool",
    "Connection",
    "Diff",
    "MemkernelError",
    "Memory",
    "MemoryBackend",
    "MemoryPath",
    "MemoryPrefix",
    "MemoryStore",
    "MemoryTool",
    "MemoryToolError",
    "MemoryVersion",
    "Sandbox",
    "Store",
    "connect",
    "read_only",
    "read_write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """`%load_ext memkernel`."""
    import_module(f"{__name__}.jupyter.extension").load(ipython)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """`%unload_ext memkernel`."""
    import_module(f"{__name__}.jupyter.extension").unload(ipython)
