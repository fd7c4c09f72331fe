"""Turns as rows to train on: a prompt with its reply, or a conversation with weights.

In a conversation each message has a `weight`, as in OpenAI's fine-tuning files. It is 1 for a
message of the assistant that the model learns, and 0 for all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from tilewright.languages.reply_parser import spoken
from tilewright.loop.prompts.conversation import conversation
from tilewright.records import Problem
from tilewright.records.events import RunStarted, Turn
from tilewright.rl.data.logs import RunLog
from tilewright.scoring.rewards import REWARDS

Row = dict[str, Any]


def columns(text: str) -> Row:
    """Return the shape of a row from `NAME TYPE, ...`, with types of arrow."""
    return dict(part.split() for part in text.split(","))


MESSAGES = [columns("role string, content string")]
FACTS: Row = {
    **columns("id string, problem string, sample int64, turn int64, verdict string"),
    **columns("speedup double, speedup_low double, speedup_high double, coverage double"),
    "findings": ["string"],
    "labels": ["string"],
    "rewards": dict.fromkeys(REWARDS, "double"),
    "model": "string",
}
TURN_SHAPE: Row = {
    **FACTS,
    "prompt": MESSAGES,
    "completion": MESSAGES,
    "reasoning": "string",
    "tokens": ["int64"],
    "logprobs": ["double"],
}
SFT_SHAPE: Row = {
    **columns("id string, problem string, sample int64"),
    "messages": [columns("role string, content string, weight int64")],
    "turns": [FACTS],
}
WEIGHED_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' and m.get('weight', 1) %}"
    "{% generation %}{{ m['content'] }}<|im_end|>\n{% endgeneration %}"
    "{% else %}{{ m['content'] }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A ChatML template whose assistant mask covers the messages of weight 1."""


def turn_row(log: RunLog, turn: Turn, problem: Problem) -> Row:
    """Return the prompt of a turn, its reply with the sampler's tokens, and its verdict."""
    reply = turn.reply
    assert reply is not None
    return {
        **facts(turn),
        "prompt": _prompt(log.begun, problem, log.shown(turn), turn),
        "completion": [{"role": "assistant", "content": reply.text}],
        "reasoning": reply.reasoning,
        "tokens": list(reply.tokens),
        "logprobs": list(reply.logprobs),
    }


def sft_rows(
    log: RunLog, turns: Sequence[Turn], problem: Problem, learned: Collection[str]
) -> Iterator[Row]:
    """Yield conversations in which each learned turn has weight 1 exactly once.

    `turns` are those of one trajectory, in order; `learned` holds ids of requests. A turn shares
    the conversation of a later turn only if that shows the turn's exact prompt. Else the turn gets
    a conversation of its own. Reasoning is left out.
    """
    left = [turn for turn in turns if turn.ask.id in learned]
    rows: list[Row] = []
    while left:
        last = left[-1]
        chain = [*log.shown(last), last]
        counted = {
            turn.ask.id
            for place, turn in enumerate(chain)
            if any(turn.ask.id == other.ask.id for other in left)
            and list(turn.ask.shown_turns) == [item.ask.id for item in chain[:place]]
            and (turn is last or not turn.ask.instruction)
        }
        # A damaged log may show a turn in its own prompt, or a missing one.
        counted.add(last.ask.id)
        left = [turn for turn in left if turn.ask.id not in counted]
        rows.append(_conversation(log.begun, problem, chain, counted))
    yield from reversed(rows)


def _conversation(begun: RunStarted, problem: Problem, chain: list[Turn], counted: set[str]) -> Row:
    *shown, last = chain
    messages = [{**item, "weight": 0} for item in _prompt(begun, problem, shown, last)]
    answers = [item for item in messages if item["role"] == "assistant"]
    for answer, turn in zip(answers, shown, strict=True):
        answer["weight"] = int(turn.ask.id in counted)
    assert last.reply is not None
    text = spoken(last.reply.text).strip()
    messages.append({"role": "assistant", "content": text, "weight": 1})
    return {
        "id": last.ask.id,
        "problem": last.ask.problem,
        "sample": last.ask.sample,
        "messages": messages,
        "turns": [facts(turn) for turn in chain],
    }


def _prompt(begun: RunStarted, problem: Problem, shown: Sequence[Turn], turn: Turn) -> list[Row]:
    messages = conversation(
        problem, begun.language, shown, turn.ask.instruction, turn.ask.prompt_override
    )
    return [{"role": item.role, "content": item.text} for item in messages]


def facts(turn: Turn) -> Row:
    """Return the verdict of a turn, and the reward by every rule."""
    ask, item = turn.ask, turn.judgements[0] if turn.judgements else None
    return {
        **ask.model_dump(include={"id", "problem", "sample", "turn"}),
        "verdict": item.verdict if item else None,
        "speedup": item.speedup if item else None,
        "speedup_low": item.low if item else None,
        "speedup_high": item.high if item else None,
        "coverage": item.coverage if item else None,
        "findings": list(item.findings) if item else [],
        "labels": list(item.labels) if item else [],
        "rewards": {name: rule(item) if item else None for name, rule in REWARDS.items()},
        "model": turn.reply.model if turn.reply is not None else "",
    }
