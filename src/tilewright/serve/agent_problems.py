"""The problems that a coding agent works on: one run for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.problems.description import about
from tilewright.records import Problem
from tilewright.serve.agent_answers import (
    BestCode,
    EvaluatedTurn,
    History,
    ProblemFacts,
    ProblemList,
    ToolAnswer,
    TurnFacts,
    problem_facts,
)
from tilewright.serve.agent_session import AgentRun

MAX_LISTED = 40
"""Problems of one list, about 2,000 tokens."""


class AgentProblems:
    """The runs on which the tools of an agent act. Lifetime: one MCP connection.

    Args:
        open_run: returns the run for an address; `ProblemError` if it is no problem's.
        known: returns the problems that the agent can choose.
        address: the problem to begin with; `None`: the agent chooses one.
    """

    def __init__(
        self,
        open_run: Callable[[str], AgentRun],
        known: Callable[[], Iterable[Problem]],
        address: str | None = None,
    ) -> None:
        self._open_run, self._known = open_run, known
        self._runs: dict[str, AgentRun] = {}
        self._run: AgentRun | None = None
        self.fixed = address is not None
        """Whether the person who started the server has chosen the problem."""
        if address is not None:
            self.choose(address)

    @property
    def doing(self) -> str:
        """The latest step of the running evaluation."""
        return "" if self._run is None else self._run.doing

    @property
    def folders(self) -> list[Path]:
        """The run folders, in the order in which the problems were chosen."""
        return [run.folder for run in self._runs.values() if run.folder is not None]

    def problems(self, matching: str) -> ToolAnswer[ProblemList]:
        """List problems whose address or description has every word of `matching`."""
        words = matching.casefold().split()
        found = [item for item in self._known() if _matches(item, words)]
        shown = tuple(problem_facts(item) for item in found[:MAX_LISTED])
        lines = [f"{item.address}: {item.about or item.entry}" for item in shown]
        if len(found) > MAX_LISTED:
            lines.append(f"({len(found) - MAX_LISTED} more; give words to match)")
        text = "\n".join(lines) or f"No problem matches {matching!r}."
        return ToolAnswer(text, ProblemList(problems=shown, matching=len(found)))

    def choose(self, address: str) -> ToolAnswer[ProblemFacts]:
        """Work on the problem at an address from now on; its earlier turns still count."""
        run = self._open_run(address)
        self._run = self._runs.setdefault(run.address, run)
        return self._run.problem()

    def evaluate(self, code: str) -> ToolAnswer[EvaluatedTurn]:
        """Judge a candidate, as `AgentRun.evaluate`."""
        return self._chosen().evaluate(code)

    def explain(self, turn: int) -> ToolAnswer[TurnFacts]:
        """Explain a turn, as `AgentRun.explain`."""
        return self._chosen().explain(turn)

    def problem(self) -> ToolAnswer[ProblemFacts]:
        """Show the chosen problem."""
        return self._chosen().problem()

    def history(self) -> ToolAnswer[History]:
        """List the turns of the chosen problem."""
        return self._chosen().history()

    def best_code(self) -> ToolAnswer[BestCode]:
        """Return the best source for the chosen problem."""
        return self._chosen().best_code()

    def stop(self) -> None:
        """Repeat no evaluation, and store nothing of a running one."""
        for run in self._runs.values():
            run.stop()

    def close(self) -> None:
        """Close the logs; no evaluation may run any more."""
        for run in self._runs.values():
            run.close()

    def _chosen(self) -> AgentRun:
        if self._run is None:
            raise ConfigError(
                "no problem is chosen: `problems` lists some, and `choose_problem` chooses one"
            )
        return self._run


def _matches(problem: Problem, words: list[str]) -> bool:
    text = f"{problem.id} {problem.category} {problem.description}"
    if words and not problem.description:
        text = f"{text} {about(problem)}"
    # Names in code have no spaces: "layer norm" is to find `layernorm` and `layer_norm`.
    text = re.sub(r"[\W_]+", " ", text.casefold())
    return all(word in text for word in words)
