"""What the record layer accepts (CONTRACT B.3, B.5, B.7, B.8, B.10): each check returns the value it let through."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from memkernel import content as contents
from memkernel import paths
from memkernel.errors import InvalidContentError, InvalidInputError, InvalidPathError
from memkernel.models import (
    ABSENT,
    Absent,
    Actor,
    AgentReference,
    AttachmentParams,
    BudgetLimit,
    Cause,
    SessionStatus,
    View,
)

MAX_NAME_CHARS: Final = 255
MAX_DESCRIPTION_CHARS: Final = 1_024
MAX_METADATA_PAIRS: Final = 16
MAX_METADATA_KEY_CHARS: Final = 64
MAX_METADATA_VALUE_CHARS: Final = 512
MAX_TITLE_CHARS: Final = 255
MAX_INSTRUCTIONS_CHARS: Final = 4_096
MAX_ID_CHARS: Final = 255
MAX_VERSION: Final = 2**31 - 1
MAX_PAGE: Final = 100
MAX_FULL_PAGE: Final = 20
MAX_RESOURCES_PAGE: Final = 1_000
STATUSES: Final = ("rescheduling", "running", "idle", "terminated")
MIN_RETENTION: Final = timedelta(days=30)

_WORKSPACE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_AMOUNT: Final = re.compile(r"0|[1-9][0-9]{0,17}")
_AGES: Final = timedelta(days=36_525)  # no version is as old; beyond the calendar PostgreSQL refuses
_ACTOR_TYPES: Final = ("api_actor", "session_actor", "user_actor", "service_account_actor")


def name(value: object) -> str:
    """A store's name: 1-255 characters, no control characters."""
    return _named("name", value, MAX_NAME_CHARS)


def _named(field: str, value: object, most: int) -> str:
    text = storable(field, value)
    if not 1 <= len(text) <= most:
        raise InvalidInputError(f"{field} has {len(text):,} characters; it must have 1 to {most}")
    for character in text:
        if unicodedata.category(character) == "Cc":
            raise InvalidInputError(f"{field} holds the control character U+{ord(character):04X}")
    return text


def description(value: object) -> str:
    """A store's description: at most 1,024 characters."""
    text = storable("description", value)
    if len(text) > MAX_DESCRIPTION_CHARS:
        raise InvalidInputError(f"description has {len(text):,} characters, the limit is {MAX_DESCRIPTION_CHARS:,}")
    return text


def metadata(value: object) -> dict[str, str]:
    """The metadata of a store or session: at most 16 pairs of strings."""
    pairs = metadata_patch(value)
    if None in pairs.values():
        raise InvalidInputError("metadata: a value is null; values are strings")
    if len(pairs) > MAX_METADATA_PAIRS:
        raise InvalidInputError(f"metadata has {len(pairs)} pairs, the limit is {MAX_METADATA_PAIRS}")
    return cast(dict[str, str], pairs)


def metadata_patch(value: object) -> dict[str, str | None]:
    """Changes to metadata: a string sets, None removes."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"metadata is a mapping of strings, not {_kind(value)}")
    pairs = cast(Mapping[object, object], value)
    return {_metadata_key(key): _metadata_value(item) for key, item in pairs.items()}


def _metadata_key(value: object) -> str:
    key = storable("metadata: a key", value)
    if not 1 <= len(key) <= MAX_METADATA_KEY_CHARS:
        raise InvalidInputError(f"metadata: a key has {len(key):,} characters; keys have 1 to {MAX_METADATA_KEY_CHARS}")
    return key


def _metadata_value(value: object) -> str | None:
    if value is None:
        return None
    text = storable("metadata: a value", value)
    if len(text) > MAX_METADATA_VALUE_CHARS:
        raise InvalidInputError(
            f"metadata: a value has {len(text):,} characters, the limit is {MAX_METADATA_VALUE_CHARS}"
        )
    return text


def workspace_id(value: object) -> str:
    """A workspace's id: 1-64 letters, digits, `_`, `-` and `.`."""
    if not isinstance(value, str) or not _WORKSPACE.fullmatch(value):
        raise InvalidInputError(
            f"{value!r} is no workspace id", hint="It has 1 to 64 of the letters a to z and A to Z, digits, _ - and ."
        )
    return value


def storable(what: str, value: object) -> str:
    """A text that PostgreSQL can hold."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{what} is a string, not {_kind(value)}")
    if "\0" in value:
        raise InvalidInputError(f"{what} holds U+0000")
    if not is_storable(value):
        raise InvalidInputError(f"{what} holds a lone surrogate")
    return value


def optional(what: str, value: object) -> str | None:
    """A text that PostgreSQL can hold, or None."""
    return None if value is None else storable(what, value)


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold the text: no U+0000, no lone surrogate."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__


def limit(value: object, most: int = MAX_PAGE) -> int:
    """A page's size: 1-100, or up to another limit."""
    return _whole("limit", value, most)


def _whole(field: str, value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInputError(f"{field} is a whole number, not {value!r}")
    if not 1 <= value <= most:
        raise InvalidInputError(f"{field} is {value}; it must be 1 to {most}")
    return value


def page_size(value: object, *, full: bool) -> int:
    """A page's size; one with contents holds at most 20 items (CONTRACT 0.3, row 2)."""
    return min(limit(value), MAX_FULL_PAGE) if full else limit(value)


def depth(value: object) -> int:
    """0 or 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in (0, 1):
        raise InvalidInputError(f"depth is {value!r}; it must be 0 or 1")
    return value


def path(value: object) -> str:
    """A legal memory path."""
    if not isinstance(value, str):
        raise InvalidPathError(repr(value), "it is not a string")
    return paths.check_path(value)


def tree(value: object) -> str:
    """A memory or a directory as the SQL of trees wants it: without a last slash, and `""` for the root."""
    if value == "/":
        return ""
    return path(value.removesuffix("/") if isinstance(value, str) else value)


def prefix(value: object) -> str:
    """`/`, or a legal path followed by `/`."""
    if not isinstance(value, str):
        raise InvalidPathError(repr(value), "it is not a string")
    return paths.check_prefix(value)


def view(value: object) -> View:
    """`basic` or `full`."""
    return cast(View, one_of("view", value, ("basic", "full")))


def one_of(field: str, value: object, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in choices:
        raise InvalidInputError(f"{field} is {value!r}; it must be {', '.join(choices)}")
    return cast(str, value)


def sha256(field: str, value: object) -> bytes:
    """The hash that these 64 lowercase hex digits write."""
    text = storable(field, value)
    if not _SHA256.fullmatch(text):
        raise InvalidInputError(f"{field} is {text!r}; it must be 64 lowercase hex digits")
    return bytes.fromhex(text)


def optional_sha256(field: str, value: object) -> bytes | None:
    """A hash, or None."""
    return None if value is None else sha256(field, value)


def content(value: object, limit_bytes: int) -> bytes:
    """A content as bytes of UTF-8."""
    if not isinstance(value, str | bytes):
        raise InvalidContentError(f"the content is text or bytes, not {_kind(value)}")
    return contents.encode(value, limit_bytes)


def expectation(value: object) -> tuple[bytes | None, bool]:
    """An `expect=`: the hash that is expected, and whether no memory is expected."""
    if value is None or isinstance(value, Absent):
        return None, value is ABSENT
    return sha256("expect", value), False


def actor(value: object) -> tuple[str, str]:
    """An actor's type and id."""
    if not isinstance(value, Actor):
        raise InvalidInputError(f"actor is an Actor, not {_kind(value)}")
    ident = storable("actor: the id", value.id)
    if not ident:
        raise InvalidInputError("actor: the id is empty")
    return one_of("actor: the type", value.type, _ACTOR_TYPES), ident


def redactor(value: object) -> tuple[str, str]:
    """An actor that may redact: no session (CONTRACT B.11)."""
    kind, ident = actor(value)
    if kind == "session_actor":
        raise InvalidInputError("actor: a session cannot redact")
    return kind, ident


def ordinal(value: object) -> int:
    """A version's number in its lineage, or how far before the head."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < abs(value) < 2**31:
        raise InvalidInputError(f"ordinal is {value!r}; versions are counted from 1, or back from the head from -1")
    return value


def retention(value: object) -> timedelta:
    """How old a version is that prune may take: 30 days or more (CONTRACT B.10)."""
    if not isinstance(value, timedelta):
        raise InvalidInputError(f"older_than is a timedelta, not {_kind(value)}")
    if value < MIN_RETENTION:
        raise InvalidInputError(
            "older_than: the history of the last 30 days is not pruned", hint="Ask for 30 days or more."
        )
    return min(value, _AGES)


def keep(value: object) -> int:
    """How many versions a live memory keeps: at least its head."""
    return _whole("keep", value, 2**31 - 1)


def cause(value: object) -> tuple[str | None, str | None]:
    """A cause's run and tool call; None for both where there is none."""
    if value is None:
        return None, None
    if not isinstance(value, Cause):
        raise InvalidInputError(f"cause is a Cause, not {_kind(value)}")
    return storable("cause: run_id", value.run_id), storable("cause: tool_use_id", value.tool_use_id)


def author(actor_value: object, cause_value: object) -> tuple[str, str, str | None, str | None]:
    """Who changes something and why, as the functions of migrations/ take it: type, id, run, tool call."""
    return *actor(actor_value), *cause(cause_value)


def moment(field: str, value: object) -> datetime | None:
    """A bound in time, or None; one without a zone is UTC (CONTRACT B.1)."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidInputError(f"{field} is a datetime, not {_kind(value)}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


# -- sessions (CONTRACT C.1, C.2) ------------------------------------------------------------------


def title(value: object) -> str:
    """A session's title: at most 255 characters, no control characters; `""` is none."""
    return "" if value == "" else _named("title", value, MAX_TITLE_CHARS)


def status(value: object) -> SessionStatus:
    """One of a session's states."""
    return cast(SessionStatus, one_of("status", value, STATUSES))


def statuses(value: object) -> list[str] | None:
    """The states that a listing is asked for; None: all."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInputError(f"statuses is a list of states, not {_kind(value)}")
    return sorted({status(each) for each in cast(Iterable[object], value)})


def attachments(value: object, limit_count: int) -> list[AttachmentParams]:
    """What a new session shall attach: no store twice, no more than the limit."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidInputError(f"resources is a list of AttachmentParams, not {_kind(cast(object, value))}")
    items = list(cast(Iterable[object], value))
    if len(items) > limit_count:
        raise InvalidInputError(f"resources cannot contain more than {limit_count} memory_store entries")
    checked: dict[str, AttachmentParams] = {}
    for index, item in enumerate(items):
        params = _attachment(f"resources[{index}]", item)
        if params.memory_store_id in checked:
            raise InvalidInputError(f"resources[{index}]: memory store {params.memory_store_id} is attached twice")
        checked[params.memory_store_id] = params
    return list(checked.values())


def _attachment(field: str, value: object) -> AttachmentParams:
    if not isinstance(value, AttachmentParams):
        raise InvalidInputError(f"{field} is an AttachmentParams, not {_kind(value)}")
    store_id, text = storable(f"{field}: memory_store_id", value.memory_store_id), value.instructions
    access = "read_write" if value.access is None else value.access
    one_of(f"{field}: access", access, ("read_write", "read_only"))
    if text is not None and len(storable(f"{field}: instructions", text)) > MAX_INSTRUCTIONS_CHARS:
        raise InvalidInputError(
            f"{field}: instructions has {len(text):,} characters, the limit is {MAX_INSTRUCTIONS_CHARS:,}"
        )
    return AttachmentParams(store_id, access, text)


def agent(value: object) -> AgentReference | None:
    """The agent that a session is asked for: an id, or that with a version; None: none."""
    if value is None:
        return None
    reference = AgentReference(value) if isinstance(value, str) else value
    if not isinstance(reference, AgentReference):
        raise InvalidInputError(f"agent is an id or an AgentReference, not {_kind(value)}")
    return AgentReference(_named("agent.id", reference.id, MAX_ID_CHARS), version("agent.version", reference.version))


def version(field: str, value: object) -> int:
    """The number of an agent's version: 1, 2, 3 …"""
    return _whole(field, value, MAX_VERSION)


def environment_id(value: object) -> str | None:
    """The environment that a session is asked for; None: none."""
    return None if value is None else _named("environment_id", value, MAX_ID_CHARS)


def vault_ids(value: object) -> list[str]:
    """The vaults that a session is asked for."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidInputError(f"vault_ids is a list of ids, not {_kind(cast(object, value))}")
    found = cast(Iterable[object], value)
    return [_named(f"vault_ids[{index}]", each, MAX_ID_CHARS) for index, each in enumerate(found)]


def budget(value: object) -> BudgetLimit | None:
    """A session's budget; None: none."""
    if value is None:
        return None
    if not isinstance(value, BudgetLimit):
        raise InvalidInputError(f"budget is a BudgetLimit, not {_kind(value)}")
    if not _AMOUNT.fullmatch(storable("budget: amount", value.amount)):
        raise InvalidInputError(f"budget: amount is {value.amount!r}; it is a whole number of cents, as text")
    one_of("budget: currency", value.currency, ("USD",))
    return value
