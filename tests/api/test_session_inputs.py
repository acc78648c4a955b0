"""What requests about sessions may hold, and what is refused by the field's name (CONTRACT B.1, C.1, C.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.beginning import SESSIONS, attach, begin, session
from tests.api.calls import Caller

LIMIT = {"type": "limit", "max_list_cost": {"amount": "2500", "currency": "USD"}}
MANY = {str(number): "v" for number in range(17)}
DEEP: Any = json.loads("[" * 100 + "]" * 100)


BROKEN: dict[str, list[Any]] = {
    "agent": [
        *(
            None,
            "",
            "a" * 256,
            3,
            True,
            [],
            ["agent_1"],
            {},
            {"id": None},
            {"id": ""},
            {"id": 3},
            "nul\0",
            "\ud800",
            "a\n",
        ),
        *({"type": "agent"}, {"id": "a", "type": "bot"}, {"id": "a", "type": None}, {"id": "a", "version": 0}),
        *({"id": "a", "version": version} for version in (-1, 1.0, "1", True, None, 2**31, 10**400)),
        {"id": "a", "name": "unknown"},
    ],
    "environment_id": [None, "", "e" * 256, 3, True, [], {"id": "env"}, "nul\0", "\ud800"],
    "title": ["t" * 256, "bell\x07", "line\n", "nul\0", "\ud800", 3, True, ["t"], {}],
    "metadata": [None, [], "x", {"": "v"}, {"k": None}, {"k": 1}, {"k": "v" * 513}, {"k" * 65: "v"}, {"k": "\0"}, MANY],
    "vault_ids": [None, "vlt_1", {}, [""], [None], [3], ["v" * 256], [["vlt_1"]], ["\0"], 3],
    "budget": [
        *(None, 25, "25", [], {}, {"type": "limit"}, {"max_list_cost": LIMIT["max_list_cost"]}, {**LIMIT, "more": 1}),
        *({**LIMIT, "type": kind} for kind in ("none", None, 1)),
        *({**LIMIT, "max_list_cost": cost} for cost in (None, "25", {}, {"amount": "25"}, {"currency": "USD"})),
        *(
            {**LIMIT, "max_list_cost": {"amount": amount, "currency": "USD"}}
            for amount in ("", "-1", "2.5", "025", "1e3", "9" * 19, 25, None)
        ),
        *(
            {**LIMIT, "max_list_cost": {"amount": "1", "currency": currency}}
            for currency in ("EUR", "usd", "", None, 1)
        ),
    ],
    "initial_events": [None, "x", {}, [{"type": "user.message", "content": []}], [None], 3],
    "resources": [None, "x", {}, 3, [None], ["x"], [[]], [{}], [{"type": None}], [{"type": "drive"}], DEEP],
}


@pytest.mark.parametrize("field", BROKEN)
def test_a_broken_field_is_named_and_leaves_no_session(call: Caller, field: str) -> None:
    body = {"agent": "agent_1", "environment_id": "env_1"}
    for value in BROKEN[field]:
        call("POST", SESSIONS, {**body, field: value}).refusal(field)
    assert call.all(SESSIONS, include_archived=True) == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"agent": ""}, "agent.id has 0 characters; it must have 1 to 255"),
        ({"agent": {"id": ""}}, "agent.id has 0 characters; it must have 1 to 255"),
        ({"agent": {"id": "a", "version": 0}}, "agent.version is 0"),
        ({"agent": 3}, "agent must be an id, or an object that has one"),
        ({"agent": None}, "agent must be an id, or an object that has one"),
        ({"environment_id": ""}, "environment_id has 0 characters; it must have 1 to 255"),
    ],
)
def test_a_refusal_reads_as_a_sentence(call: Caller, body: Any, told: str) -> None:
    message = call("POST", SESSIONS, {"agent": "agent_1", "environment_id": "env_1", **body}).refusal(*body)
    assert message.startswith(told)


@pytest.mark.parametrize("field", ["agent", "environment_id"])
def test_what_every_session_needs(call: Caller, field: str) -> None:
    body = {"agent": "agent_1", "environment_id": "env_1"}
    del body[field]
    call("POST", SESSIONS, body).refusal(f"{field} is missing")
    call("POST", SESSIONS).refusal("agent is missing")


def test_an_unknown_field_is_refused(call: Caller) -> None:
    begin(call, status="running").refusal("status")
    made = begin(call).ok["id"]
    for field in ("status", "environment_id", "resources", "archived_at"):
        call("POST", session(made), {field: "x"}).refusal(field)


@pytest.mark.parametrize("field", ["mount_path", "name", "description", "id"])
def test_what_a_resource_tells_is_not_asked_for(call: Caller, field: str) -> None:
    """Output only (CONTRACT C.2)."""
    begin(call, attach(call.store(), **{field: "x"})).refusal(f"'{field}' is not a field of resources[0]")


@pytest.mark.parametrize("ident", [None, 3, True, [], "", "nul\0", "\ud800"])
def test_the_id_of_a_store_is_a_text(call: Caller, ident: Any) -> None:
    begin(call, {"type": "memory_store", "memory_store_id": ident}).refusal("resources[0]")
    begin(call, {"type": "memory_store"}).refusal("resources[0].memory_store_id is missing")


@pytest.mark.parametrize(
    "resource",
    [
        {"type": "file", "file_id": "file_1"},
        {"type": "file", "file_id": "file_1", "mount_path": "/mnt/x"},
        {"type": "github_repository", "url": "https://github.com/a/b", "authorization_token": "t"},
    ],
)
def test_files_and_repositories_are_not_mounted(call: Caller, resource: Any) -> None:
    """One of them takes the whole session with it."""
    message = begin(call, call.store(), resource).refusal("resources[1].type")
    assert "memkernel mounts memory stores only" in message
    assert call.all(SESSIONS) == []


def test_events_are_not_run(call: Caller) -> None:
    event = {"type": "user.message", "content": [{"type": "text", "text": "hi"}]}
    assert "memkernel runs no agents" in begin(call, initial_events=[event]).refusal("initial_events")


@pytest.mark.parametrize("field", ["mcp_servers", "model", "skills", "system", "tools"])
def test_an_agent_is_not_overridden(call: Caller, field: str) -> None:
    agent = {"id": "agent_1", "type": "agent_with_overrides"}
    assert begin(call, agent=agent).ok["agent"]["id"] == "agent_1"
    assert "memkernel runs no agents" in begin(call, agent={**agent, field: []}).refusal(f"agent.{field}")


@pytest.mark.parametrize("field", ["title", "metadata", "budget"])
def test_a_broken_field_changes_nothing(call: Caller, field: str) -> None:
    made = begin(call, title="t", metadata={"a": "1"}, budget=LIMIT).ok
    for value in BROKEN[field]:
        if value not in (None, {"k": None}, MANY):  # a patch may hold these
            call("POST", session(made["id"]), {"title": "u", field: value}).refusal(field)
    call("POST", session(made["id"]), {"metadata": {str(number): "v" for number in range(16)}}).refusal("metadata")
    assert call("GET", session(made["id"])).ok == made


@pytest.mark.parametrize("body", [{"agent": {"tools": []}}, {"agent": {}}, {"agent": None}, {"vault_ids": []}])
def test_what_cannot_be_changed_is_refused(call: Caller, body: Any) -> None:
    call("POST", session(begin(call).ok["id"]), body).refusal(*body)


BROKEN_FILTERS: dict[str, list[str]] = {
    "limit": ["0", "101", "-1", "", "x", "1.5", "9" * 30, "٣"],
    "order": ["", "newest", "ASC"],
    "include_archived": ["", "1", "True", "yes"],
    "agent_version": ["0", "-1", "x", "", "1.0", "9" * 12],
    "created_at[gt]": ["", "now", "2026-13-01T00:00:00Z", "1", "2026-11-30"],
    "created_at[gte]": ["0000-00-00T00:00:00Z"],
    "created_at[lt]": ["2026-11-30T25:00:00Z"],
    "created_at[lte]": ["2026-11-30T10:00:00+99:99"],
    "statuses[]": ["", "done", "IDLE", "idle,running"],
    "page": ["", "x", "page_", "page_AAAA", "page_" + "A" * 4_000],
    "agent_id": ["%00"],
    "memory_store_id": ["%00"],
    "deployment_id": ["%00"],
}


@pytest.mark.parametrize("name", BROKEN_FILTERS)
def test_a_broken_filter_is_named(call: Caller, name: str) -> None:
    begin(call)
    for value in BROKEN_FILTERS[name]:
        sent = value if value == "%00" else value.replace("+", "%2B")
        call("GET", SESSIONS, raw_query=f"{name}={sent}").refusal(name.partition("[")[0])
    if name != "statuses[]":
        call("GET", SESSIONS, raw_query=f"{name}=1&{name}=1").refusal(name)


def test_filters_that_nobody_knows_are_ignored(call: Caller) -> None:
    made = begin(call).ok
    assert call("GET", SESSIONS, raw_query="beta=true&depth=9&view=x&statuses=done").ok["data"] == [made]
