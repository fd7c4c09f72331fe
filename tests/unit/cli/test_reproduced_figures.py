"""The figures of the reproduction script are those of the judge, with all of their digits."""

from __future__ import annotations

import pytest

from tests.unit.cli.test_reproduce import globals_of, leave_no_module, wrong

torch = pytest.importorskip("torch")
__all__ = ["leave_no_module"]


@pytest.mark.parametrize("name", ["softmax", "cross_entropy", "quantised_matmul", "layernorm"])
def test_the_tolerance_of_ill_conditioned_inputs_is_that_of_the_judge(name, tmp_path):
    from tilewright.evaluator.judge import inputs, reference, wider_tolerance

    report = wrong(name)
    made = globals_of(report, tmp_path)
    problem, source = made["Problem"](), report.request.problem
    fields = {"problem_kind": source.kind, "mode": source.mode, "grads": list(source.grads)}
    fields |= {"keywords": list(source.keyword_args), "init_seed": made["INIT_SEED"]}
    judge = reference.load(source.source.text, fields)
    for call in made["CALLS"]:
        args, grad_outputs, _ = problem.inputs(call)
        given = (call["params"], call["variation"], call["seed"], call["forward_seed"])
        sample = inputs.make_sample(judge, *given, double=True)
        if sample.skipped:
            continue
        known = wider_tolerance.widen_tolerance(judge, sample)
        expected = problem.expected(args, grad_outputs, call["forward_seed"])
        wider = problem.with_wider_tolerance(expected, args, grad_outputs, call["forward_seed"])
        assert known == (wider is not None)
        for ours, theirs in zip(sample.expected, wider or (), strict=known):
            assert ours.worst_reference_error == theirs.worst_reference_error
            assert len(ours.accepted) == len(theirs.accepted)
            if ours.rounding_sensitivity is not None:
                assert torch.equal(ours.rounding_sensitivity, theirs.rounding_sensitivity)


def test_differing_elements_are_printed_with_nine_digits(tmp_path, capsys):
    made = globals_of(wrong("softmax"), tmp_path)
    value = torch.tensor([[1.0, 0.5], [float("nan"), 2.0]])
    output = torch.tensor([[1.0, 0.50000006], [float("nan"), float("inf")]])
    made["explain"](value, output)
    assert capsys.readouterr().out.splitlines() == [
        "    2 of 4 elements differ from the reference's, most of all:",
        "      at [1, 1]: expected 2, got inf",
        "      at [0, 1]: expected 0.5, got 0.50000006",
    ]
