"""Messages between supervisor and judge arrive as they were sent; anything else is refused."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tilewright.evaluator.judge_client import gpu_messages, messages, problem_messages
from tilewright.evaluator.judge_client.gpu_messages import QueueCall
from tilewright.evaluator.judge_client.messages import (
    FinishTimed,
    LoadProblem,
    MapInputs,
    PublishSample,
    RenewSample,
    TimedAnswer,
    decode,
    encode,
)
from tilewright.wire.frames import Frame, FrameError
from tilewright.wire.names import OutputMemory

samples = st.builds(PublishSample, st.text(max_size=8), st.text(max_size=8), st.integers(0, 2**40))
windows = st.none() | st.lists(st.lists(st.integers(0, 2**40), min_size=2, max_size=2))


def travelled(message):
    """Return a message as it arrives: its header has been JSON."""
    kind, fields, body, fds = encode(message)
    return decode(Frame(kind, json.loads(json.dumps(fields)), body, fds))


@given(st.none() | samples)
def test_a_message_with_a_message_inside_arrives_equal(sample):
    message = QueueCall("candidate", sample, 7, None)
    assert travelled(message) == message
    assert sample is None or travelled(sample) == sample


@given(windows, st.integers(0, 2**63 - 1))
def test_windows_and_seeds_arrive_equal(look, seed):
    for message in (
        FinishTimed("d", "candidate", 64, [1, 2], 9, [7, 8], look),
        RenewSample("d", seed, 1, "sign", varied=look is None),
    ):
        assert travelled(message) == message


@pytest.mark.parametrize("places", [[], list(OutputMemory)])
def test_places_of_outputs_arrive_as_such(places):
    answer = TimedAnswer("", "", None, [], places)
    fields = json.loads(json.dumps(vars(answer)))
    assert TypeAdapter(TimedAnswer).validate_python(fields) == answer


def test_the_source_travels_as_the_body_and_descriptors_as_descriptors():
    problem = LoadProblem(
        b"x" * 9, "module", "train", [], [], [], 1, 1, None, tf32=True, compares_overwritten=False
    )
    kind, fields, body, fds = encode(problem)
    assert (kind, body, fds) == ("problem", b"x" * 9, ())
    assert "source" not in fields
    assert travelled(problem) == problem
    assert travelled(MapInputs("candidate", 4096, (3, 4))).fds == (3, 4)


@pytest.mark.parametrize(
    "frame",
    [
        Frame("no such request", {}),
        Frame("publish", {"sample": "a"}),
        Frame("publish", {"sample": "a", "runner": "b", "base": 0, "more": 1}),
    ],
)
def test_an_unknown_kind_or_other_fields_are_refused(frame):
    with pytest.raises(FrameError):
        decode(frame)


def test_every_request_has_a_kind_of_its_own_and_an_answer():
    for module in (messages, gpu_messages, problem_messages):
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, messages.Request):
                if item is messages.Request:
                    continue
                assert messages.REQUESTS[item.KIND] is item
                assert dataclasses.is_dataclass(item.ANSWER)
                assert issubclass(item.ANSWER, messages.Answer)
