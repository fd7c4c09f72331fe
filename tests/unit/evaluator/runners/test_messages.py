"""Messages of a runner: the schema is read, and anything else is a frame error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.processes.sandbox_policy import is_hidden_module
from tilewright.evaluator.runners.messages import (
    WEIGHT_DTYPES,
    Addresses,
    Built,
    ErrorReport,
    Mapped,
    OutputReport,
    Result,
    SelfReported,
    failure_of,
    is_out_of_device_memory,
    read,
    read_weights,
)
from tilewright.records import Failed
from tilewright.wire.frames import Frame, FrameError

OUTPUT = {"type": "tensor", "dtype": "float32", "shape": [2], "device": "cpu", "address": 4096}
RESULT = {"outputs": [OUTPUT], "launches": 1, "operator_counts": {"aten::mm": 2}}
ERROR = {"during": "call", "type": "KeyError", "message": "'x'", "traceback": ["a.py:1"]}
HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=())), inner, max_size=4)
    ),
    max_leaves=8,
)
MODELS = st.sampled_from([Result, ErrorReport, Built, OutputReport, Mapped, Addresses])


def frame(fields: Any, kind: str = "result") -> Frame:
    return Frame(kind, fields)


def changed(fields: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(fields))
    *parents, last = path.split(".")
    place = copy
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    return dict(copy)


def test_messages_that_follow_the_schema_are_read():
    result = read(frame(RESULT), Result)

    assert (result.launches, result.operator_counts) == (1, {"aten::mm": 2})
    assert (result.outputs[0].shape, result.outputs[0].address) == ([2], 4096)
    assert read(frame(ERROR, "error"), ErrorReport).type == "KeyError"
    assert read(frame({"artifacts": {"kernel": 9}}), Built).artifacts == {"kernel": 9}
    assert read(frame({"base": 1 << 47}, "mapped"), Mapped).base == 1 << 47
    assert read(frame({"addresses": [0, 8]}, "weights_read"), Addresses).addresses == [0, 8]


def test_a_described_output_is_plain_json_without_the_alias():
    described = read(frame(RESULT), Result).outputs[0].described()
    unplaced = OutputReport(type="tensor").described()

    assert described == {**OUTPUT, "layout": "", "structure": "1"}
    assert "address" not in unplaced
    assert json.loads(json.dumps(described)) == described


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("launches", -1),
        ("launches", True),
        ("launches", "1"),
        ("launches", 1.0),
        ("launches", (1 << 40) + 1),
        ("launches", None),
        ("operator_counts", {"aten::mm": -1}),
        ("operator_counts", {f"op{number}": 1 for number in range(257)}),
        ("operator_counts", {"x" * 8193: 1}),
        ("operator_counts", [["aten::mm", 1]]),
        ("outputs", [OUTPUT] * 65),
        ("outputs", OUTPUT),
        ("outputs.0.shape", [1] * 65),
        ("outputs.0.shape", [-1]),
        ("outputs.0.shape", "2"),
        ("outputs.0.address", -1),
        ("outputs.0.address", 1 << 57),
        ("outputs.0.address", 4096.0),
        ("outputs.0.address", True),
        ("outputs.0.address", "4096"),
        ("outputs.0.offset", 0),
        ("outputs.0.alias", 1),
        ("outputs.0.type", None),
        ("outputs.0.type", "\ud800"),
        ("outputs.0.dtype", "f" * 8193),
        ("outputs.0.verdict", "correct"),
        ("verdict", "correct"),
        ("\ud800", 1),
    ],
)
def test_a_message_outside_the_schema_is_a_frame_error(path, value):
    with pytest.raises(FrameError, match="result: ") as caught:
        read(frame(changed(RESULT, path, value)), Result)

    # It ends up in a report, which must be text.
    assert str(caught.value).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("traceback", ["x"] * 65),
        ("traceback", "x"),
        ("message", "m" * 8193),
        ("type", 3),
        ("during", None),
        ("exit_code", 0),
        ("missing", "m" * 201),
    ],
)
def test_error_reports_are_bounded(path, value):
    with pytest.raises(FrameError):
        read(frame(changed(ERROR, path, value), "error"), ErrorReport)


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (Mapped, {}),
        (Mapped, {"base": None}),
        (Mapped, {"base": -1}),
        (Mapped, {"base": 1 << 57}),
        (Mapped, {"base": 4096, "size": 1}),
        (Addresses, {}),
        (Addresses, {"addresses": 4096}),
        (Addresses, {"addresses": [-1]}),
        (Addresses, {"addresses": [4096, 1 << 57]}),
        (Addresses, {"addresses": [4096, None]}),
        (Addresses, {"addresses": [4096] * 4097}),
    ],
)
def test_reported_addresses_are_bounded(model, fields):
    with pytest.raises(FrameError):
        read(frame(fields), model)


def test_the_largest_allowed_addresses_are_read():
    last = (1 << 57) - 1

    assert (
        read(frame(changed(RESULT, "outputs.0.address", last)), Result).outputs[0].address == last
    )
    assert read(frame({"base": last}), Mapped).base == last
    assert len(read(frame({"addresses": [last] * 4096}), Addresses).addresses) == 4096


def shown(step: Callable[[], SelfReported]) -> str:
    """Return what is read as JSON, or the message of the frame error."""
    try:
        return step().model_dump_json()
    except FrameError as error:
        return str(error)


@given(HOSTILE, MODELS)
def test_arbitrary_fields_raise_at_most_a_frame_error(fields, model):
    assert shown(lambda: read(frame(fields), model)).encode()


@given(st.sampled_from(["outputs", "launches", "operator_counts", "outputs.0.shape"]), HOSTILE)
def test_arbitrary_values_of_known_fields_raise_at_most_a_frame_error(path, value):
    copy = changed(RESULT, "launches", 1)
    if "." in path:
        copy["outputs"][0]["shape"] = value
    else:
        copy[path] = value

    assert shown(lambda: read(frame(copy), Result)).encode()


def test_a_weight_list_is_checked_and_rewritten():
    said = [["a", [2, 3], "float32"], ["n", [], "float8_e8m0fnu"], ["b", [4], "bfloat16"]]
    body = json.dumps(said, indent=3).encode()

    assert json.loads(read_weights(body)) == [said[0], said[2]]
    assert json.loads(read_weights(b"[]")) == []


def test_every_dtype_that_can_cross_the_sandbox_may_be_a_weight():
    # In a process of its own: the supervisor's modules are loaded without torch.
    script = "from tilewright.wire.tensors import DTYPES; print(' '.join(sorted(DTYPES)))"
    names = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()

    assert sorted(WEIGHT_DTYPES) == names


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"\xff",
        b"[" * 100_000,
        json.dumps([["a", [2], "float32", 1]]).encode(),
        json.dumps([["a", [-2], "float32"]]).encode(),
        json.dumps([["a", [1] * 17, "float32"]]).encode(),
        json.dumps([["a" * 8193, [1], "float32"]]).encode(),
        json.dumps([["a", [1], "float32"]] * 4097).encode(),
        b'[["a", [1e400], "float32"]]',
        b'[["\\ud800", [1], "float32"]]',
    ],
)
def test_a_malformed_weight_list_is_a_frame_error(body):
    with pytest.raises(FrameError, match="weights: "):
        read_weights(body)


@given(st.binary(max_size=60) | HOSTILE.map(lambda value: json.dumps(value).encode()))
def test_arbitrary_bytes_are_a_frame_error_or_a_well_formed_weight_list(body):
    try:
        entries = json.loads(read_weights(body))
    except FrameError:
        return

    sent = json.loads(body)
    assert entries == [entry for entry in sent if entry[2] in WEIGHT_DTYPES]


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
SHAPES = st.lists(st.integers(0, 1 << 20), max_size=16)


@given(st.lists(st.tuples(TEXT, SHAPES, st.sampled_from([*WEIGHT_DTYPES, "int64"])), max_size=20))
def test_a_valid_weight_list_survives_without_other_dtypes(entries):
    wanted = [list(entry) for entry in entries if entry[2] in WEIGHT_DTYPES]

    checked = read_weights(json.dumps(entries).encode())
    assert json.loads(checked) == wanted
    assert read_weights(checked) == checked


@pytest.mark.parametrize(
    ("type_", "message", "reason"),
    [
        ("OutOfMemoryError", "CUDA out of memory", "out_of_memory"),
        ("MemoryError", "", "out_of_memory"),
        ("RuntimeError", "DefaultCPUAllocator: can't allocate memory", "out_of_memory"),
        ("AcceleratorError", "CUDA error: out of memory", "out_of_memory"),
        ("RuntimeError", "Triton Error [CUDA]: out of memory", "out_of_memory"),
        ("AcceleratorError", "CUDA error: an illegal memory access", "exception"),
        ("SystemExit", "3", "unexpected_exit"),
    ],
)
def test_a_failure_reason_follows_the_exception_type(type_, message, reason):
    said = ErrorReport(during="call", type=type_, message=message, traceback=[])
    assert failure_of(said, "correctness").reason == reason


@pytest.mark.parametrize(
    ("said", "kept"), [("KeyError", "KeyError"), ("Mine", None), ("print", None), ("", None)]
)
def test_a_failure_keeps_the_name_of_a_built_in_exception_alone(said, kept):
    report = ErrorReport(during="load", type="Mine", builtin=said, message="", traceback=[])
    assert failure_of(report, "construct").exception == kept


def test_a_failed_allocation_is_told_in_plain_words_first():
    raw = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    raw += "160000000000 bytes. Error code 12"
    said = ErrorReport(during="call", type="RuntimeError", message=raw, traceback=["c.py:3 in f"])
    assert failure_of(said, "correctness").message.split("\n") == [
        "it tried to allocate 160 GB at once, more memory than it may have",
        f"RuntimeError: {raw}",
        "c.py:3 in f",
    ]


def test_a_module_in_a_hidden_folder_names_the_option(tmp_path, monkeypatch):
    (tmp_path / "own_steps.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    fields = {"during": "load", "type": "ModuleNotFoundError", "message": "x", "traceback": []}

    def told(missing: str) -> bool:
        said = ErrorReport(**fields, missing=missing)
        return "--python-path" in failure_of(said, "load").message

    assert told("own_steps.inner")
    assert not told("")
    assert not told("../own_steps")
    assert not told("own_stairs")
    assert not told("torch")


def test_a_module_whose_name_no_file_system_takes_is_in_no_hidden_folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not is_hidden_module("a" * 5000)


def test_names_of_built_libraries_are_bounded():
    assert read(frame({"artifacts": {"a" * 1024: 3}}, "built"), Built)
    for names in ({"a" * 1025: 3}, dict.fromkeys(map(str, range(65)), 3)):
        with pytest.raises(FrameError):
            read(frame({"artifacts": names}, "built"), Built)


@pytest.mark.parametrize(
    ("exception", "reason", "is_device"),
    [
        ("RuntimeError", "out_of_memory", True),
        ("MemoryError", "out_of_memory", False),
        (None, "out_of_memory", False),
        ("RuntimeError", "exception", False),
    ],
)
def test_a_lack_of_host_memory_is_none_of_the_device(exception, reason, is_device):
    outcome = Failed(stage="correctness", reason=reason, exception=exception, message="")
    assert is_out_of_device_memory(outcome) == is_device
