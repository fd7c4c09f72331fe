"""Requests for builds: which are accepted, when, and what follows for the seeds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.records.test_validation import REQUEST
from tilewright.evaluator.context import EvaluationContext, RequestedBuild
from tilewright.evaluator.runners.build_requests import (
    LOADING,
    MAX_REQUEST_BYTES,
    BuildRequested,
    BuildRequests,
    read_call,
)
from tilewright.wire.builder_calls import BuilderCall

CALL = BuilderCall("load_inline", "own", {"cpp_sources": "code", "with_cuda": False})


def open_requests(left: int = 1, **changes: Any) -> BuildRequests:
    requests = BuildRequests("candidate", left, **changes)
    requests.begin(LOADING)
    return requests


def test_a_request_while_loading_is_accepted():
    with pytest.raises(BuildRequested, match="extension 'own' is built first") as asked:
        open_requests().refusal(CALL.encoded())

    assert asked.value.build == RequestedBuild("candidate", CALL)


def test_only_the_first_call_of_a_case_may_ask():
    requests = open_requests()
    requests.end(LOADING)
    assert requests.refusal(CALL.encoded())[0] == "build"
    requests.begin("small")
    with pytest.raises(BuildRequested):
        requests.refusal(CALL.encoded())
    requests.end("small")
    requests.begin("small")
    reason, text = requests.refusal(CALL.encoded())

    assert reason == "build"
    assert "extension 'own' must be built at import, in the constructor or in the first" in text


def test_a_baseline_may_ask_at_any_time():
    with pytest.raises(BuildRequested):
        BuildRequests("other", 1, always=True).refusal(CALL.encoded())


def test_requests_are_limited_in_number():
    reason, text = open_requests(0).refusal(CALL.encoded())

    assert (reason, text) == ("build", "it builds more than 8 extensions after its import")


def test_requests_are_limited_in_size():
    large = BuilderCall("load_inline", "own", {"cpp_sources": "x" * MAX_REQUEST_BYTES})
    reason, text = open_requests().refusal(large.encoded())

    assert reason == "build"
    assert text.startswith("the sources of an extension have 41943")


def test_what_is_there_is_not_asked_for():
    reason, _ = open_requests(built=[CALL.digest()]).refusal(CALL.encoded())

    assert reason == "protocol_violation"


@pytest.mark.parametrize(
    "changes",
    [
        {"builder": "system"},
        {"name": "../own"},
        {"arguments": {"cpp_sources": {"a": ["b"]}}},
        {"arguments": {"cpp_sources": 1.5}},
        {"files": {f"{number}.h": "" for number in range(257)}},
        {"more": 1},
    ],
)
def test_a_forged_request_breaks_the_protocol(changes):
    body = json.dumps({**vars(CALL), **changes}).encode()

    assert open_requests().refusal(body)[0] == "protocol_violation"


@pytest.mark.parametrize("body", [b"", b"null", b"[" * 100_000, b"\xff"])
def test_a_request_that_is_no_json_breaks_the_protocol(body):
    assert open_requests().refusal(body)[0] == "protocol_violation"


def test_a_request_is_read_as_it_was_written():
    assert read_call(CALL.encoded()) == CALL


def test_with_a_build_that_was_asked_for_all_secrets_are_others():
    def context(*calls: BuilderCall) -> EvaluationContext:
        builds = tuple(RequestedBuild("candidate", call) for call in calls)
        host: Any = None
        return EvaluationContext(host, REQUEST, "0" * 32, lambda *_: None, lambda: None, builds)

    other = BuilderCall("load", "own", {"sources": []})
    contexts = [context(), context(CALL), context(CALL, other)]
    assert len({each.seed("inputs", "small") for each in contexts}) == 3
    assert len({each.choices("sizes").random() for each in contexts}) == 3
    assert context(other, CALL).seed("inputs") == context(CALL, other).seed("inputs")
