"""The tool and the agent."""

from __future__ import annotations

from memkernel.errors.root import MemkernelError


class MemoryToolError(MemkernelError):
    """What the model is told: one sentence of the protocol (CONTRACT A.4), nothing of the machine."""


class AgentError(MemkernelError):
    """An agent cannot run, or its run was cut off."""


class UnsupportedClientError(AgentError):
    """The client given is no Anthropic client, or an asynchronous one; `use` names the one to take then."""

    def __init__(self, client: object, *, use: str = "") -> None:
        kind = client if isinstance(client, type) else type(client)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        why = "is asynchronous, and an agent's loop is not" if use else "is no Anthropic client"
        super().__init__(
            f"{name} {'is a class, no client' if isinstance(client, type) else why}",
            hint=f"Pass {use}(…) instead." if use else "Pass anthropic.Anthropic(…), or a client of its family.",
        )
        self.client = client


class NoApiKeyError(AgentError):
    """A model was asked for and there is no key."""

    def __init__(self) -> None:
        super().__init__(
            "ANTHROPIC_API_KEY is not set",
            hint='Set it. Without one, replay="demo" (`%agent --replay demo`) shows a recorded run, and '
            'model="scripted" answers a few sentences.',
        )


class RecordingError(AgentError):
    """There is no such recording, it cannot be written, or it does not fit the run that it is replayed in."""


class UnisolatedModelError(AgentError):
    """A live model would run code in a local sandbox, which does not isolate it from this machine."""

    def __init__(self) -> None:
        super().__init__(
            "a live model does not get a local sandbox: its code would not be isolated from this machine",
            hint='Take a Docker sandbox (`backend="docker"`), or allow it: `allow_unisolated=True`, '
            "`%%agent --allow-unisolated`.",
        )


class ModelRequestError(AgentError):
    """The model's API refused a request, or did not answer; `status_code` is None where there was no answer."""

    def __init__(
        self, message: str, *, hint: str, status_code: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status_code, self.request_id = status_code, request_id
