"""Lengths of time on the command line."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta
from typing import Final

_WORDS: Final = re.compile(r"([0-9]{1,6})(d|w|y)", re.ASCII)
_UNITS: Final = {"d": timedelta(days=1), "w": timedelta(weeks=1), "y": timedelta(days=365)}


def duration(text: str) -> timedelta:
    """`30d`, `8w` or `1y`; a year has 365 days.

    Raises:
        argparse.ArgumentTypeError: it is none of these.
    """
    words = _WORDS.fullmatch(text)
    if words is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no length of time: 30d, 8w and 1y are some")
    return int(words[1]) * _UNITS[words[2]]
