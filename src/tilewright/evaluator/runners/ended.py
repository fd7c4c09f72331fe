"""How an evaluation ends before its last stage."""

from __future__ import annotations

from tilewright.records import Outcome

__all__ = ["EvaluationEnded"]


class EvaluationEnded(Exception):
    """An evaluation is over; `outcome` says how. Control flow inside the evaluator."""

    def __init__(self, outcome: Outcome, runner: str = "candidate", *, kept: bool = False) -> None:
        super().__init__(outcome.verdict)
        self.kept = kept
        """Whether the side had served before: then it may be our fault that it broke."""
        self.outcome = outcome
        self.runner = runner
        """Whose doing it was: a baseline's is not the candidate's fault."""
