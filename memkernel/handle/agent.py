"""`mk.Agent`: a model with a memory, a sandbox, or both, and its conversation."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from memkernel import config, present
from memkernel.agent import asking, checks, conversation
from memkernel.agent.approval import Approvals
from memkernel.agent.ledger import Ledger
from memkernel.agent.run import Run
from memkernel.errors import AgentError, InvalidInputError
from memkernel.handle import runs
from memkernel.handle.beginning import Beginning, checked_prompt, going_on, resuming
from memkernel.handle.equipment import Equipment
from memkernel.handle.records import Records
from memkernel.models import RunKind

if TYPE_CHECKING:
    from memkernel.agent.context import ContextPart
    from memkernel.agent.conversation import Message
    from memkernel.agent.events import Sink
    from memkernel.agent.request import Request, Tool
    from memkernel.handle.sandbox import Sandbox
    from memkernel.handle.store import Store

Approve = Literal["auto", "ask", "never"]


class Agent:
    """A model, its tools and one conversation, which goes on with each `run`.

    Attributes:
        model: who answers; `scripted` is the stand-in that needs no key, and every view of its answers says so.
        kind: who answers: a `live` model, a script in its place (`scripted`), or a recording (`recorded`).
        session_id: `sesn_…`; the actor of everything that the agent writes.
        limits: how far each of its runs may go.
        approvals: which calls wait for a person.
        messages: the conversation so far as the API's JSON; may be replaced.
        last_run: the newest run, also one that failed.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        store: Store | None = None,
        sandbox: Sandbox | None = None,
        client: object | None = None,
        system: str | None = None,
        tools: Sequence[Tool] = (),
        max_turns: int = 50,
        max_tokens: int = 32_000,
        max_total_tokens: int | None = None,
        max_cost_usd: float | None = None,
        max_time_s: float | None = None,
        approve: Approve | Mapping[str, Approve] = "auto",
        prices: Mapping[str, Sequence[float]] | None = None,
        clear_tool_results: bool | Mapping[str, Any] = False,
        compaction: bool | Mapping[str, Any] = False,
        cache: bool = True,
        scope: str | None = None,
        session_id: str | None = None,
        profile: Literal["sdk", "docs"] = "sdk",
        on_existing: Literal["error", "overwrite"] = "error",
        record: str | Path | None = None,
        replay: str | Path | None = None,
        speed: float = 1.0,
        allow_unisolated: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Make an agent; nothing is sent yet. Its sandbox is started where it was not.

        Args:
            model: its name; without one MEMKERNEL_MODEL, then claude-sonnet-5-5. `scripted` asks no model. So does
                leaving both the model and the key out.
            store: the memory, by its tool; without one the agent has none.
            sandbox: where its bash, read, write, edit, glob and grep work; what they write to its mounts is saved
                with each call.
            client: an `anthropic.Anthropic`, or one of its family (Bedrock, Vertex, Foundry …).
            system: the system prompt. Memories never get into it: they reach the model as results of its tools alone.
            tools: functions with the SDK's `@beta_tool`, its toolsets, or declarations of server tools.
            max_turns: replies of the model a run at most.
            max_tokens: of one reply.
            max_total_tokens: of a run, all its requests and replies.
            max_cost_usd: of a run, in US dollars.
            max_time_s: of a run, in seconds.
            approve: whether calls run (`auto`), wait for a person (`ask`) or are refused (`never`); or that a tool:
                `{"bash": "ask", "*": "auto"}`.
            prices: US dollars per million tokens, in and out, of models whose price is not known or another one:
                `{"model": (3, 15)}`.
            clear_tool_results: whether the API clears old results of tools once the conversation is long (never those
                of memory); or its settings.
            compaction: whether the API summarises a long conversation, where the model offers that; or its settings.
            cache: whether requests are marked for the API's cache.
            scope: one path segment; the agent then sees only the tree below `/{scope}/` of the store.
            session_id: the session that it writes as, a `sesn_` id; one is minted where it is left out. With a sandbox
                it is the sandbox's.
            profile: the memory tool's wording, the SDK's or the documentation's.
            on_existing: what its `create` does where a file is.
            record: a file to keep what the model says in, for `replay`.
            replay: the recording that answers in a model's place: its name, or a file. The tools really run.
            speed: of the replay; 2 is twice as fast as it was recorded.
            allow_unisolated: whether a live model may work in a local sandbox, which does not isolate it from this
                machine.
            options: further arguments of `client.beta.messages.tool_runner`, such as `{"thinking": {...}}`.

        Raises:
            UnsupportedClientError: the client is no Anthropic one, or an asynchronous one.
            NoApiKeyError: a model was asked for, and there is no key.
            UnisolatedModelError: a live model, and a sandbox that does not isolate.
            RecordingError: there is no such recording, or it cannot be written.
            InvalidInputError: a value of the wrong kind, an option that is unknown, or a tool that is none.
            SandboxError: the sandbox cannot be started.
        """
        from memkernel.agent import clients, limits, recorder, request

        settings = config.load()
        speaker = clients.choose(model, client, settings, replay=replay, speed=speed)
        self.model = speaker.model
        self.kind: RunKind = speaker.kind
        on_existing = speaker.recording.on_existing if speaker.recording else on_existing
        self._recorder = recorder.recorder(record, replay, on_existing=on_existing)
        self._with = Equipment(store, sandbox, tools, scope=scope, profile=profile, on_existing=on_existing)
        self._with.check_isolation(self.kind, allow_unisolated=allow_unisolated)
        asked = request.checked(speaker, system=system, max_tokens=max_tokens, options=options, cache=cache)
        self._price = request.price(asked, self.kind, prices, settings.prices)
        self.limits = limits.checked(
            model=self.model,
            price=self._price,
            options=asked.options,
            max_turns=max_turns,
            max_total_tokens=max_total_tokens,
            max_cost_usd=max_cost_usd,
            max_time_s=max_time_s,
        )
        self.session_id = self._with.start(checks.session_id(session_id))
        asked = self._equipped(self._with.introduced(asked))
        self.approvals = Approvals(request.policy(asked, approve))
        self._request = request.shortened(asked, clear_tool_results, compaction)
        self.messages: list[Message] = []
        self.last_run: Run | None = None
        self._running = threading.Lock()

    def _equipped(self, asked: Request) -> Request:
        from memkernel.agent import request

        return request.with_tools(asked, self._with.tools(self.session_id))

    def __repr__(self) -> str:
        memory = f" on {self._with.store.slug}" if self._with.store else ""
        box = f" in {self._with.sandbox.name}" if self._with.sandbox else ""
        return f"<memkernel.Agent {self.model}{memory}{box}, {len(self.messages)} messages>"

    # -- asking ------------------------------------------------------------------------------------

    def run(self, prompt: str, *, show: bool = True, sink: Sink | None = None) -> Run:
        """Ask, and let the model use its tools until it is done; an interrupt stops it cleanly.

        Args:
            prompt: what to ask; it goes on with the conversation so far.
            show: show what happens as it happens: in the notebook, or as text.
            sink: is handed every event (`memkernel.agent.events`) as well.

        Returns:
            The run; `status` says how it ended. One that was stopped, refused or cut off is returned, too.

        Raises:
            ModelRequestError: the API refused, or failed more often than the client's `max_retries`.
            DatabaseUnavailableError: the memory was lost; the conversation can go on once it is back.
            SyncError, SandboxError: the sandbox's files cannot be saved, or it is gone.
            InvalidInputError: the prompt is blank, or no text; or `messages` was replaced by what is no conversation.
            AgentError: this agent is running already, in another thread.
        """
        return self._do(lambda: self._next(prompt), sink, show=show, wait=True)

    def start(self, prompt: str, *, show: bool = True, sink: Sink | None = None) -> Run:
        """The same in a thread of its own: it returns at once, and the run goes on.

        `run.stop()` stops it, `run.wait()` or `await run` waits for its end.

        Raises:
            InvalidInputError: as `run` raises it.
            AgentError: this agent is running already.
        """
        return self._do(lambda: self._next(prompt), sink, show=show, wait=False)

    def resume(
        self, run_id: str, prompt: str | None = None, *, show: bool = True, sink: Sink | None = None, wait: bool = True
    ) -> Run:
        """Go on with the conversation of an earlier run, of any kernel; it takes the place of this agent's own.

        A call that was under way when that run's process ended is answered first: the model is told whether its change
        was saved. Without a sandbox the agent writes as that run's session from then on.

        Args:
            run_id: the earlier run.
            prompt: what to ask; without one the model answers what it owes an answer to.
            show: as `run`.
            sink: as `run`.
            wait: False returns at once, as `start` does.

        Raises:
            RunNotFoundError: there is no such run.
            RunRunningError: it is alive.
            InvalidInputError: this agent has neither a store nor a sandbox; or no answer is due and there is no prompt.
            AgentError: the conversation is gone, since an earlier run of it was deleted; or as `run`.
        """
        return self._do(lambda: self._resumed(run_id, prompt), sink, show=show, wait=wait)

    def reset(self) -> None:
        """Forget the conversation, and what was approved of in it; the memory stays."""
        self.messages = []
        self.approvals.forget()

    # -- looking -----------------------------------------------------------------------------------

    def preview(self, prompt: str) -> dict[str, Any]:
        """The first request of a run, as JSON; nothing is sent.

        Raises:
            InvalidInputError: as `run` raises it.
        """
        from memkernel.agent import arguments

        return arguments.as_body(arguments.arguments(self._request, self._asked(prompt)))

    def context(self, prompt: str | None = None) -> Records[ContextPart]:
        """How many tokens the next request would have, part by part, as the API counts them.

        Args:
            prompt: what would be asked; without one the conversation so far is counted.

        Raises:
            ModelRequestError: the API does not count.
            InvalidInputError: as `run` raises it.
        """
        from memkernel.agent import arguments, context

        messages = checks.messages(self.messages) if prompt is None else self._asked(prompt)
        counted = context.parts(self._request.client, arguments.arguments(self._request, messages))
        return Records(counted, kind=context.ContextPart)

    def _asked(self, prompt: str) -> list[Message]:
        return conversation.asked(checks.messages(self.messages), checked_prompt(prompt))

    # -- a run ---------------------------------------------------------------------------------------

    def _do(self, begin: Callable[[], Beginning], sink: Sink | None, *, show: bool, wait: bool) -> Run:
        with ExitStack() as held:
            run = self._new_run(begin, sink, held)
            self.last_run = run
            run.approvals.asker = asking.ask if show else None
            if show:
                _show(run)
            if wait:
                self._play(run)
            else:
                self._play_apart(run, held)
        return run

    def _play_apart(self, run: Run, held: ExitStack) -> None:
        taken = threading.Event()

        def go_on() -> None:
            with suppress(Exception), held.pop_all():  # the run keeps its error: `wait` raises it
                taken.set()
                self._play(run)

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(go_on,), name=f"memkernel-{run.id}", daemon=True).start()
        taken.wait()

    def _new_run(self, begin: Callable[[], Beginning], sink: Sink | None, held: ExitStack) -> Run:
        """A run that has this agent to itself, until `held` is left: it has ended then."""
        from memkernel.agent import loop

        if sink is not None and not callable(sink):
            raise InvalidInputError("the sink cannot be called", hint="It is a function that takes an event.")
        over = held.enter_context(self._alone())
        runs.settle()
        beginning = begin()
        run = Run(
            beginning.prompt,
            model=self.model,
            kind=self.kind,
            messages=beginning.messages,
            session_id=self.session_id,
            previous_run_id=beginning.previous_run_id,
            changes=partial(runs.changes_of, self._with.stores),
            stores=self._with.stores,
            sandbox=self._with.sandbox,
            limits=self.limits,
            price=self._price,
            approvals=self.approvals,
            over=over,
        )
        if self._with.database is not None:
            run.ledger = Ledger(self._with.database.runs, run, beginning.kept)
        for subscriber in (self._recorder, sink):
            if subscriber is not None:
                run.subscribe(subscriber)
        held.callback(self._go_on_after, run)
        held.enter_context(runs.going(run))
        held.enter_context(loop.ending(run))
        return run

    def _next(self, prompt: str) -> Beginning:
        return going_on(prompt, self.messages, self.last_run, self._with.database)

    def _resumed(self, run_id: str, prompt: str | None) -> Beginning:
        beginning = resuming(run_id, prompt, self._with)
        if self._with.sandbox is None and beginning.session_id not in (None, self.session_id):
            self.session_id = beginning.session_id
            self._request = self._equipped(self._request)
        self.approvals.forget()
        return beginning

    def _play(self, run: Run) -> None:
        from memkernel.agent import loop

        if run.status != "running":
            return
        saved = partial(self._with.is_saved, run.memory_store_ids, run.id)
        try:
            loop.play(run, replace(self._request, saved=saved, reading=self._with.reading))
        finally:
            if self._recorder is not None:
                self._recorder.save()
        if run.ledger is not None:
            run.ledger.raise_lost()

    def _go_on_after(self, run: Run) -> None:
        self.messages = run.conversation

    @contextmanager
    def _alone(self) -> Generator[threading.Event]:
        """No other run begins in the meantime; the event is set once one may."""
        if not self._running.acquire(blocking=False):
            raise AgentError("this agent is running already", hint="Wait for it, or make another agent.")
        over = threading.Event()
        try:
            yield over
        finally:
            self._running.release()
            over.set()


def _show(run: Run) -> None:
    presenter = present.presenter_for(run)
    if presenter is not None:
        presenter(run)
        return
    from memkernel.agent.transcript import TextTranscript

    run.subscribe(TextTranscript(sys.stdout))
