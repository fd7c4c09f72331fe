"""Candidates below `home`: several processes store them at once."""

from __future__ import annotations

import subprocess
import sys

from tilewright.loop.candidate_store import kept

SCRIPT = """
import sys
from pathlib import Path
from tilewright.loop.candidate_store import EarlierCandidate, keep

for number in range(60):
    fields = {"title": "t", "reference": "r", "language": "cpp", "origin": "o"}
    item = EarlierCandidate(
        problem="p" * 24, code=str(number % 7), speedup=1.0 + number, **fields
    )
    keep(Path(sys.argv[1]), item)
"""


def test_many_processes_keep_candidates_at_once(tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert sorted(item.speedup for item in kept(tmp_path)) == [54.0 + n for n in range(7)]
    assert not list(tmp_path.rglob("*.tmp"))
