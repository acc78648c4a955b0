"""Which stores a sandbox mounts, and how: `mk.read_only(store)`, `mk.read_write(store)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memkernel.errors import InvalidInputError
from memkernel.handle.records import Records
from memkernel.handle.store import Store
from memkernel.models import Access, Attachment
from memkernel.render.cells import code
from memkernel.render.lists import row_of

if TYPE_CHECKING:
    from memkernel.handle.connection import Connection
    from memkernel.sync.engine import MountStatus


@dataclass(frozen=True, slots=True)
class Attached:
    """A store as a sandbox mounts it: whether it may be written, and what is said of it to an agent."""

    store: Store
    access: Access = "read_write"
    instructions: str | None = None


def read_only(store: Store, *, instructions: str | None = None) -> Attached:
    """For `mk.Sandbox`: mount the store so that nothing in the sandbox can change it."""
    return Attached(store, "read_only", instructions)


def read_write(store: Store, *, instructions: str | None = None) -> Attached:
    """For `mk.Sandbox`: mount the store writable, which is the default, with instructions for an agent."""
    return Attached(store, "read_write", instructions)


@dataclass(frozen=True, slots=True)
class MountState:
    """A mounted store. `local` and `remote` count the paths that the next sync would save and pull.

    `held_back` are the paths whose deletion the wipe guard has undone.
    """

    store: Store
    attachment: Attachment
    local: int
    remote: int
    held_back: tuple[str, ...] = ()


@row_of.register
def _(record: MountState) -> Mapping[str, object]:
    return {
        "store": record.store.slug,
        "folder": code(record.attachment.mount_path),
        "access": record.attachment.access,
        "to save": record.local,
        "to bring": record.remote,
    }


def mount_states(stores: Sequence[Attached], pending: Sequence[tuple[Attachment, MountStatus]]) -> Records[MountState]:
    """What the sync engine says of the mounts of these stores."""
    known = {one.store.id: one.store for one in stores}
    states = (
        MountState(known[one.memory_store_id], one, status.local, status.remote, status.held_back)
        for one, status in pending
    )
    return Records(states, kind=MountState)


def mounted_store(stores: Sequence[Attached], ref: Store | str) -> Store:
    """The mounted store that is meant: by handle, id, name or slug.

    Raises:
        InvalidInputError: it is not mounted.
    """
    for one in stores:
        store = one.store
        if ref in (store.id, store.name, store.slug) or (isinstance(ref, Store) and ref.id == store.id):
            return store
    named = ref.slug if isinstance(ref, Store) else ref
    raise InvalidInputError(f"{named} is not mounted in this sandbox", hint="`%sandbox mounts` lists the stores.")


def one_connection(stores: Sequence[Attached]) -> Connection:
    """The connection that all stores come from.

    Raises:
        InvalidInputError: there is no store, something is none, one is there twice, two would have one folder, or
            they come from several databases.
    """
    if not stores:
        raise InvalidInputError("a sandbox needs a memory store", hint="`mk.Sandbox(store)`, `%%sandbox --store NAME`.")
    for one in stores:
        if not isinstance(one.store, Store):  # pyright: ignore[reportUnnecessaryIsInstance]  # a notebook passes anything
            raise InvalidInputError(f"{one.store!r} is no memory store", hint='`mk.connect().store("NAME")` is one.')
    _check_folders([one.store for one in stores])
    first = stores[0].store.connection
    if any(one.store.connection.database is not first.database for one in stores):
        raise InvalidInputError("the stores of one sandbox must come from one connection")
    return first


def _check_folders(stores: Sequence[Store]) -> None:
    taken: dict[str, Store] = {}
    for store in stores:
        other = taken.get(store.slug)
        if other is None:
            taken[store.slug] = store
            continue
        if other.id == store.id:
            raise InvalidInputError(f"{store.name!r} is mounted twice", hint="Mount it once: writable, or read-only.")
        raise InvalidInputError(
            f"{other.name!r} and {store.name!r} would both be mounted at /mnt/memory/{store.slug}",
            hint="Rename one of them, or take two sandboxes.",
        )
