"""The official clients on this database: the SDK's own classes, whose memory and session calls are answered in process.

    anthropic.Anthropic ── HttpClient.send ─┬─ /v1/memory_stores…, /v1/sessions…  ── Door ── Api.dispatch
                                            └─ all else, where there is a credential ── the SDK's own connections

Nothing else of the SDK is changed, so that what it does on the way (retries, raw and streaming responses, pages,
`with_options`) happens here, too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, TypeVar

import anthropic
import httpx2

from memkernel.api import auth, errors
from memkernel.api.dispatch import Api
from memkernel.api.messages import Principal, Request, Response
from memkernel.errors import ApiError, WorkspaceRoleError
from memkernel.models import Settings
from memkernel.store import Database

Client = TypeVar("Client", anthropic.Anthropic, anthropic.AsyncAnthropic)

_LOCAL: Final = re.compile(rb"[^?]*?(/v1/(?:memory_stores|sessions)(?:/[^?]*)?)(?:\?(.*))?", re.DOTALL)
"""Whatever stands before `/v1` is the path of a base URL; a slash within an id is percent-encoded."""

_NO_KEY: Final = "memkernel-has-no-key"
"""Stands where a key would: without one, the SDK would refuse the local calls, too."""

_WORKSPACE: Final = "anthropic-workspace-id"


def synchronous(database: Database, principal: Principal, settings: Settings) -> anthropic.Anthropic:
    """`anthropic.Anthropic`, its memory and session calls answered by the calling thread: no event loop is needed.

    The SDK's time-outs bound what crosses a network; a local call ends when the database has answered.

    Args:
        database: where the memories are.
        principal: on whose behalf the local calls are made; credentials play no part in them.
        settings: the key and the address for all other calls. Without a key, and without another credential that
            the SDK finds (ANTHROPIC_AUTH_TOKEN, a login), those raise `anthropic.AuthenticationError` unsent.
    """
    return _identified(anthropic.Anthropic, HttpClient(_door(database, principal)), settings)


def asynchronous(database: Database, principal: Principal, settings: Settings) -> anthropic.AsyncAnthropic:
    """`anthropic.AsyncAnthropic` in the same way, each local call in a thread; see `synchronous`.

    A call that is cancelled, or whose time is out, is over for its caller at once. Its thread ends with the
    database's answer, so that no connection is left in the middle of something; a change may be saved all the same.
    """
    return _identified(anthropic.AsyncAnthropic, AsyncHttpClient(_door(database, principal)), settings)


def _door(database: Database, principal: Principal) -> Door:
    @cache
    def view(workspace_id: str) -> Database:
        try:
            return database.in_workspace(workspace_id)
        except WorkspaceRoleError:  # who may not make the role is still the owner of these rows
            return database

    return Door(Api(database, auth.fixed(principal), in_workspace=view).dispatch)


def _identified(kind: type[Client], http_client: HttpClient | AsyncHttpClient, settings: Settings) -> Client:
    """A client with the credential that the settings, the environment or a login of the SDK's hold, or with none."""
    make = partial[Any](kind, base_url=settings.api_base_url, http_client=http_client)
    try:
        client = make(api_key=settings.api_key)
    except anthropic.CredentialsError as error:  # a login that cannot be read is no reason to refuse the local calls
        http_client.door.trouble += f", and the login cannot be read ({str(error).rstrip('.')})"
        client = make(api_key=_NO_KEY)
    if not (client.api_key or client.auth_token or client.credentials):
        client.api_key = _NO_KEY
    http_client.door.foreign_workspace = client.default_headers.get(_WORKSPACE)
    return client


class Door:
    """Which requests stay in this process, and what they are answered.

    Attributes:
        trouble: why nothing can go out, where there is no credential.
        foreign_workspace: the client's workspace at the real API, which a login brings along; it means nothing here.
    """

    def __init__(self, dispatch: Callable[[Request], Response]) -> None:
        self._dispatch = dispatch
        self.trouble = "ANTHROPIC_API_KEY is not set"
        self.foreign_workspace: object = None

    def holds(self, request: httpx2.Request, auth: object) -> bool:
        """Whether a request stays: it is a local one, or has nothing to identify itself with outside."""
        if _LOCAL.fullmatch(request.url.raw_path):
            return True
        headers = request.headers
        if headers.get("authorization") == f"Bearer {_NO_KEY}":
            del headers["authorization"]
        return "authorization" not in headers and "x-api-key" not in headers and not isinstance(auth, httpx2.Auth)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request that stays; its body has been read."""
        found = _LOCAL.fullmatch(request.url.raw_path)
        response = self._dispatched(request, *found.groups(b"")) if found else self._refused(request)
        # A stream, as off a wire: how a response is read, closed and timed is then the HTTP client's affair.
        return httpx2.Response(response.status, headers=dict(response.headers), stream=httpx2.ByteStream(response.body))

    def _dispatched(self, request: httpx2.Request, path: bytes, query: bytes) -> Response:
        headers = dict(request.headers.items())
        if headers.get(_WORKSPACE, self) == self.foreign_workspace:
            del headers[_WORKSPACE]
        return self._dispatch(Request(request.method, path.decode(), query.decode(), headers, request.content))

    def _refused(self, request: httpx2.Request) -> Response:
        message = (
            f"{request.method} {request.url.path} is for the real API, which needs a key: {self.trouble}. "
            "Memory stores and sessions need none; they are answered here"
        )
        return errors.response(ApiError(401, message))


# -- the SDK's HTTP clients, with that door ------------------------------------------------------


class HttpClient(anthropic.DefaultHttpxClient):
    """The SDK's own HTTP client for all that goes out; what stays is answered by the door."""

    def __init__(self, door: Door) -> None:
        super().__init__()
        self.door = door
        self._inside = httpx2.Client(transport=_Inside(door), trust_env=False)

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; what stays goes without `auth`, for which a login would fetch itself a token."""
        if self.door.holds(request, options.get("auth")):
            options.pop("auth", None)
            return self._inside.send(request, **options)
        return super().send(request, **options)

    def close(self) -> None:
        """Close it; a later request is refused, as by the SDK's own."""
        self._inside.close()
        super().close()


class AsyncHttpClient(anthropic.DefaultAsyncHttpxClient):
    """The asynchronous twin of `HttpClient`."""

    def __init__(self, door: Door) -> None:
        super().__init__()
        self.door = door
        self._inside = httpx2.AsyncClient(transport=_AsyncInside(door), trust_env=False)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; see `HttpClient.send`."""
        if self.door.holds(request, options.get("auth")):
            options.pop("auth", None)
            return await self._inside.send(request, **options)
        return await super().send(request, **options)

    async def aclose(self) -> None:
        """Close it; a later request is refused, as by the SDK's own."""
        await self._inside.aclose()
        await super().aclose()


class _Inside(httpx2.BaseTransport):
    def __init__(self, door: Door) -> None:
        self._door = door

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        return self._door.answer(request)


class _AsyncInside(httpx2.AsyncBaseTransport):
    def __init__(self, door: Door) -> None:
        self._door = door

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        seconds = request.extensions.get("timeout", {}).get("read")
        try:
            async with asyncio.timeout(seconds):
                # The loop's own threads end with it, and are none of a forked child's; anyio's outlive a kernel.
                return await asyncio.to_thread(self._door.answer, request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer within {seconds} s", request=request) from error
