"""What keeps a long conversation going, by options of the API: old results cleared, the rest compacted, marks for its
cache. Pure.

Clearing leaves calls of the memory tool alone: what was remembered must not be forgotten again. A beta header is sent
only with what needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from memkernel.agent import conversation
from memkernel.agent.conversation import Message
from memkernel.errors import InvalidInputError

Options = Mapping[str, Any]
Edit = Mapping[str, Any]

_MEMORY: Final = "memory"
_CLEARING: Final = "clear_tool_uses_20250919"
_COMPACTION: Final = "compact_20260112"
_BETAS: Final = {
    "clear_thinking_20251015": "context-management-2025-06-27",
    _CLEARING: "context-management-2025-06-27",
    _COMPACTION: "compact-2026-01-12",
}
_FIELDS: Final = {
    "clear_tool_results": ("clear_at_least", "clear_tool_inputs", "exclude_tools", "keep", "trigger"),
    "compaction": ("instructions", "trigger"),
}
_UNITS: Final = {"trigger": "input_tokens", "clear_at_least": "input_tokens", "keep": "tool_uses"}
"""What a bare number counts in these fields."""


def checked(
    clear_tool_results: object, compaction: object, options: Options, tool_names: Iterable[str] = ()
) -> dict[str, Any]:
    """The options of a request, with the edits that a person asked for.

    Args:
        clear_tool_results: whether old results of tools are cleared once the conversation is long; or a dict with
            fields of the API's `clear_tool_uses_20250919`: `trigger` and `clear_at_least` (tokens of input), `keep`
            (calls), `exclude_tools`, `clear_tool_inputs`.
        compaction: whether a long conversation is summarised; or a dict with `trigger` and `instructions`.
        options: a person's further arguments of the request; edits among them stay, and go first.
        tool_names: the agent's tools.

    Raises:
        InvalidInputError: a value or a field that is none, or the same edit in both places.
    """
    edits = _given_edits(options)
    cleared = _fields("clear_tool_results", clear_tool_results)
    if cleared is not None:
        kept = list(dict.fromkeys([*_kept_tools(cleared), *(name for name in tool_names if name == _MEMORY)]))
        edits.append({"type": _CLEARING, **cleared, **({"exclude_tools": kept} if kept else {})})
    compacted = _fields("compaction", compaction)
    if compacted is not None:
        edits.append({"type": _COMPACTION, **compacted})
    if cleared is None and compacted is None:
        return dict(options)
    _refuse_doubles(edits)
    return _with_betas({**options, "context_management": {**_management(options), "edits": edits}}, _needed(edits))


def _management(options: Options) -> Mapping[str, Any]:
    given = options.get("context_management")
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


def _given_edits(options: Options) -> list[Edit]:
    given = _management(options).get("edits") or ()
    if not isinstance(given, list | tuple) or not all(
        isinstance(edit, Mapping) for edit in cast("list[object]", given)
    ):
        raise InvalidInputError("options['context_management']['edits'] is no list of edits")
    return list(cast("Sequence[Edit]", given))


def _fields(what: str, given: object) -> dict[str, Any] | None:
    """An edit's own fields; None where it is not wanted."""
    if given in (False, None):
        return None
    if given is True:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"{what} is {given!r:.80}", hint="It is True, False, or a dict of the edit's fields.")
    fields = cast("Mapping[object, Any]", given)
    for name in fields:
        if name not in _FIELDS[what]:
            known = ", ".join(_FIELDS[what])
            raise InvalidInputError(f"{what} has no field {name!r:.80}", hint=f"Its fields: {known}.")
    return {str(name): _counted(what, str(name), value) for name, value in fields.items()}


def _counted(what: str, field: str, value: object) -> object:
    if field not in _UNITS or isinstance(value, dict):
        return cast("object", value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        unit = _UNITS[field].replace("_", " ")
        raise InvalidInputError(f"{what}[{field!r}] is {value!r:.80}", hint=f"It is a number of {unit}.")
    return {"type": _UNITS[field], "value": value}


def _kept_tools(cleared: Mapping[str, Any]) -> list[str]:
    names = cleared.get("exclude_tools") or ()
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError("clear_tool_results['exclude_tools'] is no list of names of tools")
    return list(names)


def _refuse_doubles(edits: Sequence[Edit]) -> None:
    types = [edit.get("type") for edit in edits]
    twice = next((one for one in types if types.count(one) > 1), None)
    if twice is not None:
        raise InvalidInputError(
            f"{twice} is asked for twice", hint="Leave it out of options, or leave the agent's own argument out."
        )


# -- what goes out with a request ------------------------------------------------------------------


def for_request(options: Options, messages: Sequence[Message]) -> dict[str, Any]:
    """The options of one request: a conversation that was compacted before needs its header also afterwards."""
    types = {block["type"] for message in messages for block in conversation.blocks(message)}
    return _with_betas(options, [_BETAS[_COMPACTION]] if "compaction" in types else [])


def shortens(options: Options) -> bool:
    """Whether the API may send the model less than the whole conversation."""
    return bool(_given_edits(options))


def without_compaction(options: Options) -> dict[str, Any]:
    """The same options without compaction, for a model that does not offer it."""
    edits = [edit for edit in _given_edits(options) if edit.get("type") != _COMPACTION]
    dropped = {"context_management"} if not edits else set[str]()
    management = {} if dropped else {"context_management": {**_management(options), "edits": edits}}
    betas = [beta for beta in options.get("betas") or () if beta != _BETAS[_COMPACTION]]
    rest = {name: value for name, value in options.items() if name not in ("context_management", "betas")}
    return {**rest, **management, **({"betas": betas} if betas else {})}


def compaction_refused(error: Exception, options: Options) -> str | None:
    """What to say where the API refused a request for its compaction alone; None where that is not why."""
    asked = _COMPACTION in [edit.get("type") for edit in _given_edits(options)]
    said = str(getattr(error, "api_message", None) or error)
    if not asked or getattr(error, "status_code", None) != 400 or "compact" not in said.lower():
        return None
    return f"The API refused to compact the conversation ({said.rstrip('.')}): the run goes on without it."


def _needed(edits: Sequence[Edit]) -> list[str]:
    return [_BETAS[kind] for edit in edits if (kind := str(edit.get("type"))) in _BETAS]


def _with_betas(options: Options, needed: Sequence[str]) -> dict[str, Any]:
    given = options.get("betas") or ()
    if isinstance(given, str):
        raise InvalidInputError("options['betas'] is a list of names, not a text")
    betas = list(dict.fromkeys([*given, *needed]))
    return {**options, **({"betas": betas} if betas else {})}
