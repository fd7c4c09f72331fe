"""The short view of a report: three questions and their answers, at most `MAX_LINES` lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tilewright.cli import render
from tilewright.cli.output import printable
from tilewright.records import Correct, EvalReport, Failed, Rejected, Unjudged
from tilewright.records.codes import LabelName
from tilewright.scoring.bottlenecks import advice
from tilewright.scoring.report_text import cut, finding_text, over_cases

MAX_LINES = 40
"""Lines of the view on a terminal of usual width: what fits one screen."""
MAX_FINDINGS, MAX_LABELS, MAX_CASES, MAX_ADVICE, MAX_MESSAGE = 2, 2, 4, 3, 6
"""Most items of each kind that the view shows; it counts the others."""
MAX_LINE, MAX_ITEM, MAX_SENTENCE = 100, 200, 300
"""Most characters of a message's line, of a finding or label, and of another text: about one line,
two and three."""
FULL = "--full shows them"


def answers_view(report: EvalReport, script: str) -> RenderableType:
    """Return the answers. `script` describes the script that reproduces a failure."""
    head = Text(report.verdict, style=render.STYLES[report.verdict])
    head.append(f"  {render.judged(report)}", style="default not bold")
    sections: list[tuple[str, list[RenderableType]]] = [
        ("What is the verdict, and why?", _verdict(report, script)),
        ("How fast is it, and how sure is that?", _speed(report)),
        ("What limits it, and what can be tried?", _limits(report)),
    ]
    parts: list[RenderableType] = [head]
    for question, answer in sections:
        parts += ["", Text(question, style="bold")]
        parts += [Padding(item, (0, 0, 0, 2)) for item in answer]
    return Group(*parts)


def _verdict(report: EvalReport, script: str) -> list[RenderableType]:
    decisive = report.outcome.findings if isinstance(report.outcome, Rejected) else ()
    # The findings that decide are the reason; they come first.
    found = [*decisive, *(item for item in report.findings if item not in decisive)]
    untold = not isinstance(report.outcome, Correct | Rejected)
    said = [render.reason(report)] if untold else []
    said += _rest_of(report)
    said += _listed("finding", [finding_text(item) for item in found], MAX_FINDINGS)
    said.append(f"Outputs: {render.outputs_text(report.cases)}.")
    labels = [f"{item.name}: {item.detail}" for item in report.labels]
    said += _listed("label", labels, MAX_LABELS)
    missing = [item.name for item in report.isolation if not item.active]
    if missing:
        said.append(f"Isolation layers that are not active: {', '.join(missing)}.")
    shown: list[RenderableType] = [_text(item) for item in said if item]
    if not isinstance(report.outcome, Correct):
        # Uncut, because it ends with a command to copy.
        shown.append(Text(printable(f"Reproducer: {script}")))
    return shown


def _rest_of(report: EvalReport) -> list[str]:
    """Return the lines of a failure's message that its reason leaves out."""
    if not isinstance(report.outcome, Failed | Unjudged):
        return []
    reason = render.reason(report)
    lines = [line for line in report.outcome.message.split("\n") if line.strip()]
    rest = [cut(line, MAX_LINE) for line in lines if cut(line) not in reason]
    return _listed("", rest, MAX_MESSAGE)


def _speed(report: EvalReport) -> list[RenderableType]:
    if not report.comparisons:
        untimed = [item.detail for item in report.labels if item.name == LabelName.NOT_TIMED]
        return [_text(untimed[0] if untimed else "Nothing was timed.")]
    found: list[RenderableType] = []
    if report.speedup is not None:
        found.append(_text(f"{render.speed_of(report)} against {over_cases(report)}."))
    shown = sorted(report.comparisons, key=lambda item: -item.candidate.median_us)[:MAX_CASES]
    kept = [item for item in report.comparisons if item in shown]
    found.append(render.comparisons_table(kept))
    if more := len(report.comparisons) - len(kept):
        found.append(_text(f"{more} faster rows are not shown; {FULL}."))
    processes = max(len(item.blocks_per_process) for item in report.comparisons)
    blocks = sum(item.blocks for item in report.comparisons)
    counted = f"{blocks} blocks of four calls" if blocks > 1 else "one block of four calls"
    also = f" in {processes} process pairs" if processes > 1 else ""
    known = any(item.speedup_low is not None for item in report.comparisons)
    sure = "The interval covers 95 %" if known else "There is no interval by the published rule"
    found.append(_text(f"{sure}; the calls are {counted}{also}."))
    return [*found, _text(f"Timed calls: {render.timed_text(report)}.")]


def _limits(report: EvalReport) -> list[RenderableType]:
    sentences = advice(report)
    if sentences:
        return [_text(item) for item in _listed("", sentences, MAX_ADVICE)]
    if isinstance(report.outcome, Correct) and report.comparisons:
        return [_text("No figure shows a limit: the work of this problem could not be counted.")]
    return [_text("Only a correct candidate that was timed has a limit to look for.")]


def _listed(kind: str, items: Sequence[str], most: int) -> list[str]:
    """Return the first items, each with its kind, and a line that counts the others."""
    prefix = f"{kind}: " if kind else ""
    longest = MAX_ITEM if kind else MAX_SENTENCE
    shown = [f"{prefix}{cut(item, longest)}" for item in items[:most]]
    if len(items) > most:
        shown.append(f"{len(items) - most} more; {FULL}.")
    return shown


def _text(said: str) -> Text:
    return Text(printable(cut(said, MAX_SENTENCE)))
