"""One scene for each kind of widget: what is in the store, the cells that show it, and words that it must show.

The words stand in the live widget and in its static copy alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import memkernel as mk

USE: Final = '%memory use "Team notes" -q'


@dataclass(frozen=True)
class Scene:
    """A widget in a notebook.

    Attributes:
        name: the widget's `kind`.
        cells: the notebook's; the last one shows the widget.
        words: what can be read in it, live and in the static copy.
    """

    name: str
    cells: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def shown(self) -> int:
        """The number of the cell with the widget."""
        return len(self.cells)

    def __str__(self) -> str:
        return self.name


DIFF: Final = Scene("diff", (USE, "%memory diff /units.md"), ("Lengths are in", "metres", "SI"))
BROWSER: Final = Scene("browser", (USE, "%memory"), ("units.md", "plan.md"))
COMPARE: Final = Scene(
    "compare",
    (USE, "import memkernel as mk\nmk.connect().store('Team notes').compare(3)"),
    ("/units.md", "/plan.md"),
)
RUN: Final = Scene("run", (USE, "%%agent\nRemember that the standup is at 9:30"), ("standup", "scripted"))
SANDBOX: Final = Scene(
    "sandbox",
    (
        USE,
        "%sandbox start --backend local --store team-notes",
        "%%sandbox\nopen('/mnt/memory/team-notes/made.md', 'w').write('made here\\n');",
    ),
    ("/made.md", "not isolated", "done"),
)

SCENES: Final = (DIFF, BROWSER, COMPARE, RUN, SANDBOX)


def furnish(connection: mk.Connection) -> mk.Store:
    """The store that the scenes look at: a few memories, one with several versions, one deleted, one redacted."""
    notes = connection.store("Team notes", create=True)
    notes.write("/units.md", "# Units\n\nLengths are in feet.\n")
    notes.write("/units.md", "# Units\n\nLengths are in metres.\n")
    notes.write("/plan.md", "# Plan\n\n- Monday: weigh\n- Tuesday: write\n")
    notes.write("/units.md", "# Units\n\nLengths are in metres, as everything is in SI.\n\nTimes are in seconds.\n")
    notes.write("/plan.md", "# Plan\n\n- Monday: calibrate\n- Tuesday: write\n")
    notes.write("/team/people.md", "Ann\nBob\n")
    notes.write("/team/wifi.md", "hunter2\n")
    notes.write("/team/wifi.md", "Ask Ann.\n")
    notes.redact("/team/wifi.md", 1)
    notes.write("/old.md", "gone soon\n")
    notes.delete("/old.md")
    return notes
