"""glob and grep: what matches below a folder. A search has a limit of time, whatever the pattern does."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Callable, Dict, Generator, Iterable, Iterator, List, Pattern

from memkernel.sandbox.inside.tools_children import Children
from memkernel.sandbox.inside.tools_paths import Places, ToolError, canonical, within

MOST_PATHS = 200
MOST_ENTRIES = 50_000
GREP_BYTES = 100 * 1024
LINE_BYTES = 2000
SECONDS = 30
_LEFT_OUT = (".git", "node_modules")
_SAMPLE = 512
_NOTHING = "no matches"
_CUT = "[output truncated at %d bytes]" % GREP_BYTES

Answer = Dict[str, Any]


def glob(places: Places, given: Dict[str, Any]) -> Answer:
    """Absolute paths that match, the newest first."""
    pattern, path = given["pattern"], given.get("path")
    if pattern.startswith("/"):
        raise ToolError("glob: absolute pattern not permitted; pass a relative pattern (and optionally path)")
    if ".." in PurePosixPath(pattern).parts:
        raise ToolError("glob: '..' is not permitted in the pattern")
    root = places.resolve("glob", path) if path else places.workdir
    with limited("glob"):
        try:
            found = list(_inside(islice(root.glob(pattern), MOST_ENTRIES), root))
        except (ValueError, OSError, NotImplementedError) as error:
            raise ToolError("glob: %s" % error) from error
        found.sort(key=_changed_at, reverse=True)
    return {"text": "\n".join(map(places.shown, found[:MOST_PATHS])) or _NOTHING}


def _inside(found: Iterable[Path], root: Path) -> Iterator[Path]:
    """Those that a link in the middle of the pattern has not led out."""
    for path in found:
        with contextlib.suppress(OSError):
            if within(canonical(path), root):
                yield path


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def grep(places: Places, children: Children, given: Dict[str, Any]) -> Answer:
    """`path:line:text` of each line that matches: by ripgrep where the sandbox has one, else by a walk."""
    pattern, path = given["pattern"], given.get("path")
    search = places.resolve("grep", path) if path else places.workdir
    program = _ripgrep(places)
    if program:
        return {"text": _by_ripgrep(places, children, [program, "--no-config", "-nH", "--no-heading"], pattern, search)}
    try:
        expression = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError("grep: invalid regex: %s" % error) from error
    with limited("grep"):
        return {"text": _Walk(expression, places.shown).of(search)}


def _ripgrep(places: Places) -> str:
    """The first one that does not lie where the agent can write."""
    for folder in os.get_exec_path():
        program = os.path.join(folder, "rg")
        if os.path.isabs(folder) and os.access(program, os.X_OK) and not places.reaches(program):
            return program
    return ""


def _by_ripgrep(places: Places, children: Children, argv: List[str], pattern: str, search: Path) -> str:
    done = children.run([*argv, "-e", pattern, "--", str(search)], SECONDS, 4 * GREP_BYTES)
    if done.timed_out:
        raise ToolError("grep: timed out after %ds" % SECONDS)
    if done.code == 1:
        return _NOTHING
    if done.code != 0 and not done.cut:
        raise ToolError("grep: rg failed: %s" % done.stderr.decode("utf-8", "replace"))
    out = "\n".join(map(places.shown, os.fsdecode(done.stdout).split("\n")))
    return out if len(out) <= GREP_BYTES else out[:GREP_BYTES] + "\n" + _CUT


class _Walk:
    """A search through text files; what is no text, a link, or no regular file is left out."""

    def __init__(self, expression: Pattern[str], shown: Callable[[object], str]) -> None:
        self._expression, self._shown = expression, shown
        self._hits: List[str] = []
        self._left = GREP_BYTES
        self._seen = 0

    def of(self, search: Path) -> str:
        """The rows below a folder, or of one file."""
        if search.is_file():
            self._scan(str(search))
        else:
            self._below(str(search))
        return "\n".join(self._hits) or _NOTHING

    def _below(self, search: str) -> None:
        for folder, folders, names in os.walk(search):
            folders[:] = [
                name for name in folders if name not in _LEFT_OUT and not os.path.islink(os.path.join(folder, name))
            ]
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                self._seen += 1
                if self._seen > MOST_ENTRIES or not self._scan(path):
                    return

    def _scan(self, path: str) -> bool:
        """Whether there is room for more."""
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if b"\0" in file.read(_SAMPLE):
                return True
            file.seek(0)
            for number, raw in enumerate(_lines(file), 1):
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                if raw and self._expression.search(line) and not self._push(path, number, line):
                    return False
        return True

    def _push(self, path: str, number: int, line: str) -> bool:
        row = "%s:%d:%s" % (self._shown(path), number, line)
        self._left -= len(row) + 1
        self._hits.append(row if self._left >= 0 else _CUT)
        return self._left >= 0


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The file's lines; one that is too long is b"": a pattern that backtracks would take for ever on it."""
    while True:
        raw = file.readline(LINE_BYTES + 1)
        if not raw:
            return
        is_short = len(raw) <= LINE_BYTES
        while raw and not raw.endswith(b"\n"):
            rest = file.readline(1 << 16)
            if not rest:
                break
            raw = rest
        yield raw if is_short else b""


@contextlib.contextmanager
def limited(tool: str) -> Generator[None]:
    """Raise ToolError in here when the time is up, also in the middle of a regular expression."""
    limits = [SECONDS]  # none any more: what still rings then means nothing

    def ring(number: int, frame: object) -> None:
        if limits:
            raise ToolError("%s: timed out after %ds" % (tool, SECONDS))

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 0.1)
    try:
        yield
    finally:
        limits.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
