"""Figures over the rows of a results file: counts, agreement with do_bench, repeated cells."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.audit.common_timer import AGREEMENT, LONG_US
from benchmarks.audit.results import Row, latest
from tilewright.scoring.intervals import Interval, decide

AGAIN = 10
"""Cells that are measured again."""
CONCLUSIONS = {"faster": "faster", "slower": "slower"}


@dataclass(frozen=True)
class Agreement:
    """The ratios of the judge and of do_bench on one case, and of calls under other conditions."""

    cell: str
    case: str
    ours: float
    theirs: float
    hidden: float | None = None
    """The ratio of calls whose launches are hidden."""
    clean: float | None = None
    """The same, with a cache that was cleared by reading: the conditions of the judge."""
    waits: bool = False
    """Whether a call of the candidate or of the baseline waits for the device."""
    interval: tuple[float, float] = (0.0, 0.0)
    """The ends of the judge's interval."""

    @property
    def difference(self) -> float:
        """The relative difference between the ratios."""
        return self.theirs / self.ours - 1

    @property
    def agrees(self) -> bool:
        """Whether the difference is at most 3 %."""
        return abs(self.difference) <= AGREEMENT

    def close(self, ratio: float | None) -> bool:
        """Tell whether the ratio under another condition differs from ours by at most 3 %."""
        return ratio is not None and abs(ratio / self.ours - 1) <= AGREEMENT

    @property
    def cause(self) -> str:
        """The reason for the difference, if the times under the other conditions show one."""
        if self.waits:
            return "A call waits for the device, so its time depends on the host."
        if self.close(self.hidden):
            return "do_bench's time includes launches."
        if self.close(self.clean):
            return "do_bench's time includes launches, or writes that it left in the cache."
        if self.clean is not None and self.interval[0] <= self.clean <= self.interval[1]:
            return "With hidden launches and a clean cache the ratio is in the judge's interval."
        return ""


def library_of(cell: str) -> str:
    """Return the library of a cell's id."""
    return cell.partition("/")[0]


def result_of(row: Row) -> str:
    """Return the verdict of a row, and for a correct cell whether it is faster than eager torch."""
    if row["verdict"] != "correct":
        return str(row["verdict"])
    interval = (row.get("against") or {}).get("eager")
    if interval is None:
        return "correct, not timed"
    return CONCLUSIONS.get(decide(Interval(*interval)), "no difference")


def counts(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    """Return for each library how many of its cells had each result."""
    found: dict[str, Counter[str]] = {}
    for cell, row in latest(rows, "cell").items():
        found.setdefault(library_of(cell), Counter())[result_of(row)] += 1
    return found


def is_long(case: dict[str, Any]) -> bool:
    """Tell whether a case is compared with `do_bench`: baseline and candidate take over 50 us."""
    least: float = min(case["candidate_us"], case["baseline_us"])
    return case["baseline"] == "eager" and least > LONG_US


def all_short(rows: Sequence[Row]) -> set[str]:
    """Return the judged cells of which `do_bench` could be compared in no case."""
    return {
        cell
        for cell, row in latest(rows, "cell").items()
        if not any(is_long(case) for case in row.get("cases", ()))
    }


def agreements(rows: Sequence[Row]) -> list[Agreement]:
    """Return the ratios of all cases above 50 us that both have measured."""
    timed = latest(rows, "do_bench")
    found = []
    for cell, row in latest(rows, "cell").items():
        theirs = timed.get(cell, {})
        for case in row.get("cases", ()):
            name = case["case"]
            if name not in theirs.get("cases", {}) or not is_long(case):
                continue
            one, other = theirs["cases"][name]
            found.append(
                Agreement(
                    cell,
                    name,
                    ours=case["speedup"][0],
                    theirs=one / other,
                    hidden=_ratio(theirs, "hidden", name),
                    clean=_ratio(theirs, "clean", name),
                    waits=any(theirs.get("waits", {}).get(name, ())),
                    interval=tuple(case["speedup"][1:]),
                )
            )
    return found


def _ratio(row: Row, field: str, case: str) -> float | None:
    pair = row.get(field, {}).get(case)
    return pair[0] / pair[1] if pair else None


def again_cells(rows: Sequence[Row], seed: int) -> list[str]:
    """Return ten cells that were timed, chosen by a seed."""
    timed = sorted(
        cell
        for cell, row in latest(rows, "cell").items()
        if (row.get("against") or {}).get("eager") is not None
    )
    return sorted(random.Random(seed).sample(timed, min(AGAIN, len(timed))))


def repeats(rows: Sequence[Row]) -> list[tuple[str, Row, Row, bool]]:
    """Return each repeated cell: both rows, and whether verdict and interval agree."""
    first = latest(rows, "cell")
    return [
        (cell, first[cell], row, _same(first[cell], row))
        for cell, row in latest(rows, "again").items()
        if cell in first
    ]


def _same(one: Row, other: Row) -> bool:
    if one["verdict"] != other["verdict"]:
        return False
    ends = [(row.get("against") or {}).get("eager") for row in (one, other)]
    if ends[0] is None or ends[1] is None:
        return ends[0] is ends[1]
    return bool(max(ends[0][1], ends[1][1]) <= min(ends[0][2], ends[1][2]))


def table(rows: Sequence[Row]) -> str:
    """Return the short table of a run."""
    heads = ("correct", "faster", "slower", "no difference", "correct, not timed")
    others = ("incorrect", "failed", "rejected", "unjudged")
    lines = [" | ".join(("library", "cells", *heads[1:], *others))]
    for library, found in counts(rows).items():
        numbers = [str(found[name]) for name in (*heads[1:], *others)]
        lines.append(" | ".join((library, str(found.total()), *numbers)))
    pairs = agreements(rows)
    agreed = sum(pair.agrees for pair in pairs)
    lines.append(f"do_bench: {agreed} of {len(pairs)} cases above 50 us agree within 3 %")
    lines += [_difference(pair) for pair in pairs if not pair.agrees]
    again = repeats(rows)
    if again:
        same = sum(agrees for *_, agrees in again)
        lines.append(f"measured again: {same} of {len(again)} agree")
    return "\n".join(lines)


def _difference(pair: Agreement) -> str:
    name = f"{pair.cell} {pair.case}"
    return f"  {name}: judge {pair.ours:.3f}, do_bench {pair.theirs:.3f}, {pair.difference:+.1%}"


def speedup_text(interval: Any) -> str:  # noqa: ANN401 - a list of the results file
    """Return a speed-up with its interval, or an empty text."""
    if interval is None:
        return ""
    return f"{interval[0]:.3f} [{interval[1]:.3f}, {interval[2]:.3f}]"
