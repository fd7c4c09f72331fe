"""The check of a problem by the judge: dependence on inputs, weak answers, the generator."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.unit.evaluator.judge.test_degenerate_answers import FUNCTION, MODULE
from tilewright.evaluator.judge import reference, soundness
from tilewright.evaluator.judge.reference import ProblemFailure, Reference
from tilewright.evaluator.judge_client.problem_messages import CheckHealth, HealthAnswer
from tilewright.wire.names import INPUT_VARIATIONS

GENERATOR = """import torch

{state}


def inputs(case, generator):
{body}


def reference(x):
    return torch.tanh(x)
"""


def loaded(source: str, kind: str = "function") -> Reference:
    fields = {"problem_kind": kind, "mode": "train", "grads": [], "keywords": [], "init_seed": 42}
    return reference.load(source, fields)


def checked(source: str, kind: str = "function", rule: Any = None) -> HealthAnswer:
    message = CheckHealth({}, list(INPUT_VARIATIONS), 77, rule is None)
    return soundness.check(loaded(source, kind), message, rule)


def of(body: str) -> HealthAnswer:
    return checked(FUNCTION.format(body=body, sample="randn"))


def generated(*lines: str, state: str = "") -> HealthAnswer:
    return checked(GENERATOR.format(state=state, body="\n".join(f"    {line}" for line in lines)))


@pytest.mark.parametrize(
    "body",
    [
        "torch.softmax(x, -1)",
        "torch.softmax(x, -1) * 1e-5",
        "x.argmax(-1)",
        "1 + 1e-6 * x",
        "x + torch.rand_like(x)",
    ],
)
def test_a_sound_problem_accepts_nothing(body):
    found = of(body)
    assert (found.constant, found.passing, found.passing_own_inputs) == (False, [], [])
    assert (found.ignores_seed, found.repeatable) == (False, True)
    assert (found.shapes_vary, found.shares_memory, found.unchecked) == (False, False, "")


@pytest.mark.parametrize(
    "body",
    [
        "torch.ones_like(x)",
        "x - x",
        "x.sum(-1, keepdim=True) / x.sum(-1, keepdim=True)",
        "torch.full_like(x, float('nan'))",
        # Nothing but rounding errors, which differ from input to input.
        "(x - x.mean(-1, keepdim=True)).sum(-1)",
    ],
)
def test_outputs_that_depend_on_no_input_are_constant(body):
    assert of(body).constant


def test_rounding_errors_beside_exact_zeros_are_constant():
    source = GENERATOR.replace("torch.tanh(x)", "x * 3.0 / 3.0 - x").format(
        state="",
        body="""    x = torch.randn(64, 64, generator=generator)
    return (x.round() if generator.initial_seed() == 77 else x,)""",
    )
    module: Any = loaded(source).module
    zeros, errors = (
        module.reference(*module.inputs({}, torch.Generator().manual_seed(seed)))
        for seed in (77, 78)
    )
    assert not zeros.any()
    assert errors.any()
    assert checked(source).constant


def test_a_constant_on_nominal_inputs_is_weak_and_not_unsound():
    found = of("torch.relu(x - 100)")
    assert not found.constant
    assert found.passing == []
    assert soundness.CONSTANT in found.passing_own_inputs
    assert "zeros" in found.passing_own_inputs


def test_a_random_reference_keeps_its_own_reason():
    assert not of("torch.rand_like(x)").constant


def test_weights_and_parameters_that_do_nothing_are_named():
    assert (
        "skipped parameters"
        in checked(MODULE.format(body="x + 0 * self.linear(x)"), "module").passing
    )
    assert checked(MODULE.format(body="self.linear(x)"), "module").passing == []
    # New weights matter here and inputs do not.
    assert checked(MODULE.format(body="self.linear.bias + 0 * x"), "module").constant


def test_a_published_rule_is_used_where_it_is_given():
    rule = {"name": "allclose", "tolerance": 1e-2}
    source = FUNCTION.format(body="torch.softmax(x, -1) * 1e-5", sample="randn")
    assert "zeros" in checked(source, rule=rule).passing
    assert checked(source).passing == []


def test_the_check_leaves_the_reference_as_it_was():
    made = loaded(MODULE.format(body="self.linear(x)"), "module")
    assert made.model is not None
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    soundness.check(made, CheckHealth({}, list(INPUT_VARIATIONS), 77, True), None)
    assert all(torch.equal(before[n], v) for n, v in made.model.state_dict().items())
    assert (made.random, made.precision.double) == (None, None)


def test_a_generator_that_ignores_the_seed_is_named():
    found = generated("return (torch.linspace(-1, 1, 512),)")
    assert (found.ignores_seed, found.repeatable, found.constant) == (True, True, False)


def test_a_generator_that_cannot_repeat_a_sample_is_named():
    found = generated(
        "calls.append(0)",
        "torch.manual_seed(len(calls))",
        "return (torch.randn(512),)",
        state="calls = []",
    )
    assert (found.ignores_seed, found.repeatable) == (False, False)


def test_a_generator_of_other_shapes_is_named():
    found = generated(
        "n = int(torch.randint(8, 4000, (), generator=generator))",
        "return (torch.randn(n, generator=generator),)",
    )
    assert (found.shapes_vary, found.constant) == (True, False)


def test_samples_in_one_buffer_are_named_and_judged_from_copies():
    found = generated(
        "return (buffer.normal_(generator=generator),)", state="buffer = torch.empty(512)"
    )
    assert (found.shares_memory, found.ignores_seed, found.repeatable) == (True, False, True)
    assert (found.constant, found.passing) == (False, [])


def test_one_constant_tensor_for_all_samples_is_no_shared_buffer():
    found = generated("return (fixed,)", state="fixed = torch.linspace(-1, 1, 512)")
    assert (found.shares_memory, found.ignores_seed) == (False, True)


def test_a_generator_that_cannot_be_run_twice_fails():
    with pytest.raises(ProblemFailure, match="cannot be run twice"):
        generated("return (left.pop(),)", state="left = [torch.randn(8)]")


def test_of_a_slow_generator_one_sample_is_enough(monkeypatch, tmp_path):
    monkeypatch.setattr(soundness, "LONG_S", 0.05)
    log = tmp_path / "samples"
    source = FUNCTION.format(body="torch.zeros_like(x)", sample="randn").replace(
        "    return (torch",
        "    import time\n    time.sleep(0.2)\n"
        f"    with open({str(log)!r}, 'a') as log:\n        log.write('one ')\n    return (torch",
    )
    found = checked(source)
    assert found.sample_s >= 0.2
    assert (found.constant, found.ignores_seed) == (True, False)
    assert log.read_text() == "one "


FEW_VALUES = """import torch

{state}


def inputs(case, generator):
    {inputs}


def reference(x, *more):
    return {body}
"""


def few(inputs: str, body: str, state: str = "") -> tuple[int, int] | None:
    return checked(FEW_VALUES.format(inputs=inputs, body=body, state=state)).rows


TOKENS = "torch.randint(0, 50, (4000,), generator=generator)"


@pytest.mark.parametrize(
    ("inputs", "body", "found"),
    [
        (f"return ({TOKENS},)", "torch.special.zeta(x.double() / 7 + 2, 1.5).float()", (8000, 50)),
        (f"return {TOKENS}, FIXED", "more[0][x] * x[:, None]", (8000, 50)),
        ("return (torch.randint(0, 2, (4000, 3)).float(),)", "x.cumsum(-1)", (8000, 8)),
    ],
)
def test_rows_of_few_values_whose_outputs_follow_them_are_counted(inputs, body, found):
    assert few(inputs, body, "FIXED = torch.ones(50, 2)") == found


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ("return (torch.randn(4000, generator=generator),)", "x.sin()"),
        # The output of a row depends on other rows.
        (f"return ({TOKENS},)", "x.double().cumsum(0).float()"),
        # The table of values is another one in each sample.
        (f"return {TOKENS}, torch.randn(50, 2, generator=generator)", "more[0][x]"),
        ("return (torch.randint(0, 2, (4000, 64)).float(),)", "x.cumsum(-1)"),
        (f"return ({TOKENS},)", "x.double().mean().float()"),
        ("return (torch.randint(0, 2, (20,)),)", "x * 2"),
    ],
)
def test_rows_that_differ_or_decide_no_output_alone_are_not_counted(inputs, body):
    assert few(inputs, body) is None


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ("return torch.randn(8, 8, generator=generator), torch.tril(torch.ones(8, 8))", [1]),
        ("return torch.randn(8, generator=generator), torch.arange(8)", [1]),
        # Timed calls move these.
        ("return torch.randn(8, generator=generator), torch.linspace(0, 2, 8)", []),
        (f"return {TOKENS}, {TOKENS}", []),
        ("return torch.randn(8, generator=generator), torch.ones(1)", []),
    ],
)
def test_masks_and_integers_that_two_seeds_make_alike_are_named(inputs, found):
    text = FEW_VALUES.format(inputs=inputs, body="x * more[0]", state="")
    assert checked(text).constant_inputs == found


def test_on_a_cpu_precision_is_not_looked_at():
    assert of("x @ x.t()").tf32
