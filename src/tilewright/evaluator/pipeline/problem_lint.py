"""The problem linter: a judge and a problem, without any candidate."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import ProblemError
from tilewright.evaluator.context import Emit, EvaluationContext
from tilewright.evaluator.judge_client.client import comparison_rule
from tilewright.evaluator.judge_client.messages import ComparisonRule
from tilewright.evaluator.judge_client.problem_messages import LintCase
from tilewright.evaluator.pipeline.lifecycle import connect_judge
from tilewright.evaluator.pipeline.memory_admission import end_all_idle
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.forkserver_client import ChildLost
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.processes.memory_ledger import DeviceCrowded
from tilewright.evaluator.seeds import random_root
from tilewright.records import EvalRequest
from tilewright.records.problem_lint import CaseHealth, Health, published_name
from tilewright.wire.names import allowed_variations

TOLERANCES = (1e-4, 1e-2)
"""Those that KernelBench published for single and for half precision."""
LINT_S = 600.0
"""Most seconds for one case: a slow reference is called some dozen times."""


def lint(host: DeviceHost, request: EvalRequest, emit: Emit, watch: Callable[[], None]) -> Health:
    """Find out which degenerate answers pass on a problem; the request's candidate is not used."""
    # The limit of an evaluation is one for candidates.
    limits = request.limits.model_copy(
        update={"total_timeout_s": max(request.limits.total_timeout_s, LINT_S)}
    )
    request = request.model_copy(update={"limits": limits})
    try:
        return _lint(host, request, emit, watch, alone=False)
    except DeviceCrowded as crowded:
        emit("retry", {"because": str(crowded)})
        return _lint(host, request, emit, watch, alone=True)


def _lint(
    host: DeviceHost, request: EvalRequest, emit: Emit, watch: Callable[[], None], *, alone: bool
) -> Health:
    problem = request.problem
    about = {"problem": problem.id, "problem_digest": problem.digest(), "device": host.device.model}
    variations = ["nominal", *allowed_variations(problem.input_variations)]
    rules: dict[str, ComparisonRule] = {
        f"{tolerance:g}": {"name": "allclose", "tolerance": tolerance} for tolerance in TOLERANCES
    }
    official = comparison_rule(problem, "official")
    if official is not None:
        rules[published_name(problem)] = official
    cases = []
    session = EvaluationSession(EvaluationContext(host, request, random_root(), emit, watch))
    with host.lease(lambda text: emit("waiting", {"message": text}), watch):
        try:
            if alone:
                end_all_idle(host, watch)
            connect_judge(session)
            for case in problem.cases:
                emit("sample", {"case": case.name, "variation": "degenerate answers"})
                message = LintCase(dict(case.params), variations, rules)
                found = session.judge.request(message, LINT_S)
                cases.append(CaseHealth.model_validate({"case": case.name, **vars(found)}))
        except (ChildLost, ProblemError) as error:
            # A lost judge: the problem's code ended its process, or needs too much memory.
            return Health(**about, failed=str(error)[:500])
        finally:
            session.abandon()
    return Health(**about, cases=tuple(cases))
