"""Schemas of the HTTP API: submissions, tasks as their owners see them, errors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tilewright.records import EvalRequest
from tilewright.serve.store.tables import Task

State = Literal["queued", "running", "done", "failed", "cancelled"]
PRIORITIES = {"low": 0, "normal": 1, "high": 2}
NAME = r"^[\w.:@+\-]{1,100}$"
"""Pattern of a client's name for a task. It is a part of a path, so it has no slash."""
MAX_DEADLINE_S = 366 * 86_400.0


class Submission(BaseModel):
    """A submission: an `EvalRequest`, its name, priority and deadline."""

    model_config = ConfigDict(extra="forbid")

    request: EvalRequest
    name: Annotated[str, Field(pattern=NAME)] | None = None
    """Your name for the task. The same name for a different request is a conflict."""
    priority: Literal["low", "normal", "high"] = "normal"
    deadline_s: Annotated[float, Field(gt=0, le=MAX_DEADLINE_S)] | None = None
    """Seconds from now after which the task may not start any more."""


class TaskView(BaseModel):
    """A task as its owner sees it."""

    key: str
    """Digest of the request and of the server's device and version."""
    state: State
    verdict: str | None
    error: str | None
    error_kind: str | None
    """Name of the exception of `tilewright` for the error; null if it is an internal one."""
    attempts: int
    priority: str
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    sequence: int


class ErrorBody(BaseModel):
    """The reason for a refusal or an error."""

    detail: str | list[dict[str, Any]]


class HealthStatus(BaseModel):
    """Status of the server, without data of any client."""

    status: Literal["ok", "draining", "store_unavailable"]
    """`store_unavailable`: the store's file was deleted or replaced, so all submissions fail."""
    version: str
    device: str
    uptime_s: float


class Queue(BaseModel):
    """Number of queued and running tasks."""

    waiting: int
    clients: dict[str, int]
    """Number of queued tasks by client. The scope `admin` shows all clients."""
    running: int
    max_running: int
    """Maximum number of tasks that run at once."""
    draining: bool


class Worker(BaseModel):
    """A worker that evaluates one task at a time."""

    name: str
    device: str
    """Model of the device."""
    state: Literal["idle", "busy", "draining"]


class RunningTask(BaseModel):
    """A task that is being evaluated. Times are seconds since 1970."""

    key: str
    problem: str
    title: str
    """The title of the problem."""
    started_at: float
    stage: str
    stage_at: float


class RecentTask(TaskView):
    """A task with its problem and its speed-up, as far as this server has seen them."""

    problem: str
    title: str
    """The title of the problem."""
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None


class MinuteView(BaseModel):
    """The numbers of one minute, which begins `at` so many seconds after 1970."""

    at: int
    verdicts: dict[str, int]
    internal_errors: int
    busy_s: dict[str, float]
    """Seconds in which evaluations held a device, by its name."""


class InternalError(BaseModel):
    """An attempt that ended with an internal error."""

    at: float
    key: str
    message: str


class Overview(BaseModel):
    """The state of the server for its dashboard. Tasks of others need the scope `admin`."""

    version: str
    device: str
    uptime_s: float
    queue: Queue
    tasks: dict[str, int]
    """Number of stored tasks by state, of all clients."""
    workers: list[Worker]
    running: list[RunningTask]
    minutes: list[MinuteView]
    """The last hour, of all clients; minutes without an event are left out."""
    waited_tasks: int
    """Number of tasks in the two waits: those that this server began last, at most 500."""
    wait_median_s: float | None
    wait_p95_s: float | None
    """Seconds from acceptance to the beginning."""
    failures: list[InternalError]
    recent: list[RecentTask]
    """The newest first."""


def view_of(task: Task) -> TaskView:
    fields = {name: getattr(task, name) for name in TaskView.model_fields if name != "priority"}
    return TaskView(priority=list(PRIORITIES)[task.priority], **fields)
