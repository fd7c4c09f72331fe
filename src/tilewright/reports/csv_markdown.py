"""The content of a report as CSV, one row for each verdict, and its tables as Markdown."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from tilewright.reports.loader import Gathered, Run
from tilewright.reports.strategy_report import with_texts
from tilewright.scoring.headline import counted, headline
from tilewright.scoring.report_text import known
from tilewright.scoring.summary import group_of

COLUMNS = (
    *("run", "ask", "problem", "group", "protocol", "verdict", "speedup", "low", "high", "light"),
    *("seconds", "reason", "labels", "findings", "note", "report", "again"),
)
OF_THE_SUMMARY = attrgetter(*COLUMNS[4:9], "roofline_fraction", "seconds")
HEADLINE = (
    *("run", "protocol", "judged", "without a candidate", "shares of", "correct"),
    *("fast_1", "95 %", "fast_1, sure", "geometric mean"),
)
TRAJECTORY_TURNS = {"last": "last turn", "best": "best of history"}
REPLAY = "tilewright eval --from-report"
MAX_FLIPS = 200
"""Most rows in the table of differing verdicts. The CSV has all of them."""


def as_csv(gathered: Gathered) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_lines(gathered))
    return buffer.getvalue()


def _lines(gathered: Gathered) -> Iterator[tuple[Any, ...]]:
    for run in gathered.runs:
        name, again = _plain(run.name), f"{REPLAY} {shlex.quote(str(run.folder.resolve()))}/"
        for turn in run.turns:
            problem = turn.ask.problem
            head = (name, *map(_plain, (turn.ask.id, problem, group_of(problem))))
            note = _plain(run.annotations.get(turn.ask.id, ""))
            for item in turn.judgements:
                # No call for an empty cell: a run has up to a million cells.
                yield (
                    *head,
                    *OF_THE_SUMMARY(item),
                    _plain(item.reason) if item.reason else "",
                    _plain("; ".join(item.labels)) if item.labels else "",
                    _plain("; ".join(item.findings)) if item.findings else "",
                    note,
                    _plain(item.report),
                    again + shlex.quote(item.report) if item.report else "",
                )


def _plain(text: str) -> str:
    """Return a text that a spreadsheet does not run as a formula."""
    # The first test is cheap and is enough for most of a million cells.
    if text[:1].isalnum() or text.lstrip()[:1] not in ("=", "+", "-", "@"):
        return text
    return f"'{text}"


def as_markdown(gathered: Gathered, title: str) -> str:
    scores = [
        [_cell(run.name), protocol, *_headline(numbers)]
        for run in gathered.runs
        for protocol, numbers in run.summary["protocols"].items()
    ]
    several = len(gathered.runs) > 1
    sentences = [(f"{run.name}: " if several else "") + _sentence(run) for run in gathered.runs]
    lines = [f"# {_cell(title)}", "", *map(_cell, sentences), "", *_table(HEADLINE, scores)]
    lines += [line for run in gathered.runs for line in _strategies(run)]
    lines += [line for run in gathered.runs for line in _published(run)]
    lines += [line for run in gathered.runs for line in _drkernel(run)]
    notes = [(run.name, *note) for run in gathered.runs for note in run.annotations.items()]
    if notes:
        rows = (map(_cell, note) for note in notes)
        lines += ["", "## Annotations", "", *_table(("run", "candidate", "note"), rows)]
    flips = [(run, item) for run in gathered.runs for item in run.summary["flips"]]
    if flips:
        cells = []
        for run, flip in flips[:MAX_FLIPS]:
            whose = f"{run.name}: {flip['ask']}" if several else flip["ask"]
            said = ", ".join(f"{name}: {verdict}" for name, verdict in flip["verdicts"].items())
            cells.append((_cell(whose), said, flip["cause"], _cell(flip["why"])))
        heads = ("candidate", "verdicts", "by which defect", "why")
        lines += ["", "## Verdicts that differ", "", *_table(heads, cells)]
        if len(flips) > MAX_FLIPS:
            lines += ["", f"{len(flips) - MAX_FLIPS} more are in report.csv."]
    return "\n".join(lines) + "\n"


def _sentence(run: Run) -> str:
    if not run.steps:
        return headline(run.summary)
    number = sum(item["kind"] == "training" for item in run.steps)
    trained = f"{counted(number, 'step')} of training, of which report.html has the curves."
    return f"{trained} {headline(run.summary)}" if run.turns else trained


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


def _headline(numbers: dict[str, Any]) -> list[str]:
    judged = [str(numbers["judged"]), str(numbers["unanswered"])]
    if not numbers["problems"]:
        return [*judged, *[""] * 6]
    one = next((item for item in numbers["fast_p"] if item["p"] == 1), dict[str, Any]())
    return [
        *judged,
        counted(numbers["problems"], "problem"),
        f"{numbers['correct_share']:.1%}",
        known("{:.1%}", one.get("fast_p")),
        known("{:.1%} to {:.1%}", one.get("low"), one.get("high")),
        known("{:.1%}", one.get("believed")),
        known("{:.3f}x", numbers["geometric_mean"]),
    ]


def _strategies(run: Run) -> Iterator[str]:
    """Yield the comparison of a run's strategies: a row for each, and their differences."""
    if run.comparison is None:
        return
    found = with_texts(run.comparison)
    yield from ("", f"## Strategies of {_cell(run.name)}", "", found["basis"], "")
    heads = [title for title, _ in found["columns"]]
    yield from _table(heads, ([*map(_cell, row)] for row in found["row_texts"]))
    yield ""
    yield from (f"- {title}: {meaning}" for title, meaning in found["columns"] if meaning)
    yield from ("", "### Regret by judged candidates", "")
    regrets = ([*map(_cell, row)] for row in found["regret_texts"])
    yield from _table(found["regret_heads"], regrets)
    yield from ("", "### Paired differences", "")
    standings = ([*map(_cell, row)] for row in found["standings"])
    yield from (*_table(found["standing_heads"], standings), "")
    rows = ([*map(_cell, row)] for row in found["difference_texts"])
    yield from _table(found["difference_heads"], rows)
    yield from ("", found["chance"])


def _published(run: Run) -> Iterator[str]:
    found = run.summary["protocols"].get("official", {}).get("published", {})
    for name, item in found.items():
        speed = known("{:.3f}x", item["speedup_global"]) or "unknown"
        yield ""
        yield (
            f"{name} by its own rules ({_cell(run.name)}): call accuracy "
            f"{item['call_accuracy']:.1%}, execute accuracy {item['execute_accuracy']:.1%}, "
            f"speed-up {speed}"
        )


def _drkernel(run: Run) -> Iterator[str]:
    found = run.summary["drkernel"]
    for name, title in TRAJECTORY_TURNS.items() if found else ():
        known = {key: share for key, share in found[name].items() if share is not None}
        said = ", ".join(f"{key} {share:.1%}" for key, share in known.items())
        yield ""
        of = f"{title} of each of {counted(found['trajectories'], 'trajectory')}"
        yield f"{_cell(run.name)} as Dr. Kernel scores, {of}: {said}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
