"""The three data sets of Dr. Kernel (hkust-nlp, on the Hugging Face Hub), read and written.

`coldstart` has conversations of five turns. `rl` has prompts with their references, as verl reads
them, and `validation` the same for KernelBench level 2. An export writes again what an import read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from tilewright.languages.reply_parser import spoken
from tilewright.loop.prompts.opening import opening
from tilewright.loop.table_input import ANY
from tilewright.problems.loader import parse_problem
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.events import Ask, Reply, Turn
from tilewright.rl.data.contamination import shapes_and_operators
from tilewright.rl.data.conversations import MESSAGES, columns

Row = dict[str, Any]
Kind = Literal["drkernel-coldstart", "drkernel-rl", "drkernel-validation"]
FORMATS: tuple[Kind, ...] = get_args(Kind)
IMPORTED = "imported.jsonl"
"""The file of a run that holds the other fields of imported rows."""
COLDSTART_SHAPE: Row = {
    "messages": MESSAGES,
    **columns("uuid int64, entry_point string, repo_name string, module_name string"),
    **columns("final_speedup double, num_rounds int64, original_python_code string"),
    **columns("best_round int64, timestamp double, conversion_mode string, enable_thinking bool"),
}
_SHARED: Row = {
    "data_source": "string",
    "prompt": MESSAGES,
    "ability": "string",
    "reward_model": columns("ground_truth string, style string"),
}
RL_SHAPE: Row = {
    **_SHARED,
    "extra_info": columns(
        f"entry_point string, level {ANY}, module_name string, ops string, "
        f"original_prompt {ANY}, repo_name string, type {ANY}, uuid {ANY}"
    ),
}
VALIDATION_SHAPE: Row = {
    **_SHARED,
    "extra_info": columns(f"difficulty {ANY}, name string, problem_id {ANY}"),
}


def read_row(row: Row, kind: Kind, name: str) -> tuple[Problem, list[str], Row]:
    """Return the problem of a row under a name, the texts of its messages, and other fields.

    Rows of `rl` and `validation` have no messages besides the prompt, which stays in the fields.

    Raises:
        KeyError, TypeError, ValueError, ProblemError: the row is not of this format.
    """
    if kind == "drkernel-coldstart":
        text = row["original_python_code"]
        messages = _messages(row["messages"])
        roles = [item["role"] for item in messages]
        if roles != ["user", "assistant"] * (len(messages) // 2):
            raise ValueError(f"messages do not alternate between user and assistant: {roles[:4]}")
        texts = [item["content"] for item in messages]
        rest = {key: row[key] for key in row if key not in ("messages", "original_python_code")}
    else:
        model = row["reward_model"]
        model = json.loads(model) if isinstance(model, str) else dict(model)
        text, texts = model.pop("ground_truth"), []
        rest = {**row, "prompt": _messages(row["prompt"]), "reward_model": model}
    if not isinstance(text, str):
        raise TypeError(f"the reference is {type(text).__name__}, not text")
    return parse_problem(text, name, name.replace("/", "-"), name), texts, rest


def _messages(given: Any) -> list[dict[str, str]]:  # noqa: ANN401 - of a foreign file
    found = json.loads(given) if isinstance(given, str) else given
    if not isinstance(found, list):
        raise TypeError(f"messages are {type(found).__name__}, not a list")
    if not found:
        raise ValueError("there are no messages")
    for item in found:
        if not isinstance(item["role"], str) or not isinstance(item["content"], str):
            raise TypeError("a message has no role or no text")
        if item["role"] == "user" and not item["content"]:
            raise ValueError("a message of the user is empty")
    return found


def turns_from_texts(texts: Sequence[str], problem: str, sample: int) -> list[Turn]:
    """Return the turns, without a verdict, of a conversation whose user speaks first."""
    turns: list[Turn] = []
    # The message after a reply is its feedback.
    feedback = [*texts[2::2], ""] if texts else []
    for number, parts in enumerate(zip(texts[::2], texts[1::2], feedback, strict=True)):
        earlier = tuple(turn.ask.id for turn in turns)
        ask = Ask(
            id=f"{problem}#{sample}.{number}",
            problem=problem,
            sample=sample,
            turn=number,
            parents=earlier[-1:],
            shown_turns=earlier,
            prompt_override=parts[0],
        )
        reply = Reply(text=parts[1], model="imported")
        turns.append(Turn(ask=ask, reply=reply, feedback=parts[2]))
    return turns


def coldstart_row(problem: Problem, prompt: list[Row], turns: Sequence[Turn], rest: Row) -> Row:
    """Return a trajectory as a row of the cold start; the problem is of the kind `module`.

    `prompt` has the messages that the last of the `turns` was shown. Without `rest`, the other
    fields of an imported row, they are made from the turns; rounds are numbered from 1.
    """
    last = turns[-1]
    assert last.reply is not None
    text = last.reply.text if last.ask.prompt_override else spoken(last.reply.text).strip()
    messages = [*prompt, {"role": "assistant", "content": text}]
    for message, turn in zip(messages[1::2], turns, strict=True):
        if turn.ask.prompt_override and turn.reply is not None:
            message["content"] = turn.reply.text
    shared = {"messages": messages, "original_python_code": problem.source.text}
    if rest:
        return {**shared, **rest}
    firsts = [turn.judgements[0] if turn.judgements else None for turn in turns]
    speedups = [item.speedup if item and item.verdict == "correct" else None for item in firsts]
    best = max(range(len(turns)), key=lambda place: speedups[place] or 0.0)
    return {
        **shared,
        "uuid": _number_of(problem),
        "entry_point": "Model",
        "repo_name": "",
        "module_name": problem.id,
        "final_speedup": speedups[-1],
        "num_rounds": len(turns),
        "best_round": best + 1 if speedups[best] is not None else None,
        "timestamp": None,
        "conversion_mode": "tilewright",
        "enable_thinking": False,
    }


def _number_of(problem: Problem) -> int:
    """Return a number of 63 bits that identifies a problem."""
    return int(digest_text(problem.id)[:16], 16) >> 1


def prompt_row(problem: Problem, language: str | None, rest: Row, *, validation: bool) -> Row:
    """Return a problem of the kind `module` as a row; an imported one has other fields (`rest`)."""
    text = problem.source.text
    if rest:
        return {**rest, "reward_model": {"ground_truth": text, **rest.get("reward_model", {})}}
    if validation:
        extra: Row = {"difficulty": None, "name": problem.id, "problem_id": _number_of(problem)}
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
        "reward_model": {"ground_truth": text, "style": "rule"},
        "extra_info": extra,
    }


def name_of(row: Row, kind: Kind, number: int) -> str:
    """Return the name of a row's problem: its own number, or else the number of the row."""
    extra = row if kind == "drkernel-coldstart" else row.get("extra_info")
    key = "problem_id" if kind == "drkernel-validation" else "uuid"
    own = extra.get(key) if isinstance(extra, dict) else None
    text = str(number if own is None else own)
    plain = "".join(char if char.isalnum() and char.isascii() else "-" for char in text)
    return f"{kind.removeprefix('drkernel-')}/{plain[:80]}"


def imported_rows(folder: Path) -> Iterator[Row | None]:
    """Yield the other fields of imported rows, `None` for a damaged line; none in other runs."""
    if not (folder / IMPORTED).is_file():
        return
    with open(folder / IMPORTED, encoding="utf-8") as file:
        next(file, None)
        for line in file:
            row = None
            with suppress(ValueError):
                row = json.loads(line)
            yield row if isinstance(row, dict) else None
