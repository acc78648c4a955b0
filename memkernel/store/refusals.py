"""Why no connection could be made: a DSN that cannot be read, a server that refuses, a server that does not answer."""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from memkernel.cluster.dsn import describe_dsn
from memkernel.errors import DatabaseUnavailableError, InvalidInputError

# libpq has no SQLSTATE for a connection that was not made. Words that are not here (another language, a server that
# is starting or has no connection left) only mean that it is tried again for a while.
_FOR_GOOD: Final = re.compile(
    r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|not permitted|permission denied"
)
# "connection failed: connection to server at …, port … failed: ", "failed to resolve host …: [Errno -2] ": the
# server is named already, and a password with an @ in it makes a piece of it part of the host.
_WHERE: Final = re.compile(r".*(?:failed|is bad): |failed to resolve host .*: (?:\[Errno -?\d+\] )?")


def read_dsn(dsn: str) -> dict[str, Any]:
    """The parameters of a DSN.

    Raises:
        InvalidInputError: libpq cannot read it.
    """
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:  # it quotes what it cannot read, which may be the password
        raise unreadable() from None
    port = str(parameters.get("port", ""))
    if "\0" in dsn or not re.fullmatch(r"[\d,]*", port, re.ASCII):  # postgresql://user:pass/word@host: a port "pass"
        raise unreadable()
    return parameters


def unreadable() -> InvalidInputError:
    """The error for a DSN that libpq cannot read; nothing of it is told."""
    return InvalidInputError(
        "the DSN cannot be read",
        hint="A DSN looks like postgresql://user@host:5432/database; in a password, write %40 for @, %2F for /.",
    )


def unreachable(dsn: str, error: psycopg.OperationalError, *, reached: bool) -> DatabaseUnavailableError:
    """The error for a connection that was not made.

    Args:
        dsn: where to.
        error: libpq's.
        reached: whether there was a connection before.
    """
    reason = " ".join(_WHERE.sub("", str(error).strip().partition("\n")[0], count=1).split())
    server = describe_dsn(dsn)
    refused = _FOR_GOOD.search(reason) is not None
    what = "refused the connection" if refused else "does not answer"
    unavailable = DatabaseUnavailableError(f"{server} {what}: {reason}")
    unavailable.refused = refused
    if refused:
        unavailable.hint = "Check the user, the password and the database in the DSN."
    elif not reached:
        unavailable.hint = "Check that the server runs, and the host and the port in the DSN."
    return unavailable
