"""The memory tool inside the official SDK: its abstract classes and its tool runners (CONTRACT F.1 to F.11, F.95)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import anthropic
import httpx2
import pytest
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
    BetaMessageParam,
)

from memkernel.agent.memory_tool import (
    NOTHING_CHANGED,
    UNKNOWN_WHETHER_SAVED,
    AsyncMemoryTool,
    MemoryTool,
    async_memory_tool,
    memory_tool,
)
from memkernel.errors import DatabaseUnavailableError, InvalidInputError, MemoryToolError, StoreNotFoundError
from memkernel.models import Cause
from memkernel.store import Database
from memkernel.tool.commands import MemoryBackend
from memkernel.tool.paths import MemoryPath
from tests.fix_postgres import DURABLE, PostgresServer


@pytest.fixture(scope="module")
def database(servers: Callable[[int], PostgresServer]) -> Iterator[Database]:
    """One database for all; each test has a store of its own in it."""
    server = servers(18)
    name = server.create_migrated_database()
    with Database(server.dsn(name)) as database:
        yield database
    server.drop_database(name)


@pytest.fixture
def store_id(database: Database) -> str:
    return database.memory_stores.create(name="Notes").id


@pytest.fixture
def tool(database: Database, store_id: str) -> MemoryTool:
    return memory_tool(database, store_id)


class Broken(MemoryBackend):
    """A back end of one's own that fails in whatever way it is told to."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def view(self, path: MemoryPath, view_range: tuple[int, int] | None = None) -> str:
        raise self.error

    def create(self, path: MemoryPath, file_text: str) -> str:
        raise self.error

    def str_replace(self, path: MemoryPath, old_str: str, new_str: str) -> str:
        raise self.error

    def insert(self, path: MemoryPath, insert_line: int, insert_text: str) -> str:
        raise self.error

    def delete(self, path: MemoryPath) -> str:
        raise self.error

    def rename(self, old_path: MemoryPath, new_path: MemoryPath) -> str:
        raise self.error


VIEW = {"command": "view", "path": "/memories"}
CREATE = {"command": "create", "path": "/memories/a.md", "file_text": "one\n"}

SIX: list[dict[str, Any]] = [
    CREATE,
    VIEW,
    {"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "two"},
    {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "zero"},
    {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b/c.md"},
    {"command": "delete", "path": "/memories/b"},
]
REFUSED: list[tuple[Any, str]] = [
    ({"command": "view", "path": "/memories/no"}, "The path /memories/no does not exist. Please provide a valid path."),
    ({"command": "view", "path": "/etc/passwd"}, "Path must start with /memories, got: /etc/passwd"),
    ({"command": "bogus"}, "Unknown command: bogus"),
    ({"command": "view"}, "invalid memory tool input: path is missing, it must be a string"),
    (
        {"command": "create", "path": "/memories/x"},
        "invalid memory tool input: file_text is missing, it must be a string",
    ),
    ({"command": "delete", "path": "/memories"}, "Cannot delete the /memories directory itself"),
]


def refused(tool: MemoryTool, command: object) -> str:
    with pytest.raises(ToolError) as caught:
        tool.call(command)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return str(caught.value.content)


# -- the runners -----------------------------------------------------------------------------------


class Model:
    """A model that asks for these commands in one turn, and then is done."""

    def __init__(self, *commands: object) -> None:
        self._commands = commands
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        calls = [
            {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": command}
            for number, command in enumerate(self._commands)
        ]
        first = len(self.requests) == 1
        return httpx2.Response(
            200,
            json={
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "model",
                "content": calls if first else [{"type": "text", "text": "Done."}],
                "stop_reason": "tool_use" if first else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )

    @property
    def results(self) -> list[dict[str, Any]]:
        return self.requests[1]["messages"][-1]["content"]


GO: BetaMessageParam = {"role": "user", "content": "Go"}


def run_model(tool: MemoryTool, *commands: object) -> Model:
    model = Model(*commands)
    with httpx2.Client(transport=httpx2.MockTransport(model)) as transport:
        client = anthropic.Anthropic(api_key="key", http_client=transport)
        client.beta.messages.tool_runner(model="model", max_tokens=100, messages=[GO], tools=[tool]).until_done()
    return model


def run_async_model(tool: AsyncMemoryTool, *commands: object) -> Model:
    model = Model(*commands)

    async def go() -> None:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(model)) as transport:
            client = anthropic.AsyncAnthropic(api_key="key", http_client=transport)
            await client.beta.messages.tool_runner(
                model="model", max_tokens=100, messages=[GO], tools=[tool]
            ).until_done()

    asyncio.run(go())
    return model


def test_f001_the_declaration_is_the_type_and_the_name(tool: MemoryTool) -> None:
    plain = {"type": "memory_20250818", "name": "memory"}
    assert tool.to_dict() == plain
    assert MemoryTool(tool.backend, cache_control={"type": "ephemeral"}).to_dict() == {
        **plain,
        "cache_control": {"type": "ephemeral"},
    }
    assert AsyncMemoryTool(tool.backend).to_dict() == plain


def test_f002_it_runs_in_the_sdks_tool_runner(tool: MemoryTool) -> None:
    assert isinstance(tool, BetaAbstractMemoryTool)
    model = run_model(tool, VIEW)
    assert model.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert model.results == [{"type": "tool_result", "tool_use_id": "toolu_0", "content": tool.call(VIEW)}]


def test_f002_it_runs_in_the_sdks_async_tool_runner(database: Database, store_id: str) -> None:
    tool = async_memory_tool(database, store_id)
    assert isinstance(tool, BetaAsyncAbstractMemoryTool)
    model = run_async_model(tool, CREATE, VIEW, {"command": "view"})
    assert [result["content"].split("\n")[-1] for result in model.results] == [
        "File created successfully at: /memories/a.md",
        "4B\t/memories/a.md",
        "invalid memory tool input: path is missing, it must be a string",
    ]


def test_f003_every_success_is_a_plain_text(tool: MemoryTool) -> None:
    assert [type(tool.call(command)) for command in SIX] == [str] * 6


@pytest.mark.parametrize(("command", "sentence"), REFUSED)
def test_f004_f005_f006_f007_every_failure_is_a_tool_error(tool: MemoryTool, command: object, sentence: str) -> None:
    """Fault 8."""
    assert refused(tool, command) == sentence


def test_f004_the_runner_sends_failures_verbatim(tool: MemoryTool) -> None:
    model = run_model(tool, *(command for command, _ in REFUSED))
    assert [result["content"] for result in model.results] == [sentence for _, sentence in REFUSED]
    assert all(result["is_error"] is True for result in model.results)
    assert tool.call(VIEW).count("\n") == 1


def test_f008_calls_of_one_turn_run_in_order(tool: MemoryTool) -> None:
    model = run_model(tool, CREATE, {"command": "view", "path": "/memories/a.md"})
    assert model.results[1]["content"].endswith("     1\tone\n     2\t")
    assert "is_error" not in model.results[1]


def test_f009_two_sessions_in_scopes_of_their_own_do_not_see_each_other(database: Database, store_id: str) -> None:
    one, two = (memory_tool(database, store_id, scope=scope) for scope in ("one", "two"))
    one.call(CREATE)
    assert "a.md" in one.call(VIEW)
    assert "a.md" not in two.call(VIEW)


def test_the_sdks_own_commands_are_taken_too(tool: MemoryTool) -> None:
    create = BetaMemoryTool20250818CreateCommand(command="create", path="/memories/a", file_text="x")
    assert tool.execute(create) == "File created successfully at: /memories/a"
    view = BetaMemoryTool20250818ViewCommand(command="view", path="/memories/a", view_range=[1, 1])
    assert tool.view(view) == "Here's the content of /memories/a with line numbers:\n     1\tx"
    halved = BetaMemoryTool20250818StrReplaceCommand.construct(command="str_replace", path="/memories/a", old_str="x")
    assert str(tool.str_replace(halved)).startswith("The memory file has been edited.")
    with pytest.raises(ToolError, match="invalid memory tool input: path must be a string"):
        tool.delete(cast("Any", BetaMemoryTool20250818ViewCommand.construct(command="delete")))


def test_f095_clear_leaves_an_empty_root(tool: MemoryTool, database: Database, store_id: str) -> None:
    for name in ("a", ".h", "d/e/f"):
        tool.call({"command": "create", "path": f"/memories/{name}", "file_text": "x"})
    assert tool.clear_all_memory() == "All memory cleared"
    assert tool.call(VIEW).endswith("\n4K\t/memories")
    assert tool.clear_all_memory() == "All memory cleared"
    assert asyncio.run(async_memory_tool(database, store_id).clear_all_memory()) == "All memory cleared"


def test_both_colours_give_the_same_answers(database: Database) -> None:
    tools = [
        make(database, database.memory_stores.create(name=name).id)
        for name, make in (("a", memory_tool), ("b", async_memory_tool))
    ]

    def answers(call: Callable[[object], str]) -> Iterator[str]:
        for command in [*SIX, *(command for command, _ in REFUSED)]:
            try:
                yield call(command)
            except ToolError as error:
                yield f"refused: {error.content}"

    one, two = cast("MemoryTool", tools[0]), cast("AsyncMemoryTool", tools[1])
    assert list(answers(one.call)) == list(answers(lambda command: asyncio.run(two.call(command))))


# -- who and why -----------------------------------------------------------------------------------


def test_a_session_is_minted_or_given(database: Database, store_id: str) -> None:
    minted = memory_tool(database, store_id)
    assert minted.session_id
    assert minted.session_id.startswith("sesn_")
    given = async_memory_tool(database, store_id, session_id="sesn_mine")
    assert given.session_id == "sesn_mine"
    minted.call(CREATE)
    asyncio.run(given.call({"command": "delete", "path": "/memories/a.md"}))
    actors = [version.created_by for version in database.memory_versions.list(store_id).data]
    assert [(actor.type, actor.id) for actor in actors if actor] == [
        ("session_actor", "sesn_mine"),
        ("session_actor", minted.session_id),
    ]


@pytest.mark.parametrize("session_id", ["sesn_1", "sesn_01HqR8mZ-x_Y", "sesn_" + "a" * 64])
def test_the_session_of_another_system_keeps_its_id(database: Database, store_id: str, session_id: str) -> None:
    assert memory_tool(database, store_id, session_id=session_id).session_id == session_id


@pytest.mark.parametrize(
    "session_id", ["nope", "user_x", "", "sesn_", "sesn_a b", "sesn_a\n", "SESN_a", "sesn_é", "sesn_" + "a" * 65, 5]
)
def test_what_is_no_sessions_id_is_refused_at_entry(database: Database, store_id: str, session_id: Any) -> None:
    """CONTRACT B.11"""
    for make in (memory_tool, async_memory_tool):
        with pytest.raises(InvalidInputError, match="no session's id"):
            make(database, store_id, session_id=session_id)
    with pytest.raises(InvalidInputError, match="no session's id"):
        MemoryTool(Broken(OSError()), session_id=session_id)


@pytest.mark.parametrize("adapter", [MemoryTool, AsyncMemoryTool])
def test_what_is_no_back_end_is_refused_at_entry(adapter: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidInputError, match=r"backend is a memkernel\.MemoryBackend, not dict"):
        adapter({})


def test_the_cause_of_a_change_is_the_call_that_was_set(tool: MemoryTool, database: Database, store_id: str) -> None:
    tool.cause = Cause("run_1", "toolu_1")
    tool.call(CREATE)
    tool.cause = Cause("run_1", "toolu_2")
    tool.call({"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "zero"})
    tool.cause = None
    tool.call({"command": "delete", "path": "/memories/a.md"})
    by_call = database.memory_versions.list_by_run(store_id, "run_1", tool_use_id="toolu_2")
    assert [version.operation for version in by_call] == ["modified"]
    assert [version.seq for version in database.memory_versions.list_by_run(store_id, "run_1")] == [1, 2]


def test_unknown_options_are_refused_at_once(database: Database, store_id: str) -> None:
    with pytest.raises(InvalidInputError, match="profile='wrong'"):
        memory_tool(database, store_id, profile=cast("Any", "wrong"))


# -- what must not reach the model -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "command", "sentence"),
    [
        (DatabaseUnavailableError(saved=False), CREATE, NOTHING_CHANGED),
        (DatabaseUnavailableError(saved=None), CREATE, UNKNOWN_WHETHER_SAVED),
        (DatabaseUnavailableError(saved=None), VIEW, NOTHING_CHANGED),
        (StoreNotFoundError("memstore_gone"), CREATE, NOTHING_CHANGED),
        (OSError(2, "No such file or directory", "/srv/secret"), CREATE, UNKNOWN_WHETHER_SAVED),
        (RuntimeError("SELECT * FROM memkernel.memories"), VIEW, NOTHING_CHANGED),
        (TypeError("Notes.create returned int; the answer for the model is a str"), CREATE, UNKNOWN_WHETHER_SAVED),
    ],
)
def test_f010_what_the_model_cannot_help_is_kept_for_the_person(
    error: Exception, command: dict[str, str], sentence: str
) -> None:
    """CONTRACT 0.3, row 24."""
    tool = MemoryTool(Broken(error))
    assert refused(tool, command) == sentence
    assert tool.lost is error
    with pytest.raises(type(error)) as caught:
        tool.raise_lost()
    assert caught.value is error
    tool.raise_lost()


def test_the_first_of_several_losses_is_kept() -> None:
    first = DatabaseUnavailableError(saved=None)
    backend = Broken(first)
    tool = MemoryTool(backend)
    refused(tool, CREATE)
    backend.error = DatabaseUnavailableError()
    refused(tool, CREATE)
    assert tool.lost is first


def test_a_sentence_of_ones_own_back_end_is_sent_and_not_kept() -> None:
    tool = MemoryTool(Broken(MemoryToolError("No room.")))
    assert refused(tool, CREATE) == "No room."
    assert tool.lost is None
    assert tool.session_id is None


def test_an_interrupt_is_no_answer() -> None:
    tool = MemoryTool(Broken(cast("Exception", KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        tool.call(VIEW)
    assert tool.lost is None


def test_a_store_that_is_gone(tool: MemoryTool, database: Database, store_id: str) -> None:
    database.memory_stores.delete(store_id)
    for command in SIX:
        assert refused(tool, command) == NOTHING_CHANGED
    with pytest.raises(StoreNotFoundError):
        tool.raise_lost()


HOSTILE: list[object] = [
    {"command": "create", "path": "/memories/" + "x" * 5_000, "file_text": "x"},
    {"command": "create", "path": "/memories/a", "file_text": "\ud800"},
    {"command": "create", "path": "/memories/a", "file_text": "x" * 200_000},
    {"command": "create", "path": "/memories/a\0", "file_text": "x"},
    {"command": "view", "path": "/memories/'; DROP TABLE memkernel.memories; --/../.."},
    {"command": "insert", "path": "/memories/a", "insert_line": 10**30, "insert_text": "x"},
    {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/\ud800"},
    {"command": ["view"]},
    ["view"],
    None,
]


@pytest.mark.parametrize("command", HOSTILE)
def test_f010_no_sentence_tells_of_the_machine(tool: MemoryTool, command: object) -> None:
    sentence = refused(tool, command)
    json.dumps(sentence, ensure_ascii=False).encode()
    for leak in (str(Path.home()), os.getcwd(), "Traceback", "SELECT", "Error(", "psycopg"):
        assert leak not in sentence
    assert tool.lost is None


# -- a server that goes away and comes back --------------------------------------------------------


def test_a_lost_server_is_told_and_the_next_command_works() -> None:
    """CONTRACT 0.3, row 24: each command is committed or not at all."""
    server = PostgresServer(18, DURABLE)
    try:
        with Database(server.dsn(server.create_migrated_database()), reconnect_s=0.3) as database:
            tool = memory_tool(database, database.memory_stores.create(name="Notes").id)
            tool.call(CREATE)
            server.stop(signal.SIGQUIT)
            assert refused(tool, VIEW) == NOTHING_CHANGED
            with pytest.raises(DatabaseUnavailableError):
                tool.raise_lost()
            edit = {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "zero"}
            assert refused(tool, edit) == NOTHING_CHANGED
            other = {**CREATE, "path": "/memories/other.md"}
            assert refused(tool, other) in (NOTHING_CHANGED, UNKNOWN_WHETHER_SAVED)
            server.start()
            assert tool.call(VIEW).endswith("\n4B\t/memories/a.md")
            tool.call(edit)
            assert tool.call({"command": "view", "path": "/memories/a.md"}).endswith(
                "     1\tzero\n     2\tone\n     3\t"
            )
    finally:
        server.remove()
