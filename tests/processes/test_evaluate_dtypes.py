"""Whole evaluations of float8, complex, bool and small integers: inputs, outputs and weights."""

from __future__ import annotations

import pytest

from tests.processes.evaluations import TIMED, bench, request
from tilewright.records import EvalReport, Incorrect

__all__ = ["bench"]

SCALED_PRODUCT = """
import torch

class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        weight = torch.randn(outer, inner) * 0.5
        scale = weight.abs().amax() / 448.0
        self.weight = torch.nn.Parameter(
            (weight / scale).to(torch.float8_e4m3fn), requires_grad=False
        )
        self.register_buffer("scale", scale)

    def forward(self, x, x_scale):
        return torch._scaled_mm(
            x, self.weight.t(), scale_a=x_scale, scale_b=self.scale, out_dtype=torch.bfloat16
        )

def get_inputs():
    x = torch.rand(64, 256) * 8 - 4
    x_scale = x.abs().amax() / 448.0
    return [(x / x_scale).to(torch.float8_e4m3fn), x_scale]

def get_init_inputs():
    return [256, 128]
"""
"""A float8 matmul of KernelBench's form."""
DEQUANTIZED = (
    SCALED_PRODUCT.replace("class Model(", "class ModelNew(").partition("    def forward")[0]
    + """
    def forward(self, x, x_scale):
        weight = self.weight.float() * self.scale
        return ((x.float() * x_scale) @ weight.t()).to(torch.bfloat16)
"""
)
HALF_DROPPED = DEQUANTIZED.replace(
    "(x.float() * x_scale) @ weight.t()", "(x.float() * x_scale)[:, :128] @ weight.t()[:128] * 2"
)
FEWER_BITS = DEQUANTIZED.replace(
    "self.weight.float() * self.scale", "self.weight.to(torch.float8_e5m2).float() * self.scale"
)
FOLDED = DEQUANTIZED.replace(
    '        self.register_buffer("scale", scale)',
    '        self.register_buffer("scale", scale)\n        self.kept = self.weight.float() * scale',
).replace("weight = self.weight.float() * self.scale", "weight = self.kept")
OTHER_LAYOUT = DEQUANTIZED.replace("@ weight.t()", "@ weight.double().t().float().contiguous()")

FUNCTION = """
import torch

ENTRY = "work"
CASES = [{{"name": "small", "n": 7}}, {{"name": "large", "n": 300}}]

def normal(case, generator):
    return torch.randn(case["n"], 64, generator=generator)

def inputs(case, generator):
    x = normal(case, generator)
    return {inputs}

def reference({names}):
    return {reference}
"""


def function(inputs: str, names: str, reference: str) -> str:
    return FUNCTION.format(inputs=inputs, names=names, reference=reference)


def work(names: str, body: str) -> str:
    return f"import torch\n\ndef work({names}):\n    return {body}\n"


def outcome(report: EvalReport) -> object:
    return report.outcome


@pytest.mark.parametrize("source", [DEQUANTIZED, OTHER_LAYOUT], ids=["dequantized", "layout"])
def test_an_honest_float8_product_is_correct(bench, source):
    report = bench.judge(request(source, SCALED_PRODUCT))

    assert report.verdict == "correct", report.outcome
    assert {case.oracle for case in report.cases if case.result == "pass"} == {"float64"}
    assert [case.result for case in report.cases].count("pass") > 3
    assert not report.labels


def test_an_honest_float8_product_is_timed(bench):
    report = bench.judge(request(DEQUANTIZED, SCALED_PRODUCT, timing=TIMED))

    assert report.verdict == "correct", report.outcome


@pytest.mark.parametrize("source", [HALF_DROPPED, FEWER_BITS], ids=["half", "bits"])
def test_a_float8_product_with_less_work_is_incorrect(bench, source):
    report = bench.judge(request(source, SCALED_PRODUCT))

    assert isinstance(report.outcome, Incorrect), report.outcome
    assert report.outcome.kind == "values"


def test_float8_weights_folded_at_construction_are_incorrect(bench):
    report = bench.judge(request(FOLDED, SCALED_PRODUCT))

    assert isinstance(report.outcome, Incorrect), report.outcome
    assert report.outcome.kind == "weights"


CASES = {
    "quantize": (
        function("(x,)", "x", "(x / x.abs().amax(-1, keepdim=True) * 448).to(torch.float8_e4m3fn)"),
        work("x", "(x * (448 / x.abs().amax(-1, keepdim=True))).to(torch.float8_e4m3fn)"),
        work("x", "(x * (420 / x.abs().amax(-1, keepdim=True))).to(torch.float8_e4m3fn)"),
    ),
    "float8_e5m2": (
        function("(x.to(torch.float8_e5m2),)", "x", "x.float().exp().to(torch.float8_e5m2)"),
        work("x", "torch.exp2(x.float() * 1.4426950408889634).to(torch.float8_e5m2)"),
        work("x", "(x.float().exp() * 0.8).to(torch.float8_e5m2)"),
    ),
    "complex": (
        function("(torch.complex(x, x.flip(0)),)", "x", "torch.fft.fft(x) * x"),
        work("x", "x * torch.fft.fft(x.to(torch.complex128)).to(torch.complex64)"),
        work("x", "torch.fft.fft(x) * x.real"),
    ),
    "real from complex": (
        function("(torch.complex(x, x.flip(0)),)", "x", "x.abs() + 0.0"),
        work("x", "(x.real * x.real + x.imag * x.imag).sqrt()"),
        work("x", "x.real.abs() + x.imag.abs()"),
    ),
    "bool": (
        function("(x > 0, x.abs() < 1)", "a, b", "a & ~b"),
        work("a, b", "(a.to(torch.uint8) > b.to(torch.uint8))"),
        work("a, b", "a & b"),
    ),
    "int8": (
        function(
            "((x * 40).to(torch.int8), (x.flip(0) * 40).to(torch.int8))",
            "a, b",
            "(a.int() @ b.int().t(), a + b)",
        ),
        work("a, b", "((a.float() @ b.float().t()).round().int(), b + a)"),
        work("a, b", "((a // 2 * 2).int() @ b.int().t(), a + b)"),
    ),
    "uint8": (
        function("((x.abs() * 60).to(torch.uint8),)", "x", "(x >> 4, x & 15)"),
        work("x", "(x // 16, x % 16)"),
        work("x", "(x // 16, x % 8)"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_dtype_is_judged(bench, name):
    problem, right, wrong = CASES[name]

    report = bench.judge(request(right, problem))
    assert report.verdict == "correct", report.outcome
    report = bench.judge(request(wrong, problem))
    assert report.verdict == "incorrect", report.outcome


def test_gradients_flow_through_complex_outputs(bench):
    problem = function("(x,)", "x", "torch.fft.rfft(x)").replace(
        'ENTRY = "work"', 'ENTRY = "work"\nGRADS = ["x"]'
    )
    right = work("x", "torch.fft.fft(x)[..., : x.shape[-1] // 2 + 1]")
    wrong = work("x", "torch.fft.rfft(x.detach()) + torch.fft.rfft(x) * 0")

    assert bench.judge(request(right, problem)).verdict == "correct"
    assert bench.judge(request(wrong, problem)).verdict == "incorrect"


def test_a_float8_output_arrives_through_the_c_abi(bench):
    problem, _, _ = CASES["float8_e5m2"]
    source = """
#include "tilewright.h"
#include <math.h>
#include <string.h>

static float widen(uint8_t code) {
    float value;
    int sign = code >> 7, exponent = (code >> 2) & 31, rest = code & 3;
    value = exponent ? ldexpf(4 + rest, exponent - 17) : ldexpf(rest, -16);
    if (exponent == 31) value = rest ? NAN : INFINITY;
    return sign ? -value : value;
}

static uint8_t narrow(float value) {
    uint8_t best = 0;
    float least = INFINITY;
    for (int code = 0; code < 124; ++code) {
        float distance = fabsf(widen((uint8_t)code) - value);
        if (distance < least) { least = distance; best = (uint8_t)code; }
    }
    return value > 61440.0f ? 124 : best;
}

extern "C" int work(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (in[0].dtype != 11 || out[0].dtype != 11) return 3;
    const uint8_t* x = (const uint8_t*)in[0].data;
    uint8_t* y = (uint8_t*)out[0].data;
    int64_t count = in[0].shape[0] * in[0].shape[1];
    for (int64_t i = 0; i < count; ++i) y[i] = narrow(expf(widen(x[i])));
    return 0;
}
"""
    report = bench.judge(request(source, problem, path="candidate.cpp"))

    assert report.verdict == "correct", report.outcome
