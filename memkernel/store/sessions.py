"""The sessions and the memory stores that they attach (CONTRACT C)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Final, Literal, NamedTuple, NoReturn, TypeVar, cast

from memkernel import ids, paths
from memkernel.errors import (
    InvalidInputError,
    InvalidPageError,
    NotFoundError,
    SessionNotFoundError,
    StoreArchivedError,
)
from memkernel.models import (
    Access,
    AgentReference,
    Attachment,
    AttachmentParams,
    BudgetLimit,
    Limits,
    Page,
    SessionRecord,
    SessionStatus,
)
from memkernel.store import checks, pages, rows, session_queries
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.memory_stores import UNSET, Unset
from memkernel.store.session_listing import Listing

T = TypeVar("T")

_FIXED: Final = "a session's memory stores are chosen when it is created"


class _Store(NamedTuple):
    """What a session takes of a store."""

    name: str
    description: str
    archived: bool


class Sessions:
    """The sessions of a database."""

    def __init__(self, contact: Contact, limits: Limits) -> None:
        self._contact = contact
        self._limits = limits

    def create(
        self,
        resources: Sequence[AttachmentParams] = (),
        *,
        title: str | None = None,
        metadata: Mapping[str, str] | None = None,
        agent: AgentReference | str | None = None,
        environment_id: str | None = None,
        vault_ids: Sequence[str] = (),
        budget: BudgetLimit | None = None,
    ) -> SessionRecord:
        """A new session, `idle`, with a snapshot of each store that it attaches. All of it, or nothing.

        Args:
            resources: the stores, at most eight, none twice; their folders' names must differ.
            title: at most 255 characters, no control characters.
            metadata: at most 16 pairs; keys 1-64, values at most 512 characters.
            agent: any id, 1-255 characters; it and the next three are kept, and change nothing.
            environment_id: any id, as `agent`.
            vault_ids: any ids, as `agent`.
            budget: in whole cents.

        Raises:
            InvalidInputError: one of these is broken, or there is no such store.
            StoreArchivedError: a store is archived.
        """
        wanted = checks.attachments(resources, self._limits.stores_per_session)
        named = None if title is None else checks.title(title) or None
        pairs = json.dumps(checks.metadata({} if metadata is None else metadata))
        facts = (
            _fields(checks.agent(agent)),
            checks.environment_id(environment_id),
            json.dumps(checks.vault_ids(vault_ids)),
            _fields(checks.budget(budget)),
        )
        session_id, store_ids = ids.mint("sesn"), [params.memory_store_id for params in wanted]

        def create(connection: StoreConnection) -> SessionRecord:
            with connection.transaction():
                attached = _attach(wanted, self._locked(connection, store_ids))
                resources = json.dumps([_columns(attachment) for attachment in attached])
                values = (self._contact.workspace_id, session_id, named, pairs, resources, *facts)
                connection.run(session_queries.SESSION_CREATE, *values)
                return _get(connection, session_id)

        def saved(connection: StoreConnection) -> SessionRecord | None:
            with connection.transaction():
                self._locked(connection, store_ids)
                return _find(connection, session_id)

        return self._contact.change(create, saved, memory_store_id="")

    def retrieve(self, session_id: str) -> SessionRecord:
        """The session with this id.

        Raises:
            SessionNotFoundError: there is none.
        """
        known_id = known(session_id)
        return self._contact.read(lambda connection: _get(connection, known_id))

    def list(
        self,
        *,
        memory_store_id: str | None = None,
        statuses: Sequence[SessionStatus] | None = None,
        agent_id: str | None = None,
        agent_version: int | None = None,
        deployment_id: str | None = None,
        created_at_gt: datetime | None = None,
        created_at_gte: datetime | None = None,
        created_at_lt: datetime | None = None,
        created_at_lte: datetime | None = None,
        include_archived: bool = False,
        order: Literal["asc", "desc"] = "desc",
        limit: int = 20,
        page: str | None = None,
    ) -> Page[SessionRecord]:
        """The sessions, newest first; the filters hold together.

        Args:
            memory_store_id: only those that attach this store.
            statuses: only those in one of these states.
            agent_id: only those that were asked for with this agent.
            agent_version: only those with this version of it; without `agent_id`, it is checked and says nothing.
            deployment_id: only those of this deployment: none is of any.
            created_at_gt: newer than this; one without a zone is UTC.
            created_at_gte: not older than this.
            created_at_lt: older than this.
            created_at_lte: not newer than this.
            include_archived: also the archived ones.
            order: `asc` for the oldest first.
            limit: 1-100.
            page: the `next_page` or the `prev_page` of another page.

        Raises:
            InvalidInputError: a value is illegal; InvalidPageError for the token.
        """
        version = None if agent_version is None else checks.version("agent_version", agent_version)
        listing = Listing(
            self._contact.workspace_id,
            {
                "memory_store_id": checks.optional("memory_store_id", memory_store_id),
                "statuses": checks.statuses(statuses),
                "agent_id": checks.optional("agent_id", agent_id),
                "agent_version": None if agent_id is None else version,
                "deployment_id": checks.optional("deployment_id", deployment_id),
                "created_at_gt": checks.moment("created_at_gt", created_at_gt),
                "created_at_gte": checks.moment("created_at_gte", created_at_gte),
                "created_at_lt": checks.moment("created_at_lt", created_at_lt),
                "created_at_lte": checks.moment("created_at_lte", created_at_lte),
            },
            include_archived=bool(include_archived),
            ascending=checks.one_of("order", order, ("asc", "desc")) == "asc",
        )
        limit, start = checks.limit(limit), listing.cut(page)
        return self._contact.read(lambda connection: listing.page(connection, start, limit))

    def update(
        self,
        session_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
        status: SessionStatus | None = None,
        budget: BudgetLimit | Unset | None = UNSET,
    ) -> SessionRecord:
        """Change a session; what changes nothing leaves `updated_at`.

        Args:
            session_id: the session.
            title: None leaves it, `""` removes it.
            metadata: a patch: a string sets, None removes, absent keys stay. None leaves all.
            status: None leaves it. What is `terminated` has ended: it stays so, and holds its stores no longer.
            budget: another one in place of the one it was made with; None removes it, for ever.

        Raises:
            InvalidInputError: a value is illegal, the result has more than 16 pairs, the session has ended, or it
                has no budget that could be replaced.
            SessionNotFoundError: there is no such session.
        """
        values = (
            known(session_id),
            None if title is None else checks.title(title),
            None if metadata is None else json.dumps(checks.metadata_patch(metadata)),
            None if status is None else checks.status(status),
            None if budget is UNSET else _fields(checks.budget(budget)) or "null",
            checks.MAX_METADATA_PAIRS,
        )
        return self._repeat(lambda connection: rows.session(connection.run(session_queries.SESSION_UPDATE, *values), 0))

    def archive(self, session_id: str) -> SessionRecord:
        """Take a session out of the listings, for ever; again, it returns the same record.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        known_id = known(session_id)
        return self._repeat(
            lambda connection: rows.session(connection.run(session_queries.SESSION_ARCHIVE, known_id), 0)
        )

    def delete(self, session_id: str, *, running_too: bool = True) -> None:
        """Remove a session; its stores, and what it wrote to them, stay.

        Args:
            session_id: the session.
            running_too: also while a sandbox has stores of it mounted: what that has not saved yet is then put
                aside where it runs, and is not stored.

        Raises:
            SessionNotFoundError: there is no such session.
            SessionRunningError: it runs, and `running_too` is not set.
        """
        known_id = known(session_id)

        def gone(connection: StoreConnection) -> bool | None:
            return True if _find(connection, known_id) is None else None

        def delete(connection: StoreConnection) -> bool:
            connection.run(session_queries.SESSION_DELETE, known_id, bool(running_too))
            return True

        self._contact.change(delete, gone, memory_store_id="")

    # -- its resources: a store's id is also its resource's (CONTRACT 0.3, row 15) ---------------------

    def resources(self, session_id: str, *, limit: int | None = None, page: str | None = None) -> Page[Attachment]:
        """What the session attaches, in the order in which it was asked for.

        Args:
            session_id: the session.
            limit: 1-1,000; None for all of them.
            page: the `next_page` of the page before.

        Raises:
            SessionNotFoundError: there is no such session.
            InvalidInputError: the limit is illegal; InvalidPageError for the token.
        """
        known_id = known(session_id)
        most = checks.MAX_RESOURCES_PAGE if limit is None else checks.limit(limit, checks.MAX_RESOURCES_PAGE)
        bound_to = pages.binding("resources", session=known_id)
        after = pages.position(page, bound_to, str)
        attached = self.retrieve(known_id).resources
        return pages.cut(
            list(attached[_begin(attached, after) :]), most, bound_to, lambda each: (each.memory_store_id,)
        )

    def resource(self, session_id: str, memory_store_id: str) -> Attachment:
        """One of the stores that the session attaches.

        Raises:
            SessionNotFoundError: there is no such session.
            NotFoundError: it attaches no such store.
        """
        for attachment in self.retrieve(session_id).resources:
            if attachment.memory_store_id == memory_store_id:
                return attachment
        raise NotFoundError(
            f"session {session_id} attaches no memory store {memory_store_id!r}",
            hint="`%sandbox mounts` lists the stores of a session.",
        )

    def add_resource(self, session_id: str) -> NoReturn:
        """Refuse: what a session attaches is fixed (CONTRACT C.2).

        Raises:
            SessionNotFoundError: there is no such session.
            InvalidInputError: always, otherwise.
        """
        self.retrieve(session_id)
        raise InvalidInputError(f"{_FIXED}: nothing can be added to {session_id}", hint="Create another session.")

    def update_resource(self, session_id: str, memory_store_id: str) -> NoReturn:
        """Refuse: what a session attaches is fixed (CONTRACT C.2).

        Raises:
            SessionNotFoundError: there is no such session.
            NotFoundError: it attaches no such store.
            InvalidInputError: always, otherwise.
        """
        self.resource(session_id, memory_store_id)
        raise InvalidInputError(f"{_FIXED}: {memory_store_id} stays as {session_id} attaches it")

    def delete_resource(self, session_id: str, memory_store_id: str) -> NoReturn:
        """Refuse: what a session attaches is fixed (CONTRACT C.2).

        Raises:
            SessionNotFoundError: there is no such session.
            NotFoundError: it attaches no such store.
            InvalidInputError: always, otherwise.
        """
        self.resource(session_id, memory_store_id)
        raise InvalidInputError(f"{_FIXED}: none can be taken from {session_id}", hint="Delete the session instead.")

    def _locked(self, connection: StoreConnection, store_ids: Sequence[str]) -> dict[str, _Store]:
        """The stores of these ids that there are, as they stay until the transaction ends."""
        if not store_ids:
            return {}
        result = connection.run(session_queries.STORES_LOCK, self._contact.workspace_id, store_ids)
        get = result.get_value
        return {
            rows.text(get(row, 0)): _Store(rows.text(get(row, 1)), rows.text(get(row, 2)), get(row, 3) is not None)
            for row in range(result.ntuples)
        }

    def _repeat(self, work: Callable[[StoreConnection], T]) -> T:
        """Run a change that does no harm when it is run twice."""
        return self._contact.change(work, lambda _: None, memory_store_id="")


def known(session_id: object) -> str:
    """The id, if it can be one of a session.

    Raises:
        SessionNotFoundError: nothing can have this id.
    """
    if isinstance(session_id, str) and ids.is_id("sesn", session_id):
        return session_id
    raise SessionNotFoundError(session_id if isinstance(session_id, str) else repr(session_id))


def _find(connection: StoreConnection, session_id: str) -> SessionRecord | None:
    result = connection.run(session_queries.SESSION_GET, session_id)
    return rows.session(result, 0) if result.ntuples else None


def _get(connection: StoreConnection, session_id: str) -> SessionRecord:
    session = _find(connection, session_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    return session


def _attach(wanted: Sequence[AttachmentParams], stores: Mapping[str, _Store]) -> list[Attachment]:
    """The snapshots (CONTRACT C.2, C.4, C.5)."""
    taken: dict[str, str] = {}
    attached: list[Attachment] = []
    for index, params in enumerate(wanted):
        store_id = params.memory_store_id
        store = stores.get(store_id)
        if store is None:
            raise InvalidInputError(
                f"resources[{index}]: there is no memory store {store_id!r}", hint="`%memory stores` lists them."
            )
        if store.archived:
            raise StoreArchivedError(store_id, name=store.name, attaching=True)
        mount_path = paths.mount_path(store.name, store_id)
        if mount_path in taken:
            raise InvalidInputError(
                f"resources[{index}]: {store.name!r} and {taken[mount_path]!r} would both be mounted at {mount_path}",
                hint="Rename one of the stores, or attach them to different sessions.",
            )
        taken[mount_path] = store.name
        access = cast(Access, params.access)  # filled in by checks.attachments
        attached.append(Attachment(store_id, store.name, store.description, access, params.instructions, mount_path))
    return attached


def _begin(attached: Sequence[Attachment], after: tuple[pages.Key, ...] | None) -> int:
    """Where a page begins: with the one after this store's."""
    if after is None:
        return 0
    for index, attachment in enumerate(attached, 1):
        if attachment.memory_store_id == after[0]:
            return index
    raise InvalidPageError


def _columns(attachment: Attachment) -> list[str | None]:
    return [
        *(attachment.memory_store_id, attachment.name, attachment.description),
        *(attachment.access, attachment.instructions, attachment.mount_path),
    ]


def _fields(record: AgentReference | BudgetLimit | None) -> str | None:
    return None if record is None else json.dumps(asdict(record))
