"""KernelBench-X (arXiv 2605.04956): 176 operators in 15 categories, specified in words.

In a clone `data/kernelbenchx_v1.json` lists the tasks, and `data/kernelbenchx/CATEGORY/NAME.py` are
their gold files. Tests generate inputs with `utils/data_utils.py`, which the importer copies.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tilewright.errors import ProblemError
from tilewright.problems.sets.base import Found, json_rows
from tilewright.problems.sets.gold_file import problem_of
from tilewright.records import SourceFile

RECORDS, GOLD = "kernelbenchx_v1.json", "kernelbenchx"
DRAWING = "utils/data_utils.py"


def category_of(row: dict[str, Any]) -> str:
    """Return the category of a record: its own word, else the folder of its file."""
    return str(row.get("category") or str(row["file"]).partition("/")[0])


def _thresholds(row: dict[str, Any], where: str) -> tuple[float, float, float] | None:
    found = row.get("precision_thresholds")
    if not found:
        return None
    if not isinstance(found, dict):
        raise ProblemError(f"{where}: precision_thresholds is not an object")
    try:
        cosine, l1, rmse = (float(found[name]) for name in ("cosine_sim", "l1_relative", "rmse"))
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"{where}: precision_thresholds: {error}") from error
    if not all(map(math.isfinite, (cosine, l1, rmse))):
        values = [cosine, l1, rmse]
        raise ProblemError(f"{where}: precision_thresholds: {values} are not all finite")
    return cosine, l1, rmse


def _companions(clone: Path, text: str, where: str) -> tuple[SourceFile, ...]:
    """Return the module that generates inputs for a gold file's tests, if they use it."""
    path = clone / DRAWING
    if path.stem not in text:
        return ()
    try:
        return (SourceFile(path=path.name, text=path.read_text(encoding="utf-8")),)
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(
            f"{where}: its tests draw inputs by {path}, which cannot be read: {error}"
        ) from error


class KernelBenchX:
    """The set."""

    name = "kernelbenchx"
    about = "176 operators in 15 categories, with the gold files of its repository"
    repository = "https://github.com/BonnieW05/KernelBenchX"
    hub = None

    def read(self, source: Path, revision: str) -> Found:
        """Read a clone, or its folder `data`."""
        for folder in (source / "data", source):
            if (folder / RECORDS).is_file() and (folder / GOLD).is_dir():
                return self._read(folder, revision)
        raise ProblemError(
            f"{source}: no KernelBench-X here: it wants data/{RECORDS} and the gold files in "
            f"data/{GOLD}; the records alone hold no inputs to judge on"
        )

    def _read(self, folder: Path, revision: str) -> Found:
        found = Found()
        for where, row in json_rows(folder / RECORDS, found.skipped):
            with found.skipping(where, "its gold file "):
                path = folder / GOLD / str(row["file"])
                category = category_of(row)
                text = path.read_text(encoding="utf-8")
                problem = problem_of(
                    text,
                    f"{self.name}/{category}/{path.stem}",
                    str(path),
                    category=category,
                    description=str(row.get("description", "")),
                    thresholds=_thresholds(row, where),
                    companions=_companions(folder.parent, text, str(path)),
                )
                found.add(problem.model_copy(update={"revision": revision}), where)
        return found


SET = KernelBenchX()
