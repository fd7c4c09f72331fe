"""KernelGYM's door: the endpoints that its client and training scripts call, over our queue.

Fields and defaults are those of KernelGYM's API (arXiv 2602.05885, its released server). What a
field cannot mean here is accepted and listed back. Verdicts are ours: a task that nobody could
judge is `failed` with the code `UNJUDGED`, and is to be masked, not scored zero.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from tilewright.config import Config
from tilewright.errors import ConfigError, ProblemError
from tilewright.problems.reader import parse_problem
from tilewright.problems.requests import build_request
from tilewright.records import Correct, EvalReport, EvalRequest, Failed, Incorrect, Rejected
from tilewright.records.base import digest_text
from tilewright.scoring.kernelgym import by_kernelgym
from tilewright.serve.access import Client
from tilewright.serve.asking import REFUSALS, Asker, Ours, admitted
from tilewright.serve.service import OPEN, Service
from tilewright.serve.store import Task
from tilewright.serve.views import NAME, Submission

__all__ = ["add_kernelgym", "answer_of"]

MOST_SOURCE = 100_000
LONGEST_S = 3600.0
READ = {
    *("task_id", "reference_code", "kernel_code", "entry_point", "backend", "timeout"),
    *("priority", "enable_profiling"),
}
"""Fields that mean something here; the rest is listed back."""
LANGUAGES = {"triton": "triton", "cuda": None, "torch": "torch", "pytorch": "torch"}
"""By KernelGYM's `backend`; a CUDA candidate of its is Python that builds an extension."""


class GymTask(BaseModel):
    """A task as KernelGYM's client sends it."""

    model_config = ConfigDict(extra="allow")

    task_id: Annotated[str, Field(pattern=NAME)]
    reference_code: Annotated[str, Field(min_length=10, max_length=MOST_SOURCE)]
    kernel_code: Annotated[str, Field(min_length=10, max_length=MOST_SOURCE)]
    entry_point: Annotated[str, Field(pattern=r"^[A-Za-z_]\w{0,99}$")] = "Model"
    backend: str = "triton"
    timeout: Annotated[float, Field(ge=1, le=LONGEST_S)] = 300.0
    priority: Literal["low", "normal", "high"] = "normal"
    enable_profiling: StrictBool | None = None
    """On a GPU: count all kernels of a call, which takes seconds more."""


class GymBatch(BaseModel):
    """Several tasks."""

    tasks: Annotated[list[GymTask], Field(max_length=100)]


def add_kernelgym(app: FastAPI) -> None:
    """Add the endpoints to an application of ours."""
    for path, call, methods in (
        ("/evaluate", evaluate, ["POST"]),
        ("/evaluate/batch", evaluate_batch, ["POST"]),
        ("/status/{name}", status, ["GET"]),
        ("/results/{name}", results, ["GET"]),
        ("/health", health, ["GET"]),
        ("/workers/status", workers, ["GET"]),
    ):
        app.add_api_route(path, call, methods=methods, tags=["KernelGYM"], responses=REFUSALS)


async def evaluate(body: GymTask, request: Request, client: Asker, service: Ours) -> dict[str, Any]:
    """Judge one candidate; answers when it is judged."""
    admitted(request, client, service, 1)
    key, broken = await _accepted(body, client, service)
    if broken is not None:
        return broken
    task = await _ended(key, service, time.monotonic() + LONGEST_S)
    return await asyncio.to_thread(_answer, body.task_id, task, service, body)


async def evaluate_batch(
    body: GymBatch, request: Request, client: Asker, service: Ours
) -> dict[str, Any]:
    """Judge several; answers when all are judged."""
    admitted(request, client, service, len(body.tasks))
    accepted = [(item, *await _accepted(item, client, service)) for item in body.tasks]
    found, until = [], time.monotonic() + LONGEST_S
    for item, key, broken in accepted:
        if broken is None:
            task = await _ended(key, service, until)
            broken = await asyncio.to_thread(_answer, item.task_id, task, service, item)
        found.append(broken)
    return {"results": found, "total": len(found)}


async def _ended(key: str, service: Service, until: float) -> Task | None:
    """Return a task when it has ended, or as it is when time or this server is up.

    Then it is said to be `processing`, and the original's client goes on to ask for its status.
    """
    task = await service.ended(key, until - time.monotonic())
    while task is not None and service.goes_on(task) and time.monotonic() < until:
        task = await service.ended(key, until - time.monotonic())
    return task


async def _accepted(
    body: GymTask, client: Client, service: Service
) -> tuple[str, dict[str, Any] | None]:
    """Accept a task; return its key, or the answer for one that names no class."""
    try:
        made = await asyncio.to_thread(_request_of, body, service)
    except (ProblemError, ConfigError, ValidationError) as error:
        said = {"error_message": str(error)[:2000], "error_code": "VALIDATION_ERROR"}
        return "", {**_empty(body.task_id), "status": "failed", **said}
    given = Submission(request=made, name=body.task_id, priority=body.priority)
    return (await service.submit(client, given)).key, None


def _request_of(body: GymTask, service: Service) -> EvalRequest:
    name, settings = digest_text(body.reference_code)[:16], _settings(service)
    text = body.reference_code
    if body.entry_point != "Model":
        text += f"\n\nModel = {body.entry_point}\n"
    problem = parse_problem(text, f"kernelgym/{name}", name, "kernelgym")
    made = build_request(
        f"{body.kernel_code}\n",
        problem.model_copy(update={"entry": f"{body.entry_point}New"}),
        settings,
        language=LANGUAGES.get(body.backend),
    )
    total_s = min(made.limits.total_s, body.timeout)
    trace = bool(body.enable_profiling) and settings.eval.device != "cpu"
    limits = made.limits.model_copy(update={"total_s": total_s})
    return made.model_copy(update={"limits": limits, "trace": trace})


def _settings(service: Service) -> Config:
    """Return the settings of an evaluation; KernelGYM's rules are a view of an `official` one."""
    settings = service.settings
    if settings.serve.protocol == "strict":
        return settings
    section = settings.eval.model_copy(update={"protocol": "official"})
    return settings.model_copy(update={"eval": section})


def _empty(name: str) -> dict[str, Any]:
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


def _answer(
    name: str, task: Task | None, service: Service, body: GymTask | None = None
) -> dict[str, Any]:
    """Return what KernelGYM's client reads of a task."""
    if task is None:
        raise HTTPException(404, "no such task of yours")
    found = _empty(name) | {"submitted_at": _stamp(task.submitted_at)}
    if body is not None:
        extra = sorted(set(body.model_extra or {}) - READ)
        found["metadata"] = {"fields_without_effect": extra}
    if task.state in OPEN:
        return found
    found["completed_at"] = _stamp(task.ended_at)
    found["processing_time"] = (task.ended_at or 0.0) - task.submitted_at
    if task.state != "done":
        code = "UNJUDGED" if task.state == "failed" else "CANCELLED"
        return found | {"status": "failed", "error_code": code, "error_message": task.error}
    stored = service.store.result(task.key)
    if not stored:
        # Forgotten between two looks.
        raise HTTPException(404, "no such task of yours")
    report = EvalReport.model_validate_json(stored)
    said = answer_of(report, service.settings.serve.protocol)
    said["metadata"] |= found["metadata"]
    return found | said


def answer_of(report: EvalReport, protocol: str = "strict") -> dict[str, Any]:
    """Return a verdict in KernelGYM's fields; times in milliseconds, summed over cases.

    Args:
        report: what came of it.
        protocol: `strict`: our verdict; `kernelgym`: by its rules, over an `official` report.
    """
    if protocol == "kernelgym" and report.request.protocol == "official":
        return _by_its_rules(report)
    outcome = report.outcome
    found: dict[str, Any] = {
        "status": "completed",
        "compiled": True,
        "metadata": _metadata(report),
        "error_message": str(getattr(outcome, "message", "")) or None,
    }
    match outcome:
        case Correct():
            first = [c for c in report.comparisons if c.baseline == report.comparisons[0].baseline]
            found |= {"correctness": True, "error_message": None}
            found["reference_runtime"] = sum(item.reference.median_us for item in first) / 1e3
            found["kernel_runtime"] = sum(item.candidate.median_us for item in first) / 1e3
            found["speedup"] = report.speedup or 0.0
        case Incorrect():
            found["error_code"] = "CORRECTNESS_ERROR"
        case Rejected():
            # A decoy is no solution, whatever its outputs; the original calls it correct.
            found["decoy_kernel"] = True
            found["error_message"] = "; ".join(item.summary for item in outcome.findings)
        case Failed():
            built = outcome.stage not in ("prepare", "spawn", "load")
            late = outcome.reason == "timeout"
            found |= {"compiled": built, "status": "completed" if built and not late else "failed"}
            code = "RUNTIME_ERROR" if built else "COMPILATION_ERROR"
            found["error_code"] = "TIMEOUT_ERROR" if late else code
        case _:
            found |= {"status": "failed", "compiled": False, "error_code": "UNJUDGED"}
    return found


def _by_its_rules(report: EvalReport) -> dict[str, Any]:
    found = by_kernelgym(report)
    said = str(getattr(report.outcome, "message", "")) or None
    return {
        "status": found.status,
        "compiled": found.compiled,
        "correctness": found.correctness,
        "decoy_kernel": found.decoy_kernel,
        "reference_runtime": found.reference_ms or 0.0,
        "kernel_runtime": found.kernel_ms or 0.0,
        "speedup": found.speedup or 0.0,
        "error_code": found.code,
        "error_message": said if found.code else None,
        "metadata": _metadata(report),
    }


def _metadata(report: EvalReport) -> dict[str, Any]:
    profile = report.profile
    found: dict[str, Any] = {
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


def _stamp(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _named(name: str, client: Client, service: Service) -> Task:
    key = service.store.named(client.name, name)
    task = None if key is None else service.store.task(key)
    if task is None:
        raise HTTPException(404, "no such task of yours")
    return task


def status(name: str, client: Asker, service: Ours) -> dict[str, Any]:
    """Return how far a task is, by the client's name for it."""
    found = _answer(name, _named(name, client, service), service)
    return {key: found[key] for key in ("task_id", "status", "submitted_at", "completed_at")}


def results(name: str, client: Asker, service: Ours) -> dict[str, Any]:
    """Return a task's result, by the client's name for it."""
    return _answer(name, _named(name, client, service), service)


def health(service: Ours) -> dict[str, Any]:
    """Tell whether the server lives."""
    state = service.dispatcher.state()
    return {"status": "healthy", "queue_size": state["waiting"], "active_tasks": state["running"]}


def workers(client: Asker, service: Ours) -> dict[str, Any]:  # noqa: ARG001 - only who may ask
    """Return what judges, as one worker for each task that may be under way."""
    state = service.dispatcher.state()
    rows = {
        f"worker-{number}": {
            "device": service.device,
            "status": "busy" if number < state["running"] else "idle",
        }
        for number in range(state["room"])
    }
    return {"workers": rows, "total": len(rows)}
