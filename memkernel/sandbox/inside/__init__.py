"""What runs in a sandbox besides the person's code: the start of the kernel, the helper, the agent's tools.

These modules are sent as text (`python3 -c SOURCE`), so that an image needs nothing of memkernel: stdlib only,
Python 3.8, no import but of each other. The host takes the numbers of the protocol from them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

CONNECTION: Final = "MEMKERNEL_CONNECTION"
"""The kernel's variable with the connection info as JSON; it takes it out of its environment."""

_HELPER: Final = ("protocol", "processes", "loop", "links", "commands", "serve")
_TOOLS: Final = ("processes", "tools_paths", "tools_files", "tools_children", "tools_search", "tools_bash", "tools")

_SENT: Final = """\
import sys, types
for name, text in {modules!r}:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.modules[{last!r}].main(sys.argv[1:])
"""


def kernel_argv(python: str = "python3") -> list[str]:
    """The command that becomes the kernel; `CONNECTION` has to be in its environment."""
    return [python, "-c", _text("start")]


def helper_argv(prefix: str, python: str = "python3", *, kernel: list[str] | None = None) -> list[str]:
    """The command of the helper; its stdin and stdout are the channel.

    `prefix` is the connection info's `ip`. With `kernel` the helper starts that command itself, keeps all processes
    below it, and ends when the kernel does, with its exit code (128 + N after signal N). Without, it helps in a pid
    namespace whose first process leads to the kernel. The kernel's own output goes to the helper's stderr.
    """
    return [python, "-I", "-S", "-c", _source(_HELPER), prefix, *(kernel or ())]


def tools_argv(python: str = "python3") -> list[str]:
    """The command of the agent's tools: a server of JSON lines on its stdin and stdout."""
    return [python, "-I", "-S", "-c", _source(_TOOLS)]


@cache
def _source(modules: tuple[str, ...]) -> str:
    """The modules as one program; the last one's `main` runs."""
    names = [f"{__name__}.{name}" for name in modules]
    return _SENT.format(modules=[(name, _text(name.rpartition(".")[2])) for name in names], last=names[-1])


@cache
def _text(module: str) -> str:
    return resources.files(__name__).joinpath(f"{module}.py").read_text(encoding="utf-8")
