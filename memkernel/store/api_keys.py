"""The keys to the HTTP API. A secret is shown once; what is kept is its SHA-256."""

from __future__ import annotations

import builtins
import hashlib
import secrets
from datetime import UTC, datetime
from typing import Final, NamedTuple

from psycopg import pq

from memkernel.errors import ApiKeyNotFoundError, InvalidInputError
from memkernel.models import ApiKey
from memkernel.store import checks, queries, rows
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact

_PREFIX: Final = "mk_"
_SECRET_BYTES: Final = 32
_ID_DIGITS: Final = 24


class Sought(NamedTuple):
    """What a secret opens: `key` is None where it is unknown, expired or revoked; `any`: some key is not revoked."""

    key: ApiKey | None
    any: bool


class ApiKeys:
    """The keys of a database, of all its workspaces."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    def create(
        self, workspace_id: str, name: str = "", *, read_only: bool = False, expires_at: datetime | None = None
    ) -> tuple[ApiKey, str]:
        """A new key, and its secret, which can be read nowhere later.

        Args:
            workspace_id: what it opens: 1-64 letters, digits, `_`, `-` and `.`.
            name: for people; at most 255 characters, no control characters.
            read_only: whether it only reads.
            expires_at: until when it opens; without a zone it is UTC.

        Raises:
            InvalidInputError: one of these is illegal, or `expires_at` has passed.
        """
        secret = _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        until = checks.moment("expires_at", expires_at)
        if until is not None and until <= datetime.now(UTC):
            raise InvalidInputError(f"expires_at has passed: {until:%Y-%m-%d %H:%M} UTC")
        values = (
            *(checks.workspace_id(workspace_id), key_id(secret), "" if name == "" else checks.name(name)),
            *(_sha256(secret), bool(read_only), until),
        )

        def create(connection: StoreConnection) -> ApiKey:
            return _key(connection.run(queries.KEY_CREATE, *values), 0)

        # With the same secret it makes the same key.
        return self._contact.change(create, lambda _: None, memory_store_id=""), secret

    def list(self) -> builtins.list[ApiKey]:
        """Every key, newest first, the expired and revoked ones too."""

        def read(connection: StoreConnection) -> builtins.list[ApiKey]:
            result = connection.run(queries.KEY_LIST)
            return [_key(result, row) for row in range(result.ntuples)]

        return self._contact.read(read)

    def revoke(self, api_key_id: str) -> ApiKey:
        """Let a key open nothing any more, for ever; again, it returns the same record.

        Raises:
            ApiKeyNotFoundError: there is no such key.
        """
        if not isinstance(api_key_id, str) or not checks.is_storable(api_key_id):  # pyright: ignore[reportUnnecessaryIsInstance]  # a notebook passes anything
            raise ApiKeyNotFoundError(repr(api_key_id))

        def revoke(connection: StoreConnection) -> ApiKey | None:
            result = connection.run(queries.KEY_REVOKE, api_key_id)
            return _key(result, 0) if result.ntuples else None

        revoked = self._contact.change(revoke, lambda _: None, memory_store_id="")
        if revoked is None:
            raise ApiKeyNotFoundError(api_key_id)
        return revoked

    def find(self, secret: str) -> Sought:
        """What a secret opens now, by the clock of the server.

        It is looked up by its hash, and not compared in constant time: how long that takes tells at most something of
        the hash, and nobody can choose a secret by its hash.
        """

        def read(connection: StoreConnection) -> Sought:
            result = connection.run(queries.KEY_FIND, _sha256(secret))
            known = result.get_value(0, 0) is not None
            return Sought(_key(result, 0) if known else None, result.get_value(0, _COLUMNS) == b"\x01")

        return self._contact.read(read)

    def any(self) -> bool:
        """Whether there is a key that was not revoked: then nobody comes in without one."""
        return self.find("").any


_COLUMNS: Final = 7


def key_id(secret: str) -> str:
    """The id of the key that has this secret, whether or not there is one."""
    return f"apikey_{_sha256(secret).hex()[:_ID_DIGITS]}"


def _sha256(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def _key(result: pq.abc.PGresult, row: int) -> ApiKey:
    """A row of queries.KEY."""
    get = result.get_value
    expires_at, revoked_at = get(row, 5), get(row, 6)
    return ApiKey(
        id=rows.text(get(row, 0)),
        workspace_id=rows.text(get(row, 1)),
        name=rows.text(get(row, 2)),
        read_only=get(row, 3) == b"\x01",
        created_at=rows.moment(get(row, 4)),
        expires_at=None if expires_at is None else rows.moment(expires_at),
        revoked_at=None if revoked_at is None else rows.moment(revoked_at),
    )
