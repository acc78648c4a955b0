"""Who runs PostgreSQL, and as whom a kernel connects: it refuses root, and needs a passwd entry of everybody."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memkernel.cluster.environment import for_postgres
from memkernel.errors import ServerStartError

SERVICE_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """An operating system account."""

    name: str
    uid: int
    gid: int

    def is_ours(self) -> bool:
        """Whether this process runs as it."""
        return self.uid == os.geteuid()

    def can_run(self, command: Sequence[str | Path]) -> bool:
        """Whether the command succeeds as this account.

        Raises:
            ServerStartError: this process may not become it.
        """
        try:
            done = subprocess.run(
                command, user=self.uid, group=self.gid, extra_groups=[], cwd="/", env=for_postgres(),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except OSError as error:
            if error.filename:  # it became the account, and the program is closed to it
                return False
            raise ServerStartError(
                f"root may not become the account {self.name} here: {error.strerror}",
                hint="Run as an ordinary user, or set MEMKERNEL_DSN to a server.",
            ) from None
        return done.returncode == 0

    def can_enter(self, directory: Path) -> bool:
        """Whether this account reaches what lies in the directory."""
        return self.is_ours() or self.can_run(["/bin/sh", "-c", 'cd -- "$1"', "sh", directory])


def own_account() -> Account:
    """The account of this process.

    Raises:
        ServerStartError: its uid has no passwd entry; PostgreSQL refuses to run for such a user.
    """
    import pwd

    uid = os.geteuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise ServerStartError(
            f"user id {uid} has no passwd entry, and PostgreSQL refuses to run without one",
            hint="Set MEMKERNEL_DSN to a server, or give the user an entry in /etc/passwd.",
        ) from None
    return Account(entry.pw_name, uid, os.getegid())


def server_account(pg_user: str | None = None) -> Account:
    """The account that PostgreSQL runs as: our own; for root an unprivileged one that exists already.

    Args:
        pg_user: MEMKERNEL_PG_USER; it matters to root only.

    Raises:
        ServerStartError: there is none.
    """
    own = own_account()
    if own.uid != 0:
        return own
    for name in (pg_user,) if pg_user else SERVICE_ACCOUNTS:
        if account := _unprivileged(name):
            return account
    wanted = f"no unprivileged account {pg_user}" if pg_user else "no account postgres or nobody"
    raise ServerStartError(
        f"PostgreSQL refuses to run as root, and there is {wanted}",
        hint="Set MEMKERNEL_PG_USER to an unprivileged account, or MEMKERNEL_DSN to a server.",
    )


def _unprivileged(name: str) -> Account | None:
    import pwd

    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid) if entry.pw_uid else None
