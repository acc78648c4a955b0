"""What a new cluster is made of, as plain values: the supervisor carries it out (POSTGRES.md 5 and 7)."""

from __future__ import annotations

ROLE = DATABASE = "memkernel"

SQL = f"CREATE ROLE {ROLE} LOGIN CREATEDB CREATEROLE;\nCREATE DATABASE {DATABASE} OWNER {ROLE};\n"
"""Run in single-user mode, where each line is one command."""

HBA = "local all all peer map=mk\n"

_SETTINGS = {
    "shared_buffers": "32MB",
    "max_connections": "40",
    # Durability stays on: without it a SIGKILL of the server loses acknowledged commits (POSTGRES.md 1.5).
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "wal_compression": "on",
    "max_logical_replication_workers": "0",
    "max_worker_processes": "4",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    # Not POSIX shared memory: containers give it 64 kB, and systemd-logind removes it at logout.
    "dynamic_shared_memory_type": "mmap",
    "jit": "off",
    "huge_pages": "off",
    "autovacuum_max_workers": "1",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "lc_messages": "'C'",
    "cluster_name": "'memkernel'",
    "log_line_prefix": "'%m [%p] '",
    "log_checkpoints": "off",
    # Statements can carry what a person keeps in a memory.
    "log_min_error_statement": "panic",
}


def options(major: int) -> list[str]:
    """The options of initdb, without the data directory.

    The builtin locale provider does not depend on the system's libc, so the data survives an upgrade of it.
    """
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if major >= 17 else []
    memory = ["-c", "dynamic_shared_memory_type=mmap"] if major >= 16 else []
    fixed = ["--username=postgres", "--encoding=UTF8", "--locale=C", "--auth-local=peer", "--auth-host=reject"]
    return [*fixed, "--no-instructions", *locale, *memory]


def files(major: int, user: str) -> list[tuple[str, str, str]]:
    """(name, mode of open(), text) of the configuration files; `user` alone may connect."""
    return [
        ("postgresql.conf", "a", settings(major)),
        ("pg_hba.conf", "w", HBA),
        ("pg_ident.conf", "w", ident_map(user)),
    ]


def settings(major: int) -> str:
    """What is appended to postgresql.conf; sockets are named on the command line."""
    chosen = _SETTINGS | ({"io_method": "sync"} if major >= 18 else {})
    return "\n# memkernel\n" + "".join(f"{name} = {value}\n" for name, value in chosen.items())


def ident_map(user: str) -> str:
    """The operating system's user -> the role that owns the database, and the administrator's."""
    quoted = '"' + user.replace('"', '""') + '"'
    return f"mk {quoted} {ROLE}\nmk {quoted} postgres\n"
