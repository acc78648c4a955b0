"""`Comparing`: the requests of every widget that shows a diff; and restore and redact, which begin at one."""

from __future__ import annotations

import contextvars
import logging
import sys
import threading
from collections import OrderedDict
from typing import Any, Final, NamedTuple

from memkernel.errors import HistoryPrunedError, InvalidInputError, MemkernelError, NotConfirmedError, RefusedError
from memkernel.handle.diff import absence, made_by, remarks, version_name, version_text
from memkernel.handle.history import Erasure, History, restore
from memkernel.handle.reading import StoreReading
from memkernel.handle.store import Store
from memkernel.jupyter.widgets.diff_rows import PAGE, Room, lines_page, page_of, row_count
from memkernel.jupyter.widgets.rows import version_row
from memkernel.jupyter.widgets.widget import MemoryWidget, request
from memkernel.models import Cause, MemoryVersion
from memkernel.render import one_line, version_line
from memkernel.render.diffs import spoken, summary
from memkernel.textdiff import TextDiff, diff
from memkernel.textdiff.lines import lines_of

PREVIOUS: Final = "prev"
_PRUNED: Final = "pruned"
_ERASED: Final = (
    "The text, path, size and hash of @{} are erased for ever. Its number, its actor and its time stay. "
    "Notebooks that were saved earlier keep what they showed."
)
_NOTE_CHARACTERS: Final = 400
_NAME_CHARACTERS: Final = 200
_log = logging.getLogger(__name__)


class Text(NamedTuple):
    """A text to compare. A `content` of None is not known, and the note says why; the name is for a patch."""

    content: str | None
    name: str = ""
    note: str = ""

    @classmethod
    def of(cls, version: MemoryVersion) -> Text:
        """The text of a version that came with its content."""
        return cls(version_text(version), version_name(version, version.id), absence(version))


class Side(NamedTuple):
    """One side of a diff: its id, its text, the version that it is, if it is one, and the tool call that made that."""

    id: str
    text: Text
    version: MemoryVersion | None = None
    cause: Cause | None = None

    def named(self, *, with_path: bool) -> str:
        """What stands above it: of a version which one it is, by whom and when."""
        if self.version is not None:
            return version_line(self.version, with_path=with_path)
        return one_line(self.text.name, _NAME_CHARACTERS) if self.id else "nothing"


class Pair(NamedTuple):
    """What is compared with what."""

    old: Side
    new: Side

    @property
    def names(self) -> list[str]:
        """What stands above the two."""
        memories = {side.version.memory_id for side in self if side.version}
        return [side.named(with_path=len(memories) > 1) for side in self]

    @property
    def notes(self) -> list[str]:
        """Why a text is missing, and what the texts do not show."""
        return [*self.warnings, *self.made[:1]]

    @property
    def warnings(self) -> list[str]:
        """The same without who made the new one."""
        own = [side.text.note for side in self if side.version is None and side.text.note]
        return [*own, *remarks(self.old.version, self.new.version)]

    @property
    def made(self) -> list[str]:
        """Who made the new one, where that was a tool call: a sentence, the run's id and the call's."""
        version, cause = self.new.version, self.new.cause
        return [made_by(version, cause), cause.run_id, cause.tool_use_id] if version and cause else []


NOTHING: Final = Side("", Text("", "/dev/null"))


class Differences:
    """The last diffs that were asked for: a page asks for the next rows of the same one."""

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[object, ...], TextDiff] = OrderedDict()

    def of(self, pair: Pair, *, ignore_whitespace: bool, context: int | None) -> TextDiff | None:
        """The diff of two texts; None where one of them is not known."""
        old, new = pair.old.text.content, pair.new.text.content
        if old is None or new is None:
            return None
        # By the texts, not by their ids: one that is redacted meanwhile is never shown from here.
        key = old, new, ignore_whitespace, context
        with self._lock:
            found = self._known.pop(key, None)
        if found is None:
            equal_lines = sys.maxsize if context is None else context
            found = diff(old, new, ignore_whitespace=ignore_whitespace, context=equal_lines)
        with self._lock:
            self._known[key] = found
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return found

    def clear(self) -> None:
        """Forget all texts."""
        with self._lock:
            self._known.clear()


class Comparing(MemoryWidget):
    """A widget that compares texts: of versions, and of its own.

    Attributes:
        compared_store: whose versions are compared, where that is one store.
    """

    def __init__(self, **traits: Any) -> None:
        self.compared_store: StoreReading | None = None
        self._differences = Differences()
        super().__init__(**traits)

    # -- for the widgets -----------------------------------------------------------------------------

    def store_of(self, version: str) -> StoreReading:
        """The store of the version with this id."""
        if self.compared_store is None:
            raise RefusedError(f"{version} cannot be read here: this view has no store")
        return self.compared_store

    def own_text(self, text_id: str) -> Text | None:
        """The text with this id, if it is one that is no version's."""
        return None

    def changed(self) -> None:
        """Something was restored or redacted: show what there is now."""

    def erased(self) -> None:
        """Forget the texts, and show what there is now."""
        with self._turn:
            self._differences.clear()
            try:
                self.changed()
            except MemkernelError:
                _log.debug("what was erased could not be read again", exc_info=True)

    def _tell_others(self) -> None:
        """In a thread of its own: another view may be waiting for this one at the same time."""
        if self.shown_in is not None:
            tell = [self.shown_in[0].living.erased, self]
            threading.Thread(target=contextvars.copy_context().run, args=tell, daemon=True).start()

    def pair(self, old: str, new: str) -> Pair:
        """The two sides. `old` may be "prev": the version before `new`, or nothing."""
        fresh = self._side(new)
        if old not in (PREVIOUS, _PRUNED):
            return Pair(self._side(old), fresh)
        if fresh.version is None:
            raise InvalidInputError(f"nothing comes before {new!r}, which is no version")
        try:
            before = History(self.store_of(new)).before(fresh.version, view="full")
        except HistoryPrunedError as error:
            return Pair(Side(_PRUNED, Text(None, note=str(error))), fresh)
        return Pair(_side_of(before) if before else NOTHING, fresh)

    def text_diff(self, pair: Pair, *, ignore_whitespace: bool, context: int | None) -> TextDiff | None:
        """The difference of the two; None where a text is not known."""
        return self._differences.of(pair, ignore_whitespace=ignore_whitespace, context=context)

    def _side(self, text_id: str) -> Side:
        if not text_id:
            return NOTHING
        own = self.own_text(text_id)
        if own is not None:
            return Side(text_id, own)
        history = History(self.store_of(text_id))
        version = history.version(text_id)
        return _side_of(version, history.cause(version))

    # -- what the page asks for ----------------------------------------------------------------------

    @request
    def diff(
        self, *, old: str, new: str, ignore_whitespace: bool = False, start: int = 0, context: int | None = 3
    ) -> dict[str, Any]:
        """The rows from `start` on; a context of None folds nothing."""
        pair = self.pair(old, new)
        found = self.text_diff(pair, ignore_whitespace=ignore_whitespace, context=context)
        view = view_of(pair, found, max(start, 0), PAGE)
        return {**view, "ignore_whitespace": ignore_whitespace, "context": context, "cut": False}

    @request
    def lines(self, *, new: str, start: int, count: int) -> dict[str, Any]:
        """Equal lines of a fold: `count` from line `start` (1-based) of the new text on."""
        return {"rows": lines_page(lines_of(self._side(new).text.content or ""), max(start, 1), max(count, 0))}

    @request
    def patch(self, *, old: str, new: str) -> dict[str, str]:
        """The unified diff, exactly as `patch` and `git apply` want it."""
        pair = self.pair(old, new)
        found = self.text_diff(pair, ignore_whitespace=False, context=3)
        if found is None:
            raise RefusedError(" ".join(pair.notes), hint="Choose another version.")
        return {"text": found.unified(pair.old.text.name, pair.new.text.name)}

    @request
    def history(self, *, version: str, before: int | None = None) -> dict[str, Any]:
        """The versions of this version's memory with an ordinal below `before`, 200 at most, newest first."""
        history = History(self.store_of(version))
        lineage = history.lineage(history.version(version, view="basic").memory_id, before=before)
        rows = [version_row(each) for each in lineage.versions]
        return {"versions": rows, "total": lineage.last_ordinal, "first": lineage.first_ordinal}

    @request
    def restore(self, *, version: str, path: str | None = None, head: str | None = None) -> dict[str, Any]:
        """Write an earlier text again; where the head is not the one that the person was shown, say so (fault 25)."""
        done = restore(self._writable(version), version, path=path or "", head=head or "")
        if done.moved:
            newest = version_line(done.version, with_path=False)
            sentence = f"Meanwhile there is {newest}. Write the older text as a new version all the same?"
            return {"moved": version_row(done.version), "sentence": sentence}
        self.changed()
        self.happened("restored", version=done.version.id)
        return {"version": version_row(done.version)}

    @request
    def redaction(self, *, version: str) -> dict[str, Any]:
        """What the dialog has to say before this version is erased; or the `reason` why it cannot be."""
        found = History(self.store_of(version)).erasure(version)
        return {
            "ordinal": found.version.ordinal,
            "others": len(found.others),
            "is_head": found.is_head,
            "reason": found.refusal,
            "sentence": " ".join(filter(None, (_ERASED.format(found.version.ordinal), found.kept, found.transcripts))),
            "same": _others_too(len(found.others)),
        }

    @request
    def redact(self, *, version: str, confirm: str, others: bool = False) -> dict[str, Any]:
        """Erase a version's text, and where `others` says so that of all others that hold it, for ever."""
        store = self._writable(version)
        found = History(store).erasure(version)
        if found.is_head:
            raise RefusedError(found.refusal)
        ordinal = str(found.version.ordinal)
        if confirm.strip().removeprefix("@") != ordinal:
            raise NotConfirmedError(
                f"the redaction of @{ordinal} was not confirmed", hint=f"Type {ordinal}. Nothing was erased."
            )
        try:
            redacted = [store.redact(None, each) for each in _doomed(found, others=others)]
        finally:
            self._differences.clear()
            self._tell_others()
            self.changed()
        self.happened("redacted", version=version, others=[each.id for each in redacted[:-1]])
        return {"versions": [version_row(each) for each in redacted], "kept": found.kept}

    def _writable(self, version: str) -> Store:
        store = self.store_of(version)
        if self.readonly or not isinstance(store, Store):
            raise RefusedError("this view can be read only", hint="`%memory restore` and `%memory redact` change it.")
        return store


def view_of(pair: Pair, found: TextDiff | None, start: int, room: Room) -> dict[str, Any]:
    """What the page draws of a diff: the rows from `start` on, and what is told of the whole."""
    page = page_of(found, start, room) if found else None
    return {
        "old": pair.old.id,
        "new": pair.new.id,
        "start": start,
        "rows": page.rows if page else [],
        "next": page.next if page else None,
        "total": row_count(found) if found else 0,
        "added": found.added if found else 0,
        "removed": found.removed if found else 0,
        "places": found.places if found else 0,
        "summary": summary(found) if found else "",
        "said": spoken(found) if found else "",
        "names": pair.names,
        "notes": [one_line(note, _NOTE_CHARACTERS) for note in pair.warnings],
        "made": pair.made,
        "cut": bool(page and page.cut),
    }


def _side_of(version: MemoryVersion, cause: Cause | None = None) -> Side:
    return Side(version.id, Text.of(version), version, cause)


def _doomed(found: Erasure, *, others: bool) -> list[str]:
    """The version itself last: if the others fail, it still has the hash by which they are found the next time."""
    return [*(each.id for each in found.others if others), found.version.id]


def _others_too(count: int) -> str:
    """The words beside a box that can be ticked; `""` where nothing else holds the text."""
    which = "version" if count == 1 else f"{count:,} versions"
    return f"also redact the other {which} holding this text" if count else ""
