"""When the events of a cold `tilewright eval` happen: seconds from the start of the command.

`DEVICE=cuda:0 python -m benchmarks.gpu.cold_timeline [COUNT]` evaluates COUNT candidates of the bar
`stream`, each by a command of its own, and prints a line for each event. No bar holds it to a
figure. `DEVICE=cpu` shows the same on a CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.gpu import throughput
from benchmarks.gpu.requests import DEVICE

BETWEEN = 7
"""Candidates from one to the next: then both problem and kernel differ."""


def main() -> int:
    """Print the events of each evaluation; the second ones find files in the page cache."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    for name, asked in throughput.requests("timeline")[: BETWEEN * count : BETWEEN]:
        with tempfile.TemporaryDirectory() as folder:
            problem, candidate = Path(folder) / "problem.py", Path(folder) / "candidate.py"
            problem.write_text(asked.problem.source.text, encoding="utf-8")
            candidate.write_text(asked.candidate.files[0].text, encoding="utf-8")
            command = [sys.executable, "-m", "tilewright", "eval", str(candidate), "--verbose"]
            command += ["--problem", str(problem), "--device", DEVICE, "--no-host"]
            environment = {**os.environ, "TILEWRIGHT_HOME": f"{folder}/home"}
            _show(name, command, folder, environment)
    return 0


def _show(name: str, command: list[str], folder: str, environment: dict[str, str]) -> None:
    start = time.monotonic()
    print(f"{name}: seconds, event", flush=True)
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as done:
        assert done.stderr is not None
        for line in done.stderr:
            print(f"  {time.monotonic() - start:6.2f}  {line.rstrip()[:110]}", flush=True)
    print(f"  {time.monotonic() - start:6.2f}  the command has ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
