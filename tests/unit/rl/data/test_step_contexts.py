"""Contexts hold the parent of a step and nothing later; the steps are those of Kernel-Smith."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.unit.rl.data.test_search_rows import exported, twelve
from tilewright.errors import RecordError
from tilewright.families.nano.compositions import composition_of
from tilewright.families.nano.problem_files import compositions_of
from tilewright.loop.candidate_text import code_of
from tilewright.rl.data.cold_start import ColdStartMix
from tilewright.rl.data.logs import RunLog
from tilewright.rl.data.scripted_searches import POLICY, write_searches
from tilewright.rl.data.step_contexts import contexts_in, step_conversations
from tilewright.rl.prompt_contexts import PromptContext
from tilewright.rl.synthetic_verdicts import synthetic_store

GROUP, COUNT, TURNS = "rehearsal", 30, 4


def refuse(problem):
    raise RecordError(problem)


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searches")
    store = synthetic_store(folder / "store.jsonl.gz", GROUP)
    mix = ColdStartMix(fused=0.1, split=0.2, lazy=0.35, wrong=0.15, broken=0.1, hack=0.1)
    for name in ("one", "two"):
        write_searches(folder / name, GROUP, store, mix, count=COUNT, turns=TURNS, seed=3)
    return folder / "one", folder / "two"


def test_the_contexts_of_twelve_programs(tmp_path):
    wanted = {"best": ["faster"], "other": []}
    with closing(RunLog(twelve(tmp_path / "run"), refuse)) as log:
        contexts = list(contexts_in(log))
        codes = {turn.ask.id: code_of(turn) for turn in log.turns()}
    found = {item.id.split("/")[1]: list(map(code_of, item.shown)) for item in contexts}
    assert found == {name: [codes[one] for one in shown] for name, shown in wanted.items()}
    shown = [turn.ask.id for item in contexts for turn in item.shown]
    assert len(shown) == len(set(shown))
    assert not set(shown) & set(codes), "a shown turn has an id of its own"


def test_contexts_of_all_steps_and_of_first_steps(searches):
    found = {}
    for steps in ("best", "all", "first"):
        with closing(RunLog(searches[0], refuse)) as log:
            found[steps] = {
                (item.problem, tuple(map(code_of, item.shown))) for item in contexts_in(log, steps)
            }
    assert found["best"] < found["all"]
    assert found["first"] < found["all"]
    assert found["best"] != found["first"]


def test_the_export_has_the_contexts_of_the_best_steps(tmp_path):
    rows = exported(twelve(tmp_path / "run"), "contexts")
    found = [PromptContext.model_validate(row) for row in rows]
    assert [(item.id.split("/")[1], len(item.shown)) for item in found] == [
        ("best", 1),
        ("other", 0),
    ]
    assert found[0].shown[0].judgements[0].speedup == 1.0


def test_the_steps_are_conversations_whose_reply_alone_is_learned(tmp_path):
    run = twelve(tmp_path / "run")
    rows, steps = exported(run, "step-sft"), exported(run, "steps")
    assert [row["id"] for row in rows] == [row["id"] for row in steps]
    for row, step in zip(rows, steps, strict=True):
        assert [m["weight"] for m in row["messages"]] == [0] * len(step["prompt"]) + [1]
        assert row["messages"][-1]["content"] == step["completion"][0]["content"]


def test_a_scripted_search_is_a_run_folder_and_repeats_itself(searches):
    one, two = searches
    assert (one / "events.jsonl").read_bytes() == (two / "events.jsonl").read_bytes()
    with closing(RunLog(one, refuse)) as log:
        turns = list(log.turns())
        assert {problem.id for problem in log.problems()} == {
            composition.id for composition in compositions_of(GROUP)
        }
    assert len(turns) == COUNT * TURNS
    assert {turn.reply.model for turn in turns} == {POLICY}
    for turn in turns:
        assert composition_of(turn.ask.problem)
        assert len(turn.ask.parents) == (turn.ask.turn > 0)


def test_no_prompt_of_a_step_has_code_of_a_later_one(searches):
    with closing(RunLog(searches[0], refuse)) as log:
        rows = list(step_conversations(log))
        written = {turn.ask.id: (turn.ask.sample, code_of(turn)) for turn in log.turns()}
    assert 0 < len(rows) < len(written)
    names = list(written)
    for row in rows:
        sample, code = written[row["id"]]
        *asked, answer = row["messages"]
        assert (answer["content"], answer["weight"]) == (code, 1)
        assert all(message["weight"] == 0 for message in asked)
        text = "".join(message["content"] for message in asked)
        place = names.index(row["id"])
        before = {c for s, c in (written[n] for n in names[:place]) if s == sample}
        later = [c for s, c in (written[n] for n in names[place:]) if s == sample]
        assert not any(c in text for c in later if c not in before)
    steps = [tuple(message["content"] for message in row["messages"]) for row in rows]
    assert len(steps) == len(set(steps))
