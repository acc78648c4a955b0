"""`VersionDiff`: two versions of a memory beside each other, and the steps to all the others."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from traitlets import Bool, Dict, Enum, Int, List, TraitError, Unicode, Union, validate

from memkernel import render
from memkernel.errors import MemkernelError, VersionNotFoundError
from memkernel.handle.diff import Diff, version_name
from memkernel.handle.history import History
from memkernel.handle.reading import StoreReading
from memkernel.handle.store import Store
from memkernel.jupyter.preferences import Preferences
from memkernel.jupyter.widgets.comparing import PREVIOUS, Comparing, Pair, view_of
from memkernel.jupyter.widgets.diff_rows import STATE
from memkernel.jupyter.widgets.rows import iso, marked, version_row
from memkernel.jupyter.widgets.widget import request
from memkernel.models import Lineage, MemoryVersion
from memkernel.render.marks import cut
from memkernel.textdiff import TextDiff

MOST_VERSIONS: Final = 200
_VERSIONS_BYTES: Final = 18_000
_PATH_CHARACTERS: Final = 300

_ON: Final = {"on": True, "off": False}
# The traits that a person toggles -> the setting that keeps them for the next diff, and its values as the trait's.
_REMEMBERED: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "mode": ("diff_mode", {}),
    "word_level": ("diff_words", _ON),
    "fold": ("diff_fold", _ON),
    "context": ("diff_context", {}),
    "ignore_ws": ("diff_whitespace", {"show": False, "ignore": True}),
    "wrap": ("diff_wrap", _ON),
}
_log = logging.getLogger(__name__)


class VersionDiff(Comparing):
    """A version of a memory beside the one before it, or beside any other one that is pinned as the base.

    Events: `step` (index, base), `restored` (version), `redacted` (version, others).

    Attributes:
        path: of the memory, marked.
        store, store_name: the store's id, and its name, marked.
        versions: rows of the memory's versions around the pair, newest first: at most 200, and 18 KB of them.
        first, total: the ordinals of the first and the last version that there is.
        index: which version is looked at: its ordinal less one.
        base: what it is compared with: "prev", the index of another version, "" (nothing), or the id of a version of
            another memory.
        mode, word_level, fold, context, ignore_ws, wrap: how; what is set here is the next diff's default.
        view: what is seen of the pair at first.
    """

    path = Union([Unicode(), List()]).tag(sync=True)
    store = Unicode().tag(sync=True)
    store_name = Union([Unicode(), List()]).tag(sync=True)
    versions = List[Any]().tag(sync=True)
    first = Int(1).tag(sync=True)
    total = Int().tag(sync=True)
    index = Int().tag(sync=True)
    base = Union([Int(), Unicode()], default_value=PREVIOUS).tag(sync=True)
    mode = Enum(["auto", "split", "unified"], "auto").tag(sync=True)
    word_level = Bool(True).tag(sync=True)
    fold = Bool(True).tag(sync=True)
    context = Int(3, min=0).tag(sync=True)
    ignore_ws = Bool(False).tag(sync=True)
    wrap = Bool(True).tag(sync=True)
    view = Dict().tag(sync=True)

    def __init__(self, found: Diff, new: MemoryVersion, store: StoreReading, preferences: Preferences) -> None:
        self._preferences = preferences
        self._path = found.path
        self._memory_id = new.memory_id
        self._history = History(store)
        self._shown: tuple[Pair, TextDiff | None] | None = None
        self._looked_at: tuple[int, int | str] | None = None
        super().__init__(
            kind="diff",
            readonly=not isinstance(store, Store),
            path=marked(cut(found.path, _PATH_CHARACTERS)),
            store=store.id,
            store_name=marked(store.name),
            index=new.ordinal - 1,
            base=_base_of(found.old, new),
            **{name: _preferred(preferences, name) for name in _REMEMBERED},
        )
        self.compared_store = store
        self._look()
        self.observe(self._on_step, ["index", "base"])
        self.observe(self._on_option, list(_REMEMBERED))

    @classmethod
    def of(cls, found: Diff, preferences: Preferences) -> VersionDiff | None:
        """The widget of a diff; None where it is of two records alone, from which nothing can be stepped to."""
        if found.store is None or found.new is None:
            return None
        return cls(found, found.new, found.store, preferences)

    @validate("index", "base")
    def _known_version(self, proposal: Mapping[str, Any]) -> Any:
        """A person's mistake is told at once; the page steps only to what it knows."""
        value = proposal["value"]
        if isinstance(value, int) and self.total and not self.first <= value + 1 <= self.total:
            name = proposal["trait"].name
            raise TraitError(
                f"{name} is {value}: the versions of {self._path} are {self.first - 1} to {self.total - 1}"
            )
        return value

    # -- what is looked at ---------------------------------------------------------------------------

    def changed(self) -> None:
        """After a restore or a redaction: the same pair, as it is now; a path that was erased is named no more."""
        self._path = self._history.newest(self._memory_id).path or "(redacted)"
        self.path = marked(cut(self._path, _PATH_CHARACTERS))
        self._look()
        self.refresh_static(at_once=True)

    def _look(self) -> None:
        """Take what is looked at into the state, and into the static copy."""
        with self._turn:
            pair = self.pair(self._old_id(), self._id_at(self.index))
            context = self.context if self.fold else None
            found = self.text_diff(pair, ignore_whitespace=self.ignore_ws, context=context)
            shown = view_of(pair, found, 0, STATE)
            self._shown = pair, found
            with self.hold_sync():
                self._take_versions(pair)
                self.view = {**shown, "ignore_whitespace": self.ignore_ws, "context": context}
                self.as_of = iso(datetime.now(UTC))
            self._looked_at = self.index, self.base
        self.refresh_static()

    def _take_versions(self, pair: Pair) -> None:
        lineage = self._lineage(self.index + 1 + MOST_VERSIONS // 2)
        self.first, self.total = lineage.first_ordinal, lineage.last_ordinal
        of_pair = {side.id: side.version for side in pair if side.version and side.version.memory_id == self._memory_id}
        others = [version for version in lineage.versions if version.id not in of_pair]
        others.sort(key=lambda version: abs(version.ordinal - self.index - 1))
        self.versions = _fitting_rows([*of_pair.values(), *others])

    def _lineage(self, before: int) -> Lineage:
        return self._history.lineage(self._memory_id, before=before, limit=MOST_VERSIONS)

    @property
    def _rows(self) -> list[list[Any]]:
        return self.versions

    def _old_id(self) -> str:
        return self._id_at(self.base) if isinstance(self.base, int) else self.base

    def _id_at(self, index: int) -> str:
        """The id of the version with this index."""
        known = [row[0] for row in self._rows if row[1] == index + 1]
        if known:
            return known[0]
        found = [each.id for each in self._lineage(index + 2).versions if each.ordinal == index + 1]
        if not found:
            raise VersionNotFoundError(f"@{index + 1}", self._path)
        return found[0]

    # -- what a person does --------------------------------------------------------------------------

    @request
    def history(self, *, version: str, before: int | None = None) -> dict[str, Any]:
        """The same; what there is newer meanwhile can be stepped to."""
        told = super().history(version=version, before=before)
        if version in {row[0] for row in self._rows}:
            self.first, self.total = told["first"], told["total"]
        return told

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """What the page says: it tells of a failure by itself, at its own request for the same."""
        try:
            super().set_state(sync_data)
        except (MemkernelError, TraitError):
            _log.debug("a step of the page was not followed", exc_info=True)

    def _on_step(self, change: object) -> None:
        if self._looked_at == (self.index, self.base):  # both came in one message, and both are told
            return
        self._look()
        self.happened("step", index=self.index, base=self.base)

    def _on_option(self, change: Mapping[str, Any]) -> None:
        setting, values = _REMEMBERED[change["name"]]
        spelt = {value: text for text, value in values.items()}
        self._preferences.values[setting] = spelt.get(change["new"], change["new"])
        if change["name"] in ("fold", "context", "ignore_ws"):
            self._look()

    # -- without a kernel ----------------------------------------------------------------------------

    def plain(self) -> str:
        """The unified diff of the pair."""
        pair, found = self._seen()
        return render.diff_text(found, pair.old.text.name, pair.new.text.name, pair.notes)

    def static_html(self) -> str:
        """The diff of the pair with its words marked and its equal lines folded."""
        pair, found = self._seen()
        return render.diff_html(found, self._path, f"{self._label(pair, 0)} → {self._label(pair, 1)}", pair.notes)

    def _seen(self) -> tuple[Pair, TextDiff | None]:
        assert self._shown is not None  # since __init__
        return self._shown

    def _label(self, pair: Pair, which: int) -> str:
        version = pair[which].version
        if version is None:
            return "nothing" if pair[which].id == "" else "?"
        return f"@{version.ordinal}" if version.memory_id == self._memory_id else version_name(version, version.id)


def _base_of(old: MemoryVersion | None, new: MemoryVersion) -> int | str:
    """The base that makes the diff: the version before, where it is that one, so that a step takes it along."""
    if old is None:
        return PREVIOUS if new.ordinal == 1 else ""
    if old.memory_id != new.memory_id:
        return old.id
    return PREVIOUS if old.ordinal == new.ordinal - 1 else old.ordinal - 1


def _preferred(preferences: Preferences, trait: str) -> Any:
    setting, values = _REMEMBERED[trait]
    return values.get(preferences[setting], preferences[setting])


def _fitting_rows(versions: list[MemoryVersion]) -> list[list[Any]]:
    """Rows of the first versions, as many as there is room for; newest first."""
    left, kept = _VERSIONS_BYTES, list[list[Any]]()
    for row in map(version_row, versions[:MOST_VERSIONS]):
        left -= len(json.dumps(row))
        if left < 0 and len(kept) >= 2:  # the pair itself is always there
            break
        kept.append(row)
    return sorted(kept, key=lambda row: -row[1])
