"""A chart of one figure over the steps of the arms, as SVG: seeds are thin lines. No torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 150, 28, 40
COLORS = ("#0b6e99", "#c44536", "#2f855a", "#7b4fa3", "#b7791f", "#4a5568", "#d53f8c", "#2c5282")
DASHES = ("", "7 4", "2 3", "10 3 2 3")
"""The lines differ without their colors too."""
TICKS = 5
"""Most parts of the axis; their size is 1, 2 or 5 times a power of ten."""

Series = Sequence[float | None]


def step_chart(
    title: str, arms: Mapping[str, Sequence[Series]], note: str = "", unit: str = "step"
) -> str:
    """Return an SVG of each arm's series over steps or turns, and of the mean over its seeds."""
    values = [v for seeds in arms.values() for series in seeds for v in series if v is not None]
    part = _tick_size(max([1e-9, *values]) - min([0.0, *values]))
    low = part * math.floor(min([0.0, *values]) / part + 1e-9)
    high = part * math.ceil(max([1e-9, *values]) / part - 1e-9)
    steps = max((len(series) for seeds in arms.values() for series in seeds), default=1)

    def point(step: int, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - RIGHT) * step / max(steps - 1, 1)
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)
        return f"{x:.1f},{y:.1f}"

    def line(series: Series, style: str) -> str:
        places = [point(step, value) for step, value in enumerate(series) if value is not None]
        return f'<polyline fill="none" points="{" ".join(places)}" {style}/>' if places else ""

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="17" font-size="14" fill="#1a202c">{escape(title)}</text>',
    ]
    for tick in range(round((high - low) / part) + 1):
        value = low + part * tick
        y = point(0, value).partition(",")[2]
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#e2e8f0"/>'
            f'<text x="{LEFT - 6}" y="{y}" dy="4" text-anchor="end" fill="#4a5568">'
            f"{value:.6g}</text>"
        )
    for place, (name, seeds) in enumerate(arms.items()):
        color = COLORS[place % len(COLORS)]
        if len(seeds) > 1:
            style = f'stroke="{color}" stroke-opacity="0.35" stroke-width="1"'
            parts += [line(series, style) for series in seeds]
        dash = f'stroke-dasharray="{DASHES[place % len(DASHES)]}"'
        parts.append(line(_means(seeds), f'stroke="{color}" stroke-width="2" {dash}'))
        line_y = TOP + 8 + 18 * place
        parts.append(
            f'<line x1="{WIDTH - RIGHT + 10}" x2="{WIDTH - RIGHT + 34}" y1="{line_y - 2}" '
            f'y2="{line_y - 2}" stroke="{color}" stroke-width="2" {dash}/>'
            f'<text x="{WIDTH - RIGHT + 40}" y="{line_y + 2}" fill="#1a202c">{escape(name)}</text>'
        )
    axis = f"{unit}, 1 to {steps}" + (f"; {note}" if note else "")
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle" fill="#4a5568">{escape(axis)}'
        "</text></svg>\n"
    )
    return "\n".join(filter(None, parts))


def _tick_size(span: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that cuts a span into `TICKS` parts."""
    power = 10.0 ** math.floor(math.log10(span / TICKS))
    return next(part * power for part in (1.0, 2.0, 5.0, 10.0) if part * power * TICKS >= span)


def _means(seeds: Sequence[Series]) -> list[float | None]:
    longest = max((len(series) for series in seeds), default=0)
    columns = [[series[step] for series in seeds if step < len(series)] for step in range(longest)]
    known = [[value for value in column if value is not None] for column in columns]
    return [statistics.fmean(column) if column else None for column in known]
