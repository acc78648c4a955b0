"""Who may come in, and as whom (CONTRACT B.1, row "Auth"; F.98, F.99)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memkernel.api.auth import KeyAuthenticator, Reach, key_id
from memkernel.api.dispatch import Api
from memkernel.api.messages import Request
from memkernel.store import Database
from memkernel.store import api_keys as keys
from tests.api.calls import Answer, Caller

STORES = "/v1/memory_stores"

Enter = Callable[..., Answer]


@pytest.fixture
def enter(database: Database) -> Enter:
    """Asks for the stores with these headers, of a server with this reach."""

    def enter(headers: dict[str, str], reach: Reach = "loopback", method: str = "GET", path: str = STORES) -> Answer:
        call = Caller(Api(database, KeyAuthenticator(database, reach=reach)).dispatch)
        return call(method, path, {"name": "Made"} if method == "POST" else None, headers=headers)

    return enter


def bearer(secret: str, **more: str) -> dict[str, str]:
    """The header that new SDKs send."""
    return {"authorization": f"Bearer {secret}", **more}


# -- credentials -----------------------------------------------------------------------------------


@pytest.mark.parametrize("with_key", [False, True])
@pytest.mark.parametrize("reach", ["loopback", "unix", "network"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer    "},
        {"authorization": "Basic bWs6bWs="},
        {"authorization": "mk_secret"},
        {"x-api-key": ""},
        {"x-api-key": "   "},
        {"authorization": "Bearer ", "x-api-key": " "},
        {"cookie": "x-api-key=mk_secret"},
    ],
)
def test_without_a_credential_nobody_comes_in(
    database: Database, enter: Enter, headers: dict[str, str], reach: Reach, with_key: bool
) -> None:
    if with_key:
        database.keys.create("default")
    answer = enter(headers, reach)
    answer.error(401, "authentication_error")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "anthropic-workspace-id" not in answer.headers
    assert key_id(Request("GET", "/", headers=headers)) == ""


@pytest.mark.parametrize("path", [STORES, "/v1/nothing", "/", "/v1/memory_stores/memstore_01"])
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "OPTIONS"])
def test_nothing_is_told_before_the_key_is_known(enter: Enter, database: Database, method: str, path: str) -> None:
    database.keys.create("default")
    enter(bearer("wrong"), method=method, path=path).error(401, "authentication_error")


def test_both_headers_carry_a_key(database: Database, enter: Enter) -> None:
    _, secret = database.keys.create("default")
    for headers in (
        bearer(secret),
        {"authorization": f"bearer   {secret}  "},
        {"x-api-key": secret},
        {"authorization": "Basic eDp5", "x-api-key": secret},
        {**bearer(secret), "x-api-key": "another"},
    ):
        assert enter(headers).ok["data"] == []
    enter({"x-api-key": secret, **bearer("another")}).error(401, "authentication_error")


@pytest.mark.parametrize("reach", ["loopback", "unix", "network"])
def test_with_a_key_in_the_database_only_keys_come_in(database: Database, enter: Enter, reach: Reach) -> None:
    key, secret = database.keys.create("default")
    for wrong in ("sk-ant-anything", secret[:-1], key.id, "a\0b", "\ud800", "x" * 60_000):
        enter(bearer(wrong), reach).error(401, "authentication_error")
    assert enter(bearer(secret), reach).status == 200
    assert enter(bearer(secret, host="example.com"), reach).status == 200  # whoever holds a key is no strange page


def test_a_revoked_key_stops_at_the_next_request(database: Database, enter: Enter) -> None:
    key, secret = database.keys.create("default")
    database.keys.create("default")
    assert enter(bearer(secret)).status == 200
    database.keys.revoke(key.id)
    told = enter(bearer(secret)).error(401, "authentication_error")["message"]
    assert secret not in told


# -- as whom ---------------------------------------------------------------------------------------


def test_a_key_writes_as_itself_into_its_workspace(database: Database) -> None:
    key, secret = database.keys.create("lab")
    call = Caller(Api(database, KeyAuthenticator(database, reach="network")).dispatch, bearer(secret))
    store = call.store()
    version = call("GET", f"{STORES}/{store}/memory_versions/{call.memory(store)['memory_version_id']}")
    assert version.ok["created_by"] == {"type": "api_actor", "api_key_id": key.id}
    assert version.headers["anthropic-workspace-id"] == "lab"
    assert database.in_workspace("lab").memory_stores.retrieve(store).name == "Notes"
    assert database.memory_stores.list().data == []
    assert key_id(Request("GET", "/", headers=bearer(secret))) == key.id


def test_a_key_that_only_reads_is_refused_what_writes(database: Database, enter: Enter) -> None:
    _, secret = database.keys.create("default", read_only=True)
    assert enter(bearer(secret)).status == 200
    answer = enter(bearer(secret), method="POST")
    answer.error(403, "permission_error")
    assert answer.headers["anthropic-workspace-id"] == "default"
    assert database.memory_stores.list().data == []


@pytest.mark.parametrize(("claimed", "status"), [("lab", 200), ("", 200), ("default", 403), ("LAB", 403), ("*", 403)])
def test_a_workspace_that_is_named_must_be_the_keys(
    database: Database, enter: Enter, claimed: str, status: int
) -> None:
    _, secret = database.keys.create("lab")
    answer = enter(bearer(secret, **{"anthropic-workspace-id": claimed}))
    assert answer.status == status
    assert status == 200 or answer.error(403, "permission_error")


# -- a server without keys -------------------------------------------------------------------------


def test_without_keys_every_credential_of_this_machine_comes_in(database: Database, enter: Enter) -> None:
    for reach in ("loopback", "unix"):
        answer = enter(bearer("anything at all"), reach)
        assert (answer.status, answer.headers["anthropic-workspace-id"]) == (200, "default")
    call = Caller(Api(database, KeyAuthenticator(database, reach="loopback")).dispatch, {"x-api-key": "anything"})
    store = call.store()
    call.memory(store)
    (version,) = call("GET", f"{STORES}/{store}/memory_versions").ok["data"]
    assert version["created_by"] == {"type": "api_actor", "api_key_id": keys.key_id("anything")}


def test_without_keys_nobody_comes_in_from_the_network(enter: Enter) -> None:
    enter(bearer("anything"), "network").error(401, "authentication_error")


HERE = ("localhost", "LocalHost:8765", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8765", "127.8.9.1", " localhost ")
ELSEWHERE = (
    *("example.com", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "0.0.0.0", "[2001:db8::1]:80"),
    *("localhost@example.com", "localhost, example.com", "example.com:127.0.0.1", "::1]", "[::1", "", "localhost:a"),
    *("localhost/", "2130706433", "xn--localhost", "localhost\0", "[localhost]x", "evil#localhost"),
)


@pytest.mark.parametrize("host", HERE)
def test_without_keys_it_answers_to_the_names_of_loopback(enter: Enter, host: str) -> None:
    assert enter(bearer("anything", host=host)).status == 200


@pytest.mark.parametrize("host", ELSEWHERE)
def test_without_keys_a_web_page_does_not_come_in_by_a_name_that_it_led_here(
    database: Database, enter: Enter, host: str
) -> None:
    enter(bearer("anything", host=host)).error(403, "permission_error")
    enter(bearer("anything", host=host), method="POST").error(403, "permission_error")
    assert enter(bearer("anything", host=host), "unix").status == 200
    assert database.memory_stores.list().data == []


def test_the_first_key_closes_an_open_server_and_the_last_one_opens_it(database: Database, enter: Enter) -> None:
    assert enter(bearer("anything")).status == 200
    key, secret = database.keys.create("default")
    enter(bearer("anything")).error(401)
    assert enter(bearer(secret)).status == 200
    database.keys.revoke(key.id)
    assert enter(bearer("anything")).status == 200
    enter(bearer("anything"), "network").error(401)
