"""A scripted judge and scripted runners of a GPU: the requests that each gets, in their order."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

from tests.scripted_judge import ScriptedJudge
from tilewright.evaluator.judge_client.messages import REQUESTS
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.runners.host_call import EMPTY_CALL
from tilewright.evaluator.runners.messages import EvaluationEnded, Result
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.runners.sync_page import ReportedOutputs
from tilewright.records import Failed

LATE = EvaluationEnded(Failed(stage="timing", reason="timeout", message="no answer"))


class ScriptedRunner(GpuRunner):
    """A runner that queues after `queued_s` and returns what the script states."""

    def __init__(self, log: list[Any], queued_s: float = 0.0, **reported: Any) -> None:
        self.name = "candidate"
        self.log = log
        self.queued_s = queued_s
        self.reported = reported
        self.inputs_bytes = 1 << 30
        self.held = [3, 5]
        self.limits: Any = SimpleNamespace(call_timeout_s=5.0)
        self.call_timeout_s = 5.0
        tree = SimpleNamespace(
            freeze=lambda: not log.append("freeze"),
            resume=lambda: log.append("resume"),
            pin_main_thread=lambda cores: log.append(("on", cores)),
        )
        self.child: Any = SimpleNamespace(tree=tree, kill=lambda: log.append("kill"))

    def arm(self, fields: dict[str, Any], sequence: int) -> None:
        self.log.append(("arm", sequence, fields.get("profile", False)))
        self.armed = fields
        self.trees = [*getattr(self, "trees", []), fields.get("args")]

    def is_queued(self, within_s: float) -> bool:
        return self.queued_s <= within_s

    def reported_outputs(self, count: int) -> ReportedOutputs:
        return ReportedOutputs([4096 + place for place in range(count)], [])

    def result(self) -> Result:
        self.log.append("result")
        if "error" in self.reported:
            raise self.reported["error"]
        return Result(outputs=[], launches=3, **self.reported)

    def late(self) -> Exception:
        return LATE


class ScriptedPool(RunnerPool):
    """A pool without runners whose judge answers every call with `seconds`."""

    def __init__(self, seconds: float | None) -> None:
        host: Any = SimpleNamespace(
            sequences=itertools.count(7), cores=SimpleNamespace(runners=(4, 5))
        )
        request = SimpleNamespace(allows_tf32=False)
        context: Any = SimpleNamespace(host=host, request=request)
        self.log: list[Any] = []
        super().__init__(context, ScriptedJudge(context, self.log, seconds))

    def publish(self, runner: Any, sample: Any, slot: int) -> None:
        pass

    def steps(self) -> list[Any]:
        """Return what happened, with requests as their kinds."""
        kinds = REQUESTS.keys()
        return [
            step[0] if isinstance(step, tuple) and step[0] in kinds else step for step in self.log
        ]

    def asked(self, kind: str) -> Any:
        """Return the fields of the last request of a kind."""
        return [step[1] for step in self.log if isinstance(step, tuple) and step[0] == kind][-1]


class ScriptedSample:
    """An input sample with two outputs."""

    name = "d"
    case = "only"
    slot_bytes = 4096
    layout: Any = SimpleNamespace(tree={"t": "tuple", "v": []})

    def call_fields(self, slot: int) -> dict[str, Any]:
        return {**EMPTY_CALL, "base": slot * self.slot_bytes, "expected": [{}, {}]}


def scripted(seconds: float | None = 0.001) -> Any:
    return ScriptedPool(seconds)
