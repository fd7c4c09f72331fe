"""TritonBench's own files, run as they are: which golds work on this machine without a judge.

    python -m benchmarks.accuracy.gold_runs FOLDER OUT.json [NAME ...]

FOLDER holds one file for each gold with its tests (`data/TritonBench_G_v1`). Each runs in a process
of its own, `PROCESSES` at a time on one GPU. OUT.json holds the exit status and the last line of
the error of each; the command prints those that fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS = 120
"""Time limit of a file: those that tune themselves compile for a minute."""
PROCESSES = 14


def run(path: Path, folder: Path) -> dict[str, object]:
    """Run one file; return its name, exit status, seconds and the last line of its error.

    The status is -1 if the file ran longer than `SECONDS`.
    """
    start = time.monotonic()
    # A cache of its own: a file that another one has compiled before would seem faster.
    environ = {**os.environ, "TRITON_CACHE_DIR": str(folder / path.stem)}
    command = [sys.executable, str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SECONDS, env=environ
        )
        status, lines = done.returncode, done.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        status, lines = -1, [f"longer than {SECONDS} s"]
    errors = [line for line in lines if "Error" in line] or lines
    error = errors[-1][:300] if status and errors else ""
    seconds = round(time.monotonic() - start, 1)
    return {"name": path.stem, "status": status, "seconds": seconds, "error": error}


def main(arguments: list[str]) -> int:
    """Run the files, and print those that fail."""
    source, target, *names = arguments
    paths = sorted(Path(source).glob("*.py"))
    if names:
        paths = [path for path in paths if path.stem in names]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(PROCESSES) as pool:
        rows = list(pool.map(lambda path: run(path, Path(folder)), paths))
    Path(target).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    failed = [row for row in rows if row["status"]]
    for row in failed:
        print(f"{row['name']} | {row['status']} | {row['seconds']} s | {row['error']}")
    print(f"{len(failed)} of {len(rows)} files fail")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
