"""Versions, redaction, and who made them (CONTRACT B.10, B.11)."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from memkernel import ids
from memkernel.api.dispatch import Api
from memkernel.api.messages import Principal
from memkernel.models import Actor, Change
from memkernel.store import Database
from tests.api.calls import KEY, Caller, Json, at


@pytest.fixture
def call(shared: Caller) -> Caller:
    return shared


@pytest.fixture
def store(call: Caller) -> str:
    return call.store()


def redact(call: Caller, version: Json | str, store: str) -> Any:
    ident = version if isinstance(version, str) else version["id"]
    return call("POST", f"{at(store, version=ident)}/redact")


def as_actor(database: Database, actor: Actor) -> Caller:
    return Caller(Api(database, lambda _: Principal("default", actor)).dispatch)


def test_a_lineage(call: Caller, store: str) -> None:
    """F.201, F.97."""
    memory = call.memory(store, "/a", "one")
    call.update(memory, content="two")
    call.update(memory, path="/b")
    call.delete(memory)
    versions = call.versions(store)[::-1]
    assert [version["operation"] for version in versions] == ["created", "modified", "modified", "deleted"]
    assert {version["memory_id"] for version in versions} == {memory["id"]}
    assert [version["path"] for version in versions] == ["/a", "/a", "/b", "/b"]
    again = call.memory(store, "/b", "one")
    assert again["id"] != memory["id"]
    assert len(call.versions(store, memory_id=memory["id"])) == 4


def test_versions_are_listed_newest_first(call: Caller, store: str, shared_database: Database) -> None:
    """F.202: also those of one batch, which share a time."""
    changes = [Change(f"/{number}", "text") for number in range(5)]
    batch = shared_database.memories.apply(store, changes, actor=KEY)
    last = call.memory(store, "/last")["memory_version_id"]
    listed = [version["id"] for version in call.all(f"{at(store)}/memory_versions", limit=1)]
    assert listed == [last, *(version.id for version in reversed(batch) if version)]


def test_the_head_is_the_newest_version(call: Caller, store: str) -> None:
    """F.203."""
    memory = call.memory(store)
    for body in ({"content": "two"}, {"path": "/b"}, {"content": "two"}, {"content": "three", "path": "/c"}):
        head = call.update(memory, **body).ok["memory_version_id"]
        assert head == call.versions(store, memory_id=memory["id"])[0]["id"]
        assert head == call("GET", at(store, memory["id"])).ok["memory_version_id"]


def test_a_deleted_version(call: Caller, store: str) -> None:
    """F.204, F.205, F.115."""
    memory = call.memory(store)
    call.delete(memory)
    newest, created = call.versions(store, memory_id=memory["id"], view="full")
    assert newest == {
        "id": newest["id"],
        "type": "memory_version",
        "memory_store_id": store,
        "memory_id": memory["id"],
        "operation": "deleted",
        "path": "/a.md",
        "content": None,
        "content_size_bytes": None,
        "content_sha256": None,
        "created_at": newest["created_at"],
        "created_by": {"type": "api_actor", "api_key_id": KEY.id},
        "redacted_at": None,
        "redacted_by": None,
    }
    assert created["content"] == "text"
    assert call("GET", at(store, version=newest["id"])).ok == newest


def test_the_filters(call: Caller, store: str, shared_database: Database) -> None:
    """F.206, F.214."""
    session = as_actor(shared_database, Actor("session_actor", "sesn_1"))
    service = as_actor(shared_database, Actor("service_account_actor", "svac_1"))
    first = call.memory(store, "/by-key")
    second = session.memory(store, "/by-session")
    third = service.memory(store, "/by-service")
    service.update(second, content="new")
    session.delete(third)

    def found(**query: str) -> list[tuple[str, str]]:
        return [(version["operation"], version["path"]) for version in call.versions(store, **query)]

    made = ("created", "/by-session")
    assert found(api_key_id=KEY.id) == [("created", "/by-key")]
    assert found(session_id="sesn_1") == [("deleted", "/by-service"), made]
    assert found(service_account_id="svac_1") == [("modified", "/by-session"), ("created", "/by-service")]
    assert found(memory_id=second["id"]) == [("modified", "/by-session"), made]
    assert found(operation="created") == [("created", "/by-service"), made, ("created", "/by-key")]
    assert found(operation="created", session_id="sesn_1") == [made]
    assert found(memory_id=first["id"], session_id="sesn_1") == []
    assert found(api_key_id="sesn_1") == found(memory_id="x") == found(session_id="") == []
    moment = second["created_at"]
    assert found(created_at_gte=moment, created_at_lte=moment) == [made]
    assert found(created_at_lte=moment) == [made, ("created", "/by-key")]
    assert found(created_at_gte="2999-01-01T00:00:00Z") == []
    assert [len(page) for page in call.pages(f"{at(store)}/memory_versions", operation="created", limit=2)] == [2, 1]


def test_who_made_a_version(call: Caller, store: str, shared_database: Database) -> None:
    """F.212, F.213, F.214: each kind of actor names its id in its own way."""
    actors = {
        "api_key_id": Actor("api_actor", "apikey_1"),
        "session_id": Actor("session_actor", "sesn_1"),
        "user_id": Actor("user_actor", "user_1"),
        "service_account_id": Actor("service_account_actor", "svac_1"),
    }
    for number, (field, actor) in enumerate(actors.items()):
        made = as_actor(shared_database, actor).memory(store, f"/{number}")
        version = call("GET", at(store, version=made["memory_version_id"])).ok
        assert version["created_by"] == {"type": actor.type, field: actor.id}


@pytest.mark.parametrize("operation", ["renamed", "", "CREATED", "null"])
def test_another_operation(call: Caller, store: str, operation: str) -> None:
    """F.207."""
    call("GET", f"{at(store)}/memory_versions", operation=operation).refusal("operation")


def test_the_views_of_a_list(call: Caller, store: str) -> None:
    """F.208, F.185."""
    for number in range(25):
        call.memory(store, f"/{number}")
    assert len(call.versions(store)) == 20
    assert len(call.versions(store, limit=100)) == 25
    assert {version["content"] for version in call.versions(store)} == {None}
    full = call.versions(store, view="full", limit=100)
    assert len(full) == 20
    assert {version["content"] for version in full} == {"text"}


def test_the_views_of_a_version(call: Caller, store: str) -> None:
    """F.209, F.211."""
    memory = call.memory(store, content="größer\0\r\n")
    path = at(store, version=memory["memory_version_id"])
    before = call("GET", path).ok
    assert before["content"] == "größer\0\r\n"
    for number in range(3):
        call.update(memory, content=str(number), path=f"/{number}")
    call.delete(memory)
    assert call("GET", path).ok == before == call("GET", path, view="full").ok
    assert call("GET", path, view="basic").ok == {**before, "content": None}


def test_a_version_of_another_store(call: Caller, store: str) -> None:
    """F.210."""
    version = call.memory(store)["memory_version_id"]
    other = call.store("Other")
    call("GET", at(other, version=version)).error(404, "not_found_error")
    redact(call, version, other).error(404, "not_found_error")
    redact(call, ids.mint("memver"), store).error(404, "not_found_error")


# -- redaction ---------------------------------------------------------------------------------------

ERASED = ("path", "content", "content_size_bytes", "content_sha256")


def test_an_old_version_is_redacted(call: Caller, store: str) -> None:
    """F.215, F.219, F.221, F.97, F.104."""
    memory = call.memory(store, content="a secret")
    head = call.update(memory, content="no secret").ok
    path = at(store, version=memory["memory_version_id"])
    before = call("GET", path).ok
    after = redact(call, before, store).ok
    assert after["redacted_at"] >= head["updated_at"]
    assert after["redacted_by"] == {"type": "api_actor", "api_key_id": KEY.id}
    gone = dict.fromkeys(ERASED)
    assert after == {**before, **gone, "redacted_at": after["redacted_at"], "redacted_by": after["redacted_by"]}
    assert redact(call, before, store).ok == after == call("GET", path).ok
    assert call("GET", at(store, memory["id"]), view="basic").ok == head


def test_who_redacted_first_stays(call: Caller, store: str, shared_database: Database) -> None:
    """F.219."""
    memory = call.memory(store)
    call.delete(memory)
    first = redact(call, memory["memory_version_id"], store).ok
    other = as_actor(shared_database, Actor("api_actor", "apikey_other"))
    assert redact(other, memory["memory_version_id"], store).ok == first


def test_the_head_of_a_live_memory_is_not_redacted(call: Caller, store: str) -> None:
    """F.216, F.217."""
    memory = call.memory(store)
    version = memory["memory_version_id"]
    redact(call, version, store).refusal(version)
    assert call("GET", at(store, memory["id"])).ok["content"] == "text"
    call.update(memory, content="new")
    assert redact(call, version, store).status == 200


def test_every_version_of_a_deleted_memory_can_be_redacted(call: Caller, store: str) -> None:
    """F.217, F.218."""
    memory = call.memory(store)
    call.delete(memory)
    for version in call.versions(store):
        after = redact(call, version, store).ok
        assert {field: after[field] for field in ERASED} == dict.fromkeys(ERASED)
        assert after["operation"] == version["operation"]
        assert after["memory_id"] == memory["id"]


def test_a_session_does_not_redact(call: Caller, store: str, shared_database: Database) -> None:
    """B.11."""
    memory = call.memory(store)
    call.delete(memory)
    redact(as_actor(shared_database, Actor("session_actor", "sesn_1")), memory["memory_version_id"], store).refusal(
        "session"
    )


def test_redacted_text_is_nowhere(database: Database, dsn: str) -> None:
    """F.220: no row of any table holds it."""
    call = as_actor(database, KEY)
    store = call.store()
    text, place = "the-needle-in-the-text", "/the-needle-in-the-path"
    memory = call.memory(store, place, text)
    assert "the-needle" in _everything(dsn)
    call.update(memory, path="/other", content="other")
    assert redact(call, memory["memory_version_id"], store).status == 200
    assert "the-needle" not in _everything(dsn)


def _everything(dsn: str) -> str:
    """Every row of every table of the schema, as text; bytes as the text that they hold."""
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'memkernel'::regnamespace AND relkind = 'r'"
        )
        found: list[str] = []
        for (table,) in tables.fetchall():
            found += [repr(row) for row in connection.execute(f"SELECT * FROM memkernel.{table}".encode())]
        return "\n".join(found)


def test_there_is_no_restore_route(call: Caller, store: str) -> None:
    """F.222."""
    memory = call.memory(store, content="one")
    old = memory["memory_version_id"]
    call.update(memory, content="two")
    call("POST", f"{at(store, version=old)}/restore").error(404, "not_found_error")
    content = call("GET", at(store, version=old)).ok["content"]
    restored = call.update(memory, content=content).ok
    assert restored["content_sha256"] == memory["content_sha256"]
    assert restored["memory_version_id"] != old
