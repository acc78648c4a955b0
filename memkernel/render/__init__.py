"""Records, tables, diffs, trees and runs as plain text and as HTML. Pure, and everything is escaped.

`text_of` and `html_of` take any record or list of records. Plain text has at most 60 lines, or rows of a
table; HTML at most 24 KB, no script, no link, nothing from elsewhere, and reads well without its style.
What was stored is never markup, and characters that cannot be seen are shown as marks (`marks`).
"""

from __future__ import annotations

from memkernel.render.cells import Cell, code, counted, moment, moment_text, size, size_text
from memkernel.render.diffs import diff_html, diff_text
from memkernel.render.lists import records_html, records_text, row_of
from memkernel.render.marks import html_text, one_line, visible
from memkernel.render.panels import PanelEntry, PanelSheet, panel_html, panel_text
from memkernel.render.reports import (
    LineCounts,
    duration_text,
    line_facts,
    outcome_text,
    remark_html,
    report_html,
    report_line,
    report_summary,
    report_text,
    result_html,
    result_text,
    status_words,
)
from memkernel.render.requests import request_html, request_text
from memkernel.render.runs import RUN_WORDS, caused_row, dollars, dollars_text, tokens, who_answered
from memkernel.render.store_changes import (
    CHANGE_SIGNS,
    Between,
    change_note,
    change_path,
    changes_summary,
    lines_text,
    point_text,
    store_changes_html,
    store_changes_text,
)
from memkernel.render.style import HTML_BYTES, TEXT_LINES
from memkernel.render.tables import facts_html, facts_text, table_html, table_text
from memkernel.render.things import html_of, redaction, text_of, version_line
from memkernel.render.transcripts import TranscriptEntry, transcript_html, transcript_text
from memkernel.render.trees import tree_html, tree_text

__all__ = [
    "CHANGE_SIGNS",
    "HTML_BYTES",
    "RUN_WORDS",
    "TEXT_LINES",
    "Between",
    "Cell",
    "LineCounts",
    "PanelEntry",
    "PanelSheet",
    "TranscriptEntry",
    "caused_row",
    "change_note",
    "change_path",
    "changes_summary",
    "code",
    "counted",
    "diff_html",
    "diff_text",
    "dollars",
    "dollars_text",
    "duration_text",
    "facts_html",
    "facts_text",
    "html_of",
    "html_text",
    "line_facts",
    "lines_text",
    "moment",
    "moment_text",
    "one_line",
    "outcome_text",
    "panel_html",
    "panel_text",
    "point_text",
    "records_html",
    "records_text",
    "redaction",
    "remark_html",
    "report_html",
    "report_line",
    "report_summary",
    "report_text",
    "request_html",
    "request_text",
    "result_html",
    "result_text",
    "row_of",
    "size",
    "size_text",
    "status_words",
    "store_changes_html",
    "store_changes_text",
    "table_html",
    "table_text",
    "text_of",
    "tokens",
    "transcript_html",
    "transcript_text",
    "tree_html",
    "tree_text",
    "version_line",
    "visible",
    "who_answered",
]
