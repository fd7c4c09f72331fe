"""The fields of a task that KernelGYM's client reads, filled from our records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tilewright.records import Correct, EvalReport, Failed, Incorrect, Rejected
from tilewright.records.codes import FailureReason
from tilewright.scoring.benchmarks.kernelgym import by_kernelgym, is_compiled, runtimes
from tilewright.serve.store.tables import Task

Answer = dict[str, Any]
MAX_MESSAGE_CHARS = 2000
"""Characters of a message."""


def _empty(name: str) -> Answer:
    return {
        "task_id": name,
        "status": "processing",
        "compiled": False,
        "correctness": False,
        "decoy_kernel": False,
        "reference_runtime": 0.0,
        "kernel_runtime": 0.0,
        "speedup": 0.0,
        "metadata": {},
        "error_message": None,
        "error_code": None,
        "submitted_at": None,
        "completed_at": None,
        "processing_time": None,
    }


def task_answer(name: str, task: Task, stored: bytes, protocol: str) -> Answer:
    """Return the answer for a task; `stored` is its report, or empty."""
    found = _empty(name) | {"submitted_at": _timestamp(task.submitted_at)}
    if task.is_open:
        return found
    found["completed_at"] = _timestamp(task.ended_at)
    found["processing_time"] = (task.ended_at or 0.0) - task.submitted_at
    if task.state != "done":
        code = "UNJUDGED" if task.state == "failed" else "CANCELLED"
        return found | {"status": "failed", "error_code": code, "error_message": task.error}
    report = EvalReport.from_json(stored)
    by_its_rules = protocol == "kernelgym" and report.request.protocol == "official"
    return found | (_kernelgym_answer(report) if by_its_rules else _strict_answer(report))


def refusal(name: str, code: str, message: str) -> Answer:
    """Return the answer to an invalid or refused task."""
    now = _timestamp(time.time())
    return _empty(name) | {
        "status": "failed",
        "error_code": code,
        "error_message": message[:MAX_MESSAGE_CHARS],
        "submitted_at": now,
        "completed_at": now,
    }


def batch_answer(batch: str | None, results: Sequence[Answer], began: float) -> Answer:
    """Return the answer for a batch: the results in order, and their numbers by status."""
    states = [item["status"] for item in results]
    open_ = "processing" in states
    return {
        "batch_id": batch,
        "total_tasks": len(results),
        "completed_tasks": states.count("completed"),
        "failed_tasks": states.count("failed"),
        "results": results,
        "batch_status": "processing" if open_ else "completed",
        "submitted_at": _timestamp(began),
        "completed_at": None if open_ else _timestamp(time.time()),
    }


def _strict_answer(report: EvalReport) -> Answer:
    """Return our verdict in KernelGYM's fields; times in milliseconds, means over cases."""
    outcome = report.outcome
    found: Answer = {
        "status": "completed",
        "compiled": True,
        "metadata": _metadata(report),
        "error_message": str(getattr(outcome, "message", "")) or None,
    }
    match outcome:
        case Correct():
            found |= {"correctness": True, "error_message": None}
            if (times := runtimes(report)) is not None:
                found["reference_runtime"] = times.reference_ms
                found["kernel_runtime"] = times.kernel_ms
                found["speedup"] = times.speedup
        case Incorrect():
            found["error_code"] = "CORRECTNESS_ERROR"
        case Rejected():
            # An unused kernel is no solution, even with correct outputs; the original accepts it.
            found["decoy_kernel"] = True
            found["error_message"] = "; ".join(item.summary for item in outcome.findings)
        case Failed():
            built = is_compiled(outcome)
            late = outcome.reason == FailureReason.TIMEOUT
            found |= {"compiled": built, "status": "completed" if built and not late else "failed"}
            code = "RUNTIME_ERROR" if built else "COMPILATION_ERROR"
            found["error_code"] = "TIMEOUT_ERROR" if late else code
        case _:
            found |= {"status": "failed", "compiled": False, "error_code": "UNJUDGED"}
    return found


def _kernelgym_answer(report: EvalReport) -> Answer:
    """Return the verdict of KernelGYM's rules over a report of the protocol `official`."""
    found = by_kernelgym(report)
    message = str(getattr(report.outcome, "message", "")) or None
    return {
        **found.model_dump(include={"status", "compiled", "correctness"}),
        "decoy_kernel": found.unused_kernel,
        "reference_runtime": found.reference_ms or 0.0,
        "kernel_runtime": found.kernel_ms or 0.0,
        "speedup": found.speedup or 0.0,
        "error_code": found.code,
        "error_message": message if found.code else None,
        "metadata": _metadata(report),
    }


def _metadata(report: EvalReport) -> Answer:
    profile = report.profile
    found: Answer = {
        "verdict": report.verdict,
        "speedup_low": report.speedup_low,
        "speedup_high": report.speedup_high,
        "findings": [item.code for item in report.findings],
        "labels": [item.name for item in report.labels],
        "hardware": report.environment.device_name,
        "num_custom_kernels": None,
        "num_total_kernels": None,
        "custom_kernel_cuda_time_in_profiling_us": None,
        "total_kernel_run_time_in_profiling_us": None,
    }
    total = sum(item.total_us for item in report.kernels) if report.kernels else None
    if report.kernels:
        found["num_total_kernels"] = sum(item.launches for item in report.kernels)
    elif report.comparisons:
        total = report.comparisons[-1].candidate.median_us
    if profile is not None and total is not None:
        found |= {
            "num_custom_kernels": profile.launches,
            "custom_kernel_cuda_time_in_profiling_us": profile.coverage * total,
            "total_kernel_run_time_in_profiling_us": total,
            "time_coverage": profile.coverage,
        }
    return found


def _timestamp(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
