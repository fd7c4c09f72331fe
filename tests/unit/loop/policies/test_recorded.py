"""A recording: when it warns that a prompt differs from the recorded one."""

from __future__ import annotations

import shutil

import pytest

from tilewright.errors import PolicyError
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.recorded import BUNDLED_RUN, Recorded
from tilewright.records.events import Ask

ASK = Ask(id="bundled/rmsnorm#0.1", problem="bundled/rmsnorm", turn=1)
OTHER = [Message(role="user", text="another prompt")]


def test_a_recording_warns_once_of_another_prompt(tmp_path):
    said: list[str] = []
    policy = Recorded(shutil.copytree(BUNDLED_RUN, tmp_path / "run"), warn=said.append)
    for _ in range(2):
        assert policy.answer(OTHER, ASK).text
    assert len(said) == 1
    assert "bundled/rmsnorm#0.1 was recorded for another prompt" in said[0]


def test_the_bundled_recording_differs_everywhere_and_does_not_warn():
    said: list[str] = []
    assert Recorded(BUNDLED_RUN, warn=said.append).answer(OTHER, ASK).text
    assert said == []
    with pytest.raises(PolicyError, match="another prompt"):
        Recorded(BUNDLED_RUN, strict=True).answer(OTHER, ASK)
