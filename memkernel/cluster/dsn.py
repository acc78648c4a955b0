"""How a DSN is shown: the server and the database, never a secret. Reads URLs and `key=value` forms like libpq."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from memkernel.errors import InvalidInputError

MASK = "***"
_SECRETS = re.compile(r"pass(word|wd)?|sslpassword|.*secret.*|scram_.*_key|.*token.*", re.IGNORECASE)
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
    pairs = _pairs(dsn)
    return " ".join(f"{name}={MASK if _SECRETS.fullmatch(name) else value}" for name, value in pairs) or MASK


def _mask_url(rest: str) -> str:
    rest, question_mark, query = rest.partition("?")
    user_info, at, address = rest.rpartition("@")
    user, colon, _ = user_info.partition(":")
    return (
        user + (colon and f":{MASK}") + at + address + question_mark + "&".join(map(_mask_parameter, query.split("&")))
    )


def _mask_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}={MASK}" if equals and _SECRETS.fullmatch(unquote(name)) else parameter


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
