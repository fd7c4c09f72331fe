"""The pipeline: one request in, one report out. Each stage may end it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack

from tilewright.errors import InfrastructureError
from tilewright.evaluator import correctness, timing
from tilewright.evaluator.ahead import begin_compilers, compile_ahead, keep_sketch
from tilewright.evaluator.baselines import (
    baseline_failed,
    blamed_on_baseline,
    keep_baselines,
    open_again,
    open_baselines,
    put_away,
)
from tilewright.evaluator.build import prepare
from tilewright.evaluator.calibration import read_calibration
from tilewright.evaluator.device_stages import (
    labels_of,
    look_at_device,
    look_for_disturbance,
    probe,
    refuse_quarantined,
    size_blocks,
)
from tilewright.evaluator.environment import device_key
from tilewright.evaluator.evaluation import COMPILE_MODES, Emit, Evaluation
from tilewright.evaluator.host import Host
from tilewright.evaluator.knockout import KNOCKED_OUT, look_at_own_work, trace
from tilewright.evaluator.published import rule_of
from tilewright.evaluator.roofline import measure_ceilings
from tilewright.evaluator.seeds import draw_root
from tilewright.evaluator.sides import Ended, Side
from tilewright.evaluator.verdict import Collected, report
from tilewright.evaluator.warm import Warm
from tilewright.evaluator.weights import apply_weights, load_weights, match_weights
from tilewright.records import (
    Correct,
    EvalReport,
    EvalRequest,
    Failed,
    Incorrect,
    Label,
    Outcome,
    Rejected,
)

__all__ = ["evaluate", "open_judge"]

ATTEMPTS = 2
"""How often an evaluation is made when our own side fails in it; once more for a doubt."""
BY_THE_CLOCK = {"outside work", "disturbs baseline"}
"""Findings that rest on times and on nothing else."""


def evaluate(
    host: Host,
    request: EvalRequest,
    emit: Emit,
    watch: Callable[[], None],
    *,
    checks: tuple[str, ...] | None = None,
) -> EvalReport:
    """Judge one candidate.

    Raises:
        ProblemError: the problem cannot be used.
        InfrastructureError: our side failed twice.
    """
    host.reap()
    root = request.seed or draw_root()
    failures, doubted = 0, False
    while True:
        evaluation = Evaluation(host, request, root, emit, watch)
        try:
            found = _attempt(evaluation, checks)
        except InfrastructureError as error:
            failures += 1
            if failures == ATTEMPTS:
                raise
            if host.device.is_gpu:
                # It may have been room on the device that was missing.
                host.end_idle()
            emit("retry", {"because": str(error)})
            continue
        doubt = "" if doubted else _doubt(found, host)
        if not doubt:
            return found
        doubted = True
        emit("retry", {"because": doubt})


def _doubt(found: EvalReport, host: Host) -> str:
    """Say why a verdict may be our doing and is to be made once more; empty: it may not.

    A candidate may lack device memory that idle processes of ours held, which are ended here. And
    what accuses it by the clock alone is a busy machine now and then.
    """
    outcome = found.outcome
    if isinstance(outcome, Failed) and outcome.reason == "out of memory":
        crowded = host.device.is_gpu and host.end_idle()
        return "it ran out of memory beside processes that idle" if crowded else ""
    if isinstance(outcome, Rejected):
        codes = {finding.code for finding in outcome.findings}
        return "what the clock alone says is looked at twice" if codes <= BY_THE_CLOCK else ""
    return ""


def _attempt(evaluation: Evaluation, checks: tuple[str, ...] | None) -> EvalReport:
    collected, host = Collected(), evaluation.host
    refuse_quarantined(host)
    key = device_key(host.cores, host.device)
    evaluation.calibration = read_calibration(host.home, key, on_gpu=host.device.is_gpu)
    started = time.monotonic()
    evaluation.deadline = started + evaluation.request.limits.total_s
    # The lease is held until nothing of a candidate is alive.
    with ExitStack() as leased:
        try:
            outcome = _ended(evaluation, collected, leased)
            host.suspect |= isinstance(outcome, Failed) and host.device.is_gpu
            with evaluation.stage("close"):
                if not host.suspect:
                    keep_baselines(evaluation)
                _close(evaluation)
        except BaseException:
            _abandon(evaluation)
            raise
    evaluation.note_cost(time.monotonic() - started)
    return report(evaluation, collected, outcome, evaluation.calibration, checks=checks)


def _ended(evaluation: Evaluation, collected: Collected, leased: ExitStack) -> Outcome:
    """Go through the stages until one of them ends the evaluation."""
    try:
        outcome = _stages(evaluation, collected, leased)
    except Ended as ended:
        outcome = ended.outcome
    if isinstance(outcome, Incorrect) and evaluation.has_weights and not collected.times:
        collected.right_when_seeded = _right_when_seeded(evaluation)
        if collected.right_when_seeded:
            return outcome.model_copy(update={"kind": "weights"})
    return outcome


def _stages(evaluation: Evaluation, collected: Collected, leased: ExitStack) -> Outcome:
    request = evaluation.request
    others = {item.name: item.candidate for item in request.baselines if item.candidate}
    begin_compilers(evaluation)
    with evaluation.stage("prepare"):
        prepare(evaluation, "candidate", request.candidate)
        for name, candidate in others.items():
            with blamed_on_baseline(evaluation, name):
                prepare(evaluation, name, candidate)
    _compile_ahead(evaluation)
    with evaluation.stage("lease"):
        _take_device(evaluation, collected, leased)
    with evaluation.stage("spawn"):
        open_judge(evaluation)
    with evaluation.stage("load"):
        evaluation.open_side("candidate", request.candidate)
        if request.protocol == "strict":
            collected.lacking_weights = load_weights(evaluation, ["candidate"])
    with evaluation.stage("correctness"):
        side = evaluation.sides["candidate"]
        correctness.judge_correctness(evaluation, side, collected.seen)
        side.judged = True
        keep_sketch(evaluation, collected.seen.calls)
        if request.protocol == "official" and evaluation.is_module:
            _label_folded_weights(evaluation, collected)
    if request.trace:
        with evaluation.stage("trace"):
            collected.kernels = trace(evaluation, request.problem.cases[-1])
    if _may_time(evaluation, collected):
        with evaluation.stage("timing"):
            _time(evaluation, collected)
            evaluation.note_conditions("after timing")
    if request.candidate.language in ("triton", "cpp", "cuda"):
        look_at_own_work(evaluation, collected)
    with evaluation.stage("exit"):
        _exit(evaluation, collected)
    return Correct()


def _compile_ahead(evaluation: Evaluation) -> None:
    compile_ahead(evaluation, "candidate", evaluation.request.candidate)
    for item in evaluation.request.baselines:
        if item.candidate:
            with blamed_on_baseline(evaluation, item.name):
                compile_ahead(evaluation, item.name, item.candidate)


def _take_device(evaluation: Evaluation, collected: Collected, leased: ExitStack) -> None:
    """Wait until it is our turn on the device; that time is not counted as ours."""
    asked = time.monotonic()

    def waiting(text: str) -> None:
        evaluation.emit("waiting", {"message": text})

    leased.enter_context(evaluation.host.lease(waiting, evaluation.watch))
    evaluation.waited_s = time.monotonic() - asked
    evaluation.deadline += evaluation.waited_s
    look_at_device(evaluation, collected)


def _may_time(evaluation: Evaluation, collected: Collected) -> bool:
    request = evaluation.request
    if not request.timing.enabled or not request.baselines:
        return False
    reason = ""
    if request.candidate.language == "triton" and not evaluation.host.device.is_gpu:
        reason = "Triton runs in its interpreter here: correctness and checks, no claim about time"
    elif not evaluation.host.cores.separate:
        reason = "one core only: the clock would share it with what it times"
    elif collected.seen.mutated and request.protocol == "strict":
        reason = "rejected before timing"
    if reason:
        collected.labels.append(Label(name="not timed", detail=reason))
    return not reason


def open_judge(evaluation: Evaluation) -> None:
    """Start the judge, or take the warm one of the same problem, and load the problem."""
    request, host = evaluation.request, evaluation.host
    problem = request.problem
    warm = host.take_warm(_warm_key(evaluation))
    if warm is None:
        warm = _new_judge(evaluation)
        if measure_ceilings(evaluation):
            warm.kill()
            warm = _new_judge(evaluation)
    evaluation.judge, evaluation.parked = warm.judge, warm.parked
    fields = {
        "problem_kind": problem.kind,
        "mode": problem.mode,
        "grads": list(problem.grads),
        "donates": list(problem.donates),
        "keywords": list(problem.keywords),
        "init_seed": evaluation.seed("init") & 0x7FFFFFFF,
        "threads": 1,
        "rule": rule_of(problem, request.protocol),
        "tf32": request.allows_tf32,
    }
    answer = evaluation.ask("problem", fields, body=problem.source.text.encode())
    evaluation.init_tree, evaluation.init_bytes = answer["init"], answer["init_bytes"]
    evaluation.is_module = answer["module"]
    evaluation.has_weights = answer["module"] and request.protocol == "strict"
    if host.device.is_gpu:
        if host.suspect:
            probe(evaluation)
        size_blocks(evaluation)


def _new_judge(evaluation: Evaluation) -> Warm:
    warm = Warm(evaluation.host.spawn("judge", evaluation.request.limits))
    warm.judge.wait_ready()
    evaluation.judge = warm.judge
    return warm


def _warm_key(evaluation: Evaluation) -> str:
    request = evaluation.request
    parts = (request.problem.digest(), request.protocol, request.rules.precision)
    # The baselines that are kept with it have as many queues as the candidate.
    queues = ("several streams",) * (evaluation.host.device.is_gpu and evaluation.several_streams)
    return "|".join((*parts, *queues, request.limits.to_json()))


def _time(evaluation: Evaluation, collected: Collected) -> None:
    names = [baseline.name for baseline in evaluation.request.baselines]
    official = evaluation.request.protocol == "official"

    def reopen(*, fresh: bool) -> None:
        # Of a new problem the shapes are known by now, and each process would compile again.
        _compile_ahead(evaluation)
        # To compile a baseline again would take longer than all the rest: it stays.
        staying = COMPILE_MODES if fresh else ()
        leaving = {*names, "candidate"}.intersection(evaluation.sides).difference(staying)
        put_away(evaluation, sorted(leaving), keep=not fresh)
        open_baselines(evaluation, fresh=fresh)
        open_again(evaluation, "candidate", evaluation.request.candidate)

    open_baselines(evaluation)
    for case in evaluation.request.problem.cases:
        evaluation.emit("timing", {"case": case.name})
        try:
            sides = [*names, "candidate"]
            if official:
                times = timing.time_case_officially(evaluation, case, sides)
            else:
                times = timing.time_case(evaluation, case, sides, reopen)
            collected.times.append(times)
        except Ended as ended:
            if ended.side in names:
                raise baseline_failed(evaluation, ended.side, ended) from ended
            raise
        collected.labels += labels_of(collected.times[-1])
        if collected.times[-1].wrong:
            message = collected.times[-1].wrong[0]
            raise Ended(Incorrect(kind="values", case=f"{case.name}, timed", message=message))


def _exit(evaluation: Evaluation, collected: Collected) -> None:
    """Let the candidate's process end; death by a signal there is memory corruption."""
    side: Side | None = evaluation.sides.get("candidate")
    status: int | None = 0
    if side is not None:
        side.stage = "exit"
        status = side.end(evaluation.request.limits.exit_s)
    if evaluation.host.device.is_gpu and collected.times:
        if side is not None:
            evaluation.note_printed("candidate")
        for name in ("candidate", KNOCKED_OUT):
            evaluation.close_side(name)
        baseline = evaluation.request.baselines[0].name
        with blamed_on_baseline(evaluation, baseline):
            look_for_disturbance(evaluation, collected)
    if side is None:
        detail = "its process was lost when it was called without its own launches"
        collected.labels.append(Label(name="exit not seen", detail=detail))
    if status is None:
        detail = f"its process did not end within {evaluation.request.limits.exit_s:g} s"
        collected.labels.append(Label(name="hangs at exit", detail=detail))
    elif os.WIFSIGNALED(status):
        message = f"its process died of signal {os.WTERMSIG(status)} while it ended"
        raise Ended(Failed(stage="exit", reason="memory corruption", message=message))


def _right_when_seeded(evaluation: Evaluation) -> bool | None:
    """Judge once more in a fresh contestant, with the weights of the init seed on both sides."""
    evaluation.ask("reset_weights", {})
    return _right_in_fresh_contestant(evaluation, redrawn=False)


def _label_folded_weights(evaluation: Evaluation, collected: Collected) -> None:
    """Label what the published rules let pass: weights that no longer matter once loaded."""
    right = _right_in_fresh_contestant(evaluation, redrawn=True)
    evaluation.ask("reset_weights", {})
    if right is False:
        detail = "wrong once other weights are loaded; the published rules never load any"
        collected.labels.append(Label(name="weights folded", detail=detail))


def _right_in_fresh_contestant(evaluation: Evaluation, *, redrawn: bool) -> bool | None:
    """Judge one nominal draw in a contestant of its own; `None` when it does not finish."""
    name = "candidate-again"
    evaluation.artifacts[name] = evaluation.artifacts.get("candidate", {})
    evaluation.loaders[name] = evaluation.loaders["candidate"]
    try:
        side = evaluation.open_side(name, evaluation.request.candidate)
        if redrawn:
            match_weights(evaluation, name)
            apply_weights(evaluation, [name])
        side.stage = "correctness"
        drawn = evaluation.draw(evaluation.request.problem.cases[0], "nominal", 0)
        result = evaluation.call(side, drawn, 0)
        return not evaluation.check(side, drawn, 0, result).wrong
    except Ended:
        return None
    finally:
        evaluation.close_side(name)


def _close(evaluation: Evaluation) -> None:
    """End every side; keep the judge warm for the next candidate of its problem."""
    host, names = evaluation.host, list(evaluation.sides)
    for name in names:
        evaluation.note_printed(name)
        host.retire(evaluation.sides.pop(name))
    # After a failure nobody knows what is left on the device: then no one is kept.
    parked = evaluation.parked.drain() if host.suspect else evaluation.parked.rest()
    for side in parked:
        names.append(side.name)
        host.retire(side)
    if host.device.is_gpu:
        # What they have mapped must not be freed before they are gone.
        host.reap()
    if evaluation.judge is not None:
        evaluation.ask("forget", {"all": True, "sides": names})
        evaluation.host.keep_warm(_warm_key(evaluation), Warm(evaluation.judge, evaluation.parked))
        evaluation.judge = None


def _abandon(evaluation: Evaluation) -> None:
    """End everything at once; nothing of it is used again."""
    for side in evaluation.sides.values():
        side.close()
    evaluation.sides.clear()
    evaluation.parked.close()
    if evaluation.judge is not None:
        evaluation.judge.kill()
        evaluation.judge = None
