"""The start of a kernel: this process becomes ipykernel.

Sent as text; see the package. The variable's name stands here once more for that reason.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import sys
import threading
from typing import Any

_UNATTENDED_S = 60.0
_OUTPUTS = 100_000
"""Messages that may wait for the host; beyond that ZeroMQ drops new ones without a word (its own default is 1,000)."""


def become_kernel() -> None:
    """Run ipykernel in this process. The key leaves the environment before any cell can pass it on."""
    connection = json.loads(os.environ.pop("MEMKERNEL_CONNECTION"))
    folder = os.path.dirname(connection["ip"])
    with contextlib.suppress(FileExistsError):
        os.makedirs(folder, 0o700)
    path = os.path.join(folder, "connection.json")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(connection, file)
    if sys.path and sys.path[0] == "":
        del sys.path[0]  # as ipykernel_launcher: a file of the working directory must not hide a module
    sys.argv = ["ipykernel_launcher", "-f", path, "--HistoryManager.enabled=False"]
    watch = threading.Timer(_UNATTENDED_S, _end_if_unattended, (connection["ip"] + "-attended",))
    watch.daemon = True
    watch.start()
    _forget_what_is_written_to(1)  # how another client would connect
    from ipykernel.kernelapp import IPKernelApp

    class KernelApp(IPKernelApp):
        def init_iopub(self, context: Any) -> None:
            context.sndhwm = _OUTPUTS  # the default for sockets that are made from here on
            super().init_iopub(context)  # pyright: ignore[reportUnknownMemberType] - ipykernel has no types

        def init_io(self) -> None:
            """ipykernel copies what is written to the streams to their originals: it is no part of the kernel's log.

            The log's handlers leave fd 2 first: ipykernel gives those that write to it a file on its own copy of it,
            and whoever replaces that file later closes the copy, whose number is then the next socket's.
            """
            log = open(os.dup(2), "w", buffering=1)  # noqa: SIM115 - as long as the kernel
            for handler in self.log.handlers:
                if isinstance(handler, logging.StreamHandler):
                    handler.setStream(log)  # pyright: ignore[reportUnknownMemberType] - ipykernel has no types
            _forget_what_is_written_to(2)
            super().init_io()  # pyright: ignore[reportUnknownMemberType] - ipykernel has no types
            faulthandler.enable(log, all_threads=False)  # a crash's last words; the rest of fd 2 is a cell's output

    KernelApp.launch_instance()


def _forget_what_is_written_to(stream: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream)
    os.close(null)


def _end_if_unattended(path: str) -> None:
    """No helper ever came, so nobody holds the lease: the host was lost while it started this."""
    if not os.path.exists(path):
        os._exit(0)


if __name__ == "__main__":
    become_kernel()
