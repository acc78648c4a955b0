"""HTTP/1.1 as uvicorn speaks it, but for what is none, and for connections on which nothing whole ever comes."""

from __future__ import annotations

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from memkernel.api import errors
from memkernel.errors import ApiError

HEAD_S: Final = 30.0
"""A request's head comes within this time, or within twice as long."""


class Protocol(H11Protocol):
    """Hangs up where no request's head is completed in time.

    Whoever reaches the port, without any key, could otherwise keep connections until no other one can be taken:
    uvicorn's own time-out begins with the first answer, and ends with the first byte of the next request.
    """

    _look: asyncio.TimerHandle

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP as everything is answered: with the envelope, and a `request-id`."""
        answer = errors.response(ApiError(400, f"the request cannot be read: {msg}"), {"connection": "close"})
        headers = {**answer.headers, "content-length": str(len(answer.body))}
        for event in (
            h11.Response(status_code=answer.status, headers=[*headers.items()]),
            h11.Data(data=answer.body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as uvicorn's own
        """Begin to look whether requests come."""
        super().connection_made(transport)
        self._look_later(self.cycle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._look.cancel()
        super().connection_lost(exc)

    def _look_later(self, last: RequestResponseCycle | None) -> None:
        self._look = self.loop.call_later(HEAD_S, self._look_now, last)

    def _look_now(self, last: RequestResponseCycle | None) -> None:
        """Hang up if the request that was answered before the last look is still the last one."""
        is_idle = self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]  # None before the first request
        if is_idle and self.cycle is last:
            self.transport.close()
        else:
            self._look_later(self.cycle if is_idle else None)
