"""On whose behalf a request is made (CONTRACT B.1, row "Auth")."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from memkernel.api.messages import Principal, Request
from memkernel.errors import ApiError
from memkernel.models import Actor
from memkernel.store import Database, api_keys

Reach = Literal["loopback", "unix", "network"]
"""From where a server can be reached."""

_HOST: Final = re.compile(r"(\[.*\]|[^:]*)(?::[0-9]*)?")


class KeyAuthenticator:
    """Asks for a key, at every request anew: one that is revoked stops at once.

    Where the database holds no key and only this machine reaches the server, any credential will do, as the SDKs always
    send one: the server is *open*. A web page could still reach it by a name of its own that leads here, so an open
    server on a port answers to loopback's names only.
    """

    def __init__(self, database: Database, *, reach: Reach) -> None:
        """Nothing is asked of the database yet.

        Args:
            database: the owner's.
            reach: from where the server can be reached; from the network, it is never open.
        """
        self._database = database
        self._reach = reach

    def __call__(self, request: Request) -> Principal:
        """The key's workspace, actor and right; the database's own workspace where the server is open.

        Raises:
            ApiError: 401: no credential, or one that opens nothing; 403: an open server under a foreign name.
            DatabaseUnavailableError: the keys cannot be looked up.
        """
        secret = _secret(request.headers)
        if not secret:
            raise _unauthenticated("no API key was sent")
        key, any_key = self._database.keys.find(secret)
        if key is not None:
            return Principal(key.workspace_id, Actor("api_actor", key.id), key.read_only)
        if any_key or self._reach == "network":
            raise _unauthenticated("this API key is unknown, has expired or was revoked")
        if self._reach == "loopback" and not _is_loopback(request.headers.get("host", "localhost")):
            raise ApiError(403, "without keys, this server answers only to localhost, 127.0.0.1 and [::1]")
        return Principal(self._database.workspace_id, Actor("api_actor", api_keys.key_id(secret)))


def fixed(principal: Principal) -> Callable[[Request], Principal]:
    """Every request is made on this behalf, whatever credential it brings: for a client in this process."""
    return lambda _: principal


def key_id(request: Request) -> str:
    """The id of the key whose secret was sent, whether or not it opens anything; `""` without one. For logs."""
    secret = _secret(request.headers)
    return api_keys.key_id(secret) if secret else ""


def _secret(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return bearer or headers.get("x-api-key", "").strip()


def _unauthenticated(reason: str) -> ApiError:
    hint = "`memkernel keys create` makes a key; send it as `Authorization: Bearer …` or `X-Api-Key: …`."
    return ApiError(401, reason, headers={"www-authenticate": "Bearer"}, hint=hint)


def _is_loopback(host: str) -> bool:
    """Whether a Host header names this machine by a name that cannot lead elsewhere."""
    match = _HOST.fullmatch(host.strip().lower())
    name = match[1].strip("[]") if match else ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
