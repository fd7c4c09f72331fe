"""Dispatchers under the real judge: kept, rejected, and not written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright.records.run_folder import read_report

pytest.importorskip("torch")
# A comparison decides what is kept, and it says less on a busy machine.
pytestmark = [pytest.mark.timeout(300), pytest.mark.alone]

PROBLEM = '''"""The largest value of each row, by way of sorting."""

import torch

ENTRY = "peaks"
CASES = [{"name": "small", "rows": 30, "cols": 500}, {"name": "large", "rows": 300, "cols": 500}]
VARY = {"sizes": {"rows": (1, 400)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return _sorted(x)[..., -1]


def _sorted(x):
    return torch.sort(x, dim=-1).values
'''
PLANTED = """import torch


def _sorted(x):
    return torch.sort(torch.sort(x, dim=-1).values, dim=-1).values


def peaks(x):
    if x.numel() < 40000:
        return _sorted(torch.cat([x, x], dim=-1))[..., -1]
    return x.amax(dim=-1)
"""
QUICK = ("eval.timing.max_s=0.5", "eval.timing.min_blocks=8", "eval.timing.max_blocks=12")


def optimised(place: Path, code: str, *words: str) -> tuple[dict[str, Any], str]:
    """Let a policy write one candidate; return the JSON document and what was printed."""
    (place / "peaks.py").write_text(PROBLEM)
    reply = f"```python\n{code}```"
    (place / "policy.py").write_text(f"def answer(messages, ask):\n    return {reply!r}\n")
    model = ("peaks.py", "--model", "scripted:policy.py", "--turns", "1", "--out", "runs")
    return started(place, *model, *(part for item in QUICK for part in ("--set", item)), *words)


def started(place: Path, *words: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "optimize", *words, "--json"],
        cwd=place,
        env={**os.environ, "TILEWRIGHT_HOME": str(place / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_the_reference_answers_on_the_sizes_on_which_a_candidate_loses(tmp_path):
    document, said = optimised(tmp_path, PLANTED)
    made, winner = document["dispatchers"]["peaks"], document["winners"]["peaks"]
    assert (made["kept"], made["losing_cases"]) == (True, ["small"])
    assert made["rule"] == "for arguments below 47434 elements"
    assert "a dispatcher with the reference for arguments below 47434 elements was kept" in said
    # The planted candidate needs more than twice the reference's time on the small case.
    run = tmp_path / document["run"]
    report = read_report(tmp_path / Path(winner["file"]).parent / "report.json")
    by_case = {item.case: item.speedup for item in report.comparisons}
    assert by_case["small"] > 0.75
    assert by_case["large"] > 3
    subprocess.run([sys.executable, winner["file"]], cwd=tmp_path, check=True, capture_output=True)
    # A resumed run finds both reports, and measures nothing but the winner again.
    assert len(list((run / "reports").iterdir())) == 2
    again, _ = started(tmp_path, "--resume", document["run"])
    assert again["dispatchers"]["peaks"] == made
    off, _ = started(tmp_path, "--resume", document["run"], "--set", "loop.dispatcher=false")
    assert off["dispatchers"] == {}
    assert "_nested_reference" not in (tmp_path / off["winners"]["peaks"]["file"]).read_text()


@pytest.mark.slow
@pytest.mark.nightly
def test_a_candidate_that_loses_everywhere_gets_no_dispatcher(tmp_path):
    """test_no_rule_follows_without_another_size_or_its_shape has the rule without a judge."""
    code = PLANTED.replace("x.numel() < 40000", "True")
    document, said = optimised(tmp_path, code)
    made = document["dispatchers"]["peaks"]
    assert (made["kept"], made["rule"]) == (False, None)
    assert "slower than the reference on every size" in said
