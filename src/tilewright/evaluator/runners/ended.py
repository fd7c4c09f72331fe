"""How an evaluation ends before its last stage."""

from __future__ import annotations

from tilewright.records import Outcome

__all__ = ["EvaluationEnded"]


class EvaluationEnded(Exception):
    """An evaluation is over; `outcome` says how. It is control flow, not an error of tilewright."""

    def __init__(
        self, outcome: Outcome, runner: str = "candidate", *, reused: bool = False
    ) -> None:
        super().__init__(outcome.verdict)
        self.outcome = outcome
        self.runner = runner
        """The runner that ended it: a baseline's failure is not the candidate's."""
        self.reused = reused
        """Whether the runner served an earlier evaluation, which may explain the failure."""
