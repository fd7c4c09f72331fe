"""Evaluation on a Ray cluster: an actor for each leased device, wherever Ray finds one.

A device lease is a resource of Ray's. One more actor is asked for than is alive, always: Ray
places it when a device is free, be it that a node has joined or that a lost one is back. So there
is no list of nodes here, no heartbeat and no protocol for joining.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tilewright import errors
from tilewright._version import __version__
from tilewright.executors import ray_api
from tilewright.executors.scheduling import DeviceLoad, least_loaded, reject_reason
from tilewright.records import EvalReport, EvalRequest

__all__ = ["MAX_LOSSES", "RayExecutor"]

MAX_LOSSES = 3
"""How often a request begins anew since the actor, or its node, that judged it was lost."""
PER_DEVICE = {"cpu": 1, "cuda": 2}
MAX_PASSED_OVER = 16
MAX_KNOWN_PROBLEMS = 8
LOOK_S = 1.0
MODEL_S = 60.0
SAY_S = 5.0
GRACE_S = 15.0
"""How long a request waits for a device that may be used while others have been refused."""
Progress = Callable[[str, dict[str, Any]], None]


def _silent(event: str, fields: dict[str, Any]) -> None:
    """Ignore progress."""


@dataclass(eq=False)
class _DeviceActor:
    """An actor that is alive and may judge."""

    actor: Any
    about: dict[str, Any]
    load: int = 0
    known: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        """Return how it is called in messages."""
        return f"{self.about['device']} of {self.about['host']} ({self.about['address']})"


@dataclass(eq=False)
class _PendingRequest:
    problem: str
    passed: int = 0
    member: _DeviceActor | None = None


class _Lost(Exception):
    """The actor is gone, with whatever it judged."""


class RayExecutor:
    """Devices of a Ray cluster. Lifetime: until `close`. Safe to use from several threads.

    A request whose actor is lost, since it or its node died, begins anew elsewhere, at most
    `MAX_LOSSES` times. All devices are of one model, that of the first that was leased; others
    are held and never used, and `refused` says so, as it does of nodes with another version.

    Args:
        address: of the cluster, `auto` for the one that this machine is part of; `None` starts one
            on this machine, which ends with the executor.
        workers: evaluations for each device at once, of which one is on it; default: two for a GPU,
            so that one is prepared while another is judged, and one for the two cores of a CPU.
        device: `cpu`, or any name of a GPU: which of them is Ray's choice.
        home: for a cluster of our own; the nodes of another have theirs.
        patience_s: how long a request waits while there is no device at all; `None`: for ever.
        accelerator: lease only this one, as Ray calls it (`H100`).

    Raises:
        ConfigError: Ray is not installed, not reached, or of another version.
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
        self._device = device.partition(":")[0]
        if self._device not in PER_DEVICE:
            raise errors.ConfigError(f"device {device!r} is unknown; known: cpu, cuda")
        self._owned = ray_api.connect(address)
        self._workers = workers or PER_DEVICE[self._device]
        self._home = None if home is None or address is not None else str(home)
        self._patience_s = patience_s
        self._accelerator = accelerator
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._members: list[_DeviceActor] = []
        self._model: str | None = None
        """Of the first device that was leased, also when it is gone."""
        self._waiting: list[_PendingRequest] = []
        self._held: list[Any] = []
        self._over = False
        self.refused: dict[str, str] = {}
        """Why a device that was leased is not used, by device and node."""
        self.lost = 0
        """How many actors have died."""
        self.trouble = ""
        """Why the last actor that was asked for came to nothing, if it did."""
        self._recruiter = threading.Thread(target=self._recruit, daemon=True)
        self._recruiter.start()

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress = _silent,
        *,
        checks: tuple[str, ...] | None = None,
        idle: Callable[[], None] | None = None,
    ) -> EvalReport:
        """Judge one candidate and return the report.

        `idle` is called now and then while nothing is told; what it raises ends the evaluation.

        Raises:
            ProblemError: the problem cannot be used.
            ConfigError: no device of the cluster may be used; the message says why.
            InfrastructureError: our side failed, or was lost again and again.
        """
        lost: list[str] = []
        while len(lost) <= MAX_LOSSES:
            with self._acquire_supervisor(request, progress, idle) as member:
                try:
                    return self._exchange(member, request, progress, checks, idle)
                except _Lost as error:
                    self._forget(member)
                    lost.append(f"{member.where}: {error}")
            progress("waiting", {"message": f"{lost[-1]}; its work begins anew elsewhere"})
        raise errors.InfrastructureError(
            f"lost {len(lost)} times with what it judged on: {'; '.join(lost)}"
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
                    progress(fields["event"], fields["fields"])
                elif kind == "still" and idle is not None:
                    idle()
        except ray_api.lost_errors() as error:
            if self._over:
                raise errors.InfrastructureError("the executor was ended") from error
            raise _Lost(str(error).partition("\n")[0] or type(error).__name__) from error
        except BaseException:
            # Whoever is told has had enough: the evaluation ends at its next step.
            member.actor.drop.remote(number)
            raise
        if kind == "report":
            return EvalReport.from_json(fields["text"])
        if kind == "failed":
            type_ = getattr(errors, fields["type"], errors.InfrastructureError)
            raise type_(fields["message"])
        raise errors.InfrastructureError(f"{member.where}: {fields.get('message', 'no answer')}")

    @contextmanager
    def _acquire_supervisor(
        self, request: EvalRequest, progress: Progress, idle: Callable[[], None] | None = None
    ) -> Iterator[_DeviceActor]:
        """Wait for a place on a device, best one where the problem is known."""
        ticket = _PendingRequest(request.problem.digest())
        with self._changed:
            self._waiting.append(ticket)
            self._dispatch()
        try:
            self._await(ticket, progress, idle)
        except BaseException:
            with self._changed:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                if ticket.member is not None:
                    ticket.member.load -= 1
                    self._dispatch()
            raise
        member = ticket.member
        assert member is not None
        try:
            yield member
        finally:
            with self._changed:
                member.load -= 1
                self._dispatch()

    def _await(
        self, ticket: _PendingRequest, progress: Progress, idle: Callable[[], None] | None
    ) -> None:
        alone_since = time.monotonic()
        said = time.monotonic()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: ticket.member or self._over, LOOK_S)
                if self._over:
                    raise errors.InfrastructureError("the executor was ended")
                if ticket.member is not None:
                    return
                alone, refused = not self._members, dict(self.refused)
            if idle is not None:
                idle()
            now = time.monotonic()
            alone_since = alone_since if alone else now
            if self._patience_s is None:
                alone_since = now
            elif refused and now - alone_since > GRACE_S:
                raise errors.ConfigError(_explained(refused))
            elif now - alone_since > self._patience_s:
                raise errors.InfrastructureError(_none_free(self._patience_s))
            if now - said > SAY_S:
                said = now
                what = "any device" if alone else "a free device"
                why = f" ({_explained(refused)})" if alone and refused else ""
                progress("waiting", {"message": f"cluster: waiting for {what}{why}"})

    def _dispatch(self) -> None:
        """Give free places to who waits; called with the lock held."""
        while self._waiting:
            free = [member for member in self._members if member.load < self._workers]
            if not free:
                break
            place = self._next(free)
            for earlier in self._waiting[:place]:
                earlier.passed += 1
            ticket = self._waiting.pop(place)
            rooms = [DeviceLoad(member.load, member.known) for member in free]
            member = free[least_loaded(ticket.problem, rooms)]
            member.load += 1
            known = [item for item in member.known if item != ticket.problem]
            member.known = [*known, ticket.problem][-MAX_KNOWN_PROBLEMS:]
            ticket.member = member
        self._changed.notify_all()

    def _next(self, free: Sequence[_DeviceActor]) -> int:
        """Return who is next: who was passed over too often, whose problem is warm, the oldest."""
        if any(item.passed >= MAX_PASSED_OVER for item in self._waiting):
            return next(i for i, item in enumerate(self._waiting) if item.passed >= MAX_PASSED_OVER)
        least = min(member.load for member in free)
        warm = {name for member in free if member.load == least for name in member.known}
        return next((i for i, item in enumerate(self._waiting) if item.problem in warm), 0)

    def _forget(self, member: _DeviceActor) -> None:
        with self._changed:
            if member in self._members:
                self._members.remove(member)
                self.lost += 1
                # It may live yet, where the network alone failed; its lease must not stay with it.
                ray_api.kill(member.actor)

    def _recruit(self) -> None:
        """Ask for one more device, again and again."""
        while not self._over:
            actor = ray_api.ask(self._device, self._workers, self._accelerator)
            try:
                about = self._introduced(actor)
            except ray_api.lost_errors() as error:
                ray_api.kill(actor)
                with self._changed:
                    self.trouble = str(error)
                    self._changed.wait_for(lambda: self._over, LOOK_S)
                continue
            if about is None:
                ray_api.kill(actor)
                return
            with self._changed:
                trouble = reject_reason(about, __version__, self._model)
                if trouble:
                    self.refused[f"{about['device']} of {about['host']}"] = trouble
                    # Held, so that Ray places the next one elsewhere.
                    self._held.append(actor)
                else:
                    self.refused.pop(f"{about['device']} of {about['host']}", None)
                    self._model = about["model"]
                    self._members.append(_DeviceActor(actor, about))
                self._dispatch()

    def _introduced(self, actor: Any) -> dict[str, Any] | None:  # noqa: ANN401 - Ray's
        """Wait until an actor is placed, for as long as that takes; `None`: we end."""
        asked = actor.about.remote(__version__, self._workers, self._home)
        while not self._over:
            found = ray_api.answer(asked, LOOK_S)
            if found is not None:
                return dict(found)
        return None

    def device_model(self) -> str:
        """Return the model of the devices, once one is leased.

        Raises:
            ConfigError: none may be used.
            InfrastructureError: there is none in time.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._members or self.refused or self._over, MODEL_S)
            if not self._members and self.refused:
                # Another may come yet.
                self._changed.wait_for(lambda: self._members or self._over, GRACE_S)
            if self._members:
                return str(self._members[0].about["model"])
            if self.refused:
                raise errors.ConfigError(_explained(self.refused))
        raise errors.InfrastructureError(_none_free(MODEL_S))

    def room(self) -> int:
        """Return how many evaluations may be under way at once, with the devices of now."""
        return max(1, len(self._members)) * self._workers

    def members(self) -> list[dict[str, Any]]:
        """Return what is leased: device, host, address, node, pid, versions, load."""
        with self._changed:
            return [{**member.about, "load": member.load} for member in self._members]

    def close(self) -> None:
        """Let evaluations under way finish, and give the devices back."""
        with self._changed:
            self._changed.wait_for(lambda: not any(item.load for item in self._members))
        self.kill()
        self._recruiter.join()
        if self._owned:
            ray_api.disconnect()
            self._owned = False

    def kill(self) -> None:
        """End the actors with whatever they judge; who waits for it gets an error."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
            actors = [*self._held, *(member.actor for member in self._members)]
        for actor in actors:
            ray_api.kill(actor)

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def _none_free(waited_s: float) -> str:
    return f"no free device in the cluster within {waited_s:g} s: {ray_api.nodes_line()}"


def _explained(refused: dict[str, str]) -> str:
    return "no device of the cluster may be used: " + "; ".join(
        f"{where}: {why}" for where, why in refused.items()
    )
