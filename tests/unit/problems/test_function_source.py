"""Functions of a process as source text: aliases, wrappers, closures, kernels."""

from __future__ import annotations

import functools
import importlib

import pytest

from tilewright.errors import ConfigError
from tilewright.problems.function_source import function_source, plain_function

torch = pytest.importorskip("torch")
FACTOR, TABLE = 3, {"a": [1, 2.5, None]}
DTYPE = torch.float32
WEIGHT = torch.ones(2)


def double(x):
    return x * 2


twice = double


def noted(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x)

    return wrapper


@noted
def decorated(x):
    return twice(x) + FACTOR


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def with_default(x, scale=FACTOR, dtype=DTYPE):
    return x.to(dtype) * scale * TABLE["a"][1]


def uses_a_tensor(x):
    return x + WEIGHT


def made(text):
    names = {}
    exec(text, names)
    return names


def test_aliases_decorators_and_constants_come_along():
    assert made(function_source("candidate", decorated))["decorated"](5) == 13


def test_functions_that_call_each_other_are_written_once():
    text = function_source("candidate", even)
    assert text.count("def even") == text.count("def odd") == 1
    assert made(text)["even"](4) is True


def test_defaults_and_dtypes_are_defined_before_their_use():
    found = made(function_source("candidate", with_default))["with_default"](torch.ones(1))
    assert float(found) == 7.5


def test_a_closure_brings_its_values():
    offset = 4

    def shifted(x):
        return double(x) + offset

    assert made(function_source("candidate", shifted))["shifted"](1) == 6


def test_a_value_without_a_text_is_named():
    with pytest.raises(ConfigError, match="candidate: it uses `WEIGHT`, a Tensor"):
        function_source("candidate", uses_a_tensor)


KERNELS = """import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x):
    return x * 2


@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, scaled(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def launch(x):
    kernel[(1,)](x, x.numel())
    return x
"""


def test_a_triton_kernel_and_its_autotuner_are_written_out(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    (tmp_path / "kernels_of_a_test.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("kernels_of_a_test")
    text = function_source("candidate", module.launch)
    assert text.count("@triton.jit") == 2
    assert "@triton.autotune(configs=" in text
    assert text.index("def scaled") < text.index("def kernel") < text.index("def launch")
    assert "import triton.language as tl" in text
    assert plain_function(module.kernel).__name__ == "kernel"
