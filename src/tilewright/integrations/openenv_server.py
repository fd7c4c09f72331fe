"""The server of tilewright's OpenEnv environment: many sessions share one pool of devices."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from openenv.core.env_server import Environment, create_fastapi_app
from openenv.core.env_server.types import ConcurrencyConfig, EnvironmentMetadata
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilewright._version import __version__
from tilewright.config import Config
from tilewright.errors import ConfigError, TilewrightError, suggestion
from tilewright.executors.base import Executor
from tilewright.executors.factory import open_executor
from tilewright.integrations.judged_answers import (
    Episode,
    harness_settings,
    judgeable_problems,
    prompt_text,
)
from tilewright.integrations.openenv import KernelAction, KernelObservation, KernelState
from tilewright.loop.answer_evaluator import MAX_WORKERS
from tilewright.loop.prompts.shown_programs import fenced
from tilewright.problems.imported_sets import imported
from tilewright.records import Problem
from tilewright.reports.loader import title_of_problem
from tilewright.rl.episodes import Episodes
from tilewright.serve.request_limits import BodyLimitMiddleware

MAX_BODY_BYTES, BODY_TIMEOUT_S = 8 << 20, 60.0
"""Largest request or message, and seconds in which the body of a request has to arrive."""
IDLE_S = 3600.0
"""Seconds after which a session without a message ends."""


class DevicePool:
    """The problems and the executor of a server. Lifetime: the server; safe for threads."""

    def __init__(self, settings: Config, addresses: Sequence[str] = (), turns: int = 10) -> None:
        self.settings, self.turns = settings, turns
        known = addresses or ("bundled", *_imported_groups(settings))
        self._splits = {name: judgeable_problems(name, settings) for name in known}
        self._lock = threading.Lock()
        self._executor: Executor | None = None

    @property
    def splits(self) -> list[str]:
        """The addresses from which an episode may take a problem."""
        return list(self._splits)

    def problems(self, split: str) -> list[Problem]:
        """Return the problems of a split.

        Raises:
            ConfigError: this server has no such split.
        """
        if split not in self._splits:
            hint = suggestion(split, self._splits) or f"known: {', '.join(self._splits)}"
            raise ConfigError(f"no split {split[:100]!r} on this server; {hint}")
        return self._splits[split]

    def executor(self) -> Executor:
        """Return the executor, which starts with the first call."""
        with self._lock:
            if self._executor is None:
                workers = min(self.settings.loop.max_concurrency, MAX_WORKERS)
                self._executor = open_executor(self.settings, workers)
            return self._executor

    def close(self) -> None:
        """End the executor and its processes."""
        with self._lock:
            if self._executor is not None:
                self._executor.kill()
                self._executor.close()
                self._executor = None


def _imported_groups(settings: Config) -> list[str]:
    groups: list[str] = []
    for name in dict.fromkeys(name for name, _, _ in imported(settings.home)):
        ids = [item.id for item in judgeable_problems(name, settings)]
        inner = {item.rpartition("-")[0] for item in ids if item.rpartition("-")[2].isdigit()}
        groups += [name, *sorted(item for item in inner if item.startswith(f"{name}/"))]
    return groups


@dataclass
class _Running:
    """The episode of a session."""

    run: Episodes
    episode: Episode
    problem: Problem
    answers: int = 0
    over: bool = False
    state: KernelState = field(default_factory=KernelState)


class KernelSession(Environment[KernelAction, KernelObservation, KernelState]):  # type: ignore[type-arg, unused-ignore]
    """One session. Each of its episodes is a run folder. Lifetime: the session."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, pool: DevicePool) -> None:
        super().__init__()
        self._pool = pool
        self._running: _Running | None = None

    def list_splits(self) -> list[str]:
        """Return the addresses from which an episode may take a problem."""
        return self._pool.splits

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Return the problems of a split."""
        return [_task(split, at, item) for at, item in enumerate(self._pool.problems(split))]

    def num_tasks(self, split: str) -> int:
        """Return the number of problems of a split."""
        return len(self._pool.problems(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Return one problem of a split; `IndexError`: it has no such number."""
        return _task(split, index, _one(self._pool.problems(split), index))

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the problems of a split in a range."""
        return self.list_tasks(split)[start:stop]

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        split: str = "",
        index: int = 0,
        **_: Any,  # noqa: ANN401 - of other environments
    ) -> KernelObservation:
        """Begin an episode on problem `index` of `split`; `seed` draws no inputs and is ignored.

        Raises:
            ConfigError: there is no such split or index.
        """
        del seed
        split = split or self._pool.splits[0]
        problems = self._pool.problems(split)
        try:
            problem = _one(problems, index)
        except IndexError as error:
            raise ConfigError(
                f"{split} has {len(problems)} problems, no index {index!r:.40}"
            ) from error
        self.close()
        settings = self._pool.settings
        run = Episodes(settings, "openenv", self._pool.executor())
        episode = Episode(run, settings)
        system, prompt = prompt_text(episode.reset(problem))
        state = KernelState(
            episode_id=episode_id, problem=problem.id, split=split, run=str(run.folder.resolve())
        )
        self._running = _Running(run, episode, problem, state=state)
        return KernelObservation(
            problem=problem.id, prompt=prompt, system=system, run=str(run.folder.resolve())
        )

    def step(
        self,
        action: KernelAction,
        timeout_s: float | None = None,  # noqa: ARG002 - the settings have the limits
        **_: Any,  # noqa: ANN401 - of other environments
    ) -> KernelObservation:
        """Judge an answer; servers use `step_async`."""
        return asyncio.run(self.step_async(action))

    async def step_async(
        self,
        action: KernelAction,
        timeout_s: float | None = None,  # noqa: ARG002 - the settings have the limits
        **_: Any,  # noqa: ANN401 - of other environments
    ) -> KernelObservation:
        """Judge an answer. An unjudged one has the reward `None`.

        Raises:
            ConfigError: no episode has begun, or it is over.
        """
        running = self._running
        if running is None:
            raise ConfigError(
                "no episode: call reset first; over HTTP each request has an environment of its "
                "own, so use the WebSocket /ws"
            )
        if running.over:
            raise ConfigError(f"the episode on {running.problem.id} is over; call reset")
        tag = {"cpp": "cpp", "cuda": "cuda"}.get(action.language or "", "python")
        text = action.reply if action.reply else fenced(action.source, tag)
        found, prompt = await running.episode.answer(text)
        running.answers += 1
        running.over = running.answers >= self._pool.turns
        running.state.step_count, running.state.verdict = running.answers, found.verdict
        fields = found.fields()
        return KernelObservation(
            **{name: fields[name] for name in fields.keys() & KernelObservation.model_fields},
            prompt=prompt_text(prompt)[1] if prompt else found.feedback,
            turn=running.answers,
            done=running.over,
        )

    @property
    def state(self) -> KernelState:
        """The state of the episode."""
        return KernelState() if self._running is None else self._running.state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the name and the version."""
        return EnvironmentMetadata(
            name="tilewright",
            description="Writes GPU kernels; each answer gets a verdict and a measured speed-up.",
            version=__version__,
        )

    def close(self) -> None:
        """End the episode; its run folder stays."""
        running, self._running = self._running, None
        if running is not None:
            running.run.close()


def _one(problems: Sequence[Problem], index: int) -> Problem:
    if not isinstance(index, int) or not 0 <= index < len(problems):
        raise IndexError(index)
    return problems[index]


def _task(split: str, index: int, problem: Problem) -> dict[str, Any]:
    return {"id": problem.id, "split": split, "index": index, "title": title_of_problem(problem)}


class DisconnectMiddleware:
    """Ends the session of a WebSocket as soon as its client is gone, also within a step.

    OpenEnv reads a message after the step before has ended. Without this class, a client that is
    gone would keep its place until then. Lifetime: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        waiting: asyncio.Queue[Message] = asyncio.Queue()
        served = asyncio.ensure_future(self._app(scope, waiting.get, send))

        async def read() -> None:
            while True:
                message = await receive()
                await waiting.put(message)
                if message["type"] == "websocket.disconnect":
                    return

        reader = asyncio.ensure_future(read())
        try:
            await asyncio.wait({served, reader}, return_when=asyncio.FIRST_COMPLETED)
            if not served.done():
                # One turn of the loop: a session that waits for a message ends by itself.
                await asyncio.wait({served}, timeout=1.0)
                served.cancel()
            await asyncio.gather(served, return_exceptions=True)
        finally:
            reader.cancel()
            served.cancel()


def create_app(pool: DevicePool, sessions: int) -> FastAPI:
    """Return the application for a pool; at most `sessions` clients at once."""
    limits = ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=IDLE_S)
    app: FastAPI = create_fastapi_app(
        partial(KernelSession, pool),
        KernelAction,
        KernelObservation,
        concurrency_config=limits,
        env_name="tilewright",
        state_cls=KernelState,
    )
    app.add_middleware(DisconnectMiddleware)
    app.add_middleware(BodyLimitMiddleware, max_bytes=MAX_BODY_BYTES, body_timeout_s=BODY_TIMEOUT_S)

    @app.exception_handler(TilewrightError)
    async def refuse(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001 - theirs
        status = 422 if isinstance(error, ConfigError) else 503
        return JSONResponse({"detail": str(error)}, status_code=status)

    return app


def __getattr__(name: str) -> Any:  # noqa: ANN401 - `app` alone
    """Return the application with the default settings: `uvicorn MODULE:app`."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return create_app(DevicePool(harness_settings((), "tilewright")), sessions=32)
