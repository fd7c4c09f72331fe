"""The folder of a training run: whether it was begun, also after an early kill."""

from __future__ import annotations

import pytest

from tilewright.records.event_log import EVENTS, EventLog
from tilewright.records.events import Stepped
from tilewright.rl.training_folder import was_begun


def test_a_run_is_begun_with_its_first_event(tmp_path):
    with EventLog(tmp_path) as log:
        log.append(Stepped(step=1, batch="sft", figures={}))
    assert was_begun(tmp_path)


@pytest.mark.parametrize("text", [None, "", '{"event":"run_sta'])
def test_a_run_that_was_killed_before_is_not(tmp_path, text):
    if text is not None:
        (tmp_path / EVENTS).write_text(text)
    assert not was_begun(tmp_path)
