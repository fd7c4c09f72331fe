"""The table of a bench run in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from tilewright.cli.output import printable
from tilewright.cli.render import facts, table
from tilewright.loop.throughput import Throughput
from tilewright.records.events import Turn
from tilewright.reports.csv_markdown import TRAJECTORY_TURNS
from tilewright.reports.strategy_report import COLUMNS, DIFFERENCES, difference_texts
from tilewright.scoring.headline import counted, denominator, headline
from tilewright.scoring.report_text import cut, known, speed_text

MAX_FLIPS = 10
"""Most candidates in the table of differing verdicts."""
RESULTS = (
    *("re-measured best", "near the best", "judged to 90 %", "reached 90 %"),
    "area under the curve",
)
COSTS = (
    *("judged candidates", "device seconds", "tokens", "drafts refused"),
    *("claimed over re-measured", "wrong winners"),
)
"""Columns of strategies in two tables; a terminal is too narrow for all of them in one."""
HEAD_CHARS = 11
"""Most characters of one line of their headings."""


def turn_text(turn: Turn) -> str:
    parts = []
    for item in turn.judgements:
        said: str = item.verdict
        if item.speedup is not None:
            said += f" {speed_text(item.speedup, item.low, item.high)}"
        elif item.verdict != "correct" and item.reason:
            said += f" ({cut(item.reason, 120)})"
        parts.append(f"{item.protocol}: {said}" if len(turn.judgements) > 1 else said)
    if not turn.judgements:
        refused = f", refused ({cut(turn.refused, 120)})" if turn.refused else ""
        parts.append(f"{turn.ask.role}{refused}")
    return printable(f"{turn.ask.id}: {'; '.join(parts)}")


def rates_text(found: Throughput, protocols: int = 1) -> str:
    """Return the candidates per second and the devices' shares of timing; empty: none is known.

    A candidate is evaluated under each of so many protocols.
    """
    rates = [] if found.per_s is None else [f"{found.per_s / protocols:.2g} candidates per second"]
    shares = ", ".join(f"{name} {share:.0%}" for name, share in found.timing_shares.items())
    return ", ".join([*rates, *([f"timing on {shares}"] if shares else [])])


def rates_document(found: Throughput, protocols: int = 1) -> dict[str, Any]:
    """Return the figures of `rates_text` for `--json`."""
    return {
        "seconds": found.wall_s,
        "candidates_per_s": None if found.per_s is None else found.per_s / protocols,
        "timing_shares": found.timing_shares,
    }


def turns_table(turns: Sequence[Turn]) -> RenderableType:
    """Return a row for each turn: its verdict, its speed-up and the best so far."""
    made = table("turn", "verdict", "speed-up", "best so far", "why")
    best = 0.0
    for turn in turns:
        item = turn.judgements[0] if turn.judgements else None
        if item is None:
            made.add_row(turn.ask.turn + 1, turn.ask.role, "", "", cut(turn.refused, 90))
            continue
        best = max(best, item.speedup or 0.0)
        shown = "" if item.speedup is None else speed_text(item.speedup, item.low, item.high)
        top = f"{best:.2f}x" if best else ""
        why = "" if item.verdict == "correct" else cut(item.reason, 90)
        made.add_row(turn.ask.turn + 1, item.verdict, shown, top, why)
    return made


def bench_view(summary: dict[str, Any]) -> RenderableType:
    """Return the scores of a run, one table per protocol."""
    sections: list[tuple[str, RenderableType]] = []
    compared = summary.get("strategies")
    if compared:
        sections += _strategies(compared)
    for name, numbers in summary["protocols"].items():
        sections.append((name, _protocol(numbers)))
        if "published" in numbers:
            sections.append(("as published", _published(numbers["published"])))
    # A curve over the turns of several strategies would describe none of them.
    if len(summary.get("curves", ())) > 1 and not compared:
        sections.append(("turn by turn", _curves(summary["curves"])))
    if found := summary.get("drkernel"):
        shares = ((of, *map(_share, found[name].values())) for name, of in TRAJECTORY_TURNS.items())
        drkernel = table("of each trajectory", *found["last"], rows=shares)
        number = counted(found["trajectories"], "trajectory")
        sections.append((f"as Dr. Kernel scores, shares of {number}", drkernel))
    if summary["flips"]:
        sections.append(("verdicts that differ", _flips(summary["flips"])))
    parts = [part for title, view in sections for part in ("", Text(title, style="bold"), view)]
    return Group(Text(headline(summary), style="bold"), *parts)


def _strategies(found: dict[str, Any]) -> Iterator[tuple[str, RenderableType]]:
    """Yield the comparison of strategies, in tables that fit into a narrow terminal."""
    counts = sorted({row["trajectories"] for row in found["rows"]})
    many = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    for title, columns in ((f"strategies, {many} trajectories each", RESULTS), ("", COSTS)):
        shown = [column for column in COLUMNS if column.title in ("strategy", *columns)]
        rows = ([column.text(row) for column in shown] for row in found["rows"])
        heads = (textwrap.fill(column.title, HEAD_CHARS) for column in shown)
        yield title, table(*heads, rows=rows)
    yield "paired differences", table(*DIFFERENCES, rows=difference_texts(found))


def _published(found: dict[str, Any]) -> RenderableType:
    accuracies = ("call accuracy", "execute accuracy")
    made = table("benchmark", "tasks", *accuracies, "speed-up of all", "of tasks")
    for name, item in found.items():
        shares = (f"{item[key.replace(' ', '_')]:.1%}" for key in accuracies)
        speeds = (known("{:.3f}", item[f"speedup_{key}"]) for key in ("global", "per_task"))
        made.add_row(name, item["tasks"], *shares, *speeds)
    return made


def _curves(rows: list[dict[str, Any]]) -> RenderableType:
    names = list(dict.fromkeys(name for row in rows for name in row["best_fast_p"]))
    heads = [f"fast_{name}" for name in names]
    made = table("turn", "judged", "correct", *heads, *(f"best {head}" for head in heads))
    for row in rows:
        shares = [row["correct"], *(row["fast_p"].get(name) for name in names)]
        shares += [row["best_fast_p"].get(name) for name in names]
        made.add_row(row["turn"], row["judged"], *map(_share, shares))
    return made


def _protocol(numbers: dict[str, Any]) -> RenderableType:
    verdicts = ", ".join(f"{count} {name}" for name, count in numbers["verdicts"].items())
    rows: list[tuple[str, str]] = [("verdicts", verdicts)]
    if numbers["weak_left_out"]:
        rows.append(("left out", f"{numbers['weak_left_out']} weak problems"))
    if not numbers["problems"]:
        return facts(rows)
    correct = f"{numbers['correct']} of {numbers['judged']} candidates"
    rows.append(("correct", correct))
    if not numbers["timed"]:
        return facts([*rows, ("speed-ups", "nothing was timed")])
    rows += [
        ("geometric mean", known("{:.3f}x over correct candidates", numbers["geometric_mean"])),
        ("shares and means of", denominator(numbers)),
        ("mean speed-up, failures as 0", known("{:.3f}x", numbers["mean_with_zeros"])),
        ("AMSR", known("{:.3f}", numbers["amsr"])),
        ("pass@k", ", ".join(f"{k}: {value:.1%}" for k, value in numbers["pass_at"].items())),
        ("fast_1@k", ", ".join(f"{k}: {value:.1%}" for k, value in numbers["fast_at"].items())),
        ("rejected", f"{numbers['rejected']:.1%}"),
    ]
    fast = table("p", "fast_p (>)", "95 %", "at least (>=)", "fast_p, sure")
    for item in numbers["fast_p"]:
        interval = known("[{:.1%}, {:.1%}]", item["low"], item["high"])
        fast_p, *others = (_share(item[name]) for name in ("fast_p", "at_least", "believed"))
        fast.add_row(f"{item['p']:g}", fast_p, interval, *others)
    groups = ["", _groups(numbers["groups"])] if "groups" in numbers else []
    return Group(facts(rows), "", fast, *groups)


def _share(value: float | None) -> str:
    return known("{:.1%}", value)


def _groups(groups: dict[str, Any]) -> RenderableType:
    made = table("group", "shares of", "correct", "fast_1", "geometric mean")
    for name, numbers in groups.items():
        if not numbers["problems"]:
            continue
        one = next((item["fast_p"] for item in numbers["fast_p"] if item["p"] == 1), None)
        mean = known("{:.3f}x", numbers["geometric_mean"])
        of = counted(numbers["problems"], "problem")
        made.add_row(name, of, _share(numbers["correct_share"]), _share(one), mean)
    return made


def _flips(flips: list[dict[str, Any]]) -> RenderableType:
    known_causes = any(item["cause"] for item in flips[:MAX_FLIPS])
    heads = ["by which defect"] if known_causes else []
    made = table("candidate", "verdicts", *heads, "why")
    for item in flips[:MAX_FLIPS]:
        said = ", ".join(f"{name}: {verdict}" for name, verdict in item["verdicts"].items())
        cause = [item["cause"]] if known_causes else []
        made.add_row(item["ask"], said, *cause, item["why"])
    if len(flips) > MAX_FLIPS:
        made.add_row(f"and {len(flips) - MAX_FLIPS} more", *[""] * (2 + len(heads)))
    return made
