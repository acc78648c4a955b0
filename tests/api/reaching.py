"""Hooks of schemathesis (SCHEMATHESIS_HOOKS): most of its requests name what is there, to come behind the 404s.

What a request would delete, archive or redact is made for it.
"""

from __future__ import annotations

import os
import zlib
from typing import Any, Final, cast

import httpx
import schemathesis
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import TestPhase

Case = schemathesis.Case[Any]
Ids = dict[str, Any]

_api: Final = httpx.Client(
    base_url=os.environ["MEMORY_SERVER"],
    headers={"x-api-key": os.environ["MEMORY_SEEDING_KEY"]},
    trust_env=False,  # the way to 127.0.0.1 leads through no proxy
)
_ENDING: Final = ("archive", "delete", "redact")
_LEFT_ALONE: Final = 5  # one request in so many goes as it was made up


@schemathesis.hook  # pyright: ignore[reportUnknownMemberType] - schemathesis types it in part
def before_call(context: schemathesis.HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    """Put ids of what is there in place of those that are meant to be right; the stateful phase finds its own."""
    del context, kwargs
    if _is_left_alone(case):
        return
    if case.path_parameters and not _is_wrong(case, ParameterLocation.PATH):
        ends = case.operation.definition.raw["operationId"].endswith(_ENDING)
        found = _everything() if ends else _lasting
        case.path_parameters.update({name: found[name] for name in case.path_parameters})
    body: Any = case.body
    if isinstance(body, dict) and not _is_wrong(case, ParameterLocation.BODY):
        for resource in cast(Ids, body).get("resources") or ():
            resource["memory_store_id"] = _lasting["memory_store_id"]


def _is_left_alone(case: Case) -> bool:
    if case.meta is None or case.meta.phase.name is TestPhase.STATEFUL:
        return True
    made_up = repr((case.method, case.path, case.path_parameters, case.query, case.body))
    return zlib.crc32(made_up.encode(errors="surrogatepass")) % _LEFT_ALONE == 0


def _is_wrong(case: Case, location: ParameterLocation) -> bool:
    return case.meta is not None and case.meta.is_negative_at(location)


def _post(path: str, /, **body: Any) -> Any:
    return _api.post(path, json=body).raise_for_status().json()


def _everything() -> Ids:
    """A store with a memory of two versions, the first of which can be redacted, and a session beside them."""
    store = _post("/v1/memory_stores", name="Made up")["id"]
    memory = _post(f"/v1/memory_stores/{store}/memories", path="/a.md", content="one")
    _post(f"/v1/memory_stores/{store}/memories/{memory['id']}", content="two")
    attached = _post("/v1/memory_stores", name="Attached")["id"]
    resources = [{"type": "memory_store", "memory_store_id": attached}]
    session = _post("/v1/sessions", agent="agent_a", environment_id="env_a", resources=resources)["id"]
    return {
        "memory_store_id": store,
        "memory_id": memory["id"],
        "memory_version_id": memory["memory_version_id"],
        "session_id": session,
        "resource_id": attached,
    }


_lasting: Final = _everything()
