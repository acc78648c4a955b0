"""schemathesis on the OpenAPI document as served, against a real server: what the document says is true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from memkernel.api.auth import key_id
from memkernel.api.dispatch import ROUTES
from memkernel.api.messages import Request
from tests.fix_server import MemoryServer

_SCHEMATHESIS: Final = (
    *(sys.executable, "-m", "schemathesis.cli", "run"),
    *("--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "15"),
    *("--generation-deterministic", "--workers", "1"),
    *("--suppress-health-check", "all"),  # how fast a busy machine makes examples says nothing about the server
    *("--continue-on-failure", "--no-color"),
    # A right document cannot say that a store is archived or attached, who signed a page token, what NFC is.
    *("--checks", "all", "--exclude-checks", "positive_data_acceptance"),
)
_ACCESS: Final = re.compile(r"^(?:\S+ )*?([A-Z]+) (/\S*) (\d{3}) [\d.]+ ms \S+ (\S+)$", re.MULTILINE)
"""A request in the log of `serve`: method, path, status, the key's id."""


_NEVER: Final = {"session_resources.add", "session_resources.delete", "session_resources.update"}
"""What a session attaches stays as it is: these refuse whatever they are asked (CONTRACT C.2)."""


def test_the_document_is_true_and_nothing_ends_in_a_500(memory_server: MemoryServer, tmp_path: Path) -> None:
    """Every answer is one that the document tells of, what it forbids is refused, and each route is reached (F.97)."""
    key, seeding_key = memory_server.key(), memory_server.key()
    done = subprocess.run(
        [*_SCHEMATHESIS, f"{memory_server.url}/openapi.json", "--header", f"Authorization: Bearer {key}"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONHASHSEED": "0",
            "SCHEMATHESIS_HOOKS": "tests.api.reaching",
            "MEMORY_SERVER": memory_server.url,
            "MEMORY_SEEDING_KEY": seeding_key,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in memory_server.log
    requests = _ACCESS.findall(memory_server.log)
    assert {int(status) for _, _, status, _ in requests} == {200, 400, 401, 403, 404, 405, 409}
    seeding = key_id(Request("GET", "/", headers={"x-api-key": seeding_key}))
    reached = {_route(method, path) for method, path, status, by in requests if status == "200" and by != seeding}
    assert reached - {None} == {route.name for route in ROUTES.routes} - _NEVER


def _route(method: str, path: str) -> str | None:
    route = ROUTES.find(path)[0].get(method)
    return route and route.name
