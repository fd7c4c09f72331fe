"""Evaluation by a server of ours: the same interface as on this machine. Needs no torch."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import quote, urlsplit, urlunsplit

from tilewright import errors
from tilewright.executors._async import in_thread
from tilewright.records import EvalReport, EvalRequest

__all__ = ["RemoteExecutor", "refused"]

WAIT_S = 30.0
"""How long one request waits at the server."""
MAX_PAUSE_S = 10.0
SUBMISSIONS = 5
"""How often work is submitted that the server has forgotten before it was told."""
Progress = Callable[[str, dict[str, Any]], None]


def _silent(event: str, fields: dict[str, Any]) -> None:
    """Ignore progress."""


class Unknown(errors.ConfigError):
    """The server knows no such task, or has no report of it."""


class RemoteExecutor:
    """A client of `tilewright serve`. Lifetime: as you like; it holds nothing open.

    What is sent twice, since an answer was lost, is one task: work is named by its content. A
    server that is not there is waited for for `patience_s` seconds; one that says that too much
    is waiting, for as long as it says so.

    Raises:
        ConfigError: the address is none.
    """

    def __init__(self, url: str, *, token: str | None = None, patience_s: float = 300.0) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError as error:
            raise errors.ConfigError(f"executor {url!r}: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise errors.ConfigError(
                f"executor {url!r}: this is no address; write that of a tilewright serve as "
                "http://host:port, with a token http://x:TOKEN@host:port, or local, ray or "
                "ray:HOST:PORT"
            )
        self._token = token or parts.password
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        host += f":{port}" if port else ""
        self._url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._patience_s = patience_s
        self._over = threading.Event()

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress = _silent,
        *,
        checks: tuple[str, ...] | None = None,  # noqa: ARG002 - the server has its own
        deadline_s: float | None = None,
    ) -> EvalReport:
        """Have one candidate judged and return the report.

        Raises:
            ProblemError: the problem cannot be used.
            ConfigError: the server refuses the request.
            InfrastructureError: it is not reached in time, or could not judge it.
            RecordError: its report is of a newer version.
        """
        body = {"request": request.model_dump(mode="json"), "deadline_s": deadline_s}
        for _ in range(SUBMISSIONS):
            task = self._asked("POST", "/v1/tasks", body)
            if not isinstance(task, dict) or not {"key", "state"} <= set(task):
                raise errors.ConfigError(f"{self._url}: what answers there is no tilewright serve")
            try:
                return self._report(self._ended(task, progress))
            except Unknown:
                # Its server has another store by now, or somebody has it judged anew.
                continue
        raise errors.InfrastructureError(f"{self._url}: it forgot the task {SUBMISSIONS} times")

    def _ended(self, task: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Wait for a task's end."""
        key, state = task["key"], ""
        while task["state"] in ("queued", "running"):
            if task["state"] != state:
                state = task["state"]
                progress("waiting", {"message": f"{self._url}: {state}"})
            task = self._asked("GET", f"/v1/tasks/{quote(key)}?wait_s={WAIT_S}")
        return task

    def _report(self, task: dict[str, Any]) -> EvalReport:
        """Return the report of a task that has ended, or raise what kept it from one."""
        if task["state"] == "done":
            path = f"/v1/tasks/{quote(task['key'])}/report"
            return EvalReport.from_json(json.dumps(self._asked("GET", path)))
        said = task.get("error") or f"the task was {task['state']}"
        if said.startswith("ProblemError"):
            raise errors.ProblemError(said)
        raise errors.InfrastructureError(f"{self._url}: {said}")

    async def evaluate_async(
        self, request: EvalRequest, progress: Progress = _silent
    ) -> EvalReport:
        """Have one candidate judged without blocking the event loop."""
        return await in_thread(lambda: self.evaluate(request, progress))

    def device_model(self) -> str:
        """Return the model of the server's devices.

        Raises:
            InfrastructureError: it is not reached.
        """
        return str(self._asked("GET", "/v1/health")["device"])

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def kill(self) -> None:
        """Wait for no answer any more; who waits gets an error, and the server goes on."""
        self._over.set()

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def cancel(self, key: str) -> None:
        """Want a task no more, by its key or its name.

        Raises:
            ConfigError: there is no such task of yours.
            InfrastructureError: the server is not reached.
        """
        self._asked("DELETE", f"/v1/tasks/{quote(key)}")

    def _asked(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Ask, again and again while the server is not there or has no room.

        Raises:
            ConfigError: the server refuses.
            InfrastructureError: it is not there for too long, or not waited for any more.
        """
        until, pause = time.monotonic() + self._patience_s, 0.2
        while True:
            if self._over.is_set():
                raise errors.InfrastructureError(f"{self._url}: not waited for any more")
            try:
                return self._once(method, path, body)
            except urllib.error.HTTPError as error:
                with error:
                    said = _body(error)
                if error.code == 429:
                    # It is there, and has no room yet: a full queue is waited for however long.
                    until = time.monotonic() + self._patience_s
                if error.code not in (429, 502, 503, 504) or time.monotonic() > until:
                    raise refused(self._url, error.code, said) from error
                pause = max(pause, _seconds(error.headers.get("retry-after")))
            except (OSError, ValueError, http.client.HTTPException) as error:
                # No connection, or one that broke in the middle of an answer.
                if time.monotonic() > until:
                    raise errors.InfrastructureError(
                        f"{self._url}: not reached within {self._patience_s:g} s: {error}"
                    ) from error
            self._over.wait(min(pause, MAX_PAUSE_S))
            pause *= 2

    def _once(self, method: str, path: str, body: object) -> Any:  # noqa: ANN401 - JSON
        with self._open(method, path, body, {}) as answer:
            return json.load(answer)

    def _open(self, method: str, path: str, body: object, more: dict[str, str]) -> Any:  # noqa: ANN401 - of urllib
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{self._url}{path}", data=data, method=method)
        asked.add_header("content-type", "application/json")
        if self._token:
            word = base64.b64encode(f"x:{self._token}".encode()).decode()
            asked.add_header("authorization", f"Basic {word}")
        for name, value in more.items():
            asked.add_header(name, value)
        return urllib.request.urlopen(asked, timeout=WAIT_S + 30)


def _seconds(said: str | None) -> float:
    """Return how long to wait by a header; what says it as a date leaves it to us (RFC 9110)."""
    try:
        return float(said or 0.0)
    except ValueError:
        return 0.0


def _body(error: urllib.error.HTTPError) -> str:
    try:
        return error.read().decode(errors="replace")[:500]
    except (OSError, http.client.HTTPException):
        return ""


def refused(url: str, code: int, said: str) -> errors.TilewrightError:
    """Return what a refusal means to who asked."""
    if code in (401, 403):
        return errors.ConfigError(f"{url}: it wants a token that may do this ({code}: {said})")
    if code == 404:
        return Unknown(f"{url}: refused ({code}: {said})")
    if code == 413:
        return errors.TooLarge(f"{url}: refused ({code}: {said})")
    if code < 500 and code != 429:
        return errors.ConfigError(f"{url}: refused ({code}: {said})")
    return errors.InfrastructureError(f"{url}: {code}: {said}")
