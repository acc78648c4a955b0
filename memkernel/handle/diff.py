"""`mk.Diff`: what changed between two versions of a memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memkernel import present, render
from memkernel.errors import InvalidInputError
from memkernel.models import Cause, MemoryVersion
from memkernel.textdiff import TextDiff, diff

if TYPE_CHECKING:
    from memkernel.handle.reading import StoreReading


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """Two versions of a memory and the difference of their texts.

    `old` is None where there was nothing before. A deleted version has no text: all its lines are gone.
    `text_diff` is None where one of them is redacted: its text is not known any more. `store` is where they are
    from, so that a view can step to other versions; None is a diff of two records alone. `cause` is the tool call that
    made `new`, where an agent did.
    """

    path: str
    old: MemoryVersion | None
    new: MemoryVersion | None
    text_diff: TextDiff | None
    store: StoreReading | None = field(default=None, compare=False)
    cause: Cause | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        path: str,
        old: MemoryVersion | None,
        new: MemoryVersion | None,
        store: StoreReading | None = None,
        cause: Cause | None = None,
    ) -> Diff:
        """Compare two versions that came with their contents.

        Raises:
            InvalidInputError: one came without (view="basic").
        """
        old_text, new_text = version_text(old), version_text(new)
        found = None if old_text is None or new_text is None else diff(old_text, new_text)
        return cls(path, old, new, found, store, cause)

    @property
    def added(self) -> int:
        """How many lines came."""
        return self.text_diff.added if self.text_diff else 0

    @property
    def removed(self) -> int:
        """How many lines went."""
        return self.text_diff.removed if self.text_diff else 0

    @property
    def patch(self) -> str:
        """The unified diff, exactly as `patch` and `git apply` want it."""
        return self.text_diff.unified(*self._names) if self.text_diff else ""

    def show(self) -> object:
        """Show it: interactively where the notebook can, as text elsewhere.

        Returns:
            The widget, which tells what the person does (`on_event`); None where there is none.
        """
        return present.show(self)

    def __str__(self) -> str:
        """The whole unified diff, with marks for what cannot be seen; `patch` is exact."""
        return self._text(None)

    def __repr__(self) -> str:
        return f"<memkernel.Diff {self.path} {self._change} +{self.added} −{self.removed}>"

    def _repr_html_(self) -> str:
        return render.diff_html(self.text_diff, self.path, self._change, self._notes)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self._text(render.TEXT_LINES), "text/html": self._repr_html_()}

    def _text(self, most_lines: int | None) -> str:
        return render.diff_text(self.text_diff, *self._names, self._notes, most_lines=most_lines)

    @property
    def _names(self) -> tuple[str, str]:
        return version_name(self.old, self.path), version_name(self.new, self.path)

    @property
    def _change(self) -> str:
        return " → ".join(f"@{version.ordinal}" if version else "nothing" for version in (self.old, self.new))

    @property
    def _notes(self) -> list[str]:
        return remarks(self.old, self.new, self.cause)


def remarks(old: MemoryVersion | None, new: MemoryVersion | None, cause: Cause | None = None) -> list[str]:
    """Why a text is missing, and what the texts do not show: a rename, and the tool call that made the new one."""
    notes = [absence(version) for version in (old, new) if version]
    if old and new and old.path and new.path and old.path != new.path:
        notes.append(f"renamed: {old.path} → {new.path}")
    if new and cause:
        notes.append(made_by(new, cause))
    return [note for note in notes if note]


def made_by(version: MemoryVersion, cause: Cause) -> str:
    """Which run, and which of its tool calls, made the version."""
    return f"@{version.ordinal} was made by {cause.run_id}, in its call {cause.tool_use_id}"


def version_name(version: MemoryVersion | None, path: str) -> str:
    """The version's name in a patch: `/a.md@3`; `path` is where its memory is, once it is redacted."""
    return "/dev/null" if version is None else f"{version.path or path}@{version.ordinal}"


def version_text(version: MemoryVersion | None) -> str | None:
    """The version's text; None once redacted.

    Raises:
        InvalidInputError: it came without its content.
    """
    if version is None or version.operation == "deleted":
        return ""
    if version.redacted_at is None and version.content is None:
        raise InvalidInputError(f"{version.id} came without its content", hint='Ask for it with view="full".')
    return version.content


def absence(version: MemoryVersion) -> str:
    """Why the version has no text; `""` where it has one."""
    if version.redacted_at:
        gone = "its text is gone, but notebooks saved earlier keep what they showed"
        return f"@{version.ordinal}: {render.redaction(version)}; {gone}"
    if version.operation == "deleted":
        by = f" by {version.created_by}" if version.created_by else ""
        return f"@{version.ordinal}: deleted{by} {render.moment_text(version.created_at)}"
    return ""
