"""The server of the agent's tools: JSON lines in, JSON lines out, one call at a time (SANDBOX.md, Decision 2).

The first line says where the tools may work; each further one is a call `{"id", "name", "given"}`, checked before.
The answer is `{"id", "is_error", "text"}`, or `media_type` and `data` instead of the text. Whatever a tool starts stays
below this process, and ends with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from typing import Any, Callable, Dict, Iterator, List, NoReturn

from memkernel.sandbox.inside.processes import adopt_orphans, hide
from memkernel.sandbox.inside.tools_bash import Bash
from memkernel.sandbox.inside.tools_children import Children
from memkernel.sandbox.inside.tools_files import edit, read, write
from memkernel.sandbox.inside.tools_paths import Places, ToolError
from memkernel.sandbox.inside.tools_search import glob, grep, limited

_PIECE = 1 << 16

Given = Dict[str, Any]
Tool = Callable[[Given], Dict[str, Any]]


def _tools(asked: Given, children: Children) -> Dict[str, Tool]:
    places = Places(asked)

    def limited_read(given: Given) -> Dict[str, Any]:
        with limited("read"):
            return read(places, given)

    return {
        "bash": Bash(places, children, asked["shell_is_lost"]),
        "read": limited_read,
        "write": lambda given: write(places, given),
        "edit": lambda given: edit(places, given),
        "glob": lambda given: glob(places, given),
        "grep": lambda given: grep(places, children, given),
    }


def _answer(name: str, tool: Tool, given: Given) -> Dict[str, Any]:
    try:
        return {"is_error": False, **tool(given)}
    except ToolError as error:
        return {"is_error": True, "text": str(error)}
    except Exception as error:  # whatever a pattern or a file system comes up with: the shell lives on
        return {"is_error": True, "text": "%s: %s" % (name, str(error) or type(error).__name__)}


def _lines(children: Children) -> Iterator[bytes]:
    """What the host says. Its end is that of the server."""
    received = bytearray()
    while True:
        ready, _, _ = select.select([0, children.ended], [], [])
        if children.ended in ready:
            children.reap()
        if 0 in ready:
            piece = os.read(0, _PIECE)
            if not piece:
                return
            received += piece
            if b"\n" in piece:
                *lines, rest = received.split(b"\n")
                received = bytearray(rest)
                yield from map(bytes, lines)


def _say(answer: Dict[str, Any]) -> None:
    data = memoryview(json.dumps(answer).encode() + b"\n")
    while data:
        data = data[os.write(1, data) :]


def _serve(children: Children) -> None:
    lines = _lines(children)
    tools = _tools(json.loads(next(lines)), children)
    for line in lines:
        call = json.loads(line)
        name = call["name"]
        _say({"id": call["id"], **_answer(name, tools[name], call["given"])})


def _nothing(number: int, frame: object) -> None:
    """A signal of no meaning for the server; what it starts has the usual answer to it."""


def main(arguments: List[str]) -> NoReturn:
    """Serve until the host has nothing more to say."""
    adopt_orphans()
    hide()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, _nothing)
    children = Children()
    try:
        _serve(children)
    finally:
        children.kill()
        sys.stdout.flush()
        os._exit(0)
