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
WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 720, 18, 230, 700, 26, 36
"""Sizes of the plot in pixels; names of problems stand to the left of `LEFT`."""
MAX_NAME = 34
"""Characters of a problem's name in the plot; hovering shows all of it."""
TICKS = (0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 100.0)
CLASSES = {Change.SLOWER: "incorrect", Change.FASTER: "correct"}
"""Colours of the verdicts, for changes that are like them."""


def as_page(found: RunComparison) -> str:
    """Return one HTML page that works from disk."""
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    title = f"{found.before.folder} and {found.after.folder}"
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
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f"<header><h1>{escape(headline(found))}</h1><p>{escape(title)}</p></header>"
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
    low, high = min([*ends, 1 / 1.1]), max([*ends, 1.1])
    scale = (RIGHT - LEFT) / (math.log(high) - math.log(low))

    def place(ratio: float) -> float:
        return LEFT + (math.log(ratio) - math.log(low)) * scale

    height = TOP + ROW * len(shown) + BOTTOM
    label = "Speed-up after over speed-up before, with 95 % intervals"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
    ]
    last = -math.inf
    for tick in sorted(TICKS, key=lambda ratio: ratio != 1.0):
        x = place(tick)
        if not low <= tick <= high or (tick != 1.0 and abs(x - place(1.0)) < 40) or x < last + 40:
            continue
        last = x if tick != 1.0 else last
        parts.append(
            f'<line class="{"axis" if tick == 1.0 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" '
            f'y1="{TOP - 8}" y2="{height - BOTTOM}"/>'
            f'<text x="{x:.1f}" y="{height - BOTTOM + 15}" text-anchor="middle">{tick:g}x</text>'
        )
    parts += [_mark(row, TOP + ROW * number, place) for number, row in enumerate(shown)]
    middle = (LEFT + RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{height - 4}" text-anchor="middle">after over before</text></svg>'
    )
    more = f"<p>The {len(shown)} largest of {len(known)}.</p>" if len(known) > len(shown) else ""
    return f'<h2>Ratios</h2><div class="wide">{"".join(parts)}</div>{more}'


def _mark(row: ProblemChange, y: float, place: Callable[[float], float]) -> str:
    """Return name, interval and dot of a problem."""
    assert row.ratio is not None
    text = escape(f"{row.problem}: {row.change}, {cells(row)[3]}", quote=True)
    name = row.problem if len(row.problem) <= MAX_NAME else f"...{row.problem[3 - MAX_NAME :]}"
    kind, centre = CLASSES.get(row.change, ""), y + ROW / 2
    low, high = place(row.low or row.ratio), place(row.high or row.ratio)
    return (
        f'<g class="{kind}"><title>{text}</title>'
        f'<text x="{LEFT - 8}" y="{centre + 4}" text-anchor="end">{escape(name)}</text>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{centre}" y2="{centre}" '
        'stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{place(row.ratio):.1f}" cy="{centre}" r="4" fill="currentColor"/></g>'
    )
