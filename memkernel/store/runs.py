"""The runs of agents, kept while they run: whose they are, how they stand, and what happened in them."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple, get_args

from psycopg import pq

from memkernel import ids
from memkernel.errors import InvalidInputError, RunNotFoundError, RunRunningError
from memkernel.models import Page, RunEvent, RunKind, RunRecord, RunStatus, Usage
from memkernel.store import checks, memory_stores, pages, rows, run_processes, run_queries, run_rows, statements
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact

_KINDS: Final = get_args(RunKind)
_STATUSES: Final = get_args(RunStatus)
_NOBODY: Final = ""
_ALL: Final = 2**62
_MICROSECONDS: Final = 1_000_000


class _Holder(NamedTuple):
    """Which process has a run; `quiet_s`: seconds since it wrote to it."""

    run_id: str
    process: str
    status: str
    seen_at: datetime
    quiet_s: float

    @property
    def lives(self) -> bool:
        return self.status == "running" and not run_processes.is_gone(self.process, self.quiet_s)


class Runs:
    """The runs of a database."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact

    # -- by the process whose run it is ------------------------------------------------------------

    def begin(
        self,
        run_id: str,
        *,
        session_id: str,
        kind: RunKind,
        model: str,
        prompt: str,
        process: str,
        memory_store_ids: Sequence[str] = (),
        previous_run_id: str | None = None,
        messages: Sequence[Mapping[str, Any]] | None = None,
    ) -> RunRecord:
        """A new run, `running`. It is on the disk as soon as a later change of this server is.

        Args:
            run_id: a minted one.
            session_id: the actor of what it changes.
            kind: who answers.
            model: its name.
            prompt: what is asked; in the record, what PostgreSQL's `text` refuses (U+0000) is replaced by U+FFFD.
            process: this one: `run_processes.this_process()`.
            memory_store_ids: the stores that it works with; they need not be there.
            previous_run_id: the run whose conversation it goes on with.
            messages: the conversation before the prompt, where it is not what that run left.

        Raises:
            InvalidInputError: a value is illegal.
        """
        values = (
            *(self._contact.workspace_id, checks.storable("session_id", session_id), _minted(run_id)),
            *(checks.one_of("kind", kind, _KINDS), run_rows.plain_text(model), run_rows.plain_text(prompt)),
            None if messages is None else run_rows.json_text(list(messages)),
            [checks.storable("memory_store_ids", store) for store in memory_store_ids],
            *(checks.optional("previous_run_id", previous_run_id), checks.storable("process", process)),
        )

        def begin(connection: StoreConnection) -> RunRecord:
            return run_rows.run(connection.run(run_queries.RUN_BEGIN, *values), 0)

        return self._contact.change(begin, lambda _: None, memory_store_id="")  # twice, it makes one

    def append(
        self,
        run_id: str,
        events: Sequence[RunEvent],
        *,
        session_id: str,
        process: str,
        turns: int,
        usage: Usage,
        cost_usd: float | None,
        status: RunStatus = "running",
        stop_reason: str | None = None,
        error: str = "",
    ) -> bool:
        """The next events of a run, and how it stands after them: all of it, or nothing.

        While it runs, nobody waits for the disk: the next change of a memory store, which does, brings this along. An
        event that is there by its `n` already is left as it is.

        Returns:
            Whether somebody asked for a stop.

        Raises:
            RunTakenOverError: another process has it now: this one must not run a tool any more.
            RunNotFoundError: it was deleted.
            InvalidInputError: a value is illegal.
            DatabaseUnavailableError: the server was lost; the same may be appended again.
        """
        values = (
            *(session_id, run_id, process),
            *([str(event.n) for event in events], [event.type for event in events]),
            *([run_rows.json_text(event.data) for event in events], [event.at.isoformat() for event in events]),
            *(turns, usage.input_tokens, usage.output_tokens),
            *(usage.cache_read_input_tokens, usage.cache_creation_input_tokens),
            None if cost_usd is None else repr(float(cost_usd)),
            checks.one_of("status", status, _STATUSES),
            None if stop_reason is None else run_rows.plain_text(stop_reason),
            run_rows.plain_text(error),
        )

        def append(connection: StoreConnection) -> bool:
            return bool(rows.number(connection.run(run_queries.RUN_APPEND, *values).get_value(0, 0)))

        return self._contact.change(append, lambda _: None, memory_store_id="")

    def lives(self, run_id: str, *, session_id: str, process: str) -> bool:
        """Say that a run goes on, which has nothing to write for now; nothing where it has ended, or another has it.

        Returns:
            Whether somebody asked for a stop.

        Raises:
            DatabaseUnavailableError: the server was lost.
        """

        def live(connection: StoreConnection) -> bool:
            result = connection.run(run_queries.RUN_LIVES, session_id, run_id, process)
            return bool(result.ntuples and rows.number(result.get_value(0, 0)))

        return self._contact.change(live, lambda _: None, memory_store_id="")

    # -- by anybody --------------------------------------------------------------------------------

    def retrieve(self, run_id: str) -> RunRecord:
        """The run with this id.

        Raises:
            RunNotFoundError: there is none.
        """
        known_id = known(run_id)

        def read(connection: StoreConnection) -> RunRecord:
            return run_rows.run(_there(connection.run(run_queries.RUN_GET, known_id), known_id), 0)

        return self._contact.read(read)

    def list(
        self,
        *,
        memory_store_id: str | None = None,
        session_id: str | None = None,
        status: RunStatus | None = None,
        since: datetime | None = None,
        limit: int = 20,
        page: str | None = None,
    ) -> Page[RunRecord]:
        """The runs, newest first; all filters must hold.

        Args:
            memory_store_id: that work with this store.
            session_id: of this session.
            status: that stand so.
            since: that started then or later; one without a zone is UTC.
            limit: 1-100.
            page: the `next_page` of the page before.

        Raises:
            InvalidInputError: a value is illegal; InvalidPageError for the token.
        """
        filters = {
            "memory_store_id": checks.optional("memory_store_id", memory_store_id),
            "session_id": checks.optional("session_id", session_id),
            "status": None if status is None else checks.one_of("status", status, _STATUSES),
            "since": checks.moment("since", since),
        }
        limit, bound_to = checks.limit(limit), pages.binding("runs", **filters)
        place = pages.position(page, bound_to, int, str)
        beyond = None if place is None else (int(place[0]), str(place[1]))
        statement, values = run_queries.run_list(self._contact.workspace_id, filters, limit + 1, beyond)

        def read(connection: StoreConnection) -> builtins.list[RunRecord]:
            result = connection.run(statement, *values)
            return [run_rows.run(result, row) for row in range(result.ntuples)]

        return pages.cut(
            self._contact.read(read), limit, bound_to, lambda run: (statements.micros(run.started_at), run.id)
        )

    def events(self, run_id: str, after: int = 0, limit: int | None = None) -> builtins.list[RunEvent]:
        """What happened in a run, in order.

        Args:
            run_id: the run.
            after: only events with a higher `n`.
            limit: at most so many; None: all.

        Raises:
            RunNotFoundError: there is no such run.
        """
        known_id, most = known(run_id), _ALL if limit is None else checks.limit(limit, _ALL)

        def read(connection: StoreConnection) -> builtins.list[RunEvent]:
            result = connection.run(run_queries.RUN_EVENTS, known_id, after, most)
            if not result.ntuples:
                _there(connection.run(run_queries.RUN_MESSAGES, known_id), known_id)
            return [run_rows.event(result, row) for row in range(result.ntuples)]

        return self._contact.read(read)

    def messages(self, run_id: str) -> builtins.list[dict[str, Any]] | None:
        """The conversation that a run was begun with, before its prompt; None where it is what the run before left.

        Raises:
            RunNotFoundError: there is no such run.
        """
        known_id = known(run_id)

        def read(connection: StoreConnection) -> builtins.list[dict[str, Any]] | None:
            text = _there(connection.run(run_queries.RUN_MESSAGES, known_id), known_id).get_value(0, 0)
            return None if text is None else json.loads(text)

        return self._contact.read(read)

    def ask_stop(self, run_id: str) -> RunRecord:
        """Ask a run, wherever it runs, to stop: its process hears of it when it next writes. One that ended stays.

        Raises:
            RunNotFoundError: there is no such run.
        """
        known_id = known(run_id)

        def ask(connection: StoreConnection) -> RunRecord:
            return run_rows.run(connection.run(run_queries.RUN_ASK_STOP, known_id), 0)

        return self._contact.change(ask, lambda _: None, memory_store_id="")

    def take_over(self, run_id: str, process: str) -> RunRecord:
        """Give a run that has ended, or whose process is gone, to another process; the one before cannot write to it.

        Returns:
            The run, `lost` where it was `running`.

        Raises:
            RunNotFoundError: there is no such run.
            RunRunningError: its process lives, as far as can be seen from here.
        """
        known_id, taker = known(run_id), checks.storable("process", process)
        while True:
            holder = self._contact.read(lambda connection: _holder_of(connection, known_id))
            if holder.lives:
                raise RunRunningError(known_id, seen_s=holder.quiet_s)
            run = self._take(holder, taker)
            if run is not None:
                return run

    def mark_lost(self) -> builtins.list[str]:
        """Say of every run of the workspace whose process is gone that it is `lost`.

        Returns:
            Their ids.
        """

        def read(connection: StoreConnection) -> builtins.list[_Holder]:
            result = connection.run(run_queries.RUNNING, self._contact.workspace_id)
            return [_holder(result, row) for row in range(result.ntuples)]

        gone = [holder for holder in self._contact.read(read) if not holder.lives]
        lost: builtins.list[str] = []
        for holder in gone:
            with suppress(RunNotFoundError):  # deleted meanwhile
                if self._take(holder, _NOBODY) is not None:
                    lost.append(holder.run_id)
        return lost

    def _take(self, holder: _Holder, taker: str) -> RunRecord | None:
        """The run as it is then; None where it has gone on, or changed hands, since it was looked at."""
        values = (holder.run_id, holder.process, holder.seen_at, taker)

        def take(connection: StoreConnection) -> RunRecord | None:
            result = connection.run(run_queries.RUN_TAKE_OVER, *values)
            return run_rows.run(result, 0) if result.ntuples else None

        return self._contact.change(take, lambda _: None, memory_store_id="")

    def delete(self, run_id: str) -> None:
        """Forget a run: its prompt and all that happened in it. What it saved stays, and so does the cause of that.

        Raises:
            RunNotFoundError: there is no such run.
            RunRunningError: its process lives, as far as can be seen from here.
        """
        known_id = known(run_id)
        self.take_over(known_id, _NOBODY)

        def gone(connection: StoreConnection) -> bool | None:
            return None if connection.run(run_queries.RUN_GET, known_id).ntuples else True

        def delete(connection: StoreConnection) -> bool:
            connection.run(run_queries.RUN_DELETE, known_id)
            return True

        self._contact.change(delete, gone, memory_store_id="")

    def is_saved(self, memory_store_id: str, run_id: str, tool_use_id: str) -> bool:
        """Whether a tool call has changed a store. It waits for what is under way there, so that the answer is final.

        Raises:
            StoreNotFoundError: there is no such store any more, and nothing of what was saved.
        """
        values = (memory_stores.known(memory_store_id), run_id, tool_use_id)
        return self._contact.read(
            lambda connection: bool(rows.number(connection.run(run_queries.CALL_IS_SAVED, *values).get_value(0, 0)))
        )

    def of_version(self, memory_store_id: str, memory_version_id: str) -> builtins.list[str]:
        """The runs whose transcripts may hold the text of a version, redacted or not; newest first.

        They made it, or worked with its store while it was its memory's newest. What a person's `messages` brought
        into a run is not known. None for an unknown version.

        Raises:
            StoreNotFoundError: nothing can be a store of this id.
        """
        store_id = memory_stores.known(memory_store_id)

        def read(connection: StoreConnection) -> builtins.list[str]:
            result = connection.run(run_queries.RUNS_OF_VERSION, store_id, memory_version_id)
            return [rows.text(result.get_value(row, 0)) for row in range(result.ntuples)]

        return self._contact.read(read)


def known(run_id: object) -> str:
    """The id, if it can be one of a run.

    Raises:
        RunNotFoundError: nothing can have this id.
    """
    if isinstance(run_id, str) and ids.is_id("run", run_id):
        return run_id
    raise RunNotFoundError(run_id if isinstance(run_id, str) else repr(run_id))


def _minted(run_id: object) -> str:
    if isinstance(run_id, str) and ids.is_id("run", run_id):
        return run_id
    raise InvalidInputError(f"{run_id!r} is no id of a run", hint='`ids.mint("run")` makes one.')


def _there(result: pq.abc.PGresult, run_id: str) -> pq.abc.PGresult:
    if not result.ntuples:
        raise RunNotFoundError(run_id)
    return result


def _holder_of(connection: StoreConnection, run_id: str) -> _Holder:
    return _holder(_there(connection.run(run_queries.RUN_HOLDER, run_id), run_id), 0)


def _holder(result: pq.abc.PGresult, row: int) -> _Holder:
    get = result.get_value
    return _Holder(
        *(rows.text(get(row, column)) for column in range(3)),
        seen_at=rows.moment(get(row, 3)),
        quiet_s=rows.number(get(row, 4)) / _MICROSECONDS,
    )
