"""`memkernel serve`: the Memory API over HTTP, for the official SDKs."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from memkernel import config
from memkernel.api import PORT
from memkernel.cli.commands import Commands
from memkernel.cli.connecting import add_dsn, connected

if TYPE_CHECKING:
    from memkernel.api.server import Serving

_LOG_LINE: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s"


def add(commands: Commands) -> None:
    """The command's line."""
    serve = commands.add_parser(
        "serve",
        help="the Memory API over HTTP, for the official SDKs",
        description="Serve the Memory API, so that the official SDKs work on this database. "
        "Beyond this machine it is served only with keys: `memkernel keys create`.",
    )
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=int, default=PORT, help="0 takes a free one (default: %(default)s)")
    serve.add_argument("--uds", metavar="PATH", type=Path, help="listen on a unix socket, and on no port")
    add_dsn(serve)
    serve.add_argument("--strict-beta", action="store_true", help="ask for exactly one of the beta headers")
    serve.add_argument("--strict-full-limit", action="store_true", help="refuse view=full with a limit over 20")
    serve.set_defaults(run=_serve)


def _serve(options: argparse.Namespace) -> int:
    settings = config.load()
    _log_to_stderr()
    with connected(settings, options.dsn, limits=settings.limits, reconnect_s=1.0) as (database, line):
        from memkernel.api import server

        bound = server.open_unix(options.uds) if options.uds else server.open_port(options.host, options.port)
        with bound:
            strictness = server.Strictness(beta=options.strict_beta, full_limit=options.strict_full_limit)
            serving = server.Serving(database, line, bound, limits=settings.limits, strictness=strictness)
            _end_at_signals(serving)
            serving.start()
            print("\n".join(serving.told()), flush=True)
            answered = serving.wait()
    if not answered:
        os._exit(0)  # a thread that still waits for the database would keep the process
    return 0


def _end_at_signals(serving: Serving) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        serving.end_soon()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)


def _log_to_stderr() -> None:
    formatter = logging.Formatter(_LOG_LINE, "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("memkernel.access").setLevel(logging.INFO)
