"""responds read prompts: what a prompt hides, they do not know."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.space_programs import changed, prompt_of, turn_of
from tilewright.languages.reply_parser import code_blocks
from tilewright.loop.candidate_text import patched
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.choosing import choice_request, named_choice
from tilewright.loop.policies.scripted import load_script
from tilewright.loop.prompts.material import Document
from tilewright.loop.tried_changes import change_between, digest
from tilewright.records.events import Ask
from tilewright.spaces import SPACES, proposing
from tilewright.spaces.proposing import Behaviour, blind, reader, respond, several
from tilewright.spaces.space import (
    PROBLEMS,
    intended_knobs,
    knobs_of,
    moves,
    programs,
    source,
    spoiled,
)

CPP = SPACES["cpp_matmul"]
EVERY = [(space, knobs) for space in SPACES.values() for knobs in programs(space)]
VECTORS = changed(CPP, form="vectors", order="columns")
SLOW, FAST = VECTORS, {**VECTORS, "rows": 4}
PARENT = changed(CPP, cols=32)
FILES = ("blind", "reader", "clumsy")


def answers(behaviour, messages, count, space=CPP):
    """Return the programs of so many answers to one prompt; `None` for a spoiled one."""
    replies = [respond(messages, behaviour, random.Random(number)) for number in range(count)]
    return [knobs_of(space, code_blocks(text)[-1]) for text in replies]


def differing(one, other):
    return [name for name in one if one[name] != other[name]]


def share(found, wanted):
    return sum(map(wanted, found)) / len(found)


@given(st.sampled_from(EVERY))
@settings(max_examples=40)
def test_blind_answers_with_a_neighbour_of_the_parent(chosen):
    space, knobs = chosen
    messages = prompt_of(space, "conversation", [turn_of(space, knobs, 1.5, "one")])
    for answer in answers(Behaviour(blind), messages, 3, space):
        assert answer in moves(space, knobs)


def test_every_neighbour_is_equally_likely():
    messages = prompt_of(CPP, "evolve", [], parents=[turn_of(CPP, FAST, 1.5, "one")])
    found = answers(Behaviour(blind), messages, 1200)
    near = moves(CPP, FAST)
    counts = [found.count(item) for item in near]
    expected = len(found) / len(near)
    assert sum((count - expected) ** 2 / expected for count in counts) < 30


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_file_is_a_policy_that_reads_no_request(name):
    path = PROBLEMS.with_name("proposers") / f"{name}.py"
    one, other = load_script(path), load_script(path)
    messages = prompt_of(CPP, "exemplars", [turn_of(CPP, SLOW, 0.5, "a")])
    plain = [Ask(id=f"x#1.{number}", problem="p") for number in range(5)]
    more = {"problem": "x", "turn": 7, "instruction": "Use rows = 8.", "shown_turns": ("a",)}
    told = [ask.model_copy(update=more) for ask in plain]
    first = [one.answer(messages, ask).text for ask in plain]
    # In another order, and from a policy that was loaded anew.
    assert first[::-1] == [other.answer(messages, ask).text for ask in told[::-1]]
    assert len(set(first)) > 1, "equal prompts get different answers"
    another = [load_script(path, seed=1).answer(messages, ask).text for ask in plain]
    assert another != first, "another seed, other answers"


def test_a_prompt_without_a_program_gets_one_near_the_start():
    found = answers(Behaviour(blind), prompt_of(CPP, "conversation"), 200)
    assert all(knobs is not None for knobs in found)
    sizes = [len(differing(knobs, CPP.start)) for knobs in found]
    assert 1.2 < sum(sizes) / len(sizes) < 3
    assert len({tuple(knobs.values()) for knobs in found}) > 50


def test_reader_copies_the_difference_only_if_the_prompt_shows_both():
    # They differ in `rows`, and a third program is the parent.
    shown = [turn_of(CPP, SLOW, 0.5, "slow"), turn_of(CPP, FAST, 2.0, "fast")]
    parent = [turn_of(CPP, PARENT, 0.1, "parent")]
    seen = answers(Behaviour(reader), prompt_of(CPP, "evolve", shown, parents=parent), 300)
    hidden = answers(Behaviour(reader), prompt_of(CPP, "evolve", parents=parent), 300)
    without = answers(Behaviour(blind), prompt_of(CPP, "evolve", parents=parent), 300)

    def copied(knobs):
        return differing(knobs, PARENT) == ["rows"] and knobs["rows"] == 4

    # A neighbour has 2 rows, so `blind` cannot copy.
    assert share(seen, copied) > 0.15
    assert share(hidden, copied) == share(without, copied) == 0.0


def test_reader_goes_further_where_the_parent_is_the_faster_program():
    shown = [turn_of(CPP, SLOW, 0.5, "slow"), turn_of(CPP, FAST, 2.0, "fast")]
    found = answers(Behaviour(reader), prompt_of(CPP, "exemplars", shown), 300)
    assert 0.6 < share(found, lambda knobs: knobs == {**FAST, "rows": 8}) < 0.9
    speeds_hidden = [Message(role="user", text=_without_speeds(shown))]
    found = answers(Behaviour(reader), speeds_hidden, 300)
    assert share(found, lambda knobs: knobs["rows"] == 8) < 0.2


def _without_speeds(shown):
    text = prompt_of(CPP, "exemplars", shown)[0].text
    return re.sub(r"Speed against .*", "Not judged yet.", text)


def test_clumsy_spoils_each_change_with_the_stated_probability():
    parent = [turn_of(CPP, FAST, 2.0, "fast")]
    at_once = prompt_of(CPP, "evolve", parents=parent)
    alone = prompt_of(CPP, "action", parents=parent, instruction="retile the matmul")
    sure = Behaviour(several, 0.6)
    assert share(answers(sure, alone, 600), bool) == pytest.approx(0.6, abs=0.06)
    # One to three changes, each equally often; some undo each other.
    expected = (0.6 + 0.6**2 + 0.6**3) / 3
    assert share(answers(sure, at_once, 600), bool) == pytest.approx(expected, abs=0.1)


def test_a_spoiled_program_is_no_program_and_does_not_parse():
    for space, knobs in EVERY[::97]:
        code = spoiled(source(space, knobs))
        assert knobs_of(space, code) is None
        assert intended_knobs(space, code) == knobs
        if space.tag == "python":
            with pytest.raises(SyntaxError):
                compile(code, "candidate.py", "exec")
        else:
            assert code.count("{") > code.count("}")


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ("retile the matmul", {"rows", "cols", "depth"}),
        ("Use more threads.", {"threads"}),
        ("reorder the loops", {"order", "packing"}),
    ],
)
def test_an_action_is_followed_with_the_stated_probability(instruction, wanted):
    parent = [turn_of(CPP, FAST, 2.0, "fast")]
    messages = prompt_of(CPP, "action", parents=parent, instruction=instruction)
    found = answers(Behaviour(blind), messages, 300)
    hit = share(found, lambda knobs: set(differing(knobs, FAST)) <= wanted)
    assert hit > proposing.FOLLOWS - 0.06
    without = answers(Behaviour(blind), prompt_of(CPP, "evolve", parents=parent), 300)
    assert share(without, lambda knobs: set(differing(knobs, FAST)) <= wanted) < hit - 0.15


def test_a_fact_of_a_document_is_followed_with_the_stated_probability():
    parent = [turn_of(CPP, SLOW, 0.5, "slow")]
    fact = [Document("01", "Tiles", "On this processor set rows = 8.")]
    messages = prompt_of(CPP, "evolve", parents=parent, documents=fact)
    found = answers(Behaviour(blind), messages, 300)
    assert share(found, lambda knobs: knobs["rows"] == 8) == pytest.approx(0.8, abs=0.07)


def test_tried_changes_are_avoided():
    near = moves(CPP, FAST)
    tried = [change_between(source(CPP, FAST), source(CPP, item)) for item in near[:6]]
    parent = [turn_of(CPP, FAST, 2.0, "fast")]
    told = prompt_of(CPP, "evolve", parents=parent, instruction=digest([], tried))
    found = answers(Behaviour(blind), told, 300)
    again = share(found, lambda knobs: knobs in near[:6])
    untold = answers(Behaviour(blind), prompt_of(CPP, "evolve", parents=parent), 300)
    assert again < 0.5 * share(untold, lambda knobs: knobs in near[:6])


def test_a_patch_applies_to_the_current_program():
    messages = prompt_of(CPP, "patch", parents=[turn_of(CPP, FAST, 2.0, "fast")])
    text = respond(messages, Behaviour(blind), random.Random(1))
    change = patched(source(CPP, FAST), text)
    assert change.refused == ""
    assert knobs_of(CPP, change.code) in moves(CPP, FAST)


@pytest.mark.parametrize("form", ["evolve", "patch"])
def test_a_spoiled_parent_is_repaired_from_its_own_knobs(form):
    turn = turn_of(CPP, FAST, None, "spoiled")
    code = spoiled(source(CPP, FAST))
    broken = turn.model_copy(update={"reply": None, "code": code})
    messages = prompt_of(CPP, form, parents=[broken])
    text = respond(messages, Behaviour(blind), random.Random(1))
    code = patched(code, text).code if form == "patch" else code_blocks(text)[-1]
    assert knobs_of(CPP, code) in moves(CPP, FAST)


def test_a_choice_is_one_of_the_choices():
    choices = ("stop", "retile the matmul", "reorder the matmul")
    ask = Ask(id="a", problem="p", role="choose", choices=choices)
    messages = prompt_of(CPP, "action", instruction=choice_request(ask))
    replies = [respond(messages, Behaviour(blind), random.Random(n)) for n in range(60)]
    taken = {named_choice(text, choices) for text in replies}
    assert taken == {0, 1, 2}


def test_a_summary_says_what_the_fastest_program_has():
    shown = [turn_of(CPP, SLOW, 0.5, "slow"), turn_of(CPP, FAST, 2.0, "fast")]
    text = respond(prompt_of(CPP, "summary", shown), Behaviour(blind), random.Random(1))
    assert "<summary>" in text
    assert proposing.stated_values(CPP, text) == {"rows": 4}


def test_a_drawn_program_is_uniform_over_the_space():
    generator = random.Random(1)
    every = programs(CPP)
    for _ in range(5):
        number = generator.randrange(10**6)
        instruction = f"Write program number {number} of the space."
        messages = prompt_of(CPP, "conversation", instruction=instruction)
        assert answers(Behaviour(reader), messages, 1) == [every[number % len(every)]]


def test_a_prompt_of_another_problem_gets_no_code():
    text = respond([Message(role="user", text="Hello.")], Behaviour(blind), random.Random(1))
    assert code_blocks(text) == []
