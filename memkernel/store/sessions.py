"""The sessions and the memory stores that they attach (CONTRACT C)."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, NoReturn, TypeVar, cast

from psycopg import pq

from memkernel import ids, paths
from memkernel.errors import InvalidInputError, NotFoundError, SessionNotFoundError, StoreArchivedError
from memkernel.models import Access, Attachment, AttachmentParams, Limits, Page, SessionRecord, SessionStatus
from memkernel.store import checks, pages, rows, session_queries, statements
from memkernel.store.connections import StoreConnection
from memkernel.store.contact import Contact
from memkernel.store.memory_stores import WORKSPACE

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
    ) -> SessionRecord:
        """A new session, `idle`, with a snapshot of each store that it attaches. All of it, or nothing.

        Args:
            resources: the stores, at most eight, none twice; their folders' names must differ.
            title: at most 255 characters, no control characters.
            metadata: at most 16 pairs; keys 1-64, values at most 512 characters.

        Raises:
            InvalidInputError: one of these is broken, or there is no such store.
            StoreArchivedError: a store is archived.
        """
        wanted = checks.attachments(resources, self._limits.stores_per_session)
        named = None if title is None else checks.title(title) or None
        pairs = json.dumps(checks.metadata({} if metadata is None else metadata))
        session_id, store_ids = ids.mint("sesn"), [params.memory_store_id for params in wanted]

        def create(connection: StoreConnection) -> SessionRecord:
            with connection.transaction():
                attached = _attach(wanted, _locked(connection, store_ids))
                values = json.dumps([_columns(attachment) for attachment in attached])
                connection.run(session_queries.SESSION_CREATE, WORKSPACE, session_id, named, pairs, values)
                return _get(connection, session_id)

        def saved(connection: StoreConnection) -> SessionRecord | None:
            with connection.transaction():
                _locked(connection, store_ids)
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
        include_archived: bool = False,
        order: Literal["asc", "desc"] = "desc",
        limit: int = 20,
        page: str | None = None,
    ) -> Page[SessionRecord]:
        """The sessions, newest first.

        Args:
            memory_store_id: only those that attach this store.
            statuses: only those in one of these states.
            include_archived: also the archived ones.
            order: `asc` for the oldest first.
            limit: 1-100.
            page: the `next_page` of the page before.

        Raises:
            InvalidInputError: a value is illegal; InvalidPageError for the token.
        """
        limit, states = checks.limit(limit), checks.statuses(statuses)
        store_id = None if memory_store_id is None else checks.storable("memory_store_id", memory_store_id)
        statement = session_queries.SESSION_LIST[checks.one_of("order", order, ("asc", "desc"))]
        archived = bool(include_archived)
        bound_to = pages.binding("sessions", store=store_id, statuses=states, archived=archived, order=order)
        after = pages.position(page, bound_to, int, str) or (None, None)
        values = (archived, states, store_id, *after, limit + 1)
        found = self._contact.read(lambda connection: _all(connection.run(statement, *values)))
        return pages.cut(found, limit, bound_to, lambda session: (statements.micros(session.created_at), session.id))

    def update(
        self,
        session_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
        status: SessionStatus | None = None,
    ) -> SessionRecord:
        """Change a session; what changes nothing leaves `updated_at`.

        Args:
            session_id: the session.
            title: None leaves it, `""` removes it.
            metadata: a patch: a string sets, None removes, absent keys stay. None leaves all.
            status: None leaves it. What is `terminated` has ended: it stays so, and holds its stores no longer.

        Raises:
            InvalidInputError: a value is illegal, the result has more than 16 pairs, or the session has ended.
            SessionNotFoundError: there is no such session.
        """
        values = (
            known(session_id),
            None if title is None else checks.title(title),
            None if metadata is None else json.dumps(checks.metadata_patch(metadata)),
            None if status is None else checks.status(status),
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

    def delete(self, session_id: str) -> None:
        """Remove a session; its stores, and what it wrote to them, stay.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        known_id = known(session_id)

        def gone(connection: StoreConnection) -> bool | None:
            return True if _find(connection, known_id) is None else None

        def delete(connection: StoreConnection) -> bool:
            connection.run(session_queries.SESSION_DELETE, known_id)
            return True

        self._contact.change(delete, gone, memory_store_id="")

    # -- its resources: a store's id is also its resource's (CONTRACT 0.3, row 15) ---------------------

    def resources(self, session_id: str) -> builtins.list[Attachment]:
        """What the session attaches, in the order in which it was asked for.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        return builtins.list(self.retrieve(session_id).resources)

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

    def add_resource(self, session_id: str, params: AttachmentParams) -> NoReturn:
        """Refuse: what a session attaches is fixed (CONTRACT C.2).

        Raises:
            SessionNotFoundError: there is no such session.
            InvalidInputError: always, otherwise.
        """
        self.retrieve(session_id)
        raise InvalidInputError(f"{_FIXED}: none can be added to {session_id}", hint="Create another session.")

    def delete_resource(self, session_id: str, memory_store_id: str) -> NoReturn:
        """Refuse: what a session attaches is fixed (CONTRACT C.2).

        Raises:
            SessionNotFoundError: there is no such session.
            NotFoundError: it attaches no such store.
            InvalidInputError: always, otherwise.
        """
        self.resource(session_id, memory_store_id)
        raise InvalidInputError(f"{_FIXED}: none can be taken from {session_id}", hint="Delete the session instead.")

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


def _all(result: pq.abc.PGresult) -> list[SessionRecord]:
    return [rows.session(result, row) for row in range(result.ntuples)]


def _find(connection: StoreConnection, session_id: str) -> SessionRecord | None:
    result = connection.run(session_queries.SESSION_GET, session_id)
    return rows.session(result, 0) if result.ntuples else None


def _get(connection: StoreConnection, session_id: str) -> SessionRecord:
    session = _find(connection, session_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    return session


def _locked(connection: StoreConnection, store_ids: Sequence[str]) -> dict[str, _Store]:
    """The stores of these ids that there are, as they stay until the transaction ends."""
    if not store_ids:
        return {}
    result = connection.run(session_queries.STORES_LOCK, WORKSPACE, store_ids)
    get = result.get_value
    return {
        rows.text(get(row, 0)): _Store(rows.text(get(row, 1)), rows.text(get(row, 2)), get(row, 3) is not None)
        for row in range(result.ntuples)
    }


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


def _columns(attachment: Attachment) -> list[str | None]:
    return [
        *(attachment.memory_store_id, attachment.name, attachment.description),
        *(attachment.access, attachment.instructions, attachment.mount_path),
    ]
