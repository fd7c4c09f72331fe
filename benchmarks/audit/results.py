"""The results file: one JSON line for each row, appended as soon as it is known."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Results:
    """Reads the rows of earlier slices and appends new ones. Lifetime: one slice of a run."""

    def __init__(self, path: Path, resumed: Path | None = None) -> None:
        self.path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if resumed is not None and resumed.exists() and resumed.resolve() != path.resolve():
            shutil.copyfile(resumed, path)
        self.rows = read(path)

    def add(self, row: Row) -> None:
        """Append a row. Results are published, and name no folder of the machine."""
        with self._lock:
            row = json.loads(json.dumps(row).replace(sys.prefix, ""))
            self.rows.append(row)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, separators=(",", ":")) + "\n")

    def drop(self, kind: str, cells: Collection[str]) -> None:
        """Leave out the rows of a kind for some cells, which are to be made anew.

        Raises:
            ValueError: a cell has no such row.
        """
        unknown = sorted(set(cells) - self.known(kind))
        if unknown:
            raise ValueError(f"{self.path}: there is no {kind} {', '.join(unknown)}")
        if not cells:
            return
        self.rows = [
            row for row in self.rows if row["kind"] != kind or row.get("cell") not in cells
        ]
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in self.rows)
        self.path.write_text(text, encoding="utf-8")

    def known(self, kind: str) -> set[str]:
        """Return the cells that have a row of a kind."""
        return {row["cell"] for row in self.rows if row["kind"] == kind}


def read(path: Path) -> list[Row]:
    """Return the rows of a file; a last line that was cut off is left out, and removed."""
    rows: list[Row] = []
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    if text and not text.endswith("\n"):
        # A new row must not continue the line. Other files are only read, by several at once.
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")
    return rows


def merge(files: Iterable[Path], out: Path) -> list[Row]:
    """Write the rows of several slices into one file and return them.

    Slices that went on with the same earlier results share rows. Each is kept once.
    """
    lines = dict.fromkeys(
        json.dumps(row, separators=(",", ":")) for file in files for row in read(file)
    )
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [json.loads(line) for line in lines]


def latest(rows: Iterable[Row], kind: str) -> dict[str, Row]:
    """Return the last row of a kind for each cell."""
    return {row["cell"]: row for row in rows if row["kind"] == kind}
