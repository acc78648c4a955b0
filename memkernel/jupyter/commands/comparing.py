"""`%memory diff --since`: what differs in a store, or in a part of it, between two points of its history."""

from __future__ import annotations

import argparse
from argparse import Namespace

from IPython.core.error import UsageError

from memkernel.handle.points import is_point
from memkernel.handle.store_diff import StoreDiff
from memkernel.jupyter.arguments import Parser
from memkernel.jupyter.notebook import Notebook


def point(text: str) -> str:
    """An argparse type: a point of a store's history."""
    if not is_point(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a point: @41, @-1, @2026-11-30T10:00, today, yesterday")
    return text


def takes_points(parser: Parser) -> None:
    """--since and --until."""
    parser.add_argument("--since", metavar="POINT", type=point, help="a change of the store (@41), or a time")
    parser.add_argument("--until", metavar="POINT", type=point, help="the same; default: now")


def compare(notebook: Notebook, args: Namespace) -> StoreDiff:
    """What became of the memories at or below the path; by default of the whole store."""
    if args.since is None:
        raise UsageError("%memory diff: --until needs --since\nFrom the beginning on it is `--since @0`.")
    if args.versions:
        raise UsageError("%memory diff: a memory has versions, a store has points\nGive either VERSIONs or --since.")
    place = notebook.place_now(args.path or "/", args)
    return place.store.compare(args.since, args.until).below(place.path)
