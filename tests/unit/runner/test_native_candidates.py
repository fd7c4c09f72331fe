"""Compiled candidates: the builder's `main` builds them and the runner's loads them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.process_roles import Role
from tests.runner_role import RunnerRole
from tests.unit.runner.test_main import value
from tilewright.evaluator.devices.toolchain import HEADER
from tilewright.evaluator.runners.build_requests import read_call
from tilewright.evaluator.runners.messages import Built, ErrorReport, Result, read
from tilewright.languages.compiler_remarks import FLAG, loop_remarks
from tilewright.runner import build_main
from tilewright.runner.launch_counter import Launches
from tilewright.runner.loaders import c_abi, python
from tilewright.wire.builder_calls import BuilderCall, artifact_key
from tilewright.wire.names import COMPILER_REMARKS

pytestmark = [
    pytest.mark.usefixtures("runner_folder"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"),
]

COMMAND = ["g++", "-O3", "-shared", "-fPIC", "-std=c++17"]
AXPY = """
#include "tilewright.h"

extern "C" int axpy(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 3 || n_out != 1 || in[0].dtype != 0 || in[2].ndim != 0) return 7;
    const float* x = (const float*)in[0].data;
    const float* y = (const float*)in[1].data;
    double a = ((const double*)in[2].data)[0];
    float* z = (float*)out[0].data;
    for (int64_t i = 0; i < in[0].shape[0] * in[0].shape[1]; ++i) z[i] = a * x[i] + y[i];
    return 0;
}
"""
# The smallest module that Python can import: one function that doubles its input in place.
EXTENSION = """
#include <Python.h>

static PyObject* twice(PyObject*, PyObject* x) { return PyObject_CallMethod(x, "mul", "i", 2); }
static PyObject* refuse(PyObject*, PyObject*) {
    PyErr_SetString(PyExc_ValueError, "no");
    return nullptr;
}
static PyMethodDef methods[] = {
    {"twice", twice, METH_O, ""}, {"refuse", refuse, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "tiny", "", -1, methods};

PyMODINIT_FUNC PyInit_tiny() {
    PyObject* made = PyModule_Create(&module);
    PyModule_AddIntConstant(made, "version", 3);
    return made;
}
"""
USES_TINY = """
from torch.utils.cpp_extension import load_inline

tiny = load_inline(name="tiny", cpp_sources="")

def work(x):
    return tiny.twice(x) + tiny.version

def broken(x):
    try:
        tiny.refuse(x)
    except ValueError:
        return x * 2
"""


def build(files: dict[str, str], **changes: Any) -> Any:
    """Have the builder build; return its last frame."""
    role = Role(build_main.main)
    fields = {
        "build": "c_abi",
        "command": COMMAND,
        "units": list(files),
        "files": [{"path": path, "size": len(text)} for path, text in files.items()],
        "header": HEADER.read_text(encoding="ascii"),
        "remarks": FLAG,
        **changes,
    }
    frame = role.ask("build", fields, "".join(files.values()).encode())
    if frame.kind == "entering":
        frame = role.receive()
    assert not role.alive()
    role.close()
    return frame


@pytest.fixture(scope="module")
def axpy(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of the compiled `AXPY`."""
    folder = tmp_path_factory.mktemp("axpy")
    (folder / "axpy.cpp").write_text(AXPY)
    command = [*COMMAND, "-I", str(HEADER.parent), "-o", str(folder / "axpy.so")]
    subprocess.run([*command, str(folder / "axpy.cpp")], check=True)
    return (folder / "axpy.so").read_bytes()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of the compiled `EXTENSION`."""
    import sysconfig

    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.cpp").write_text(EXTENSION)
    command = [*COMMAND, "-I", sysconfig.get_paths()["include"], "-o", str(folder / "tiny.so")]
    subprocess.run([*command, str(folder / "tiny.cpp")], check=True)
    return (folder / "tiny.so").read_bytes()


def load_axpy(runner: RunnerRole, library: bytes, **changes: Any) -> None:
    files: dict[str, str | bytes] = {"axpy.cpp": AXPY, "lib_0.so": library}
    frame = runner.load(files, "axpy", loader="c_abi", artifacts={"kernel": "lib_0.so"}, **changes)
    assert frame.kind == "loaded", frame


def test_a_c_abi_source_is_compiled():
    frame = build({"axpy.cpp": AXPY})

    assert frame.kind == "built", frame
    sizes = read(frame, Built).artifacts
    assert list(sizes) == ["kernel", COMPILER_REMARKS]
    assert frame.body[:4] == b"\x7fELF"
    remarks = frame.body[sizes["kernel"] :].decode()
    (loop,) = loop_remarks(remarks, {"axpy.cpp": AXPY})
    assert AXPY.splitlines()[loop.line - 1].lstrip().startswith("for")


def test_a_source_that_does_not_compile_shows_the_compiler_message(runner_folder):
    frame = build({"axpy.cpp": AXPY.replace("double a", "doubel a")})
    said = read(frame, ErrorReport)

    assert said.type == "BuildError"
    assert "axpy.cpp:8:5: error: 'doubel'" in said.message.replace("\u2018", "'").replace(
        "\u2019", "'"
    )
    assert str(runner_folder) not in said.message


def test_any_exception_of_a_build_is_an_error_report():
    frame = build({"candidate.py": "raise SystemExit('never')"}, build="extension")

    assert read(frame, ErrorReport).type == "SystemExit"


def test_a_kernel_is_called_with_tensors_and_numbers(runner, axpy):
    load_axpy(runner, axpy)
    x, y = torch.arange(6.0).reshape(3, 2).T, torch.ones(2, 3)
    frame = runner.call(x, y, 2.0, outputs=(y,))

    assert torch.equal(value(runner, frame, y), 2 * x + y)
    assert read(frame, Result).launches == 1
    frame = runner.timed(x, y, 3.0, outputs=(y,))
    assert read(frame, Result).launches == 1
    assert torch.equal(value(runner, frame, y), 3 * x + y)


def test_sizes_follow_what_each_call_expects(runner, axpy):
    load_axpy(runner, axpy)
    for rows in (1, 4, 2):
        x = torch.ones(rows, 3)
        frame = runner.call(x, x, 1.0, outputs=(x,))

        assert value(runner, frame, x).tolist() == (x + x).tolist()


def test_a_kernel_that_returns_an_error_counts_as_not_launched(runner, axpy):
    load_axpy(runner, axpy)
    x = torch.ones(2, 3)
    error = read(runner.call(x, x, outputs=(x,)), ErrorReport)
    assert error.type == "RuntimeError"
    assert error.message == "axpy returned 7; it must return 0 if all went well"
    assert error.traceback == []

    assert read(runner.call(x, x, 1.0, outputs=(x,)), Result).launches == 1


def test_a_suppressed_kernel_leaves_poison_values(runner, axpy):
    load_axpy(runner, axpy, suppressed=True)
    x = torch.ones(2, 3)
    count = torch.zeros(2, dtype=torch.int32)
    frame = runner.call(x, x, 1.0, outputs=(x, count))

    assert bool(torch.isnan(value(runner, frame, x)).all())
    assert value(runner, frame, count, 1).tolist() == [113, 113]
    assert read(frame, Result).launches == 1


def test_launches_can_be_suppressed_between_two_calls(runner, axpy):
    load_axpy(runner, axpy)
    x = torch.ones(2, 3)
    frame = runner.call(x, x, 1.0, outputs=(x,))
    assert value(runner, frame, x).tolist() == (x + x).tolist()

    assert runner.role.ask("suppress_launches", {}).kind == "run_suppressed"
    frame = runner.call(x, x, 1.0, outputs=(x,))
    assert bool(torch.isnan(value(runner, frame, x)).all())


def test_gradients_come_from_the_kernel(runner, axpy):
    load_axpy(runner, axpy)
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    grads = {"grads": [0], "grad_outputs": [torch.tensor(4.0, dtype=torch.float64)]}
    frame = runner.call(x, y, outputs=(x,), **grads)

    assert frame.kind == "result", frame
    assert torch.equal(value(runner, frame, x), torch.full((2, 3), 5.0))


def test_arguments_outside_the_abi_are_an_error(runner, axpy):
    load_axpy(runner, axpy)
    x = torch.ones(2, 3)

    assert read(runner.call(x, x, "a", outputs=(x,)), ErrorReport).type == "TypeError"
    with pytest.raises(KeyError):
        c_abi.struct_of(x.to(torch.float8_e5m2fnuz))


def test_numbers_become_tensors_without_dimensions():
    assert c_abi.as_tensor(2.5).dtype == torch.float64
    assert c_abi.as_tensor(7).dtype == torch.int64
    assert c_abi.as_tensor(True).tolist() == 1
    struct = c_abi.struct_of(torch.zeros(2, 3, dtype=torch.bool))

    assert (struct.ndim, struct.dtype, list(struct.shape)[:3]) == (2, 9, [2, 3, 0])
    assert list(struct.stride)[:2] == [3, 1]


def test_a_missing_entry_is_an_error(runner, axpy):
    files: dict[str, str | bytes] = {"axpy.cpp": AXPY, "lib_0.so": axpy}
    frame = runner.load(files, "gone", loader="c_abi", artifacts={"kernel": "lib_0.so"})

    assert read(frame, ErrorReport).type == "AttributeError"


INLINE = BuilderCall("load_inline", "tiny", {"cpp_sources": ""})


def load_tiny(
    runner: RunnerRole, library: bytes, source: str, call: BuilderCall = INLINE, **changes: Any
) -> Any:
    files: dict[str, str | bytes] = {"candidate.py": source, "lib_0.so": library}
    key = artifact_key(call.digest(), changes.pop("module", "tiny"))
    return runner.load(files, artifacts={key: "lib_0.so"}, **changes)


def test_a_prebuilt_extension_is_loaded_and_counted(runner, tiny):
    assert load_tiny(runner, tiny, USES_TINY).kind == "loaded"
    x = torch.arange(3.0)
    frame = runner.call(x)

    assert torch.equal(value(runner, frame, x), x * 2 + 3)
    assert read(frame, Result).launches == 1


def test_a_call_that_raises_counts_as_not_launched(runner, tiny):
    load_tiny(runner, tiny, USES_TINY, entry="broken")

    assert read(runner.call(torch.ones(2)), Result).launches == 0


def test_a_suppressed_extension_returns_poison_values(runner, tiny):
    load_tiny(runner, tiny, USES_TINY, suppressed=True)
    x = torch.arange(3.0)
    frame = runner.call(x)

    assert bool(torch.isnan(value(runner, frame, x)).all())
    assert read(frame, Result).launches == 1


def test_an_extension_that_was_not_built_is_asked_for_and_the_runner_ends(
    runner, tiny, monkeypatch
):
    monkeypatch.setattr(os, "_exit", sys.exit)
    # A candidate that catches every exception does not go on without its extension either.
    source = USES_TINY.replace('cpp_sources=""', 'cpp_sources=("a", "b"), verbose=True')
    frame = load_tiny(runner, tiny, source)

    assert frame.kind == "unbuilt"
    assert read(runner.role.receive(), ErrorReport).type == "SystemExit"
    assert read_call(frame.body) == BuilderCall("load_inline", "tiny", {"cpp_sources": ["a", "b"]})


def test_a_library_is_found_under_another_name(runner, tiny):
    source = USES_TINY.replace('name="tiny"', 'name="other" + str(id(object()))')

    assert load_tiny(runner, tiny, source).kind == "loaded"


def test_a_build_that_failed_raises_with_what_the_compiler_said(runner):
    said = read(load_tiny(runner, b"k.cpp:1: no type", USES_TINY, module=""), ErrorReport)

    assert (said.type, said.message) == ("RuntimeError", "k.cpp:1: no type")


def test_a_library_of_operators_is_loaded_and_counted(runner, tiny):
    # Defines an operator as a TORCH_LIBRARY would, at the moment at which one would be loaded.
    source = """
import torch
from torch.utils.cpp_extension import load

class Library:
    def __init__(self, path):
        self.library = torch.library.Library("tiny_ops", "DEF")
        self.library.define("thrice(Tensor x) -> Tensor")
        self.library.impl("thrice", lambda x: x * 3, "CPU")

def loaded(path):
    global kept
    kept = Library(path)

before, torch.ops.load_library = torch.ops.load_library, loaded
try:
    assert load("tiny", [], is_python_module=False).endswith("lib_0.so")
finally:
    torch.ops.load_library = before

def work(x):
    return torch.ops.tiny_ops.thrice(x) + torch.ops.tiny_ops.thrice.default(x)
"""
    call = BuilderCall("load", "tiny", {"sources": [], "is_python_module": False})
    assert load_tiny(runner, tiny, source, call).kind == "loaded"
    frame = runner.call(torch.ones(2))

    assert value(runner, frame, torch.ones(2)).tolist() == [6.0, 6.0]
    assert read(frame, Result).launches == 2


@pytest.mark.parametrize("suppressed", [False, True])
def test_calls_of_a_built_library_through_ctypes_are_counted(
    runner, tmp_path, suppressed, monkeypatch
):
    source = 'extern "C" double add(double* y, double x) { *y += x; return *y; }'
    (tmp_path / "add.cpp").write_text(source)
    subprocess.run([*COMMAND, "-o", tmp_path / "add.so", tmp_path / "add.cpp"], check=True)
    candidate = """
import ctypes
import torch
from torch.utils.cpp_extension import load

add = ctypes.CDLL(load("tiny", [], is_python_module=False)).add
add.argtypes, add.restype = [ctypes.c_void_p, ctypes.c_double], ctypes.c_double
ctypes.CDLL(None).abs(3)

def work(x):
    y = x.double()
    last = add(y.data_ptr(), 2.0)
    return y, torch.tensor(-1.0 if last is None else last)
"""
    monkeypatch.setattr(torch.ops, "load_library", lambda _: None)
    call = BuilderCall("load", "tiny", {"sources": [], "is_python_module": False})
    library = (tmp_path / "add.so").read_bytes()
    assert load_tiny(runner, library, candidate, call, suppressed=suppressed).kind == "loaded"
    frame = runner.call(torch.ones(1))

    assert value(runner, frame, torch.ones(1).double()).tolist() == [1.0 if suppressed else 3.0]
    assert read(frame, Result).launches == 1


def test_launch_suppression_undoes_writes_and_poisons_results():
    launches = Launches(suppress=True)
    total = torch.zeros(2)

    def add(into: torch.Tensor, times: int) -> list[torch.Tensor]:
        into += times
        return [into * 2, torch.ones(1, dtype=torch.int64)]

    result = python.own_function(add, launches)(total, 3)

    assert total.tolist() == [0.0, 0.0]
    assert bool(torch.isnan(result[0]).all())
    assert result[1].tolist() == [113]
    assert launches.count == 1


def test_a_native_file_is_not_imported_as_a_module(tmp_path: Path):
    (tmp_path / "candidate.txt").write_text("x = 1")

    with pytest.raises(ImportError, match="cannot be imported"):
        python.import_file(str(tmp_path / "candidate.txt"))
