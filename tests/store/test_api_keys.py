"""The keys to the API: only hashes are kept, and what opens is looked up anew each time."""

from __future__ import annotations

import hashlib
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from memkernel.errors import ApiKeyNotFoundError, InvalidInputError
from memkernel.models import ApiKey
from memkernel.store import Database
from memkernel.store.api_keys import key_id

DAY = timedelta(days=1)
NAIVE = datetime(2100, 1, 1)  # noqa: DTZ001  # without a zone, it is UTC


def test_a_secret_is_shown_once_and_only_its_hash_is_kept(fresh_database: Database, dsn: str) -> None:
    key, secret = fresh_database.keys.create("lab", "ci", read_only=True, expires_at=NAIVE)
    assert re.fullmatch(r"mk_[A-Za-z0-9_-]{43}", secret)
    assert key.id == key_id(secret) == f"apikey_{hashlib.sha256(secret.encode()).hexdigest()[:24]}"
    assert (key.workspace_id, key.name, key.read_only) == ("lab", "ci", True)
    assert (key.expires_at, key.revoked_at) == (datetime(2100, 1, 1, tzinfo=UTC), None)
    assert abs(key.created_at - datetime.now(UTC)) < DAY
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT k::text, secret_sha256 FROM memkernel.api_keys k").fetchone()
    assert row is not None
    assert row[1] == hashlib.sha256(secret.encode()).digest()
    assert secret.removeprefix("mk_") not in row[0]
    assert secret not in repr(key)


def test_a_secret_opens_its_key_and_nothing_else_does(fresh_database: Database) -> None:
    keys = fresh_database.keys
    assert keys.find("anything") == (None, False)
    assert not keys.any()
    one, secret = keys.create("default")
    other, other_secret = keys.create("lab")
    assert keys.find(secret) == (one, True)
    assert keys.find(other_secret) == (other, True)
    for wrong in ("", "mk_", secret[:-1], secret + "=", secret.upper(), one.id, "\0", "\ud800", "é" * 9_000):
        assert keys.find(wrong) == (None, True)
    assert [key.id for key in keys.list()] == [other.id, one.id]


def test_a_revoked_key_opens_nothing_at_once_and_for_ever(fresh_database: Database) -> None:
    keys = fresh_database.keys
    key, secret = keys.create("default")
    revoked = keys.revoke(key.id)
    assert revoked.revoked_at is not None
    assert keys.find(secret) == (None, False)
    assert keys.revoke(key.id) == revoked == keys.list()[0]
    assert not keys.any()


def test_an_expired_key_opens_nothing_and_still_counts(fresh_database: Database) -> None:
    keys = fresh_database.keys
    key, secret = keys.create("default", expires_at=datetime.now(UTC) + timedelta(seconds=1))
    assert keys.find(secret).key == key
    deadline = time.monotonic() + 30
    while keys.find(secret).key is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert keys.find(secret) == (None, True)
    assert keys.any()


@pytest.mark.parametrize("unknown", ["apikey_01", "", "mk_secret", "a\0b", "\ud800", None, 7])
def test_a_key_that_is_not_there_is_not_revoked(fresh_database: Database, unknown: Any) -> None:
    with pytest.raises(ApiKeyNotFoundError) as absent:
        fresh_database.keys.revoke(unknown)
    assert "keys ls" in absent.value.hint


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"workspace_id": ""}, "workspace id"),
        ({"workspace_id": "a/b"}, "workspace id"),
        ({"workspace_id": None}, "workspace id"),
        ({"name": "a\nb"}, "control character"),
        ({"name": "a" * 256}, "256 characters"),
        ({"name": "\ud800"}, "surrogate"),
        ({"name": None}, "name is a string"),
        ({"expires_at": NAIVE.replace(year=2020)}, "expires_at has passed: 2020-01-01 00:00 UTC"),
        ({"expires_at": "soon"}, "expires_at is a datetime"),
    ],
)
def test_a_key_that_is_none_is_refused(fresh_database: Database, arguments: dict[str, Any], told: str) -> None:
    values: dict[str, Any] = {"workspace_id": "default", **arguments}
    with pytest.raises(InvalidInputError, match=told):
        fresh_database.keys.create(**values)
    assert fresh_database.keys.list() == []


def test_keys_are_of_the_database_and_not_of_a_workspace(fresh_database: Database) -> None:
    key, secret = fresh_database.in_workspace("lab").keys.create("default")
    assert fresh_database.in_workspace("other").keys.find(secret).key == key


def test_many_make_and_look_up_keys_at_once(fresh_database: Database) -> None:
    def make(number: int) -> tuple[ApiKey, str]:
        return fresh_database.keys.create("default", str(number))

    def find(pair: tuple[ApiKey, str]) -> ApiKey | None:
        return fresh_database.keys.find(pair[1]).key

    with ThreadPoolExecutor(16) as threads:
        made = list(threads.map(make, range(64)))
        assert list(threads.map(find, made)) == [key for key, _ in made]
    assert len({key.id for key, _ in made}) == 64
