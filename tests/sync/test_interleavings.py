"""Any interleaving of edits here, edits in the store, syncs, interrupts and crashes: the two become alike, and no text
is lost. Every edit adds a line of its own, so that it can be told where each of them went.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from memkernel.errors import MemkernelError
from memkernel.models import ConflictPolicy
from memkernel.store.connections import StoreConnection
from memkernel.sync import renames
from memkernel.sync.rejected import RejectedFolder
from tests.sync.mounted import ANN, Mounted, Mounter

PATHS = st.sampled_from(["/a", "/b.md", "/c/d.md", "/c/e.md", "/c/f/g.md", "/a/x.md"])
POLICIES: st.SearchStrategy[ConflictPolicy] = st.sampled_from(["error", "merge"])


class Cut(BaseException):
    """Like a KeyboardInterrupt: it comes whenever it likes."""


@contextmanager
def cut_at(step: int) -> Generator[None]:
    """Raise before the n-th thing that leaves a trace."""
    left = itertools.count(step, -1)

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if next(left) == 0:
                raise Cut
            return function(*arguments, **options)

        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoreConnection, "run", counted(StoreConnection.run))
        patch.setattr(renames, "place", counted(renames.place))
        patch.setattr(renames, "swap", counted(renames.swap))
        patch.setattr(RejectedFolder, "put", counted(RejectedFolder.put))
        yield


class Interleavings(RuleBasedStateMachine):
    mounter: Mounter
    home: Path

    def __init__(self) -> None:
        super().__init__()
        self.mounted: Mounted = self.mounter(("/b.md", "one\ntwo\nthree\n"), ("/c/d.md", "alpha\nbeta\n"))
        self.lines = itertools.count()
        self.seen: set[bytes] = set()  # lines of ours that a sync has found, or taken from the mount

    @initialize()
    def start(self) -> None:
        assert self.mounted.on_disk() == self.mounted.in_store()

    def line(self) -> str:
        return f"line {next(self.lines)} of ours\n"

    # -- in the mount ----------------------------------------------------------------------------------

    @rule(path=PATHS, at_top=st.booleans())
    def edit(self, path: str, at_top: bool) -> None:
        file = self.mounted.files / path[1:]
        with suppress(OSError):
            old, line = file.read_bytes() if file.exists() else b"", self.line().encode()
            self.mounted.write(path, line + old if at_top else old + line)

    @rule(path=PATHS)
    def remove(self, path: str) -> None:
        with suppress(OSError):
            self.mounted.remove(path)

    @rule(path=PATHS)
    def replace_folder(self, path: str) -> None:
        folder = self.mounted.files / path[1:]
        if folder.is_dir():
            shutil.rmtree(folder)
            self.mounted.write(path, self.line())

    @rule(old=PATHS, new=PATHS)
    def move(self, old: str, new: str) -> None:
        with suppress(OSError):
            (self.mounted.files / old[1:]).rename(self.mounted.files / new[1:])

    @rule(path=PATHS)
    def spoil(self, path: str) -> None:
        with suppress(OSError):
            self.mounted.write(path, b"\xff" + self.line().encode())

    # -- in the store ----------------------------------------------------------------------------------

    @rule(path=PATHS, at_top=st.booleans())
    def edit_remotely(self, path: str, at_top: bool) -> None:
        old = self.mounted.in_store().get(path, b"").decode()
        line = f"line {next(self.lines)} of theirs\n"
        with suppress(MemkernelError):
            self.mounted.remote((path, line + old if at_top else old + line))

    @rule(path=PATHS)
    def delete_remotely(self, path: str) -> None:
        self.mounted.remote((path, None))

    @rule(old=PATHS, new=PATHS)
    def move_remotely(self, old: str, new: str) -> None:
        with suppress(MemkernelError):
            self.mounted.database.memories.rename_tree(self.mounted.store_id, old, new, actor=ANN)

    # -- syncing ---------------------------------------------------------------------------------------

    @rule(policy=POLICIES, wipe=st.booleans(), step=st.none() | st.integers(0, 40), reopened=st.booleans())
    def sync(self, policy: ConflictPolicy, wipe: bool, step: int | None, reopened: bool) -> None:
        if step is not None:
            before = self.lines_here()
            with suppress(Cut), cut_at(step):
                self.mounted.mount.sync(on_conflict=policy, allow_wipe=wipe)
            self.seen |= before - self.lines_here()
        if reopened:
            self.mounted.reopen()
        if step is None:
            self.finish(policy, wipe=wipe)

    def finish(self, policy: ConflictPolicy, *, wipe: bool = False) -> None:
        self.seen |= self.lines_here()
        self.mounted.sync(on_conflict=policy, allow_wipe=wipe)
        refused = {one.path for one in self.mounted.mount.status().refused}
        on_disk = {path: text for path, text in self.mounted.on_disk().items() if path not in refused}
        in_store = {path: text for path, text in self.mounted.in_store().items() if not covered(path, refused)}
        assert on_disk == in_store
        assert self.mounted.mount.status().local == 0
        assert not list((self.mounted.home / "aside").glob("*.path"))

    def lines_here(self) -> set[bytes]:
        """Our lines in the mount, but for files that are refused: those are the person's to lose."""
        texts = (text for text in self.mounted.on_disk().values() if b"\xff" not in text)
        return {line for text in texts for line in text.splitlines() if line.endswith(b"of ours")}

    @rule()
    def nothing_is_lost(self) -> None:
        self.finish("merge")
        kept = [one.content for one in self.mounted.rejections() if one.content]
        heads = self.mounted.database.memory_versions
        page = heads.list(self.mounted.store_id, limit=20, view="full")
        versions = list(page.data)
        while page.next_page:
            page = heads.list(self.mounted.store_id, limit=20, view="full", page=page.next_page)
            versions += page.data
        assert [one.seq for one in versions] == list(range(len(versions), 0, -1)), "seq has gaps"
        kept += [one.content.encode() for one in versions if one.content]
        kept += self.mounted.on_disk().values()
        for line in self.seen:
            assert any(line in text for text in kept), line

    @invariant()
    def head_seq_counts_every_memory(self) -> None:
        store = self.mounted.database.memory_stores.retrieve(self.mounted.store_id)
        assert store.head_seq >= store.memory_count

    def teardown(self) -> None:
        self.nothing_is_lost()
        self.mounted.mount.close()


def covered(path: str, refused: set[str]) -> bool:
    """Whether a refused file stands at a path or above it."""
    return any(path == one or path.startswith(one + "/") for one in refused)


def test_any_interleaving_ends_alike_and_loses_nothing(mounter: Mounter) -> None:
    class OfThisDatabase(Interleavings):
        pass

    OfThisDatabase.mounter = mounter
    run_state_machine_as_test(
        OfThisDatabase,
        settings=settings(
            max_examples=100,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
            report_multiple_bugs=False,
        ),
    )
