"""How a DSN is shown: the server and the database, never a secret. Reads URLs and `key=value` forms like libpq."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from memkernel.errors import InvalidInputError

MASK = "***"
# Only what is known to be no secret is shown: a password with an & in it looks like another parameter.
_SHOWN = frozenset(
    (
        *("host", "hostaddr", "port", "dbname", "user", "service", "options", "application_name", "client_encoding"),
        *("connect_timeout", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslnegotiation"),
        *("channel_binding", "gssencmode", "krbsrvname", "passfile", "require_auth", "target_session_attrs"),
        *("load_balance_hosts", "keepalives", "keepalives_idle", "fallback_application_name", "replication"),
    )
)
_SECRET = frozenset({"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
_URL = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
# A value is quoted, with backslashes before quotes and backslashes, or ends at white space.
_PAIR = re.compile(r"\s*(\w+)\s*=\s*('(?:\\.|[^'\\])*'|(?:\\.|[^\s'\\])(?:\\.|[^\s\\])*|)", re.DOTALL)


def check_dsn(dsn: str, named: str) -> str:
    """The DSN, if it has one of the two forms that libpq reads.

    Args:
        named: what the person calls it, for the error.

    Raises:
        InvalidInputError: it does not; the DSN itself is not told, for it may hold a password.
    """
    if _URL.match(dsn) or _pairs(dsn):
        return dsn
    raise InvalidInputError(f"{named} is no DSN", hint="A DSN looks like postgresql://user@host:5432/database.")


def describe_dsn(dsn: str) -> str:
    """`db.example:5432/notes`: the host, the port where it is told, and the database. No user, no password."""
    fields = _fields(dsn)
    host = fields.get("host") or fields.get("hostaddr") or ""
    port = fields.get("port", "")
    database = fields.get("dbname", "")
    if service := fields.get("service"):
        host = host or f"service {service}"
    where = host or "the default host"
    where += f":{port}" if re.fullmatch(r"[\d,]+", port) else ""
    if host.startswith(("/", "@")):
        return f"socket {where}" + (f", database {database}" if database else "")
    return f"{where}/{database}" if database else where


def mask_dsn(dsn: str) -> str:
    """The DSN with every password in it replaced by `***`; only `***` where it cannot be read."""
    if found := _URL.match(dsn):
        return found[0] + _mask_url(dsn[found.end() :])
    return " ".join(_mask_parameter(name, value) for name, value in _pairs(dsn)) or MASK


def _mask_url(rest: str) -> str:
    rest, question_mark, query = rest.partition("?")
    user_info, at, address = rest.rpartition("@")
    user, colon, _ = user_info.partition(":")
    parameters = (parameter.partition("=") for parameter in query.split("&") if query)
    masked = "&".join(_mask_parameter(unquote(name), value) for name, _, value in parameters)
    return user + (colon and f":{MASK}") + at + address + question_mark + masked


def _mask_parameter(name: str, value: str) -> str:
    if name in _SHOWN:
        return f"{name}={value}"
    return f"{name}={MASK}" if name in _SECRET else MASK


def _fields(dsn: str) -> dict[str, str]:
    if found := _URL.match(dsn):
        return dict(_url_fields(dsn[found.end() :]))
    return {name: _unquote(value) for name, value in _pairs(dsn)}


def _url_fields(rest: str) -> Iterator[tuple[str, str]]:
    rest, _, query = rest.partition("?")
    # The last @: where a password holds one that should have been encoded, no part of it is taken for the host.
    address = rest.rpartition("@")[2]
    servers, _, database = address.partition("/")
    named = [re.fullmatch(r"(\[.*\]|[^:]*)(?::(.*))?", server) for server in servers.split(",")]
    yield "host", ",".join(unquote(server[1]) for server in named if server)
    yield "port", ",".join(server[2] for server in named if server and server[2])
    yield "dbname", unquote(database)
    for parameter in query.split("&"):
        name, equals, value = parameter.partition("=")
        if equals:
            yield unquote(name), unquote(value)


def _pairs(dsn: str) -> list[tuple[str, str]]:
    """The pairs of a `key=value` form with their values as written; [] where it cannot be read to its end."""
    pairs: list[tuple[str, str]] = []
    position = 0
    text = dsn.rstrip()
    while position < len(text):
        found = _PAIR.match(text, position)
        if not found:
            return []
        pairs.append((found[1], found[2]))
        position = found.end()
        if position < len(text) and not text[position].isspace():
            return []
    return pairs


def _unquote(value: str) -> str:
    inner = value[1:-1] if value.startswith("'") else value
    return re.sub(r"\\(.)", r"\1", inner, flags=re.DOTALL)
