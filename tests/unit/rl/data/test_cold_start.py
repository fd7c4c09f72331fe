"""Cold-start conversations: shares of plans, changes between turns, and feedback of the store."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tilewright.errors import ConfigError
from tilewright.families.nano.problem_files import compositions_of
from tilewright.families.nano.program_slots import ProgramPlan, space
from tilewright.families.nano.program_text import render
from tilewright.rl.data.cold_start import BETTER, WORSE, ColdStartMix, cold_start
from tilewright.rl.synthetic_verdicts import KEY, synthetic_store
from tilewright.rl.verdict_store import VerdictStore

GROUP = "rehearsal"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return synthetic_store(tmp_path_factory.mktemp("store") / "synthetic.gz", GROUP)


@pytest.fixture(scope="module")
def programs():
    return {
        (item.id, render(program)): program
        for item in compositions_of(GROUP)
        for program in space(item)
    }


@pytest.fixture(scope="module")
def rows(store):
    return list(cold_start(GROUP, store, ColdStartMix(), count=1500, turns=3, seed=0))


def answers(row):
    return [item["content"] for item in row["messages"] if item["role"] == "assistant"]


def test_first_turns_have_the_shares_of_the_mix(rows, programs):
    counts = Counter(programs[row["problem"], answers(row)[0]].plan for row in rows)
    for plan, wanted in ColdStartMix().plans().items():
        # Four standard errors.
        assert counts[plan] / len(rows) == pytest.approx(
            wanted, abs=4 * (wanted / len(rows)) ** 0.5
        )


def test_next_turns_repair_repeat_and_regress_at_their_rates(rows, programs):
    kinds = Counter()
    for row in rows:
        plans = [programs[row["problem"], text] for text in answers(row)]
        for before, after in pairwise(plans):
            if after == before:
                kinds["repeat"] += 1
            elif before.plan in (ProgramPlan.FUSED, ProgramPlan.BROKEN):
                kinds["either"] += 1
            else:
                kinds["repair" if after.plan in BETTER[before.plan] else "regress"] += 1
                assert after.plan in (*BETTER[before.plan], *WORSE[before.plan])
    known = kinds["repair"] + kinds["regress"]
    assert kinds["repair"] / known == pytest.approx(0.75, abs=0.05)
    assert kinds["repeat"] / sum(kinds.values()) == pytest.approx(0.2, abs=0.03)


def test_feedback_is_that_of_the_store(rows, store):
    for row in rows[:50]:
        said = [item["content"] for item in row["messages"] if item["role"] == "user"]
        assert said[0].startswith("def reference(")
        assert all(
            text.startswith(("ok ", "wrong: ", "error: ", "rejected: ")) for text in said[1:]
        )
    assert store.key.is_synthetic


def test_equal_arguments_give_equal_conversations(rows, store):
    again = cold_start(GROUP, store, ColdStartMix(), count=1500, turns=3, seed=0)
    assert list(again) == rows
    other = cold_start(GROUP, store, ColdStartMix(), count=1500, turns=3, seed=1)
    assert list(other) != rows


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"fused": 0.5}, "sum to 1.35"),
        ({"fused": -0.1, "split": 0.4}, "fused is -0.1"),
        ({"repair": 0.9}, "repair and regress sum to 1.1"),
    ],
)
def test_a_mix_that_is_none_is_refused(changes, says):
    with pytest.raises(ConfigError, match=says):
        ColdStartMix(**changes)


def test_a_store_without_programs_of_a_plan_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="evaluate the census first"):
        next(
            cold_start(
                GROUP, VerdictStore(tmp_path / "empty.gz", KEY), ColdStartMix(),
                count=1, turns=1, seed=0,
            )
        )  # fmt: skip
