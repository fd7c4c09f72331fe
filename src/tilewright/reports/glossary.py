"""The definitions of the glossary, for pages and for `tilewright explain`."""

from __future__ import annotations

import functools
import re
from collections.abc import Container
from html import escape
from pathlib import Path

from tilewright.records import EvalReport

SHIPPED = Path(__file__).with_name("glossary.md")
"""Where the wheel puts `docs/explanation/glossary.md`."""
IN_CHECKOUT = Path(__file__).parents[3] / "docs" / "explanation" / "glossary.md"
_ROW = re.compile(r"^\| (?!---)([^|]+) \| ([^|]+) \|", re.MULTILINE)
_HEADER = re.compile(r"^\| [^|\n]+ \| (?:definition|effect|work|meaning) \|.*$", re.MULTILINE)


@functools.cache
def definitions() -> dict[str, str]:
    """Return the definition of each term and code, in the order of the glossary."""
    path = SHIPPED if SHIPPED.exists() else IN_CHECKOUT
    text = _HEADER.sub("", path.read_text(encoding="utf-8"))
    return {term.strip("`"): meaning.replace("`", "") for term, meaning in _ROW.findall(text)}


def terms_of(report: EvalReport) -> dict[str, str]:
    """Return the definition of each code that a report holds."""
    outcome = report.outcome.model_dump(mode="json")
    codes = [outcome.get(name) for name in ("reason", "kind", "inputs")]
    codes += [item.code for item in report.findings] + [item.name for item in report.labels]
    codes += [name for item in report.comparisons for name in item.labels]
    codes += [item.name for item in report.isolation if not item.active]
    known = definitions()
    return {code: known[code] for code in dict.fromkeys(codes) if code in known}


HEADINGS = {
    "fast_1": "fast_p",
    "fast_1@k": "pass@k",
    "fast_1, sure": "fast_p, sure",
    "AMSR": "AMSR",
    "AMSR, 95 %": "AMSR",
    "pass@k": "pass@k",
    "95 %": "confidence interval",
    "speed-up": "speed-up",
    "protocol": "protocol",
    "verdict": "verdict",
}
"""Headings of tables, and the terms of the glossary that explain them."""


def heading_terms() -> dict[str, str]:
    """Return the explanation of each heading of a page, for a tooltip."""
    known = definitions()
    return {heading: f"{term}: {known[term]}" for heading, term in HEADINGS.items()}


def terms_html(used: Container[str] | None = None) -> str:
    """Return the glossary as HTML for the end of a page: the used terms.

    By default it has all terms, and the page hides those that do not occur.
    """
    known = ((term, text) for term, text in definitions().items() if used is None or term in used)
    pairs = ((escape(term), escape(meaning)) for term, meaning in known)
    rows = (f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in pairs)
    return f"<details><summary>Terms of this page</summary><dl>{''.join(rows)}</dl></details>"
