"""`mk.Agent`: a model with a memory, and its conversation."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from memkernel import config, present
from memkernel.agent import checks
from memkernel.agent.run import Run
from memkernel.errors import AgentError, InvalidInputError
from memkernel.handle.records import Records
from memkernel.models import MemoryVersion, RunKind

if TYPE_CHECKING:
    from memkernel.agent.conversation import Message
    from memkernel.agent.events import Sink
    from memkernel.agent.loop import Tool
    from memkernel.handle.store import Store


class Agent:
    """A model, its tools and one conversation, which goes on with each `run`.

    Attributes:
        model: who answers; `scripted` is the stand-in that needs no key, and every view of its answers says so.
        kind: who answers: a `live` model, a script in its place (`scripted`), or a recording (`recorded`).
        session_id: `sesn_…`; the actor of everything that the agent writes.
        messages: the conversation so far as the API's JSON; may be replaced.
        last_run: the newest run, also one that failed.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        store: Store | None = None,
        client: object | None = None,
        system: str | None = None,
        tools: Sequence[Tool] = (),
        max_turns: int = 50,
        max_tokens: int = 32_000,
        scope: str | None = None,
        session_id: str | None = None,
        profile: Literal["sdk", "docs"] = "sdk",
        on_existing: Literal["error", "overwrite"] = "error",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Make an agent; nothing is sent yet.

        Args:
            model: its name; without one MEMKERNEL_MODEL, then claude-sonnet-5-5. `scripted` asks no model. So does
                leaving both the model and the key out.
            store: the memory; without one the agent has none.
            client: an `anthropic.Anthropic`, or one of its family (Bedrock, Vertex, Foundry …).
            system: the system prompt. Memories never get into it: they reach the model as results of its tool alone.
            tools: functions with the SDK's `@beta_tool`, its toolsets, or declarations of server tools.
            max_turns: replies of the model a run at most.
            max_tokens: of one reply.
            scope: one path segment; the agent then sees only the tree below `/{scope}/` of the store.
            session_id: the session that it writes as, a `sesn_` id; one is minted where it is left out.
            profile: the memory tool's wording, the SDK's or the documentation's.
            on_existing: what its `create` does where a file is.
            options: further arguments of `client.beta.messages.tool_runner`, such as `{"thinking": {...}}`.

        Raises:
            UnsupportedClientError: the client is no Anthropic one, or an asynchronous one.
            NoApiKeyError: a model was asked for, and there is no key.
            InvalidInputError: a value of the wrong kind, an option that is unknown, or a tool that is none.
        """
        from memkernel.agent import clients, loop

        speaker = clients.choose(model, client, config.load())
        self.model = speaker.model
        self.kind: RunKind = speaker.kind
        self.session_id = checks.session_id(session_id)
        self.messages: list[Message] = []
        self.last_run: Run | None = None
        self._store = _checked_store(store)
        memory: list[object] = []
        if self._store is not None:
            memory.append(
                self._store.memory_tool(
                    session_id=self.session_id, scope=scope, profile=profile, on_existing=on_existing
                )
            )
        self._request = loop.checked_request(
            speaker.client,
            speaker.model,
            [*memory, *checks.each("tools", tools)],
            system=system,
            max_turns=max_turns,
            max_tokens=max_tokens,
            options=options,
        )
        self._running = threading.Lock()

    def __repr__(self) -> str:
        memory = f" on {self._store.slug}" if self._store else ""
        return f"<memkernel.Agent {self.model}{memory}, {len(self.messages)} messages>"

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
            InvalidInputError: the prompt is blank, or no text; or `messages` was replaced by what is no conversation.
            AgentError: this agent is running already, in another thread.
        """
        with ExitStack() as held:
            run = self._new_run(prompt, sink, held)
            self._begin(run, sink, show=show)
            self._play(run)
        return run

    def start(self, prompt: str, *, show: bool = True, sink: Sink | None = None) -> Run:
        """The same in a thread of its own: it returns at once, and the run goes on.

        `run.stop()` stops it, `run.wait()` or `await run` waits for its end.

        Raises:
            InvalidInputError: as `run` raises it.
            AgentError: this agent is running already.
        """
        taken = threading.Event()
        with ExitStack() as held:
            run = self._new_run(prompt, sink, held)
            self._begin(run, sink, show=show)

            def go_on() -> None:
                with suppress(Exception), held.pop_all():  # the run keeps its error: `wait` raises it
                    taken.set()
                    self._play(run)

            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(go_on,), name=f"memkernel-{run.id}", daemon=True).start()
            taken.wait()
        return run

    def _new_run(self, prompt: str, sink: Sink | None, held: ExitStack) -> Run:
        """A run that has this agent to itself, until `held` is left: it has ended then."""
        from memkernel.agent import loop

        if sink is not None and not callable(sink):
            raise InvalidInputError("the sink cannot be called", hint="It is a function that takes an event.")
        over = held.enter_context(self._alone())
        run = Run(
            checks.text("the prompt", prompt, hint="Say what the agent shall do."),
            model=self.model,
            kind=self.kind,
            messages=checks.messages(self.messages),
            changes=self._changes,
            store=self._store,
            max_turns=self._request.max_turns,
            over=over,
        )
        held.callback(self._go_on_after, run)
        held.enter_context(loop.ending(run))
        return run

    def _begin(self, run: Run, sink: Sink | None, *, show: bool) -> None:
        self.last_run = run
        if sink is not None:
            run.subscribe(sink)
        if show:
            _show(run)

    def _play(self, run: Run) -> None:
        from memkernel.agent import loop

        def saved(tool_use_id: str) -> bool:
            return bool(self._changes(run.id, tool_use_id))

        if run.status == "running":
            loop.play(run, replace(self._request, saved=saved))

    def _go_on_after(self, run: Run) -> None:
        self.messages = run.conversation

    def _changes(self, run_id: str, tool_use_id: str | None = None) -> Records[MemoryVersion]:
        if self._store is None:
            return Records([], kind=MemoryVersion)
        versions = self._store.connection.database.memory_versions
        made = versions.list_by_run(self._store.id, run_id, tool_use_id=tool_use_id)
        return Records(made, kind=MemoryVersion)

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

    def reset(self) -> None:
        """Forget the conversation; the memory stays."""
        self.messages = []


def _checked_store(store: object) -> Store | None:
    from memkernel.handle.store import Store

    if store is None or isinstance(store, Store):
        return store
    raise InvalidInputError(
        f"store is a memkernel.Store, not {type(store).__name__}",
        hint='Take one with mk.connect().store("Team notes"); a back end of your own goes into tools, as a MemoryTool.',
    )


def _show(run: Run) -> None:
    presenter = present.presenter_for(run)
    if presenter is not None:
        presenter(run)
        return
    from memkernel.agent.transcript import TextTranscript

    run.subscribe(TextTranscript(sys.stdout))
