"""The best of the history over turns, and the turns that a context shows."""

from __future__ import annotations

import pytest

from tilewright.records.events import Ask, EvalSummary, Turn
from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.study.scaling import scaling_figures, shown_turns


def turn(number, speedup):
    """Return a turn; without a speed-up it is incorrect, and with 0 unjudged."""
    verdict = {None: "incorrect", 0: "unjudged"}.get(speedup, "correct")
    found = EvalSummary(protocol="strict", verdict=verdict, speedup=speedup or None)
    return Turn(ask=Ask(id=str(number), problem="p"), judgements=(found,))


def test_the_best_of_the_history_never_falls():
    rows = [
        [turn(0, None), turn(1, 2.0), turn(2, 1.0)],
        [turn(0, 1.1), turn(1, None), None],
    ]
    assert scaling_figures(rows) == {
        "correct": [0.5, 1.0, 1.0],
        "fast@1.2": [0.0, 0.5, 0.5],
        "speedup": pytest.approx([0.55, 1.55, 1.55]),
    }


@pytest.mark.parametrize(
    ("context", "shown"),
    [("vanilla", ["0", "1", "2", "4"]), ("last_w", ["2", "4"]), ("top_w", ["0", "1"])],
)
def test_a_context_chooses_the_shown_turns(context, shown):
    turns = [turn(0, 2.0), turn(1, 3.0), turn(2, None), turn(3, 0), turn(4, 1.0)]
    assert shown_turns(context, 2, TurnRewardSection())(turns) == shown
