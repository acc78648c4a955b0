"""The OpenAPI document is valid, and says what is served."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator

from memkernel.api.dispatch import ROUTES, Api
from memkernel.api.errors import TYPES
from memkernel.api.messages import Request
from tests.api.calls import Answer, Caller, Json, at

# CONTRACT B.2 and C.1.
DOCUMENTED: Final = {
    "/v1/memory_stores": "GET POST",
    "/v1/memory_stores/{memory_store_id}": "DELETE GET POST",
    "/v1/memory_stores/{memory_store_id}/archive": "POST",
    "/v1/memory_stores/{memory_store_id}/memories": "GET POST",
    "/v1/memory_stores/{memory_store_id}/memories/{memory_id}": "DELETE GET POST",
    "/v1/memory_stores/{memory_store_id}/memory_versions": "GET",
    "/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}": "GET",
    "/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}/redact": "POST",
    "/v1/sessions": "GET POST",
    "/v1/sessions/{session_id}": "DELETE GET POST",
    "/v1/sessions/{session_id}/archive": "POST",
    "/v1/sessions/{session_id}/resources": "GET POST",
    "/v1/sessions/{session_id}/resources/{resource_id}": "DELETE GET POST",
}
# CONTRACT B.2, and what B.3 to B.10 say of each.
QUERIES: Final = {
    "memory_stores.list": {"created_at[gte]", "created_at[lte]", "include_archived", "limit", "page"},
    "memories.create": {"view"},
    "memories.list": {"depth", "limit", "page", "path_prefix", "view"},
    "memories.retrieve": {"view"},
    "memories.update": {"view"},
    "memories.delete": {"expected_content_sha256"},
    "memory_versions.list": {
        *("api_key_id", "service_account_id", "session_id", "memory_id", "operation", "created_at[gte]"),
        *("created_at[lte]", "limit", "page", "view"),
    },
    "memory_versions.retrieve": {"view"},
}
RESOURCE: Final = {"type": "memory_store", "memory_store_id": "memstore_1", "access": None, "instructions": None}


@pytest.fixture
def document(call: Caller) -> Json:
    return call("GET", "/openapi.json").ok


def operations(document: Json) -> dict[str, Json]:
    return {each["operationId"]: each for path in document["paths"].values() for each in path.values()}


def test_it_is_served_without_a_key() -> None:
    """Even where nobody may do anything, and without a database."""

    def refuse(_: Request) -> Any:
        raise AssertionError

    api = Api(NOTHING, refuse)
    answer = api.dispatch(Request("GET", "/openapi.json"))
    assert json.loads(answer.body)["openapi"] == "3.1.0"
    assert answer.headers["content-type"] == "application/json"
    refused = api.dispatch(Request("POST", "/openapi.json"))
    assert (refused.status, refused.headers["allow"]) == (405, "GET")


NOTHING: Any = type("Nothing", (), {"in_workspace": None})()


def test_it_is_valid(document: Json) -> None:
    OpenAPIV31SpecValidator(document).validate()


def test_it_has_every_documented_route_and_no_other(document: Json) -> None:
    """F.97: CONTRACT B.2 and C.1."""
    assert {
        path: " ".join(sorted(map(str.upper, methods))) for path, methods in document["paths"].items()
    } == DOCUMENTED
    assert len(operations(document)) == len(ROUTES.routes)


def test_it_has_every_documented_parameter_and_no_other(document: Json) -> None:
    """CONTRACT B.2."""
    for name, operation in operations(document).items():
        if not name.startswith("session"):
            found = {each["name"] for each in operation["parameters"] if each["in"] == "query"}
            assert found == QUERIES.get(name, set()), name


def test_every_operation_is_described(document: Json) -> None:
    for operation in operations(document).values():
        assert operation["summary"].endswith(".")
        assert {"200", "400", "401", "403", "500", "503"} <= operation["responses"].keys()


def test_every_status_is_described(document: Json) -> None:
    """405 belongs to the methods that are not there."""
    used = {status for operation in operations(document).values() for status in operation["responses"]}
    assert used == {"200", *(str(status) for status in TYPES if status != 405)}


def test_a_new_things_answer_leads_on(document: Json) -> None:
    """Every operation on what is there can be reached from one that makes something."""
    links = [operation["responses"]["200"].get("links", {}) for operation in operations(document).values()]
    reached = {link["operationId"] for each in links for link in each.values()}
    expected = {route.name for route in ROUTES.routes if "{" in route.path and "{resource_id}" not in route.path}
    assert reached == expected
    made = operations(document)["memories.create"]["responses"]["200"]["links"]["memory_versions.redact"]
    assert made["parameters"] == {
        "memory_store_id": "$response.body#/memory_store_id",
        "memory_version_id": "$response.body#/memory_version_id",
    }


@pytest.mark.parametrize(
    ("name", "body", "taken"),
    [
        ("memory_stores.create", {"name": "n", "metadata": {"a": None}}, False),
        ("memory_stores.create", {"name": "n", "metadata": None}, False),
        ("memory_stores.create", {"name": "n", "description": None}, False),
        ("memory_stores.update", {"name": None, "description": None, "metadata": None}, True),
        ("memory_stores.update", {"metadata": {"a": None}}, True),
        ("memories.create", {"path": "/a", "content": None}, False),
        ("memories.update", {"path": None, "content": None, "precondition": None}, True),
        ("sessions.create", {"agent": "a", "environment_id": "e", "resources": [RESOURCE]}, True),
        ("sessions.update", {"title": None, "metadata": {"a": None}}, True),
    ],
)
def test_null_is_described_where_it_is_taken(document: Json, name: str, body: Json, taken: bool) -> None:
    """F.125, F.178; CONTRACT 0.3, row 7."""
    validator: Any = Draft202012Validator(
        operations(document)[name]["requestBody"]["content"]["application/json"]["schema"]
    )
    assert validator.is_valid(body) is taken


# -- what is answered is what it says ----------------------------------------------------------------


def conforms(document: Json, name: str, answer: Answer) -> None:
    """Whether the answer's status, headers and body are as the operation's responses say."""
    found = operations(document)[name]["responses"][str(answer.status)]
    if "$ref" in found:
        found = document["components"]["responses"][found["$ref"].rpartition("/")[2]]
    assert {header for header, how in found["headers"].items() if how["required"]} <= answer.headers.keys()
    schema = {**found["content"]["application/json"]["schema"], "components": document["components"]}
    validator: Any = Draft202012Validator(schema, format_checker=FormatChecker())
    validator.validate(answer.json)


def test_answers_are_as_described(call: Caller, document: Json) -> None:
    """F.115: every field, in every form that it takes."""
    stores, sha = "/v1/memory_stores", "0" * 64

    def check(name: str, method: str, path: str, body: Any = None, **query: Any) -> Json:
        answer = call(method, path, body, **query)
        conforms(document, name, answer)
        return answer.json

    store = check("memory_stores.create", "POST", stores, {"name": "n", "metadata": {"a": "1"}})["id"]
    memories, versions = f"{at(store)}/memories", f"{at(store)}/memory_versions"
    check("memory_stores.retrieve", "GET", at(store))
    check("memory_stores.update", "POST", at(store), {"name": "m"})
    memory = check("memories.create", "POST", memories, {"path": "/a/b", "content": "one"}, view="full")
    one = at(store, memory["id"])
    check("memories.create", "POST", memories, {"path": "/c", "content": ""})
    check("memories.create", "POST", memories, {"path": "/a", "content": ""})
    check("memories.update", "POST", one, {"content": "two"})
    stale = {"type": "content_sha256", "content_sha256": sha}
    check("memories.update", "POST", one, {"content": "x", "precondition": stale})
    check("memories.update", "POST", one, {"path": "/c"})
    check("memories.retrieve", "GET", one)
    check("memories.retrieve", "GET", one, view="basic")
    check("memories.list", "GET", memories, limit=1)
    check("memories.list", "GET", memories, depth=1)
    check("memories.delete", "DELETE", one, expected_content_sha256=sha)
    check("memories.delete", "DELETE", one)
    old = at(store, version=memory["memory_version_id"])
    check("memory_versions.retrieve", "GET", old)
    check("memory_versions.redact", "POST", f"{old}/redact")
    check("memory_versions.retrieve", "GET", old)
    check("memory_versions.list", "GET", versions, view="full", limit=1)
    check("memory_versions.list", "GET", versions)
    check("memory_stores.archive", "POST", f"{at(store)}/archive")
    check("memory_stores.list", "GET", stores, include_archived=True)
    check("memory_stores.update", "POST", at(store), {})
    check("memory_stores.delete", "DELETE", at(store))
    for name, method, path in (
        ("memory_stores.retrieve", "GET", at(store)),
        ("memories.list", "GET", memories),
        ("memory_versions.redact", "POST", f"{old}/redact"),
    ):
        check(name, method, path)
    assert check("memory_stores.list", "GET", stores, limit=0)["error"]["type"] == "invalid_request_error"
