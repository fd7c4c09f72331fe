"""One call of a CPU runner: the judge writes its inputs and looks at what it left behind."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.messages import FinishTimed, PublishSample, TimedAnswer
from tilewright.evaluator.runners.cpu_accounting import CallTiming
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.scoring import bootstrap
from tilewright.wire.frames import Fields, Tree

EMPTY_CALLS = 9
"""Calls whose median is the time of an empty call."""
EMPTY_TREE: Tree = {"t": "list", "v": []}
EMPTY_CALL: Fields = {
    "base": 0,
    "size": 0,
    "args": EMPTY_TREE,
    "grads": [],
    "grad_outputs": EMPTY_TREE,
    "forward_seed": 0,
    "expected": [],
}
"""The call of a runner that has no candidate yet."""
NOTHING_SEEN = TimedAnswer("", "", None, [], [])
"""The answer where the judge was not asked."""


@dataclass(frozen=True)
class HostCall:
    """The time and the result of one call, and the judge's answer."""

    timing: CallTiming
    answer: TimedAnswer


def host_call(
    judge: JudgeClient,
    runner: Runner,
    fields: Fields,
    publish: PublishSample,
    finish: FinishTimed | None = None,
) -> HostCall:
    """Make one call on the sample `publish`; every call looks the same to the runner.

    The judge writes the inputs while the ready runner is stopped. With `finish` it looks at the
    runner's memory while the runner is stopped after the call.
    """
    answers = [NOTHING_SEEN]

    def look(call: int) -> None:
        if finish is not None:
            outputs = runner.reported_outputs(len(fields["expected"]))._asdict()
            message = replace(
                finish, **outputs, call=call, held=runner.held, dropped=runner.dropped
            )
            answers[0] = judge.request(message)

    timing = runner.timed_call(fields, lambda: judge.request(publish).written, look)
    return HostCall(timing, answers[0])


def measure_empty_call(runner: Runner) -> float:
    """Return the seconds of a call that does nothing.

    The runner has no candidate yet, so nothing but tilewright's own code takes this time.
    """
    calls = [runner.timed_call(EMPTY_CALL).total_s for _ in range(EMPTY_CALLS)]
    return bootstrap.median(calls)
