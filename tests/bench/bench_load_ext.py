"""P18: `%load_ext memkernel` to the prompt, the embedded server running, against `import IPython`.

Run: `python -m tests.bench.bench_load_ext`. Each round is a fresh process; the median counts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from memkernel import cluster

TARGET_RATIO = 2.0
HEAVY = ("anthropic", "anywidget", "docker", "duckdb", "ipywidgets", "pandas", "pyarrow", "starlette", "uvicorn")

_CHILD = """
import sys, time
begun = time.perf_counter()
import IPython
imported = time.perf_counter()
shell = IPython.core.interactiveshell.InteractiveShell.instance()
ready = time.perf_counter()
shell.run_line_magic("load_ext", "memkernel")
loaded = time.perf_counter()
import json
heavy = [name for name in sys.argv[1].split() if name in sys.modules]
print(json.dumps({"ipython_us": (imported - begun) * 1e6, "load_us": (loaded - ready) * 1e6, "heavy": heavy}))
"""


def run(rounds: int = 15) -> list[dict[str, Any]]:
    """One result: medians of fresh processes, and which heavy libraries were imported."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "MEMKERNEL_HOME": f"{home}/memkernel"}
        server = cluster.EmbeddedCluster(home=environment["MEMKERNEL_HOME"])
        try:
            load_once(environment)  # makes the cluster and its tables
            figures = [load_once(environment) for _ in range(rounds)]
        finally:
            server.stop()
    ours, peer = (statistics.median(figure[name] for figure in figures) for name in ("load_us", "ipython_us"))
    return [
        {
            "id": "P18",
            "work": f"%load_ext memkernel (heavy imports: {', '.join(figures[0]['heavy']) or 'none'})",
            "peer": "import IPython",
            "ratio": round(ours / peer, 3),
            "target": TARGET_RATIO,
            "ours_us": round(ours),
            "peer_us": round(peer),
        }
    ]


def load_once(environment: dict[str, str]) -> dict[str, Any]:
    """The figures of one fresh process."""
    finished = subprocess.run(
        [sys.executable, "-c", _CHILD, " ".join(HEAVY)], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(finished.stdout.splitlines()[-1])


if __name__ == "__main__":
    for result in run():
        print(json.dumps(result))
