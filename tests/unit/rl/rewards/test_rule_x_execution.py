"""The reward of AutoTriton is 1 for a correct program in Triton, else 0."""

import itertools

import pytest

from tilewright.families.nano.problem_files import compositions_of
from tilewright.families.nano.program_slots import ProgramPlan, space
from tilewright.families.nano.program_text import render
from tilewright.records.events import EvalSummary
from tilewright.rl.presets import TurnRewardSection
from tilewright.rl.rewards.rule_x_execution import REWARD
from tilewright.rl.rewards.turn_reward import JudgedTurn

KERNEL = """\
import triton
import triton.language as tl

@triton.jit
def k(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

def compute(x):
    out = x.new_empty(x.shape)
    k[(1,)](x, out, x.numel(), BLOCK=1024)
    return {result}
"""
TRITON, DECORATED = KERNEL.format(result="out"), KERNEL.format(result="x * 1.0")
TORCH = "def compute(x):\n    return x * 1.0\n"


def paid(code, verdict, rule, **fields):
    found = EvalSummary(protocol="strict", verdict=verdict, **fields)
    return REWARD.reward(JudgedTurn(found, code), TurnRewardSection(triton_rule=rule))


@pytest.mark.reads_settings
@pytest.mark.parametrize(
    ("code", "rule", "wanted"),
    [
        (TRITON, "strict", 1.0),
        (TRITON, "paper_minimal", 1.0),
        (TRITON, "none", 1.0),
        (DECORATED, "strict", 0.0),
        (DECORATED, "paper_minimal", 1.0),
        (DECORATED, "none", 1.0),
        (TORCH, "strict", 0.0),
        (TORCH, "paper_minimal", 0.0),
        (TORCH, "none", 1.0),
    ],
)
def test_the_reward_is_the_product_of_the_rule_and_the_tests(code, rule, wanted):
    assert paid(code, "correct", rule) == wanted
    for verdict in ("incorrect", "failed", "rejected"):
        assert paid(code, verdict, rule) == 0.0


def test_no_latency_changes_a_reward():
    speeds = (None, 0.1, 1.0, 2.0, 1000.0)
    for code, rule in itertools.product((TRITON, TORCH), ("strict", "none")):
        found = {paid(code, "correct", rule, speedup=speed, low=speed) for speed in speeds}
        assert len(found) == 1


def test_the_strict_rule_pays_programs_of_the_family_whose_own_kernels_compute_all():
    for composition in compositions_of("rehearsal"):
        for program in itertools.islice(space(composition), 0, None, 7):
            if program.plan is not ProgramPlan.BROKEN:
                own = program.plan in (ProgramPlan.FUSED, ProgramPlan.SPLIT, ProgramPlan.WRONG)
                assert paid(render(program), "correct", "strict") == float(own), program


def test_the_formula_names_the_rule():
    assert "is_triton by the rule strict" in REWARD.formula(TurnRewardSection())
    assert REWARD.formula(TurnRewardSection(triton_rule="none")) == "r = 1[tests pass]"
