"""Event log lines that were written with the old names of kinds and fields."""

from __future__ import annotations

import json
import resource
from contextlib import contextmanager

import pytest

from tilewright.errors import ConfigError, RecordError
from tilewright.records import event_log
from tilewright.records.event_log import (
    EventLog,
    current_line,
    parse_event,
    read_events,
    read_steps,
    turns_of,
)
from tilewright.records.events import (
    Ask,
    RequestsIssued,
    RunStarted,
    SearchStopped,
    Stepped,
    TurnFinished,
)
from tilewright.records.version1 import upgrade

BEGUN = (
    b'{"event":"begun","schema_version":1,"kind":"optimize","name":"n","problems":"p",'
    b'"protocols":["strict"],"language":null,"evaluator":"0.1.0","device":"cpu",'
    b'"weak":{"p":["zeros"]},"unlinted":2}\n'
)
ASKED = (
    b'{"event":"asked","limit":1,"asks":[{"id":"p#0.0","problem":"p","sample":0,"turn":0,'
    b'"role":"propose","parents":[],"shown":["a"],"directive":"faster","asked":"please"}]}\n'
)
TOLD = (
    b'{"event": "told", "turn": {"ask": {"id": "p#0.0", "problem": "p", "shown": ["a"], '
    b'"directive": "faster", "asked": "please"}, "language": "torch"}}\n'
)
STEPPED = b'{"event":"stepped","step":1,"batch":"b","figures":{"loss":null}}\n'


SHORT, LONG = (SearchStopped(reason="budget", detail="x" * count) for count in (10, 500))


@contextmanager
def no_room_after(size):
    """Let the system refuse all bytes of a file after the first ones, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_events_without_room_are_one_error_and_leave_no_part_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(event_log, "BLOCK_BYTES", 100)
    with EventLog(tmp_path) as log:
        log.append(SHORT)
        with no_room_after(300):
            with pytest.raises(ConfigError, match="cannot be written"):
                log.extend([SHORT, SHORT, LONG])
            assert list(read_events(tmp_path)) == [SHORT]
            log.append(SHORT)
        log.append(LONG)
    assert list(read_events(tmp_path)) == [SHORT, SHORT, LONG]


def test_a_log_without_room_closes_with_the_first_error(tmp_path):
    refused = pytest.raises(ConfigError, match="cannot be written")
    with no_room_after(100), refused, EventLog(tmp_path) as log:
        log.append(LONG)
    assert (tmp_path / "events.jsonl").read_bytes() == b""


def test_an_interrupted_writer_leaves_whole_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(event_log, "BLOCK_BYTES", 1)

    def events():
        yield SHORT
        raise KeyboardInterrupt

    with EventLog(tmp_path) as log:
        with pytest.raises(KeyboardInterrupt):
            log.extend(events())
        log.append(LONG)
    assert list(read_events(tmp_path)) == [SHORT, LONG]


def test_steps_are_read_without_turns_and_without_damaged_or_unfinished_lines(tmp_path):
    damaged, unfinished = b'{"event":"stepped","step":-1}\n', STEPPED.rstrip()
    log = tmp_path / "events.jsonl"
    log.write_bytes(BEGUN + STEPPED + TOLD + damaged + STEPPED + unfinished)
    assert list(read_steps(tmp_path)) == [parse_event(STEPPED)] * 2
    with pytest.raises(RecordError, match="none"):
        list(read_steps(tmp_path / "none"))


def test_a_begun_line_is_read_as_the_start_of_a_run():
    event = parse_event(BEGUN)
    assert isinstance(event, RunStarted)
    assert event.event == "run_started"
    assert (event.unsound_problems, event.problems_not_linted) == ({"p": ("zeros",)}, 2)


@pytest.mark.parametrize("line", [ASKED, TOLD])
def test_asked_and_told_lines_keep_the_fields_of_their_requests(line):
    event = parse_event(line)
    assert isinstance(event, RequestsIssued | TurnFinished)
    ask = event.asks[0] if isinstance(event, RequestsIssued) else event.turn.ask
    assert ask.shown_turns == ("a",)
    assert (ask.instruction, ask.prompt_override) == ("faster", "please")


def test_an_old_log_is_read_whole_and_written_with_the_new_names(tmp_path):
    (tmp_path / "events.jsonl").write_bytes(BEGUN + ASKED + TOLD + STEPPED)
    events = list(read_events(tmp_path))
    kinds = ["run_started", "requests_issued", "turn_finished", "stepped"]
    assert [event.event for event in events] == kinds
    assert isinstance(events[-1], Stepped)
    assert [turn.ask.id for turn in turns_of(events)] == ["p#0.0"]
    written = [event.model_dump_json().encode() for event in events]
    assert [parse_event(line) for line in written] == events
    assert [current_line(line) for line in written] == written
    results = list(read_events(tmp_path, with_requests=False))
    assert [event.event for event in results] == [kinds[0], *kinds[2:]]


def test_a_request_with_both_names_of_a_field_is_refused(tmp_path):
    both = TOLD.replace(b'"directive"', b'"instruction": "slower", "directive"')
    (tmp_path / "events.jsonl").write_bytes(BEGUN + both)
    with pytest.raises(RecordError, match=r"events\.jsonl:2: .*directive"):
        list(read_events(tmp_path))


def test_damaged_lines_and_current_requests_are_unchanged():
    assert current_line(b'{"event":"told", half\n') == b'{"event":"told", half\n'
    assert upgrade(Ask, {"id": "a", "instruction": "x"}) == {"id": "a", "instruction": "x"}
    assert upgrade(Ask, 3) == 3


@pytest.mark.parametrize(
    ("verdict", "reason", "code", "stage", "inputs"),
    [
        ("incorrect", "values (a (b): c, nominal): at [3]", "values", None, "nominal"),
        ("incorrect", "nonfinite (hidden 2, nominal): at [3]", "nonfinite", None, "hidden_size"),
        ("incorrect", "dtype (default, heavy tails): f", "dtype", None, "varied"),
        ("incorrect", "values (default, timed): at [3]", "values", None, "timed"),
        ("failed", "timeout in load: 6 s", "timeout", "load", None),
        ("failed", "out of memory in knockout: x", "out_of_memory", "launch_suppression", None),
        ("failed", "unparseable in prepare: no code", "syntax_error", "build", None),
        ("failed", "unparseable: no code", "syntax_error", "build", None),
        ("failed", "no candidate", None, None, None),
        ("unjudged", "values (default, timed): at [3]", None, None, None),
    ],
)
def test_the_codes_of_an_old_judgement_are_read_from_its_reason(
    verdict, reason, code, stage, inputs
):
    judgement = {"protocol": "strict", "verdict": verdict, "reason": reason}
    turn = {"ask": {"id": "p#0.0", "problem": "p"}, "judgements": [judgement]}
    event = parse_event(json.dumps({"event": "told", "turn": turn}).encode())
    assert isinstance(event, TurnFinished)
    [found] = event.turn.judgements
    assert (found.code, found.stage, found.inputs) == (code, stage, inputs)
