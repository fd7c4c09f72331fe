"""Episodes in the event log: a turn for each choice, and one for the program that follows it.

They have the form of a search with the strategy `mtmc`, so that readers of searches read them.
`train replay` computes rewards and advantages from these turns and the settings of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tilewright.errors import RecordError
from tilewright.languages.actions import STOP
from tilewright.loop.strategies.mtmc import CODER, DECIDER, QUESTION
from tilewright.records.base import digest_text
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, EvalSummary, Reply, RunStarted, Turn, TurnFinished
from tilewright.rl.choices.action_tree import ActionNode, ActionTree
from tilewright.rl.choices.choice_batches import ROOT, ChoiceEpisode, MadeChoice
from tilewright.rl.choices.choice_episodes import EpisodeRules, known_rung
from tilewright.rl.choices.episode_records import EpisodeRecord
from tilewright.scoring.ladder import Rung

KIND = "choices"
"""Kind of such a run, in its first event."""
STEP, SCORE = "step", "score"
"""Beginnings of the names of batches: those that are trained on, and values on trees."""
SHARED = ("greedy", "sampled", "uniform", "first_action")
"""Policies whose share of the best value is a figure."""
LANGUAGE = "triton"
SCRIPT = "script"
"""Name of the coder in the log, so that no reader takes it for a model."""


def is_choice_run(folder: Path) -> bool:
    """Tell whether a run learns to choose, by the first event of its log."""
    begun = next(read_events(folder, left_out=lambda _: None), None)
    return isinstance(begun, RunStarted) and begun.kind == KIND


def root_turn(tree: ActionTree) -> Turn:
    """Return the turn of a tree's initial program."""
    ask = Ask(
        id=f"{ROOT}{tree.problem}",
        problem=tree.problem,
        form="action",
        operator="initial",
        policy=CODER,
    )
    return _program(ask, tree.by_id[tree.root])


def episode_turns(episode: ChoiceEpisode, model: str) -> Iterator[Turn]:
    """Yield the turns of an episode, in order."""
    for number, decision in enumerate(episode.decisions):
        base = Ask(
            id=decision.id,
            problem=episode.trajectory.problem,
            sample=episode.trajectory.sample,
            turn=number,
            role="choose",
            parents=(decision.parent,),
            form="action",
            instruction=QUESTION,
            operator="decide",
            policy=DECIDER,
            choices=decision.sentences,
        )
        sentence = decision.sentences[decision.choice.taken]
        reply = Reply(text=sentence, model=model)
        yield Turn(ask=base, reply=reply, choice=decision.choice)
        if decision.outcome.program is not None:
            yield _program(_code_ask(base, decision, sentence), decision.outcome.program)


def _code_ask(base: Ask, decision: MadeChoice, sentence: str) -> Ask:
    changes = {
        "id": decision.code_id,
        "role": "propose",
        "instruction": sentence,
        "operator": "edit",
        "policy": CODER,
        "choices": (),
    }
    return base.model_copy(update=changes)


def _program(ask: Ask, node: ActionNode) -> Turn:
    return Turn(
        ask=ask,
        language=LANGUAGE,
        source=digest_text(node.code),
        # The field `code` holds the program, so the log has it once.
        reply=Reply(text="", model=SCRIPT),
        code=node.code,
        feedback=node.feedback,
        judgements=(node.verdict,),
    )


def read_episodes(folder: Path, rules: EpisodeRules) -> dict[str, list[EpisodeRecord]]:
    """Return the episodes of a run by batch, with rewards computed from verdicts and rules.

    Raises:
        RecordError: a decision lacks its value, or a program its verdict.
    """
    turns = [event.turn for event in read_events(folder) if isinstance(event, TurnFinished)]
    verdicts = {turn.ask.id: turn.judgements[0] for turn in turns if turn.judgements}
    found: dict[str, dict[str, list[Turn]]] = {}
    for turn in turns:
        if turn.ask.role == "choose":
            batch, episode = turn.ask.id.partition("/")[0], turn.ask.id.rpartition(".")[0]
            steps = found.setdefault(batch, {}).setdefault(episode, [])
            steps.append(turn)
    return {
        batch: [_record(steps, verdicts, rules) for steps in episodes.values()]
        for batch, episodes in found.items()
    }


def _record(
    steps: Iterable[Turn], verdicts: Mapping[str, EvalSummary], rules: EpisodeRules
) -> EpisodeRecord:
    rewards, values, asks = list[float](), list[float](), list[str]()
    reached, programs = list[Rung | None](), list[EvalSummary]()
    problem, unknown = "", 0
    for turn in steps:
        ask, choice = turn.ask, turn.choice
        if choice is None or choice.value is None:
            raise RecordError(f"{ask.id} has no choice with a value of a critic")
        problem = ask.problem
        asks.append(ask.id)
        values.append(choice.value)
        after = verdicts.get(f"{ask.id}/code")
        if after is None:
            stopped = ask.choices[choice.taken] == STOP
            unknown += not stopped or len(ask.choices) == 1
            rewards.append(0.0)
            reached.append(None)
            continue
        before = verdicts.get(ask.parents[0])
        if before is None:
            raise RecordError(f"{ask.id}: its program {ask.parents[0]} has no verdict")
        rung = known_rung(before, after)
        rewards.append(rules.reward(rung, ask.turn))
        reached.append(rung)
        programs.append(after)
    return EpisodeRecord(
        problem,
        tuple(asks),
        tuple(rewards),
        tuple(values),
        tuple(reached),
        tuple(programs),
        unknown,
    )
