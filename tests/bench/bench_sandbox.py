"""P13, P14: a cell in the sandbox against the same cell in a plain local kernel, driven by jupyter_client.

Run: `python -m tests.bench.bench_sandbox`. Nothing here fails: the figures stand beside their targets. The sandbox is
the whole of it: a container, and a sync of its store before and after each cell, which find nothing to do; the bare
kernel in a container and the local backend stand beside it, without a target. All take turns.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from jupyter_client.manager import KernelManager

import memkernel as mk
from memkernel import cluster, config
from memkernel.sandbox.base import SandboxSpec
from memkernel.sandbox.docker import DockerSandbox
from memkernel.sandbox.engine import Engine, find_engine
from memkernel.sandbox.local import LocalSandbox
from tests.docker_daemon import build_image

Result = dict[str, Any]
Contenders = dict[str, Callable[[], object]]

PEER: Final = "a plain local kernel"
BURST: Final = 10
"""Cells of one contender in a row; then the next one has its turn."""
MANY: Final = 2_000
CELL: Final = "1 + 1"


def run(cells: int = 200, starts: int = 7) -> list[Result]:
    """One result for each work."""
    engine = find_engine(config.load())
    try:
        image = build_image(engine)
        return [*_warm(engine, image, cells), *_cold(engine, image, starts)]
    finally:
        engine.close()


# -- P13: warm cells -------------------------------------------------------------------------------


def _warm(engine: Engine, image: str, cells: int) -> list[Result]:
    with ExitStack() as stack:
        stores = stack.enter_context(_stores())
        boxes = {
            f"of the sandbox, {name}": stack.enter_context(mk.Sandbox(store, backend="docker", image=image))
            for name, store in stores.items()
        }
        bare = stack.enter_context(_started(DockerSandbox(_spec(image), engine)))
        local = stack.enter_context(_started(LocalSandbox(_spec())))
        contenders: Contenders = {name: lambda box=box: box.run(CELL) for name, box in boxes.items()}
        contenders["of its kernel alone"] = lambda: bare.run(CELL)
        contenders["of a local sandbox's kernel"] = lambda: local.run(CELL)
        contenders[PEER] = stack.enter_context(_plain_kernel())
        times = _interleaved(contenders, cells)
    targets = [1.8, 3.5, None, None]
    return [
        _result("P13", f"warm cell {name}", times[name], times[PEER], target)
        for name, target in zip(contenders, targets, strict=False)
    ]


@contextmanager
def _stores() -> Generator[dict[str, mk.Store]]:
    """An empty store and a large one, in a server of their own."""
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)  # as root, the server runs under another account
        server = cluster.EmbeddedCluster(home=f"{home}/memkernel")
        before = os.environ.get("MEMKERNEL_HOME")
        os.environ["MEMKERNEL_HOME"] = f"{home}/sessions"
        try:
            with mk.connect(server.ensure()) as connection:
                empty = connection.store("Empty", create=True)
                large = connection.store("Large", create=True)
                for number in range(MANY):
                    large.write(f"/d{number // 100:02}/f{number:04}.md", f"text {number}\n")
                yield {"nothing to sync": empty, f"{MANY:,} files mounted": large}
        finally:
            server.stop()
            if before is None:
                del os.environ["MEMKERNEL_HOME"]
            else:
                os.environ["MEMKERNEL_HOME"] = before


def _interleaved(contenders: Contenders, cells: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        for _ in range(BURST):
            call()
    for _ in range(max(cells // BURST, 1)):
        for name, call in contenders.items():
            for _ in range(BURST):
                began = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - began)
    return times


# -- P14: from nothing to the first cell's result --------------------------------------------------


def _cold(engine: Engine, image: str, starts: int) -> list[Result]:
    def docker() -> None:
        with _started(DockerSandbox(_spec(image), engine)) as box:
            box.run(CELL)

    def local() -> None:
        with _started(LocalSandbox(_spec())) as box:
            box.run(CELL)

    def plain() -> None:
        with _plain_kernel() as cell:
            cell()

    times: dict[str, list[float]] = {"docker": [], "local": [], PEER: []}
    for _ in range(starts):
        for name, work in (("docker", docker), ("local", local), (PEER, plain)):
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    return [
        _result("P14", "container created to its end, with a first cell", times["docker"], times[PEER], 2.5),
        _result("P14", "the same of a local sandbox", times["local"], times[PEER], None),
    ]


# -- contenders ------------------------------------------------------------------------------------


def _spec(image: str | None = None) -> SandboxSpec:
    return SandboxSpec(f"sesn_{uuid.uuid4().hex}", "memkernel-bench", image=image)


@contextmanager
def _started(box: DockerSandbox | LocalSandbox) -> Generator[DockerSandbox | LocalSandbox]:
    box.start()
    try:
        yield box
    finally:
        box.stop()


@contextmanager
def _plain_kernel() -> Generator[Callable[[], object]]:
    """A local kernel and jupyter_client's own blocking client, over ipc; the call runs the cell to its end."""
    with tempfile.TemporaryDirectory(prefix="mk") as folder:
        manager: Any = KernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        manager.start_kernel(env={**os.environ, "HOME": folder, "IPYTHONDIR": f"{folder}/ipython"})
        client: Any = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)

        def cell() -> object:
            request = client.execute(CELL)
            reply = client.get_shell_msg(timeout=60)
            while True:
                message = client.get_iopub_msg(timeout=60)
                mine = message["parent_header"].get("msg_id") == request
                if mine and message["content"].get("execution_state") == "idle":
                    return reply

        try:
            yield cell
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            manager.cleanup_resources()


def _result(name: str, work: str, ours: list[float], peer: list[float], target: float | None) -> Result:
    """Medians; the worst of twenty beside them."""
    median, other = statistics.median(ours), statistics.median(peer)
    return {
        "id": name,
        "work": work,
        "ours_us": median * 1e6,
        "peer_us": other * 1e6,
        "ratio": median / other,
        "target": target,
        "peer": PEER,
        "ours_p95_us": sorted(ours)[int(len(ours) * 0.95)] * 1e6,
        "peer_p95_us": sorted(peer)[int(len(peer) * 0.95)] * 1e6,
    }


def main() -> None:
    results = run()
    for result in results:
        print(f"{result['id']} {result['work']:60} {result['ours_us'] / 1e3:8.2f} ms {result['ratio']:6.2f}")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
