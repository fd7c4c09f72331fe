"""The page of a comparison: one sentence, a plot of the ratios with their intervals, a table."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

from tilewright.reports.glossary import definitions, terms_html
from tilewright.reports.loader import begun_at
from tilewright.reports.run_comparison import COLUMNS, RunComparison, cells, headline, notes
from tilewright.scoring.run_changes import Change, ProblemChange

MAX_PLOTTED = 60
"""Problems in the plot: those whose ratio is farthest from 1."""
LEFT, RIGHT = 4.0, 96.0
"""Ends of the axis in percent of the width, which is that of the page."""
ROW, TOP, BOTTOM = 34, 20, 42
"""Heights in pixels; a name stands above its interval."""
MAX_NAME = 50
"""Characters of a problem's name in the plot; hovering shows all of it."""
MIN_APART = 11.0
"""Percent of the width between two ticks, so that their texts do not touch on a phone."""
NEAR_ONE = (0.8, 1.25, 1.5, 0.7, 0.6, 0.9, 1.1, 0.95, 1.05)
"""Ticks that fill the axis around 1, the most useful first."""
STYLE = (
    ".ratios svg{width:100%}.ratios svg text{font-size:13px}"
    "@media(min-width:60rem){td:not(:last-child){white-space:nowrap}}"
)
CLASSES = {Change.SLOWER: "incorrect", Change.FASTER: "correct"}
"""Colours of the verdicts, for changes that are like them."""
TERMS = {"before": "speed-up", "after": "speed-up", "ratio": "confidence interval"}
"""Headings of the table, and the terms of the glossary that explain them."""


def as_page(found: RunComparison) -> str:
    """Return one HTML page that works from disk."""
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    title = f"{found.before.folder} and {found.after.folder}"
    titles = found.before.titles | found.after.titles
    body = "".join(_row(row, titles.get(row.problem, "")) for row in found.rows)
    said = "".join(f"<p>{escape(text)}</p>" for text in notes(found))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(title)}</title><style>{style}{STYLE}</style></head><body>"
        f"<header><h1>{escape(headline(found))}</h1>{_about(found)}</header>"
        f'<main>{said}{_plot(found.rows)}<h2>Problems</h2><div class="wide"><table><thead><tr>'
        f"{''.join(map(_heading, COLUMNS))}</tr></thead><tbody>{body}</tbody></table></div></main>"
        f"<footer>{terms_html(_terms(found))}</footer></body></html>\n"
    )


def _about(found: RunComparison) -> str:
    """Return the folder, date, device and version of both runs, and the command of the page."""
    texts = []
    for name, run in (("Before", found.before), ("After", found.after)):
        begun = begun_at(Path(run.folder).resolve().name)
        facts = [run.device, run.evaluator and f"tilewright {run.evaluator}"]
        facts += [f"begun {begun}"] if begun else []
        texts.append(f"{name}: {', '.join([run.folder, *filter(None, facts)])}.")
    words = ["tilewright", "compare", found.before.folder, found.after.folder]
    words += [] if found.protocol == "strict" else ["--protocol", found.protocol]
    texts.append(f"This page again: {shlex.join([*words, '--page'])} FILE")
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _heading(name: str) -> str:
    term = TERMS.get(name, "")
    tip = f' class="term" title="{escape(f"{term}: {definitions()[term]}")}"' if term else ""
    return f"<th scope=col{tip}>{name}</th>"


def _row(row: ProblemChange, title: str) -> str:
    *texts, problem = (f"<td>{escape(value)}" for value in cells(row))
    about = f'<span class="title">{escape(title)}</span>' if title else ""
    return f"<tr>{''.join(f'{text}</td>' for text in texts)}{problem}{about}</td></tr>"


def _terms(found: RunComparison) -> set[str]:
    """Return the terms of the glossary that the page uses."""
    texts = {text for row in found.rows for text in cells(row)}
    return {*TERMS.values(), *(texts & definitions().keys())}


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
        f'<svg width="100%" height="{height}" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
    ]
    for tick in _ticks(low, high, place):
        x, kind = place(tick), "axis" if tick == 1.0 else "grid"
        bottom = height - BOTTOM
        parts.append(
            f'<line class="{kind}" x1="{x:.2f}%" x2="{x:.2f}%" y1="{TOP - 8}" y2="{bottom}"/>'
            f'<text x="{x:.2f}%" y="{bottom + 15}" text-anchor="middle">{tick:g}x</text>'
        )
    parts += [_mark(row, TOP + ROW * number, place) for number, row in enumerate(shown)]
    parts.append(
        f'<text x="50%" y="{height - 4}" text-anchor="middle">speed-up after / speed-up '
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
        f'<text x="{LEFT}%" y="{centre - 10}">{escape(name)}</text>'
        f'<line x1="{low:.2f}%" x2="{high:.2f}%" y1="{centre}" y2="{centre}" '
        'stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{place(row.ratio):.2f}%" cy="{centre}" r="4" fill="currentColor"/></g>'
    )
