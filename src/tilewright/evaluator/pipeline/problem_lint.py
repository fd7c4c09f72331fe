"""The linter's trusted side: a judge, a problem, and no candidate at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tilewright.errors import InfrastructureError, ProblemError
from tilewright.evaluator.judge_client.official_tolerances import rule_of
from tilewright.evaluator.pipeline.run import open_judge
from tilewright.evaluator.pipeline.session import Emit, EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.seeds import random_root
from tilewright.records import EvalRequest
from tilewright.records.problem_lint import CaseHealth, Health, published_name
from tilewright.wire.names import INPUT_VARIATIONS

__all__ = ["TOLERANCES", "lint"]

TOLERANCES = (1e-4, 1e-2)
"""Those that KernelBench published for single and for half precision."""
LINT_S = 600.0


def lint(host: DeviceHost, request: EvalRequest, emit: Emit, watch: Callable[[], None]) -> Health:
    """Find out which degenerate answers pass on a problem. Its candidate is not looked at.

    Raises:
        InfrastructureError: our side failed.
    """
    problem = request.problem
    session = EvaluationSession(host, request, random_root(), emit, watch)
    about = {"problem": problem.id, "problem_digest": problem.digest(), "device": host.device.model}
    variation = [name for name in INPUT_VARIATIONS if name == "nominal" or _allowed(request, name)]
    rules: dict[str, Any] = {
        f"{tolerance:g}": {"name": "allclose", "tolerance": tolerance} for tolerance in TOLERANCES
    }
    rules[published_name(problem)] = rule_of(problem, "official")
    cases = []
    with ExitStack() as leased:
        leased.enter_context(host.lease(lambda text: emit("waiting", {"message": text}), watch))
        try:
            open_judge(session)
            for case in problem.cases:
                emit("sample", {"case": case.name, "variation": "degenerate answers"})
                fields = {
                    "params": dict(case.params),
                    "variation": variation,
                    "rules": rules,
                }
                found = session.ask("lint", fields, timeout_s=LINT_S)
                cases.append(CaseHealth.model_validate({"case": case.name, **found}))
        except ProblemError as error:
            return Health(**about, failed=str(error)[:500])
        except InfrastructureError as error:
            if "was lost" not in str(error):
                raise
            # Its own code ended its process, or needs more memory than there is.
            return Health(**about, failed=str(error)[:500])
        finally:
            session.cached.close()
            if session.judge is not None:
                session.judge.kill()
    return Health(**about, cases=tuple(cases))


def _allowed(request: EvalRequest, name: str) -> bool:
    allowed = request.problem.input_variations
    return allowed is None or name in allowed
