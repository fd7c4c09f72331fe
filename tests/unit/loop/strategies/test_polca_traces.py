"""The strategy polca against golden traces of POLCA, with its proposals and its scores.

The traces come from OpenTrace, branch `experimental`, commit acb9719, which drove its search with a
scripted optimiser; the first line of the file tells how. Programs are numbers: a program is its own
embedding. `OpenTrace.LICENCE` beside the traces is the licence of that project.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from tilewright.loop.archives import heap
from tilewright.loop.archives.heap import Entry, FaithfulHeap, with_best_mean
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.phases import Phases
from tilewright.loop.strategies.polca import Polca, PolcaOptions, memory_of
from tilewright.records.events import EvalSummary, Reply, Turn

TRACES = Path(__file__).resolve().parents[3] / "golden" / "originals" / "polca.jsonl.gz"
LINES = gzip.decompress(TRACES.read_bytes()).decode().splitlines()
CASES = [json.loads(line) for line in LINES[1:]]
NAMES = {
    "long_term_memory_size": "memory",
    "memory_update_frequency": "merge_every",
    "short_term_memory_size": "short_memory",
    "validate_exploration_candidates": "validate_explored",
}
"""Our names of the original's options."""
START = 0.1
ENOUGH = 10_000
"""More requests than any case has."""


def name_of(case):
    extra = "".join(f",{NAMES[key]}" for key in sorted(case["extra"]) if key in NAMES)
    kind = f"{case['score']},{case['epsilon']},{'best' if case['use_best'] else 'heap'}"
    return f"{kind},{case['num_candidates']}x{case['num_proposals']}{extra},{case['seed']}"


def options_of(case):
    extra = {NAMES[key]: value for key, value in case["extra"].items() if key in NAMES}
    return PolcaOptions(
        candidates=case["num_candidates"],
        proposals=case["num_proposals"],
        epsilon=case["epsilon"],
        use_best=case["use_best"],
        priority=case["score"],
        score_max=1.0,
        summary=False,
        **extra,
    )


class Watched(FaithfulHeap):
    """Notes what each choice saw and took. Lifetime: one case."""

    def __init__(self, rules):
        super().__init__(rules)
        self.choices = []

    def choose(self, count, *, use_best):
        seen = [
            [-entry.minus_priority, entry.copy.embedding[0], len(entry.copy.scores)]
            for entry in self.array
        ]
        best = with_best_mean([entry.copy for entry in self.array])
        taken = super().choose(count, use_best=use_best)
        self.choices.append((seen, best.embedding[0], [copy.embedding[0] for copy in taken]))
        return taken


def played(case):
    """Return what our search chose in each iteration, with the case's proposals and scores."""
    scores, proposals = iter(case["rollouts"]), iter(case["proposals"])
    options = options_of(case)
    memory = Watched(memory_of(options)._rules)
    plan = Plan(problem="p", turns=ENOUGH)
    search = Polca(plan, lambda turn: turn.judgements[0].speedup or 0.0, options, memory)
    strategy = Phases(plan, search.search())
    values, rounds, before = {}, [{"offered": None, "kept": None}], ""
    while len(memory.choices) < len(case["iterations"]) and (asks := strategy.ask(1)):
        (ask,) = asks
        if ask.role == "draft":
            value = START
            if ask.parents:
                parent, value = next(proposals)
                assert values[ask.parents[0]] == pytest.approx(parent, abs=1e-9)
                if before != "propose":
                    rounds.append({"offered": [], "kept": []})
                rounds[-1]["offered"].append(value)
            turn = Turn(ask=ask, source=repr(value), embedding=(value,), reply=Reply(text="x"))
        else:
            value = values[ask.parents[0]]
            expected, score = next(scores)
            assert value == pytest.approx(expected, abs=1e-9)
            if ask.operator == "admit":
                rounds[-1]["kept"].append(value)
            said = EvalSummary(protocol="strict", verdict="correct", speedup=score or None)
            turn = Turn(ask=ask, source=repr(value), embedding=(value,), judgements=(said,))
        values[ask.id], before = value, ask.operator
        strategy.tell(turn)
        # The next phase begins, and with it a choice.
        strategy.ask(0)
    return memory.choices, rounds


def digest(array):
    return hashlib.sha256(json.dumps(array).encode()).hexdigest()[:16]


def differences(case):
    """Return the places of a case at which our search differs from the original."""
    choices, rounds = played(case)
    found = [] if len(choices) == len(case["iterations"]) else [f"{len(choices)} iterations"]
    for number, (wanted, (seen, best, taken)) in enumerate(
        zip(case["iterations"], choices, strict=False)
    ):
        ours = {"heap_digest": digest(seen), "best": best, "explored": taken}
        ours |= {key: rounds[number][key] for key in ("offered", "kept")} if number else {}
        if case["epsilon"] == 0 and number:
            del ours["kept"]
        found += [f"{number}: {key}" for key, value in ours.items() if wanted[key] != value]
    return found


@pytest.mark.parametrize("case", CASES, ids=map(name_of, CASES))
def test_the_search_equals_the_original(case):
    assert differences(case) == []


def test_an_older_program_first_among_equal_ones_is_another_search(monkeypatch):
    def turned(minus_priority, minus_number, copy):
        return Entry(minus_priority, -minus_number, copy)

    monkeypatch.setattr(heap, "Entry", turned)
    case = next(case for case in CASES if case["score"] == "ucb" and case["epsilon"] == 0)
    # With another choice the search asks for what the original did not do.
    with pytest.raises(AssertionError):
        played(case)


def test_all_kinds_of_cases_are_there():
    assert len(CASES) == 112
    assert all(len(case["iterations"]) == 50 for case in CASES)
