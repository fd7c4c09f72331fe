"""The three data sets of Dr. Kernel (hkust-nlp, on the Hugging Face Hub), read and written.

`coldstart`: conversations of five turns. `rl`: a prompt and its reference, as verl reads it.
`validation`: the same of KernelBench level 2, with fewer fields. What we have no word for is kept
beside the log of an imported run (`imported.jsonl`) and written again as it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tilewright.errors import ProblemError
from tilewright.languages.reply_parser import spoken
from tilewright.loop.prompts import opening
from tilewright.loop.table_input import ANY
from tilewright.problems.loader import parse_problem
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.rl.data.contamination import shapes_and_operators

__all__ = [
    "COLDSTART_SHAPE",
    "FORMATS",
    "RL_SHAPE",
    "VALIDATION_SHAPE",
    "Kind",
    "beside",
    "coldstart_row",
    "name_of",
    "prompt_row",
    "read_coldstart",
    "read_prompt",
]

Row = dict[str, Any]
Kind = Literal["drkernel-coldstart", "drkernel-rl", "drkernel-validation"]
FORMATS: tuple[Kind, ...] = ("drkernel-coldstart", "drkernel-rl", "drkernel-validation")
_MESSAGES = [{"role": "string", "content": "string"}]
COLDSTART_SHAPE: Row = {
    "messages": _MESSAGES,
    "uuid": "int64",
    "entry_point": "string",
    "repo_name": "string",
    "module_name": "string",
    "final_speedup": "double",
    "num_rounds": "int64",
    "original_python_code": "string",
    "best_round": "int64",
    "timestamp": "double",
    "conversion_mode": "string",
    "enable_thinking": "bool",
}
_SHARED: Row = {
    "data_source": "string",
    "prompt": _MESSAGES,
    "ability": "string",
    "reward_model": {"ground_truth": "string", "style": "string"},
}
RL_SHAPE: Row = {
    **_SHARED,
    "extra_info": {
        "entry_point": "string",
        "level": ANY,
        "module_name": "string",
        "ops": "string",
        "original_prompt": ANY,
        "repo_name": "string",
        "type": ANY,
        "uuid": ANY,
    },
}
VALIDATION_SHAPE: Row = {
    **_SHARED,
    "extra_info": {"difficulty": ANY, "name": "string", "problem_id": ANY},
}


def read_coldstart(row: Row, problem: str) -> tuple[Problem, list[Turn], Row]:
    """Return the problem of a row, its turns, and what else it says.

    Nothing of it was judged by us, so no turn has a verdict.

    Raises:
        KeyError, TypeError, ValueError, ProblemError: it is no such row.
    """
    text = row["original_python_code"]
    if not isinstance(text, str):
        raise TypeError(f"original_python_code is {type(text).__name__}, not text")
    made = parse_problem(text, problem, problem.replace("/", "-"), problem)
    messages = _messages(row["messages"])
    if [item["role"] for item in messages] != ["user", "assistant"] * (len(messages) // 2):
        roles = [item["role"] for item in messages]
        raise ValueError(f"messages do not alternate between user and assistant: {roles[:4]}")
    if not messages:
        raise ValueError("it has no messages")
    rest = {key: row[key] for key in row if key not in ("messages", "original_python_code")}
    return made, _turns(messages, problem), rest


def _messages(given: Any) -> list[dict[str, str]]:  # noqa: ANN401 - of a foreign file
    found = json.loads(given) if isinstance(given, str) else given
    if not isinstance(found, list):
        raise TypeError(f"messages are {type(found).__name__}, not a list")
    for item in found:
        if not isinstance(item["role"], str) or not isinstance(item["content"], str):
            raise TypeError("a message has no role or no text")
        if item["role"] == "user" and not item["content"]:
            raise ValueError("a message of the user is empty")
    return found


def _turns(messages: Sequence[dict[str, str]], problem: str) -> list[Turn]:
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
            shown_turns=earlier,
            prompt_override=messages[place]["content"],
        )
        reply = Reply(text=messages[place + 1]["content"], model="imported")
        turns.append(Turn(ask=ask, reply=reply, feedback=after))
    return turns


def coldstart_row(problem: Problem, prompt: list[Row], turns: Sequence[Turn], rest: Row) -> Row:
    """Return a trajectory as a row of the cold start.

    Args:
        problem: of the kind `module`; the format knows no other.
        prompt: what the last turn was shown.
        turns: those in the prompt, and the last one.
        rest: what an imported row said beside it; empty for a run of ours, whose fields are made:
            numbers of rounds begin at 1, and what was not measured is null.

    Raises:
        ProblemError: the problem is of another kind.
    """
    _require_module(problem)
    last = turns[-1]
    assert last.reply is not None
    text = last.reply.text if last.ask.prompt_override else spoken(last.reply.text).strip()
    messages = [*prompt, {"role": "assistant", "content": text}]
    for message, turn in zip(messages[1::2], turns, strict=True):
        if turn.ask.prompt_override and turn.reply is not None:
            message["content"] = turn.reply.text
    if rest:
        return {"messages": messages, "original_python_code": problem.source.text, **rest}
    best = max(enumerate(turns, 1), key=lambda item: _speed(item[1]) or 0.0)
    return {
        "messages": messages,
        "uuid": _number_of(problem),
        "entry_point": "Model",
        "repo_name": "",
        "module_name": problem.id,
        "final_speedup": _speed(last),
        "num_rounds": len(turns),
        "original_python_code": problem.source.text,
        "best_round": best[0] if _speed(best[1]) is not None else None,
        "timestamp": None,
        "conversion_mode": "tilewright",
        "enable_thinking": False,
    }


def _speed(turn: Turn) -> float | None:
    found: EvalSummary | None = turn.judgements[0] if turn.judgements else None
    return found.speedup if found is not None and found.verdict == "correct" else None


def _number_of(problem: Problem) -> int:
    """Return a number of 63 bits that names a problem."""
    return int(digest_text(problem.id)[:16], 16) >> 1


def _require_module(problem: Problem) -> None:
    if problem.kind != "module":
        raise ProblemError(f"{problem.id}: the format holds problems with a class `Model` alone")


def read_prompt(row: Row, problem: str) -> tuple[Problem, Row]:
    """Return the problem of a row of `rl` or `validation`, and what else it says.

    Raises:
        KeyError, TypeError, ValueError, ProblemError: it is no such row.
    """
    model = row["reward_model"]
    model = json.loads(model) if isinstance(model, str) else dict(model)
    text = model.pop("ground_truth")
    if not isinstance(text, str):
        raise TypeError(f"ground_truth is {type(text).__name__}, not text")
    if not _messages(row["prompt"]):
        raise ValueError("its prompt is empty")
    made = parse_problem(text, problem, problem.replace("/", "-"), problem)
    return made, {**row, "prompt": _messages(row["prompt"]), "reward_model": model}


def prompt_row(problem: Problem, language: str | None, rest: Row, kind: Kind) -> Row:
    """Return a problem as a row of `rl` or `validation`.

    Args:
        problem: of the kind `module`.
        language: in which candidates are to be written.
        rest: what an imported row said beside it; empty for a problem of ours.
        kind: which of the two.

    Raises:
        ProblemError: the problem is of another kind.
    """
    _require_module(problem)
    if rest:
        return {**rest, "reward_model": {"ground_truth": problem.source.text,
                                         **rest.get("reward_model", {})}}  # fmt: skip
    extra: Row
    if kind == "drkernel-validation":
        extra = {"difficulty": None, "name": problem.id, "problem_id": _number_of(problem)}
    else:
        work = shapes_and_operators(problem)
        operators = [] if work is None else list(work[work.index("|") + 1 :])
        extra = {
            "entry_point": "Model",
            "level": None,
            "module_name": problem.id,
            "ops": json.dumps(operators),
            "original_prompt": None,
            "repo_name": "",
            "type": None,
            "uuid": _number_of(problem),
        }
    return {
        "data_source": problem.id.partition("/")[0],
        "prompt": [{"role": "user", "content": opening(problem, language)}],
        "ability": "kernel_optimization",
        "reward_model": {"ground_truth": problem.source.text, "style": "rule"},
        "extra_info": extra,
    }


def name_of(row: Row, kind: Kind, number: int) -> str:
    """Return what a row's problem is called: by its own number where it has one."""
    if kind == "drkernel-coldstart":
        return f"coldstart/{_plain(row.get('uuid'), number)}"
    extra = row.get("extra_info")
    extra = extra if isinstance(extra, dict) else {}
    word = "validation" if kind == "drkernel-validation" else "rl"
    key = "problem_id" if kind == "drkernel-validation" else "uuid"
    return f"{word}/{_plain(extra.get(key), number)}"


def _plain(value: Any, number: int) -> str:  # noqa: ANN401 - of a foreign file
    text = str(number if value is None else value)
    return "".join(char if char.isalnum() and char.isascii() else "-" for char in text)[:80]


def beside(folder: Path) -> Path:
    """Return the file that holds what imported rows said beside their turns."""
    return folder / "imported.jsonl"
