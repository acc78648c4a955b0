"""What `%%sandbox` and `%sandbox start` have in common: the options that make a sandbox, and the start itself."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from memkernel.errors import MemkernelError, SandboxError
from memkernel.jupyter.arguments import Parser, count, variable
from memkernel.jupyter.notebook import Notebook
from memkernel.jupyter.presenters import first_line
from memkernel.jupyter.progress import Progress
from memkernel.jupyter.sandboxes import Ask, Stores
from memkernel.jupyter.shell import can_update
from memkernel.models import Access
from memkernel.render import report_line

if TYPE_CHECKING:
    from memkernel.handle.sandbox import Sandbox

POLICIES: Final = ("error", "merge")

# Options of the line that `mk.Sandbox` takes by the same names.
_MAKING: Final = ("backend", "image", "network", "memory", "cpus", "pids")


def takes_sandbox(parser: Parser, what: str = "which sandbox; default: the one started last") -> None:
    """--name SANDBOX."""
    parser.add_argument("--name", metavar="SANDBOX", help=what)


def takes_policy(parser: Parser, default: str) -> None:
    """--on-conflict error|merge."""
    parser.add_argument(
        "--on-conflict",
        choices=POLICIES,
        help=f"of a file that the store has changed meanwhile: {default}",
    )


def puts_result(parser: Parser, what: str) -> None:
    """-o VAR and -q, of a result that is handed over also where the command ends with an error."""
    parser.add_argument("-o", "--out", dest="variable", metavar="VAR", type=variable, help=f"put {what} into it")
    parser.add_argument("-q", "--quiet", dest="silent", action="store_true", help="show nothing")


def makes_sandbox(parser: Parser) -> None:
    """The stores, the image and the limits."""
    parser.add_argument(
        "-s",
        "--store",
        metavar="STORE",
        action="append",
        help="mount a store; may be repeated; default: the one in use",
    )
    parser.add_argument("--ro", metavar="STORE", action="append", help="mount a store read-only; may be repeated")
    made = parser.add_argument_group("how it is made", "only where it is started")
    made.add_argument("--backend", choices=("docker", "local"), help="local: processes of this machine, NOT isolated")
    made.add_argument("--image", metavar="IMAGE", help="an image of yours, with python3 and ipykernel")
    made.add_argument("--package", metavar="NAME", action="append", help="install it; may be repeated")
    made.add_argument("--network", metavar="NETWORK", help="none (default), bridge, or a network of yours")
    made.add_argument("--memory", metavar="SIZE", help="default: 512m")
    made.add_argument("--cpus", metavar="N", type=float, help="default: 2")
    made.add_argument("--pids", metavar="N", type=count, help="processes and threads at most; default: 256")


def ask_of(notebook: Notebook, args: Namespace) -> Ask:
    """What the line asks for, its stores looked up.

    Raises:
        StoreNotFoundError, AmbiguousStoreError: a name is no store's, or several stores'.
    """
    named: tuple[tuple[Access, list[str] | None], ...] = (("read_write", args.store), ("read_only", args.ro))
    stores: Stores = tuple((notebook.store(ref), access) for access, refs in named for ref in refs or ())
    options: dict[str, Any] = {name: getattr(args, name) for name in _MAKING if getattr(args, name) is not None}
    if args.package:
        options["packages"] = tuple(args.package)
    return Ask(stores, options)


def started(notebook: Notebook, name: str | None, ask: Ask, *, silent: bool = False) -> Sandbox:
    """A new sandbox; its first line says what keeps the code in. Without stores it has the one in use.

    Raises:
        NoStoreInUseError: no store is named, and none is in use.
        SandboxError: it cannot be started, or the start was interrupted.
    """
    name, ask = notebook.sandboxes.again(name, ask)
    was_lost = notebook.sandboxes.was_lost(name)
    if not ask.stores:
        ask = Ask(((notebook.store(), "read_write"),), ask.options)
    progress = Progress(live=can_update(notebook.shell))
    try:
        box = notebook.sandboxes.start(name, ask, progress)
    except KeyboardInterrupt:
        progress.end("The start was interrupted")
        raise SandboxError("the start was interrupted", hint="No sandbox was started.") from None
    except MemkernelError:
        progress.end("The start failed")
        raise
    progress.end("The image is ready")
    for earlier in box.recovered:
        which = f"sandbox {earlier.title or earlier.session_id}, which was left behind, is"
        if earlier.trouble:
            print(f"{which} not saved yet: {earlier.trouble}")
        else:
            print(f"{which} ended: {report_line(earlier.report) or 'it left nothing unsaved'}")
    if was_lost:
        print(f"sandbox {name} is a new one: what the variables of the lost one held is gone")
    if not silent:
        print(first_line(box))
    return box
