"""Watches how the writable memory mounts grow, since no engine limits that (SANDBOX.md, Decision 5).

It looks four times a second while a cell or a command runs, and now and then while none does: a thread that a cell left
behind can write, too. What is written between two looks is the overshoot: with a fast disk hundreds of megabytes and
tens of thousands of files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from memkernel.folders import usage
from memkernel.sandbox.base import MEBIBYTE, Mount, SandboxLimits

BUSY_S: Final = 0.25
IDLE_S: Final = 2.0
_ANY: Final = 1 << 62


class Watchdog:
    """`busy` tells whether something runs; `too_much` is called once, with a sentence, where a mount grew too far.

    The limits hold for what came in addition to what was there when the watch began: a store that is large from the
    beginning is no attack.
    """

    def __init__(
        self,
        mounts: Sequence[Mount],
        limits: SandboxLimits,
        busy: Callable[[], bool],
        too_much: Callable[[str], None],
    ) -> None:
        self._limits = limits
        self._busy = busy
        self._too_much = too_much
        watched = [mount for mount in mounts if mount.memory and not mount.read_only]
        self._before = {mount: usage(mount.source, _ANY, _ANY) for mount in watched}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memkernel-watchdog", daemon=True)
        if watched:
            self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        waited = 0.0
        while not self._stopped.wait(BUSY_S):
            waited += BUSY_S
            if self._busy() or waited >= IDLE_S:
                waited = 0.0
                for mount in self._before:
                    if grown := self._grown(mount):
                        self._too_much(f"{mount.target} grew by more than {grown}, the limit")
                        return

    def _grown(self, mount: Mount) -> str:
        """By what a mount grew too far; "" where it did not."""
        before, limits = self._before[mount], self._limits
        now = usage(mount.source, before.files + limits.mount_files + 1, before.bytes + limits.mount_bytes + 1)
        if now.files - before.files > limits.mount_files:
            return f"{limits.mount_files:,} files"
        if now.bytes - before.bytes > limits.mount_bytes:
            return f"{limits.mount_bytes // MEBIBYTE:,} MiB"
        return ""
