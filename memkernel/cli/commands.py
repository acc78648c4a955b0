"""What each command's module fills: argparse's own type for it has no public name."""

from __future__ import annotations

import argparse
from typing import Protocol


class Commands(Protocol):
    """Where a command's parser is added."""

    def add_parser(self, name: str, *, help: str, description: str | None = None) -> argparse.ArgumentParser:
        """A parser of the command's own."""
        ...
