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
_HOST = r"\[[^\]]*\]|[^:/?@,\[]*"
_ONE = rf"(?:{_HOST})(?::\d*)?"
_SERVER = re.compile(rf"(?P<host>{_HOST})(?::(?P<port>\d*))?")
# The last @ ends the password: where it should have been encoded, no part of it is taken for the host.
_URL = re.compile(
    rf"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^:/?@]*)(?P<password>:.*)?@)?"
    rf"(?P<servers>{_ONE}(?:,{_ONE})*)(?:/(?P<database>[^/?@]*))?(?:\?(?P<query>[^@]*))?",
    re.DOTALL,
)
# A value is quoted, with backslashes before quotes and backslashes, or ends at white space.
_PAIR = re.compile(r"\s*(\w+)\s*=\s*('(?:\\.|[^'\\])*'|(?:\\.|[^\s'\\])(?:\\.|[^\s\\])*|)", re.DOTALL)


def check_dsn(dsn: str, named: str) -> str:
    """The DSN, if it has one of the two forms that libpq reads.

    Args:
        named: what the person calls it, for the error.

    Raises:
        InvalidInputError: it does not; the DSN itself is not told, for it may hold a password.
    """
    if re.match("postgres(ql)?://", dsn) or _pairs(dsn):
        return dsn
    raise InvalidInputError(f"{named} is no DSN", hint="A DSN looks like postgresql://user@host:5432/database.")


def describe_dsn(dsn: str) -> str:
    """`db.example:5432/notes`: the host, the port where it is told, and the database. No user, no password."""
    fields = dict(_fields(dsn))
    if not fields:
        return "a server"
    host = fields.get("host") or fields.get("hostaddr") or ""
    if not host:
        host = f"service {fields['service']}" if "service" in fields else "the default host"
    where = f"{host}:{port}" if (port := fields.get("port", "").strip(",")) else host
    database = fields.get("dbname", "")
    if host.startswith(("/", "@")):
        return f"socket {where}, database {database}" if database else f"socket {where}"
    return f"{where}/{database}" if database else where


def mask_dsn(dsn: str) -> str:
    """The DSN with every password in it replaced by `***`; only `***` where it cannot be read."""
    if url := _URL.fullmatch(dsn):
        user_info = (
            f"{url['user']}:{MASK}@" if url["password"] else f"{url['user']}@" if url["user"] is not None else ""
        )
        query = "&".join(_masked(unquote(name), value) for name, value in _parameters(url))
        address = url["servers"] + (f"/{url['database']}" if url["database"] is not None else "")
        return url["scheme"] + user_info + address + (f"?{query}" if query else "")
    return " ".join(_masked(name, value) for name, value in _pairs(dsn)) or MASK


def _masked(name: str, value: str) -> str:
    if name in _SHOWN:
        return f"{name}={value}"
    return f"{name}={MASK}" if name in _SECRET else MASK


def _fields(dsn: str) -> Iterator[tuple[str, str]]:
    url = _URL.fullmatch(dsn)
    if url is None:
        yield from ((name, _unquote(value)) for name, value in _pairs(dsn))
        return
    servers = [_SERVER.fullmatch(server) for server in url["servers"].split(",")]
    yield "host", ",".join(unquote(server["host"]) for server in servers if server)
    yield "port", ",".join(server["port"] or "" for server in servers if server)
    yield "dbname", unquote(url["database"] or "")
    yield from ((unquote(name), unquote(value)) for name, value in _parameters(url))


def _parameters(url: re.Match[str]) -> list[tuple[str, str]]:
    parts = (parameter.partition("=") for parameter in (url["query"] or "").split("&") if parameter)
    return [(name, value) for name, _, value in parts]


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
