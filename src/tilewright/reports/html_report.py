"""The page of a report: one file that needs no network.

Text of foreign code is data in a JSON block. The page shows it as text, never as markup.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilewright.records import EvalReport
from tilewright.records.events import EvalSummary, Turn
from tilewright.reports.csv_markdown import MAX_FLIPS
from tilewright.reports.glossary import heading_terms, terms_html
from tilewright.reports.loader import Gathered, Run, device_of, gather, title_of, winners
from tilewright.reports.strategy_report import trajectory_name, with_texts
from tilewright.scoring.bottlenecks import advice
from tilewright.scoring.headline import headline
from tilewright.scoring.intervals import NOISY_HALF_WIDTH, STRETCH
from tilewright.scoring.learning_curves import curves
from tilewright.scoring.paired_times import paired_times
from tilewright.scoring.report_text import NOT_CERTAIN, known, speed_text
from tilewright.scoring.roofline import roofline_points
from tilewright.scoring.summary import explained_by_run, group_of

MAX_LINES = 5000
"""Most candidates in the list of a page. The CSV has all of them."""
MAX_SOURCE, MAX_REASON = 20_000, 400
"""Most characters of a source, and of the reason of a verdict, on a page."""
OF_THE_RUN = {"problems", "protocols", "evaluator", "kind", "problems_not_linted"}
OF_A_FINDING = {"code", "summary", "evidence"}
HARDWARE = ("driver", "cores", "machine", "kernel", "compiler")
LINES_BYTES, WHOLE_BYTES = 2_500_000, 5_000_000
"""Most bytes of the list of candidates, and of the candidates in full. A page has at most 8 MB."""

CONSTANTS = {
    "NOISY_HALF_WIDTH": str(NOISY_HALF_WIDTH),
    "STRETCH": str(STRETCH),
    "NOT_CERTAIN": NOT_CERTAIN,
}
"""By these the scripts decide between faster and slower as `decide` does."""


SCRIPTS = ["strategies.js", "training.js", "page.js"]


def page(shown: dict[str, Any]) -> str:
    return drawn("page", shown["title"], shown, ["page.css"], SCRIPTS)


def page_of_eval(folder: Path) -> str:
    """Return the page of a run of `eval`."""
    gathered = gather([folder])
    return page(document(gathered, title_of(gathered.runs[0].begun)))


def drawn(
    name: str, title: str, data: dict[str, Any], styles: Sequence[str], scripts: Sequence[str]
) -> str:
    """Return the page `name` with its styles, scripts and data, none of which is fetched."""
    script = "".join(map(_read, ("parts.js", *scripts)))
    for constant, value in CONSTANTS.items():
        script = script.replace(f"{{{{{constant}}}}}", value)
    return (
        _read(f"{name}.html")
        .replace("{{TITLE}}", escape(title))
        .replace("{{TERMS}}", terms_html())
        .replace("{{STYLE}}", "".join(map(_read, styles)))
        .replace("{{SCRIPT}}", script)
        .replace("{{DATA}}", _block(data))
    )


def _block(data: object) -> str:
    """Return data as ASCII JSON that cannot end its block in a page or start a comment."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def document(gathered: Gathered, title: str, out: str = "") -> dict[str, Any]:
    """Return what a page shows; `out` is the folder that its command names."""
    runs = [_run(run, number, gathered) for number, run in enumerate(gathered.runs)]
    listed = sum(len(run["rows"]) for run in runs)
    left_out = sum(len(run.turns) for run in gathered.runs) - listed
    shown = {"title": title, "left_out": left_out, "runs": runs, "terms": heading_terms()}
    shown["command"] = _command(gathered, title, out)
    if len(runs) > 1:
        shown["explained_by_run"] = explained_by_run(
            {run.name: run.turns for run in gathered.runs},
            gathered.runs[0].begun.protocols,
            gathered.weak,
            {run.name: run.unanswered for run in gathered.runs},
        )
    return shown


def _command(gathered: Gathered, title: str, out: str) -> str:
    """Return the command that makes a page again."""
    words = ["tilewright", "report", *(str(run.folder.resolve()) for run in gathered.runs)]
    if title != title_of(gathered.runs[0].begun):
        words += ["--title", title]
    if out:
        words += ["--out", str(Path(out).resolve())]
    return shlex.join([*words, *(["--all-candidates"] if gathered.full else [])])


def _run(run: Run, number: int, gathered: Gathered) -> dict[str, Any]:
    mark, share = f"{number}/", len(gathered.runs)
    own = {k.removeprefix(mark): v for k, v in gathered.whole.items() if k.startswith(mark)}
    whole = {key: shown_report(report) for key, report in own.items()}
    rows = [_row(turn, run) for turn in kept(run, set(own), MAX_LINES // share)]
    if not gathered.full:
        whole = dict(_that_fit(whole, WHOLE_BYTES // share))
        size = len(_block(rows))
        if size > LINES_BYTES // share:
            most = len(rows) * LINES_BYTES // share // size
            rows = [_row(turn, run) for turn in kept(run, set(own), most)]
    flips = run.summary["flips"][: MAX_FLIPS // share]
    several_turns = any(turn.ask.turn for turn in run.turns)
    return {
        "name": run.name,
        "folder": str(run.folder),
        "path": str(run.folder.resolve()),
        "left": run.left,
        "begun": run.begun_at,
        **run.begun.model_dump(mode="json", include=OF_THE_RUN),
        "device": device_of(run.begun),
        "machines": _machines(list(own.values())),
        "headline": _headline(run),
        "summary": run.summary | {"flips": flips},
        "curves": curves(run.turns, gathered.weak) if several_turns else [],
        "steps": run.steps,
        "comparison": None if run.comparison is None else with_texts(run.comparison),
        "rows": rows,
        "whole": whole,
    }


def _headline(run: Run) -> str:
    if not run.turns and run.begun.kind == "sft":
        # The page tells the steps itself.
        return "" if run.steps else "No step of the training has ended yet."
    again = winners(run.folder)
    if len(again) != 1:
        return headline(run.summary)
    # The best of many noisy measurements flatters its candidate.
    (found,) = again.values()
    speed = found["verdict"]
    if found["speedup"] is not None:
        speed = speed_text(found["speedup"], found["low"], found["high"])
    return f"{headline(run.summary)} The winner, measured once more: {speed}."


def _machines(reports: Sequence[EvalReport]) -> list[tuple[str, int]]:
    """Return the machines of reports in words, each with the number of its reports."""
    found: Counter[str] = Counter()
    for where in (report.environment for report in reports):
        host = {name: where.host[name] for name in HARDWARE if name in where.host}
        found[", ".join(f"{name} {value}" for name, value in (host | where.versions).items())] += 1
    return found.most_common()


def _that_fit(whole: dict[str, Any], most_bytes: int) -> Iterator[tuple[str, Any]]:
    """Yield the items whose escaped text fits into the bytes that are left; skip the others."""
    for key, item in whole.items():
        size = len(_block(item))
        if size <= most_bytes:
            most_bytes -= size
            yield key, item


def kept(run: Run, shown: set[str], most: int) -> list[Turn]:
    """Return the turns in the list of a page: all of them, or an even selection."""
    if len(run.turns) <= most:
        return run.turns
    named = {key.rpartition("/")[0] for key in shown}
    rest = [turn.ask.id for turn in run.turns if turn.ask.id not in named]
    room = max(most - len(named), 0)
    named |= set(rest[:: max(len(rest) // max(room, 1), 1)][:room])
    return [turn for turn in run.turns if turn.ask.id in named]


def _row(turn: Turn, run: Run) -> dict[str, Any]:
    return {
        "ask": turn.ask.id,
        "problem": turn.ask.problem,
        "group": group_of(turn.ask.problem),
        "about": run.titles.get(turn.ask.problem, ""),
        "note": run.annotations.get(turn.ask.id, ""),
        "trajectory": _whose(run, turn),
        "judgements": [_judgement(item) for item in turn.judgements],
    }


def _whose(run: Run, turn: Turn) -> str:
    """Return the trajectory of a turn, and its number in it if the run has several turns."""
    number = f"turn {turn.ask.turn + 1}" if run.summary["earlier_turns"] else ""
    return ", ".join(filter(None, (trajectory_name(run.begun, turn.ask.sample), number)))


def _judgement(item: EvalSummary) -> dict[str, Any]:
    shown = item.model_dump(exclude_none=True, exclude_defaults=True)
    if len(item.reason) > MAX_REASON:
        shown["reason"] = f"{item.reason[:MAX_REASON]}..."
    return shown | {"protocol": item.protocol, "verdict": item.verdict}


def shown_report(report: EvalReport) -> dict[str, Any]:
    """Return the part of a report that a page shows."""
    candidate = report.request.candidate
    source = "\n\n".join(
        f"# {file.path}\n{file.text if file.encoding == 'utf-8' else f'({len(file.data)} bytes)'}"
        for file in candidate.files
    )
    if len(candidate.files) == 1:
        source = candidate.files[0].text
    return {
        "language": candidate.language,
        "source": source[:MAX_SOURCE],
        "cut": len(source) > MAX_SOURCE,
        "files": [file.path for file in candidate.files],
        "failing": _failing(report),
        "seed": report.seed,
        "advice": advice(report),
        "lights": [
            {
                "case": item.case,
                "limit": item.limit,
                "share": item.candidate_share,
                "intensity": (item.work.flops or 0) / item.work.moved_bytes,
                "flops_per_s": item.flops_per_s or 0,
                "bytes_per_s": item.bytes_per_s,
            }
            for item in roofline_points(report)
        ],
        "comparisons": [
            {
                "case": item.case,
                "baseline": item.baseline,
                "reference_us": paired_times(item).baseline_us,
                "candidate_us": paired_times(item).candidate_us,
                "speedup": item.speedup,
                "low": item.speedup_low,
                "high": item.speedup_high,
                "labels": list(item.labels),
            }
            for item in report.comparisons
        ],
        "findings": [item.model_dump(include=OF_A_FINDING) for item in report.findings],
        "message": str(getattr(report.outcome, "message", "")),
    }


def _failing(report: EvalReport) -> str:
    """Return the first wrong input sample in words; empty without one."""
    for item in report.cases:
        if item.result == "fail":
            error = known("; error {:.3g} times the tolerance", item.error_over_tolerance)
            return f"case {item.case}, variation {item.input_variation}{error}"
    return ""
