"""The runner's `main` in a thread: it loads a candidate, answers calls, and ends."""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from tests.runner_role import RunnerRole
from tilewright.evaluator.judge import reference
from tilewright.evaluator.runners.messages import Addresses, ErrorReport, Mapped, Result, read
from tilewright.runner import calls
from tilewright.wire.frames import Frame
from tilewright.wire.tensors import Layout

DOUBLE = "def work(x):\n    return x * 2\n"
MODULE = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, table, factor=2.0):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("table", table)
        self.factor = factor

    def forward(self, x):
        return self.linear(x) * self.factor + self.table + float(self.training)
"""


def outputs(frame: object) -> list[dict[str, object]]:
    """Return what a result says of its outputs, which must follow the schema."""
    return [item.model_dump() for item in read(frame, Result).outputs]  # type: ignore[arg-type]


def value(runner: RunnerRole, frame: Frame, like: torch.Tensor, place: int = 0) -> Any:
    """Return an output that a result tells of, as the judge reads it from memory."""
    return runner.output(like, read(frame, Result).outputs[place].address)


def said(frame: object) -> ErrorReport:
    """Return what an error frame says, which must follow the schema."""
    assert frame.kind == "error", frame  # type: ignore[attr-defined]
    return read(frame, ErrorReport)  # type: ignore[arg-type]


def test_the_role_reports_that_it_is_ready(runner):
    assert runner.role.ready.kind == "ready"


def test_the_first_map_sends_a_writable_memory_descriptor(runner):
    flags = fcntl.fcntl(runner.memory, fcntl.F_GETFL)

    assert os.readlink(f"/proc/self/fd/{runner.memory}") == f"/proc/{os.getpid()}/mem"
    assert flags & os.O_ACCMODE == os.O_RDWR


def test_more_memory_for_inputs_keeps_descriptors_address_and_values():
    bare = RunnerRole(mapped=False)
    first = bare.map()
    bare.inputs[:3] = b"abc"
    second = bare.role.ask("map", {"inputs": 1 << 21})
    larger = (ctypes.c_char * (1 << 21)).from_address(bare.base)
    assert larger[:4] == b"abc\0"
    assert larger[-1] == b"\0"
    bare.close()

    assert (len(first.fds), second.fds) == (3, ())
    assert read(first, Mapped).base == read(second, Mapped).base > 0


def test_a_function_is_loaded_and_called(runner):
    assert runner.load({"candidate.py": DOUBLE}).kind == "loaded"
    x = torch.arange(6.0).reshape(2, 3)
    frame = runner.call(x)

    assert frame.kind == "result"
    (item,) = outputs(frame)
    assert (item["type"], item["dtype"], item["shape"]) == ("tensor", "float32", [2, 3])
    assert (item["device"], item["layout"]) == ("cpu", "strided")
    assert not item["alias"]
    assert torch.equal(value(runner, frame, x), x * 2)
    assert frame.fields["operator_counts"] == {}


@pytest.mark.parametrize("init", [[torch.ones(3), 3.0], {"factor": 3.0, "table": torch.ones(3)}])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_module_is_built_from_its_init_inputs(runner, init, mode):
    frame = runner.load({"candidate.py": MODULE}, "ModelNew", init=init, mode=mode)
    assert frame.kind == "loaded"
    entries = json.loads(frame.body)
    assert ["linear.weight", [3, 3], "float32"] in entries
    assert {name for name, _, _ in entries} == {"linear.weight", "linear.bias", "table"}
    torch.manual_seed(5)
    linear = torch.nn.Linear(3, 3)
    x = torch.rand(4, 3)
    frame = runner.call(x)

    expected = linear(x) * 3.0 + 1.0 + float(mode == "train")
    assert torch.allclose(value(runner, frame, x), expected)


def test_weights_are_loaded_by_name_and_read_back(runner):
    runner.load({"candidate.py": MODULE}, "ModelNew", init=[torch.zeros(3), 1.0], mode="eval")
    layout = Layout()
    fresh = {"linear.weight": torch.eye(3) * 5, "linear.bias": torch.zeros(3)}
    tree = layout.describe(fresh)
    layout.write(runner.inputs)
    assert runner.role.ask("weights", {"tree": tree, "base": 0}).kind == "weights_loaded"
    x = torch.rand(2, 3)
    assert torch.equal(value(runner, runner.call(x), x), x * 5)

    answer = runner.role.ask("read_weights", {"names": ["linear.bias", "linear.weight"]})
    assert answer.kind == "weights_read"
    bias, weight = read(answer, Addresses).addresses
    assert torch.equal(runner.output(torch.empty(3), bias), torch.zeros(3))
    assert torch.equal(runner.output(torch.empty(3, 3), weight), torch.eye(3) * 5)


def test_a_function_ignores_weights(runner):
    runner.load({"candidate.py": DOUBLE})
    tree = {"t": "dict", "v": []}

    assert runner.role.ask("weights", {"tree": tree, "base": 0}).kind == "weights_loaded"
    assert runner.role.ask("read_weights", {"names": []}).kind == "weights_read"


def test_strided_weights_are_reported_as_dense(runner):
    source = MODULE.replace('"table", table', '"table", table.T')
    table = torch.arange(9.0).reshape(3, 3)
    runner.load({"candidate.py": source}, "ModelNew", init=[table])
    (place,) = read(runner.role.ask("read_weights", {"names": ["table"]}), Addresses).addresses

    assert torch.equal(runner.output(table, place), table.T)


def test_unknown_weight_names_are_an_error(runner):
    runner.load({"candidate.py": MODULE}, "ModelNew", init=[torch.zeros(3)])

    assert said(runner.role.ask("read_weights", {"names": ["gone"]})).type == "KeyError"


def test_other_files_of_a_candidate_can_be_imported(runner, runner_folder):
    files = {
        "candidate.py": "from parts.deep import twice as work\n",
        "parts/__init__.py": "",
        "parts/deep.py": "def twice(x):\n    return x * 2\n",
    }
    assert runner.load(files).kind == "loaded"
    assert (runner_folder / "parts" / "deep.py").is_file()


def test_packages_in_allowed_folders_can_be_imported(runner, tmp_path):
    (tmp_path / "extra_of_test.py").write_text("FACTOR = 7\n")
    source = "import extra_of_test\ndef work(x):\n    return x * extra_of_test.FACTOR\n"
    frame = runner.load({"candidate.py": source}, import_paths=[str(tmp_path)])

    assert frame.kind == "loaded"


def test_the_last_arguments_are_passed_by_name(runner):
    source = "def work(x, *, minus, times):\n    return x * times - minus\n"
    runner.load({"a.py": source}, keywords=["times", "minus"])
    answer = read(runner.call(torch.ones(3), 4.0, 1.0), Result)

    assert runner.output(torch.empty(3), answer.outputs[0].address).tolist() == [3, 3, 3]


def test_a_missing_entry_is_named(runner):
    assert runner.load({"a.py": DOUBLE}, "work").kind == "loaded"
    missing = said(runner.load({"a.py": DOUBLE}, "ModelNew"))

    assert (missing.type, missing.message) == ("EntryMissing", "no ModelNew in a.py")


def test_a_class_that_is_no_torch_module_is_called_directly(runner):
    source = "class work:\n    def __call__(self, x):\n        return x + 1\n"
    runner.load({"candidate.py": source})
    frame = runner.call(torch.zeros(2))

    assert value(runner, frame, torch.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b, c: {"first": a, "pair": (b, c)},
        lambda a, b, c: ({"first": a, "others": [b]}, c),
        lambda a, b, c: [a, (b, (c,))],
    ],
)
def test_runner_and_judge_take_nested_outputs_apart_alike(form):
    leaves = [torch.zeros(1) for _ in range(3)]
    found, structure = calls.flatten(form(*leaves))

    assert list(map(id, found)) == list(map(id, reference.flatten(form(*leaves))))
    assert list(map(id, found)) == list(map(id, leaves))
    assert structure == reference.structure(form(*leaves))


def test_gradients_come_after_the_outputs(runner):
    source = "def work(x, k, w):\n    return x * w * k, k\n"
    runner.load({"candidate.py": source})
    x, w = torch.full((3,), 2.0), torch.full((3,), 5.0)
    upstream = torch.tensor([1.0, 10.0, 100.0])
    frame = runner.call(x, torch.tensor(3), w, grads=[2, 0], grad_outputs=[upstream])

    shapes = [(item["dtype"], item["shape"]) for item in outputs(frame)]
    assert shapes == [("float32", [3]), ("int64", []), ("float32", [3]), ("float32", [3])]
    assert value(runner, frame, x, 2).tolist() == [6.0, 60.0, 600.0]
    assert value(runner, frame, x, 3).tolist() == [15.0, 150.0, 1500.0]


def test_the_forward_seed_is_set_before_each_call(runner):
    runner.load({"candidate.py": "import torch\ndef work(x):\n    return torch.rand(3)\n"})
    sample = []
    for seed in (1, 1, 2):
        frame = runner.call(torch.zeros(1), forward_seed=seed)
        sample.append(value(runner, frame, torch.zeros(3)))

    assert torch.equal(sample[0], sample[1])
    assert not torch.equal(sample[0], sample[2])


def test_operator_counts_name_operators(runner):
    runner.load({"candidate.py": "def work(x):\n    return (x @ x).relu().relu()\n"})
    frame = runner.call(torch.eye(3), count_operators=True)

    assert frame.fields["operator_counts"] == {"aten::mm": 1, "aten::relu": 2}


def test_operator_counts_have_a_bounded_number_of_names(runner):
    operators = [
        *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2"),
        *("expm1", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "round"),
        *("rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "square"),
        *("isnan", "signbit", "digamma", "sgn", "angle", "positive", "relu", "reciprocal"),
        *("sum", "mean", "amax", "amin", "argmax", "argmin", "std", "var", "cumsum", "flip"),
    ]
    pairs = ("add", "sub", "mul", "div", "maximum", "minimum", "atan2", "fmod", "remainder")
    pairs = (*pairs, "eq", "ne", "lt", "le", "gt", "ge", "hypot", "logaddexp", "copysign")
    source = "import torch\ndef work(x):\n"
    for name in operators:
        arguments = "x, 0" if name == "cumsum" else "x, [0]" if name == "flip" else "x"
        source += f"    torch.{name}({arguments})\n"
    source += "".join(f"    torch.{name}(x, x)\n" for name in pairs) + "    return x * 1\n"
    runner.load({"candidate.py": source})
    frame = runner.call(torch.rand(3), count_operators=True)

    assert len(read(frame, Result).operator_counts) == 64


def test_a_call_that_is_never_released_times_out(runner):
    runner.load({"candidate.py": DOUBLE})

    assert said(runner.timed(torch.ones(1), wait_s=0.05, release=False)).type == "TimeoutError"


def test_an_unknown_frame_is_an_error(runner):
    assert said(runner.role.ask("dance")).type == "KeyError"


def test_the_runner_acknowledges_its_end_and_drops_the_candidate(runner, tmp_path, monkeypatch):
    def end(code: int) -> NoReturn:
        raise SystemExit(code)

    # This process goes on.
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: None)
    source = (
        "class work:\n    def __call__(self, x):\n        return x\n"
        f"    def __del__(self, path={str(tmp_path / 'gone')!r}, touch=open):\n"
        "        touch(path, 'w').close()\n"
    )
    runner.load({"candidate.py": source})

    assert runner.role.ask("exit").kind == "bye"
    assert not runner.role.alive()
    assert Path(tmp_path / "gone").exists()
    assert "candidate" not in sys.modules


def test_the_runner_ends_with_the_supervisor(runner):
    runner.role.channel.close()

    assert not runner.role.alive()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_baseline_is_loaded_lazily(runner):
    runner.load({"candidate.py": DOUBLE})

    frame = runner.load({"candidate.py": DOUBLE}, compile="default")
    assert frame.kind == "loaded", frame
