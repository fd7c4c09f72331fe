"""`explain` names the limit that was planted in a slow candidate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SLOW = ROOT / "tests" / "slow_candidates"
DEMO = ROOT / "src" / "tilewright" / "problems" / "bundled" / "demo"
MAX_LINES = 40


def tilewright(*arguments: str) -> str:
    command = [sys.executable, "-m", "tilewright", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.timed
@pytest.mark.parametrize(
    ("problem", "path", "limit"),
    [
        ("softmax", DEMO / "softmax_row_by_row.py", "limited by the number of operators"),
        ("matmul_bias_gelu", SLOW / "matmul_naive.cpp", "compute in tiles"),
        ("rmsnorm", SLOW / "rmsnorm_scalar_loop.cpp", "element by element"),
    ],
    ids=["row_by_row", "naive_matmul", "scalar_loop"],
)
def test_the_planted_limit_is_named(tmp_path, problem, path, limit):
    tilewright("eval", str(path), "-p", problem, "--out", str(tmp_path))
    (run,) = [item for item in tmp_path.iterdir() if item.is_dir()]
    text = tilewright("explain", str(run))
    assert len(text.splitlines()) <= MAX_LINES
    assert limit in " ".join(text.partition("What limits it")[2].split())
