"""A tree of programs: each node is the program that one request wrote from its parent's.

KernelEvolve (Meta, arXiv 2512.23236, section on the search) defines a fitness and lets the selector
vary: greedy, UCT or evolution. A program that does not build, computes wrong or fails has fitness 0
and stays in the tree as a buggy node, to be repaired. The paper gives no constants.
"""

from __future__ import annotations

import math
import random
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Value = Literal["max", "mean"]


@dataclass(slots=True, eq=False)
class Node:
    """A judged program, and the statistics of its subtree."""

    name: str
    number: int
    """Place in the order of admission; of equal nodes the earlier is taken."""
    parent: Node | None
    fitness: float
    buggy: bool
    debug_depth: int
    """Number of buggy ancestors in a row."""
    children: list[Node] = field(default_factory=list)
    attempts: int = 0
    """Requests made from it, also those without a result and those that repeated a program."""
    visits: int = 1
    """Results in its subtree, its own among them."""
    pending: int = 0
    """Requests in its subtree without a result: a virtual loss, so that others go elsewhere."""
    total: float = 0.0
    """Sum of the fitness of all results in its subtree."""
    highest: float = 0.0
    """Largest fitness in its subtree."""
    width: float = 1.0
    """1 / sqrt(visits + pending), kept because every selection reads it."""

    def upwards(self) -> Iterator[Node]:
        """Yield the node and its ancestors."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


ROOT = ""
"""The name under which the tree keeps the leader of its drafts."""
Scored = tuple[float, int, str]
"""Score, minus the number so that of equal ones the earlier ranks higher, and the name."""


@dataclass(frozen=True)
class UctRules:
    """The constants of a choice by UCT."""

    exploration: float
    value: Value
    scale: float
    """Factor of fitness: the inverse of the best one."""

    def score(self, node: Node, reach: float) -> float:
        """Return the upper bound of a node; `reach` is C sqrt(ln N) of its parent."""
        # Pending requests count as visits that earn nothing.
        largest = self.value == "max"
        quality = node.highest if largest else node.total * node.width * node.width
        return quality * self.scale + reach * node.width


class Tree:
    """Judged programs by name. Lifetime: one run; replay rebuilds it.

    A node is exhausted after `max_children` requests; `None`: never. A buggy node is repaired only
    while fewer than `max_debug_depth` buggy ancestors precede it.
    """

    def __init__(self, max_debug_depth: int, max_children: int | None = None) -> None:
        self._max_debug_depth, self._max_children = max_debug_depth, max_children
        self._nodes: dict[str, Node] = {}
        self._ranked: list[tuple[float, int, str]] = []
        """Nodes that are not buggy: minus the fitness, number and name."""
        self.roots: list[Node] = []
        self.visits = 0
        """All results."""
        self.pending = 0
        self._changed: dict[str, None] = {ROOT: None}
        """Nodes whose children have another score than at the last choice by UCT."""
        self._leaders: dict[str, Scored] = {}
        """The open child with the highest score of each node, at that choice."""
        self._rules: UctRules | None = None

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def node(self, name: str) -> Node:
        """Return a node."""
        return self._nodes[name]

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes in the order of their admission."""
        return iter(self._nodes.values())

    def inner(self) -> Iterator[Node]:
        """Yield the nodes that have children."""
        return (node for node in self._nodes.values() if node.children)

    def expect(self, parent: str | None) -> None:
        """Count a request from a node, or a draft, until `settle`."""
        self._count_pending(parent, 1)
        if parent is not None:
            self._nodes[parent].attempts += 1
        self._note_change(parent)

    def settle(self, parent: str | None, *, judged: bool) -> None:
        """End what `expect` began. Without a verdict the request counts as never made."""
        self._count_pending(parent, -1)
        if parent is not None and not judged:
            self._nodes[parent].attempts -= 1
        self._note_change(parent)

    def add(self, name: str, parent: str | None, fitness: float, *, buggy: bool) -> Node:
        """Admit a judged program. A buggy one has fitness 0."""
        above = None if parent is None else self._nodes[parent]
        depth = above.debug_depth + 1 if above is not None and above.buggy else 0
        fitness = 0.0 if buggy else fitness
        node = Node(name, len(self._nodes), above, fitness, buggy, depth)
        node.total = node.highest = fitness
        self._nodes[name] = node
        (self.roots if above is None else above.children).append(node)
        self.repeat(parent, fitness)
        if not buggy:
            insort(self._ranked, (-fitness, node.number, name))
        return node

    def repeat(self, parent: str | None, fitness: float) -> None:
        """Count a result of a node's child that is no new program."""
        self._note_change(parent)
        self.visits += 1
        for node in self._nodes[parent].upwards() if parent is not None else ():
            node.visits += 1
            node.total += fitness
            node.highest = max(node.highest, fitness)
            _set_width(node)

    def rescore(self, name: str, fitness: float, *, buggy: bool) -> None:
        """Replace the fitness of a node after a further trial."""
        node = self._nodes[name]
        if not node.buggy:
            self._ranked.remove((-node.fitness, node.number, name))
        fitness = 0.0 if buggy else fitness
        change = fitness - node.fitness
        node.fitness, node.buggy = fitness, buggy
        if not buggy:
            insort(self._ranked, (-node.fitness, node.number, name))
        self._note_change(name)
        for each in node.upwards():
            each.total += change
            each.highest = max((each.fitness, *(child.highest for child in each.children)))

    def best(self) -> Node | None:
        """Return the fittest node that is not buggy; of equal ones the earlier."""
        return self._nodes[self._ranked[0][2]] if self._ranked else None

    def ranked(self) -> Iterator[Node]:
        """Yield the nodes that are not buggy, fittest first."""
        return (self._nodes[name] for _, _, name in self._ranked)

    def leaders(self, rules: UctRules) -> dict[str, Scored]:
        """Return the open child with the highest score of each node that has one.

        A result changes the scores along one path alone, so that few are computed again.
        """
        if rules != self._rules:
            self._rules = rules
            self._changed = dict.fromkeys((ROOT, *(node.name for node in self.inner())))
        for name in self._changed:
            node = self._nodes[name] if name else None
            visits = self.visits + self.pending if node is None else node.visits + node.pending
            reach = rules.exploration * math.sqrt(math.log(max(visits, 1)))
            found: Scored | None = None
            for child in self.roots if node is None else node.children:
                scored = (rules.score(child, reach), -child.number, child.name)
                if (found is None or scored > found) and self.is_open(child):
                    found = scored
            if found is None:
                self._leaders.pop(name, None)
            else:
                self._leaders[name] = found
        self._changed = {}
        return self._leaders

    def _note_change(self, name: str | None) -> None:
        """Note that the scores of a node, of its ancestors and of their children changed."""
        self._changed[ROOT] = None
        for node in self._nodes[name].upwards() if name is not None else ():
            self._changed[node.name] = None

    def is_open(self, node: Node) -> bool:
        """Tell whether a selector may take a node."""
        if node.buggy and node.debug_depth >= self._max_debug_depth:
            return False
        return self._max_children is None or node.attempts < self._max_children

    def _count_pending(self, name: str | None, change: int) -> None:
        self.pending += change
        for node in self._nodes[name].upwards() if name is not None else ():
            node.pending += change
            _set_width(node)


def _set_width(node: Node) -> None:
    node.width = 1 / math.sqrt(node.visits + node.pending)


def uct_score(value: float, visits: int, parent_visits: int, exploration: float) -> float:
    """Return Q + C sqrt(ln N(parent) / N), the upper bound of UCT; infinite without a visit.

    The rule is that of Kocsis and Szepesvari 2006, "Bandit based Monte-Carlo Planning", section 2.
    """
    if visits == 0:
        return math.inf
    return value + exploration * math.sqrt(math.log(max(parent_visits, 1)) / visits)


def uct(tree: Tree, exploration: float, value: Value) -> Node | None:
    """Return the open node with the highest UCT score in the whole tree; of equal ones the earlier.

    Q is the mean or the largest fitness of the node's subtree, divided by the best fitness. Every
    node competes, since each may get another child. The parent of a draft is the whole tree.
    """
    best = tree.best()
    scale = 1 / best.fitness if best is not None and best.fitness > 0 else 1.0
    found = max(tree.leaders(UctRules(exploration, value, scale)).values(), default=None)
    return tree.node(found[2]) if found is not None else None


def greedy(tree: Tree) -> Node | None:
    """Return the fittest open node; without one a buggy node with the fewest repairs."""
    for node in tree.ranked():
        if tree.is_open(node):
            return node
    buggy = (node for node in tree.nodes() if node.buggy and tree.is_open(node))
    return min(buggy, key=lambda node: (node.attempts, node.number), default=None)


def tournament(tree: Tree, size: int, draw: random.Random) -> Node | None:
    """Return the fittest of `size` open nodes that are drawn; of equal ones the earlier."""
    nodes = [node for node in tree.nodes() if tree.is_open(node)]
    drawn = draw.sample(nodes, min(size, len(nodes)))
    # A buggy node ranks below every other one.
    return max(drawn, key=lambda node: (not node.buggy, node.fitness, -node.number), default=None)


def lineage(node: Node) -> tuple[str, ...]:
    """Return the names from the draft down to a node."""
    return tuple(each.name for each in node.upwards())[::-1]
