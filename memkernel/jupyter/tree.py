"""`%memory tree`: everything below a path."""

from __future__ import annotations

from dataclasses import dataclass

from memkernel.render import tree_html, tree_text


@dataclass(frozen=True, slots=True, repr=False)
class Tree:
    """Memory paths, shown as a tree; `paths` has all of them."""

    root: str
    paths: tuple[str, ...]

    def __repr__(self) -> str:
        return tree_text(self.root, self.paths)

    def _repr_html_(self) -> str:
        return tree_html(self.root, self.paths)
