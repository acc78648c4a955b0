"""The asynchronous SDK behind the synchronous one's names, so that one suite drives both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Self


class Blocking:
    """An object of the asynchronous SDK; each of its calls runs on the loop until it is done."""

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self.inner, self._runner = inner, runner

    def __getattr__(self, name: str) -> Any:
        return self._outcome(getattr(self.inner, name))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._runner.run(_all(aiter(self.inner))))

    def __enter__(self) -> Self:
        return self._outcome(self.inner.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self.inner.__aexit__(kind, error, trace))

    def _called(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self._outcome(function(*args, **options))

    def _outcome(self, value: Any) -> Any:
        if callable(value) and (inspect.ismethod(value) or inspect.isfunction(value)):
            return partial(self._called, value)
        if inspect.isawaitable(value):
            return self._outcome(self._runner.run(_awaited(value)))
        if inspect.isasyncgen(value):
            return self._runner.run(_all(value))
        return Blocking(value, self._runner) if type(value).__name__.startswith("Async") else value


async def _awaited(value: Any) -> Any:
    return await value


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]
