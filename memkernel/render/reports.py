"""What a cell in a sandbox did, and what became of its files: a line a file, the ones to look at first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from memkernel.models import CellResult, CellStatus, Outcome, ReportLine, StoreReport, SyncReport
from memkernel.render.cells import counted, size_text
from memkernel.render.marks import html_cut, html_line, one_line, visible_cut
from memkernel.render.style import TEXT_LINES, first_lines, fitting, framed, line_ends
from memkernel.render.things import html_of, text_of

LineCounts: TypeAlias = Mapping[str, tuple[int, int]]
"""By the id of a version: how many lines came with it, and how many went."""

PATH_CHARACTERS: Final = 1_024
REASON_CHARACTERS: Final = 400
OUTPUT_CHARACTERS: Final = 2_000

_COMMAND: Final = re.compile(r"`([^`]+)`")

_SIGNS: Final[Mapping[Outcome, str]] = {
    "created": "+",
    "modified": "~",
    "deleted": "−",
    "merged": "⇄",
    "pulled": "↓",
    "removed": "↓",
    "refused": "!",
    "not saved": "✗",
    "restored": "✗",
    "not synced": "✗",
}
_CLASSES: Final[Mapping[Outcome, str]] = {
    "created": "came",
    "modified": "",
    "deleted": "went",
    "merged": "",
    "pulled": "faint",
    "removed": "faint",
    "refused": "bad",
    "not saved": "bad",
    "restored": "bad",
    "not synced": "bad",
}
_ENDINGS: Final[Mapping[CellStatus, str]] = {
    "ok": "done",
    "error": "error",
    "timeout": "timed out",
    "interrupted": "interrupted",
    "died": "the kernel died",
    "out_of_memory": "out of memory",
}


def status_words(status: CellStatus) -> str:
    """How a cell ended, in words: `done`, `timed out`"""
    return _ENDINGS[status]


def duration_text(seconds: float) -> str:
    """`85 ms`, `1.2 s`, `3 min 5 s`"""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


# -- a report in words -------------------------------------------------------------------------------


def report_text(report: SyncReport, counts: LineCounts | None = None, *, title: str = "") -> str:
    """A line for each changed file of each store, at most 60 lines in all.

    Args:
        report: what the sync did.
        counts: how many lines each version brought and took; of versions that are not in it nothing is said.
        title: what comes before the outcome, as `main · 85 ms`.
    """
    lines = [" · ".join(part for part in (title, report_summary(report)) if part)]
    for store in report.stores:
        lines += store_text(store, counts or {}, named=len(report.stores) > 1)
    return "\n".join(first_lines([one_line(line) for line in lines]))


def report_html(report: SyncReport, counts: LineCounts | None = None, *, title: str = "") -> str:
    """The same as HTML."""
    return framed(report_body(report, counts or {}, title))


def report_summary(report: SyncReport) -> str:
    """What became of the files, in a few words: `2 files saved in team-notes`, `nothing changed`"""
    parts = [part for store in report.stores for part in _store_summary(store)]
    return ", ".join(parts) if parts else "nothing changed" if report.stores else "no store is mounted"


def report_line(report: SyncReport) -> str:
    """The whole report in one line with the paths, as far as there is room; nothing where nothing happened."""
    parts = list[str]()
    for store in report.stores:
        words = list(_store_summary(store))
        if words:
            paths = [line.path for line in store.lines() if line.path]
            shown = f" ({', '.join(paths[:3])}{', …' if len(paths) > 3 else ''})" if paths else ""
            more = (
                f": {store.trouble}" if store.trouble else "; `%sandbox changes` shows both" if store.conflicts else ""
            )
            parts.append(", ".join(words) + shown + more)
    return one_line("; ".join(parts), REASON_CHARACTERS)


def _store_summary(store: StoreReport) -> Iterator[str]:
    many = Counter(line.outcome for line in store.lines())
    slug = store.slug
    if store.trouble is not None:
        yield f"{slug} could not be synced"
    if saved := many["created"] + many["modified"] + many["deleted"] + many["merged"]:
        yield f"{counted(saved, 'change')} saved in {slug}"
    if many["not saved"]:
        yield f"{counted(many['not saved'], 'change')} NOT saved in {slug}"
    if many["restored"]:
        yield f"{counted(many['restored'], 'deletion')} held back in {slug}"
    if many["refused"]:
        yield f"{counted(many['refused'], 'file')} refused by {slug}"
    if brought := many["pulled"] + many["removed"]:
        yield f"{counted(brought, 'file')} brought up to {slug}"


def outcome_text(line: ReportLine) -> str:
    """What became of a path, with its sign: `~ modified`, `✗ not saved`"""
    return f"{_SIGNS[line.outcome]} {line.outcome}"


def line_facts(line: ReportLine, counts: LineCounts) -> str:
    """Of a version what it changed: `+2 −1 · @3 · 1.7 KB`; nothing where none was made."""
    return " · ".join(fact for fact in _facts(line, counts) if fact)


def _facts(line: ReportLine, counts: LineCounts) -> tuple[str, str, str]:
    """Of a version the lines that it brought and took, its ordinal and its size."""
    if line.version is None:
        return "", "", ""
    size = line.version.content_size_bytes
    return (
        _lines_changed(counts.get(line.version.id)),
        f"@{line.version.ordinal}",
        "" if size is None else size_text(size),
    )


def _lines_changed(count: tuple[int, int] | None) -> str:
    if count is None:
        return ""
    came, went = count
    return " ".join(part for part in (f"+{came:,}" if came else "", f"−{went:,}" if went else "") if part) or "±0"


def _ways_out(store: StoreReport) -> Iterator[str]:
    """What a person can do about it, a sentence a kind; of a trouble the error tells, which knows when it was."""
    if store.conflicts:
        yield "The store's texts are in the files now, yours were put aside: `%sandbox changes` shows both."
    if store.held_back is not None:
        yield "The cell left no file at all, so nothing was deleted. `%sandbox sync --allow-wipe` deletes them."
    if store.refused:
        yield "A refused file stays in the sandbox and is looked at again once it changes."
    yield from store.notes


# -- as text -----------------------------------------------------------------------------------------


def store_text(store: StoreReport, counts: LineCounts, *, named: bool) -> list[str]:
    lines = store.lines()
    ways_out = list(_ways_out(store))
    if not lines and not ways_out:
        return []
    heading = [f"  {store.mount_path}"] if named else []
    return [*heading, *_columns(lines, counts), *(f"    {sentence}" for sentence in ways_out)]


def _columns(lines: Sequence[ReportLine], counts: LineCounts) -> list[str]:
    path_width = min(max((len(line.path) for line in lines), default=0), 40)
    facts = [_facts(line, counts) for line in lines]
    widths = [max((len(each[column]) for each in facts), default=0) for column in (0, 1)]
    return [
        f"  {_SIGNS[line.outcome]} {line.outcome:<10} {line.path:<{path_width}}  "
        f"{f'{came:<{widths[0]}}  {version:<{widths[1]}}  {size}' if line.version else line.reason}".rstrip()
        for line, (came, version, size) in zip(lines, facts, strict=True)
    ]


# -- as HTML -----------------------------------------------------------------------------------------


def report_body(report: SyncReport, counts: LineCounts, title: str, *, beside: int = 0) -> str:
    head = _head_html(report, title)
    rows = [(store, line) for store in report.stores for line in store.lines()]
    named = len(report.stores) > 1
    drawn = fitting(
        (_row_html(store, line, counts, named=named) for store, line in rows), beside=beside + len(head.encode())
    )
    table = f"<table><tbody>{''.join(drawn)}</tbody></table>" if drawn else ""
    more = f'<p class="faint">{len(drawn):,} of {len(rows):,} files shown</p>' if len(drawn) < len(rows) else ""
    sentences = dict.fromkeys(sentence for store in report.stores for sentence in _ways_out(store))
    ways_out = "".join(f'<p class="faint">{_sentence_html(each)}</p>' for each in list(sentences)[:8])
    return head + table + more + ways_out


def _head_html(report: SyncReport, title: str) -> str:
    kind = "faint" if report.ok else "bad"
    words = " · ".join(part for part in (title, report_summary(report)) if part)
    return f'<p class="{kind}">{html_line(words, REASON_CHARACTERS)}</p>'


def remark_html(sentence: str) -> str:
    """A sentence of memkernel's own, its commands as code."""
    return framed(f"<p>{_sentence_html(sentence)}</p>")


def _sentence_html(sentence: str) -> str:
    """With its commands, which stand between backticks, as code."""
    html = html_line(sentence, REASON_CHARACTERS)
    return _COMMAND.sub(r"<code>\1</code>", html)


def _row_html(store: StoreReport, line: ReportLine, counts: LineCounts, *, named: bool) -> str:
    where = f"{store.mount_path}{line.path}" if named else line.path
    cells = [
        f"<td><span{_class(_CLASSES[line.outcome])}>{_SIGNS[line.outcome]} {line.outcome}</span></td>",
        f"<td><code>{html_line(where, PATH_CHARACTERS)}</code></td>",
    ]
    if line.version is None:
        cells.append(f'<td class="w" colspan="3">{html_line(line.reason, REASON_CHARACTERS)}</td>')
    else:
        cells += [f'<td class="n">{each}</td>' for each in _facts(line, counts)]
    return f"<tr>{''.join(cells)}</tr>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


# -- a cell ------------------------------------------------------------------------------------------


def result_text(result: CellResult, counts: LineCounts | None = None, *, title: str = "") -> str:
    """A cell's output, how it ended, and its report, at most 60 lines."""
    tail = [result_line(result, title), *(f"  {note}" for note in result.notes)]
    if result.report is not None:
        tail += report_text(result.report, counts).split("\n")
    lines = line_ends(_output_lines(result), max(TEXT_LINES - len(tail), 8))
    return "\n".join(visible_cut(line, OUTPUT_CHARACTERS) for line in [*lines, *tail][-TEXT_LINES:])


def result_html(result: CellResult, counts: LineCounts | None = None, *, title: str = "") -> str:
    """The same as HTML."""
    kind = "faint" if result.ok else "bad"
    notes = "".join(f"<p>{html_line(note, REASON_CHARACTERS)}</p>" for note in result.notes[:8])
    head = f'<p class="{kind}">{html_line(result_line(result, title), REASON_CHARACTERS)}</p>{notes}'
    report = "" if result.report is None else report_body(result.report, counts or {}, "", beside=6_000)
    lines = line_ends(_output_lines(result), TEXT_LINES)
    drawn = fitting((f"{html_cut(line, OUTPUT_CHARACTERS)}\n" for line in lines), beside=len((head + report).encode()))
    output = f'<pre tabindex="0"><span>{"".join(drawn)}</span></pre>' if drawn else ""
    return framed(output, head, report)


def result_line(result: CellResult, title: str = "") -> str:
    """How a cell ended and how long it took: `main · done · 85 ms`, `error: ZeroDivisionError · 1.2 s`"""
    how = status_words(result.status)
    if result.error is not None and result.status == "error":
        how = f"{how}: {result.error.ename}"
    elif result.exit_code:
        how = f"{how}: exit status {result.exit_code}" if result.status == "error" else how
    return " · ".join(part for part in (title, how, duration_text(result.duration_s)) if part)


def _output_lines(result: CellResult) -> list[str]:
    pieces = [result.stdout, result.stderr, result.result or ""]
    if result.error is not None:
        pieces.append(f"{result.error.ename}: {result.error.evalue}")
    return [line for piece in pieces if piece for line in piece.removesuffix("\n").split("\n")]


# -- wherever a record is shown ----------------------------------------------------------------------


@text_of.register
def _(thing: SyncReport) -> str:
    return report_text(thing)


@html_of.register
def _(thing: SyncReport) -> str:
    return report_html(thing)


@text_of.register
def _(thing: StoreReport) -> str:
    return report_text(SyncReport((thing,)))


@html_of.register
def _(thing: StoreReport) -> str:
    return report_html(SyncReport((thing,)))


@text_of.register
def _(thing: CellResult) -> str:
    return result_text(thing)


@html_of.register
def _(thing: CellResult) -> str:
    return result_html(thing)
