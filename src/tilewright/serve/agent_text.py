"""The texts for an agent, sized for its context. Pure; no seed, tolerance or path is revealed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tilewright.loop.feedback import redacted, shortened
from tilewright.records import CaseResult, EvalReport, Failed, Incorrect, Rejected
from tilewright.records.events import EvalSummary, Turn
from tilewright.records.report import Profile
from tilewright.scoring.bottlenecks import advice
from tilewright.scoring.paired_times import paired_times
from tilewright.scoring.report_text import cut, failure_text, finding_text, short_time, speed_text

MAX_EXPLANATION_CHARS = 12_000
"""Characters of an explanation, about 3,000 tokens."""
MAX_TURNS = 60
"""Lines of a history; older turns are only counted."""
MAX_LINES, MAX_MESSAGE_CHARS, MAX_REASON_CHARS = 24, 4000, 160
MAX_LINE_CHARS = 300


def history_text(turns: Mapping[int, Turn], best: str) -> str:
    """Return one line for each turn, and the best so far as the last line."""
    if not turns:
        return "No turn yet: `evaluate` makes the first."
    lines = [_line(number, turn) for number, turn in turns.items()]
    if len(lines) > MAX_TURNS:
        lines = [f"({len(lines) - MAX_TURNS} earlier turns)", *lines[-MAX_TURNS:]]
    return "\n".join([*lines, "", best])


def explained_text(number: int, turn: Turn, report: EvalReport | None) -> str:
    """Return the facts of a report: outcome, cases, outputs, findings, stages, advice."""
    line = _line(number, turn)
    if report is None:
        return shortened(redacted(f"{line}\n\n{turn.feedback}"), MAX_EXPLANATION_CHARS)
    blocks = [
        line,
        _outcome(report),
        _section("Times", _times(report)),
        _section("What limits it", advice(report)),
        _section("Outputs", _outputs(report.cases)),
        _section("Findings", map(finding_text, report.findings)),
        _section("Noted", (f"{item.name}: {item.detail}" for item in report.labels)),
        _section("Its own kernels", (_kernels(made) for made in [report.profile] if made)),
        _section("Stages", (f"{s.name}: {short_time(s.wall_s * 1e6)}" for s in report.stages)),
        _section("It printed", report.candidate_output.strip().splitlines()),
    ]
    return shortened(redacted("\n\n".join(filter(None, blocks))), MAX_EXPLANATION_CHARS)


def best_text(best: tuple[int, Turn] | None) -> str:
    """Return the number and the speed-up of the best turn so far."""
    if best is None:
        return "Best so far: none is correct yet."
    number, turn = best
    return f"Best so far: turn {number}, {_speed(turn.judgements[0])}."


def reason_text(turn: Turn) -> str:
    """Return the reason of a verdict in one line, without seeds, tolerances and paths."""
    return redacted(cut(turn.judgements[0].reason, MAX_REASON_CHARS))


def _line(number: int, turn: Turn) -> str:
    summary = turn.judgements[0]
    more = _speed(summary) if summary.verdict == "correct" else reason_text(turn)
    return f"turn {number}: {summary.verdict}{f', {more}' if more else ''}"


def _speed(summary: EvalSummary) -> str:
    if summary.speedup is None:
        return "without a time"
    return speed_text(summary.speedup, summary.low, summary.high)


def _outcome(report: EvalReport) -> str:
    match report.outcome:
        case Failed() as failed:
            message = shortened(failed.message, MAX_MESSAGE_CHARS)
            return f"It failed ({failure_text(failed)}).\n{message}"
        case Incorrect() as wrong:
            message = shortened(wrong.message, MAX_MESSAGE_CHARS)
            return f"First wrong: {wrong.case} ({wrong.kind}).\n{message}"
        case Rejected():
            return "It did not do the requested work; the findings say how."
        case _:
            return ""


def _times(report: EvalReport) -> Iterator[str]:
    for item in report.comparisons:
        shown = paired_times(item)
        mine, theirs = short_time(shown.candidate_us), short_time(shown.baseline_us)
        speed = speed_text(item.speedup, item.speedup_low, item.speedup_high)
        labels = f" ({', '.join(item.labels)})" if item.labels else ""
        yield f"{item.case}: {mine}, {item.baseline} {theirs}: {speed}{labels}"


def _outputs(cases: Iterable[CaseResult]) -> Iterator[str]:
    """Yield a line for each case: its results by input variation."""
    variations: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for item in cases:
        variations[item.case][item.result].append(item.input_variation)
    for name, results in variations.items():
        parts = (f"{kind} with {', '.join(dict.fromkeys(of))}" for kind, of in results.items())
        yield f"{name}: {'; '.join(parts)}"


def _kernels(made: Profile) -> str:
    return f"{made.case}: {made.launches} launches a call, {made.coverage:.0%} of its device time"


def _section(title: str, lines: Iterable[str]) -> str:
    """Return a title and its lines, or an empty text; lines beyond the limit are counted."""
    found = [cut(line, MAX_LINE_CHARS) for line in lines]
    if not found:
        return ""
    if len(found) > MAX_LINES:
        found = [*found[:MAX_LINES], f"and {len(found) - MAX_LINES} more"]
    return "\n".join([f"{title}:", *(f"- {line}" for line in found)])
