"""What is malformed is told so, by the field's name, and never breaks anything (CONTRACT B.1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memkernel.api import params
from memkernel.api.dispatch import ROUTES
from memkernel.api.messages import Request
from memkernel.api.routes import Route
from memkernel.errors import InvalidInputError
from tests.api.calls import Caller, Json, at

STORES: Final = "/v1/memory_stores"
A_SHA256: Final = "0" * 64


# -- no JSON -----------------------------------------------------------------------------------------

NO_JSON: Final[dict[str, tuple[bytes, str]]] = {
    "cut off": (b'{"name": "n"', "not JSON"),
    "a comma too many": (b'{"name": "n",}', "not JSON"),
    "single quotes": (b"{'name': 'n'}", "not JSON"),
    "something behind": (b'{"name": "n"} x', "not JSON"),
    "a byte order mark": (b'\xef\xbb\xbf{"name": "n"}', "not JSON"),
    "a raw line break": (b'{"name": "a\nb"}', "not JSON"),
    "no UTF-8": (b'{"name": "\xff"}', "UTF-8"),
    "UTF-16": ('{"name": "n"}'.encode("utf-16"), "UTF-8"),
    "a surrogate in UTF-8": (b'{"name": "\xed\xa0\x80"}', "UTF-8"),
    "a key twice": (b'{"name": "n", "name": "m"}', "'name' stands twice"),
    "a key twice, deeper": (b'{"name": "n", "metadata": {"a": "1", "a": "2"}}', "'a' stands twice"),
    "NaN": (b'{"name": NaN}', "NaN"),
    "Infinity": (b'{"name": -Infinity}', "-Infinity"),
    "a huge number": (b'{"name": ' + b"9" * 5_000 + b"}", "number"),
    "a huge exponent": (b'{"name": 1e999}', "number"),
    "deep arrays": (b"[" * 100_000, "nested"),
    "deep objects": (b'{"name":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
    "an array": (b"[]", "an array; it must be an object"),
    "a string": (b'"name"', "a string; it must be an object"),
    "null": (b"null", "null; it must be an object"),
    "a number": (b"1", "a number; it must be an object"),
    "a boolean": (b"true", "a boolean; it must be an object"),
    "a form": (b"name=n", "not JSON"),
    "nothing": (b"", "name is missing"),
    "white space": (b" \r\n\t", "name is missing"),
    "a lone surrogate": (rb'{"name": "\ud800"}', "name holds a lone surrogate"),
    "a lone surrogate as a key": (rb'{"\ud800": 1, "name": "n"}', "not a field"),
    "a lone surrogate in metadata": (rb'{"name": "n", "metadata": {"\udfff": ""}}', "metadata"),
    "U+0000": (rb'{"name": "a\u0000b"}', "name holds U+0000"),
}


@pytest.mark.parametrize("case", NO_JSON)
def test_a_body_that_is_no_object_of_json(shared: Caller, case: str) -> None:
    """F.107, F.146."""
    body, words = NO_JSON[case]
    before = shared.all(STORES)
    shared("POST", STORES, body=body).refusal(words)
    assert shared.all(STORES) == before


# -- fields ------------------------------------------------------------------------------------------

WRONG: Final[tuple[Any, ...]] = (None, True, 5, 0.5, [], ["x"], {}, {"x": 1})

FIELDS: Final[tuple[tuple[str, str, Json], ...]] = (
    ("create_store", "name", {}),
    ("create_store", "description", {"name": "n"}),
    ("update_store", "name", {}),
    ("update_store", "description", {}),
    ("create_memory", "path", {"content": ""}),
    ("create_memory", "content", {"path": "/b"}),
    ("update_memory", "content", {}),
    ("update_memory", "path", {}),
    ("update_memory", "precondition", {"content": "new"}),
)


@pytest.fixture
def paths(call: Caller) -> dict[str, str]:
    store = call.store("Notes")
    return {
        "create_store": STORES,
        "update_store": at(store),
        "create_memory": f"{at(store)}/memories",
        "update_memory": at(store, call.memory(store)["id"]),
    }


@pytest.mark.parametrize(("what", "field", "rest"), FIELDS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_field_of_a_wrong_type(call: Caller, paths: dict[str, str], what: str, field: str, rest: Json) -> None:
    """F.108, F.143: the field is named."""
    for value in WRONG:
        if value is None and what.startswith("update"):
            continue
        call("POST", paths[what], {**rest, field: value}).refusal(field)
    assert len(call("GET", STORES).ok["data"]) == 1
    assert len(call.all(f"{paths['update_store']}/memory_versions")) == 1


def test_a_hash_that_is_null_is_told_in_the_words_of_json(call: Caller, paths: dict[str, str]) -> None:
    precondition = {"type": "content_sha256", "content_sha256": None}
    message = call("POST", paths["update_memory"], {"precondition": precondition}).refusal("precondition")
    assert message == "precondition.content_sha256 is a string, not null"


@pytest.mark.parametrize("field", ["nam", "", "id", "archived_at", "view", "metadata2", "Name", "na me", "'\"\\", "ä"])
def test_a_field_that_is_unknown(call: Caller, paths: dict[str, str], field: str) -> None:
    """F.108."""
    for what, body in (
        ("create_store", {"name": "n"}),
        ("update_store", {}),
        ("create_memory", {"path": "/b", "content": ""}),
        ("update_memory", {"content": "new"}),
    ):
        call("POST", paths[what], {**body, field: None}).refusal(repr(field))


# -- queries -----------------------------------------------------------------------------------------

NO_TIMES: Final = (
    *("", "now", "2026", "2026-08-01", "2026-08", "12:00:00", "1785585600", "2026-W31-6T12:00:00Z"),
    *("2026-08-01T12:00Z", "2026-08-01T12:00:00+1", "2026-08-01T12:00:00+25:00", "2026-13-01T00:00:00Z"),
    *("2026-02-30T00:00:00Z", "2026-08-01T24:00:01Z", "2026-08-01T12:00:00.Z", "2026-08-01T12:00:00,5Z"),
    *("0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "-2026-08-01T12:00:00Z", "２０２６-08-01T12:00:00Z"),
    *("2026-08-01T12:00:00Z ", " 2026-08-01T12:00:00Z", "2026-08-01T12:00:00ZZ", "2026-08-01\0T12:00:00Z"),
)


@pytest.mark.parametrize("value", NO_TIMES)
def test_a_time_that_is_none(shared: Caller, value: str) -> None:
    """F.130."""
    path = f"{at(shared.store())}/memory_versions"
    for bound in ("gte", "lte"):
        query = f"created_at%5B{bound}%5D={quote(value)}"
        shared("GET", STORES, raw_query=query).refusal(f"created_at[{bound}]")
        shared("GET", path, raw_query=query).refusal(f"created_at[{bound}]")


TIMES: Final = {
    "2026-08-01T12:00:00Z": datetime(2026, 8, 1, 12, tzinfo=UTC),
    "2026-08-01t12:00:00z": datetime(2026, 8, 1, 12, tzinfo=UTC),
    "2026-08-01 12:00:00": datetime(2026, 8, 1, 12, tzinfo=UTC),
    "2026-08-01T12:00:00": datetime(2026, 8, 1, 12, tzinfo=UTC),
    "2026-08-01T12:00:00.5": datetime(2026, 8, 1, 12, 0, 0, 500_000, UTC),
    "2026-08-01T12:00:00.123456Z": datetime(2026, 8, 1, 12, 0, 0, 123_456, UTC),
    "2026-08-01T12:00:00.123456789Z": datetime(2026, 8, 1, 12, 0, 0, 123_456, UTC),
    "2026-08-01T14:00:00+02:00": datetime(2026, 8, 1, 12, tzinfo=UTC),
    "2026-08-01T14:00:00 02:00": datetime(2026, 8, 1, 12, tzinfo=UTC),
    "2026-08-01T07:30:00-04:30": datetime(2026, 8, 1, 12, tzinfo=UTC),
    "2026-08-01T12:00:00-00:00": datetime(2026, 8, 1, 12, tzinfo=UTC),
}


@pytest.mark.parametrize("value", TIMES)
def test_how_a_time_may_be_written(value: str) -> None:
    """F.130: RFC 3339; without a zone it is UTC."""
    assert params.MOMENT.read("created_at[gte]", value) == TIMES[value]


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59"])
def test_the_ends_of_time(shared: Caller, value: str) -> None:
    """F.130: no overflow."""
    store = shared.store()
    for bound in ("gte", "lte"):
        query = f"limit=1&created_at[{bound}]={quote(value)}"
        assert shared("GET", STORES, raw_query=query).status == 200
        assert shared("GET", f"{at(store)}/memory_versions", raw_query=query).status == 200


@pytest.mark.parametrize("value", ["", "1", "0", "True", "TRUE", "yes", "on", "null", "true "])
def test_a_flag_that_is_none(shared: Caller, value: str) -> None:
    """F.129: exactly true or false."""
    shared("GET", STORES, include_archived=value).refusal("include_archived")


@pytest.mark.parametrize(
    "query", ["limit=1&limit=2", "limit=1&limit=1", "view=full&view=basic", "page=x&page=y", "depth=0&depth=1"]
)
def test_a_parameter_that_stands_twice(shared: Caller, query: str) -> None:
    path = f"{at(shared.store())}/memories"
    shared("GET", path, raw_query=query).refusal(query.partition("=")[0])


@pytest.mark.parametrize("query", ["memory_id=%00", "session_id=a%00b", "api_key_id=%00", "service_account_id=%00"])
def test_a_filter_that_postgresql_cannot_hold(shared: Caller, query: str) -> None:
    """FAULTS A 14: no 500."""
    path = f"{at(shared.store())}/memory_versions"
    shared("GET", path, raw_query=query).refusal(query.partition("=")[0])


def test_a_query_that_is_no_utf_8(shared: Caller) -> None:
    shared("GET", STORES, raw_query="limit=%ff").refusal("query")


def test_a_query_without_end(shared: Caller) -> None:
    shared("GET", STORES, raw_query="&".join(["x=1"] * 5_000)).refusal("query")
    assert shared("GET", STORES, raw_query="&&&=&x").status == 200


# -- anything at all ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def things(shared: Caller) -> dict[str, str]:
    """What is put into the paths: things that are there."""
    store = shared.store()
    memory = shared.memory(store)
    session = shared("POST", "/v1/sessions", {"agent": "agent_1", "environment_id": "env_1"}).ok["id"]
    return {
        "memory_store_id": store,
        "memory_id": memory["id"],
        "memory_version_id": memory["memory_version_id"],
        "session_id": session,
        "resource_id": store,
    }


TEXTS: Final = st.one_of(st.text(), st.sampled_from(["", "/a", "/", "\0", "\ud800", "x" * 1_025, "basic", A_SHA256]))
NUMBERS: Final = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.just(10**400))
LEAVES: Final = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)


def _deeper(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(children, max_size=3), st.dictionaries(TEXTS, children, max_size=3))


VALUES: Final = st.recursive(LEAVES, _deeper, max_leaves=8)
NAMES: Final = sorted(
    {field.name for route in ROUTES.routes for field in route.body or ()} | {"type", "content_sha256", "nothing"}
)
BODIES: Final = st.one_of(
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4).map(lambda body: json.dumps(body).encode()),
    VALUES.map(lambda body: json.dumps(body).encode()),
    st.binary(max_size=40),
)
QUERY_NAMES: Final = sorted({field.name for route in ROUTES.routes for field in route.query} | {"beta", "order_by"})
QUERIES: Final = st.one_of(
    st.lists(st.tuples(st.sampled_from(QUERY_NAMES), TEXTS | st.integers().map(str)), max_size=4).map(
        lambda pairs: "&".join(f"{quote(name)}={quote(value.encode(errors='ignore'))}" for name, value in pairs)
    ),
    st.text(st.characters(codec="ascii"), max_size=40),
)


@settings(max_examples=400)
@given(route=st.sampled_from(ROUTES.routes), body=BODIES, query=QUERIES, data=st.data())
def test_nothing_that_is_sent_breaks_anything(
    shared: Caller, things: dict[str, str], *, route: Route, body: bytes, query: str, data: st.DataObject
) -> None:
    """F.107, F.108, F.109, F.110, F.111: no random body or query gives a 5xx; each error is in its envelope."""
    path = route.path
    for name, ident in things.items():
        sent = data.draw(st.sampled_from([ident, ident, "x", "%00", "%2f"])) if f"{{{name}}}" in path else ident
        path = path.replace(f"{{{name}}}", sent)
    if route.method == "DELETE" and path.endswith(tuple(things.values())):
        path += "x"  # what is there is kept for the other examples
    answer = shared(route.method, path, body=body, raw_query=query)
    assert answer.status < 500
    if answer.status != 200:
        answer.error(answer.status)
        assert answer.status in (400, 404, 409)


@given(method=st.text(), path=st.text(), body=st.binary(max_size=20), query=st.text())
def test_no_request_breaks_dispatch(shared: Caller, method: str, path: str, body: bytes, query: str) -> None:
    """F.110: whatever a method and a path are."""
    answer = shared(method, f"/v1/{path}", body=body, raw_query=query)
    assert answer.status in (200, 400, 404, 405)


@given(st.binary(max_size=60))
def test_a_body_is_an_object_or_an_invalid_input_error(body: bytes) -> None:
    """F.107."""
    try:
        found = params.read_body(body, (params.Field("name", params.Kind(lambda _, value: value, {})),))
    except InvalidInputError:
        return
    assert found.keys() <= {"name"}


# Those of sessions leave more to the record layer.
BODY_FIELDS: Final = [
    (route.name, field) for route in ROUTES.routes for field in route.body or () if not route.name.startswith("session")
]
LIKELY: Final[tuple[Any, ...]] = (
    *(None, "", "/a/b", "/a/..b", "text", "a\nb", "x" * 255, {"a": "1"}, {"a": None}),
    {"type": "content_sha256", "content_sha256": A_SHA256},
)


@pytest.mark.parametrize(("name", "field"), BODY_FIELDS, ids=lambda value: getattr(value, "name", value))
@given(value=st.sampled_from(LIKELY) | VALUES)
def test_what_is_let_through_is_as_described(name: str, field: params.Field, value: Any) -> None:
    """No request that the OpenAPI document forbids is served."""
    try:
        field.kind.read(field.name, value)
    except InvalidInputError:
        return
    validator: Any = Draft202012Validator(field.kind.schema)
    assert validator.is_valid(value), name


def test_a_request_of_the_most_that_is_let_through(shared: Caller) -> None:
    """F.113: the largest legal body and its like."""
    store = shared.store()
    body = json.dumps({"path": "/a", "content": "\0" * 102_400}).encode()
    assert shared("POST", f"{at(store)}/memories", body=body).status == 200
    shared("POST", f"{at(store)}/memories", body=json.dumps({"x": list(range(90_000))}).encode()).refusal("path")


def test_a_request_object_has_defaults() -> None:
    """A caller in process may leave out what it does not need."""
    assert Request("GET", "/openapi.json") == Request("GET", "/openapi.json", "", {}, b"")
