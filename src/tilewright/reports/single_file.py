"""A page as one file: its template, styles, scripts and data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilewright.scoring.intervals import NOISY_HALF_WIDTH, STRETCH

__all__ = ["block", "drawn"]

HERE = Path(__file__).parent


def block(data: object) -> str:
    """Return data as ASCII JSON that cannot end its block in a page or start a comment."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def drawn(name: str, title: str, data: dict[str, Any], styles: Sequence[str]) -> str:
    """Return the page `name` with its styles, scripts and data, none of which is fetched."""
    return (
        _read(f"{name}.html")
        .replace("{{TITLE}}", escape(title))
        .replace("{{STYLE}}", "".join(map(_read, styles)))
        .replace("{{SCRIPT}}", _parts() + _read(f"{name}.js"))
        .replace("{{DATA}}", block(data))
    )


def _parts() -> str:
    """Return the functions that the pages share, with the constants of `decide`."""
    parts = _read("parts.js")
    for name, value in (("NOISY_HALF_WIDTH", NOISY_HALF_WIDTH), ("STRETCH", STRETCH)):
        parts = parts.replace(f"{{{{{name}}}}}", str(value))
    return parts


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
