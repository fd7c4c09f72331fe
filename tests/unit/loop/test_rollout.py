"""Turns: prompts, judged replies, replayed recordings, stepped episodes."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from tests import sample_reports as reports
from tests.unit.loop.test_driver import BEGUN, Bench
from tilewright.config import load
from tilewright.errors import PolicyError, RecordError, ReplyRefused
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.answer_evaluator import AnswerEvaluator
from tilewright.loop.budget import Budget, BudgetGuard, Usage
from tilewright.loop.driver import drive
from tilewright.loop.history import RecordedHistory
from tilewright.loop.leaders import best_of
from tilewright.loop.policies.base import digest_of
from tilewright.loop.policies.factory import choose_policy
from tilewright.loop.policies.recorded import Recorded
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.prompts.conversation import conversation
from tilewright.loop.prompts.opening import AGAIN, opening
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.rollout_environment import RolloutEnvironment
from tilewright.loop.run_state import begin_session, resume_session, score_of
from tilewright.loop.strategies.base import FixedList
from tilewright.problems.loader import find_problem
from tilewright.records import Candidate
from tilewright.records.event_log import EventLog, read_events
from tilewright.records.events import Ask, Reply, Turn, TurnFinished

PROBLEM = find_problem("softmax")
CODE = "```python\nimport torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n```"


def told(*turns: Turn) -> RecordedHistory:
    """Return the history of some turns."""
    history = RecordedHistory(FixedList([]))
    for turn in turns:
        history.tell(turn)
    return history


def numbered(number: int) -> str:
    """Return a reply whose code differs from that of every other number."""
    return CODE.replace("import torch", f"import torch  # {number}")


def settings_of(*overrides: str):
    return load(overrides=["loop.turns=3", *overrides], environ={})


def environment_of(tmp_path: Path, *script, settings=None) -> RolloutEnvironment:
    judge = AnswerEvaluator(tmp_path, Bench(*script), retry_delay_s=0.0)
    return RolloutEnvironment(settings or settings_of(), judge)


def play(
    tmp_path: Path, write, *overrides: str, script=(), limit: int | None = None, problem=PROBLEM
):
    """Play a run in `tmp_path`, begun or gone on with; return its session and its turns."""
    settings = settings_of(*overrides)
    policy = write if hasattr(write, "answer") else Scripted(write)
    if (tmp_path / "events.jsonl").exists():
        session = resume_session(tmp_path, settings)
    else:
        session = begin_session(tmp_path, BEGUN, [problem], settings)
    environment = environment_of(tmp_path, *script, settings=settings)
    player = RolloutWorker(environment, policy, {problem.id: problem}, session.strategy)
    made = list(session.finished)
    with EventLog(tmp_path) as log:
        for turn in drive(
            session.strategy, player.play, log, max_concurrency=1, waiting=session.waiting
        ):
            made.append(turn)
            if len(made) == limit:
                break
    return session, made


def test_an_opening_shows_the_reference_and_what_to_define():
    text = opening(PROBLEM, "triton")
    assert PROBLEM.source.text.strip() in text
    assert "function `softmax`" in text
    assert "@triton.jit" in text


def test_a_prompt_shows_earlier_turns_without_their_reasoning():
    reply = Reply(text="<think>secret plan</think>my code", reasoning="more")
    shown = Turn(ask=Ask(id="a", problem="p"), reply=reply, feedback="Verdict: failed.")
    messages = conversation(PROBLEM, None, [shown], "Mind the tails.")
    assert [item.role for item in messages] == ["user", "assistant", "user"]
    assert messages[1].text == "my code"
    assert messages[2].text == f"Verdict: failed.\n\n{AGAIN}\n\nMind the tails."


def test_each_prompt_shows_what_the_strategy_chose(tmp_path):
    prompts = []

    def write(messages, ask):
        prompts.append((ask.shown_turns, [item.text for item in messages]))
        return f"turn {ask.turn}\n{CODE}"

    _, turns = play(tmp_path, write, "loop.options={context: last_w, w: 1}")
    assert [turn.judgements[0].verdict for turn in turns] == ["correct"] * 3
    assert [len(texts) for _, texts in prompts] == [1, 3, 3]
    assert prompts[2][0] == (turns[1].ask.id,)
    assert prompts[2][1][1].startswith("turn 1")
    assert turns[1].feedback in prompts[2][1][2]


def test_a_reply_without_code_is_a_failed_candidate_and_nothing_is_judged(tmp_path):
    bench = Bench()
    environment = RolloutEnvironment(settings_of(), AnswerEvaluator(tmp_path, bench))
    turn = environment.evaluate_reply(Ask(id="a", problem="p"), PROBLEM, Reply(text="I cannot."))
    assert turn.judgements[0].verdict == "failed"
    assert "no code block" in turn.feedback
    assert bench.calls == 0


def test_a_run_can_be_replayed_as_a_recording(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    _, turns = play(tmp_path / "one", lambda _, ask: f"{ask.turn}{CODE}")
    said: list[str] = []
    policy = Recorded(tmp_path / "one", strict=True, warn=said.append)
    _, again = play(tmp_path / "two", policy)
    assert [turn.reply for turn in again] == [turn.reply for turn in turns]
    assert said == []


def test_a_recording_of_another_prompt_warns_once_or_is_refused(tmp_path):
    (tmp_path / "one").mkdir()
    play(tmp_path / "one", lambda *_: CODE)
    for number, strict in enumerate((False, True)):
        folder = tmp_path / f"again{number}"
        folder.mkdir()
        said: list[str] = []
        policy = Recorded(tmp_path / "one", strict=strict, warn=said.append)
        if strict:
            with pytest.raises(PolicyError, match="another prompt"):
                play(folder, policy, "loop.language=triton")
        else:
            play(folder, policy, "loop.language=triton")
            assert len(said) == 1


def test_a_turn_that_was_not_recorded_is_named(tmp_path):
    play(tmp_path, lambda *_: CODE)
    policy = Recorded(tmp_path)
    with pytest.raises(PolicyError, match="turn 9 was recorded"):
        policy.answer((), Ask(id="x", problem=PROBLEM.id, turn=9))


def test_a_resumed_run_sends_the_remaining_prompts_unchanged(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()

    def write(_, ask):
        return f"{ask.turn}{CODE}"

    _, turns = play(whole, write)
    play(cut, write, limit=2)
    _, again = play(cut, write)
    assert [turn.prompt for turn in again] == [turn.prompt for turn in turns]
    assert [turn.ask for turn in again] == [turn.ask for turn in turns]


def test_a_run_with_other_settings_is_not_resumed(tmp_path):
    play(tmp_path, lambda *_: CODE, limit=2)
    with pytest.raises(RecordError, match="cannot be resumed"):
        play(tmp_path, lambda *_: CODE, "loop.strategy=best_of_n")


def test_an_episode_steps_through_turns_and_masks_unjudged_ones(tmp_path):
    environment = environment_of(tmp_path, reports.unjudged(), reports.incorrect())
    with pytest.raises(RuntimeError, match="reset"):
        asyncio.run(environment.step(CODE))
    assert environment.reset(PROBLEM)[0].text == opening(PROBLEM, None)
    steps = [asyncio.run(environment.step(CODE)) for _ in range(3)]
    asks = [step.turn.ask for step in steps]
    assert [ask.shown_turns for ask in asks] == [(), (asks[0].id,), (asks[0].id, asks[1].id)]
    assert steps[2].turn.prompt == digest_of(steps[1].messages)
    assert [step.reward for step in steps] == [None, 0.0, pytest.approx(1 + 1.36)]
    assert len(steps[-1].messages) == 7


def test_a_candidate_is_measured_again_without_calling_the_model(tmp_path):
    environment = environment_of(tmp_path)
    before = environment.evaluate_reply(Ask(id="a", problem=PROBLEM.id), PROBLEM, Reply(text=CODE))
    player = RolloutWorker(
        environment, Scripted(lambda *_: 1 / 0), {PROBLEM.id: PROBLEM}, told(before)
    )
    turn = player.play(Ask(id="b", problem=PROBLEM.id, role="measure", parents=("a",)))
    assert (turn.ask.id, turn.judgements[0].verdict) == ("b", "correct")


def test_a_turn_for_text_only_is_not_judged(tmp_path):
    bench = Bench()
    environment = RolloutEnvironment(settings_of(), AnswerEvaluator(tmp_path, bench))
    policy = Scripted(lambda messages, _: messages[-1].text[-5:])
    player = RolloutWorker(environment, policy, {PROBLEM.id: PROBLEM}, told())
    turn = player.play(Ask(id="a", problem=PROBLEM.id, role="say", instruction="Why?!"))
    assert turn.reply is not None
    assert (turn.reply.text, turn.judgements, bench.calls) == ("Why?!"[-5:], (), 0)


def test_a_prompt_cannot_show_an_unfinished_turn(tmp_path):
    player = RolloutWorker(
        environment_of(tmp_path), Scripted(lambda *_: CODE), {PROBLEM.id: PROBLEM}, told()
    )
    with pytest.raises(RecordError, match="nowhere"):
        player.play(Ask(id="a", problem=PROBLEM.id, shown_turns=("nowhere",)))


def test_the_best_is_correct_and_of_equal_ones_the_first(tmp_path):
    script = (reports.incorrect(), reports.correct(), reports.correct())
    session, turns = play(tmp_path, lambda _, ask: numbered(ask.turn), script=script)
    best = best_of(turns, score_of(settings_of().loop))
    assert best[PROBLEM.id].ask.turn == 1
    assert len(session.strategy.turns) == 3


def test_a_missing_or_wrong_script_is_a_policy_error(tmp_path):
    for text, wanted in (
        (None, "no such file"),
        ("1/0", "ZeroDivision"),
        ("x = 1", "defines neither answer"),
    ):
        path = tmp_path / "policy.py"
        if text is not None:
            path.write_text(text)
        with pytest.raises(PolicyError, match=wanted):
            choose_policy(f"scripted:{path}", load(environ={}).model)


def test_no_request_is_admitted_after_the_wall_time_budget():
    guard = BudgetGuard(Budget(), (), lambda _: Usage(turns=1), eval_timeout_s=1.0, wall_s=0.0)
    assert not guard.reserve(Ask(id="a", problem="p"))
    assert guard.lacking == "wall_s"


def test_a_turn_survives_its_json():
    reply = Reply(text="x", tokens=(1, 2), logprobs=(-0.5, -1.0))
    turn = Turn(ask=Ask(id="a", problem="p", shown_turns=("b",)), reply=reply, feedback="f")
    assert Turn.model_validate(json.loads(turn.to_json())) == turn


class Choosy:
    """Refuses one prompt, and fails for good at another."""

    name = "choosy"

    def __init__(self, refuses, fails):
        self.refuses, self.fails = refuses, fails

    def answer(self, messages, ask):  # noqa: ARG002 - as every policy
        if ask.turn == self.refuses:
            raise ReplyRefused("too long")
        if ask.turn == self.fails:
            time.sleep(0.2)
            raise PolicyError("gone")
        return Reply(text=CODE)


def test_a_refused_request_is_an_unjudged_turn_and_the_run_continues(tmp_path):
    _, turns = play(tmp_path, Choosy(1, None))
    assert [turn.judgements[0].verdict for turn in turns] == ["correct", "unjudged", "correct"]
    assert "too long" in turns[1].judgements[0].reason
    # It is shown to nobody.
    assert turns[2].ask.shown_turns == (turns[0].ask.id,)


def test_finished_turns_are_on_disk_when_a_model_fails(tmp_path):
    settings = settings_of("loop.strategy=best_of_n", "loop.turns=8")
    session = begin_session(tmp_path, BEGUN, [PROBLEM], settings)
    environment = environment_of(tmp_path, settings=settings)
    player = RolloutWorker(environment, Choosy(None, 3), {PROBLEM.id: PROBLEM}, session.strategy)
    seen = []
    with EventLog(tmp_path) as log, pytest.raises(PolicyError, match="gone"):
        seen.extend(drive(session.strategy, player.play, log, max_concurrency=8))
    told = [e.turn.ask.turn for e in read_events(tmp_path) if isinstance(e, TurnFinished)]
    assert sorted(told) == [0, 1, 2, 4, 5, 6, 7]
    again = resume_session(tmp_path, settings)
    assert [ask.turn for ask in again.waiting] == [3]


@pytest.mark.parametrize("text", ["half \ud800 a pair", "\udfff"])
def test_lone_surrogates_in_a_reply_do_not_end_the_run(tmp_path, text):
    _, turns = play(tmp_path, lambda *_: f"{text}\n{CODE}")
    assert [turn.judgements[0].verdict for turn in turns] == ["correct"] * 3


@pytest.mark.parametrize(
    "names", [("x" * 300 + ".py", "b.py"), ("m.py", "m.py/x.py"), ("m.py", "m.py")]
)
def test_conflicting_file_names_of_a_reply_still_make_a_candidate(names):
    text = CODE.replace("```python", f"```python {names[0]}")
    text += f"\n```python {names[1]}\nimport softmax\n```"
    files = parse_reply(text, "softmax").files
    assert files
    Candidate(language="torch", files=files, entry="softmax")


def test_episodes_of_one_run_have_separate_reports(tmp_path):
    judge = AnswerEvaluator(tmp_path, Bench(), retry_delay_s=0.0)

    async def episode():
        environment = RolloutEnvironment(settings_of(), judge)
        environment.reset(PROBLEM)
        return [(await environment.step(CODE)).turn.ask.id for _ in range(3)]

    async def several():
        return await asyncio.gather(*(episode() for _ in range(8)))

    found = [name for own in asyncio.run(several()) for name in own]
    assert len(set(found)) == 24
    assert len(list((tmp_path / "reports").glob("*.json"))) == 24


CPP = '```cpp\nextern "C" void softmax(float* x) { x[0] = 1; }\n```\n'
TWO_FILES = (
    '```cpp\n// file: fast.cpp\n#include "wide.h"\nextern "C" void softmax(float* x) {}\n```\n'
    "```cpp\n// file: wide.h\n#define WIDE 8\n```\n"
)
ONE_LINE = "<<<<<<< SEARCH\n{0}\n=======\n{0} // changed\n>>>>>>> REPLACE\n".format(
    'extern "C" void softmax(float* x) {}'
)


class Recorder(Bench):
    """An evaluator that keeps the files of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[dict[str, str]] = []

    def __call__(self, request):
        self.files.append({file.path: file.text for file in request.candidate.files})
        return super().__call__(request)


def rollout_of(tmp_path: Path, reply: str, *before: Turn) -> tuple[RolloutWorker, Recorder]:
    """Return a worker whose model gives one reply, and the evaluator behind it."""
    bench = Recorder()
    judge = AnswerEvaluator(tmp_path, bench, retry_delay_s=0.0)
    environment = RolloutEnvironment(settings_of(), judge)
    problems = {PROBLEM.id: PROBLEM}
    return RolloutWorker(environment, Scripted(lambda *_: reply), problems, told(*before)), bench


@pytest.mark.parametrize(
    ("reply", "paths"),
    [
        (f"{CPP}Build it:\n```bash\nmake\n```\n", {"candidate.cpp"}),
        (TWO_FILES, {"fast.cpp", "wide.h"}),
        (f"{CODE}\n```bash\npython candidate.py\n```\n", {"candidate.py"}),
    ],
)
def test_a_reply_is_judged_with_its_files_also_where_another_block_is_last(tmp_path, reply, paths):
    player, bench = rollout_of(tmp_path, reply)
    first = player.play(Ask(id="a", problem=PROBLEM.id))
    assert set(bench.files[0]) == paths
    again, repeated = rollout_of(tmp_path, reply, first)
    turn = again.play(Ask(id="b", problem=PROBLEM.id, role="measure", parents=("a",)))
    assert repeated.files == bench.files
    third, measured = rollout_of(tmp_path, reply, first, turn)
    third.play(Ask(id="c", problem=PROBLEM.id, role="measure", parents=("b",)))
    assert measured.files == bench.files


def test_a_patch_keeps_the_other_files_and_the_names_of_a_native_program(tmp_path):
    player, bench = rollout_of(tmp_path, TWO_FILES)
    first = player.play(Ask(id="a", problem=PROBLEM.id))
    patching, patched_bench = rollout_of(tmp_path, ONE_LINE, first)
    turn = patching.play(Ask(id="b", problem=PROBLEM.id, form="patch", parents=("a",)))
    assert turn.refused == ""
    assert set(patched_bench.files[0]) == {"fast.cpp", "wide.h"}
    assert patched_bench.files[0]["wide.h"] == bench.files[0]["wide.h"]
    assert "// changed" in patched_bench.files[0]["fast.cpp"]
    again, repeated = rollout_of(tmp_path, "", first, turn)
    again.play(Ask(id="c", problem=PROBLEM.id, role="measure", parents=("b",)))
    assert repeated.files == patched_bench.files
