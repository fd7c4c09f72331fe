"""The engine trl computes one step of the stored batch like plain loops; tests/verl adds verl."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

from tests.conventions.tree import ROOT
from tests.engine_batch import CASES, read
from tests.engine_comparison import differences, loops_document
from tests.engine_loops import load, results


def test_trl_agrees_with_plain_loops(tmp_path):
    out = tmp_path / "trl.json"
    command = [sys.executable, "-m", "tests.engine_results_trl", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    batch, loops, found = load(), results(), read(out)
    for case in CASES:
        wanted = loops_document(loops[case.preset, case.denominator], batch)
        assert differences(found[case.name], wanted) == [], case.name


def test_the_stored_batch_holds_what_it_must():
    batch, found = load(), results()
    turns = [turn for item in batch["trajectories"] for turn in item["turns"]]
    assert sum(turn is None for turn in turns) == 3
    assert sum(turn is not None and turn["verdict"] == "unjudged" for turn in turns) == 1
    lengths = [len(turn["reply"]) for turn in turns if turn is not None]
    assert (min(lengths), max(lengths)) == (1, 40)
    assert {0.30, 0.35, 0.40} <= {turn["coverage"] for turn in turns if turn is not None}
    case = found["tilewright", "kept"]
    assert (0, 2) not in case["advantages"], "it is alone in its group"
    assert {case["advantages"][b, 2] for b in (4, 5, 6, 7)} == {0.0}, "their returns are equal"
    assert {(5, t) for t in range(3)}.isdisjoint(case["kept"]), "w is 1.0011"
    assert (3, 0) not in case["kept"], "a token has rho 9e-5"
    assert (3, 1) in case["kept"], "a token has rho e^11, and no veto is two-sided"
    ratios = case["ratios"]
    assert min(ratios) < 0.8
    assert max(ratios) > 1.28
    assert case["dual"] > 0, "the dual clip acts"
