"""Stand-alone scripts for cells that are incorrect: torch and the library, and nothing of ours.

A script compares the library with float64 and with eager torch on one case, and then makes the
case smaller as long as the result stays wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.audit.cells import Cell, all_cells
from benchmarks.audit.results import Row, latest

TEMPLATE = Path(__file__).with_name("reproducer.py.txt")


def write_reproducers(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write a script for each incorrect cell, remove those of other cells, return the paths."""
    cells = {cell.id: cell for cell in all_cells()}
    written = []
    for name, row in latest(rows, "cell").items():
        if row["verdict"] != "incorrect" or name not in cells:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        # No suffix of Python: these files are exhibits, not code of this repository.
        path = folder / f"{name.replace('/', '--')}.py.txt"
        path.write_text(reproducer(cells[name], row), encoding="utf-8")
        written.append(path)
    for path in set(folder.glob("*.py.txt")) - set(written):
        path.unlink()
    return written


def reproducer(cell: Cell, row: Row) -> str:
    """Return the script for an incorrect cell."""
    wrong: dict[str, Any] = row.get("wrong") or {}
    variation, _, divisor = str(wrong.get("input_variation", "nominal")).partition("/")
    library, text = cell.library, cell.problem()
    fields = {
        "TITLE": f"{library.name} {library.version}: {cell.problem_id}",
        "VERSIONS": ", ".join(f"{k} {v}" for k, v in sorted(row.get("versions", {}).items())),
        "DEVICE": str(row.get("device", "unknown")),
        "SEEN": " ".join(str(row.get("message", "")).split()).encode("ascii", "replace").decode(),
        "PROBLEM": text.strip(),
        "CANDIDATE": cell.candidate().strip(),
        "CASE": repr(str(wrong.get("case", cell.operator.cases[0]["name"]))),
        "VARIATION": repr(variation),
        "DIVISOR": divisor or "1",
        "NAMES": repr(cell.operator.names.split(", ")),
        "BACKWARD": repr(list(cell.operator.grads) if cell.backward else []),
    }
    script = TEMPLATE.read_text(encoding="utf-8")
    for name, value in fields.items():
        script = script.replace("{{" + name + "}}", value)
    return script
