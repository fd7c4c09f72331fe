"""Extensions that a candidate builds at import, in its constructor or in a first call.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import shutil

import pytest

from tests.processes.evaluations import LIMITS, Bench, bench, request
from tilewright.evaluator.runners import pool
from tilewright.records import EvalReport, Failed, Rejected

__all__ = ["bench"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"),
]

SOURCE = r"""
#include <Python.h>
static PyObject* twice(PyObject*, PyObject* x) { return PyObject_CallMethod(x, "mul", "i", 2); }
static PyMethodDef methods[] = {{"twice", twice, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};
static struct PyModuleDef own = {PyModuleDef_HEAD_INIT, "own", "", -1, methods};
#define JOIN(a, b) a##b
#define INIT(name) JOIN(PyInit_, name)
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&own); }
"""
PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return []
"""
HEAD = f"""
import torch
from torch.utils import cpp_extension

SOURCE = {SOURCE!r}

def built(source=SOURCE):
    return cpp_extension.load_inline("own", source, no_implicit_headers=True)
"""
IMPORT = """
EXTENSION = built()

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return EXTENSION.twice(x)
"""
CONSTRUCTOR = """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.own = built()

    def forward(self, x):
        return self.own.twice(x)
"""
FIRST_CALL = """
import functools

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return functools.cache(built)().twice(x)
"""
BROKEN = ('PyObject_CallMethod(x, "mul"', 'PyObject_CallMehtod(x, "mul"')
FALLBACK = """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        try:
            self.own = built()
        except Exception:
            self.own = None

    def forward(self, x):
        return x * 2 if self.own is None else self.own.twice(x)
"""
WRAPPED = """
import os
import subprocess

from tilewright.runner.loaders import short_headers

FOLDER = "/tmp/extensions"
if os.path.isdir(FOLDER):
    # Only the build process has this folder. g++ stands in for nvcc.
    short_headers.install(FOLDER, "g++")
    with open(f"{FOLDER}/own.cu", "w") as file:
        file.write("int one = 1;")
    command = os.environ["PYTORCH_NVCC"] + f" -x c++ -c {FOLDER}/own.cu -o {FOLDER}/own.o"
    subprocess.run(command, shell=True, check=True)
"""
NAMES = ("import", "constructor", "first call")


def judged(bench: Bench, text: str, **changes: object) -> EvalReport:
    limits = LIMITS.model_copy(update={"build_s": 100})
    return bench.judge(request(text, PROBLEM, limits=limits, **changes))


def repeats(bench: Bench) -> list[str]:
    return [fields["because"] for fields in bench.named("retry")]


def test_the_wrapper_of_nvcc_runs_in_the_sandbox(bench):
    report = judged(bench, HEAD + WRAPPED + IMPORT)

    assert report.verdict == "correct", report.outcome


@pytest.mark.parametrize("text", [IMPORT, CONSTRUCTOR, FIRST_CALL], ids=NAMES)
def test_an_extension_gets_the_same_verdict_wherever_it_is_built(bench, text):
    report = judged(bench, HEAD + text)

    assert report.verdict == "correct", report.outcome
    again = [] if text is IMPORT else ["extension 'own' is built first"]
    assert repeats(bench) == again
    # A later evaluation knows what the candidate builds.
    assert judged(bench, HEAD + text).verdict == "correct"
    assert repeats(bench) == []


@pytest.mark.parametrize("text", [IMPORT, CONSTRUCTOR, FIRST_CALL], ids=NAMES)
def test_a_build_error_shows_the_compiler_wherever_it_happens(bench, text):
    report = judged(bench, (HEAD + text).replace(*BROKEN))

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("build", "build")
    assert "PyObject_CallMehtod" in report.outcome.message
    assert "error:" in report.outcome.message


@pytest.mark.parametrize("place", ["import", "constructor"])
def test_a_candidate_that_does_without_its_extension_is_judged_for_that(bench, place):
    text = (HEAD + FALLBACK).replace(*BROKEN)
    if place == "import":
        text = text.replace("class", "try:\n    built()\nexcept Exception:\n    pass\nclass", 1)
    report = judged(bench, text)

    # Right, but not by a kernel of its own.
    assert isinstance(report.outcome, Rejected), report.outcome
    assert [item.code for item in report.outcome.findings] == ["unused_kernel"]
    assert len(repeats(bench)) == (place == "constructor")


def test_a_candidate_that_always_builds_another_extension_fails(bench, monkeypatch):
    monkeypatch.setattr(pool, "MAX_REQUESTS", 2)
    changed = CONSTRUCTOR.replace("built()", "built(f'// {__import__(\"uuid\").uuid4()}' + SOURCE)")
    report = judged(bench, HEAD + changed)

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("construct", "build")
    assert "extensions after its import" in report.outcome.message
    assert len(repeats(bench)) == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("b'garbage'", "protocol_violation"),
        ('b\'{"builder": "load"}\'', "protocol_violation"),
        ("b' ' * ((4 << 20) + 1)", "build"),
    ],
)
def test_a_forged_request_fails(bench, body, reason):
    forged = f"""
import json, os, socket, stat, struct, time
body = {body}
header = json.dumps({{"kind": "unbuilt", "body": len(body)}}).encode()
for fd in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            channel = socket.socket(fileno=fd)
            channel.setblocking(True)
            channel.sendall(struct.pack(">I", len(header)) + header + body)
    except OSError:
        pass
time.sleep(60)
"""
    report = judged(bench, forged + IMPORT.replace("built()", "None"))

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("load", reason)
    assert repeats(bench) == []


def test_a_build_after_the_first_call_of_a_size_is_too_late(bench):
    late = FIRST_CALL.replace(
        "        return functools",
        "        self.calls = getattr(self, 'calls', 0) + 1\n"
        "        return x * 2 if self.calls < 2 else functools",
    )
    report = judged(bench, HEAD + late)

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("correctness", "build")
    assert "must be built at import" in report.outcome.message
    assert repeats(bench) == []
