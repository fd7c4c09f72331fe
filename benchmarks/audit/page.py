"""The pages of an audit, made from its results file: a summary, and one HTML page a library.

A page of a library needs no network; it sorts and filters. `notes.json` beside the pages holds
what people found when they checked a cell by hand: a text for the id of each cell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.audit.cells import Cell, cells_of
from benchmarks.audit.libraries import LIBRARIES, Library
from benchmarks.audit.page_summary import summary_page
from benchmarks.audit.reproducers import write_reproducers
from benchmarks.audit.results import Row, latest
from benchmarks.audit.summary import result_of, speedup_text
from tilewright.reports import html_report

HERE = Path(__file__).parent
REPORTS = Path(html_report.__file__).parent
NOTES = "notes.json"
COLUMNS = (
    ("operator", False),
    ("type", False),
    ("pass", False),
    ("result", False),
    ("against eager", True),
    ("against torch.compile", True),
    ("microseconds", True),
    ("roofline", True),
    ("coverage", True),
    ("peak memory, MB", True),
    ("do_bench", True),
    ("compile s", True),
    ("remark", False),
)


def write_pages(rows: Sequence[Row], folder: Path, source: str) -> None:
    """Write `page.md`, one HTML page for each library of the results, and the reproducers."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NOTES
    notes = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    libraries = [LIBRARIES[row["library"]] for row in _libraries(rows)]
    for library in libraries:
        text = library_page(rows, library, notes)
        (folder / f"{library.name}.html").write_text(text, encoding="utf-8")
    written = write_reproducers(rows, folder / "reproducers")
    text = summary_page(rows, notes, source, [item.name for item in written])
    (folder / "page.md").write_text(text, encoding="utf-8")


def _libraries(rows: Sequence[Row]) -> list[Row]:
    found = {row["library"]: row for row in rows if row["kind"] == "library"}
    return [row for name, row in found.items() if name in LIBRARIES]


def library_page(rows: Sequence[Row], library: Library, notes: dict[str, str]) -> str:
    """Return the HTML page of one library."""
    judged = latest(rows, "cell")
    data = {
        "about": about(rows, library),
        "columns": [{"name": name, "numeric": numeric} for name, numeric in COLUMNS],
        "rows": [
            _line(rows, cell, judged[cell.id], notes)
            for cell in cells_of(library)
            if cell.id in judged
        ],
        "not_judged": [[item.operator, item.reason] for item in library.not_judged]
        + [
            [cell.problem_id, "The run ended before this cell."]
            for cell in cells_of(library)
            if cell.id not in judged
        ],
        "claims": [[claim.text, claim.source] for claim in library.claims],
    }
    scripts = [REPORTS / "parts.js", HERE / "page.js"]
    script = "".join(path.read_text(encoding="utf-8") for path in scripts)
    for name, value in html_report.CONSTANTS.items():
        script = script.replace(f"{{{{{name}}}}}", value)
    block = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        (HERE / "page.html")
        .read_text(encoding="utf-8")
        .replace("{{TITLE}}", escape(f"Audit of {library.name} {library.version}"))
        .replace("{{STYLE}}", (REPORTS / "page.css").read_text(encoding="utf-8"))
        .replace("{{SCRIPT}}", script)
        .replace("{{DATA}}", block)
    )


def about(rows: Sequence[Row], library: Library) -> str:
    """Return the sentence with device, versions and date of a library's cells."""
    row = next(
        (
            row
            for cell, row in latest(rows, "cell").items()
            if cell.startswith(f"{library.name}/") and "device" in row
        ),
        None,
    )
    if row is None:
        found = [each for each in _libraries(rows) if each["library"] == library.name]
        return str(found[-1]["reason"] or "No cell was judged.")
    versions = ", ".join(f"{name} {text}" for name, text in sorted(row["versions"].items()))
    dates = sorted({row["date"] for row in rows if row["kind"] == "slice"})
    return f"{row['device']}; {versions}; {' to '.join(dates[:1] + dates[1:][-1:])}."


def _line(rows: Sequence[Row], cell: Cell, row: Row, notes: dict[str, str]) -> dict[str, Any]:
    against = row.get("against") or {}
    eager = [case for case in row.get("cases", ()) if case["baseline"] == "eager"]
    shares = [case["roofline"] for case in eager if case["roofline"] is not None]
    peaks = [case["candidate_bytes"] for case in eager if case["candidate_bytes"] is not None]
    times = [case["candidate_us"] for case in eager]
    bench = latest(rows, "do_bench").get(cell.id, {}).get("cases", {})
    ratios = [one / other for one, other in bench.values()]
    compiled = latest(rows, "compile").get(cell.problem_id, {})
    numbers: list[float | None] = [
        (against.get("eager") or [None])[0],
        (against.get("compile") or [None])[0],
        max(times, default=None),
        max(shares, default=None),
        row.get("coverage"),
        max(peaks, default=None),
        _mean(ratios),
        sum(compiled["compile_s"].values()) if "compile_s" in compiled else None,
    ]
    texts = [
        speedup_text(against.get("eager")),
        speedup_text(against.get("compile")),
        ", ".join(f"{case['case']} {case['candidate_us']:.1f}" for case in eager),
        ", ".join(f"{share:.0%}" for share in shares),
        _text("{:.0%}", row.get("coverage")),
        ", ".join(f"{peak / 1e6:.0f}" for peak in peaks),
        ", ".join(f"{ratio:.3f}" for ratio in ratios),
        _text("{:.1f}", numbers[-1]),
    ]
    passed = "backward" if cell.backward else "forward"
    first = [cell.call.operator, cell.dtype, passed, result_of(row)]
    remark = _remark(cell, row, compiled, notes)
    return {
        "result": first[3],
        "dtype": cell.dtype,
        "pass": passed,
        "cells": [*first, *texts, remark],
        "order": [*first, *numbers, remark],
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _text(form: str, value: float | None) -> str:
    return "" if value is None else form.format(value)


def _remark(cell: Cell, row: Row, compiled: Row, notes: dict[str, str]) -> str:
    parts = [
        row.get("message", "") if row["verdict"] != "correct" else "",
        "; ".join(summary for _, summary in row.get("findings", ())),
        cell.call.note,
        notes.get(cell.id, ""),
        f"torch.compile: {compiled['error']}" if "error" in compiled else "",
        f"torch.compile: {row['compile_error']}" if "compile_error" in row else "",
    ]
    return " ".join(filter(None, parts))
