"""Servers that refuse, DSNs that cannot be read, and what is left behind at the end of a process."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from psycopg.conninfo import make_conninfo

from memkernel.errors import DatabaseUnavailableError, InvalidInputError, StoreNotFoundError
from memkernel.ids import mint
from memkernel.models import MemoryStore
from memkernel.store import Database
from tests.fix_postgres import PostgresServer
from tests.store.people import ANN


@pytest.mark.parametrize("changed", [{"dbname": "nowhere"}, {"user": "nobody_at_all"}], ids=str)
def test_a_server_that_refuses_is_named_with_its_reason_and_not_asked_again(
    shared_dsn: str, server: PostgresServer, changed: dict[str, str]
) -> None:
    [name] = changed.values()
    with Database(make_conninfo(shared_dsn, **changed), reconnect_s=30) as database:
        begun = time.monotonic()
        with pytest.raises(
            DatabaseUnavailableError, match=rf'refused the connection: .*"{name}" does not exist'
        ) as told:
            database.memory_stores.list()
    assert told.value.refused
    assert told.value.saved is False
    assert str(server.directory) in str(told.value)
    assert told.value.hint == "Check the user, the password and the database in the DSN."
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("postgresql://ann:hunter2@127.0.0.1:1/notes", "127.0.0.1:1/notes does not answer: Connection refused"),
        ("postgresql://ann:hunter2@nohost.invalid/notes", "nohost.invalid/notes does not answer: "),
        ("postgresql://ann:hun@ter2@nohost.invalid/notes", "nohost.invalid/notes does not answer: "),
        ("host=/nowhere password=hunter2", "socket /nowhere does not answer: No such file or directory"),
    ],
)
def test_a_server_that_is_not_there_is_named_without_the_password(dsn: str, words: str) -> None:
    with pytest.raises(DatabaseUnavailableError) as told:
        Database(dsn).open()
    assert words in str(told.value)
    assert not told.value.refused
    assert "ter2" not in str(told.value)
    assert told.value.hint == "Check that the server runs, and the host and the port in the DSN."


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://ann:hunter 2@127.0.0.1:1/notes",
        "postgresql://ann:hunter/2@127.0.0.1/notes",
        "postgresql://ann:hunter2@127.0.0.1:1/notes?bogus=1",
        "postgresql://ann:hunter2@127.0.0.1:1/notes?connect_timeout=soon",
        "postgresql://ann:hunter2@127.0.0.1:1/notes\0",
        "host='127.0.0.1 password=hunter2",
    ],
)
def test_nothing_is_told_of_a_dsn_that_cannot_be_read(dsn: str) -> None:
    with pytest.raises(InvalidInputError) as told:
        Database(dsn).open()
    assert str(told.value) == "the DSN cannot be read"
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__ or told.value.__context__ is None


def test_variables_of_libpq_do_not_redirect_a_server_of_our_own(
    shared_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSERVICE", "another")
    with Database(lambda: shared_dsn) as database:
        database.open()


def test_a_process_that_closes_nothing_ends_without_a_warning(shared_dsn: str) -> None:
    program = f"from memkernel.store import Database\nnotes = Database({shared_dsn!r})\nnotes.open()"
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""


def test_a_dump_bears_connections_that_were_lost_before(fresh_database: Database, server: PostgresServer) -> None:
    fresh_database.memory_stores.create(name="Notes")
    with server.connect() as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    dumped = {table: list(rows) for table, rows in fresh_database.dump({"memory_stores": ["name"]})}
    assert dumped == {"memory_stores": [("Notes",)]}


def test_get_or_create_finds_by_id_and_by_slug(fresh_database: Database) -> None:
    stores = fresh_database.memory_stores
    made = stores.get_or_create("Team notes")
    assert stores.get_or_create("team-notes") == stores.get_or_create(made.id) == made
    with pytest.raises(StoreNotFoundError):
        stores.get_or_create(mint("memstore"))
    stores.archive(made.id)
    assert stores.get_or_create("team-notes").name == "team-notes"


def test_a_deleted_memory_comes_back_at_the_path_that_was_asked_for(database: Database, store: MemoryStore) -> None:
    memory = database.memories.create(store.id, path="/a.md", content="text", actor=ANN)
    database.memories.rename_tree(store.id, "/a.md", "/b/c.md", actor=ANN)

    def restore(path: str | None) -> str:
        versions = database.memory_versions
        return versions.restore(memory.memory_version_id, memory_store_id=store.id, path=path, actor=ANN).path

    assert restore("/elsewhere.md") == "/b/c.md"  # it is alive: it stays where it is
    database.memories.delete(memory.id, memory_store_id=store.id, actor=ANN)
    assert restore("/b/c.md") == "/b/c.md"
    assert restore(None) == "/a.md"
