"""Action trees of the family nano, from a store of verdicts. No program runs. No torch.

The root is the slowest correct program that the store has of the problem: everything can improve
on it. Edges are single edits between programs of the store.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.errors import ConfigError
from tilewright.families.nano.compositions import composition_of
from tilewright.families.nano.problem_files import reference_of
from tilewright.families.nano.program_slots import FamilyProgram, is_typical
from tilewright.families.nano.program_text import render
from tilewright.families.nano.single_edits import HONEST, broken_edits, single_edits
from tilewright.problems.imported_sets import family_problems
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.events import EvalSummary
from tilewright.rl.book_world import feedback_of
from tilewright.rl.choices.action_tree import ActionEdge, ActionNode, ActionTree
from tilewright.rl.data.family_rows import EXTENTS, Extent
from tilewright.rl.verdict_store import VerdictStore

ID_CHARS = 16
"""Characters of a digest that name a node; a tree has some hundred nodes."""


def family_trees(group: str, store: VerdictStore, extent: Extent = "space") -> Iterator[ActionTree]:
    """Yield the tree of each problem of a group.

    Raises:
        ConfigError: the store has no correct program of a problem.
        KeyError: the family has no such group and no such problem.
    """
    for problem in family_problems(group):
        yield _tree(_Programs(problem, store, extent))


class _Programs:
    """The programs of a problem that a store has. Lifetime: one tree."""

    def __init__(self, problem: Problem, store: VerdictStore, extent: Extent) -> None:
        self.problem, self.store = problem, store
        self.texts: dict[FamilyProgram, str] = {}
        self.verdicts: dict[FamilyProgram, EvalSummary] = {}
        for program in EXTENTS[extent](composition_of(problem.id)):
            text = render(program)
            # A node has one verdict, so that each action has one reward: that of the first trial.
            if known := store.evaluations(problem, text):
                self.texts[program], self.verdicts[program] = text, known[0]

    def name(self, program: FamilyProgram) -> str:
        """Return the id of a program's node."""
        return digest_text(self.texts[program])[:ID_CHARS]

    def broken(self, program: FamilyProgram) -> tuple[FamilyProgram, ...]:
        """Return what a failed edit towards a program gives, as far as the store has it."""
        same = [item for item in broken_edits(program) if item in self.verdicts]
        known = self.verdicts
        typical = [item for item in known if item.plan == "broken" and is_typical(item)]
        return tuple(same or typical)


def _tree(programs: _Programs) -> ActionTree:
    correct = [
        program
        for program, found in programs.verdicts.items()
        if program.plan in HONEST and found.verdict == "correct" and found.speedup is not None
    ]
    if not correct:
        raise ConfigError(
            f"{programs.store.path} has no timed correct program of {programs.problem.id}; "
            "evaluate the census first"
        )
    root = min(correct, key=lambda item: programs.verdicts[item].speedup or 0.0)
    nodes: dict[str, ActionNode] = {}
    waiting = [root]
    while waiting:
        program = waiting.pop()
        if programs.name(program) in nodes:
            continue
        node, targets = _node(programs, program)
        nodes[node.id] = node
        waiting += targets
    return ActionTree(
        problem=programs.problem.id,
        opening=reference_of(composition_of(programs.problem.id)),
        root=programs.name(root),
        nodes=tuple(nodes[name] for name in sorted(nodes)),
    )


def _node(programs: _Programs, program: FamilyProgram) -> tuple[ActionNode, list[FamilyProgram]]:
    """Return the node of a program, and the programs that its edges name."""
    verdict, targets = programs.verdicts[program], list[FamilyProgram]()
    edges = []
    if verdict.verdict == "correct":
        for edit in single_edits(program):
            if edit.program in programs.verdicts:
                broken = programs.broken(edit.program)
                targets += [edit.program, *broken]
                failures = tuple(dict.fromkeys(map(programs.name, broken)))
                child = programs.name(edit.program)
                edges.append(ActionEdge(sentence=edit.sentence, child=child, failures=failures))
    node = ActionNode(
        id=programs.name(program),
        code=programs.texts[program],
        feedback=feedback_of(verdict),
        verdict=verdict,
        edges=tuple(edges),
    )
    return node, targets
