"""The endpoints of KernelGYM, which its client and training scripts call, over the same queue.

Fields and defaults are those of its API (arXiv 2602.05885, its released server). The answer lists
fields without an effect here. An unjudged task is `failed` with the code `UNJUDGED`.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Literal

from fastapi import FastAPI, HTTPException, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, ValidationError

from tilewright.errors import ConfigError, ProblemError
from tilewright.problems.candidates import make_candidate
from tilewright.problems.given_sources import candidate_files
from tilewright.problems.loader import parse_problem
from tilewright.problems.requests import build_request
from tilewright.records import EvalRequest
from tilewright.records.base import digest_text, is_text
from tilewright.records.codes import FailureReason
from tilewright.serve.auth import AuthenticatedClient
from tilewright.serve.dependencies import (
    REFUSALS,
    CurrentClient,
    CurrentService,
    HasLeft,
    admitted,
    needs,
)
from tilewright.serve.kernelgym_schemas import Answer, batch_answer, refusal, task_answer
from tilewright.serve.schemas import Submission
from tilewright.serve.service import DisconnectCheck, Service
from tilewright.serve.store.tables import Task

MAX_SOURCE_CHARS = 100_000
MAX_TIMEOUT_S = 3600.0
MAX_REFUSED_ANSWERS = 1000
"""Answers to invalid tasks that the server keeps for later requests."""
Name = Annotated[str, Field(pattern=r"^[^\n]{1,100}$")]
"""A client's name for a task. The original takes any text; a path has no line break."""
LANGUAGES = {"triton": "triton", "cuda": None, "torch": "torch", "pytorch": "torch"}
"""Language by KernelGYM's `backend`; its CUDA candidates are Python that builds an extension."""


class GymTask(BaseModel):
    """A task as KernelGYM's client sends it; `null` means the default."""

    model_config = ConfigDict(extra="allow")

    task_id: Name
    reference_code: Annotated[str, Field(min_length=10, max_length=MAX_SOURCE_CHARS)]
    kernel_code: Annotated[str, Field(min_length=10, max_length=MAX_SOURCE_CHARS)]
    entry_point: Annotated[str, Field(pattern=r"^[A-Za-z_]\w{0,99}$")] | None = "Model"
    backend: str | None = "triton"
    timeout: Annotated[float, Field(ge=1, le=MAX_TIMEOUT_S)] | None = 300.0
    priority: Literal["low", "normal", "high"] | None = "normal"
    # The original also takes 1 for true.
    enable_profiling: StrictBool | Literal[0, 1] | None = None
    """On a GPU: count all kernels of a call, which takes some seconds."""


def _text(value: str) -> str:
    if not is_text(value):
        raise ValueError("it cannot be encoded as UTF-8")
    return value


class GymBatch(BaseModel):
    """Several tasks."""

    batch_id: Annotated[str, AfterValidator(_text)] | None = None
    tasks: Annotated[list[GymTask], Field(min_length=1, max_length=100)]


class _Submission(Submission):
    """A submission with a name in KernelGYM's format."""

    name: Name


def add_kernelgym(app: FastAPI) -> None:
    """Add the endpoints to an application of ours."""
    app.state.refused = {}
    for path, call, methods in (
        ("/evaluate", evaluate, ["POST"]),
        ("/evaluate/batch", evaluate_batch, ["POST"]),
        # A name may have slashes: level1/3.
        ("/status/{name:path}", status, ["GET"]),
        ("/results/{name:path}", results, ["GET"]),
        ("/health", health, ["GET"]),
        ("/workers/status", workers, ["GET"]),
    ):
        app.add_api_route(path, call, methods=methods, tags=["KernelGYM"], responses=REFUSALS)


async def evaluate(
    body: GymTask,
    request: Request,
    client: CurrentClient,
    service: CurrentService,
    has_left: HasLeft,
) -> Answer:
    """Evaluate one candidate, and answer when it has been evaluated."""
    admitted(client, service, 1, (_is_known(item, service) for item in [body]))
    accepted = await _accepted(body, request, client, service)
    return await _judged(body, accepted, service, time.monotonic() + MAX_TIMEOUT_S, has_left)


async def evaluate_batch(
    body: GymBatch,
    request: Request,
    client: CurrentClient,
    service: CurrentService,
    has_left: HasLeft,
) -> Answer:
    """Evaluate several candidates, and answer with all results."""
    known = (_is_known(item, service) for item in body.tasks)
    admitted(client, service, len(body.tasks), known)
    began, accepted = time.time(), list[tuple[GymTask, str | Answer]]()
    for item in body.tasks:
        try:
            accepted.append((item, await _accepted(item, request, client, service)))
        except HTTPException as error:
            message = f"{error.detail}; give it another task_id"
            accepted.append((item, refusal(item.task_id, "UNJUDGED", message)))
    found, until = [], time.monotonic() + MAX_TIMEOUT_S
    for item, key in accepted:
        try:
            found.append(await _judged(item, key, service, until, has_left))
        except HTTPException as error:
            found.append(refusal(item.task_id, "UNJUDGED", error.detail))
    return batch_answer(body.batch_id, found, began)


def _is_known(body: GymTask, service: Service) -> bool:
    """Tell whether a submission adds no task: the task exists, or the submission is invalid."""
    try:
        return service.knows(Submission(request=_request_of(body, service)))
    except (ProblemError, ConfigError, ValidationError):
        return True


async def _accepted(
    body: GymTask, request: Request, client: AuthenticatedClient, service: Service
) -> str | Answer:
    """Accept a task; return its key, or the answer to an invalid one."""
    try:
        made = await asyncio.to_thread(_request_of, body, service)
    except (ProblemError, ConfigError, ValidationError) as error:
        if await asyncio.to_thread(service.store.named, client.name, body.task_id) is not None:
            # `/results/{id}` would still return the verdict of that request.
            taken = f"you already use the name {body.task_id!r} for a different request"
            raise HTTPException(409, taken) from error
        said = refusal(body.task_id, "VALIDATION_ERROR", str(error))
        # Only the event loop writes this dictionary, so it needs no lock.
        kept: dict[tuple[str, str], Answer] = request.app.state.refused
        kept.pop((client.name, body.task_id), None)
        kept[client.name, body.task_id] = said
        if len(kept) > MAX_REFUSED_ANSWERS:
            del kept[next(iter(kept))]
        return said
    given = _Submission(request=made, name=body.task_id, priority=body.priority or "normal")
    return (await service.submit(client, given)).key


async def _judged(
    body: GymTask, accepted: str | Answer, service: Service, until: float, has_left: DisconnectCheck
) -> Answer:
    """Return the answer for a task once it has ended, or at the time `until`."""
    if isinstance(accepted, str):
        # A task that has not ended is `processing`; the original's client then polls its status.
        task = await service.ended(accepted, until - time.monotonic(), has_left)
        found = await asyncio.to_thread(_answer_for, body.task_id, task, service)
    else:
        found = accepted
    extra = {"fields_without_effect": sorted(body.model_extra or {})}
    return {**found, "metadata": {**found["metadata"], **extra}}


def _request_of(body: GymTask, service: Service) -> EvalRequest:
    settings = service.settings
    if settings.serve.protocol == "kernelgym":
        # KernelGYM's rules read a report of the protocol `official`.
        settings = settings.with_eval(protocol="official")
    text, entry = body.reference_code, body.entry_point or "Model"
    name = digest_text(text)[:16]
    if entry != "Model":
        text += f"\n\nModel = {entry}\n"
    problem = parse_problem(text, f"kernelgym/{name}", name, "kernelgym")
    problem = problem.model_copy(update={"entry": f"{entry}New"})
    files = candidate_files(f"{body.kernel_code}\n")
    candidate = make_candidate(files, problem, language=LANGUAGES.get(body.backend or "triton"))
    if isinstance(candidate, tuple):
        candidate, failed = candidate
        if failed.reason == FailureReason.MISSING_ENTRY:
            # KernelGYM refuses a task without its class, before it is one.
            raise ConfigError(failed.message)
    made = build_request(candidate, problem, settings)
    total_timeout_s = min(made.limits.total_timeout_s, body.timeout or 300.0)
    trace = bool(body.enable_profiling) and settings.eval.device != "cpu"
    limits = made.limits.model_copy(update={"total_timeout_s": total_timeout_s})
    return made.model_copy(update={"limits": limits, "trace": trace})


def _answer_for(name: str, task: Task, service: Service) -> Answer:
    stored = service.store.result(task.key) if task.state == "done" else b""
    if task.state == "done" and not stored:
        # Retention has just deleted the task.
        raise HTTPException(404, "you have no such task")
    return task_answer(name, task, stored, service.settings.serve.protocol)


def status(name: str, request: Request, client: CurrentClient, service: CurrentService) -> Answer:
    """Return the status of a task, by the client's name for it."""
    found = results(name, request, client, service)
    return {key: found[key] for key in ("task_id", "status", "submitted_at", "completed_at")}


def results(name: str, request: Request, client: CurrentClient, service: CurrentService) -> Answer:
    """Return the result of a task, by the client's name for it."""
    needs(client, "submit", "read")
    key = service.store.named(client.name, name)
    refused: Answer | None = request.app.state.refused.get((client.name, name))
    if key is None and refused is not None:
        return refused
    return _answer_for(name, service.task(key), service)


def health(service: CurrentService) -> Answer:
    """Return the status of the server: `healthy`, or `draining` if it takes no more tasks."""
    state = service.dispatcher.state()
    status = "draining" if service.draining else "healthy"
    return {"status": status, "queue_size": state["waiting"], "active_tasks": state["running"]}


def workers(client: CurrentClient, service: CurrentService) -> Answer:
    """Return the workers, one for each task that can run at once."""
    needs(client, "read")
    rows = {
        row.name.partition("@")[0]: {
            "device": row.device,
            "status": "idle" if row.state == "draining" else row.state,
        }
        for row in service.workers()
    }
    return {"workers": rows, "total": len(rows)}
