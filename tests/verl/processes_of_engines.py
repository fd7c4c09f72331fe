"""Starts the programs of the golden test, each in the environment of its engine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from benchmarks.training.verl_without_gpu import ON_CPU, ROOT

TRL_PYTHON = os.environ.get("TILEWRIGHT_TRL_PYTHON", str(ROOT / ".venv" / "bin" / "python"))


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def verl_results(out: Path, ranks: int, *words: str) -> Path:
    """Run `tests.engine_results_verl` with so many ranks; return its file."""
    port = str(free_port())
    group = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": str(ranks),
        "DIST_INIT_METHOD": f"tcp://127.0.0.1:{port}",
    }
    command = [sys.executable, "-m", "tests.engine_results_verl", str(out), *words]
    started = [
        subprocess.Popen(
            command,
            env={**os.environ, **ON_CPU, **group, "RANK": str(rank)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    for process in started:
        text, _ = process.communicate(timeout=400)
        assert process.returncode == 0, text[-3000:]
    return out


def trl_results(out: Path) -> Path:
    """Run `tests.engine_results_trl` in the environment of TRL; return its file."""
    done = subprocess.run(
        [TRL_PYTHON, "-m", "tests.engine_results_trl", str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return out
