"""All benchmarks of PERFORMANCE: `python -m tests.bench [name …]`. Prints each figure beside its target and its peer.

No timed test: nothing fails here. The figures go to tests/bench/results.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench import (
    bench_client,
    bench_diff,
    bench_load_ext,
    bench_sandbox,
    bench_scan,
    bench_serve,
    bench_store,
    bench_sync,
    bench_tool,
    bench_widgets,
)

Result = dict[str, Any]

BENCHES: dict[str, Callable[[], list[Result]]] = {
    "tool": bench_tool.run,
    "store": bench_store.run,
    "diff": bench_diff.run,
    "load_ext": bench_load_ext.run,
    "scan": bench_scan.run,
    "sync": bench_sync.run,
    "sandbox": bench_sandbox.run,
    "client": bench_client.run,
    "serve": bench_serve.run,
    "widgets": bench_widgets.run,
}


def main(names: list[str]) -> None:
    results = [result for name in names or BENCHES for result in BENCHES[name]()]
    print(f"{'':5} {'work':58} {'ours':>11} {'peer':>11} {'ratio':>7} {'target':>7}  peer")
    for result in results:
        print(line(result))
    Path(__file__).with_name("results.json").write_text(json.dumps(results, indent=1))


def line(result: Result) -> str:
    """One row: medians, times in microseconds; the ratio with a mark where the target is missed."""
    ratio, target, unit = result["ratio"], result["target"], result.get("unit", "us")
    missed = target is not None and (ratio < target if result.get("at_least") else ratio > target)
    ours, peer = (f"{result[name]:>9,.0f}{unit:2}" for name in ("ours_us", "peer_us"))
    return (
        f"{result['id']:5} {result['work'][:58]:58} {ours} {peer} "
        f"{ratio:>7.3f} {target if target is not None else '':>7} {'!' if missed else ' '} {result['peer']}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
