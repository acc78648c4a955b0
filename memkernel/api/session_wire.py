"""Sessions and their resources as JSON, there and back (CONTRACT C.1-C.3).

The SDKs model a session that runs an agent; here none runs. What memkernel does not know is null, empty or zero, in
the shape that the SDKs of all languages decode.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, cast

from memkernel.api import wire
from memkernel.api.params import ONE_LINE, Field, Json, Kind, Schema, nullable, one_of, record, text
from memkernel.errors import InvalidInputError
from memkernel.models import AgentReference, Attachment, AttachmentParams, BudgetLimit, Page, SessionRecord
from memkernel.store import checks

_NOBODY: Final = AgentReference("")
"""The agent of a session that was asked for with none: a sandbox's own."""

_NO_AGENTS: Final = "memkernel runs no agents: it cannot be set here"
_NO_FILES: Final = "memkernel mounts memory stores only, no files and no repositories"


# -- what an answer looks like ------------------------------------------------------------------------

_NULL: Final[Schema] = {"type": "null"}
_NONE_OF_THEM: Final[Schema] = {"type": "array", "maxItems": 0}
_USAGE: Final = (
    *("active_seconds", "cache_creation", "cache_read_input_tokens", "input_tokens"),
    *("list_cost", "output_tokens", "server_tool_use"),
)

_AGENT_SCHEMA: Final = wire.object_of(
    id=wire.TEXT,
    type={"const": "agent"},
    version={"type": "integer", "minimum": 1},
    name=wire.TEXT,
    description=_NULL,
    execution_identity=wire.object_of(type={"const": "service_account"}),
    mcp_servers=_NONE_OF_THEM,
    model=wire.object_of(id=wire.TEXT, effort=_NULL, inference_geo=_NULL, speed=_NULL),
    multiagent=_NULL,
    skills=_NONE_OF_THEM,
    system=_NULL,
    tools=_NONE_OF_THEM,
)

SCHEMAS: Final[dict[str, Schema]] = {
    "SessionResource": wire.object_of(
        type={"const": "memory_store"},
        memory_store_id=wire.TEXT,
        access={"type": "string", "enum": ["read_write", "read_only"]},
        description=wire.TEXT,
        instructions=wire.or_null(wire.TEXT),
        mount_path=wire.TEXT,
        name=wire.TEXT,
    ),
    "SessionResourcePage": wire.page_of("SessionResource"),
    "SessionResourceDeleted": wire.object_of(id=wire.TEXT, type={"const": "session_resource_deleted"}),
    "Session": wire.object_of(
        id=wire.TEXT,
        type={"const": "session"},
        agent=_AGENT_SCHEMA,
        archived_at=wire.or_null(wire.MOMENT),
        budget=wire.or_null(
            wire.object_of(
                type={"const": "limit"}, max_list_cost=wire.object_of(amount=wire.TEXT, currency={"const": "USD"})
            )
        ),
        created_at=wire.MOMENT,
        deployment_id=_NULL,
        environment_id=wire.TEXT,
        metadata=wire.PAIRS,
        outcome_evaluations=_NONE_OF_THEM,
        resources={"type": "array", "items": wire.ref("SessionResource")},
        stats=wire.object_of(active_seconds=_NULL, duration_seconds=_NULL),
        status={"type": "string", "enum": [*checks.STATUSES]},
        title=wire.or_null(wire.TEXT),
        updated_at=wire.MOMENT,
        usage=wire.object_of(**dict.fromkeys(_USAGE, _NULL)),
        vault_ids={"type": "array", "items": wire.TEXT},
    ),
    "SessionPage": wire.object_of(
        data={"type": "array", "items": wire.ref("Session")},
        next_page=wire.or_null(wire.TEXT),
        prev_page=wire.or_null(wire.TEXT),
    ),
    "SessionDeleted": wire.object_of(id=wire.TEXT, type={"const": "session_deleted"}),
}


# -- out -------------------------------------------------------------------------------------------


def session(record: SessionRecord) -> Json:
    """A session, with every field that an SDK models."""
    return {
        "id": record.id,
        "type": record.type,
        "agent": _agent(record.agent or _NOBODY),
        "archived_at": wire.optional_moment(record.archived_at),
        "budget": None if record.budget is None else _budget(record.budget),
        "created_at": wire.moment(record.created_at),
        "deployment_id": None,
        "environment_id": record.environment_id or "",
        "metadata": record.metadata,
        "outcome_evaluations": [],
        "resources": [resource(each) for each in record.resources],
        "stats": {"active_seconds": None, "duration_seconds": None},
        "status": record.status,
        "title": record.title,
        "updated_at": wire.moment(record.updated_at),
        "usage": dict.fromkeys(_USAGE),
        "vault_ids": [*record.vault_ids],
    }


def session_page(found: Page[SessionRecord]) -> Json:
    """A page of sessions, from which one can go on and back."""
    return {**wire.page(found, session), "prev_page": found.prev_page}


def resource(attachment: Attachment) -> Json:
    """A `memory_store` resource (CONTRACT C.3)."""
    return {
        "type": attachment.type,
        "memory_store_id": attachment.memory_store_id,
        "access": attachment.access,
        "description": attachment.description,
        "instructions": attachment.instructions,
        "mount_path": attachment.mount_path,
        "name": attachment.name,
    }


def _agent(reference: AgentReference) -> Json:
    return {
        "id": reference.id,
        "type": reference.type,
        "version": reference.version,
        "name": reference.id,
        "description": None,
        "execution_identity": {"type": "service_account"},
        "mcp_servers": [],
        "model": {"id": "", "effort": None, "inference_geo": None, "speed": None},
        "multiagent": None,
        "skills": [],
        "system": None,
        "tools": [],
    }


def _budget(limit: BudgetLimit) -> Json:
    return {"type": limit.type, "max_list_cost": {"amount": limit.amount, "currency": limit.currency}}


# -- in --------------------------------------------------------------------------------------------


def refused(reason: str) -> Kind:
    """What the SDKs can send, and memkernel has no use for."""

    def read(name: str, _: Any) -> NoReturn:
        raise InvalidInputError(f"{name}: {reason}")

    return Kind(read, {"not": {}})


def _read_agent(name: str, value: Any) -> AgentReference:
    if isinstance(value, str):
        return AgentReference(value)
    if not isinstance(value, dict):
        raise InvalidInputError(f"{name} must be an id, or an object that has one")
    members = _AGENT_OBJECT.read(name, value)
    return AgentReference(members["id"], members.get("version", 1))


def _version(name: str, value: Any) -> int:
    return checks.version(name, value)


def _read_budget(name: str, value: Any) -> BudgetLimit:
    return BudgetLimit(**_BUDGET_OBJECT.read(name, value)["max_list_cost"])


def _read_events(name: str, value: Any) -> None:
    if value != []:
        raise InvalidInputError(f"{name}: {_NO_AGENTS}")


def _read_resource(name: str, value: Any) -> AttachmentParams:
    kind = cast(Json, value).get("type") if isinstance(value, dict) else "memory_store"
    if kind in ("file", "github_repository"):
        raise InvalidInputError(f"{name}.type is {kind!r}: {_NO_FILES}")
    members = _RESOURCE_OBJECT.read(name, value)
    return AttachmentParams(members["memory_store_id"], members.get("access"), members.get("instructions"))


ID: Final = text(pattern=ONE_LINE, minLength=1, maxLength=checks.MAX_ID_CHARS)

_OVERRIDES: Final = ("mcp_servers", "model", "skills", "system", "tools")
_AGENT_OBJECT: Final = record(
    Field("id", ID, required=True),
    Field("type", one_of("agent", "agent_with_overrides")),
    Field("version", Kind(_version, {"type": "integer", "minimum": 1, "maximum": checks.MAX_VERSION})),
    *(Field(name, refused(_NO_AGENTS)) for name in _OVERRIDES),
)
_BUDGET_OBJECT: Final = record(
    Field("type", one_of("limit"), required=True),
    Field(
        "max_list_cost",
        record(
            Field("amount", text(pattern="^(0|[1-9][0-9]{0,17})$"), required=True),
            Field("currency", one_of("USD"), required=True),
        ),
        required=True,
    ),
)
_RESOURCE_OBJECT: Final = record(
    Field("type", one_of("memory_store"), required=True),
    Field("memory_store_id", text(), required=True),
    Field("access", nullable(one_of("read_write", "read_only"))),
    Field("instructions", nullable(text(maxLength=checks.MAX_INSTRUCTIONS_CHARS))),
)

AGENT: Final = Kind(_read_agent, {"anyOf": [ID.schema, _AGENT_OBJECT.schema]})
AGENT_UPDATE: Final = refused(_NO_AGENTS)
BUDGET: Final = Kind(_read_budget, _BUDGET_OBJECT.schema)
INITIAL_EVENTS: Final = Kind(_read_events, {"type": "array", "maxItems": 0})
RESOURCE: Final = Kind(_read_resource, _RESOURCE_OBJECT.schema)
VAULTS_UPDATE: Final = refused("the vaults of a session are chosen when it is created")
