"""`POST /v1/evaluations`: two texts, the code of a candidate and a problem, in one call."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tilewright.errors import ConfigError, ProblemError
from tilewright.problems.candidates import make_candidate
from tilewright.problems.given_sources import problem_of_client
from tilewright.problems.requests import build_request
from tilewright.records import SourceFile
from tilewright.records.field_faults import fault_text
from tilewright.serve.dependencies import (
    CurrentClient,
    CurrentService,
    HasLeft,
    admitted,
    needs,
)
from tilewright.serve.schemas import (
    MAX_DEADLINE_S,
    NAME,
    Submission,
    TaskView,
    view_of,
)
from tilewright.serve.service import Service

MAX_WAIT_S = 60.0
MAX_FILES = 1000


class TextSubmission(BaseModel):
    """A candidate and a problem as texts; the server's settings hold for all that is left out."""

    model_config = ConfigDict(extra="forbid")

    code: str | Annotated[dict[str, str], Field(min_length=1, max_length=MAX_FILES)]
    """Source text, or several files by their relative paths."""
    problem: Annotated[str, Field(min_length=1)]
    """Source text, or an address: `softmax`, or `kernelbench/level1-19` if the set is imported."""
    language: str | None = None
    """Detected from the code if it is left out."""
    entry: str | None = None
    """Name that the code exports, if it is neither `ModelNew` nor the problem's."""
    protocol: Literal["strict", "official"] | None = None
    timing: bool = True
    """Whether to measure a speed-up."""
    name: Annotated[str, Field(pattern=NAME)] | None = None
    """Your name for the task."""
    priority: Literal["low", "normal", "high"] = "normal"
    deadline_s: Annotated[float, Field(gt=0, le=MAX_DEADLINE_S)] | None = None
    """Seconds from now after which the task may not start any more."""


async def evaluate(
    body: TextSubmission,
    request: Request,
    client: CurrentClient,
    service: CurrentService,
    has_left: HasLeft,
    wait_s: Annotated[float, Query(ge=0)] = 0.0,
) -> TaskView:
    """Accept a candidate, and answer with its task once it has ended, or after `wait_s` seconds.

    The report is at `/v1/tasks/{key}/report`.
    """
    needs(client, "submit")
    given = await asyncio.to_thread(submission_of, body, service)
    admitted(client, service, 1, map(service.knows, [given]))
    found = await service.submit(client, given)
    request.state.task = found.key
    return view_of(await service.ended(found.key, min(wait_s, MAX_WAIT_S), has_left))


def submission_of(body: TextSubmission, service: Service) -> Submission:
    """Return the submission of two texts; `HTTPException` 422 names what cannot be used."""
    settings = service.settings
    if body.protocol is not None:
        settings = settings.with_eval(protocol=body.protocol)
    if not body.timing:
        timing = settings.eval.timing.model_copy(update={"enabled": False})
        settings = settings.with_eval(timing=timing)
    given = {"candidate.py": body.code} if isinstance(body.code, str) else body.code
    try:
        problem = problem_of_client(body.problem, settings.home)
        files = tuple(SourceFile(path=path, text=text) for path, text in given.items())
        made = make_candidate(files, problem, language=body.language, entry=body.entry)
        candidate = made[0] if isinstance(made, tuple) else made
        request = build_request(candidate, problem, settings)
    except ProblemError as error:
        raise HTTPException(422, f"problem: {error}") from error
    except (ConfigError, ValueError) as error:
        raise HTTPException(422, f"code: {_reason(error)}") from error
    return Submission(
        request=request, name=body.name, priority=body.priority, deadline_s=body.deadline_s
    )


def _reason(error: Exception) -> str:
    """Return the reason of a refused file; a validator of a record wraps the original error."""
    if not isinstance(error, ValidationError):
        return str(error)
    return fault_text(error.errors()[0])
