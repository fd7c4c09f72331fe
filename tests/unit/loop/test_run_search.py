"""The end of a search: why it ended is in its log."""

from __future__ import annotations

import threading

from tests.unit.loop.test_rollout import BEGUN, PROBLEM, settings_of
from tilewright.errors import PolicyError
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.run_search import SearchResult, play
from tilewright.loop.run_state import begin_session
from tilewright.records.event_log import read_events
from tilewright.records.events import SearchStopped


class Waiting(Scripted):
    """A model that answers nothing until the search closes it. Lifetime: one test."""

    def __init__(self):
        super().__init__(lambda *_: "")
        self.closed = threading.Event()

    def answer(self, messages, ask):  # noqa: ARG002 - as every policy
        assert self.closed.wait(30)
        raise PolicyError("the model is closed")

    def close(self):
        self.closed.set()


def test_a_search_whose_time_is_up_logs_that_as_its_end(tmp_path):
    settings = settings_of("loop.max_wall_s=0.2")
    session = begin_session(tmp_path, BEGUN, [PROBLEM], settings)
    ended = SearchResult()
    assert list(play(session, settings, Waiting(), lambda *_: None, ended)) == []
    assert ended.lacking == "wall_s"
    stop = list(read_events(tmp_path))[-1]
    assert stop == SearchStopped(reason="budget", detail="wall_s")
