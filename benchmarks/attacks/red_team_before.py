"""Evaluate files of the red-team suite with another tree of tilewright, and store the rows.

`python -m benchmarks.attacks.red_team_before TREE` evaluates what `tests/attacks/at_a9ccb78.jsonl`
lacks. TREE is a checkout of a9ccb78 with an environment in `.venv`; its own program does the work.
With `--seed` it evaluates the attacks that the generators write from this seed, and adds those that
`generated_at_a9ccb78.jsonl` lacks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.attacks.red_team_files import SUITE, SuiteFile, read_suite, write_generated

TABLE = SUITE / "at_a9ccb78.jsonl"
GENERATED = SUITE / "generated_at_a9ccb78.jsonl"
OLD_NAMES = {
    "eval.limits.call_timeout_s": "eval.limits.call_s",
    "eval.limits.tmpfs_bytes": "eval.limits.tmp_bytes",
    "eval.limits.total_timeout_s": "eval.limits.total_s",
}
"""Settings of a header, and their names at a9ccb78."""
PROGRAM = """
import json, os, sys, time
import tilewright
from tilewright.config import load
from tilewright.errors import ProblemError, TilewrightError

def shown(text):
    # Messages name files of the tree, whose place is that of one machine.
    return text.replace(os.getcwd() + os.sep, "")[:200]

def judge(work):
    more = ["eval.timing.min_blocks=8", "eval.timing.max_blocks=16", "eval.timing.max_s=0.6",
            "eval.limits.call_s=10", *work["settings"]]
    config = load(overrides=more, environ={})
    given = {"language": work["language"], "config": config}
    try:
        return tilewright.evaluate(
            work["path"], work["problem"], baselines=work["baselines"], **given), True
    except ProblemError:
        given["baselines"] = ["eager"]
        return tilewright.evaluate(work["path"], work["problem"], **given), False

for line in sys.stdin:
    work, row, start = json.loads(line), {}, time.monotonic()
    try:
        report, measured = judge(work)
        row["verdict"] = report.verdict
        found = [(c.speedup, c.speedup_low, c.speedup_high) for c in report.comparisons]
        if measured and report.verdict == "correct" and work["has_gain"] and found:
            row["gain"] = [round(x, 3) for x in max(found, key=lambda item: item[1])]
        row["speedup"] = report.speedup and round(report.speedup, 3)
        row["labels"] = [item.name for item in report.labels]
        row["findings"] = [item.check for item in report.findings if item.weight == "decisive"]
        row["message"] = shown(str(getattr(report.outcome, "message", "")))
    except TilewrightError as error:
        row |= {"verdict": type(error).__name__, "message": shown(str(error))}
    row["seconds"] = round(time.monotonic() - start, 1)
    print("ROW " + json.dumps(row), flush=True)
"""


def stored(path: Path = TABLE) -> dict[str, dict[str, Any]]:
    """Return the rows of the table by the name of the file."""
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in map(json.loads, filter(None, lines))}


def work_of(file: SuiteFile) -> dict[str, Any]:
    """Return what the other tree must know of a file."""
    own = file.path.parent.parent / "problems" / f"{file.file.keys['problem']}.py"
    counterpart = file.counterpart if file.kind == "attacks" else None
    settings = [
        f"{OLD_NAMES.get(k, k)}={v}" for k, _, v in (s.partition("=") for s in file.settings)
    ]
    return {
        "path": str(file.path),
        "problem": str(own) if own.is_file() else file.file.keys["problem"],
        "language": file.file.keys.get("language"),
        "baselines": [str(counterpart)] if counterpart else ["eager"],
        "settings": settings,
        "has_gain": file.has_gain,
    }


def evaluate(tree: Path, files: list[SuiteFile]) -> Iterator[dict[str, Any]]:
    """Yield a row for each file that the tree evaluated, in order."""
    python = tree / ".venv" / "bin" / "python"
    with subprocess.Popen(
        [str(python), "-c", PROGRAM],
        cwd=tree,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for file in files:
            process.stdin.write(json.dumps(work_of(file)) + "\n")
            process.stdin.flush()
            line = next(item for item in process.stdout if item.startswith("ROW "))
            row = json.loads(line[4:])
            yield {"name": file.name, "family": file.family, "digest": file.digest(), **row}
        process.stdin.close()


def chosen(files: list[SuiteFile], options: argparse.Namespace) -> list[SuiteFile]:
    """Return the files that run on a CPU and that the command line asks for."""
    return [
        file
        for file in files
        if options.only in file.name
        and (not options.family or file.family in options.family.upper())
        and "cpu" in file.devices
    ]


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """Print a row and return it."""
    print(
        f"{row['name']:50} {row['verdict']:10} {row.get('gain', '')} {row['seconds']} s",
        flush=True,
    )
    return row


def add_generated(options: argparse.Namespace) -> None:
    """Add the rows of generated attacks that the table lacks."""
    rows = stored(GENERATED)
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        files = chosen(write_generated(options.seed, Path(folder)), options)
        wanted = [
            file
            for file in files
            if file.kind == "attacks" and (options.again or file.path.stem not in rows)
        ]
        for row in map(shown, evaluate(options.tree.resolve(), wanted)):
            name = Path(row["name"]).stem
            made = {"name": name, "family": row["family"], "seed": options.seed}
            rows[name] = made | {key: row[key] for key in ("verdict", "gain") if key in row}
            write(GENERATED, rows)


def add_files(options: argparse.Namespace) -> None:
    """Add the rows of files that are new or have changed."""
    files = read_suite()
    names = {file.name for file in files}
    rows = {name: row for name, row in stored().items() if name in names}
    wanted = [
        file
        for file in chosen(files, options)
        if options.again or rows.get(file.name, {}).get("digest") != file.digest()
    ]
    for row in map(shown, evaluate(options.tree.resolve(), wanted)):
        rows[row["name"]] = row
        write(TABLE, rows)


def write(path: Path, rows: dict[str, dict[str, Any]]) -> None:
    """Write a table, in the order of its names."""
    text = "".join(json.dumps(rows[name]) + "\n" for name in sorted(rows))
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """Add the rows that a table lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="a checkout of a9ccb78 with its environment")
    parser.add_argument("--only", default="", help="only files whose name contains this")
    parser.add_argument("--family", default="", help="letters of families")
    parser.add_argument("--again", action="store_true", help="also files whose rows are stored")
    parser.add_argument("--seed", type=int, default=None, help="generated attacks of this seed")
    options = parser.parse_args()
    if options.seed is None:
        add_files(options)
    else:
        add_generated(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
