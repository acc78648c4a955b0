"""kill -9 at every step of a sync, and at random moments: nothing is lost, nothing happens twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sync.crashing import Crasher
from tests.sync.mounted import ANN, Mounted, Mounter

LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
STORE = (
    *(("/a.md", LINES), ("/b.md", "beta\n"), ("/c", "gamma\n"), ("/d.md", "delta\n"), ("/e.md", "epsilon\n")),
    *(("/f/g.md", "eta\n"), ("/h.md", "theta\n")),
)


@pytest.fixture(scope="module")
def crash() -> Iterator[Crasher]:
    crasher = Crasher()
    yield crasher
    crasher.close()


def both_sides_change(mounted: Mounted) -> None:
    """The store moves, edits, deletes and creates; so does the mount, elsewhere but for /a.md."""
    mounted.remote(
        *(("/a.md", LINES.replace("six", "SIX")), ("/d.md", "theirs\n"), ("/e.md", None)),
        *(("/c", None), ("/c/below.md", "theirs\n"), ("/new.md", "theirs\n")),
    )
    mounted.database.memories.rename_tree(mounted.store_id, "/f", "/moved", actor=ANN)
    mounted.write("/a.md", LINES.replace("two", "TWO"))
    mounted.write("/mine.md", "ours: created\n")
    mounted.write("/b.md", "ours: edited\n")
    mounted.remove("/h.md")


MERGED = {
    "/a.md": LINES.replace("two", "TWO").replace("six", "SIX").encode(),
    "/b.md": b"ours: edited\n",
    "/c/below.md": b"theirs\n",
    "/d.md": b"theirs\n",
    "/mine.md": b"ours: created\n",
    "/moved/g.md": b"eta\n",
    "/new.md": b"theirs\n",
}
REFUSED = MERGED | {"/a.md": LINES.replace("six", "SIX").encode(), "/b.md": b"beta\n", "/h.md": b"theta\n"}
del REFUSED["/mine.md"]


def recovered(mounted: Mounted, **options: Any) -> None:
    """Another process goes on."""
    mounted.reopen()
    mounted.sync(**options)
    mounted.sync(**options)
    assert mounted.on_disk() == mounted.in_store()
    assert not list((mounted.home / "aside").iterdir())


def task(mounted: Mounted, dsn: str, **options: Any) -> dict[str, Any]:
    mounted.mount.close()
    return {"dsn": dsn, "home": str(mounted.home), "session_id": mounted.session_id, "options": options}


def test_killed_at_any_step_of_a_merge(mounter: Mounter, crash: Crasher, dsn: str) -> None:
    step, killed = -1, True
    while killed:
        step += 1
        mounted = mounter(*STORE)
        both_sides_change(mounted)
        killed = crash(die_at=step, **task(mounted, dsn, on_conflict="merge"))["killed"]
        recovered(mounted, on_conflict="merge")
        assert mounted.in_store() == MERGED, step
        assert [version.path for version in mounted.versions()[-4:]] == ["/h.md", "/a.md", "/b.md", "/mine.md"], step
        assert len(mounted.versions()) == len(STORE) + 11, step
        assert not mounted.rejections(), step
    assert step > 40


def test_killed_at_any_step_of_a_refused_batch(mounter: Mounter, crash: Crasher, dsn: str) -> None:
    step, killed = -1, True
    while killed:
        step += 1
        mounted = mounter(*STORE)
        both_sides_change(mounted)
        killed = crash(die_at=step, **task(mounted, dsn))["killed"]
        recovered(mounted)
        assert mounted.in_store() == REFUSED, step
        assert len(mounted.versions()) == len(STORE) + 7, step
        put_aside = mounted.put_aside()
        assert put_aside.pop("/h.md", None) is None
        assert put_aside == {
            "/a.md": LINES.replace("two", "TWO").encode(),
            "/b.md": b"ours: edited\n",
            "/mine.md": b"ours: created\n",
        }, step
    assert step > 40


def test_killed_at_any_step_of_filling_a_mount(mounter: Mounter, crash: Crasher, dsn: str) -> None:
    step, killed = -1, True
    while killed:
        step += 1
        mounted = mounter()
        mounted.remote(*STORE)
        (mounted.home / "nonce").unlink()
        killed = crash(die_at=step, **task(mounted, dsn))["killed"]
        mounted.remote(("/b.md", "theirs\n"), ("/d.md", None))
        recovered(mounted)
        assert len(mounted.versions()) == len(STORE) + 2, step
        assert not mounted.rejections(), step
    assert step > 30


def test_100_kills_at_random_moments_of_a_write_back_lose_nothing(mounter: Mounter, crash: Crasher, dsn: str) -> None:
    chance = random.Random(7)
    mounted = mounter(*((f"/remote/{number}.md", "0\n") for number in range(20)))
    ours: dict[str, bytes] = {}
    kills = 0
    for turn in range(100):
        mounted.remote(*((f"/remote/{number}.md", f"{turn}\n") for number in chance.sample(range(20), 5)))
        for number in chance.sample(range(60), 20):
            path = f"/ours/{number}.md"
            ours[path] = f"{turn} {chance.random()}\n".encode()
            mounted.write(path, ours[path])
        answer = crash(die_after_s=chance.uniform(0, 0.08), **task(mounted, dsn))
        kills += answer["killed"]
        mounted.reopen()  # only to be closed by the next task
    recovered(mounted)
    assert kills > 50
    found = mounted.in_store()
    assert {path: text for path, text in found.items() if path.startswith("/ours/")} == ours
    assert not mounted.rejections()
    texts = [(one.path, one.content_sha256) for one in all_versions(mounted) if one.path and "/ours/" in one.path]
    assert len(texts) == len(set(texts))


def all_versions(mounted: Mounted) -> list[Any]:
    versions: list[Any] = []
    page = None
    while True:
        answer = mounted.database.memory_versions.list(mounted.store_id, limit=100, page=page)
        versions += answer.data
        page = answer.next_page
        if page is None:
            return versions
