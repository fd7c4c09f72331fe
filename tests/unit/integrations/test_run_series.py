"""The curves of a run: their values, and what a resumed or unfinished log adds."""

from __future__ import annotations

import pytest

from tests.unit.integrations.logger_stores import events_of, started, turn_of
from tilewright.errors import RecordError
from tilewright.integrations.run_series import LogFollower, best_candidates, series_of
from tilewright.records.event_log import EVENTS, EventLog
from tilewright.records.events import TurnFinished


def test_a_search_has_a_point_for_each_turn(tmp_path):
    series = series_of(tmp_path)
    points = [point for event in events_of(count=7) if (point := series.add(event))]
    assert [point.step for point in points] == [1, 2, 3, 4, 5, 6, 7]
    assert not [name for name in points[0].values if name.startswith("best/")]
    last = points[-1].values
    assert last["best/set/p/speedup"] == pytest.approx(1.6)
    assert last["best/set/p/low"] < 1.6 < last["best/set/p/high"]
    assert {name: last[f"verdicts/{name}"] for name in ("correct", "unjudged", "rejected")} == {
        "correct": 3.0,
        "unjudged": 1.0,
        "rejected": 1.0,
    }
    assert last["findings/unused_kernel"] == 1.0
    assert last["spent/tokens"] == 105.0
    assert last["spent/device_s"] == 3.5


def test_a_training_has_points_for_its_steps_alone_and_none_for_a_missing_figure(tmp_path):
    series = series_of(tmp_path)
    points = [point for event in events_of("train") if (point := series.add(event))]
    assert [point.step for point in points] == [1, 2, 3, 4, 5, 5]
    assert points[-1].values["held_out/reward"] == 2.0
    assert points[0].values["train/reward"] == 1.0
    assert not [name for point in points for name in point.values if "kl" in name]
    assert points[-1].values["turns"] == 20.0


def test_a_candidate_that_is_judged_again_counts_once(tmp_path):
    series = series_of(tmp_path)
    series.add(started())
    series.add(TurnFinished(turn=turn_of(0, "unjudged")))
    point = series.add(TurnFinished(turn=turn_of(0, "correct")))
    assert point.values["verdicts/unjudged"] == 0.0
    assert point.values["verdicts/correct"] == 1.0


def test_the_best_follow_the_reward_of_the_run(tmp_path):
    (tmp_path / "run.yaml").write_text("loop: {reward: paper}\n")
    series = series_of(tmp_path)
    for event in events_of():
        series.add(event)
    (best,) = best_candidates(tmp_path, series)
    assert best.problem == "set/p"
    assert best.files[0].text.startswith("# ")
    assert '"verdict": "correct"' in best.verdict
    # The reward `paper` has a cap, so the higher lower end wins, as in the run itself.
    assert series.best()["set/p"].ask.id == "p#18"


def test_a_follower_yields_each_whole_line_once(tmp_path):
    follower = LogFollower(tmp_path)
    with pytest.raises(RecordError):
        next(follower.fresh())
    events = events_of(count=3)
    with EventLog(tmp_path) as log:
        log.extend(events[:3])
        assert len(list(follower.fresh())) == 2
        assert list(follower.fresh()) == []
        with open(tmp_path / EVENTS, "a") as file:
            file.write('{"event":"turn_fin')
        assert list(follower.fresh()) == []
    with EventLog(tmp_path) as log:
        log.extend(events[3:])
    assert len(list(follower.fresh())) == 2


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / EVENTS).write_text("{}\n")
    with pytest.raises(RecordError, match=r"events\.jsonl:1: "):
        list(LogFollower(tmp_path).fresh())
