"""Contexts survive a file, and faults in a file are named with their line."""

import pytest

from tilewright.errors import ConfigError, RecordError
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.rl.prompt_contexts import (
    NO_CONTEXTS,
    PromptContext,
    contexts_of_run,
    read_contexts,
    write_contexts,
)
from tilewright.rl.training_folder import CONTEXTS
from tilewright.rl.trajectories import LockstepStrategy, trajectories_of


def turn(name, *, judged=True):
    verdict = EvalSummary(protocol="strict", verdict="correct", speedup=1.5)
    ask = Ask(id=name, problem="p")
    judgements = (verdict,) if judged else ()
    return Turn(ask=ask, code="x = 1\n", reply=Reply(text="x = 1\n"), judgements=judgements)


STORED = [
    PromptContext(id="a", problem="p", shown=(turn("t1"), turn("t2"))),
    PromptContext(id="b", problem="p", shown=()),
]


def test_contexts_survive_a_file(tmp_path):
    assert contexts_of_run(tmp_path) == NO_CONTEXTS
    write_contexts(tmp_path / CONTEXTS, STORED)
    found = contexts_of_run(tmp_path)
    assert list(found.by_id.values()) == STORED
    assert found.names() == ["a", "b"]
    assert found.turns() == {"t1": turn("t1"), "t2": turn("t2")}
    assert (found.shown("b"), found.shown("")) == ((), ())


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"id": "a"}'], ":1: no context"),
        (["{"], ":1: no context"),
        ([{"id": "a"}, {"id": "a"}], ":2: a second context has the id a"),
        (["", '{"id": ""}'], ":2: no context"),
        ([{"id": ""}], ":1: a context has no id"),
        ([{"id": "a", "shown": (turn("t", judged=False),)}], ":1: the shown turn t has no verdict"),
        ([{"id": "a", "problem": "q", "shown": (turn("t"),)}], ":1: .* t is about p, not q"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, lines, said):
    path = tmp_path / "contexts.jsonl"
    write_contexts(path, [])
    with path.open("a") as file:
        for line in lines:
            if isinstance(line, dict):
                item = PromptContext(**{"problem": "p", "shown": (), **line})
                write_contexts(tmp_path / "one", [item])
                line = (tmp_path / "one").read_text().strip()
            file.write(f"{line}\n")
    with pytest.raises(RecordError, match=said):
        read_contexts(path)


def test_a_missing_or_empty_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_contexts(tmp_path / "none.jsonl")
    write_contexts(tmp_path / "empty.jsonl", [])
    with pytest.raises(ConfigError, match="has no context"):
        read_contexts(tmp_path / "empty.jsonl")


def test_a_trajectory_continues_its_context():
    stored = {item.id: item.shown for item in STORED}
    items = trajectories_of("step00000", ["p", "p"], 1, 0, ["a", "b"])
    assert [item.context for item in items] == ["a", "b"]
    assert len({item.group for item in items}) == 2
    strategy = LockstepStrategy(items, 2, lambda _, earlier: earlier, stored=stored.__getitem__)
    first = strategy.ask(10)
    assert [ask.shown_turns for ask in first] == [("t1", "t2"), ()]
    assert [ask.parents for ask in first] == [("t2",), ()]
    for ask in first:
        strategy.tell(turn(ask.id))
    second = strategy.ask(10)
    assert [ask.shown_turns for ask in second] == [("t1", "t2", first[0].id), (first[1].id,)]
    assert [ask.parents for ask in second] == [(first[0].id,), (first[1].id,)]
