"""A page as one file: its template, styles, scripts and data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["drawn"]

HERE = Path(__file__).parent


def drawn(name: str, title: str, data: dict[str, Any], styles: Sequence[str]) -> str:
    """Return the page `name` with everything inside: nothing is fetched, data runs nowhere."""
    text = json.dumps(data, separators=(",", ":"))
    # Nothing in it can end the block or begin a comment.
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return (
        _read(f"{name}.html")
        .replace("{{TITLE}}", escape(title))
        .replace("{{STYLE}}", "".join(map(_read, styles)))
        .replace("{{SCRIPT}}", _read("parts.js") + _read(f"{name}.js"))
        .replace("{{DATA}}", safe)
    )


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
