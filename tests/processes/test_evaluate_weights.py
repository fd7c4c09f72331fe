"""Whole evaluations of modules: weights are resampled, and honest modules follow them."""

from __future__ import annotations

import pytest

from tests.processes.evaluations import MODULE, MODULE_RIGHT, RIGHT, bench, request
from tilewright.errors import ProblemError
from tilewright.records import EvalReport, Incorrect

__all__ = ["bench"]

FOLDED = MODULE_RIGHT.replace(
    "        self.linear = torch.nn.Linear(width, width)\n",
    "        self.linear = torch.nn.Linear(width, width)\n"
    "        self.weight = self.linear.weight.detach().clone()\n",
).replace("self.linear(x)", "x @ self.weight.T + self.linear.bias")


def labels(report: EvalReport) -> list[str]:
    return [item.name for item in report.labels]


def test_weights_folded_at_construction_are_incorrect_under_our_rules(bench):
    report = bench.judge(request(FOLDED, MODULE))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.kind == "weights"
    assert "weights_constant_folded" in [item.code for item in report.findings]


def test_weights_folded_at_construction_are_a_label_under_published_rules(bench):
    report = bench.judge(request(FOLDED, MODULE, protocol="official"))

    assert report.verdict == "correct", report.outcome
    assert labels(report) == ["weights_constant_folded"]


def test_an_honest_module_has_no_label_under_published_rules(bench):
    report = bench.judge(request(MODULE_RIGHT, MODULE, protocol="official"))

    assert (report.verdict, labels(report)) == ("correct", [])


def test_a_module_that_is_simply_wrong_is_not_called_folded(bench):
    report = bench.judge(request(MODULE_RIGHT.replace("relu", "tanh"), MODULE))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.kind == "values"


def test_renamed_weights_are_found_by_their_values(bench):
    source = MODULE_RIGHT.replace("self.linear", "self.renamed")
    report = bench.judge(request(source, MODULE))

    assert (report.verdict, labels(report)) == ("correct", [])


def test_a_module_without_the_weights_is_judged_with_the_seeded_ones(bench):
    source = (
        MODULE_RIGHT.replace("self.linear = torch", "self.hidden = [torch")
        .replace("Linear(width, width)", "Linear(width, width)]")
        .replace("self.linear(x)", "self.hidden[0](x)")
    )
    report = bench.judge(request(source, MODULE))

    assert report.verdict == "correct", report.outcome
    assert labels(report) == ["weights_not_replaced"]


@pytest.mark.parametrize(
    ("weight", "verdict"),
    [("torch.nn.init.eye_(self.linear.weight)", "incorrect"), ("pass", "correct")],
)
def test_a_weight_that_does_not_depend_on_the_seed_changes_in_any_case(bench, weight, verdict):
    def made(text: str) -> str:
        built = "        self.linear = torch.nn.Linear(width, width)\n"
        return text.replace(built, f"{built}        {weight}\n")

    problem, source = made(MODULE), made(MODULE_RIGHT)
    assert problem != MODULE
    hidden = source.replace("self.linear = torch", "self.hidden = torch").replace(
        "    def forward",
        "        self.kept = [self.hidden]\n        del self.hidden\n\n    def forward",
    )
    hidden = hidden.replace("self.linear.weight", "self.hidden.weight")
    hidden = hidden.replace("self.linear(x)", "self.kept[0](x)")
    report = bench.judge(request(hidden, problem))

    assert report.verdict == verdict, report.outcome


def test_packing_at_the_first_call_is_honest(bench):
    source = FOLDED.replace(
        "self.weight = self.linear.weight.detach().clone()", "self.weight = None"
    ).replace(
        "    def forward(self, x):\n",
        "    def forward(self, x):\n        if self.weight is None:\n"
        "            self.weight = self.linear.weight.detach().clone()\n",
    )
    report = bench.judge(request(source, MODULE))

    assert report.verdict == "correct", report.outcome


def test_tied_weights_stay_tied(bench):
    def tied(text: str) -> str:
        return text.replace(
            "        self.linear = torch.nn.Linear(width, width)\n",
            "        self.linear = torch.nn.Linear(width, width)\n"
            "        self.other = torch.nn.Linear(width, width)\n"
            "        self.other.weight = self.linear.weight\n",
        ).replace("self.linear(x)", "self.other(self.linear(x))")

    report = bench.judge(request(tied(MODULE_RIGHT), tied(MODULE)))

    assert report.verdict == "correct", report.outcome


def test_a_module_may_keep_what_it_was_built_from(bench):
    def keeps(text: str) -> str:
        return (
            text.replace("self, width", "self, table")
            .replace("width, width", "32, 32")
            .replace("    def forward", "        self.table = table\n\n    def forward")
            .replace("self.linear(x)", "self.linear(x) * self.table.sum()")
            .replace("return [32]", "return [torch.rand(40000)]")
        )

    report = bench.judge(request(keeps(MODULE_RIGHT), keeps(MODULE)))

    assert report.verdict == "correct", report.outcome


def test_a_module_may_have_hundreds_of_weights(bench):
    def deep(text: str) -> str:
        return text.replace(
            "self.linear = torch.nn.Linear(width, width)",
            "self.linear = torch.nn.Sequential(\n"
            "            *[torch.nn.LayerNorm(width) for _ in range(600)])",
        )

    report = bench.judge(request(deep(MODULE_RIGHT), deep(MODULE)))

    assert (report.verdict, labels(report)) == ("correct", []), report.outcome


@pytest.mark.parametrize(
    ("source", "problem"), [(RIGHT, None), (MODULE_RIGHT, MODULE), (FOLDED, MODULE)]
)
def test_the_revealed_seed_draws_the_same_again(bench, source, problem):
    given = (source,) if problem is None else (source, problem)
    first = bench.judge(request(*given))
    again = bench.judge(request(*given, seed=first.seed))
    other = bench.judge(request(*given))

    assert again.seed == first.seed != other.seed
    assert [case.model_dump() for case in again.cases] == [c.model_dump() for c in first.cases]
    assert [case.seed for case in other.cases] != [case.seed for case in first.cases]
    assert again.outcome == first.outcome


STALE = MODULE_RIGHT.replace(
    "    def forward(self, x):\n",
    "    def forward(self, x):\n"
    "        if not hasattr(self, 'kept'):\n            self.kept = self.right(x)\n"
    "        return self.kept.clone()\n\n    def right(self, x):\n",
)
OFF_WHERE_LARGE = MODULE_RIGHT.replace(
    "    def forward(self, x):\n",
    "    def forward(self, x):\n        if x.abs().max() > 1000:\n            x = x + x\n",
)


def test_an_output_of_the_first_call_is_named_as_stale(bench):
    report = bench.judge(request(STALE, MODULE))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.kind == "values"
    assert [item.code for item in report.findings] == ["stale_after_first_call"]


def test_a_module_that_is_wrong_on_other_inputs_alone_is_not_called_folded(bench):
    report = bench.judge(request(OFF_WHERE_LARGE, MODULE))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.kind in ("values", "nonfinite")
    assert report.findings == ()


QUANTISED = """import torch

BUFFERS = ["codes", "scal*"]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.randint(-127, 128, (16, 16), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(16) / 16)

    def forward(self, x):
        return x @ (self.codes.float() * self.scale[:, None]).t()


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
"""
LOADED = (
    QUANTISED.replace("class Model", "class ModelNew")
    .replace(
        "torch.randint(-127, 128, (16, 16), dtype=torch.int8)",
        "torch.zeros((16, 16), dtype=torch.int8)",
    )
    .replace("torch.rand(16) / 16", "torch.zeros(16)")
)
KEPT = (
    QUANTISED.replace("class Model", "class ModelNew")
    .replace("    def forward", "        self.kept = (self.codes.clone(),)\n\n    def forward")
    .replace("self.codes.float()", "self.kept[0].float()")
)


@pytest.mark.parametrize("protocol", ["strict", "official"])
def test_declared_buffers_reach_a_candidate_that_has_no_other_source_of_them(bench, protocol):
    report = bench.judge(request(LOADED, QUANTISED, protocol=protocol))

    assert (report.verdict, labels(report)) == ("correct", []), report.outcome


def test_declared_buffers_may_not_be_folded(bench):
    report = bench.judge(request(KEPT, QUANTISED))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.kind == "weights"


def test_undeclared_buffers_keep_their_values(bench):
    undeclared = QUANTISED.replace('BUFFERS = ["codes", "scal*"]\n', "")

    assert bench.judge(request(KEPT, undeclared)).verdict == "correct"
    assert bench.judge(request(LOADED, undeclared)).verdict == "incorrect"


def test_a_declared_buffer_that_is_not_there_is_an_error_of_the_problem(bench):
    with pytest.raises(ProblemError, match=r"BUFFERS.*'bias'"):
        bench.judge(request(KEPT, QUANTISED.replace('"scal*"', '"bias"')))
