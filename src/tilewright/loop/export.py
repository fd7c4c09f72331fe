"""Event logs as rows to train on, and conversations of others as event logs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.errors import ConfigError, ProblemError, RecordError
from tilewright.languages.reply import spoken
from tilewright.loop.prompts import conversation
from tilewright.loop.sitting import PROBLEMS, lines_of
from tilewright.problems.reader import parse_problem
from tilewright.records import Problem
from tilewright.records.events import Ask, Asked, Begun, Reply, Told, Turn
from tilewright.records.log import EventLog, read_events
from tilewright.scoring.rewards import REWARDS

__all__ = ["import_coldstart", "trajectory_rows", "turn_rows"]

Row = dict[str, Any]


def _read(folder: Path) -> tuple[Begun, dict[str, Problem], list[Turn]]:
    events = list(read_events(folder))
    if not events or not isinstance(events[0], Begun):
        raise RecordError(f"{folder}: its event log has no beginning")
    problems = {p.id: p for p in map(Problem.from_json, lines_of(folder / PROBLEMS))}
    turns = [event.turn for event in events if isinstance(event, Told)]
    return events[0], problems, [turn for turn in turns if turn.reply is not None]


def turn_rows(folder: Path) -> Iterator[Row]:
    """Yield a row for each turn: the prompt that was shown, the reply, and what came of it.

    `prompt` and `completion` are lists of messages, as trainers take them. Rewards are given by
    each rule, `None` where the turn was not judged. Tokens and log-probabilities are the
    sampler's, where the policy knew them.

    Raises:
        RecordError: it is no run, or it is damaged.
    """
    begun, problems, turns = _read(folder)
    by_id = {turn.ask.id: turn for turn in turns}
    for turn in turns:
        ask, reply = turn.ask, turn.reply
        assert reply is not None
        shown = [by_id[name] for name in ask.shown if name in by_id]
        messages = conversation(problems[ask.problem], begun.language, shown, ask.directive)
        yield {
            **_facts(turn),
            "prompt": [{"role": item.role, "content": item.text} for item in messages],
            "completion": [{"role": "assistant", "content": reply.text}],
            "reasoning": reply.reasoning,
            "tokens": list(reply.tokens),
            "logprobs": list(reply.logprobs),
        }


def trajectory_rows(folder: Path) -> Iterator[Row]:
    """Yield a row for each trajectory: its last prompt, as it was shown, and the reply.

    Raises:
        RecordError: it is no run, or it is damaged.
    """
    begun, problems, turns = _read(folder)
    groups: dict[tuple[str, int], list[Turn]] = defaultdict(list)
    for turn in turns:
        groups[turn.ask.problem, turn.ask.sample].append(turn)
    for (problem, sample), own in groups.items():
        own.sort(key=lambda turn: turn.ask.turn)
        shown = [turn for name in own[-1].ask.shown for turn in own if turn.ask.id == name]
        messages = conversation(problems[problem], begun.language, shown)
        said = [{"role": item.role, "content": item.text} for item in messages]
        last = own[-1].reply
        assert last is not None
        said.append({"role": "assistant", "content": spoken(last.text).strip()})
        facts = [_facts(turn) for turn in own]
        yield {"problem": problem, "sample": sample, "messages": said, "turns": facts}


def _facts(turn: Turn) -> Row:
    item = turn.judgements[0] if turn.judgements else None
    rewards = {name: rule(item) if item is not None else None for name, rule in REWARDS.items()}
    return {
        "id": turn.ask.id,
        "problem": turn.ask.problem,
        "sample": turn.ask.sample,
        "turn": turn.ask.turn,
        "verdict": item.verdict if item is not None else None,
        "speedup": item.speedup if item is not None else None,
        "speedup_low": item.low if item is not None else None,
        "coverage": item.coverage if item is not None else None,
        "findings": list(item.findings) if item is not None else [],
        "rewards": rewards,
        "model": turn.reply.model if turn.reply is not None else "",
    }


def import_coldstart(rows: Iterable[Row], folder: Path, name: str) -> tuple[int, list[str]]:
    """Write conversations of the drkernel cold start format as a run; return turns and what failed.

    A row has `messages`, which alternate between user and assistant, `uuid`, and
    `original_python_code`. Nothing of it was judged by us, so no turn has a verdict.

    Raises:
        ConfigError: the folder cannot be written.
    """
    problems: dict[str, Problem] = {}
    turns: list[Turn] = []
    skipped: list[str] = []
    for number, row in enumerate(rows):
        try:
            problem = _problem(row, number)
            turns += _turns(row, problem.id)
        except (KeyError, TypeError, ValueError, ProblemError) as error:
            skipped.append(f"{name}[{number}]: {type(error).__name__}: {error}"[:300])
            continue
        problems[problem.id] = problem
    try:
        lines = "".join(f"{problem.to_json()}\n" for problem in problems.values())
        (folder / PROBLEMS).write_text(lines, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
    begun = Begun(
        kind="import",
        name=name,
        problems=name,
        protocols=("strict",),
        evaluator=__version__,
        device="none",
    )
    with EventLog(folder) as log:
        log.extend([begun])
        log.extend(e for t in turns for e in (Asked(limit=1, asks=(t.ask,)), Told(turn=t)))
    return len(turns), skipped


def _problem(row: Row, number: int) -> Problem:
    text, name = str(row["original_python_code"]), f"coldstart/{row.get('uuid', number)}"
    return parse_problem(text, name, name.replace("/", "-"), name)


def _turns(row: Row, problem: str) -> list[Turn]:
    messages = row["messages"]
    messages = json.loads(messages) if isinstance(messages, str) else list(messages)
    roles = [item["role"] for item in messages]
    if roles != ["user", "assistant"] * (len(roles) // 2) or not roles:
        raise ValueError(f"messages do not alternate between user and assistant: {roles[:4]}")
    turns: list[Turn] = []
    for place in range(0, len(messages), 2):
        number = place // 2
        earlier = tuple(turn.ask.id for turn in turns)
        after = messages[place + 2]["content"] if place + 2 < len(messages) else ""
        ask = Ask(
            id=f"{problem}#0.{number}",
            problem=problem,
            turn=number,
            parents=earlier[-1:],
            shown=earlier,
        )
        reply = Reply(text=str(messages[place + 1]["content"]), model="imported")
        turns.append(Turn(ask=ask, reply=reply, feedback=str(after)))
    return turns
