"""How a report shows itself in Python: printed, in a notebook, and explained."""

from __future__ import annotations

import html as escaping

from tilewright.cli.render import report_view, speed_of, to_text
from tilewright.cli.render_answers import answers_view
from tilewright.records import EvalReport
from tilewright.scoring.report_text import reason_of

PLACE = "Write it to a file with `report.to_json()`, then: tilewright explain FILE"
"""Where to get the script that reproduces a failure."""


def line(report: EvalReport) -> str:
    """Return the verdict with the speed-up or the reason, in one line."""
    said = speed_of(report) if report.speedup is not None else reason_of(report)
    more = f", {said}" if said else ""
    return f"<EvalReport of {report.request.problem.id}: {report.verdict}{more}>"


def summary(report: EvalReport) -> str:
    """Return the text that `tilewright eval` prints."""
    return to_text(report_view(report)).rstrip()


def page(report: EvalReport) -> str:
    """Return the same as HTML. No part of it is the candidate's own markup."""
    return f'<pre style="white-space: pre-wrap">{escaping.escape(summary(report))}</pre>'


def explanation(report: EvalReport) -> str:
    """Return the text of `tilewright explain`; it writes no script."""
    return to_text(answers_view(report, PLACE)).rstrip()
