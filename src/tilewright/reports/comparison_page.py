"""The page of a comparison: one sentence, a plot of the ratios with their intervals, a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

from tilewright.reports.run_comparison import COLUMNS, RunComparison, cells, headline, notes
from tilewright.scoring.run_changes import Change, ProblemChange

MAX_PLOTTED = 60
"""Problems in the plot: those whose ratio is farthest from 1."""
WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 420, 34, 14, 404, 20, 42
"""Sizes of the plot in pixels, so that a phone shows its text; a name stands above its interval."""
MAX_NAME = 50
"""Characters of a problem's name in the plot; hovering shows all of it."""
MIN_APART = 40
"""Pixels between two ticks, so that their texts do not touch."""
NEAR_ONE = (0.8, 1.25, 1.5, 0.7, 0.6, 0.9, 1.1, 0.95, 1.05)
"""Ticks that fill the axis around 1, the most useful first."""
STYLE = ".ratios svg{width:100%;max-width:28rem}.ratios svg text{font-size:13px}"
CLASSES = {Change.SLOWER: "incorrect", Change.FASTER: "correct"}
"""Colours of the verdicts, for changes that are like them."""


def as_page(found: RunComparison) -> str:
    """Return one HTML page that works from disk."""
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    title = f"{found.before.folder} and {found.after.folder}"
    which = f"Before: {found.before.folder}. After: {found.after.folder}."
    head = "".join(f"<th scope=col>{name}</th>" for name in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in cells(row))}</tr>"
        for row in found.rows
    )
    said = "".join(f"<p>{escape(text)}</p>" for text in notes(found))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(title)}</title><style>{style}{STYLE}</style></head><body>"
        f"<header><h1>{escape(headline(found))}</h1><p>{escape(which)}</p></header>"
        f'<main>{said}{_plot(found.rows)}<h2>Problems</h2><div class="wide"><table><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div></main></body></html>\n"
    )


def _plot(rows: Iterable[ProblemChange]) -> str:
    """Return a plot of the ratios on a logarithmic axis; an empty text if there is none."""
    known = [row for row in rows if row.ratio]
    shown = sorted(known, key=lambda row: -abs(math.log(row.ratio or 1.0)))[:MAX_PLOTTED]
    shown.sort(key=lambda row: row.ratio or 1.0)
    if not shown:
        return ""
    ends = [end for row in shown for end in (row.ratio, row.low, row.high) if end]
    low, high = _outer_ticks(min([*ends, 1 / 1.1]), max([*ends, 1.1]))
    scale = (RIGHT - LEFT) / (math.log(high) - math.log(low))

    def place(ratio: float) -> float:
        return LEFT + (math.log(ratio) - math.log(low)) * scale

    height = TOP + ROW * len(shown) + BOTTOM
    label = "Speed-up after / speed-up before, with 95 % intervals; left of 1 is slower"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
    ]
    for tick in _ticks(low, high, place):
        x, kind = place(tick), "axis" if tick == 1.0 else "grid"
        bottom = height - BOTTOM
        parts.append(
            f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>'
            f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{tick:g}x</text>'
        )
    parts += [_mark(row, TOP + ROW * number, place) for number, row in enumerate(shown)]
    middle = (LEFT + RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{height - 4}" text-anchor="middle">speed-up after / speed-up '
        "before; left of 1 is slower</text></svg>"
    )
    more = f"<p>The {len(shown)} largest of {len(known)}.</p>" if len(known) > len(shown) else ""
    return f'<h2>Ratios</h2><div class="ratios">{"".join(parts)}</div>{more}'


def _round_ratios(low: float, high: float) -> list[float]:
    """Return the multiples of 1, 2 and 5 by powers of ten around an interval, roundest first."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    found = [float(f"{digit}e{power}") for digit in (1, 5, 2) for power in powers]
    return [*found, *(3.0 * 10**power for power in powers if power >= 0)]


def _outer_ticks(low: float, high: float) -> tuple[float, float]:
    """Return the nearest ticks outside of an interval that contains 1."""
    known = [*_round_ratios(low, high), *NEAR_ONE]
    return max(t for t in known if t <= low), min(t for t in known if t >= high)


def _ticks(low: float, high: float, place: Callable[[float], float]) -> list[float]:
    """Return ticks from end to end, as close to each other as their texts allow."""
    kept: list[float] = []
    for tick in (1.0, low, high, *_round_ratios(low, high), *NEAR_ONE):
        apart = all(abs(place(tick) - place(other)) >= MIN_APART for other in kept)
        if low <= tick <= high and apart:
            kept.append(tick)
    return sorted(kept)


def _mark(row: ProblemChange, y: float, place: Callable[[float], float]) -> str:
    """Return name, interval and dot of a problem."""
    assert row.ratio is not None
    text = escape(f"{row.problem}: {row.change}, {cells(row)[3]}", quote=True)
    name = row.problem if len(row.problem) <= MAX_NAME else f"...{row.problem[3 - MAX_NAME :]}"
    kind, centre = CLASSES.get(row.change, ""), y + ROW - 8
    low, high = place(row.low or row.ratio), place(row.high or row.ratio)
    return (
        f'<g class="{kind}"><title>{text}</title>'
        f'<text x="{LEFT}" y="{centre - 10}">{escape(name)}</text>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{centre}" y2="{centre}" '
        'stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{place(row.ratio):.1f}" cy="{centre}" r="4" fill="currentColor"/></g>'
    )
