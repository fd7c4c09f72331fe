"""KernelBench (Ouyang et al., arXiv 2502.10517): a `Model` to be replaced by a faster `ModelNew`.

Read from a clone (`KernelBench/level1/1_Name.py`), from such a folder, or from rows with `level`,
`problem_id` and `code`, as the dataset on the Hub has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright.errors import ProblemError
from tilewright.problems.reader import parse_problem
from tilewright.problems.sets.base import Found, Hub, json_rows
from tilewright.records import Problem

__all__ = ["SET", "KernelBench"]

COUNTS = {1: 100, 2: 100, 3: 50, 4: 20}
"""Problems a level of the repository; the dataset has the first three."""
LOOSE, TIGHT = 1e-2, 1e-4
"""Published tolerance on float32 outputs: versions 0 and 0.1, and from 0.2 on (1.2.2)."""
_FILE = re.compile(r"^(\d+)_.*\.py$")
_LOOSE = re.compile(r"v0(\.1)?(-|$)")
_LEVEL = re.compile(r"^level_?(\d+)$")


class KernelBench:
    """The set; levels 1 to 3 are on the Hub, level 4 in the repository alone."""

    name = "kernelbench"
    about = "a torch module to be replaced by a faster one (levels 1 to 4)"
    hub = Hub(
        dataset="ScalingIntelligence/KernelBench",
        revision="v0.1",
        splits=("level_1", "level_2", "level_3"),
    )

    def read(self, source: Path, revision: str) -> Found:
        """Read a clone, a folder of levels, or a file of rows."""
        found = Found()
        if source.is_file():
            self._read_rows(json_rows(source, found.skipped), revision, found)
            return found
        files = sorted(_level_files(source))
        if not files:
            raise ProblemError(
                f"{source}: no KernelBench here: no level1/1_Name.py in it or in KernelBench/"
            )
        for level, number, path in files:
            try:
                text = path.read_text(encoding="utf-8")
                found.problems.append(self._problem(level, number, text, revision, str(path)))
            except (OSError, UnicodeDecodeError, ProblemError) as error:
                found.skipped.append(f"{path}: {error}")
        return found

    def _read_rows(
        self, rows: Iterator[tuple[str, dict[str, Any]]], revision: str, found: Found
    ) -> None:
        seen = set[str]()
        for where, row in rows:
            try:
                level, number = int(row["level"]), int(row["problem_id"])
                problem = self._problem(level, number, str(row["code"]), revision, where)
            except (KeyError, TypeError, ValueError) as error:
                found.skipped.append(f"{where}: wants level, problem_id and code: {error!r}")
                continue
            except ProblemError as error:
                found.skipped.append(str(error))
                continue
            if problem.id in seen:
                found.skipped.append(f"{where}: {problem.id} stands twice; the first one counts")
                continue
            seen.add(problem.id)
            found.problems.append(problem)

    def _problem(self, level: int, number: int, text: str, revision: str, where: str) -> Problem:
        name = f"level{level}-{number}"
        problem = parse_problem(text, f"{self.name}/{name}", name, where)
        loose = _LOOSE.match(revision) is not None
        return problem.model_copy(
            update={"revision": revision, "tolerance": LOOSE if loose else TIGHT}
        )


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
