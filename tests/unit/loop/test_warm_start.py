"""Warm start: candidates of earlier runs come first, and are judged again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import sample_reports as reports
from tests.unit.loop.test_rollout import PROBLEM, numbered, play
from tilewright.config import load
from tilewright.errors import ConfigError
from tilewright.loop.candidate_store import keep
from tilewright.loop.history import RecordedHistory
from tilewright.loop.policies.choosing import choose
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.shown_documents import open_library
from tilewright.loop.strategies.base import FixedList
from tilewright.loop.warm_start import (
    StoredCandidate,
    WarmStart,
    earlier_candidates,
    examples,
    read_seeds,
    stored_candidates,
    with_seeds,
    write_examples,
    write_seeds,
)
from tilewright.problems.loader import find_problem
from tilewright.records.events import Ask


def earlier(tmp_path: Path) -> Path:
    folder = tmp_path / "earlier"
    folder.mkdir()
    script = (reports.incorrect(), reports.correct(), reports.correct())
    play(folder, lambda _, ask: numbered(ask.turn), script=script)
    return folder


def candidates(*folders):
    return earlier_candidates([str(folder) for folder in folders], Path("nowhere"))


def shown(found, problems):
    """Return the examples for prompts with the default limit, which leaves out none of these."""
    return examples(found, problems, load(environ={}).loop.document_tokens, pytest.fail)


def test_the_fastest_different_correct_candidates_are_taken(tmp_path):
    folder = earlier(tmp_path)
    found = stored_candidates(candidates(folder), [PROBLEM], 5)
    assert {item.problem for item in found} <= {PROBLEM.id}
    assert len({item.code for item in found}) == len(found)
    assert all(item.origin.startswith("earlier ") for item in found)
    assert len(stored_candidates(candidates(folder, folder), [PROBLEM], 1)) <= 1


def test_a_candidate_of_another_problem_is_not_taken(tmp_path):
    other = find_problem("layernorm")
    found = candidates(earlier(tmp_path))
    assert stored_candidates(found, [other], 5) == []
    (module,) = shown(found, [other]).values()
    assert found[0].title in module.header.title
    assert found[0].code.strip() in module.text
    assert shown(found, [PROBLEM]) == {}


def test_prompts_of_a_run_show_candidates_of_other_problems(tmp_path):
    other, run = find_problem("layernorm"), tmp_path / "new"
    run.mkdir()
    write_examples(run, shown(candidates(earlier(tmp_path)), [other]))
    library = open_library(load(environ={}).loop, [other], "none", run)
    assert library is not None
    (digest,) = library.choose(Ask(id="a", problem=other.id, instruction="torch softmax"), {})
    assert "another problem" in library.document(digest).title


def test_an_example_that_no_prompt_can_show_makes_way_for_a_smaller_one(tmp_path):
    other, run, most = find_problem("layernorm"), tmp_path / "new", 2500
    run.mkdir()
    (small,) = candidates(earlier(tmp_path))[:1]
    large = small.model_copy(update={"code": "x = 1\n" * 20_000, "speedup": 99.0})
    said: list[str] = []
    (module,) = examples([large, small], [other], most, said.append).values()
    assert small.code.strip() in module.text
    assert said == []
    write_examples(run, examples([large], [other], most, said.append))
    assert open_library(load(environ={}).loop, [other], "none", run) is None
    (line,) = said
    assert "raise loop.document_tokens" in line


def test_the_candidates_of_home_are_those_that_were_kept(tmp_path):
    home = tmp_path / "home"
    (item,) = candidates(earlier(tmp_path))[:1]
    path = keep(home, item)
    slower = item.model_copy(update={"speedup": item.speedup / 2})
    assert keep(home, slower) == path
    other = item.model_copy(update={"code": f"{item.code}\n# other\n", "speedup": 99.0})
    keep(home, other)
    assert earlier_candidates(["home"], home) == [other, item]
    path.write_text("{")
    assert earlier_candidates(["home"], home) == [other]
    assert earlier_candidates(["home"], tmp_path / "nowhere") == []


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"--from .*nowhere: it is no run"):
        candidates(tmp_path / "nowhere")


def test_stored_candidates_answer_the_first_requests_of_each_trajectory(tmp_path):
    seeds = stored_candidates(candidates(earlier(tmp_path)), [PROBLEM], 1)
    run = tmp_path / "new"
    run.mkdir()
    write_seeds(run, seeds)
    assert read_seeds(run) == seeds
    asks = [
        Ask(id=f"{sample}.{turn}", problem=PROBLEM.id, sample=sample, turn=turn)
        for sample in range(2)
        for turn in range(2)
    ]
    history = RecordedHistory(FixedList(asks))
    policy = WarmStart(Scripted(lambda *_: "the model"), read_seeds(run), history.places)
    first = [policy.answer((), ask) for ask in history.ask(4)]
    said = ["the model" if reply.text == "the model" else "stored" for reply in first]
    assert said == (["stored", "the model"] * 2 if seeds else ["the model"] * 4)
    assert seeds, "the earlier run has a correct candidate"
    assert first[0].model.startswith("from: earlier ")
    assert first[0].reply_tokens == 0


def test_choices_and_demanded_changes_take_no_place_of_a_stored_candidate():
    seeds = [StoredCandidate(problem="p", code=code, language="torch", origin="r") for code in "xy"]
    asks = [
        Ask(id="begin", problem="p"),
        Ask(id="choose", problem="p", turn=1, role="choose", choices=("one", "two")),
        Ask(id="act", problem="p", turn=2, form="action", parents=("begin",)),
        Ask(id="patch", problem="p", turn=3, form="patch", parents=("begin",)),
        Ask(id="go on", problem="p", turn=4, parents=("begin",)),
        Ask(id="last", problem="p", turn=5),
    ]
    history = RecordedHistory(FixedList(asks))
    policy = WarmStart(Scripted(lambda *_: "the model"), seeds, history.places)
    said = {ask.id: policy.answer((), ask).text for ask in history.ask(len(asks))}
    assert "x" in said.pop("begin")
    assert "y" in said.pop("go on")
    assert set(said.values()) == {"the model"}


class Scorer(Scripted):
    """A model that states log-probabilities. Lifetime: one test."""

    def score_choices(self, messages, choices):  # noqa: ARG002 - as every policy
        return tuple((-1.0 - place,) for place in range(len(choices)))


def test_a_model_with_log_probabilities_keeps_them_with_stored_candidates():
    seeds = [StoredCandidate(problem="p", code="x", language="cpp", origin="r")]
    for given in ([], seeds):
        policy = with_seeds(Scorer(lambda *_: "words"), given, {})
        asked = Ask(id="a", problem="p", role="choose", choices=("one", "two"))
        _, choice = choose(policy, [], asked)
        assert choice.logprobs == ((-1.0,), (-2.0,))
    plain = with_seeds(Scripted(lambda *_: "2"), seeds, {})
    assert choose(plain, [], asked)[1].taken == 1
