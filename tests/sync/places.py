"""A mount, its scanner and its files, as the tests of this folder have them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from memkernel.sync.scan import Scan

LONG_AGO = 1_000_000_000


def sha256(content: bytes | str) -> bytes:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).digest()


def put(folder: Path, path: str, content: bytes | str = "x") -> Path:
    """A file at a memory path."""
    file = folder / path[1:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def raw(folder: Path, name: bytes, content: bytes = b"x") -> None:
    """A file with any name."""
    Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(content)


def sums(scan: Scan) -> dict[str, bytes]:
    """The scan's files by path."""
    return {path: file.sha256 for path, file in scan.files.items()}
