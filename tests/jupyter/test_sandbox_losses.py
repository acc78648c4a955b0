"""%%sandbox when something goes away under it: the database, the container, the kernel in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import memkernel as mk
from memkernel.sandbox.engine import Engine
from memkernel.sandbox.walls import LABEL_SESSION
from tests.fix_kernel import Kernel
from tests.fix_postgres import PostgresServer
from tests.runtime.engine_proxy import EngineProxy
from tests.store.proxy import LossyProxy

HANG_UP = """
select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""
FOLDER = "/mnt/memory/team-notes"


@pytest.fixture
def sandboxed_dsn(dsn: str, server: PostgresServer, proxy: LossyProxy) -> str:
    """The kernel reaches its database through the proxy."""
    return dsn.replace(f"host={server.directory}", f"host={proxy.directory}")


def run_meanwhile(sandboxed: Kernel, cell: str, meanwhile: Callable[[], object]) -> str:
    """Run a cell that prints `begun`, and do something from then on; the id of its message."""
    message = sandboxed.send(f"%%sandbox -o r\nimport time\nprint('begun', flush=True)\ntime.sleep(1)\n{cell}")
    sandboxed.wait_until(message, lambda reply: "begun" in reply.stdout)
    meanwhile()
    return message


def test_a_database_lost_in_mid_cell_keeps_all_is_told_once_and_saves_with_the_next_cell(
    sandboxed: Kernel, proxy: LossyProxy, dsn: str, somebody_else: mk.Connection
) -> None:
    sandboxed.run("%%sandbox -q\nx = 1\n")
    write = f"_ = open('{FOLDER}/a.md', 'w').write('A\\n')\nprint('written')\n"

    def lose_the_database() -> None:
        proxy.refuses = True
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(HANG_UP)

    message = run_meanwhile(sandboxed, write, lose_the_database)
    reply = sandboxed.reply(message)
    assert (reply.status, reply.ename, len(reply.traceback)) == ("error", "SyncError", 2)
    assert "written" in reply.stdout
    assert "✗ not synced" in reply.text
    assert "`" not in reply.text  # one way out, and the error says it
    assert reply.traceback[1] == "What lies in the mount is kept, and saved by the next cell or `%sandbox sync`."
    assert sandboxed.run("print(r.status, r.ok)").stdout.startswith("ok False\n")
    told = [sandboxed.run("print('mine')").stdout for _ in range(2)]
    assert [text.startswith("mine\n") for text in told] == [True, True]
    assert max(len(text.splitlines()) for text in told) <= 2
    assert told[1] == "mine\n"
    mounts = sandboxed.run("%sandbox mounts")
    assert (mounts.ename, mounts.stdout) == ("DatabaseUnavailableError", "")
    not_run = sandboxed.run("%%sandbox\nprint('run')\n")
    assert not_run.traceback[1].startswith("The code was not run: run the cell again")
    assert "run\n" not in not_run.stdout
    proxy.refuses = False
    again = sandboxed.run("%%sandbox\nprint(x)\n")
    assert (again.status, again.stdout.splitlines()[0]) == ("ok", "1")
    # By this cell's sync, or by one that an earlier cell did not wait for and that went on until the server was back.
    assert "/a.md" in again.text + again.stdout
    assert somebody_else.store("Team notes").read("/a.md") == "A\n"


def test_a_kernel_that_dies_is_told_its_files_are_saved_and_the_next_cell_has_a_new_one(
    sandboxed: Kernel, somebody_else: mk.Connection
) -> None:
    write = f"_ = open('{FOLDER}/a.md', 'w').write('A\\n')\nimport os\n"
    reply = sandboxed.run(f"%%sandbox -o r\n{write}os._exit(3)\n")
    assert (reply.ename, len(reply.traceback)) == ("CellFailedError", 2)
    assert "died" in reply.traceback[0]
    assert sandboxed.run("print(r.status)").stdout == "died\n"
    assert somebody_else.store("Team notes").read("/a.md") == "A\n"
    again = sandboxed.run("%%sandbox\nprint('new')\n")
    assert again.stdout == "new\n"
    assert "lost" in again.stderr


@pytest.mark.parametrize("backend", [pytest.param("docker", marks=pytest.mark.docker)])
def test_a_container_that_is_taken_away_is_told_its_files_are_saved_and_the_next_one_has_the_same_stores(
    sandboxed: Kernel, docker_engine: Engine, somebody_else: mk.Connection
) -> None:
    somebody_else.create_store("Handbook").write("/rule.md", "rule\n")
    sandboxed.run("%sandbox start dev --ro handbook --store team-notes --backend docker -q -o box")
    session = sandboxed.run("print(box.id)").stdout.strip()

    def remove() -> None:
        for container, _ in docker_engine.labelled(f"{LABEL_SESSION}={session}"):
            docker_engine.remove(container)

    write = f"_ = open('{FOLDER}/a.md', 'w').write('A\\n')\n"
    sandboxed.run(f"%%sandbox -q\n{write}")
    message = run_meanwhile(sandboxed, f"{write}time.sleep(30)\n", remove)
    reply = sandboxed.reply(message)
    assert (reply.ename, len(reply.traceback)) == ("SandboxClosedError", 2)
    assert somebody_else.store("Team notes").read("/a.md") == "A\n"
    assert sandboxed.run("print(r.status, r.stdout)").stdout == "died begun\n\n"
    again = sandboxed.run("%%sandbox\nimport os\nprint(sorted(os.listdir('/mnt/memory')))\n")
    assert again.stdout.endswith("['handbook', 'team-notes']\n")
    assert again.stdout.startswith("sandbox dev is a new one")


@pytest.fixture
def engine(docker_host: str, tmp_path: Path) -> Iterator[EngineProxy]:
    """The engine, by a way that can be lost."""
    proxy = EngineProxy(tmp_path / "engine.sock", docker_host)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("backend", [pytest.param("docker", marks=pytest.mark.docker)])
def test_an_engine_that_goes_away_and_comes_back_is_told_and_the_next_cell_has_a_sandbox_like_the_lost_one(
    sandboxed: Kernel, engine: EngineProxy, somebody_else: mk.Connection
) -> None:
    sandboxed.run(f"import os\nos.environ['DOCKER_HOST'] = 'unix://{engine.path}'")
    assert sandboxed.run("%memory connect -q").status == "ok"
    assert sandboxed.run('%memory use "Team notes" -q').status == "ok"
    assert sandboxed.run("%sandbox start dev --on-conflict merge --memory 400m -q").status == "ok"
    write = f"%%sandbox -o r\n_ = open('{FOLDER}/a.md', 'w').write('A\\n')\nprint('begun')\n"
    message = sandboxed.send(f"{write}import time\ntime.sleep(30)\n")
    sandboxed.wait_until(message, lambda reply: "begun" in reply.stdout)
    engine.lose()
    reply = sandboxed.reply(message)
    assert (reply.ename, len(reply.traceback)) == ("EngineError", 2), reply.traceback
    assert "starts a new sandbox" in reply.traceback[1]
    assert sandboxed.run("print(r.status, r.stdout)").stdout == "died begun\n\n"
    assert somebody_else.store("Team notes").read("/a.md") == "A\n"
    assert sandboxed.run("%%sandbox\n1\n").ename == "EngineNotFoundError"
    engine.come_back()
    again = sandboxed.run(f"%%sandbox\nprint(open('{FOLDER}/a.md').read())\n")
    assert again.status == "ok", again
    assert "sandbox dev is a new one: what the variables of the lost one held is gone\n" in again.stdout
    assert again.stdout.endswith("A\n\n")
    options = "box.options['on_conflict'], box.options['memory'], box.name"
    told = sandboxed.run(f"from memkernel.handle.sandbox import open_sandboxes\nbox = open_sandboxes()[-1]\n{options}")
    assert told.text == "('merge', '400m', 'dev')"
    sandboxed.run("%sandbox stop --all -q")


def test_what_a_stop_could_not_save_is_saved_by_the_next_start_of_the_same_notebook(
    sandboxed: Kernel, proxy: LossyProxy, dsn: str, backend: str, somebody_else: mk.Connection
) -> None:
    def lose_the_database() -> None:
        proxy.refuses = True
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(HANG_UP)

    write = f"_ = open('{FOLDER}/mid.md', 'w').write('mid\\n')\n"
    assert sandboxed.reply(run_meanwhile(sandboxed, write, lose_the_database)).ename == "SyncError"
    stopped = sandboxed.run("%sandbox stop")
    assert stopped.ename == "SyncError"
    assert stopped.traceback[1].endswith("saved by the next sandbox's start or `memkernel doctor`.")
    assert "%sandbox sync" not in stopped.text + stopped.stdout
    proxy.refuses = False
    again = sandboxed.run(f"%%sandbox --backend {backend}\nprint(open('{FOLDER}/mid.md').read())\n")
    assert again.status == "ok", again
    assert "sandbox main, which was left behind, is ended: 1 change saved in team-notes (/mid.md)" in again.stdout
    assert again.stdout.endswith("mid\n\n")
    assert somebody_else.store("Team notes").read("/mid.md") == "mid\n"


START = """
print("begun", flush=True)
get_ipython().run_line_magic("sandbox", "start second --backend {backend} -q")
"""


def test_an_interrupt_while_a_sandbox_starts_is_two_lines_and_leaves_none(sandboxed: Kernel, backend: str) -> None:
    for delay_s in (0.02, 0.2, 0.6):
        message = sandboxed.send(START.format(backend=backend))
        sandboxed.wait_until(message, lambda reply: "begun" in reply.stdout)
        time.sleep(delay_s)
        sandboxed.interrupt()
        reply = sandboxed.reply(message)
        if reply.status == "ok":  # it had started already
            sandboxed.run("%sandbox stop second -q")
            continue
        assert reply.traceback == ["SandboxError: the start was interrupted", "No sandbox was started."]
        assert sandboxed.run(
            "print([row.sandbox for row in get_ipython().run_line_magic('sandbox', 'ls')])"
        ).stdout == ("['main']\n")
