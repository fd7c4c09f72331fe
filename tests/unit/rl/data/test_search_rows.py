"""Steps, groups and actions of hand-made searches, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.unit.loop.test_rollout import PROBLEM
from tests.unit.reports.test_html_report import begun
from tilewright.cli.main import cli
from tilewright.languages.actions import STOP
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.shown_programs import fenced
from tilewright.loop.replayed_prompts import replayed_material
from tilewright.loop.run_state import begin, lines_of
from tilewright.records.base import digest_text
from tilewright.records.event_log import EventLog, read_events
from tilewright.records.events import Ask, Choice, EvalSummary, Reply, RequestsIssued, Turn
from tilewright.records.events import TurnFinished as Finished
from tilewright.rl.data.exports import ExportPlan, Selection, export
from tilewright.rl.data.search_edges import facts_of

NAME = PROBLEM.id


def program(word: str) -> str:
    return f"def softmax(x):\n    return work_of_{word}(x)"


def node(word: str, *parents: str, sample: int = 0, **more: Any) -> Ask:
    fields: dict[str, Any] = {"form": "evolve", "shown_turns": parents, **more}
    return Ask(id=word, problem=NAME, sample=sample, parents=parents, **fields)


def summary(verdict: Any, speedup: float | None, error: float) -> EvalSummary:
    low, high = (None, None) if speedup is None else (speedup / (1 + error), speedup * (1 + error))
    return EvalSummary(protocol="strict", verdict=verdict, speedup=speedup, low=low, high=high)


def answered(
    ask: Ask,
    verdict: Any = None,
    speedup: float | None = None,
    *,
    code: str = "",
    language: str = "triton",
    error: float = 0.01,
) -> Turn:
    """Return the turn of a program; without a verdict it is a draft."""
    text = code or program(ask.id)
    judgements = (summary(verdict, speedup, error),) if verdict else ()
    reply = Reply(text=fenced(text), tokens=(1, 2), logprobs=(-0.5, -0.25), model="m")
    if ask.role == "measure":
        return Turn(
            ask=ask, source=digest_text(text), code=text, judgements=judgements, language=language
        )
    return Turn(
        ask=ask,
        source=digest_text(text),
        reply=reply,
        judgements=judgements,
        language=language if verdict else "",
        feedback=f"feedback on {ask.id}",
    )


def log_of(folder: Path, *rounds: list[Turn]) -> Path:
    """Write a log in which the requests of each list were issued together."""
    folder.mkdir()
    begin(folder, begun(protocols=("strict",)), [PROBLEM], {})
    with EventLog(folder) as log:
        for turns in rounds:
            log.append(RequestsIssued(limit=len(turns), asks=tuple(turn.ask for turn in turns)))
            log.extend(Finished(turn=turn) for turn in turns)
    return folder


def twelve(folder: Path) -> Path:
    """Write two trajectories with 12 programs; their names say what becomes of them."""
    same = answered(node("same", "faster"), "correct", 1.0, code=program("faster"))
    return log_of(
        folder,
        [
            answered(node("first"), "correct", 0.5),
            answered(node("torch"), "correct", 1.0, language="torch"),
        ],
        [
            answered(node("slower", "first"), "correct", 0.4),
            answered(node("faster", "first"), "correct", 1.0),
        ],
        [same.model_copy(update={"repeats": "faster"})],
        [
            answered(node("wrong", "faster"), "incorrect"),
            answered(node("lost", "faster"), "unjudged"),
        ],
        [
            answered(node("repaired", "wrong"), "correct", 0.9),
            answered(node("orphan", "lost"), "correct", 2.0),
        ],
        [answered(node("ported", "torch"), "correct", 0.8)],
        [answered(node("best", "faster", "torch"), "correct", 2.5)],
        [answered(node("other", sample=1), "correct", 3.0)],
    )


def exported(folder: Path, kind: Any, **more: Any) -> list[dict[str, Any]]:
    target = folder.parent / f"{folder.name}-{kind}.jsonl"
    left_out: list[str] = []
    done = export(ExportPlan((str(folder),), target, kind, **more), left_out.append)
    assert not left_out
    assert done.rows == len(lines_of(target))
    return [json.loads(line) for line in lines_of(target)]


def test_the_steps_of_twelve_programs_are_exactly_the_examples(tmp_path):
    rows = exported(twelve(tmp_path / "run"), "steps")
    found = {row["id"]: (row["parent"], row["kind"], row["best_step"]) for row in rows}
    # `slower` and `same` gain nothing, `lost` was not judged, nor was the parent of `orphan`.
    assert found == {
        "first": (None, "translation", False),
        "torch": (None, "translation", False),
        "faster": ("first", "improvement", False),
        "repaired": ("wrong", "repair", False),
        "ported": ("torch", "translation", False),
        "best": ("faster", "improvement", True),
        "other": (None, "translation", True),
    }
    assert len(rows) == len(found)
    gains = {row["id"]: row["gain"] for row in rows}
    assert gains["faster"] == pytest.approx(2.0)
    assert gains["ported"] == pytest.approx(0.8)
    assert gains["best"] == pytest.approx(2.5)
    assert gains["repaired"] is None


def test_the_interval_of_a_gain_has_the_variance_of_both_estimates(tmp_path):
    rows = {row["id"]: row for row in exported(twelve(tmp_path / "run"), "steps")}
    wide = 1.01 ** (2**0.5)
    assert rows["faster"]["gain_low"] == pytest.approx(2.0 / wide)
    assert rows["faster"]["gain_high"] == pytest.approx(2.0 * wide)
    assert rows["first"]["gain_high"] == pytest.approx(0.5 * 1.01)


def test_a_step_with_equal_code_has_the_ratio_one_and_is_no_example(tmp_path):
    known = facts_of(read_events(twelve(tmp_path / "run")))
    edge = known.edge("same")
    assert edge is not None
    assert (edge.kind, edge.gain, edge.low, edge.high) == ("improvement", 1.0, 1.0, 1.0)
    assert not known.keeps("same", edge)


def test_the_trials_of_a_draft_and_all_later_ones_make_its_gain(tmp_path):
    draft, first = node("draft", role="draft"), node("m1", "draft", role="measure")
    run = log_of(
        tmp_path / "run",
        [answered(draft)],
        [answered(node("unread", role="draft"))],
        [answered(first, "correct", 2.0, code=program("draft"))],
        [answered(node("m2", "draft", role="measure"), "correct", 8.0, code=program("draft"))],
    )
    (row,) = exported(run, "steps")
    assert (row["id"], row["verdict"], row["speedup"]) == ("draft", "correct", 2.0)
    # The geometric mean of both trials.
    assert row["gain"] == pytest.approx(4.0)
    (group,) = exported(run, "groups")
    assert [item["id"] for item in group["answers"]] == ["draft"]


def later_code(run: Path) -> dict[str, list[str]]:
    """Return for each turn the code that its trajectory wrote at its place or after it."""
    turns = [event.turn for event in read_events(run) if isinstance(event, Finished)]
    written = [(turn.ask.sample, turn.source, program(turn.ask.id)) for turn in turns]
    found = {}
    for place, turn in enumerate(turns):
        before = {source for _, source, _ in written[:place]}
        found[turn.ask.id] = [
            code
            for sample, source, code in written[place:]
            if sample == turn.ask.sample and source not in before
        ]
    return found


@pytest.mark.parametrize("kind", ["steps", "groups", "actions"])
def test_no_prompt_contains_code_of_a_later_step(tmp_path, kind):
    run = decided(tmp_path / "run") if kind == "actions" else twelve(tmp_path / "run")
    later, compared, shown = later_code(run), 0, 0
    for row in exported(run, kind):
        text = "\n".join(item["content"] for item in row["prompt"])
        shown += "work_of_" in text
        for name in [item["id"] for item in row.get("answers", [row])]:
            for code in later[name]:
                compared += 1
                assert code not in text, name
    assert compared > 4
    assert shown > 1


def test_a_turn_that_ended_after_the_request_is_not_shown(tmp_path):
    # A damaged log: `early` names a program that was requested together with it.
    early = node("early", "late")
    turns = [answered(node("late"), "correct", 1.0), answered(early, "correct", 2.0)]
    run = log_of(tmp_path / "run", turns)
    events, problems = list(read_events(run)), {NAME: PROBLEM}
    (_, _), (turn, material) = replayed_material(events, problems.get)
    assert turn.ask == early
    assert "work_of_late" not in messages_of(material)[0].text


def test_a_prompt_shows_the_estimates_of_its_request(tmp_path):
    run = log_of(
        tmp_path / "run",
        [answered(node("a"), "correct", 2.0)],
        [answered(node("b", "a"), "correct", 5.0)],
        [answered(node("m", "a", role="measure"), "correct", 8.0, code=program("a"))],
        [answered(node("c", "a"), "correct", 9.0)],
        [answered(node("d", "b"), "correct", 12.0)],
    )
    texts = {row["id"]: row["prompt"][0]["content"] for row in exported(run, "steps")}
    assert "2.00x" in texts["b"]
    assert "4.00x" in texts["c"]
    assert "4.00x" not in texts["b"]


def test_a_group_holds_all_answers_to_one_prompt(tmp_path):
    run = twelve(tmp_path / "run")
    groups = exported(run, "groups")
    names = [[item["id"] for item in group["answers"]] for group in groups]
    # Whatever its sample is, an answer belongs to its prompt. Unjudged answers have no reward.
    assert names == [
        ["first", "torch", "other"],
        ["slower", "faster"],
        ["same", "wrong"],
        ["repaired"],
        ["orphan"],
        ["ported"],
        ["best"],
    ]
    assert len({group["prompt_digest"] for group in groups}) == len(groups)
    rewards = {item["id"]: item["relative_reward"] for g in groups for item in g["answers"]}
    assert rewards["slower"] == pytest.approx(0.8)
    assert rewards["wrong"] == 0.0
    assert rewards["repaired"] is None
    answer = groups[1]["answers"][1]
    assert answer["rewards"]["speed"] == pytest.approx(1.0 + 1.0 / 1.01)
    assert (answer["tokens"], answer["logprobs"]) == ([1, 2], [-0.5, -0.25])


def test_rows_of_searches_are_selected_and_never_repeat_a_program(tmp_path):
    run = twelve(tmp_path / "run")
    rows = exported(run, "steps", choice=Selection(least_speedup=1.2))
    assert [row["id"] for row in rows] == ["best", "other"]
    rows = exported(run, "groups", choice=Selection(verdicts=("incorrect",)))
    assert [item["id"] for row in rows for item in row["answers"]] == ["wrong"]
    rows = exported(run, "groups", dedupe="exact")
    assert "same" not in [item["id"] for row in rows for item in row["answers"]]
    assert exported(run, "steps", against=(NAME,)) == []


CHOICES = ("retile the a", "fuse the a with the b", STOP)


def decision(word: str, parent: str, *shown: str, said: int = 0, logprobs: Any = ()) -> Turn:
    ask = Ask(
        id=word,
        problem=NAME,
        role="choose",
        form="action",
        parents=(parent,),
        shown_turns=shown,
        instruction="Choose.",
        choices=CHOICES,
    )
    choice = Choice(taken=said, logprobs=logprobs)
    return Turn(ask=ask, reply=Reply(text=CHOICES[said], model="d"), choice=choice)


def change(word: str, parent: str, action: int) -> Ask:
    return node(word, parent, form="action", shown_turns=(), instruction=CHOICES[action])


def decided(folder: Path, *more: list[Turn]) -> Path:
    """Write a search of decisions and changes."""
    chances = ((-0.1,), (-0.2, -0.3), (-5.0,))
    return log_of(
        folder,
        [answered(node("start"), "correct", 1.0)],
        # The strategy draws another choice than the model's first one.
        [decision("d1", "start", said=0, logprobs=chances)],
        [answered(change("lost", "start", 1), "unjudged")],
        [answered(change("fused", "start", 1), "correct", 2.0)],
        [decision("d2", "fused", "fused")],
        [answered(change("broken", "fused", 0), "failed")],
        [decision("d3", "fused", "fused", "broken", said=2)],
        [answered(node("again"), "correct", 1.0, code=program("start"))],
        [decision("d4", "again")],
        [answered(change("tiled", "again", 0), "correct", 1.005)],
        *more,
    )


def test_decisions_become_the_edges_of_action_trees(tmp_path):
    rows = exported(decided(tmp_path / "run"), "actions")
    digest = {word: digest_text(program(word)) for word in ("start", "fused", "tiled")}
    edges = [(row["state"], row["taken"], row["next_state"]) for row in rows]
    # `again` is the same program as `start`, so both decisions on it leave one node.
    assert edges == [
        (digest["start"], 1, digest["fused"]),
        (digest["fused"], 0, digest["fused"]),
        (digest["fused"], 2, None),
        (digest["start"], 0, digest["tiled"]),
    ]
    assert {row["tree"] for row in rows} == {digest["start"]}
    assert [row["step"] for row in rows] == [0, 1, 2, 0]
    assert [row["child"] for row in rows] == ["fused", "broken", None, "tiled"]
    assert [row["rung"] for row in rows] == ["faster", "not_executed", None, "executed"]
    # The ladder of MTMC with its decay of 0.05 a step; `stop` has no published reward.
    assert [row["reward"] for row in rows] == [
        pytest.approx(1.6),
        pytest.approx(-0.45),
        None,
        pytest.approx(0.6),
    ]
    assert [row["stop"] for row in rows] == [False, False, True, False]
    assert rows[0]["logprobs"] == [[-0.1], [-0.2, -0.3], [-5.0]]
    assert rows[0]["choices"] == list(CHOICES)
    assert "1. retile the a" in rows[0]["prompt"][0]["content"]


def test_a_decision_without_a_change_at_the_end_counts_only_as_stop(tmp_path):
    for name, said, count in (("cut", 0, 4), ("ended", 2, 5)):
        run = decided(tmp_path / name, [decision("last", "tiled", "tiled", said=said)])
        assert len(exported(run, "actions")) == count


def test_a_sequence_begins_where_a_decision_shows_no_change(tmp_path):
    run = decided(
        tmp_path / "run",
        [decision("d5", "fused")],
        [answered(change("more", "fused", 0), "correct", 2.5)],
    )
    assert [row["step"] for row in exported(run, "actions")] == [0, 1, 2, 0, 0]


@pytest.mark.parametrize("kind", ["steps", "groups", "actions"])
def test_rows_of_searches_fit_their_columns(tmp_path, kind):
    from pyarrow import parquet

    run, target = decided(tmp_path / "run"), tmp_path / "rows.parquet"
    words = ["data", "export", str(run), "--to", str(target), "--format", kind]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    table = parquet.read_table(target)
    rows = exported(run, kind)
    assert table.num_rows == len(rows)
    assert set(table.column_names) == set(rows[0])
    assert [row["id"] for row in table.to_pylist()] == [row["id"] for row in rows]
