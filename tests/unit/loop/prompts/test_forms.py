"""Every form of prompt shows what it should, and nothing else."""

from __future__ import annotations

import pytest

from tests.unit.loop.test_history import judged
from tilewright.loop.estimates import Estimates
from tilewright.loop.prompts import FORMS, messages_of
from tilewright.loop.prompts.material import Document, Material
from tilewright.loop.prompts.shown_programs import fenced
from tilewright.problems.loader import find_problem
from tilewright.records.events import Reply, Turn

PROBLEM = find_problem("softmax")


def written(name: str, speedup: float | None, **more) -> Turn:
    turn = judged(name, speedup, **more)
    reply = Reply(text=f"Thoughts.\n```python\n# code of {name}\n```\n")
    return turn.model_copy(update={"reply": reply, "feedback": f"feedback about {name}"})


def material(form: str, **more) -> Material:
    turns = [written("quick", 3.0), written("slow", 1.5), written("wrong", None)]
    estimates = Estimates()
    for turn in turns:
        estimates.add(turn)
    known = estimates.snapshot(tuple(turn.ask.id for turn in turns))
    fields = {"shown": turns, "parents": turns[1:2], "estimates": known, **more}
    return Material(PROBLEM, form=form, **fields)  # type: ignore[arg-type]


def text_of(made: Material) -> str:
    return "\n".join(message.text for message in messages_of(made))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_form_shows_the_reference_and_the_instruction(form):
    made = material(form, instruction="Mind the tails.")
    assert PROBLEM.source.text.strip() in text_of(made)
    assert "Mind the tails." in text_of(made)
    assert messages_of(made)[-1].role == "user"


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"summary"}))
def test_documents_are_shown(form):
    document = Document("0123", "Shared memory", "A block of an H100 has 227 KiB.")
    assert "A block of an H100 has 227 KiB." in text_of(material(form, documents=[document]))


@pytest.mark.parametrize("form", ["exemplars", "evolve", "patch"])
def test_programs_come_with_their_speed_slowest_first(form):
    text = text_of(material(form, parents=()))
    assert text.index("code of wrong") < text.index("code of slow") < text.index("code of quick")
    assert "Speed against eager PyTorch: 3.00x [2.71, 3.32]" in text
    assert "Verdict: incorrect. at 0" in text


@pytest.mark.parametrize("form", ["evolve", "patch"])
def test_the_current_program_is_shown_once_with_its_feedback_and_failures(form):
    text = text_of(material(form, failed=("incorrect: first", "second", "third", "fourth")))
    assert text.count("code of slow") == 1
    assert text.index("code of quick") < text.index("# The current program")
    assert "feedback about slow" in text
    assert "incorrect: first" not in text
    assert "- fourth" in text


def test_a_patch_is_asked_for_only_where_there_is_a_program():
    assert "SEARCH" in text_of(material("patch"))
    assert "SEARCH" not in text_of(material("patch", parents=()))


def test_a_choice_of_an_action_asks_for_no_file():
    text = text_of(material("action", shown=(), instruction="1. stop", is_choice=True))
    assert text.endswith("# The next step\n\n1. stop")


def test_an_action_shows_one_program_and_one_change():
    text = text_of(material("action", shown=(), instruction="fuse `exp` and `sum`"))
    assert "code of slow" in text
    assert "code of quick" not in text
    assert text.index("fuse `exp`") > text.index("# The change")


def test_a_summary_shows_attempts_and_the_summary_so_far():
    text = text_of(material("summary", instruction="So far: tiles of 64."))
    assert "# Attempt 3" in text
    assert text.index("# The summary so far") < text.index("So far: tiles of 64.")


def test_code_with_fences_cannot_end_its_block():
    assert fenced("```\nx\n```").startswith("````python\n")
    assert fenced("x").startswith("```python\n")
