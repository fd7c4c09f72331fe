"""SynthKernel-1 as a world: real prompts and replies, exact verdicts, and no device."""

from __future__ import annotations

import math
import random
import re
from typing import Any

from tilewright.config import Config
from tilewright.errors import ProblemError
from tilewright.loop.candidate_text import code_of, patched
from tilewright.loop.estimates import NORMAL_95
from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.loop.random_values import chooser
from tilewright.records import Case, Problem, SourceFile
from tilewright.records.base import digest_text
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.testing.synth import ENTRY, LEVELS, Program, judge, render

NAME = "synth"
QUESTION = f"Write a fast {ENTRY}."
AGAIN = "Write a faster one."
REFERENCE_SOURCE = "# number {}\ndef reference(*inputs):\n    return inputs\n"
_ADDRESS = re.compile(rf"^{NAME}(?:/(\d+)(?:-(\d+))?)?$")


class SynthWorld:
    """One problem, SynthKernel-1. Lifetime: one run; it holds nothing."""

    device = "none"

    def problems(self, address: str) -> list[Problem]:
        """Return the problem, or several of equal verdicts: `synth`, `synth/4`, `synth/4-7`.

        Raises:
            ProblemError: the address is none of these.
        """
        match = _ADDRESS.match(address)
        if match is None:
            raise ProblemError(f"{address}: this world has {NAME}, {NAME}/COUNT, {NAME}/FIRST-LAST")
        first, last = (int(part) if part else None for part in match.groups())
        numbers = range(first or 1) if last is None else range(first or 0, last + 1)
        return [
            Problem(
                id=f"{NAME}/{number}",
                kind="function",
                source=SourceFile(path="problem.py", text=REFERENCE_SOURCE.format(number)),
                entry=ENTRY,
                cases=(Case(name="only"),),
            )
            for number in numbers
        ]

    def prompt(self, material: Material) -> tuple[Message, ...]:
        """Return the messages that ask for an answer; the current program is the last one."""
        messages = [Message(role="user", text=f"{QUESTION}{material.instruction}")]
        shown = {turn.ask.id: turn for turn in (*material.shown, *material.parents)}
        for turn in shown.values() if material.form != "conversation" else material.shown:
            if code := code_of(turn):
                messages.append(Message(role="assistant", text=code))
                messages.append(Message(role="user", text=turn.feedback or AGAIN))
        return tuple(messages)

    def draft(
        self,
        ask: Ask,
        problem: Problem,  # noqa: ARG002 - one signature
        reply: Reply,
        prompt: str = "",
        base: tuple[SourceFile, ...] = (),
    ) -> Turn:
        """Return the turn of a reply that is not judged yet."""
        change = patched(base[0].text, reply.text) if base else None
        text = change.code if change is not None else reply.text
        refused = change.refused if change is not None else ""
        source, code = ("", "") if refused else (digest_text(text), text)
        code = code if change is not None else ""
        return Turn(ask=ask, source=source, prompt=prompt, reply=reply, code=code, refused=refused)

    def evaluate(
        self,
        draft: Turn,
        problem: Problem,  # noqa: ARG002 - one signature
    ) -> Turn:
        """Judge a draft."""
        own = draft.reply.text if draft.reply is not None else ""
        judgement = judge(draft.code or own)
        update = {"judgements": (judgement,), "feedback": _feedback(judgement)}
        return draft.model_copy(update=update)

    def record_refusal(self, ask: Ask, prompt: str, reason: str) -> Turn:
        """Return the turn of an ask that its policy refused."""
        summary = EvalSummary(protocol="strict", verdict="unjudged", reason=reason[:400])
        return Turn(ask=ask, prompt=prompt, judgements=(summary,))

    def stop(self) -> None:
        """Do nothing: nothing takes any time."""

    def close(self) -> None:
        """Do nothing."""


class NoisySynthWorld(SynthWorld):
    """SynthKernel-1 whose trials scatter, each with a stated 95 % interval. Lifetime: one run."""

    def __init__(self, spread: float, seed: int = 0) -> None:
        self._spread, self._seed = spread, seed

    def evaluate(self, draft: Turn, problem: Problem) -> Turn:
        """Judge a draft; the logarithm of its speed-up has a normal error of its own request."""
        turn = super().evaluate(draft, problem)
        judgement = turn.judgements[0]
        if judgement.speedup is None:
            return turn
        error = chooser(self._seed, draft.ask.id, "noise").gauss(0.0, self._spread)
        speedup, half = judgement.speedup * math.exp(error), math.exp(NORMAL_95 * self._spread)
        update = {"speedup": speedup, "low": speedup / half, "high": speedup * half}
        noisy = judgement.model_copy(update=update)
        said = {"judgements": (noisy,), "feedback": _feedback(noisy)}
        return turn.model_copy(update=said)


def make(settings: Config) -> SynthWorld:  # noqa: ARG001 - one signature
    """Return SynthKernel-1: a header of eight fields decides whether it is right, and fast."""
    return SynthWorld()


def conversations(count: int, turns: int, seed: int) -> list[dict[str, Any]]:
    """Return conversations with random programs and their feedback, for supervised training.

    They teach the form of a program, and not how to make one fast.
    """
    draw = random.Random(f"synth/{seed}")
    rows = []
    for _ in range(count):
        spoken, question = list[dict[str, str]](), QUESTION
        for _ in range(turns):
            text = render(Program(*(draw.choice(levels) for levels in LEVELS.values())))
            spoken.append({"role": "user", "content": question})
            spoken.append({"role": "assistant", "content": text})
            question = _feedback(judge(text))
        rows.append({"messages": spoken})
    return rows


def _feedback(judgement: EvalSummary) -> str:
    if judgement.speedup is not None:
        return f"Correct.\n{judgement.speedup:.0f}x\n{AGAIN}"
    return f"{'Wrong' if judgement.verdict == 'incorrect' else 'Failed'}.\n{AGAIN}"
