"""What the system prompt says of a session's memory stores (CONTRACT C.6): where they are, never what is in them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from memkernel.models import Attachment

_OPENING: Final = "<session_resources>"
_CLOSING: Final = "</session_resources>"
_HIDING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Line breaks of every kind, and what is not seen: marks of direction, spaces without width, tags."""

_SUSPECT: Final = re.compile(r"[<>&]|[^ -~]")


def memory_section(resources: Sequence[Attachment]) -> str:
    """A block for the end of the system prompt; `""` where nothing is attached.

    A line a store holds a JSON object: its id, name, description, mount path, access, and instructions where there
    are any. What a store's owner wrote can leave neither its string nor its line, nor close the block.
    """
    if not resources:
        return ""
    return "\n".join([_OPENING, *map(_line, resources), _CLOSING])


def system_prompt(system: str | None, resources: Sequence[Attachment]) -> str | None:
    """The system prompt of a session: a person's own, then `memory_section`; None where there is neither."""
    return "\n\n".join(part for part in (system, memory_section(resources)) if part) or None


def _line(resource: Attachment) -> str:
    facts = {
        "memory_store_id": resource.memory_store_id,
        "name": resource.name,
        "description": resource.description,
        "mount_path": resource.mount_path,
        "access": resource.access,
    }
    if resource.instructions is not None:
        facts["instructions"] = resource.instructions
    return _SUSPECT.sub(_plain, json.dumps(facts, ensure_ascii=False))


def _plain(found: re.Match[str]) -> str:
    character = found[0]
    if character in "<>&":
        return f"\\u{ord(character):04x}"
    hides = unicodedata.category(character) in _HIDING
    return json.dumps(character)[1:-1] if hides else character
