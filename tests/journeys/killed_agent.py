"""A notebook's process with an agent, to be killed. What it imports is loaded once: each run is in a fork.

It reads lines `[dsn, url, session_id, run_id, at]` of JSON, and answers with the fork's pid; then, once that one has
ended, with its exit status. The fork goes on with the run, or begins one where it is `-`; it kills itself `at` a
moment, or waits for whoever kills it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import anthropic

import memkernel as mk
from memkernel.agent.events import Event, ToolCalled, ToolReturned, TurnEnded
from memkernel.tool.postgres import PostgresBackend

WRITING = "between the commit and the answer"
AT: dict[str, type[Event]] = {
    "when the call is written": ToolCalled,
    "when the call has returned": ToolReturned,
    "when the turn has ended": TurnEnded,
}


def die() -> None:
    """As `kill -9` does it."""
    os.kill(os.getpid(), signal.SIGKILL)


def dies_after(work: Callable[..., str]) -> Callable[..., str]:
    """The same work, and then the end."""

    def last(*given: Any) -> str:
        work(*given)
        die()
        return ""

    return last


def run(dsn: str, url: str, session_id: str, run_id: str, at: str) -> None:
    """Carry the conversation on to its end, or the process's."""
    if at == WRITING:
        PostgresBackend.create = dies_after(PostgresBackend.create)
    client = anthropic.Anthropic(base_url=url, api_key="k", http_client=anthropic.DefaultHttpxClient(trust_env=False))
    with mk.connect(dsn) as db:
        agent = mk.Agent(client=client, store=db.store("Notes"), session_id=session_id, max_turns=1_000)

        def sink(event: Event) -> None:
            if at in AT and isinstance(event, AT[at]):
                die()

        if run_id == "-":
            agent.run("Go", show=False, sink=sink)
        else:
            agent.resume(run_id, show=False, sink=sink)


def main() -> None:
    """Fork for each line."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run(*json.loads(line))
            os._exit(0)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
