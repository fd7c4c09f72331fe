"""Evaluation by a `tilewright serve`, with the interface of the local executor. Needs no torch.

Each operation is a generator: it yields requests and delays, and receives responses. `_run` and
`_run_async` drive the same generator with a synchronous and an asynchronous `httpx` client.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from tilewright import errors
from tilewright.config import environment
from tilewright.executors.base import Executor, Progress, failure, ignore_progress
from tilewright.executors.remote_stages import stages_told
from tilewright.executors.retrying import Backoff, server_delay
from tilewright.records import EvalReport, EvalRequest

if TYPE_CHECKING:
    import ssl

    import httpx

OPEN = ("queued", "running")
"""States of a task that has not ended."""
MAX_WAIT_S = 30.0
"""Seconds that one request waits at the server for the end of a task."""
TIMEOUT_S = MAX_WAIT_S + 30.0
"""Seconds without data after which a connection counts as broken."""
FIRST_DELAY_S, MAX_DELAY_S = 0.2, 10.0
"""Seconds between two attempts to reach the server: the first delay, and the longest."""
POLL_S = 0.2
"""Seconds after which a delay in an event loop notices `kill`."""
MAX_SUBMISSIONS = 5
"""Submissions of one request to a server that forgets its task each time."""
MAX_DETAIL_CHARS = 500
"""Characters of a server's answer that an error message repeats."""
DEFAULT_PORT = 8477
"""Port of `tilewright serve`, unless it gets another one."""
LOCAL_SERVER = f"http://localhost:{DEFAULT_PORT}"
"""Address of a server of this machine."""
PROXY_VARIABLES = (
    *("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"),
    *("all_proxy", "https_proxy", "http_proxy", "no_proxy"),
)
CERTIFICATES = "SSL_CERT_FILE"
"""Variables that httpx reads: those of proxies, and the file of the certificates that it trusts."""
RETRIED = (429, 502, 503, 504)
"""Statuses after which the client sends the same request again."""
Answer = TypeVar("Answer")
Options = ParamSpec("Options")


@dataclass(frozen=True)
class _Call:
    """A request to the server; `body` is sent as JSON."""

    method: str
    path: str
    body: object = None


Steps = Generator["_Call | float", Any, Answer]


class _UnknownTask(errors.ConfigError):
    """The server has no such task, or no report of it."""


class Patience:
    """Time until a client gives up on a server that does not answer. Lifetime: one call."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self.renew()

    def renew(self) -> None:
        """Begin anew: the server has just answered."""
        self._until = time.monotonic() + self._patience_s

    @property
    def is_over(self) -> bool:
        """Whether the time has passed."""
        return time.monotonic() > self._until


def both(
    steps: Callable[Concatenate[Any, Options], Steps[Answer]],
) -> tuple[
    Callable[Concatenate[Any, Options], Answer],
    Callable[Concatenate[Any, Options], Coroutine[Any, Any, Answer]],
]:
    """Return two methods that take the steps of an operation: one that blocks, one to await."""

    @wraps(steps)
    def call(self: Any, /, *given: Options.args, **more: Options.kwargs) -> Any:  # noqa: ANN401 - the method's
        return self._run(steps(self, *given, **more))

    @wraps(steps)
    async def call_async(self: Any, /, *given: Options.args, **more: Options.kwargs) -> Any:  # noqa: ANN401 - the method's
        return await self._run_async(steps(self, *given, **more))

    return call, call_async


class RemoteExecutor(Executor):
    """A client of `tilewright serve`. It holds no connection between two calls.

    The server names a task by its content, so a request that is sent twice is one task. The client
    repeats a request for `patience_s` seconds while the server does not answer. While the server
    answers that its queue is full, the client repeats without limit.

    Raises:
        ConfigError: the address is invalid, or the extra `client` is not installed.
    """

    def __init__(
        self, url: str = LOCAL_SERVER, *, token: str | None = None, patience_s: float = 300.0
    ) -> None:
        parts = urlsplit(url if isinstance(url, str) else "")
        try:
            port = parts.port
        except ValueError as error:
            raise errors.ConfigError(f"executor {url!r}: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise errors.ConfigError(
                f"executor {url!r} is not an address; write that of a tilewright serve as "
                "http://host:port, with a token http://x:TOKEN@host:port, or local, ray or "
                "ray:HOST:PORT"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        host += f":{port}" if port else ""
        self._url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._token = token or parts.password
        self._patience_s = patience_s
        self._over = threading.Event()
        self._httpx = _client_library(self._url)

    def _evaluate(
        self,
        request: EvalRequest,
        progress: Progress = ignore_progress,
        *,
        checks: tuple[str, ...] | None = None,  # noqa: ARG002 - the server has its own
        deadline_s: float | None = None,
    ) -> Steps[EvalReport]:
        """Submit one candidate and return its report.

        Raises:
            ProblemError: the problem cannot be used.
            ConfigError: the server refuses the request.
            InfrastructureError: the server does not answer in time, or could not judge it.
            RecordError: a newer version of tilewright wrote the report.
        """
        body = {"request": request.model_dump(mode="json"), "deadline_s": deadline_s}
        for _ in range(MAX_SUBMISSIONS):
            task = yield from self._asked("POST", "/v1/tasks", body)
            if not isinstance(task, dict) or not {"key", "state"} <= set(task):
                raise errors.ConfigError(f"{self._url}: the server is not a tilewright serve")
            try:
                task = yield from self._ended(task, progress)
                return (yield from self._report_of(task))
            except _UnknownTask:
                # The server has another store, or another client has restarted the task.
                continue
        raise errors.InfrastructureError(
            f"{self._url}: the server forgot the task {MAX_SUBMISSIONS} times"
        )

    def _ended(self, task: dict[str, Any], progress: Progress) -> Steps[dict[str, Any]]:
        """Wait for the end of a task, and tell its stages meanwhile."""
        state, path = "", f"/v1/tasks/{quote(task['key'])}"
        if task["state"] not in OPEN:
            return task
        with stages_told(self._options(), f"{path}/events", progress):
            while task["state"] in OPEN:
                if task["state"] != state:
                    state = task["state"]
                    progress("waiting", {"message": f"{self._url}: {state}"})
                task = yield from self._asked("GET", f"{path}?wait_s={MAX_WAIT_S}")
        return task

    evaluate, evaluate_async = both(_evaluate)

    def device_model(self) -> str:
        """Return the model of the server's devices."""
        return str(self._run(self._asked("GET", "/v1/health"))["device"])

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def kill(self) -> None:
        """End all waits; their callers get an error, and the server goes on with the tasks."""
        self._over.set()

    def _report_of(self, task: dict[str, Any]) -> Steps[EvalReport]:
        """Return the report of an ended task, or raise the error that it ended with."""
        if task["state"] == "done":
            found = yield from self._asked("GET", f"/v1/tasks/{quote(task['key'])}/report")
            return EvalReport.from_json(json.dumps(found))
        reason = task.get("error") or f"the task was {task['state']}"
        if kind := task.get("error_kind"):
            raise failure({"type": kind, "message": reason.removeprefix(f"{kind}: ")})
        # An older server tells the kind in the text alone.
        if reason.startswith("ProblemError"):
            raise errors.ProblemError(reason)
        raise errors.InfrastructureError(f"{self._url}: {reason}")

    def _asked(self, method: str, path: str, body: object = None) -> Steps[Any]:
        """Return the JSON answer to a request, which is repeated while the server is away."""
        patience = Patience(self._patience_s)
        backoff = Backoff(FIRST_DELAY_S, max_delay_s=MAX_DELAY_S)
        while True:
            self._check_over()
            answer = yield _Call(method, path, body)
            try:
                if isinstance(answer, Exception):
                    raise answer
                return answer.raise_for_status().json()
            except (self._httpx.HTTPError, ValueError) as error:
                # ValueError: the answer is no JSON, for example because it was cut off.
                delay_s = backoff.next_delay(self._retry_after(error, patience))
            assert delay_s is not None
            yield delay_s

    def _retry_after(self, error: Exception, patience: Patience) -> float:
        """Return the least delay in seconds before the next attempt, or raise a final error."""
        if isinstance(error, self._httpx.HTTPStatusError):
            response = error.response
            if response.status_code == 429:
                # The server is there; a full queue is no reason to give up.
                patience.renew()
            if response.status_code not in RETRIED or patience.is_over:
                raise self._refusal(response.status_code, response.text) from error
            return server_delay(response)
        if patience.is_over:
            raise errors.InfrastructureError(
                f"{self._url}: not reached within {self._patience_s:g} s: {_cause(error)}; check "
                "the address, or start the server with tilewright serve"
            ) from error
        return 0.0

    def _refusal(self, status: int, text: str) -> errors.TilewrightError:
        said = f"{status}: {_detail(text)[:MAX_DETAIL_CHARS]}"
        if status in (401, 403):
            return errors.ConfigError(f"{self._url}: it needs a token with this scope ({said})")
        if status >= 500 or status == 429:
            return errors.InfrastructureError(f"{self._url}: {said}")
        kinds = {404: _UnknownTask, 413: errors.TooLarge}
        return kinds.get(status, errors.ConfigError)(f"{self._url}: refused ({said})")

    def _check_over(self) -> None:
        if self._over.is_set():
            raise errors.InfrastructureError(f"{self._url}: waiting was cancelled")

    def _options(self) -> dict[str, Any]:
        httpx = self._httpx
        return {
            "base_url": self._url,
            "auth": ("x", self._token) if self._token else None,
            "timeout": httpx.Timeout(TIMEOUT_S, pool=None),
            "verify": _tls_context(),
            "follow_redirects": True,
        }

    def _opened(self, kind: Callable[..., Any]) -> Any:  # noqa: ANN401 - a client of httpx
        options = self._options()
        try:
            return kind(**options)
        except (ImportError, ValueError, self._httpx.InvalidURL) as error:
            # ImportError: httpx needs another package for SOCKS.
            given = ", ".join(environment(PROXY_VARIABLES)) or "the system's proxy"
            reason = str(error).rstrip(".")
            raise errors.ConfigError(
                f"{given}: cannot be used here: {reason}; name another proxy, or unset it"
            ) from error

    def _run(self, steps: Steps[Answer]) -> Answer:
        answer: Any = None
        with self._opened(self._httpx.Client) as client:
            try:
                while True:
                    step = steps.send(answer)
                    try:
                        if isinstance(step, _Call):
                            answer = client.send(_built(client, step))
                        else:
                            self._over.wait(step)
                    except self._httpx.HTTPError as error:
                        answer = error
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return] # typed by Steps

    async def _run_async(self, steps: Steps[Answer]) -> Answer:
        answer: Any = None
        async with self._opened(self._httpx.AsyncClient) as client:
            try:
                while True:
                    step = steps.send(answer)
                    try:
                        if isinstance(step, _Call):
                            answer = await client.send(_built(client, step))
                        else:
                            await self._sleep(step)
                    except self._httpx.HTTPError as error:
                        answer = error
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return] # typed by Steps

    async def _sleep(self, delay_s: float) -> None:
        until = time.monotonic() + delay_s
        while (left := until - time.monotonic()) > 0 and not self._over.is_set():
            await asyncio.sleep(min(left, POLL_S))


def _detail(text: str) -> str:
    """Return what a server says about a refused request; a proxy may answer with any text."""
    try:
        detail = json.loads(text)["detail"]
        if isinstance(detail, list):
            return "; ".join(str(row["msg"]) for row in detail)
    except (ValueError, KeyError, TypeError):
        return text
    return detail if isinstance(detail, str) else text


def _cause(error: BaseException) -> str:
    """Return why a connection failed: the system's reason, if an exception below has one."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.strerror:
            return errors.reason_of(below)
        below = below.__cause__ or below.__context__
    return str(error)


def _client_library(url: str) -> Any:  # noqa: ANN401 - a module
    try:
        import httpx
        import httpx_sse  # noqa: F401 - of the same extra
    except ImportError as error:
        raise errors.ConfigError(
            f"a client of a server needs {error.name}: pip install 'tilewright[client]'"
        ) from error
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise errors.ConfigError(f"executor {url!r}: {error}") from error
    return httpx


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS settings of all clients: to read the certificates takes 20 ms."""
    import httpx

    try:
        return httpx.create_ssl_context()
    except OSError as error:
        given = environment((CERTIFICATES,)).get(CERTIFICATES)
        named = f"{CERTIFICATES} {given}" if given else "certificates"
        raise errors.ConfigError(f"{named}: cannot be read: {errors.reason_of(error)}") from error


def _built(client: httpx.Client | httpx.AsyncClient, call: _Call) -> httpx.Request:
    # Not `json=`: half of a surrogate pair has a JSON escape, and no UTF-8.
    content = None if call.body is None else json.dumps(call.body).encode()
    headers = {"content-type": "application/json"}
    return client.build_request(call.method, call.path, content=content, headers=headers)
