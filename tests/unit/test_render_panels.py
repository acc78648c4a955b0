"""The copy of a panel: what fits into 60 lines and 24 KB, the newest first, and nothing that is markup."""

from __future__ import annotations

from memkernel.models import RefusedFile, StoreReport, SyncReport
from memkernel.render import HTML_BYTES, TEXT_LINES, PanelEntry, PanelSheet, panel_html, panel_text


def report(*paths: str) -> SyncReport:
    refused = tuple(RefusedFile(path, "it is not text") for path in paths)
    return SyncReport((StoreReport("memstore_1", "Team notes", "/mnt/memory/team-notes", refused=refused),))


def sheet(*entries: PanelEntry, put_aside: int = 0) -> PanelSheet:
    return PanelSheet(
        title="sandbox main: running: free for the next cell",
        remarks=["memory 512 MiB"],
        mounts=[{"store": "team-notes", "to save": 0}],
        entries=entries,
        put_aside=[{"path": f"/{number}.md"} for number in range(put_aside)],
    )


def test_everything_is_there_the_newest_cell_first() -> None:
    shown = sheet(PanelEntry("cell 2 · done", ["a note"], report("/b.csv")), PanelEntry("cell 1 · done"), put_aside=1)
    for text in (panel_text(shown), panel_html(shown)):
        for part in ("sandbox main: running", "memory 512 MiB", "team-notes", "/0.md", "a note", "/b.csv", "refused"):
            assert part in text
        assert text.index("cell 2 · done") < text.index("cell 1 · done")


def test_of_many_cells_the_newest_are_kept_and_the_others_counted() -> None:
    entries = [
        PanelEntry(f"cell {500 - number}", [], report(*(f"/{'d' * 50}/{n}" for n in range(5)))) for number in range(500)
    ]
    text, html = panel_text(sheet(*entries, put_aside=50)), panel_html(sheet(*entries, put_aside=50))
    assert len(text.split("\n")) <= TEXT_LINES
    assert len(html.encode()) <= HTML_BYTES
    for shown in (text, html):
        assert "cell 500" in shown
        assert "earlier ones are not shown" in shown
        assert "cell 1 " not in shown


def test_one_cell_with_very_many_files_leaves_room_for_the_rest() -> None:
    html = panel_html(
        sheet(PanelEntry("cell 1", [], report(*(f"/{n}.csv" for n in range(3_000)))), PanelEntry("cell 0"))
    )
    assert len(html.encode()) <= HTML_BYTES
    assert "of 3,000 files shown" in html
    assert "cell 0" in html


def test_code_and_names_are_no_markup_and_steer_no_terminal() -> None:
    shown = sheet(PanelEntry("cell 1 · <script>alert(1)</script>\x1b[2J", ["<b>\x07"]))
    assert "<script>" not in panel_html(shown)
    assert "<b>⟨" not in panel_html(shown)
    assert "\x1b" not in panel_text(shown)
    assert "\x07" not in panel_text(shown)
