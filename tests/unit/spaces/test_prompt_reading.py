"""A proposer finds in each form of prompt what a model would find."""

from __future__ import annotations

import pytest

from tests.space_programs import changed, prompt_of, turn_of
from tilewright.loop.feedback import FEEDBACK
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.choosing import choice_request
from tilewright.loop.prompts.material import Document
from tilewright.loop.tried_changes import change_between, digest, outcome_line
from tilewright.records.events import Ask
from tilewright.spaces import SPACES
from tilewright.spaces.prompt_reading import read_prompt, speed_in
from tilewright.spaces.space import source

CPP, GEMM = SPACES["cpp_matmul"], SPACES["triton_gemm"]
SLOW, FAST, WRONG = changed(CPP), changed(CPP, rows=4), changed(CPP, cols=32)
TURNS = [
    turn_of(CPP, WRONG, None, "wrong"),
    turn_of(CPP, FAST, 2.5, "fast"),
    turn_of(CPP, SLOW, 0.5, "slow"),
]


def read(form, shown=(), **more):
    found = read_prompt(prompt_of(CPP, form, shown, **more))
    assert found is not None
    return found


@pytest.mark.parametrize("space", SPACES.values(), ids=list(SPACES))
def test_the_reference_tells_the_space(space):
    found = read_prompt(prompt_of(space, "conversation"))
    assert found is not None
    assert (found.space, found.parent, found.programs, found.action) == (space, None, (), "")


def test_another_problem_belongs_to_no_space():
    assert read_prompt([Message(role="user", text="```python\ndef reference(x): ...\n```")]) is None


def test_a_conversation_shows_answers_with_the_speed_of_their_feedback():
    found = read("conversation", TURNS)
    assert [(item.knobs, item.speedup) for item in found.programs] == [
        (WRONG, None),
        (FAST, 2.5),
        (SLOW, 0.5),
    ]
    assert found.parent == SLOW


@pytest.mark.parametrize("form", ["exemplars", "evolve", "patch"])
def test_programs_are_shown_with_the_speed_before_them(form):
    found = read(form, TURNS)
    assert [(item.knobs, item.speedup) for item in found.programs] == [
        (WRONG, None),
        (SLOW, 0.5),
        (FAST, 2.5),
    ]
    assert found.parent == FAST


@pytest.mark.parametrize("form", ["evolve", "patch", "action"])
def test_the_current_program_is_the_parent(form):
    found = read(form, [], parents=TURNS[2:], instruction="retile the matmul")
    assert found.parent == SLOW
    assert found.action == "retile the matmul"
    assert found.is_single == (form == "action")
    assert found.wants_patch == (form == "patch")
    assert [item.speedup for item in found.programs] == [0.5]


@pytest.mark.parametrize("form", ["conversation", "exemplars", "evolve"])
def test_the_closing_instruction_is_read(form):
    assert read(form, TURNS, instruction="Use more threads.").action == "Use more threads."
    assert read(form, TURNS).action == ""


def test_notes_are_read_and_the_rules_of_the_opening_are_no_notes():
    notes = [Document("01", "Tiles", "Use larger tiles.")]
    found = read("evolve", TURNS, documents=notes, instruction="Go on.")
    assert "Use larger tiles." in found.notes
    assert "Rules" not in found.notes + found.action
    assert found.action == "Go on."


def test_tried_changes_are_read_from_the_digest_and_are_no_action():
    change = change_between(source(CPP, SLOW), source(CPP, FAST))
    line = f"{change}: {outcome_line('correct', 2.5, 0.5, '')}"
    found = read("evolve", [], parents=TURNS[2:], instruction=digest([line], [line, line]))
    assert len(found.tried) == 2
    assert "constexpr int64_t ROWS = 4;    // rows of a register tile" in found.tried[0]
    assert found.action == ""


def test_choices_and_summaries_are_read():
    ask = Ask(id="a", problem="p", role="choose", choices=("stop", "retile the matmul"))
    assert read("conversation", TURNS, instruction=choice_request(ask)).choices == 2
    assert read("summary", TURNS).wants_summary
    old = read("summary", TURNS, instruction="- rows = 4")
    assert old.notes.strip() == "- rows = 4"


def test_a_drawn_program_is_read():
    found = read("conversation", instruction="Write program number 1234 of the space.")
    assert found.number == 1234


@pytest.mark.parametrize(
    ("text", "speedup"),
    [
        ("Verdict: correct. Speed against eager PyTorch: 0.31x [0.30, 0.32].", 0.31),
        ("Speed against eager PyTorch: no measurable difference [0.90, 1.60]", 1.2),
        ("Correct, and 1.70x as fast as the reference.", 1.7),
        ("Correct, but not faster than the reference (0.45x).", 0.45),
        ('{"correctness": true, "speedup": 3.5}', 3.5),
        ('{"correctness": false, "speedup": 0.0}', None),
        ("Verdict: incorrect (values). 12 times the allowed one", None),
    ],
)
def test_every_feedback_states_its_speed_in_a_known_way(text, speedup):
    assert len(FEEDBACK) == 3, "a new preset needs a line here"
    assert speed_in(text) == pytest.approx(speedup)


def test_python_programs_are_read_as_well():
    turn = turn_of(GEMM, changed(GEMM, warps=8), 1.5, "one")
    found = read_prompt(prompt_of(GEMM, "exemplars", [turn]))
    assert found is not None
    assert found.parent == changed(GEMM, warps=8)
