"""The folder of a training run: whether it was begun, and folders that are written anew."""

from __future__ import annotations

import pytest

from tilewright.records.event_log import EVENTS, EventLog
from tilewright.records.events import Stepped
from tilewright.rl.training_folder import replaced_folder, was_begun


def test_a_run_is_begun_with_its_first_event(tmp_path):
    with EventLog(tmp_path) as log:
        log.append(Stepped(step=1, batch="sft", figures={}))
    assert was_begun(tmp_path)


@pytest.mark.parametrize("text", [None, "", '{"event":"run_sta'])
def test_a_run_that_was_killed_before_is_not(tmp_path, text):
    if text is not None:
        (tmp_path / EVENTS).write_text(text)
    assert not was_begun(tmp_path)


@pytest.fixture
def model(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("old")
    return tmp_path / "model"


def write(folder):
    with replaced_folder(folder) as fresh:
        fresh.mkdir()
        (fresh / "weights").write_text("new")
        yield


def test_the_new_folder_takes_the_place_of_the_old_one_at_the_end(model):
    writing = write(model)
    next(writing)
    assert (model / "weights").read_text() == "old"
    assert next(writing, None) is None
    assert (model / "weights").read_text() == "new"
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_an_error_leaves_the_old_folder(model):
    writing = write(model)
    next(writing)
    with pytest.raises(OSError, match="disk"):
        writing.throw(OSError("disk"))
    assert (model / "weights").read_text() == "old"


def test_what_a_kill_left_is_no_obstacle(model):
    for word in ("new", "old"):
        model.with_name(f"model.{word}").mkdir()
        (model.with_name(f"model.{word}") / "part").write_text("")
    for _ in write(model):
        pass
    assert [path.name for path in model.parent.iterdir()] == ["model"]
    assert [path.name for path in model.iterdir()] == ["weights"]
