"""What was named is not there, or is there more than once."""

from __future__ import annotations

from collections.abc import Sequence

from memkernel.errors.root import MemkernelError


class NotFoundError(MemkernelError, LookupError):
    """The thing named is not there."""


class NoStoreInUseError(NotFoundError):
    """A path was written without a store, and no store is in use."""

    def __init__(self) -> None:
        super().__init__(
            "no memory store is in use", hint="`%memory use STORE` takes one; `%memory stores` lists them."
        )


def _near(names: Sequence[str], otherwise: str) -> str:
    return f"Near: {', '.join(names)}" if names else otherwise


class StoreNotFoundError(NotFoundError):
    """No store has this id, name or slug."""

    def __init__(self, store: str, near: Sequence[str] = ()) -> None:
        super().__init__(f"there is no memory store {store!r}", hint=_near(near, "`%memory stores` lists them."))
        self.store, self.near = store, tuple(near)


class MemoryNotFoundError(NotFoundError):
    """No live memory has this path or id."""

    def __init__(self, path_or_id: str, store: str = "", near: Sequence[str] = ()) -> None:
        where = f" in {store}" if store else ""
        super().__init__(
            f"there is no memory {path_or_id}{where}", hint=_near(near, "`%memory ls /` lists what is there.")
        )
        self.path_or_id, self.near = path_or_id, tuple(near)


class VersionNotFoundError(NotFoundError):
    """No version has this id, ordinal or time."""

    def __init__(self, version: str, path: str = "") -> None:
        of = f" of {path}" if path else ""
        super().__init__(f"there is no version {version}{of}", hint="`%memory log` lists the versions.")
        self.version = version


class SessionNotFoundError(NotFoundError):
    """No session has this id."""

    def __init__(self, session: str) -> None:
        super().__init__(
            f"there is no session {session!r}",
            hint="`%sandbox ls --all`, or in a terminal `memkernel session ls`, lists the sessions.",
        )
        self.session = session


class RunNotFoundError(NotFoundError):
    """No run has this id."""

    def __init__(self, run: str) -> None:
        super().__init__(f"there is no run {run!r}", hint="`%agent ls` lists the runs.")
        self.run = run


class AmbiguousStoreError(MemkernelError):
    """Several stores answer to one name or slug."""

    def __init__(self, store: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{store!r} names {len(candidates)} stores", hint=f"Use an id: {', '.join(candidates)}")
        self.store, self.candidates = store, tuple(candidates)


class ApiKeyNotFoundError(NotFoundError):
    """There is no API key with this id."""

    def __init__(self, api_key: str) -> None:
        super().__init__(f"there is no API key {api_key}", hint="`memkernel keys ls` lists them.")
        self.api_key = api_key
