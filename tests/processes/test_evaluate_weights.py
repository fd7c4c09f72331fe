"""Whole evaluations of modules: weights are resampled, and honest modules follow them."""

from __future__ import annotations

import pytest

from tests.processes.evaluations import MODULE, MODULE_RIGHT, RIGHT, bench, request
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
