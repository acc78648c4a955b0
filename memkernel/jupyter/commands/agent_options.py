"""The options of `%%agent`: how a line says them, which do not go together, and what they mean for an agent."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final, cast

from IPython.core.error import UsageError

from memkernel.jupyter.arguments import Parser, count, dollars, read_file, seconds, speed, takes_store, variable
from memkernel.jupyter.notebook import Notebook

POLICIES: Final = ("auto", "ask", "never")
LAST: Final = "last"

# What an agent takes by the same names as the line says them.
_MAKING: Final = ("max_turns", "max_total_tokens", "max_cost_usd", "max_time_s", "scope", "record", "replay", "speed")

# fmt: off
_CLASHES: Final = (
    ("replay", "record", "A recording is made of a run that a model answers."),
    ("replay", "model", "A recorded run is answered by its recording."),
    ("replay", "resume", "A recorded run begins a conversation of its own."),
    ("replay", "dry_run", "A recorded run sends nothing."),
    ("new", "resume", "One begins a conversation, the other goes on with one."),
    ("dry_run", "resume", "A dry run shows what goes on with the conversation of this kernel."),
    ("dry_run", "bg", "A dry run sends nothing: it is over at once."),
    ("dry_run", "record", "A dry run sends nothing: there is nothing to record."),
)
# fmt: on


def approval(text: str) -> tuple[str, str]:
    """An argparse type: NAME=auto, NAME=ask or NAME=never."""
    name, equals, policy = text.partition("=")
    if not name or not equals or policy not in POLICIES:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=ask, NAME=auto or NAME=never")
    return name, policy


def declare(parser: Parser) -> None:
    """All options of `%%agent`."""
    takes_store(parser)
    parser.add_argument(
        "--sandbox",
        metavar="SANDBOX",
        nargs="?",
        const="",
        help="its tools too, of the one started last where none is named; without -s its folders are the memory",
    )
    parser.add_argument("-m", "--model", metavar="MODEL", help="default: MEMKERNEL_MODEL, or `%%memory config model`")
    system = parser.add_mutually_exclusive_group()
    system.add_argument("--system", metavar="FILE", help="a file with the system prompt")
    system.add_argument("--system-var", metavar="VAR", type=variable, help="a variable with the system prompt")
    parser.add_argument("--tool", metavar="VAR", type=variable, action="append", help="a function with @beta_tool")
    parser.add_argument("--scope", metavar="NAME", help="the agent sees only /NAME/ of the store, as its /memories")
    _declare_limits(parser)
    _declare_conversation(parser)
    _declare_offline(parser)
    # Not `gives_result`: the run is handed over also where it fails, and is shown while it goes on.
    parser.add_argument("-o", "--out", dest="run", metavar="VAR", type=variable, help="put the run into this variable")
    parser.add_argument("-q", "--quiet", dest="silent", action="store_true", help="show nothing")


def _declare_limits(parser: Parser) -> None:
    limits = parser.add_argument_group("limits of a run, and who approves of its calls")
    limits.add_argument("--max-turns", metavar="N", type=count, help="replies of the model at most; default: 50")
    limits.add_argument("--max-total-tokens", metavar="N", type=count, help="tokens at most, in and out")
    limits.add_argument("--max-cost", dest="max_cost_usd", metavar="USD", type=dollars, help="US dollars at most")
    limits.add_argument("--max-time", dest="max_time_s", metavar="SECONDS", type=seconds, help="seconds at most")
    limits.add_argument("--approve", choices=POLICIES, help="its calls run (default), are asked about, or never run")
    limits.add_argument(
        "--approve-tool", metavar="NAME=HOW", type=approval, action="append", help="the same of one tool: bash=ask"
    )
    limits.add_argument(
        "--allow-unisolated", action="store_true", help="let a live model use a sandbox that is not isolated"
    )


def _declare_conversation(parser: Parser) -> None:
    going_on = parser.add_argument_group("the conversation")
    going_on.add_argument("--new", action="store_true", help="begin a new one")
    going_on.add_argument(
        "--resume",
        metavar="RUN",
        nargs="?",
        const=LAST,
        help="go on with an earlier run's, of any kernel; default: last",
    )
    going_on.add_argument("--bg", action="store_true", help="in the background: `%%agent stop` ends it")
    going_on.add_argument("--dry-run", action="store_true", help="show what would be sent and its tokens; send nothing")


def _declare_offline(parser: Parser) -> None:
    offline = parser.add_argument_group("recordings: without a key, with real memory calls")
    offline.add_argument("--record", metavar="FILE", help="record what the model answers")
    offline.add_argument("--replay", metavar="RECORDING", help="answer from a recording, by name (demo) or file")
    offline.add_argument("--speed", metavar="N", type=speed, help="with --replay: so many times as fast")


def check(args: Namespace) -> None:
    """Refuse a line that says two things of which only one can be.

    Raises:
        UsageError: it does.
    """
    for one, other, why in _CLASHES:
        if getattr(args, one) and getattr(args, other):
            raise UsageError(f"%%agent: {_spelled(one)} and {_spelled(other)} do not go together\n{why}")
    if args.speed and not args.replay:
        raise UsageError(
            "%%agent: --speed needs --replay\nA model answers as fast as it does: `--replay demo --speed 5`."
        )


def _spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def options_of(notebook: Notebook, args: Namespace) -> dict[str, Any]:
    """What `mk.Agent` is made with, besides store and sandbox; only what the line, or a preference, says.

    Raises:
        UsageError: a file or a variable that is named is not there, or does not hold what it should.
    """
    options: dict[str, Any] = {name: getattr(args, name) for name in _MAKING}
    options |= {
        "model": args.model or (None if args.replay else notebook.preferences["model"]),
        "system": _system_prompt(notebook, args),
        "approve": _policy(args),
        "tools": _tools(notebook, args.tool) if args.tool else None,
        "allow_unisolated": args.allow_unisolated or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _policy(args: Namespace) -> str | Mapping[str, str] | None:
    """`approve` as an agent takes it: of the tools that are not named, `*` says it."""
    if not args.approve_tool:
        return args.approve
    return {"*": args.approve or "auto", **dict(args.approve_tool)}


def _system_prompt(notebook: Notebook, args: Namespace) -> str | None:
    if args.system is not None:
        return _text(args.system, read_file(args.system))
    return None if args.system_var is None else _text(args.system_var, notebook.value_of(args.system_var))


def _text(origin: str, value: str | bytes) -> str:
    try:
        return value if isinstance(value, str) else value.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{origin} is not UTF-8\nA system prompt is text.") from None


def _tools(notebook: Notebook, names: list[str]) -> list[object]:
    """The tools in these variables; one may hold several."""
    found: list[object] = []
    for name in names:
        value = notebook.variable(name)
        found += cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    return found
