"""Both engines compute one step of the stored batch, and so do plain loops."""

# ruff: noqa: E402 - a machine without verl skips all of it
from __future__ import annotations

import pytest

pytest.importorskip("verl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

from tests.engine_batch import CASES, read
from tests.engine_comparison import differences, loops_document
from tests.engine_loops import load, results
from tests.verl.processes_of_engines import trl_results, verl_results

BY_NAME = {case.name: case for case in CASES}
NONE = {name: [] for name in BY_NAME}
FAULTS = {
    "groups by position": "advantages",
    "advantages divided by their deviation": "advantages",
    "mean over all rows": "weights",
    "loss_mask left as it was": "loss_masks",
    "mismatch by row": "masks",
    "reward of the last turn": "refused",
    "padding row with weight": "padding",
}
"""Each planted fault, and a part that must show it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def loops():
    batch, found = load(), results()
    return {
        case.name: loops_document(found[case.preset, case.denominator], batch) for case in CASES
    }


@pytest.fixture(scope="module")
def trl(folder):
    return read(trl_results(folder / "trl.json"))


@pytest.fixture(scope="module", params=[1, 2], ids=["1 rank", "2 ranks"])
def verl(folder, request):
    return read(verl_results(folder / f"verl{request.param}.json", request.param))


def test_trl_agrees_with_the_loops(trl, loops):
    assert {name: differences(trl[name], loops[name]) for name in BY_NAME} == NONE


def test_verl_agrees_with_the_loops_and_with_trl(verl, trl, loops):
    assert {name: differences(verl[name], loops[name]) for name in BY_NAME} == NONE
    assert {name: differences(verl[name], trl[name]) for name in BY_NAME} == NONE
    assert len(verl[CASES[0].name]["figures"]) > 50
    for name, case in BY_NAME.items():
        assert (verl[name]["passes"] > 1) == (case.rows < 24), "one micro-batch, or several"


def test_each_planted_fault_is_found(folder, loops):
    found = read(verl_results(folder / "faults.json", 1, "--faults"))
    assert found.keys() == FAULTS.keys()
    for name, part in FAULTS.items():
        seen = differences(found[name], loops["paper-kept-several"])
        assert any(item.startswith(part) for item in seen), (name, seen)
