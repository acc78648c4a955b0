"""The listing of sessions, page by page in both directions (CONTRACT C.1).

A page lies between two cuts. A cut is beside a session that was listed, whether or not that is still there; the page
after begins where this one ends, and the page before ends where this one begins. So, whatever comes or goes meanwhile,
nothing that stays is skipped or listed twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from memkernel.errors import InvalidPageError
from memkernel.models import Page, SessionRecord
from memkernel.store import pages, rows, session_queries, statements
from memkernel.store.connections import StoreConnection
from memkernel.store.statements import Parameter

_NEXT: Final = "next"
_PREV: Final = "prev"


class Cut(NamedTuple):
    """Where a page begins, and which way it is read; `inclusive`: the session beside it is in the page."""

    direction: str
    inclusive: bool
    created_at_us: int
    session_id: str

    def turned(self) -> Cut:
        """The same cut, read the other way."""
        other = _PREV if self.direction == _NEXT else _NEXT
        return self._replace(direction=other, inclusive=not self.inclusive)


@dataclass(frozen=True, slots=True)
class Listing:
    """Which sessions, in which order."""

    workspace_id: str
    filters: Mapping[str, Parameter]
    include_archived: bool
    ascending: bool

    @property
    def bound_to(self) -> str:
        """What its tokens are bound to."""
        facts = {**self.filters, "archived": self.include_archived, "ascending": self.ascending}
        return pages.binding("sessions", **facts)

    def cut(self, page: object) -> Cut | None:
        """The cut that a token holds; None without a token.

        Raises:
            InvalidPageError: it is garbage, or belongs to another listing.
        """
        keys = pages.position(page, self.bound_to, str, bool, int, str)
        if keys is None:
            return None
        cut = Cut(*cast(tuple[str, bool, int, str], keys))
        if cut.direction not in (_NEXT, _PREV):
            raise InvalidPageError
        return cut

    def page(self, connection: StoreConnection, start: Cut | None, limit: int) -> Page[SessionRecord]:
        """The page that begins, or, read backwards, ends, at a cut; the first one without a cut."""
        direction = _NEXT if start is None else start.direction
        found = self._read(connection, start, limit + 1)
        data, more = found[:limit], len(found) > limit
        ahead = self._token(_beside(data[-1], direction)) if more else None
        back = None if start is None else start.turned()
        behind = self._token(back) if back and self._read(connection, back, 1) else None
        return Page(data, ahead, behind) if direction == _NEXT else Page(data[::-1], behind, ahead)

    def _read(self, connection: StoreConnection, cut: Cut | None, limit: int) -> list[SessionRecord]:
        forwards = cut is None or cut.direction == _NEXT
        statement, values = session_queries.session_list(
            self.workspace_id,
            self.filters,
            limit,
            include_archived=self.include_archived,
            ascending=self.ascending == forwards,
            beyond=None if cut is None else (cut.created_at_us, cut.session_id),
            inclusive=cut is not None and cut.inclusive,
        )
        result = connection.run(statement, *values)
        return [rows.session(result, row) for row in range(result.ntuples)]

    def _token(self, cut: Cut) -> str:
        return pages.token(self.bound_to, cut)


def _beside(session: SessionRecord, direction: str) -> Cut:
    return Cut(direction, False, statements.micros(session.created_at), session.id)
