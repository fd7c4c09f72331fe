"""KernelBench (Ouyang et al., arXiv 2502.10517): a `Model` to be replaced by a faster `ModelNew`.

The source is a clone (`KernelBench/level1/1_Name.py`), such a folder, or rows. Rows have `level`,
`problem_id` and `code`, as in the dataset on the Hub (`data/level_1-*.parquet`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tilewright.errors import ProblemError
from tilewright.problems.loader import parse_problem
from tilewright.problems.sets.base import Found, Hub, read_rows, whole_number
from tilewright.records import Problem

FIELDS = ("level", "problem_id", "code")
LOOSE, TIGHT = 1e-2, 1e-4
"""Published tolerance on float32 outputs: versions 0 and 0.1, and from 0.2 on (1.2.2)."""
_FILE = re.compile(r"^(\d+)_.*\.py$")
_LOOSE = re.compile(r"v0(\.1)?(-|$)")
_LEVEL = re.compile(r"^level_?(\d+)$")


class KernelBench:
    """The set, with the groups `level1` to `level4`."""

    name = "kernelbench"
    about = "a torch module to be replaced by a faster one (levels 1 to 4)"
    repository = "https://github.com/ScalingIntelligence/KernelBench"
    # `v0` and `v0.1` are branches of the repository. The dataset is known to have `main` alone.
    hub = Hub(dataset="ScalingIntelligence/KernelBench", revision="main")

    def read(self, source: Path, revision: str) -> Found:
        """Read a clone, a folder of levels, a file of rows, or a folder of files of rows."""
        found = Found()
        if source.is_file():
            self._read_rows(source, revision, found)
            return found
        files = sorted(_level_files(source))
        for level, number, path in files:
            with found.skipping(str(path)):
                text = path.read_text(encoding="utf-8")
                found.add(self._problem(level, number, text, revision, str(path)), str(path))
        if files:
            return found
        rows = sorted(source.glob("*.parquet")) or sorted((source / "data").glob("*.parquet"))
        for path in rows:
            with found.skipping(str(path)):
                self._read_rows(path, revision, found)
        if not rows:
            raise ProblemError(
                f"{source}: no KernelBench here: no level1/1_Name.py in it or in KernelBench/, "
                "and no NAME.parquet in it or in data/"
            )
        return found

    def _read_rows(self, path: Path, revision: str, found: Found) -> None:
        for where, row in read_rows(path, found.skipped):
            with found.skipping(where):
                level, number = (whole_number(row.get(name)) for name in ("level", "problem_id"))
                if level is None or number is None or not isinstance(row.get("code"), str):
                    given = ", ".join(f"{name} {str(row.get(name))[:40]!r}" for name in FIELDS)
                    raise ProblemError(
                        f"{where}: wants level and problem_id, numbers from 0 on, and code: {given}"
                    )
                found.add(self._problem(level, number, row["code"], revision, where), where)

    def _problem(self, level: int, number: int, text: str, revision: str, where: str) -> Problem:
        name = f"level{level}-{number}"
        problem = parse_problem(text, f"{self.name}/{name}", name, where)
        tolerance = LOOSE if _LOOSE.match(revision) else TIGHT
        return problem.model_copy(update={"revision": revision, "tolerance": tolerance})


def _level_files(root: Path) -> Iterator[tuple[int, int, Path]]:
    for parent in (root / "KernelBench", root):
        for folder in sorted(parent.glob("level*")) if parent.is_dir() else []:
            level = _LEVEL.match(folder.name)
            for path in folder.iterdir() if level else []:
                number = _FILE.match(path.name)
                if level and number:
                    yield int(level[1]), int(number[1]), path
        if parent is not root and any(parent.glob("level*/*.py")):
            return


SET = KernelBench()
