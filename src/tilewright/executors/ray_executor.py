"""Evaluation on a Ray cluster: one actor for each leased device.

The executor always requests one more actor than it has. Ray places that actor as soon as a device
is free, also on a node that joins later. So the executor needs no list of nodes and no heartbeat.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright import errors
from tilewright._version import __version__
from tilewright.executors import ray_api
from tilewright.executors.base import Progress, WorkerPool, failure, ignore_progress
from tilewright.executors.scheduling import WorkerLoad
from tilewright.records import EvalReport, EvalRequest

MAX_LOSSES = 3
"""Times that a request starts again after its actor or node was lost."""
WORKERS_PER_DEVICE = {"cpu": 1, "cuda": 2}
"""Evaluations at once on a device. On a GPU the second prepares while the first is judged."""
POLL_S = 1.0
"""Seconds between two checks of a request that waits, and of an actor that is not placed yet."""
DEVICE_WAIT_S = 60.0
"""Seconds that `device_model` waits for the first device."""
MESSAGE_INTERVAL_S = 5.0
"""Seconds between two messages that a request still waits."""
REFUSED_WAIT_S = 15.0
"""Seconds that a request waits for a usable device after other devices were refused."""


@dataclass(eq=False, kw_only=True)
class _DeviceActor(WorkerLoad):
    """A live actor that holds the lease of one device."""

    actor: Any
    about: dict[str, Any]

    @property
    def where(self) -> str:
        return f"{self.about['device']} of {self.about['host']} ({self.about['address']})"


class _ActorLost(Exception):
    """The actor and its evaluations are gone."""


class RayExecutor(WorkerPool[_DeviceActor]):
    """Devices of a Ray cluster. Lifetime: until `close`. Safe to use from several threads.

    All devices are of the model that was leased first. The executor holds a device of another
    model, or of a node with another version, but never uses it; `refused` gives the reason.

    Args:
        address: address of the cluster. `auto` is the cluster that this machine belongs to; `None`
            starts one on this machine, which ends with the executor.
        workers: evaluations at once on each device; default: `WORKERS_PER_DEVICE`.
        device: `cpu`, or any name of a GPU: Ray chooses which one.
        home: home folder for a cluster on this machine; other nodes have their own.
        patience_s: seconds that a request waits while there is no device; `None`: without limit.
        accelerator: lease only this model, by Ray's name for it (`H100`).

    Raises:
        ConfigError: Ray is not installed, cannot be reached, or has another version.
    """

    def __init__(
        self,
        address: str | None,
        *,
        workers: int | None = None,
        device: str = "cpu",
        home: Path | None = None,
        patience_s: float | None = 300.0,
        accelerator: str | None = None,
    ) -> None:
        super().__init__()
        self._device = device.partition(":")[0]
        if self._device not in WORKERS_PER_DEVICE:
            raise errors.ConfigError(f"device {device!r} is unknown; known: cpu, cuda")
        self._owned = ray_api.connect(address)
        self._workers = workers or WORKERS_PER_DEVICE[self._device]
        self._home = None if home is None or address is not None else str(home)
        self._patience_s = patience_s
        self._accelerator = accelerator
        self._numbers = itertools.count()
        self._members: list[_DeviceActor] = []
        self._model: str | None = None
        """Model of the first leased device, also after that device is gone."""
        self._held: list[Any] = []
        self.refused: dict[str, str] = {}
        """Reason for each leased device that is not used, by device and node."""
        self.lost = 0
        """Number of actors that were lost."""
        self.placement_error = ""
        """Error of the last actor that could not be placed, if any."""
        self._recruiter = threading.Thread(target=self._recruit, daemon=True)
        self._recruiter.start()

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress = ignore_progress,
        *,
        checks: tuple[str, ...] | None = None,
        idle: Callable[[], None] | None = None,
    ) -> EvalReport:
        """Judge one candidate, as `Executor.evaluate`.

        A request whose actor is lost starts again on another device, at most `MAX_LOSSES` times.
        `idle` is called at intervals; what it raises ends the evaluation.

        Raises:
            ConfigError: no device of the cluster may be used; the message says why.
        """
        lost: list[str] = []
        while len(lost) <= MAX_LOSSES:
            waiting = self._while_waiting(progress, idle)
            with self._acquired(request.problem.digest(), POLL_S, waiting) as member:
                try:
                    return self._exchange(member, request, progress, checks, idle)
                except _ActorLost as error:
                    self._forget(member)
                    lost.append(f"{member.where}: {error}")
            progress("waiting", {"message": f"{lost[-1]}; the request starts again elsewhere"})
        raise errors.InfrastructureError(
            f"the device was lost {len(lost)} times during the evaluation: {'; '.join(lost)}"
        )

    def _exchange(
        self,
        member: _DeviceActor,
        request: EvalRequest,
        progress: Progress,
        checks: tuple[str, ...] | None,
        idle: Callable[[], None] | None,
    ) -> EvalReport:
        number = next(self._numbers)
        fields: dict[str, Any] = {}
        kind = ""
        try:
            answers = ray_api.stream(member.actor.evaluate, number, request.to_json(), checks)
            for kind, fields in answers:
                if kind == "event":
                    # The actor's name of its device is that of another one on other nodes.
                    progress(fields["event"], {**fields["fields"], "device": member.where})
                elif kind == "still" and idle is not None:
                    idle()
        except ray_api.lost_errors() as error:
            if self._closed:
                raise errors.InfrastructureError("the executor was closed") from error
            raise _ActorLost(str(error).partition("\n")[0] or type(error).__name__) from error
        except BaseException:
            # The caller gives up, so the actor ends the evaluation at its next step.
            member.actor.drop.remote(number)
            raise
        if kind == "report":
            return EvalReport.from_json(fields["text"])
        if kind == "failed":
            raise failure(fields)
        raise errors.InfrastructureError(f"{member.where}: {fields.get('message', 'no answer')}")

    def _while_waiting(
        self, progress: Progress, idle: Callable[[], None] | None
    ) -> Callable[[], None]:
        """Return the call for each poll of a request; it raises once no device can be expected."""
        alone_since = reported = time.monotonic()

        def on_poll() -> None:
            nonlocal alone_since, reported
            if idle is not None:
                idle()
            with self._changed:
                alone, refused = not self._members, dict(self.refused)
            now = time.monotonic()
            if not alone or self._patience_s is None:
                alone_since = now
            elif refused and now - alone_since > REFUSED_WAIT_S:
                raise errors.ConfigError(_explained(refused))
            elif now - alone_since > self._patience_s:
                raise errors.InfrastructureError(_none_free(self._patience_s))
            if now - reported > MESSAGE_INTERVAL_S:
                reported = now
                what = "any device" if alone else "a free device"
                why = f" ({_explained(refused)})" if alone and refused else ""
                progress("waiting", {"message": f"cluster: waiting for {what}{why}"})

        return on_poll

    def _candidates(self) -> tuple[Sequence[_DeviceActor], Set[str]]:
        return [member for member in self._members if member.load < self._workers], frozenset()

    def _forget(self, member: _DeviceActor) -> None:
        with self._changed:
            if member in self._members:
                self._members.remove(member)
                self.lost += 1
                # After a network failure the actor may live on; it must not keep its lease.
                ray_api.kill(member.actor)

    def _recruit(self) -> None:
        """Request one device after another until the executor is closed."""
        while not self._closed:
            actor: Any = None
            about: dict[str, Any] | None = None
            try:
                actor = ray_api.ask(self._device, self._workers, self._accelerator)
                asked = actor.about.remote(__version__, self._workers, self._home)
                while about is None and not self._closed:
                    about = ray_api.answer(asked, POLL_S)
            except Exception as error:  # noqa: BLE001 - Ray raises many types, and nobody waits here
                if actor is not None:
                    ray_api.kill(actor)
                with self._changed:
                    self.placement_error = str(error)
                    self._changed.wait_for(lambda: self._closed, POLL_S)
                continue
            with self._changed:
                if about is None or self._closed:
                    # `kill` frees a device, which this actor may have got since.
                    ray_api.kill(actor)
                    return
                name = f"{about['device']} of {about['host']}"
                reason = reject_reason(about, __version__, self._model)
                if reason:
                    self.refused[name] = reason
                    # The executor keeps the lease, so that Ray places the next actor elsewhere.
                    self._held.append(actor)
                else:
                    self.refused.pop(name, None)
                    self._model = about["model"]
                    self._members.append(_DeviceActor(actor=actor, about=about))
                self._dispatch()

    def device_model(self) -> str:
        """Return the model of the devices once one is leased, or raise as `evaluate`."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._members or self.refused or self._closed, DEVICE_WAIT_S
            )
            if self.refused:
                # A usable device may follow a refused one.
                self._changed.wait_for(lambda: self._members or self._closed, REFUSED_WAIT_S)
            if self._members:
                return str(self._members[0].about["model"])
            if self.refused:
                raise errors.ConfigError(_explained(self.refused))
        raise errors.InfrastructureError(_none_free(DEVICE_WAIT_S))

    @property
    def is_open(self) -> bool:
        """Whether it was neither closed nor killed."""
        return not self._closed

    def room(self) -> int:
        """Return how many evaluations can run at once on the present devices."""
        return max(1, len(self._members)) * self._workers

    def members(self) -> list[dict[str, Any]]:
        """Return the leased devices: device, host, address, node, pid, versions, load."""
        with self._changed:
            return [{**member.about, "load": member.load} for member in self._members]

    def close(self) -> None:
        """Wait until running evaluations have finished, and give the devices back."""
        with self._changed:
            self._changed.wait_for(lambda: not any(item.load for item in self._members))
        self.kill()
        self._recruiter.join()
        if self._owned:
            ray_api.disconnect()
            self._owned = False

    def kill(self) -> None:
        with self._changed:
            self._kill()
            actors = [*self._held, *(member.actor for member in self._members)]
        for actor in actors:
            ray_api.kill(actor)


def reject_reason(about: Mapping[str, str], version: str, model: str | None) -> str:
    """Return why a leased device may not be used; empty: it may be used.

    `about` is the description that its actor sent, `model` that of the devices in use.
    """
    if about["trouble"]:
        return about["trouble"]
    if about["tilewright"] != version:
        return f"tilewright {about['tilewright']} is there, {version} is here"
    here = ".".join(map(str, sys.version_info[:2]))
    if about["python"].rpartition(".")[0] != here:
        return f"Python {about['python']} is there, {here} is here"
    if model is not None and about["model"] != model:
        return (
            f"it is a {about['model']}, the others are {model}, and times of several models "
            "do not compare; name one: ray:ADDRESS?accelerator=NAME"
        )
    return ""


def _none_free(waited_s: float) -> str:
    rows = [
        f"{item['host']} ({item['address']}) has {item['resources'].get('CPU', 0):g} CPUs and "
        f"{item['resources'].get('GPU', 0):g} GPUs"
        for item in ray_api.nodes()
    ]
    nodes = "; ".join(rows) or "it has no node"
    return f"no free device in the cluster within {waited_s:g} s: {nodes}"


def _explained(refused: dict[str, str]) -> str:
    return "no device of the cluster may be used: " + "; ".join(
        f"{where}: {why}" for where, why in refused.items()
    )
