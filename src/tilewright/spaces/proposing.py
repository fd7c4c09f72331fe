"""Three programs that answer prompts as a model would, on a space of programs.

They read the text of a prompt and nothing else. `blind` moves one random knob of the parent by one
notch. `reader` copies a difference between a faster and a slower program that the prompt shows.
`clumsy` makes several changes at once and spoils some. Each follows an action, notes and a list of
tried changes with a probability.

Random values come from the generator of the request. So equal prompts get different answers, and a
resumed run gets the answers that it would have had.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.spaces.prompt_reading import Prompt, PromptMessage, read_prompt
from tilewright.spaces.space import Knobs, Space, Value, moves, source, spoiled

FOLLOWS = 0.8
"""Probability with which a proposer follows an action, notes, or a list of tried changes."""
COPIES = 0.7
"""Probability with which `reader` copies a difference between two shown programs."""
SURE = 0.8
"""Probability with which `clumsy` carries out one change without spoiling the program."""
MAX_CHANGES = 3
"""Most changes that `clumsy` makes at once, unless the prompt asks for one change."""
FIRST_MOVES = 0.7
"""Probability of each further move from the start when a prompt shows no program: 2.3 in the
mean, so that independent first answers differ."""
MAX_QUOTED_CHARS = 100
"""Characters of a line that a list of tried changes shows."""
UP = ("more", "larger", "increase", "raise", "higher", "deeper", "wider")
DOWN = ("fewer", "smaller", "reduce", "lower", "less", "decrease", "shorter")

Change = Callable[[Prompt, Knobs, random.Random], Knobs]
"""Returns another program than the given one."""


def blind(prompt: Prompt, parent: Knobs, draw: random.Random) -> Knobs:
    """Return a random neighbour of the parent, as far as possible one that the prompt asks for."""
    found = moves(prompt.space, parent)
    if prompt.tried and draw.random() < FOLLOWS:
        found = [item for item in found if not _is_tried(prompt, parent, item)] or found
    for text in (prompt.action, prompt.notes):
        if text and draw.random() < FOLLOWS:
            if stated := stated_values(prompt.space, text):
                return _with_stated(prompt.space, parent, stated, draw)
            if meant := _meant(prompt.space, parent, found, text):
                return draw.choice(meant)
    return draw.choice(found)


def reader(prompt: Prompt, parent: Knobs, draw: random.Random, copies: float = COPIES) -> Knobs:
    """Return the parent with one knob of the faster of two shown programs; else as `blind`.

    A knob counts in which both programs differ. If the parent has the value of the faster one, its
    knob moves one notch further in the same direction.
    """
    timed = [item for item in prompt.programs if item.speedup is not None]
    pairs = [
        (worse.knobs, better.knobs)
        for worse in timed
        for better in timed
        if (worse.speedup or 0.0) < (better.speedup or 0.0)
    ]
    if not pairs or draw.random() >= copies:
        return blind(prompt, parent, draw)
    worse, better = draw.choice(pairs)
    found = []
    for name, values in prompt.space.values.items():
        if worse[name] != better[name]:
            value = better[name]
            if parent[name] == value:
                step = 1 if values.index(value) > values.index(worse[name]) else -1
                place = values.index(value) + step
                value = values[place] if 0 <= place < len(values) else value
            changed = {**parent, name: value}
            if changed != parent and prompt.space.allows(changed):
                found.append(changed)
    return draw.choice(found) if found else blind(prompt, parent, draw)


def several(prompt: Prompt, parent: Knobs, draw: random.Random) -> Knobs:
    """Return the parent after as many moves as the prompt allows, at least one."""
    count = 1 if prompt.is_single else draw.randint(1, MAX_CHANGES)
    changed = parent
    for _ in range(count):
        changed = blind(prompt, changed, draw)
    return changed if changed != parent else blind(prompt, parent, draw)


def first_program(space: Space, draw: random.Random) -> Knobs:
    """Return the start of a space after a random number of moves, at least one."""
    knobs = draw.choice(moves(space, dict(space.start)))
    while draw.random() < FIRST_MOVES:
        knobs = draw.choice(moves(space, knobs))
    return knobs


def stated_values(space: Space, text: str) -> dict[str, Value]:
    """Return the values of knobs that a text states as `name = value`."""
    found: dict[str, Value] = {}
    for name, values in space.values.items():
        by_text = {str(value): value for value in values}
        for match in re.finditer(rf"\b{name} ?= ?(\w+)", text, re.IGNORECASE):
            if match[1] in by_text:
                found[name] = by_text[match[1]]
    return found


def summary_of(prompt: Prompt) -> str:
    """Return a summary of the shown programs: the knobs in which the fastest one is special."""
    timed = sorted(
        (item for item in prompt.programs if item.speedup is not None),
        key=lambda item: item.speedup or 0.0,
    )
    lines = []
    if len(timed) > 1:
        worst, best = timed[0].knobs, timed[-1].knobs
        lines = [f"- {name} = {best[name]}" for name in best if best[name] != worst[name]]
    text = "\n".join(["The fastest program differs from the slowest one by:", *lines])
    return f"<reasoning>The programs were compared.</reasoning>\n<summary>\n{text}\n</summary>"


def answer_text(prompt: Prompt, code: str) -> str:
    """Return the reply in the form that the prompt asks for."""
    tag, before = prompt.space.tag, prompt.parent_text
    if prompt.wants_patch and before:
        return f"<<<<<<< SEARCH\n{before}=======\n{code.rstrip()}\n>>>>>>> REPLACE\n"
    return f"The whole file:\n\n```{tag}\n{code.rstrip()}\n```\n"


@dataclass(frozen=True)
class Behaviour:
    """How a proposer changes a program, and with which probability a change does not spoil it."""

    change: Change
    sure: float = 1.0


def respond(messages: Sequence[PromptMessage], behaviour: Behaviour, draw: random.Random) -> str:
    """Return the reply to a prompt; one without a known problem gets no program."""
    prompt = read_prompt(messages)
    if prompt is None:
        return "The prompt shows no problem that I know, so I write no program."
    return reply(prompt, behaviour, draw)


def reply(prompt: Prompt, behaviour: Behaviour, draw: random.Random) -> str:
    """Return the reply to a prompt: a choice, a summary or a program."""
    if prompt.choices:
        return str(draw.randint(1, prompt.choices))
    if prompt.wants_summary:
        return summary_of(prompt)
    space, parent = prompt.space, prompt.parent
    if prompt.number is not None:
        every = list(space.by_digest.values())
        changed = every[prompt.number % len(every)]
    elif parent is None:
        changed = first_program(space, draw)
    else:
        changed = behaviour.change(prompt, parent, draw)
    before = space.start if parent is None else parent
    count = sum(changed[name] != before[name] for name in changed)
    code = source(space, changed)
    if any(draw.random() >= behaviour.sure for _ in range(count)):
        code = spoiled(code)
    return answer_text(prompt, code)


def _meant(space: Space, parent: Knobs, found: Sequence[Knobs], text: str) -> list[Knobs]:
    """Return the moves of knobs that a text means by one of their words, in its direction."""
    words = text.casefold()
    named = {name for name in space.values if any(word in words for word in space.words[name])}
    up, down = (any(word in words for word in given) for given in (UP, DOWN))
    meant = []
    for item in found:
        name = next(name for name in item if item[name] != parent[name])
        values = space.values[name]
        rises = values.index(item[name]) > values.index(parent[name])
        if name in named and (up == down or rises == up):
            meant.append(item)
    return meant


def _with_stated(
    space: Space, parent: Knobs, stated: dict[str, Value], draw: random.Random
) -> Knobs:
    """Return the parent with one stated value that it does not have; else a neighbour."""
    changed = [{**parent, name: value} for name, value in stated.items() if parent[name] != value]
    legal = [item for item in changed if space.allows(item)]
    return draw.choice(legal or moves(space, parent))


def _is_tried(prompt: Prompt, parent: Knobs, changed: Knobs) -> bool:
    """Tell whether a list of tried changes shows the lines of a move."""
    old, new = (
        {line.strip()[:MAX_QUOTED_CHARS] for line in source(prompt.space, knobs).splitlines()}
        for knobs in (parent, changed)
    )
    return any(lines & (new - old) and lines <= old ^ new for lines in prompt.tried)
