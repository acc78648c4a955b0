"""What is found, used and missing on this machine: the facts of `memkernel doctor`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from memkernel.cluster import binaries as postgres
from memkernel.cluster.accounts import own_account, server_account
from memkernel.cluster.dsn import check_dsn, describe_dsn
from memkernel.cluster.embedded import ClusterStatus, EmbeddedCluster
from memkernel.cluster.filesystem import filesystem_of, warnings_for
from memkernel.cluster.places import check_makeable, existing_majors, home_directory
from memkernel.errors import MemkernelError
from memkernel.models import Settings

What = Literal["DSN", "account", "binaries", "home", "filesystem", "server", "connection", "sandbox", "sessions"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact. `missing` stands in the way; a `warning` does not, or not yet."""

    what: What
    state: Literal["ok", "missing", "warning"]
    text: str
    hint: str = ""


def diagnose(settings: Settings) -> list[Finding]:
    """The facts about the server that would be used here; nothing is started, made or raised.

    Where MEMKERNEL_DSN names a server, what the embedded one lacks is a warning only.
    """
    findings = [_checked(what, check, settings) for what, check in _CHECKS.items() if _applies(what)]
    return [_without_need(found) for found in findings] if settings.dsn is not None else findings


def _applies(what: What) -> bool:
    return sys.platform != "win32" or what in ("DSN", "server")


def _without_need(found: Finding) -> Finding:
    """What the embedded server lacks does not matter to a person who does not use it."""
    return replace(found, state="warning") if found.state == "missing" and found.what != "DSN" else found


def _checked(what: What, check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except MemkernelError as error:
        return Finding(what, "missing", str(error), error.hint)


def _dsn(settings: Settings) -> Finding:
    if settings.dsn is None:
        return Finding("DSN", "ok", "MEMKERNEL_DSN is not set: the embedded PostgreSQL is used")
    where = describe_dsn(check_dsn(settings.dsn, "MEMKERNEL_DSN"))
    return Finding("DSN", "ok", f"MEMKERNEL_DSN names {where}: it is used, and the embedded PostgreSQL is not")


def _account(settings: Settings) -> Finding:
    own, server = own_account(), server_account(settings.pg_user)
    text = f"{own.name}; PostgreSQL runs as {server.name}" if own.uid == 0 else own.name
    return Finding("account", "ok", text)


def _binaries(settings: Settings) -> Finding:
    used = EmbeddedCluster(home=settings.home, pg_bin=settings.pg_bin).status().binaries
    others = [f"{found.version} ({found.source})" for found in postgres.find(settings.pg_bin) if found != used]
    more = f"; also found: {', '.join(others)}" if others else ""
    return Finding("binaries", "ok", f"PostgreSQL {used.version} from {used.source}, {used.directory}{more}")


def _home(settings: Settings) -> Finding:
    home = home_directory(settings.home)
    majors = existing_majors(home)
    if not majors:
        check_makeable(home)
        then = ": the first use makes it" if settings.dsn is None else ""
        return Finding("home", "ok", f"{home}, without data yet{then}")
    return Finding("home", "ok", f"{home}, with data of PostgreSQL {' and '.join(map(str, majors))}")


def _filesystem(settings: Settings) -> Finding:
    home = home_directory(settings.home)
    if warnings := warnings_for(home):
        return Finding(
            "filesystem", "warning", "; ".join(warnings), "Set MEMKERNEL_HOME to a directory on a local disk."
        )
    return Finding("filesystem", "ok", filesystem_of(home) or "of a kind that this system does not tell")


def _server(settings: Settings) -> Finding:
    status = EmbeddedCluster(home=settings.home, pg_bin=settings.pg_bin).status()
    if not status.running:
        then = "the first use starts it" if settings.dsn is None else "it is not used"
        return Finding("server", "ok", f"does not run: {then}")
    text = ", ".join(_facts(status))
    if not status.supervised:
        return Finding("server", "warning", text, "Nobody watches over it: the next use changes that.")
    return Finding("server", "ok", text)


def _facts(status: ClusterStatus) -> Iterator[str]:
    yield f"runs as process {status.postmaster_pid}"
    if status.clients is not None:
        yield f"clients: {status.clients}"
    yield f"socket in {status.socket_directory}"
    yield f"log in {status.log}"


_CHECKS: dict[What, Callable[[Settings], Finding]] = {
    "DSN": _dsn,
    "account": _account,
    "binaries": _binaries,
    "home": _home,
    "filesystem": _filesystem,
    "server": _server,
}
