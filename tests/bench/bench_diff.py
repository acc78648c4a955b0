"""P15: the differ against difflib on two texts of 100 KB, and the inputs that are hard for differs.

Run: `python -m tests.bench.bench_diff`. Nothing here fails: the figures stand beside their targets.
Sources of the hard inputs: PERFORMANCE E, UX 2.1.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from typing import Any

from memkernel.textdiff import diff

SIZE_BYTES = 102_400
TARGET_RATIO = 0.5
TARGET_WORST_US = 500_000.0


def run(rounds: int = 21) -> list[dict[str, Any]]:
    """One result for the median of 10 edits, and one for each hard input."""
    return [_ten_edits(rounds), *(_hard(name, old, new) for name, old, new in hard_inputs())]


def _ten_edits(rounds: int) -> dict[str, Any]:
    ours: list[float] = []
    peers: list[float] = []
    for seed in range(rounds):
        old = prose(random.Random(seed))
        new = edited(old, 10, random.Random(seed + 1_000))
        ours.append(_best_us(lambda old=old, new=new: diff(old, new)))
        peers.append(_best_us(lambda old=old, new=new: _difflib(old, new)))
    return _result("10 edits in 100 KB", statistics.median(ours), "difflib", statistics.median(peers), TARGET_RATIO)


def _hard(name: str, old: str, new: str) -> dict[str, Any]:
    return _result(name, _best_us(lambda: diff(old, new)), "0.5 s", TARGET_WORST_US, 1.0)


def _result(work: str, ours_us: float, peer: str, peer_us: float, target: float) -> dict[str, Any]:
    named = {"id": "P15", "work": f"diff: {work}", "peer": peer}
    figures = {"ratio": round(ours_us / peer_us, 3), "target": target}
    return {**named, **figures, "ours_us": round(ours_us), "peer_us": round(peer_us)}


def _best_us(call: Callable[[], object]) -> float:
    """The best of five: the machine's other work is not the differ's."""
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def _difflib(old: str, new: str) -> object:
    return SequenceMatcher(None, old.split("\n"), new.split("\n")).get_opcodes()


# -- texts -----------------------------------------------------------------------------------------

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def prose(chance: random.Random) -> str:
    """100 KB of lines of words; one line in six is blank."""
    words = ["".join(chance.choices(_LETTERS, k=chance.randint(2, 9))) for _ in range(800)]
    lines = (" ".join(chance.choices(words, k=12)) if chance.random() < 5 / 6 else "" for _ in range(SIZE_BYTES))
    return _filled(lines)


def edited(text: str, edits: int, chance: random.Random) -> str:
    """The text with so many lines replaced, deleted or inserted."""
    lines = text.split("\n")
    for _ in range(edits):
        place = chance.randrange(len(lines) - 1)
        words = lines[place].split(" ")
        words[chance.randrange(len(words))] = "edited"
        lines[place : place + chance.randint(0, 1)] = [" ".join(words)] * chance.randint(0, 2)
    return "\n".join(lines)[:SIZE_BYTES]


def _filled(lines: Iterator[str]) -> str:
    """Lines until there are 100 KB."""
    chosen: list[str] = []
    size = 0
    while size < SIZE_BYTES:
        chosen.append(next(lines))
        size += len(chosen[-1]) + 1
    return "\n".join(chosen)[: SIZE_BYTES - 1] + "\n"


def _drawn(symbols: list[str], chance: random.Random) -> str:
    return _filled(iter(lambda: chance.choice(symbols), None))


def hard_inputs() -> Iterator[tuple[str, str, str]]:
    """(name, old, new)"""
    chance = random.Random(0)
    text = prose(chance)
    yield "one line changed", text, edited(text, 1, chance)
    yield "half of the lines changed", text, edited(text, len(text.split("\n")) // 2, chance)
    yield "total rewrite", text, prose(chance)
    yield "shuffled lines", text, _shuffled(text, "\n", chance)
    yield "created from nothing", "", text
    symbols = [f"value {number:06d}" for number in range(20)]
    yield "8,000 lines of 20 symbols", _drawn(symbols, chance), _drawn(symbols, chance)
    repetitive = _drawn([f"item {number % 7}" for number in range(7)], chance)
    yield "14,000 repetitive lines, shuffled", repetitive, _shuffled(repetitive, "\n", chance)
    same = "x = 1\n" * (SIZE_BYTES // 6 - 2)
    yield "all lines the same, two more", same, f"{same[:30_000]}y\n{same[30_000:60_000]}z\n{same[60_000:]}"
    blanks = "".join(f"{chance.choice(_LETTERS)}\n\n" for _ in range(SIZE_BYTES // 3))
    yield "blank lines alternating", blanks, _shuffled(blanks, "\n\n", chance)
    letters = list(_LETTERS)
    yield "51,200 lines of one letter", _drawn(letters, chance), _drawn(letters, chance)
    yield "51,200 lines of two letters, 300 edits", (pair := _drawn(["a", "b"], chance)), edited(pair, 300, chance)
    sparse = ["", "", "", "", "", "", "", "a", "b", "c"]
    yield "78,000 nearly blank lines", _drawn(sparse, chance), _drawn(sparse, chance)
    numbers = "\n".join(str(number % 10_000) for number in range(20_000))[:SIZE_BYTES]
    yield "20,000 numbers, shuffled", numbers, _shuffled(numbers, "\n", chance)
    yield "one line of 100 KB, other words", text.replace("\n", " "), prose(chance).replace("\n", " ")
    yield "one line of 100 KB, shuffled words", text.replace("\n", " "), _shuffled(text.replace("\n", " "), " ", chance)
    signs = "".join(chance.choices(".,;:!?()[]{}", k=SIZE_BYTES))
    yield "one line of 100 KB of signs", signs, _shuffled(signs, "", chance)
    yield "25 lines of 4 KB, their words shuffled", *_wide(text, 25, chance)
    yield "400 lines of 250 B, their words shuffled", *_wide(text, 400, chance)


def _shuffled(text: str, separator: str, chance: random.Random) -> str:
    parts = text.split(separator) if separator else list(text)
    chance.shuffle(parts)
    return separator.join(parts)[:SIZE_BYTES]


def _wide(text: str, count: int, chance: random.Random) -> tuple[str, str]:
    words = text.split()
    width = len(words) // count
    lines = [" ".join(words[start : start + width]) for start in range(0, width * count, width)]
    return "\n".join(lines), "\n".join(_shuffled(line, " ", chance) for line in lines)


if __name__ == "__main__":
    for result in run():
        print(json.dumps(result))
