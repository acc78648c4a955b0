"""The recordings that come with memkernel, made anew: the scripted stand-in answers, its tools really run.

python -m tests.recordings   write them to memkernel/recordings, with a PostgreSQL of their own and a local sandbox

What they hold is the same each time; a test compares. No language model has any part in them: their header says
`scripted`, and so does every replay.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import memkernel as mk
from memkernel.agent import recording
from memkernel.agent.recording import Answer, Exchange

MADE_AT: Final = datetime(2026, 12, 1, tzinfo=UTC)
STORE: Final = "Team notes"
_MOUNT: Final = "/mnt/memory/team-notes"
_WAIT_MS: Final = 500
_MS_A_CHARACTER: Final = 6


class Demonstration(NamedTuple):
    """What is asked, and what the agent has for it."""

    prompt: str
    memory: bool = False
    sandbox: bool = False


DEMONSTRATIONS: Final[Mapping[str, Demonstration]] = {
    "demo": Demonstration(
        "Remember in project/decisions.md that we ship on Fridays. "
        "Remember in project/decisions.md that every number has a unit. "
        "Remember in project/people.md that Ada reviews the releases. "
        "Change Fridays to Mondays. "
        "What do you remember?",
        memory=True,
    ),
    "sandbox": Demonstration(
        "Write:\n"
        "```\ncity,celsius\nCairo,29\nLondon,15\nOslo,7\n```\n"
        f"to {_MOUNT}/weather.csv\n"
        "Run `awk -F, 'NR > 1 {sum += $2} END {print sum / (NR - 1) \" degrees on average\"}' "
        f"{_MOUNT}/weather.csv` and remember the result in weather.md. "
        f"Find “Cairo” in {_MOUNT}. "
        "Run `cat no-such-file`.",
        sandbox=True,
    ),
    "both": Demonstration(
        "Write:\n"
        "```python\n"
        "primes = [n for n in range(2, 100) if all(n % d for d in range(2, n))]\n"
        'print(f"{len(primes)} primes below 100, the last is {primes[-1]}")\n'
        "```\n"
        "to primes.py\n"
        "Run `python3 primes.py` and remember the result in experiments/primes.md. "
        "Remember in experiments/primes.md that the script is primes.py. "
        f"Read {_MOUNT}/experiments/primes.md",
        memory=True,
        sandbox=True,
    ),
}


def made(name: str, store: mk.Store, folder: Path) -> bytes:
    """One of them, made on an empty store; the folder is for drafts."""
    demonstration = DEMONSTRATIONS[name]
    draft = folder / f"{name}.jsonl"
    box = mk.Sandbox(store, backend="local") if demonstration.sandbox else None
    try:
        agent = mk.Agent(
            "scripted",
            store=store if demonstration.memory else None,
            sandbox=box,
            record=draft,
            on_existing="overwrite",  # so that it can be replayed twice
        )
        agent.run(demonstration.prompt, show=False)
    finally:
        if box is not None:
            box.stop()
    drafted = recording.load(draft)
    paced = [Exchange(said.prompt, [_paced(answer) for answer in said.answers]) for said in drafted.exchanges]
    return recording.dumped(replace(drafted, made_at=MADE_AT, exchanges=paced))


def _paced(answer: Answer) -> Answer:
    """At a pace that can be followed, whatever this machine's was; tokens are approximated where it is replayed."""
    said = "".join(str(block.get("text") or block.get("input")) for block in answer.blocks)
    return replace(answer, wait_ms=_WAIT_MS, took_ms=_MS_A_CHARACTER * len(said), usage={})


def main() -> None:
    """Write all of them."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # run by root, PostgreSQL runs as another account
        os.environ["MEMKERNEL_HOME"] = home
        with mk.connect() as connection:
            for name in DEMONSTRATIONS:
                store = connection.store(STORE, create=True)
                (recording.SHIPPED / f"{name}.jsonl").write_bytes(made(name, store, Path(home)))
                store.drop()
        subprocess.run([sys.executable, "-m", "memkernel", "stop"], check=True)


if __name__ == "__main__":
    main()
