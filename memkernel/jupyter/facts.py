"""Names and values under a title: what a command tells of one thing."""

from __future__ import annotations

from dataclasses import dataclass

from memkernel.render import facts_html, facts_text


@dataclass(frozen=True, slots=True, repr=False)
class Facts:
    """Facts about one thing; `values` has them by their names."""

    title: str
    values: dict[str, object]

    def __repr__(self) -> str:
        return facts_text(self.title, self.values.items())

    def _repr_html_(self) -> str:
        return facts_html(self.title, self.values.items())
