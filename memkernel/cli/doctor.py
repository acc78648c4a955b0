"""`memkernel doctor`: what is found, used and missing on this machine."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from memkernel import cluster, config
from memkernel.cli.commands import Commands
from memkernel.cli.connecting import connected
from memkernel.cli.sessions import saved
from memkernel.errors import MemkernelError
from memkernel.models import Settings

if TYPE_CHECKING:
    from memkernel.runtime import Recovered


def add(commands: Commands) -> None:
    """The command's line."""
    doctor = commands.add_parser("doctor", help="what is found, used and missing on this machine")
    doctor.set_defaults(run=_doctor)


def _doctor(_: argparse.Namespace) -> int:
    settings = config.load()
    findings = cluster.diagnose(settings)
    if settings.dsn is not None:
        findings.append(_look_at(settings.dsn))
    findings += [_sandboxes(settings), *_leftovers(settings)]
    marks = {"ok": "ok     ", "warning": "warning", "missing": "MISSING"}
    for finding in findings:
        print(f"{marks[finding.state]}  {finding.what}: {finding.text}")
        if finding.hint:
            print(f"         {finding.hint}")
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _look_at(dsn: str) -> cluster.Finding:
    """The server that MEMKERNEL_DSN names, as it is now. The embedded one is not started for a look."""
    from memkernel.store import Database

    try:
        with Database(dsn, reconnect_s=0) as database:
            status = database.status()
    except MemkernelError as error:
        return cluster.Finding("connection", "missing", str(error), error.hint)
    return cluster.Finding(
        "connection", "ok", f"PostgreSQL {status.server_version}, schema {status.schema_version}", ""
    )


def _sandboxes(settings: Settings) -> cluster.Finding:
    """Whether a Docker engine answers. Without one there is `--backend local`: nothing is in the way."""
    try:
        from memkernel.sandbox.engine import find_engine

        with closing(find_engine(settings)) as engine:
            limits = f"; it does not limit {', '.join(engine.info.unlimited)}" if engine.info.unlimited else ""
            text = f"Docker {engine.info.version}, {engine.info.kind}, at {engine.address}{limits}"
            return cluster.Finding("sandbox", "warning" if limits else "ok", text)
    except MemkernelError as error:
        return cluster.Finding("sandbox", "warning", str(error), error.hint)


def _leftovers(settings: Settings) -> list[cluster.Finding]:
    """What sandboxes left whose process is gone; it is saved now (SANDBOX.md, Decision 17)."""
    try:
        from memkernel import runtime

        home = runtime.Home.of(settings.home)
        if not runtime.dead_sessions(home) and not runtime.unreadable_sessions(home):
            return []
        with connected(settings) as (database, line):
            return [_recovery(one) for one in runtime.recover(database, line, settings, home)]
    except MemkernelError as error:
        return [cluster.Finding("sessions", "warning", f"left, and not saved yet: {error}", error.hint)]


def _recovery(one: Recovered) -> cluster.Finding:
    name = f"{one.title or 'a sandbox'} ({one.session_id})"
    if one.trouble:
        return cluster.Finding("sessions", "warning", f"{name} left what cannot be saved yet: {one.trouble}")
    return cluster.Finding("sessions", "ok", f"{name} had lost its process: {saved(one)}")
