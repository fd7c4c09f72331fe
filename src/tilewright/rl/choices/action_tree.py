"""Action trees: programs with their verdicts, and the edits that lead from one to another.

MTMC (QiMeng-Kernel, arXiv 2511.20100, section on the environment) trains its decider on such trees.
Learning from rewards is look-ups then: no coder and no GPU takes part. Equal programs are one
node, so a tree may hold circles. A file of trees is JSON lines, one tree each. No torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from tilewright.errors import ConfigError, RecordError, writing
from tilewright.languages.actions import STOP
from tilewright.records.base import Record
from tilewright.records.events import EvalSummary
from tilewright.records.field_faults import first_fault


class ActionEdge(Record):
    """One action on a program, and where it leads."""

    sentence: str = Field(min_length=1)
    """The action as the decider reads it."""
    child: str
    """The program that the exact edit gives."""
    failures: tuple[str, ...] = ()
    """Programs that a failed edit gives, each equally likely."""


class ActionNode(Record):
    """One program with its verdict."""

    id: str
    code: str
    feedback: str = ""
    verdict: EvalSummary
    edges: tuple[ActionEdge, ...] = ()
    """The legal actions; none of a program that is not correct."""

    @property
    def is_correct(self) -> bool:
        """Whether the program takes the place of the one before it."""
        return self.verdict.verdict == "correct"

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The choices on this program: its actions, then `stop`."""
        return (*(edge.sentence for edge in self.edges), STOP)

    @model_validator(mode="after")
    def _sentences_differ(self) -> ActionNode:
        counts = Counter(edge.sentence for edge in self.edges)
        if STOP in counts:
            raise ValueError(f"node {self.id}: {STOP!r} ends an episode and is no action")
        if twice := [sentence for sentence, count in counts.items() if count > 1]:
            raise ValueError(f"node {self.id} has two actions {twice[0]!r}")
        return self


class ActionTree(Record):
    """The programs of one problem that are reached from one of them."""

    problem: str
    opening: str
    """The problem as the decider reads it."""
    root: str
    nodes: tuple[ActionNode, ...]

    @cached_property
    def by_id(self) -> dict[str, ActionNode]:
        """The nodes by id."""
        return {node.id: node for node in self.nodes}

    @model_validator(mode="after")
    def _edges_lead_somewhere(self) -> ActionTree:
        known = {node.id for node in self.nodes}
        if len(known) < len(self.nodes):
            raise ValueError(f"the tree of {self.problem} has two nodes of one id")
        named = {self.root}
        named |= {edge.child for node in self.nodes for edge in node.edges}
        named |= {name for node in self.nodes for edge in node.edges for name in edge.failures}
        if lacking := sorted(named - known):
            raise ValueError(f"the tree of {self.problem} has no node {lacking[0]}")
        if not self.by_id[self.root].is_correct:
            raise ValueError(f"the root of the tree of {self.problem} is not correct")
        return self


def read_trees(path: Path) -> list[ActionTree]:
    """Return the trees in a file.

    Raises:
        ConfigError: there is no such file, or no tree in it.
        RecordError: a line is no tree; the message names it.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: no such file, or no text") from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(ActionTree.model_validate_json(line))
        except ValidationError as error:
            raise RecordError(f"{path}:{number}: {first_fault(error)}") from error
    if not found:
        raise ConfigError(f"{path} has no tree")
    return found


def write_trees(path: Path, trees: Iterable[ActionTree]) -> None:
    """Write trees; the file is there as a whole or not at all."""
    fresh = path.with_suffix(".new")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{tree.model_dump_json(exclude_defaults=True)}\n" for tree in trees)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
