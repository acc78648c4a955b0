"""When a failed request to the model is tried again, and what a person is told of it. Pure.

The SDK's own rule, applied here because the SDK would retry unseen, and not at all once a reply has begun to stream:
a failed connection, 408, 409, 429 and 5xx; `x-should-retry` and `retry-after` are obeyed; else 0.5 s, doubled each
time up to 8 s, less a quarter at random.
"""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import anthropic

from memkernel.agent.script import RECORDING_ERROR
from memkernel.errors import AgentError, ModelRequestError, RecordingError

_FIRST_S, _LONGEST_S = 0.5, 8.0
_LONGEST_WISH_S = 4_294_967.0  # the SDK's: a platform's sleep may not take more
_RETRIED = (408, 409, 429)
# A stream that has begun has said 200; the error's type tells then.
_TRANSIENT_TYPES = (
    *("overloaded_error", "api_error", "rate_limit_error", "timeout_error"),
    # The words of Amazon Bedrock.
    *("internalServerException", "modelStreamErrorException", "modelTimeoutException"),
    *("serviceUnavailableException", "throttlingException"),
)
_HINTS = {
    400: "The API says what it refused; another request may pass.",
    401: "Check ANTHROPIC_API_KEY, or what the client that was given identifies itself with.",
    403: "This key may not use the model.",
    404: "Check the model's name, and the client's base_url if it has one.",
    413: "The conversation is too long: begin a new one with reset(), or let old results be cleared.",
}
_RECORDED = (
    'Replay it as it was recorded: the same prompt, memory and tools (`--store`, `--sandbox`). Or model="scripted".'
)
_LATER = "Run the agent again: it goes on where it stopped."


def is_transient(error: Exception) -> bool:
    """Whether the same request may pass a little later."""
    if isinstance(error, anthropic.RetryableError):
        return True
    if not isinstance(error, anthropic.APIStatusError):
        # What else breaks a reply while it streams: a lost connection, or half a JSON text as a tool's input.
        return isinstance(error, anthropic.APIConnectionError) or not isinstance(error, anthropic.AnthropicError)
    asked = error.response.headers.get("x-should-retry")
    if asked in ("true", "false"):
        return asked == "true"
    return error.status_code in _RETRIED or error.status_code >= 500 or error.type in _TRANSIENT_TYPES


def delay_s(error: Exception, failures: int) -> float:
    """How long to wait after so many failures in a row (1 or more)."""
    wish = _wish_s(error.response.headers) if isinstance(error, anthropic.APIStatusError) else 0.0
    if wish > 0:
        return min(wish, _LONGEST_WISH_S)
    return min(_FIRST_S * 2 ** min(failures - 1, 10), _LONGEST_S) * (1 - 0.25 * random.random())


def _wish_s(headers: Mapping[str, str]) -> float:
    """How long the server asks to wait; 0 where it does not, or in no words that are known."""
    for name, seconds in _WISHES:
        try:
            return seconds(headers[name])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return 0.0


def _until(date: str) -> float:
    return email.utils.parsedate_to_datetime(date).timestamp() - time.time()


_WISHES: Final[list[tuple[str, Callable[[str], float]]]] = [
    ("retry-after-ms", lambda text: float(text) / 1000),
    ("retry-after", float),
    ("retry-after", _until),
]


def sentence(error: Exception) -> str:
    """What happened, without a final full stop: `the API answered 529 (overloaded_error): Overloaded`."""
    if isinstance(error, anthropic.APIStatusError):
        kind = f" ({error.type})" if error.type else ""
        what = f"the API answered {error.status_code}" if error.status_code >= 400 else "the API broke off its reply"
        return f"{what}{kind}: {_reason(error)}".rstrip(".")
    if isinstance(error, anthropic.APIConnectionError):
        return f"the API cannot be reached: {error.__cause__ or error}".rstrip(".")
    if isinstance(error, anthropic.AnthropicError):
        return f"the request could not be sent: {error}".rstrip(".")
    return f"the reply broke off while it streamed: {error}".rstrip(".")


def _reason(error: anthropic.APIStatusError) -> str:
    """The API's words; those of another platform, or of a proxy in between, where it is them who answered."""
    if error.api_message:
        return error.api_message
    body: Any = error.body
    if isinstance(body, dict):
        return str(cast("dict[str, object]", body).get("message") or "no reason given")
    return error.response.reason_phrase if error.status_code >= 400 else "no reason given"


def final(error: Exception) -> AgentError:
    """What is raised once a request is not tried again."""
    if not isinstance(error, anthropic.APIStatusError):
        return ModelRequestError(sentence(error), hint=_LATER)
    if str(error.type) == RECORDING_ERROR:
        return RecordingError(error.api_message or "the recording has no reply", hint=_RECORDED)
    hint = _HINTS.get(error.status_code, _LATER)
    return ModelRequestError(sentence(error), hint=hint, status_code=error.status_code, request_id=error.request_id)


def not_sent(error: Exception) -> ModelRequestError:
    """What is raised where the client itself failed: it found no credentials, or misses a package to sign with."""
    what = str(error) or type(error).__name__
    return ModelRequestError(
        f"the request could not be sent: {what}".rstrip("."), hint="The client says what it needs."
    )
