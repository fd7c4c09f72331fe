"""The numbers again: CSV of every judgement for programs, Markdown of the tables for documents."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator

from tilewright.reports.gather import Gathered, Run
from tilewright.scoring.summary import group_of

__all__ = ["MOST_FLIPS", "as_csv", "as_markdown"]

COLUMNS = (
    *("run", "ask", "problem", "group", "protocol", "verdict", "speedup", "low", "high", "light"),
    *("seconds", "reason", "labels", "findings", "note", "report", "again"),
)
REPLAY = "tilewright eval --replay"
MOST_FLIPS = 200
"""Verdicts that differ which the tables list; all of them are in the CSV."""


def as_csv(gathered: Gathered) -> str:
    """Return one line a judgement."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in gathered.runs:
        folder = run.folder.resolve()
        for turn in run.turns:
            ask = turn.ask.id, turn.ask.problem, group_of(turn.ask.problem)
            names = [_plain(text) for text in (run.name, *ask)]
            note = _plain(run.annotations.get(turn.ask.id, ""))
            for item in turn.judgements:
                texts = item.reason, "; ".join(item.labels), "; ".join(item.findings)
                again = f"{REPLAY} {shlex.quote(f'{folder}/{item.report}')}" if item.report else ""
                writer.writerow(
                    (
                        *(*names, item.protocol, item.verdict, item.speedup, item.low, item.high),
                        *(item.light, item.seconds, *map(_plain, texts), note),
                        *(_plain(item.report), again),
                    )
                )
    return buffer.getvalue()


def _plain(text: str) -> str:
    """Keep a spreadsheet from running what a candidate wrote."""
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") else text


def as_markdown(gathered: Gathered, title: str) -> str:
    """Return the tables of the page."""
    lines = [f"# {_cell(title)}", ""]
    lines += ["| run | protocol | judged | correct | fast_1 | 95 % | believed | geometric mean |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for run in gathered.runs:
        for protocol, numbers in run.summary["protocols"].items():
            if not numbers["judged"]:
                lines.append(f"| {_cell(run.name)} | {protocol} | 0 | | | | | |")
                continue
            one = next(item for item in numbers["fast_p"] if item["p"] == 1)
            mean = numbers["geometric_mean"]
            cells = [
                _cell(run.name),
                protocol,
                str(numbers["judged"]),
                f"{numbers['correct'] / numbers['judged']:.1%}",
                f"{one['fast_p']:.1%}",
                "" if one["low"] is None else f"{one['low']:.1%} to {one['high']:.1%}",
                f"{one['believed']:.1%}",
                "" if mean is None else f"{mean:.3f}x",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    lines += [line for run in gathered.runs for line in _published(run)]
    lines += [line for run in gathered.runs for line in _drkernel(run)]
    notes = [(run, *note) for run in gathered.runs for note in run.annotations.items()]
    if notes:
        lines += ["", "## What people say", "", "| run | candidate | note |", "| --- | --- | --- |"]
        lines += [
            f"| {_cell(run.name)} | {_cell(ask)} | {_cell(text)} |" for run, ask, text in notes
        ]
    flips = [item for run in gathered.runs for item in run.summary["flips"]]
    if flips:
        lines += ["", "## Verdicts that differ", "", "| candidate | verdicts | why |"]
        lines += ["| --- | --- | --- |"]
        for flip in flips[:MOST_FLIPS]:
            said = ", ".join(f"{k}: {v}" for k, v in flip.items() if k not in ("ask", "why"))
            lines.append(f"| {_cell(flip['ask'])} | {said} | {_cell(flip['why'])} |")
        if len(flips) > MOST_FLIPS:
            lines += ["", f"{len(flips) - MOST_FLIPS} more are in report.csv."]
    return "\n".join(lines) + "\n"


def _published(run: Run) -> Iterator[str]:
    found = run.summary["protocols"].get("official", {}).get("published", {})
    for name, item in found.items():
        speed = item["speedup_global"]
        yield ""
        yield (
            f"{name} by its own rules ({_cell(run.name)}): call accuracy "
            f"{item['call_accuracy']:.1%}, execute accuracy {item['execute_accuracy']:.1%}, "
            f"speed-up {'unknown' if speed is None else f'{speed:.3f}x'}"
        )


def _drkernel(run: Run) -> Iterator[str]:
    found = run.summary["drkernel"]
    for name, title in (("last", "last turn"), ("best", "best of history")) if found else ():
        said = ", ".join(f"{key} {share:.1%}" for key, share in found[name].items())
        yield ""
        yield f"{_cell(run.name)} as Dr. Kernel scores, {title} of each trajectory: {said}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
