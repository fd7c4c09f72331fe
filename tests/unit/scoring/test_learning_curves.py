"""Learning curves per turn and of the best so far, and the score of Dr. Kernel."""

import pytest

from tilewright.records.events import Ask, EvalSummary, Turn
from tilewright.scoring.benchmarks.drkernel import drkernel
from tilewright.scoring.learning_curves import curves


def turn(problem, number, verdict="correct", speedup=None, protocol="strict", **more):
    item = EvalSummary(protocol=protocol, verdict=verdict, speedup=speedup, **more)
    return Turn(ask=Ask(id=f"{problem}.{number}", problem=problem, turn=number), judgements=(item,))


TURNS = [
    turn("a", 0, "incorrect"),
    turn("a", 1, speedup=1.6),
    turn("a", 2, speedup=1.1),
    turn("b", 0, speedup=1.3),
    turn("b", 1, "unjudged"),
    turn("b", 2, "failed"),
]


def test_a_row_describes_its_turn_and_the_best_so_far():
    first, second, third = curves(TURNS)
    assert (first["judged"], first["correct"]) == (2, 0.5)
    assert first["best_fast_p"]["1.2"] == 0.5
    # What was not judged is left out of its row and keeps its best.
    assert (second["judged"], second["fast_p"]["1.5"]) == (1, 1.0)
    assert second["best_fast_p"]["1.2"] == 1.0
    assert (third["correct"], third["fast_p"]["1.2"]) == (0.5, 0.0)
    assert (third["best_correct"], third["best_fast_p"]["1.5"]) == (1.0, 0.5)


def test_without_turns_there_are_no_rows():
    assert curves([]) == []


def test_a_history_that_was_never_right_counts_as_not_correct():
    (row,) = curves([turn("a", 0, "failed")])
    assert (row["correct"], row["best_correct"]) == (0.0, 0.0)


def test_dr_kernels_score_uses_official_judgements_only():
    assert drkernel(TURNS) is None
    official = [
        turn("a", 0, speedup=2.0, protocol="official"),
        turn("a", 1, speedup=1.2, protocol="official"),
        turn("b", 0, speedup=9.0, protocol="official", findings=("unused_kernel",)),
    ]
    found = drkernel(official)
    assert found is not None
    assert found["trajectories"] == 2
    # At least, not more than; an unused kernel is incorrect.
    assert found["last"] == {
        "correct": 0.5, "fast@1": 0.5, "fast@1.2": 0.5, "fast@1.5": 0.0, "fast@2": 0.0
    }  # fmt: skip
    assert found["best"]["fast@2"] == pytest.approx(0.5)


def test_dr_kernels_score_leaves_out_other_tolerances():
    assert drkernel([turn("a", 0, speedup=2.0, protocol="official", tolerance=1e-4)]) is None
