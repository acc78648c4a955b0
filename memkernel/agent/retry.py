"""When a failed request to the model is tried again, and what a person is told of it. Pure.

The SDK's own rule, applied here because the SDK would retry unseen, and not at all once a reply has begun to stream:
a failed connection, 408, 409, 429 and 5xx; `x-should-retry` and `retry-after` are obeyed; else 0.5 s, doubled each
time up to 8 s, less a quarter at random.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import anthropic

from memkernel.errors import ModelRequestError

_FIRST_S, _LONGEST_S, _LONGEST_WISH_S = 0.5, 8.0, 3600.0
_RETRIED = (408, 409, 429)
# A stream that has begun has said 200; the error's type tells then.
_TRANSIENT_TYPES = ("overloaded_error", "api_error", "rate_limit_error", "timeout_error")
_HINTS = {
    400: "The API says what it refused; another request may pass.",
    401: "Check ANTHROPIC_API_KEY.",
    403: "This key may not use the model.",
    404: "Check the model's name.",
}
_LATER = "Run the agent again: it goes on where it stopped."


def is_transient(error: Exception) -> bool:
    """Whether the same request may pass a little later."""
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
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
    return 0.0


def sentence(error: Exception) -> str:
    """What happened, without a final full stop: `the API answered 529 (overloaded_error): Overloaded`."""
    if isinstance(error, anthropic.APIStatusError):
        kind = f" ({error.type})" if error.type else ""
        what = f"the API answered {error.status_code}" if error.status_code >= 400 else "the API broke off its reply"
        return f"{what}{kind}: {error.api_message or 'no reason given'}".rstrip(".")
    if isinstance(error, anthropic.APIConnectionError):
        return f"the API cannot be reached: {error.__cause__ or error}".rstrip(".")
    return f"the reply broke off while it streamed: {error}".rstrip(".")


def final(error: Exception) -> ModelRequestError:
    """What is raised once a request is not tried again."""
    status = error.status_code if isinstance(error, anthropic.APIStatusError) else None
    return ModelRequestError(
        sentence(error),
        hint=_HINTS.get(status or 0, _LATER),
        status_code=status,
        request_id=error.request_id if isinstance(error, anthropic.APIStatusError) else None,
    )
