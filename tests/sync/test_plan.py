"""What the changes of a mount come to, purely: laws that hold for every baseline, disk and store (CONTRACT D.4)."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memkernel import paths
from memkernel.models import ConflictPolicy
from memkernel.store.mount_records import Entry, Head, Heads
from memkernel.sync import plan

PATHS = ["/a", "/a/x", "/a/y", "/b", "/c/d", "/c/e/f", "/g"]
TEXTS = [b"0", b"1", b"2", b"3"]


def sha(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


CONTENTS = {sha(text): text for text in TEXTS}


@st.composite
def trees(draw: st.DrawFn) -> dict[str, bytes]:
    """Files that can be on one disk: none lies below another."""
    tree: dict[str, bytes] = {}
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True)):
        if not any(paths.overlap(path, other) for other in tree):
            tree[path] = draw(st.sampled_from(TEXTS))
    return tree


@st.composite
def heads(draw: st.DrawFn) -> Heads:
    """A store: its memories may have moved since a baseline, or be others at the same path."""
    tree = draw(trees())
    ids = draw(st.permutations([f"mem_{number}" for number in range(len(PATHS))]))
    return Heads(
        9,
        draw(st.booleans()),
        [Head(ids[n], path, f"v_{ids[n]}_{path}", sha(text), 1, 1) for n, (path, text) in enumerate(tree.items())],
    )


@st.composite
def baselines(draw: st.DrawFn) -> dict[str, Entry]:
    tree = draw(trees())
    ids = draw(st.permutations([f"mem_{number}" for number in range(len(PATHS))]))
    return {path: Entry(ids[n], f"v_{n}", sha(text)) for n, (path, text) in enumerate(tree.items())}


@st.composite
def disks(draw: st.DrawFn) -> plan.Disk:
    files = {path: sha(text) for path, text in draw(trees()).items()}
    refused = frozenset(draw(st.lists(st.sampled_from(PATHS), max_size=2))) - files.keys()
    unreadable = draw(st.sampled_from([(), (), (), ("/c",), ("",)]))
    return plan.Disk(files, refused, unreadable, draw(st.sampled_from([True, True, True, False])))


policies: st.SearchStrategy[ConflictPolicy] = st.sampled_from(["error", "merge"])
rules = st.builds(plan.Rules, st.integers(1, 7), policies, st.booleans())


def decided(
    baseline: dict[str, Entry], disk: plan.Disk, store: Heads, rule: plan.Rules
) -> tuple[list[plan.LocalChange], plan.Decision]:
    changes = plan.local_changes(baseline, disk)
    contents = {one.path: CONTENTS[one.sha256] for one in changes if one.sha256}
    wiped = plan.is_wiped(baseline, disk)
    return changes, plan.decide(changes, contents, store, rule, wiped=wiped)


def after(store: Heads, decision: plan.Decision) -> Heads:
    """The store once the edits are made."""
    gone = [edit.head.memory_id for edit in decision.edits if edit.operation == "deleted" and edit.head]
    made = [
        Head(edit.head.memory_id if edit.head else f"new_{edit.path}", edit.path, f"new_{edit.path}", edit.sha256, 1, 2)
        for edit in decision.edits
        if edit.sha256
    ]
    return store.changed(store.seq + len(decision.edits), store.archived, gone, made)


@given(baselines(), disks(), heads(), rules)
def test_each_change_is_saved_or_put_aside_or_held_back_or_so_already(
    baseline: dict[str, Entry], disk: plan.Disk, store: Heads, rule: plan.Rules
) -> None:
    changes, decision = decided(baseline, disk, store, rule)
    saved = {edit.path for edit in decision.edits}
    aside = {one.change.path for one in decision.rejected}
    held = set(decision.held_back)
    assert len(saved) + len(aside) + len(held) == len(saved | aside | held)
    for change in changes:
        if change.path in saved | aside | held:
            continue
        head = store.by_path.get(change.path)
        if change.sha256:  # no text is lost: it is what the store has there
            assert head
            assert head.sha256 == change.sha256
        elif not plan.is_wiped(baseline, disk):
            of_base = change.base and store.by_id.get(change.base.memory_id)
            assert of_base is None or (of_base.path, of_base.sha256) in disk.files.items()


@given(baselines(), disks(), heads(), rules)
def test_what_is_saved_obeys_the_store(
    baseline: dict[str, Entry], disk: plan.Disk, store: Heads, rule: plan.Rules
) -> None:
    _, decision = decided(baseline, disk, store, rule)
    if not decision.edits:
        return
    result = after(store, decision)
    assert not store.archived
    assert not (decision.rejected and rule.on_conflict == "error")
    operations = [edit.operation for edit in decision.edits]
    assert operations == sorted(operations, key=["deleted", "modified", "created"].index)
    assert "created" not in operations or len(result.by_path) <= rule.limit
    live = sorted(result.by_path)
    assert not any(paths.overlap(one, other) for one in live for other in live if one < other)


@given(baselines(), disks(), heads(), rules)
def test_nothing_that_the_scan_cannot_see_is_changed_in_the_store(
    baseline: dict[str, Entry], disk: plan.Disk, store: Heads, rule: plan.Rules
) -> None:
    _, decision = decided(baseline, disk, store, rule)
    touched = {edit.path for edit in decision.edits} | {one.change.path for one in decision.rejected}
    for path in touched - disk.files.keys():
        assert disk.complete
        assert path not in disk.refused
        assert not disk.unreadable or not path.startswith(disk.unreadable[0] + "/")


@given(baselines(), disks(), heads(), rules)
def test_a_repair_makes_the_files_what_the_store_has_and_is_then_done(
    baseline: dict[str, Entry], disk: plan.Disk, store: Heads, rule: plan.Rules
) -> None:
    _, decision = decided(baseline, disk, store, rule)
    result = after(store, decision)
    known = baseline.copy()
    for edit in decision.edits:  # their entries come with their versions
        known.pop(edit.path, None)
        if edit.sha256:
            known[edit.path] = plan.entry(result.by_path[edit.path])
    repair = plan.repair(known, disk, result)
    files = dict(disk.files)
    for path in repair.removals:
        files.pop(path, None)
        known.pop(path, None)
    for head in repair.puts:
        files[head.path] = head.sha256
        known[head.path] = plan.entry(head)
    for path, entry in repair.settled.items():
        known.pop(path, None)
        if entry:
            known[path] = entry
    assert known == {path: plan.entry(head) for path, head in result.by_path.items()}
    assert files.items() <= {path: head.sha256 for path, head in result.by_path.items()}.items()
    later = replace(disk, files=files)
    assert not plan.local_changes(known, later)
    again = plan.repair(known, later, result)
    assert not again.touches_disk
    assert not again.settled


@given(baselines(), disks(), heads(), rules, st.sampled_from(["was reset", "is read-only"]))
def test_where_nothing_may_be_saved_every_text_is_put_aside(
    baseline: dict[str, Entry], disk: plan.Disk, store: Heads, rule: plan.Rules, why: str
) -> None:
    changes, decision = decided(baseline, disk, store, replace(rule, refuse=why))
    assert not decision.edits
    assert not decision.held_back
    expected = {
        change.path
        for change in changes
        if change.sha256 and (change.path not in store.by_path or store.by_path[change.path].sha256 != change.sha256)
    }
    assert {one.change.path for one in decision.rejected} == expected
    assert {one.reason for one in decision.rejected} <= {why}


@given(baselines(), disks(), heads())
def test_what_a_merge_gives_takes_the_place_of_the_conflict(
    baseline: dict[str, Entry], disk: plan.Disk, store: Heads
) -> None:
    store = Heads(store.seq, False, store.by_id.values())
    rule = plan.Rules(100, "merge", allow_wipe=True)
    changes, first = decided(baseline, disk, store, rule)
    merged = {one.path: plan.Merged(b"merged", sha(b"merged")) for one in first.mergeable}
    contents = {one.path: CONTENTS[one.sha256] for one in changes if one.sha256}
    second = plan.decide(changes, contents, store, rule, merged=merged)
    assert {edit.path for edit in second.edits} == {edit.path for edit in first.edits} | merged.keys()
    assert {one.change.path for one in second.rejected} == {one.change.path for one in first.rejected} - merged.keys()
    assert all(edit.on_disk == (edit.path not in merged) for edit in second.edits)
