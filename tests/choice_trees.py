"""Action trees made by hand, for tests of learning to choose."""

from __future__ import annotations

from tilewright.records.codes import FailureReason, Stage
from tilewright.records.events import EvalSummary
from tilewright.rl.choices.action_tree import ActionEdge, ActionNode, ActionTree


def timed(speedup: float) -> EvalSummary:
    """Return the verdict of a correct program."""
    return EvalSummary(protocol="strict", verdict="correct", speedup=speedup)


def unbuilt() -> EvalSummary:
    """Return the verdict of a program that does not compile."""
    return EvalSummary(
        protocol="strict", verdict="failed", code=FailureReason.BUILD, stage=Stage.BUILD
    )


def wrong() -> EvalSummary:
    """Return the verdict of a program that computes something else."""
    return EvalSummary(protocol="strict", verdict="incorrect")


def node(name: str, verdict: EvalSummary, **edges: tuple[str, ...]) -> ActionNode:
    """Return a node; each edge is a sentence with its child, then the failures."""
    made = [
        ActionEdge(sentence=sentence, child=child, failures=tuple(failures))
        for sentence, (child, *failures) in edges.items()
    ]
    return ActionNode(id=name, code=f"# {name}\n", feedback=name, verdict=verdict, edges=made)


def small_tree(problem: str = "p") -> ActionTree:
    """Return a slow program, two faster ones, and a wrong and a broken one."""
    return ActionTree(
        problem=problem,
        opening=f"problem {problem}",
        root="slow",
        nodes=(
            node("slow", timed(1.0), tile=("fast", "broken"), fuse=("wrong",), warps=("best",)),
            node("fast", timed(1.5), warps=("best", "broken"), undo=("slow",)),
            node("best", timed(2.0), undo=("slow", "broken", "wrong")),
            node("wrong", wrong()),
            node("broken", unbuilt()),
        ),
    )


def circle() -> ActionTree:
    """Return two programs that lead to each other, so that every second step is faster."""
    return ActionTree(
        problem="circle",
        opening="circle",
        root="slow",
        nodes=(
            node("slow", timed(1.0), go=("fast",)),
            node("fast", timed(2.0), back=("slow",)),
        ),
    )
