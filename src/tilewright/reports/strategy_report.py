"""The comparison of strategies in a report: its tables as text, and all its numbers as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.records.events import RunStarted, Turn
from tilewright.reports.glossary import definitions
from tilewright.scoring.report_text import ratio_text
from tilewright.scoring.strategy_table import NOT_RESOLVED, strategy_table

MAX_KNOWN_RATIO = 1e6
"""An interval whose ends differ by a larger factor says nothing: it comes from one trajectory."""
FALSE_SHARE = 0.05
"""Share of equal pairs whose 95 % interval excludes 1 by chance."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the table of strategies; the glossary explains its title."""

    title: str
    text: Callable[[Row], str]


def factor_text(value: float, low: float, high: float) -> str:
    """Return a factor with its 95 % interval, if it has one."""
    is_known = high / low <= MAX_KNOWN_RATIO
    return ratio_text(value, low, high) if is_known else ratio_text(value, None, None)


def _or_none(template: str, value: float | None) -> str:
    return "" if value is None else template.format(value)


COLUMNS = (
    Column("strategy", lambda row: str(row["strategy"])),
    Column("trajectories", lambda row: str(row["trajectories"])),
    Column("re-measured best", lambda row: factor_text(row["speedup"], row["low"], row["high"])),
    Column("near the best", lambda row: f"{row['near_best']:.0%}"),
    Column("judged to 90 %", lambda row: _or_none("{:.1f}", row["judged_to_90"])),
    Column("reached 90 %", lambda row: f"{row['reached_90']:.0%}"),
    Column("area under the curve", lambda row: f"{row['area']:.3f}"),
    Column("judged candidates", lambda row: f"{row['judged']:.1f}"),
    Column("device seconds", lambda row: f"{row['device_s']:.1f}"),
    Column("tokens", lambda row: f"{row['tokens']:.0f}"),
    Column("drafts refused", lambda row: f"{row['refused']:.1f}"),
    Column(
        "claimed over re-measured", lambda row: _or_none("{:.3f}", row["claimed_over_remeasured"])
    ),
    Column("wrong winners", lambda row: _or_none("{:.0%}", row["wrong_winners"])),
)
DIFFERENCES = ("one", "other", "pairs", "one over other, 95 %", "better")
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Numbers of judged candidates for which tables show the regret, before the last one."""
STANDINGS = ("strategy", "better than", "worse than", NOT_RESOLVED)


def comparison_of(begun: RunStarted, turns: Sequence[Turn]) -> dict[str, Any] | None:
    """Return the comparison of a run's strategies; `None` if it has one strategy at most."""
    if len(begun.strategies) < 2:
        return None
    found = strategy_table(turns, begun.strategies, begun.samples)
    return found if found["rows"] else None


def trajectory_name(begun: RunStarted, sample: int) -> str:
    """Return the strategy and the seed of a trajectory; empty if the run has one strategy."""
    place, seed = divmod(sample, begun.samples)
    if len(begun.strategies) < 2 or place >= len(begun.strategies):
        return ""
    return f"{begun.strategies[place]}, seed {seed}"


def with_texts(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comparison with its tables as text, and the meaning of each column."""
    known = definitions()
    return {
        **found,
        "columns": [["strategy", ""], *([item.title, known[item.title]] for item in COLUMNS[1:])],
        "row_texts": list(row_texts(found)),
        "difference_heads": DIFFERENCES,
        "difference_texts": list(difference_texts(found)),
        "standing_heads": STANDINGS,
        "standings": standings(found),
        "regret_heads": ("strategy", *map(str, _steps(found))),
        "regret_texts": list(regret_texts(found)),
        "basis": basis_text(found),
        "chance": chance_text(len(found["differences"])),
    }


def basis_text(found: Row) -> str:
    """Return which trials the speed-ups of a comparison come from."""
    rows = found["rows"]
    if all(row["claimed_over_remeasured"] is None and not row["wrong_winners"] for row in rows):
        return (
            "No candidate was measured again at the end (loop.final_trials is 0), so the speed-ups "
            "are those of the trials that selected, and too large."
        )
    return (
        "The best candidate of each trajectory was measured again at its end. Those trials "
        "selected nothing, and their speed-up counts. A trajectory that ended before them counts "
        "with the trial that selected."
    )


def chance_text(count: int) -> str:
    """Return how many of so many differences would exclude 1 by chance alone."""
    if count == 1:
        return "The interval would exclude 1 by chance in 5 % of comparisons of equal strategies."
    return (
        f"If all strategies were equal, about {count * FALSE_SHARE:.1f} of the {count} intervals "
        "would exclude 1 by chance."
    )


def row_texts(found: Row) -> Iterator[list[str]]:
    """Yield the cells of each strategy, in the order of `COLUMNS`."""
    for row in found["rows"]:
        yield [column.text(row) for column in COLUMNS]


def difference_texts(found: Row) -> Iterator[list[str]]:
    """Yield the cells of each paired difference, in the order of `DIFFERENCES`."""
    for row in found["differences"]:
        ratio = factor_text(row["ratio"], row["low"], row["high"])
        yield [*row["strategies"], str(row["pairs"]), ratio, row["better"]]


def _steps(found: Row) -> list[int]:
    """Return the numbers of judged candidates at which a table shows the regret."""
    last = max(map(len, found["curves"].values()), default=0)
    return [*(step for step in STEPS if step < last), last]


def regret_texts(found: Row) -> Iterator[list[str]]:
    """Yield for each strategy its regret as a factor; empty where it judged fewer candidates."""
    for name, curve in found["curves"].items():
        cells = [f"{math.exp(curve[n - 1]):.3f}x" if n <= len(curve) else "" for n in _steps(found)]
        yield [name, *cells]


def standings(found: Row) -> list[list[str]]:
    """Return for each strategy the others that it beats, loses to, and equals as far as known."""
    rows = []
    for name in (row["strategy"] for row in found["rows"]):
        sides: dict[str, list[str]] = {"better": [], "worse": [], NOT_RESOLVED: []}
        for row in found["differences"]:
            if name not in row["strategies"]:
                continue
            (other,) = (item for item in row["strategies"] if item != name)
            resolved = "better" if row["better"] == name else "worse"
            sides[NOT_RESOLVED if row["better"] == NOT_RESOLVED else resolved].append(other)
        rows.append([name, *(", ".join(names) or "none" for names in sides.values())])
    return rows


def strategy_files(runs: Iterable[tuple[str, Mapping[str, Any] | None]]) -> dict[str, str]:
    """Return CSV files of comparisons, by name; none if no run compares strategies.

    `runs` holds the name and the comparison of each run.
    """
    rows: list[list[object]] = []
    differences: list[list[object]] = []
    regrets: list[list[object]] = []
    fields: list[str] = []
    for name, found in runs:
        if found is None:
            continue
        fields = list(found["rows"][0])
        rows += [[name, *row.values()] for row in found["rows"]]
        for row in found["differences"]:
            ends = (row["ratio"], row["low"], row["high"])
            differences.append([name, *row["strategies"], row["pairs"], *ends, row["better"]])
        for strategy, curve in found["curves"].items():
            regrets += [[name, strategy, place, value] for place, value in enumerate(curve, 1)]
    if not rows:
        return {}
    pair = ("run", "one", "other", "pairs", "ratio", "low", "high", "better")
    return {
        "strategies.csv": _csv(("run", *fields), rows),
        "strategy_differences.csv": _csv(pair, differences),
        "strategy_regret.csv": _csv(("run", "strategy", "judged", "regret"), regrets),
    }


def _csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return buffer.getvalue()
