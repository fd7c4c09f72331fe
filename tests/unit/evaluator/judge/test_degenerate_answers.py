"""The linter: which answers without work pass, by official and by strict tolerance."""

from __future__ import annotations

from typing import Any

from tilewright.evaluator.judge import degenerate_answers, reference
from tilewright.evaluator.judge_client.problem_messages import LintCase
from tilewright.records.problem_lint import CaseHealth, Health, is_weak
from tilewright.wire.names import INPUT_VARIATIONS

FUNCTION = """import torch


def inputs(case, generator):
    return (torch.{sample}(64, 256, generator=generator),)


def reference(x):
    return {body}
"""
MODULE = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
"""


def linted(source: str, kind: str = "function") -> dict[str, Any]:
    fields = {"problem_kind": kind, "mode": "train", "grads": [], "keywords": [], "init_seed": 42}
    loaded = reference.load(source, fields)
    rules = {f"{t:g}": {"name": "allclose", "tolerance": t} for t in (1e-4, 1e-2)}
    case = LintCase({}, list(INPUT_VARIATIONS), rules)
    return vars(degenerate_answers.lint(loaded, case))


def of(body: str, sample: str = "randn") -> dict[str, Any]:
    return linted(FUNCTION.format(body=body, sample=sample))


def test_a_sound_problem_accepts_no_degenerate_answer():
    found = of("torch.softmax(x, -1) * 100")
    assert found["official"] == {"0.0001": [], "0.01": []}
    assert found["strict"] == []
    assert (found["random"], found["deterministic"]) == (False, True)
    assert found["output_bytes"] == 64 * 256 * 4
    # A CPU has no counter of what a call allocates.
    assert found["peak_bytes"] is None


def test_zeros_pass_for_small_outputs_under_an_absolute_tolerance_only():
    found = of("torch.softmax(x, -1) * 1e-5")
    assert "zeros" in found["official"]["0.0001"]
    assert found["strict"] == []


def test_averages_accept_a_constant_and_the_output_of_another_input():
    found = of("x.mean(-1, keepdim=True).expand(64, 256).mean(0)", "rand")
    assert {"constant", "another input's output"} <= set(found["official"]["0.01"])
    assert found["strict"] == []


def test_an_output_of_integers_without_elements_has_no_mean():
    assert of("torch.arange(9).reshape(3, 3)[:0]")["random"] is False


def test_a_reference_that_always_gives_zero_is_weak_under_strict_rules():
    found = of("(x - x.detach()) + 0.0 * x")
    assert "zeros" in found["strict"]


def test_the_identity_accepts_a_copy_of_its_input():
    found = of("x.clone()")
    assert found["strict"] == ["copy of an input"]


def test_parameters_that_do_not_matter_are_named():
    assert (
        degenerate_answers.SKIPPED
        in linted(MODULE.format(body="x + 0 * self.linear(x)"), "module")["strict"]
    )
    assert linted(MODULE.format(body="self.linear(x)"), "module")["strict"] == []


def test_a_random_reference_is_reported_as_random():
    assert of("x + torch.rand_like(x)")["random"]


def health(*cases: tuple[tuple[str, ...], tuple[str, ...]]) -> Health:
    made = [
        CaseHealth(
            case=str(number),
            official={"0.01": official},
            strict=strict,
            random=False,
            deterministic=True,
            call_s=0.0,
            input_bytes=0,
            output_bytes=0,
        )
        for number, (official, strict) in enumerate(cases)
    ]
    return Health(problem="p", problem_digest="d", device="cpu", cases=tuple(made))


def test_a_problem_is_weak_if_one_answer_passes_on_every_case():
    found = health((("zeros", "ones"), ("zeros",)), (("zeros",), ()))
    assert is_weak(found, "official", "0.01") == ("zeros",)
    assert is_weak(found, "official", "by_dtype") == ()
    assert is_weak(found, "official", "0.0001") == ()
    assert is_weak(found, "strict") == ()
    assert is_weak(health(), "strict") == ()
