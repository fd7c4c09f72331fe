"""Requirements: the grammar, the bounds, and what is refused."""

from __future__ import annotations

import pytest

from tilewright.errors import ConfigError
from tilewright.integrations.requirement import FIGURES, Condition, Figures, parse_requirement

GOOD = Figures(correct=True, speedup=1.2, low=1.1, high=1.3, case_high=1.15, coverage=0.5)
UNTIMED = Figures(correct=True, speedup=None, low=None, high=None, case_high=None, coverage=None)
WRONG = Figures(correct=False, speedup=None, low=None, high=None, case_high=None, coverage=None)


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("correct", [Condition("correct")]),
        ("speedup>=0.98", [Condition("speedup", ">=", 0.98)]),
        (" speedup  >  1. ", [Condition("speedup", ">", 1.0)]),
        (
            "correct and low>=.9, coverage>0",
            [Condition("correct"), Condition("low", ">=", 0.9), Condition("coverage", ">", 0.0)],
        ),
    ],
)
def test_conditions_are_read(text, conditions):
    assert list(parse_requirement(text)) == conditions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is no condition; write conditions such as"),
        ("correct,", "'' is no condition"),
        ("speedup", "'speedup' needs a bound"),
        ("correct>=1", "'correct' has no bound"),
        ("speedup=>1", "is no condition"),
        ("speedup<1", "is no condition"),
        ("speedup>=-1", "is no condition"),
        ("speedup>=nan", "is no condition"),
        ("speedups>=1", "no figure 'speedups'; did you mean speedup?"),
        (
            "verdict>1",
            "no figure 'verdict'; known: correct, speedup, low, high, case_high, coverage",
        ),
        ("speedup>=1 or correct", "is no condition"),
        ("__import__('os').system('true')", "is no condition"),
    ],
)
def test_anything_else_is_refused(text, message):
    with pytest.raises(ConfigError) as error:
        parse_requirement(text)
    assert message in str(error.value)
    assert f"require={text!r}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "figures", "miss"),
    [
        ("correct", GOOD, ""),
        ("correct", WRONG, "the candidate is not correct"),
        ("speedup>=1.2", GOOD, ""),
        ("case_high>=1.2", GOOD, "case_high>=1.2 is required, and case_high is 1.15"),
        ("speedup>1.2", GOOD, "speedup>1.2 is required, and speedup is 1.2"),
        ("low>=1.11", GOOD, "low>=1.11 is required, and low is 1.1"),
        ("high>=1.3", GOOD, ""),
        ("high>1.3", GOOD, "high>1.3 is required, and high is 1.3"),
        ("coverage>=0.5", GOOD, ""),
        ("speedup>=0", UNTIMED, "speedup>=0 is required, and speedup was not measured"),
        ("coverage>0", UNTIMED, "coverage>0 is required, and coverage was not measured"),
    ],
)
def test_a_condition_says_why_it_is_not_met(text, figures, miss):
    (condition,) = parse_requirement(text)
    assert condition.miss(figures) == miss


def test_every_figure_of_the_grammar_is_a_figure_of_a_report():
    assert set(FIGURES) == set(Figures.__dataclass_fields__)
