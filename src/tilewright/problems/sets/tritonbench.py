"""TritonBench (arXiv 2502.14752): 184 real kernels (G) and 166 operators of torch (T).

The optional `TritonBench_T_v1.jsonl` describes the operators of T; predictions name an operator
by that description.
"""

from __future__ import annotations

from pathlib import Path

from tilewright.errors import ProblemError
from tilewright.problems.sets.base import Found, json_rows
from tilewright.problems.sets.gold_file import problem_of

FOLDERS = {"g": "TritonBench_G_v1", "t": "TritonBench_T_v1"}


class TritonBench:
    """The set, with the groups `g` and `t`."""

    name = "tritonbench"
    about = "184 kernels from GitHub (g) and 166 operators of torch (t)"
    repository = "https://github.com/thunlp/TritonBench"
    hub = None

    def read(self, source: Path, revision: str) -> Found:
        """Read a clone, or its folder `data`."""
        found = Found()
        for group, name in FOLDERS.items():
            for parent in (source / "data", source):
                words = _descriptions(parent / f"{name}.jsonl", found)
                for path in sorted((parent / name).glob("*.py")):
                    with found.skipping(str(path)):
                        problem = problem_of(
                            path.read_text(encoding="utf-8"),
                            f"{self.name}/{group}/{path.stem}",
                            str(path),
                            category=group,
                            description=words.get(path.name, ""),
                            printed=True,
                        )
                        found.add(problem.model_copy(update={"revision": revision}), str(path))
        if not found.problems and not found.skipped:
            wanted = " or ".join(f"data/{name}" for name in FOLDERS.values())
            raise ProblemError(f"{source}: no TritonBench here: no gold file in {wanted}")
        return found


def _descriptions(path: Path, found: Found) -> dict[str, str]:
    rows = json_rows(path, found.skipped) if path.is_file() else ()
    return {
        str(row["file"]): str(row["description"])
        for _, row in rows
        if "file" in row and "description" in row
    }


SET = TritonBench()
