"""P8, the part of the scan: 2,000 unchanged files against a bare pass of os.scandir and stat over them.

Run: `python -m tests.bench.bench_scan`. Each round measures both, one after the other; the medians count.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memkernel.folders import usage
from memkernel.sync.scan import Scanner
from tests.fix_folders import MEMORY, on_disk

FILES = 2_000
SIZE_BYTES = 4_096
PER_FOLDER = 100
SETTLED_S = 2.1
TARGET_RATIO = 1.5


def run(rounds: int = 101) -> list[dict[str, Any]]:
    """Warm and cold scans on a disk, a warm one in memory (where no stamp can be trusted), and the watchdog's count."""
    with tempfile.TemporaryDirectory(dir=on_disk()) as place:
        results = [*_warm(Path(place) / "warm", rounds), _cold(Path(place) / "cold")]
    if MEMORY.is_dir():
        with tempfile.TemporaryDirectory(dir=MEMORY) as place:
            results.append(_in_memory(Path(place) / "warm", rounds))
    return results


def _warm(mount: Path, rounds: int) -> list[dict[str, Any]]:
    scanner = _settled(mount)
    scan = _compared(f"scan: {FILES:,} unchanged files", scanner.scan, lambda: bare(mount), rounds)
    count = _compared(f"usage: {FILES:,} files", lambda: usage(mount, 1 << 40, 1 << 40), lambda: bare(mount), rounds)
    scanner.close()
    return [
        {**scan, "peer": "bare os.scandir + stat", "target": TARGET_RATIO},
        {**count, "peer": "bare os.scandir + stat", "target": TARGET_RATIO},
    ]


def _in_memory(mount: Path, rounds: int) -> dict[str, Any]:
    scanner = _settled(mount)
    result = _compared(f"scan: {FILES:,} unchanged files in memory", scanner.scan, lambda: _hashed(mount), rounds // 5)
    scanner.close()
    return {**result, "peer": "read and hash all", "target": None}


def _cold(mount: Path) -> dict[str, Any]:
    fill(mount)

    def scan() -> None:
        scanner = Scanner(mount)
        scanner.scan()
        scanner.close()

    result = _compared(f"scan: {FILES:,} files for the first time", scan, lambda: _hashed(mount), 11)
    return {**result, "peer": "read and hash all", "target": None}


def _settled(mount: Path) -> Scanner:
    """A scanner that trusts every stamp."""
    fill(mount)
    scanner = Scanner(mount)
    scanner.scan()
    time.sleep(SETTLED_S)
    scanner.scan()
    return scanner


def _compared(work: str, ours: Callable[[], object], peer: Callable[[], object], rounds: int) -> dict[str, Any]:
    times: list[tuple[float, float]] = [(_us(ours), _us(peer)) for _ in range(rounds)]
    ours_us, peer_us = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = round(ours_us / peer_us, 3)
    return {"id": "P8", "work": work, "ratio": ratio, "ours_us": round(ours_us), "peer_us": round(peer_us)}


def _us(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1e6


def fill(mount: Path) -> None:
    """2,000 files of 4 KB, 100 a folder."""
    chance = random.Random(0)
    for number in range(FILES):
        file = mount / f"d{number // PER_FOLDER:02}" / f"f{number:04}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(chance.randbytes(SIZE_BYTES // 2).hex())


def bare(folder: str | Path) -> None:
    """The least that a pass can be."""
    with os.scandir(folder) as entries:
        for entry in entries:
            entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                bare(entry.path)


def _hashed(mount: Path) -> None:
    for folder, _, names in os.walk(mount):
        for name in names:
            with open(f"{folder}/{name}", "rb", buffering=0) as file:
                hashlib.sha256(file.read()).digest()


if __name__ == "__main__":
    for result in run():
        print(json.dumps(result))
