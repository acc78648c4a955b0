"""What every route has in common (CONTRACT B.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from memkernel.api.auth import KeyAuthenticator
from memkernel.api.dispatch import ROUTES, Api, Strictness
from memkernel.api.messages import Principal, Request
from memkernel.api.routes import MEMORY_BETA, SESSION_BETA
from memkernel.errors import ApiError
from memkernel.store import Database
from tests.api.calls import KEY, PRINCIPAL, Caller, at

BETA = "anthropic-beta"
STORES = "/v1/memory_stores"


@pytest.fixture
def store(call: Caller) -> str:
    return call.store()


# -- who calls ---------------------------------------------------------------------------------------


@pytest.fixture
def keyed(database: Database) -> tuple[Caller, str]:
    """An API that asks for keys, and a key."""
    _, secret = database.keys.create("default")
    return Caller(Api(database, KeyAuthenticator(database, reach="network")).dispatch), secret


def test_a_key_comes_in_either_header(keyed: tuple[Caller, str]) -> None:
    """F.98."""
    call, secret = keyed
    for headers in ({"authorization": f"Bearer {secret}"}, {"x-api-key": secret}):
        assert call("GET", STORES, headers=headers).status == 200


@pytest.mark.parametrize("path", [STORES, "/v1/nothing", f"{STORES}/memstore_1"])
@pytest.mark.parametrize(
    "headers",
    [{}, {"x-api-key": ""}, {"x-api-key": "mk_wrong"}, {"authorization": "Bearer wrong"}, {"authorization": "Basic x"}],
    ids=str,
)
def test_no_key_or_a_wrong_one(keyed: tuple[Caller, str], path: str, headers: dict[str, str]) -> None:
    """F.99: before anything else is told, the workspace included."""
    call, _ = keyed
    answer = call("GET", path, headers=headers)
    answer.error(401, "authentication_error")
    assert "anthropic-workspace-id" not in answer.headers


def test_a_key_that_may_only_read(database: Database, call: Caller) -> None:
    """403 for whatever writes, before its body is looked at."""
    store = call.store()
    memory = call.memory(store)
    reader = Caller(Api(database, lambda _: Principal("default", KEY, read_only=True)).dispatch)
    for route in ROUTES.routes:
        path = route.path.replace("{memory_store_id}", store).replace("{memory_id}", memory["id"])
        path = path.replace("{memory_version_id}", memory["memory_version_id"])
        answer = reader(route.method, path, body=b"no JSON")
        assert answer.status != 403 if route.method == "GET" else answer.error(403, "permission_error")
    assert reader("GET", at(store, memory["id"])).ok["content"] == "text"


def test_the_workspace_is_told_and_asked_for(call: Caller, store: str) -> None:
    """B.1: `anthropic-workspace-id`."""
    assert call("GET", STORES).headers["anthropic-workspace-id"] == "default"
    assert call("GET", "/v1/nothing").headers["anthropic-workspace-id"] == "default"
    assert call("GET", STORES, headers={"anthropic-workspace-id": "default"}).status == 200
    for path in (at(store), "/v1/nothing"):
        error = call("GET", path, headers={"anthropic-workspace-id": "other"}).error(403, "permission_error")
        assert "'other'" in error["message"]


def test_another_workspaces_things_are_not_there(database: Database, call: Caller, store: str) -> None:
    """B.1.1: 404."""
    memory = call.memory(store)
    other = Caller(Api(database, lambda _: Principal("other", KEY)).dispatch)
    assert other("GET", STORES).ok["data"] == []
    for method, path, body in (
        ("GET", at(store), None),
        ("POST", at(store), {"name": "mine"}),
        ("DELETE", at(store), None),
        ("POST", f"{at(store)}/archive", None),
        ("GET", f"{at(store)}/memories", None),
        ("POST", f"{at(store)}/memories", {"path": "/b", "content": ""}),
        ("GET", at(store, memory["id"]), None),
        ("POST", at(store, memory["id"]), {"content": "mine"}),
        ("DELETE", at(store, memory["id"]), None),
        ("GET", f"{at(store)}/memory_versions", None),
        ("GET", at(store, version=memory["memory_version_id"]), None),
        ("POST", f"{at(store, version=memory['memory_version_id'])}/redact", None),
    ):
        other(method, path, body).error(404, "not_found_error")
    assert call("GET", at(store, memory["id"])).ok["content"] == "text"


# -- headers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21", "anything", None])
def test_any_version_of_the_api(call: Caller, version: str | None) -> None:
    """F.101."""
    headers = {} if version is None else {"anthropic-version": version}
    assert call("GET", STORES, headers=headers).status == 200


@pytest.mark.parametrize("betas", [MEMORY_BETA, SESSION_BETA, f"{SESSION_BETA},{MEMORY_BETA}", "other-2026", "", None])
def test_any_beta(call: Caller, betas: str | None) -> None:
    """F.102, F.103, FAULTS B 28: lenient by default."""
    headers = {} if betas is None else {BETA: betas}
    for path in (STORES, "/v1/sessions"):
        assert call("GET", path, headers=headers).status == 200


@pytest.mark.parametrize("betas", [MEMORY_BETA, SESSION_BETA, f"other, {MEMORY_BETA}", f"{SESSION_BETA} ,other"])
def test_one_beta_where_that_is_strict(strict: Callable[..., Caller], betas: str) -> None:
    """F.102."""
    assert strict(beta=True)("GET", STORES, headers={BETA: betas}).status == 200


@pytest.mark.parametrize(
    "betas", [f"{SESSION_BETA},{MEMORY_BETA}", f"{MEMORY_BETA}, {SESSION_BETA}", "other", "", None]
)
def test_both_betas_or_none_where_that_is_strict(strict: Callable[..., Caller], betas: str | None) -> None:
    """F.103, FAULTS B 28: the error names the header."""
    headers = {} if betas is None else {BETA: betas}
    message = strict(beta=True)("GET", STORES, headers=headers).refusal(BETA)
    assert MEMORY_BETA in message
    assert SESSION_BETA in message


def test_a_sessions_beta_where_that_is_strict(strict: Callable[..., Caller]) -> None:
    """C.1: sessions know one only."""
    call = strict(beta=True)
    assert call("GET", "/v1/sessions", headers={BETA: SESSION_BETA}).status == 200
    assert call("GET", "/v1/sessions", headers={BETA: f"{SESSION_BETA},{MEMORY_BETA}"}).status == 200
    assert SESSION_BETA in call("GET", "/v1/sessions", headers={BETA: MEMORY_BETA}).refusal(BETA)


def test_a_json_content_type_with_an_empty_body(call: Caller, store: str) -> None:
    """F.104."""
    memory = call.memory(store)
    call.update(memory, content="new")
    headers = {"content-type": "application/json", "content-length": "0"}
    version = at(store, version=memory["memory_version_id"])
    for method, path in (
        ("POST", f"{version}/redact"),
        ("DELETE", at(store, memory["id"])),
        ("POST", f"{at(store)}/archive"),
        ("DELETE", at(store)),
    ):
        assert call(method, path, body=b"", headers=headers).status == 200


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"nothing": 1}', b"null", b"\0" * 10])
def test_a_body_where_none_is_read(call: Caller, store: str, body: bytes) -> None:
    """B.1: it is ignored."""
    assert call("GET", at(store), body=body).status == 200
    assert call("POST", f"{at(store)}/archive", body=body).status == 200
    assert call("DELETE", at(store), body=body).status == 200


def test_every_response_has_an_id_of_its_own(call: Caller, store: str) -> None:
    """F.105, F.106."""
    answers = [
        call("GET", at(store)),
        call("GET", at("nothing")),
        call("POST", at(store), body=b"{"),
        call("PATCH", at(store)),
        call("GET", "/nothing"),
        call("GET", "/openapi.json"),
    ]
    request_ids = [answer.headers["request-id"] for answer in answers]
    assert len({*request_ids}) == len(answers)
    assert all(re.fullmatch(r"req_[0-9a-z]{26}", request_id) for request_id in request_ids)
    for answer in answers[1:5]:
        assert answer.json["type"] == "error"
        assert answer.json["error"].keys() == {"type", "message"}
        assert answer.json["request_id"] == answer.headers["request-id"]


# -- routes ------------------------------------------------------------------------------------------


NO_ROUTES = (
    *("", "/", "/v1", "/v1/", "/v1/memory_stores/", "/v1/memory_store", "/v2/memory_stores", "//v1/memory_stores"),
    *("/v1/memory_stores/x/memories/y/z", "/v1/memory_stores//memories", "/v1/messages", "/V1/memory_stores", "*"),
)


@pytest.mark.parametrize("path", NO_ROUTES)
def test_a_path_that_is_no_route(call: Caller, path: str) -> None:
    """F.110."""
    for method in ("GET", "POST", "BREW"):
        call(method, path).error(404, "not_found_error")


@pytest.mark.parametrize("method", ["PATCH", "PUT", "HEAD", "OPTIONS", "TRACE", "BREW", "get"])
def test_a_method_that_a_route_does_not_have(call: Caller, store: str, method: str) -> None:
    """F.110."""
    memory = call.memory(store)
    for path, allowed in (
        (at(store), "DELETE, GET, POST"),
        (at(store, memory["id"]), "DELETE, GET, POST"),
        (STORES, "GET, POST"),
        (f"{at(store)}/archive", "POST"),
        (at(store, version=memory["memory_version_id"]), "GET"),
    ):
        answer = call(method, path, {"content": "new"})
        answer.error(405, "invalid_request_error")
        assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "ident", ["a%2Fb", "a%3Fb", "%00", "%ff", "%", "%zz", "..", "a%20b", "%F0%9F%98%80", "x" * 5_000]
)
def test_an_id_that_is_percent_encoded(call: Caller, store: str, ident: str) -> None:
    """F.111: decoded, looked up, not found."""
    for path in (f"{STORES}/{ident}", f"{at(store)}/memories/{ident}", f"{at(store)}/memory_versions/{ident}"):
        call("GET", path).error(404, "not_found_error")
        assert call("DELETE", path).status in (404, 405)


def test_an_id_may_be_percent_encoded_for_no_reason(call: Caller, store: str) -> None:
    """F.111."""
    encoded = "".join(f"%{byte:02x}" for byte in store.encode())
    assert call("GET", f"{STORES}/{encoded}").ok["id"] == store


def test_times_are_rfc_3339_with_a_zone(call: Caller, store: str) -> None:
    """F.114."""
    memory = call.memory(store)
    call.delete(memory)
    call("POST", f"{at(store, version=memory['memory_version_id'])}/redact")
    call("POST", f"{at(store)}/archive")
    found = [call("GET", at(store)).ok, memory, *call.versions(store)]
    moments = [value for item in found for name, value in item.items() if name.endswith("_at") and value]
    assert len(moments) == 3 + 2 + 3
    for moment in moments:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", moment)
        assert datetime.fromisoformat(moment).utcoffset() == timedelta()


def test_what_is_not_there_is_null(call: Caller, store: str) -> None:
    """F.115."""
    memory = call.memory(store)
    assert call("GET", at(store)).ok["archived_at"] is None
    assert memory["content"] is None
    version = call("GET", at(store, version=memory["memory_version_id"]), view="basic").ok
    assert {version[name] for name in ("content", "redacted_at", "redacted_by")} == {None}
    assert call("GET", STORES).ok["next_page"] is None


# -- what never leaves -------------------------------------------------------------------------------


class Broken:
    """A database of which every use fails in a way that nobody thought of."""

    def in_workspace(self, _: str) -> Any:
        raise RuntimeError("SELECT secret FROM /home/ann at postgresql://ann:pw@db/notes")

    def page_key(self) -> bytes:
        return b""


def test_what_nobody_thought_of(caplog: pytest.LogCaptureFixture) -> None:
    """A neutral sentence for the client, the rest for the log, under the same id."""
    call = Caller(Api(Broken(), lambda _: PRINCIPAL).dispatch)  # pyright: ignore[reportArgumentType]  # it is broken
    answer = call("GET", STORES)
    message = answer.error(500, "api_error")["message"]
    assert not re.search("secret|/home|postgres|Runtime", json.dumps(answer.json))
    assert "memkernel" in message
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("memkernel.api", "ERROR")
    assert answer.headers["request-id"] in record.getMessage()
    assert "SELECT secret" in caplog.text


def test_an_authenticator_that_fails(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Request) -> Principal:
        raise KeyError("mk_secret")

    Caller(Api(database, fail).dispatch)("GET", STORES).error(500, "api_error")
    assert "KeyError" in caplog.text


def test_an_authenticator_that_refuses(database: Database) -> None:
    """It is asked before anything else is looked at."""

    def refuse(_: Request) -> Principal:
        raise ApiError(403, "not by this name")

    call = Caller(Api(database, refuse, Strictness(beta=True)).dispatch)
    for method, path in (("GET", STORES), ("BREW", STORES), ("GET", "/nothing"), ("POST", STORES)):
        assert call(method, path, body=b"{").error(403, "permission_error")["message"] == "not by this name"


def test_a_client_does_not_read_what_is_for_notebooks(call: Caller, store: str) -> None:
    """No hint of a magic, and no sentence without end."""
    memory = call.memory(store)
    call("POST", f"{at(store)}/archive")
    answers = [
        call("GET", at("x")),
        call("GET", at(store, "x")),
        call("GET", at(store, version="x")),
        call("POST", at(store), {"name": "y"}),
        call("POST", f"{at(store)}/memories", {"path": "x" * 100_000, "content": ""}),
        call("GET", f"/{'x' * 100_000}"),
        call("GET", at("x" * 100_000)),
        call("POST", f"{at(store, version=memory['memory_version_id'])}/redact"),
    ]
    for answer in answers:
        assert answer.status in (400, 404)
        assert "%" not in answer.json["error"]["message"]
        assert len(answer.json["error"]["message"]) <= 1_000


def test_an_interrupt_is_no_response(database: Database) -> None:
    """In process, the stop button of a notebook ends the call."""

    def interrupted(_: Request) -> Principal:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Api(database, interrupted).dispatch(Request("GET", STORES))


def test_a_view_that_the_caller_chooses(database: Database) -> None:
    """Where workspaces cannot be kept apart by a role, the owner itself serves."""
    asked: list[str] = []

    def owner(workspace_id: str) -> Database:
        asked.append(workspace_id)
        return database

    call = Caller(Api(database, lambda _: PRINCIPAL, in_workspace=owner).dispatch)
    assert call("GET", at(call.store())).status == 200
    assert asked == ["default", "default"]
