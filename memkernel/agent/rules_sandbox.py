"""The stand-in's rules for a sandbox: sentences that run, write, read, list and search there. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from memkernel.agent.rules_play import Call, Found, Rule

KNOWS: Final = "“Run `…`”, “Write “…” to FILE”, “Read FILE”, “List the files” and “Find “…””"
TOOLS: Final = frozenset({"bash", "read", "write", "glob", "grep"})

QUOTED: Final = r"(?:```(?:\w*\n)?(?P<block>.+?)```|`(?P<code>[^`]+)`|“(?P<said>[^”]*)”|\"(?P<typed>[^\"]*)\")"
_PATH: Final = r"`?(?P<path>(?=[\w~-]*[./])[\w./~-]*[\w/])`?"
_SHOWN_CHARS: Final = 2000


def run(command: str) -> Rule:
    """Run a command in the shell."""
    return _shown(Call({"command": command}, tool="bash"), "It printed", "It printed nothing.")


def write(path: str, text: str) -> Rule:
    """Write a file."""
    done = yield Call({"file_path": path, "content": text if text.endswith("\n") else f"{text}\n"}, tool="write")
    return f"I could not write it: {done.text}" if done.is_error else f"I wrote {path}."


def read(path: str) -> Rule:
    """Show a file."""
    return _shown(Call({"file_path": path}, tool="read"), f"{path} says", f"{path} is empty.")


def list_files(folder: str) -> Rule:
    """List a folder, or the working directory."""
    given = {"pattern": "*"} | ({"path": folder} if folder else {})
    return _shown(Call(given, tool="glob"), "There is", "There is nothing.")


def find(text: str, path: str) -> Rule:
    """Search the files for a text."""
    given = {"pattern": re.escape(text)} | ({"path": path} if path else {})
    return _shown(Call(given, tool="grep"), "I found", "I found nothing.")


def quoted(found: Found) -> str:
    """What stood between quotes of whatever kind."""
    return next((found[name] for name in ("block", "code", "said", "typed") if found[name]), "")


INTENTS: Final[list[tuple[str, Callable[[Found], Rule]]]] = [
    (rf"(?:run|execute)\b[^`“\"]{{0,60}}{QUOTED}.?", lambda found: run(quoted(found).strip())),
    (r"(?:run|execute)(?: the command)?:? (?P<command>[^`“\"].*?)\.?", lambda found: run(found["command"])),
    (
        rf"(?:write|save|put):?\s+{QUOTED}\s+(?:in|to|into|as)(?: the file)? {_PATH}\.?",
        lambda found: write(found["path"], quoted(found)),
    ),
    (rf"(?:read|show|open|print)(?: me)?(?: the file)? {_PATH}\.?", lambda found: read(found["path"])),
    (
        rf"(?:list|show)(?: me)?(?: all)?(?: the)? files(?: (?:in|of|below) {_PATH})?\.?",
        lambda found: list_files(found["path"]),
    ),
    (
        rf"(?:find|search(?: for)?|grep) {QUOTED}(?: (?:in|below) {_PATH})?\.?",
        lambda found: find(quoted(found), found["path"]),
    ),
]
"""A sentence -> what is done for it."""


def _shown(call: Call, heading: str, nothing: str) -> Rule:
    came = yield call
    if came.is_error:
        return f"It failed:\n\n{_fenced(came.text)}"
    if came.text.strip() in ("", "no matches"):
        return nothing
    return f"{heading}:\n\n{_fenced(came.text)}"


def _fenced(text: str) -> str:
    shown = text.strip("\n")
    more = "\n…" if len(shown) > _SHOWN_CHARS else ""
    return f"```\n{shown[:_SHOWN_CHARS]}{more}\n```"
