"""What an agent accepts at entry, before anything is sent: each check returns the value it let through."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from memkernel import ids
from memkernel.agent.conversation import Message
from memkernel.errors import InvalidInputError

# Ids that memkernel mints are narrower; a session of another system keeps its own.
_SESSION_ID: Final = re.compile(r"sesn_[A-Za-z0-9_-]{1,64}")
_OWN_ARGUMENTS: Final = frozenset(
    {"max_iterations", "max_tokens", "messages", "model", "stream", "system", "thread", "tools"}
)
_ROLES: Final = ("user", "assistant")


def session_id(value: object) -> str:
    """The id of a session (CONTRACT B.11); one is minted where there is none."""
    if value is None:
        return ids.mint("sesn")
    if not isinstance(value, str) or not _SESSION_ID.fullmatch(value):
        raise InvalidInputError(
            f"session_id is {value!r:.80}, which is no session's id",
            hint="It is sesn_ and up to 64 letters, digits, _ or -; left out, one is minted.",
        )
    return value


def text(what: str, value: object, *, hint: str = "") -> str:
    """A text that a model could read: not blank, no lone surrogate."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{what} is a text, not {_kind(value)}", hint=hint)
    if not value.strip():
        raise InvalidInputError(f"{what} is blank", hint=hint)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{what}'s character {error.start} is a lone surrogate") from None
    return value


def text_or_none(what: str, value: object, *, hint: str = "") -> str | None:
    """A text, or None where there is none."""
    return None if value is None else text(what, value, hint=hint)


def count(what: str, value: object) -> int:
    """A whole number of 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInputError(f"{what} is {value!r:.80}, not a whole number of 1 or more")
    return value


def flag(what: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidInputError(f"{what} is {value!r:.80}, not True or False")
    return value


def each(what: str, value: object) -> list[object]:
    """The members of a list, or of anything else that gives them one by one."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidInputError(f"{what} is a list, not {_kind(value)}")
    return list(cast("Iterable[object]", value))


def options(value: object, request: Callable[..., object]) -> dict[str, Any]:
    """Further arguments of a request: those that it has, and that the agent does not set itself."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"options is a dict, not {_kind(value)}")
    given = cast("Mapping[object, Any]", value)
    known = set(inspect.signature(request).parameters)
    for name in given:
        if name in _OWN_ARGUMENTS:
            raise InvalidInputError(f"options may not hold {name!r}", hint="The agent sets it itself.")
        if name not in known:
            raise InvalidInputError(
                f"options holds {name!r:.80}, which is no argument of tool_runner",
                hint="What the SDK does not know yet goes into its extra_body.",
            )
    # It would be sent in place of what the agent says, and counts by: another model, longer replies.
    for name in sent_besides(given):
        if name in _OWN_ARGUMENTS:
            raise InvalidInputError(f"options['extra_body'] may not hold {name!r}", hint="The agent sets it itself.")
    return {str(name): option for name, option in given.items()}


def sent_besides(given: Mapping[Any, Any]) -> Mapping[str, object]:
    """What options say of the request's body in the SDK's own way; it goes before its other arguments."""
    body: object = given.get("extra_body")
    return cast("Mapping[str, object]", body) if isinstance(body, Mapping) else {}


def messages(value: object) -> list[Message]:
    """A conversation as the API's JSON. Whether its calls have their answers is not looked at."""
    found = each("messages", value)
    for number, message in enumerate(found):
        if not _is_message(message):
            raise InvalidInputError(
                f"messages.{number} is no message", hint='A message is {"role": "user", "content": "…"}, plain JSON.'
            )
    return cast("list[Message]", found)


def _is_message(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    message = cast("dict[str, object]", value)
    content = message.get("content")
    if message.get("role") not in _ROLES:
        return False
    return isinstance(content, str) or (
        isinstance(content, list) and all(_is_block(block) for block in cast("list[object]", content))
    )


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and isinstance(cast("dict[str, object]", value).get("type"), str)


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
