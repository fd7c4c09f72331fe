"""Bar: contexts of sequential search compared, on real programs and stored verdicts of one run.

The policy reads only its prompt. With probability 0.4 it writes the program one better than the
best in its prompt, else the one worse; without any program it writes the first. Its context holds
the problem and five turns, as many as *Dr. Kernel* has in its first iteration (arXiv 2602.05885).
The reply to a longer prompt is empty, like that of a server that refuses the prompt.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import Bar
from tilewright.loop.feedback import JudgedAnswer, feedback
from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.conversation import conversation
from tilewright.loop.strategies import sequential
from tilewright.loop.strategies.base import Plan
from tilewright.problems.loader import parse_problem
from tilewright.records import Problem
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.scoring.report_text import speed_text
from tilewright.scoring.rewards import speed

STORED = Path(__file__).parent / "context_verdicts.json"
SEEDS, TURNS, W = 200, 14, 4
IMPROVES, FITS = 0.4, 5
CONTEXTS = ("vanilla", "last_w", "top_w")
MARK = re.compile(r"# rung (\d+)")
RATIO = re.compile(r"([\d.]+)x \[|\[([\d.]+), ([\d.]+)\]")


@dataclass(frozen=True)
class Ladder:
    """A problem with programs for it, the slowest first, and the verdict of each."""

    problem: Problem
    sources: tuple[str, ...]
    judgements: tuple[EvalSummary, ...]


def read_ladders(path: Path) -> list[Ladder]:
    """Return the ladders of one stored run on a GPU."""
    found = []
    for row in json.loads(path.read_text(encoding="utf-8"))["ladders"]:
        rungs = sorted(row["rungs"], key=lambda rung: float(rung["judgement"]["speedup"]))
        found.append(
            Ladder(
                parse_problem(row["problem"], row["name"], row["name"], "climb"),
                tuple(f"# rung {place}\n{rung['source']}" for place, rung in enumerate(rungs)),
                tuple(EvalSummary.from_json(json.dumps(rung["judgement"])) for rung in rungs),
            )
        )
    return found


def _write(messages: Sequence[Message], ladder: Ladder, choices: random.Random) -> str:
    """Return the reply of this benchmark's policy to a prompt."""
    if len(messages) > 1 + 2 * FITS:
        return ""
    seen = []
    for place in range(1, len(messages) - 1, 2):
        rung, shown = MARK.search(messages[place].text), RATIO.search(messages[place + 1].text)
        if rung and shown:
            ratio = float(shown[1]) if shown[1] else math.sqrt(float(shown[2]) * float(shown[3]))
            seen.append((ratio, int(rung[1])))
    step = 1 if choices.random() < IMPROVES else -1
    rung_now = max(seen)[1] + step if seen else 0
    rung_now = min(max(rung_now, 0), len(ladder.sources) - 1)
    return f"```python\n{ladder.sources[rung_now]}\n```"


def _judged(ask: Ask, text: str, ladder: Ladder) -> Turn:
    rung = MARK.search(text)
    if rung is None:
        summary = EvalSummary(protocol="strict", verdict="failed", reason="there is no code block")
        response = feedback(JudgedAnswer(summary, None, 0.0), "tilewright", 400)
    else:
        summary = ladder.judgements[int(rung[1])]
        assert summary.speedup is not None
        shown = speed_text(summary.speedup, summary.low, summary.high)
        response = f"Verdict: correct. Speed against eager PyTorch: {shown} (95 % interval)."
    return Turn(ask=ask, reply=Reply(text=text), feedback=response, judgements=(summary,))


def climb(ladder: Ladder, context: str, seed: int) -> list[float]:
    """Return the best speed-up after each turn of one trajectory; 0 before the first."""
    options = {"context": context, "w": W}
    plan = Plan(problem=ladder.problem.id, turns=TURNS, options=options)
    strategy = sequential.make(plan, lambda turn: speed(turn.judgements[0]))
    choices = random.Random(f"{seed} {ladder.problem.id}")
    turns: dict[str, Turn] = {}
    best, curve = 0.0, list[float]()
    while asks := strategy.ask(1):
        ask = asks[0]
        messages = conversation(ladder.problem, "triton", [turns[name] for name in ask.shown_turns])
        turn = _judged(ask, _write(messages, ladder, choices), ladder)
        turns[ask.id] = turn
        strategy.tell(turn)
        best = max(best, turn.judgements[0].speedup or 0.0)
        curve.append(best)
    return curve


def curves_of(ladders: Sequence[Ladder], seeds: int = SEEDS) -> dict[str, list[list[float]]]:
    """Return for each context and seed the best after each turn, as a mean over problems."""
    found: dict[str, list[list[float]]] = {}
    for context in CONTEXTS:
        rows = []
        for seed in range(seeds):
            curves = [climb(ladder, context, seed) for ladder in ladders]
            rows.append([sum(column) / len(column) for column in zip(*curves, strict=True)])
        found[context] = rows
        print(f"{context}: {_mean([row[-1] for row in rows]):.3f}", flush=True)
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _error(values: Sequence[float]) -> float:
    middle = _mean(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1) / len(values))


def bars(found: dict[str, list[list[float]]]) -> list[Bar]:
    """Compare the final best of two contexts, seed by seed."""
    made = []
    for better, worse in (("top_w", "last_w"), ("last_w", "vanilla")):
        pairs = zip(found[better], found[worse], strict=True)
        gaps = [one[-1] - other[-1] for one, other in pairs]
        low = _mean(gaps) - 2 * _error(gaps)
        text = f"{_mean(gaps):+.3f} +- {2 * _error(gaps):.3f} over {len(gaps)} seeds"
        made.append(Bar(f"climb: {better} over {worse}", "higher", text, low > 0))
    return made


def plot(found: dict[str, list[list[float]]]) -> str:
    """Return the curves as an SVG picture."""
    colours = {"vanilla": "#a16207", "last_w": "#0b6bcb", "top_w": "#15803d"}
    top = max(max(map(max, rows)) for rows in found.values())
    lines = []
    for place, (name, rows) in enumerate(found.items()):
        means = [_mean(column) for column in zip(*rows, strict=True)]
        points = " ".join(
            f"{60 + 26 * turn:.0f},{230 - 200 * value / top:.1f}"
            for turn, value in enumerate(means)
        )
        lines.append(
            f'<polyline points="{points}" fill="none" stroke="{colours[name]}" stroke-width="2"/>'
            f'<text x="{330}" y="{150 + 18 * place}" fill="{colours[name]}">{name}: '
            f"{means[-1]:.2f}x</text>"
        )
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 460 270" width="460" height="270" '
    frame = (
        '<rect width="460" height="270" fill="#fff"/>'
        '<line x1="50" y1="230" x2="440" y2="230" stroke="#888"/>'
        '<text x="60" y="250">turn 1</text><text x="380" y="250">turn 14</text>'
        '<text x="50" y="20">best of history, mean speed-up</text>'
    )
    return f'{head}font-family="sans-serif" font-size="12">{frame}{"".join(lines)}</svg>\n'


def run(only: str = "") -> list[Bar]:  # noqa: ARG001 - one table
    """Compare the contexts on the stored run."""
    if not STORED.exists():
        return [Bar("climb: a stored run", STORED.name, "missing", False)]
    return bars(curves_of(read_ladders(STORED)))
