"""Why the server did not start: the supervisor's error file and the telling lines of the log, as one error."""

from __future__ import annotations

import json
import re
from pathlib import Path

from memkernel.cluster.places import Place
from memkernel.cluster.supervisor import ERROR
from memkernel.errors import ServerStartError

_LOG_LINES = 3
_LINE_CHARACTERS = 240
_NOISE = re.compile(
    r"child process exited|removing (contents of )?data directory|data directory .* not removed|^STATEMENT:"
)
_TELLING = re.compile(r"FATAL|PANIC|ERROR|error:|HINT|DETAIL|Error:|LOG:  (invalid|unrecognized|syntax|could not)")

# What PostgreSQL says -> what a person can do about it.
_WAYS_OUT = (
    (r"No space left|File too large|Disk quota exceeded", "Free some space, or set MEMKERNEL_HOME to another disk."),
    (r"pre-existing shared memory block", "A process of the server before still runs: try again once it has ended."),
    (r"could not look up effective user", "PostgreSQL needs a passwd entry for its user; or set MEMKERNEL_DSN."),
    (r"[Pp]ermission denied", "Set MEMKERNEL_HOME to a directory that the server's account can enter."),
)  # fmt: skip


class ErrorFile:
    """The supervisor's last error. One that was there before we came is not ours to tell."""

    def __init__(self, place: Place) -> None:
        self._place, self._path = place, place.directory / ERROR
        self._seen = self._identity()
        self.log_start = place.log.stat().st_size if place.log.exists() else 0

    def raise_news(self) -> None:
        """Raise the error that came since this object was made; do nothing if there is none.

        Raises:
            ServerStartError: with the supervisor's message.
        """
        if (identity := self._identity()) in (None, self._seen):
            return
        self._seen = identity
        report = json.loads(self._path.read_text())
        raise start_error(self._place, report["message"], log_start=report["log_start"])

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns


def start_error(place: Place, message: str, *, log_start: int | None = None) -> ServerStartError:
    """The message, with up to three lines of what was logged since `log_start` (a place in bytes); None: with none."""
    lines = [] if log_start is None else telling_lines(_log_since(place.log, log_start))
    text = "\n  ".join([f"the embedded PostgreSQL did not start: {message}", *lines])
    return ServerStartError(text, hint=way_out(text) or f"The whole log: {place.log}")


def way_out(text: str) -> str | None:
    """What to do about a known cause."""
    return next((hint for pattern, hint in _WAYS_OUT if re.search(pattern, text)), None)


def telling_lines(log: str) -> list[str]:
    """The last lines of a log that say why, without their time stamps; three at most."""
    lines = [re.sub(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] ", "", line.strip()) for line in log.splitlines()]
    lines = [line[:_LINE_CHARACTERS] for line in lines if line and not _NOISE.search(line)]
    telling = [line for line in lines if _TELLING.search(line)] or lines
    return [*dict.fromkeys(telling)][-_LOG_LINES:]  # each once: a server that is started again says the same again


def _log_since(log: Path, start: int) -> str:
    try:
        with log.open("rb") as file:
            file.seek(start)
            return file.read(1_000_000).decode(errors="replace")
    except OSError:
        return ""
