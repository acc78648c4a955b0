"""`%memory serve`: the Memory API over HTTP, from this kernel, for this machine."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from memkernel.api import PORT
from memkernel.jupyter.arguments import Parser, gives_result
from memkernel.jupyter.command import Command
from memkernel.jupyter.done import Done
from memkernel.jupyter.notebook import Notebook

if TYPE_CHECKING:
    from memkernel.api.server import Serving


def _declare_serve(parser: Parser) -> None:
    parser.add_argument("--port", metavar="N", type=int, default=PORT, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--stop", action="store_true", help="serve no longer; requests in flight end")
    gives_result(parser)


def serve(notebook: Notebook, args: Namespace, body: str | None) -> Done:
    """Serve the notebook's database until the kernel ends, or tell where it is served already."""
    serving = notebook.serving
    if args.stop:
        return _stop(notebook)
    if serving is None or not serving.is_alive:
        serving = notebook.serving = _start(notebook, args.port)
    return Done(1, "\n".join([*serving.told(), "  client.beta.memory_stores.list()"]))


def _start(notebook: Notebook, port: int) -> Serving:
    from memkernel.api import server

    connection = notebook.connection
    bound = server.open_port("127.0.0.1", port)
    try:
        serving = server.Serving(connection.database, connection.line, bound, limits=connection.settings.limits)
        serving.start()
    except BaseException:
        bound.close()
        raise
    return serving


def _stop(notebook: Notebook) -> Done:
    serving, notebook.serving = notebook.serving, None
    if serving is None or not serving.is_alive:
        return Done(0, "Nothing is served from this notebook.")
    serving.stop()
    return Done(1, f"{serving.url} serves no longer.")


COMMANDS: Final = (
    Command(
        "serve",
        "Serve this memory over HTTP to the official SDKs, from this machine to this machine.",
        _declare_serve,
        serve,
        ("%memory serve", "%memory serve --port 0", "%memory serve --stop"),
    ),
)
