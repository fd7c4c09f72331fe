"""What a GPU needs beside what every device needs: room, a look at its state, a probe."""

from __future__ import annotations

from tilewright.errors import InfrastructureError
from tilewright.evaluator.pipeline.ceilings import known_ceilings, record_workload
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.timing import blocks
from tilewright.evaluator.timing.case_timings import CaseTimes, corrected_times
from tilewright.evaluator.verdict import Observations
from tilewright.records import Label
from tilewright.scoring import bootstrap

__all__ = [
    "labels_of",
    "look_at_device",
    "look_for_disturbance",
    "output_capacity",
    "probe",
    "refuse_quarantined",
    "size_blocks",
    "taken_share",
]

OUTPUT_GRAIN = 512
POOL_FACTOR, POOL_BYTES = 1.25, 32 << 20
"""Room for a call's allocations beside what the reference needs: rounding, and other habits."""
OTHERS_BYTES = 1 << 30
"""Device memory in use from which on somebody else must be there; an idle driver holds less."""
DISTURBED_FLOOR_S = 5e-6
"""By so much a baseline's call may differ from one minute to the next."""
HOST_DRIFT = 0.5
"""Share by which launches may take longer from one second to the next by nobody's fault: 0.4 was
seen on a busy host (docs/lab)."""
PROBE_S, BAD_PROBES = 20.0, 2
"""How long a probe of the device may take, and after how many failures it is left alone."""


def refuse_quarantined(host: DeviceHost) -> None:
    """Leave a device alone that failed twice to compute something known.

    Raises:
        InfrastructureError: it did.
    """
    if host.bad_probes >= BAD_PROBES:
        raise InfrastructureError(
            f"unjudged: {host.device.name} ({host.device.uuid}) is quarantined: it failed twice to "
            "compute something known; look at it, then start tilewright again"
        )


def look_at_device(session: EvaluationSession, observations: Observations) -> None:
    """Note the state of the GPU; name another program on it before any number is made."""
    found = session.record_conditions("before")
    if found is None or session.host.occupied:
        # Our own processes would be taken for another program.
        return
    used, busy = found.used_bytes or 0, found.busy_percent or 0
    if used > OTHERS_BYTES:
        detail = f"{used >> 20} MiB of its memory were in use before we began, {busy} % busy"
        observations.labels.append(Label(name="device_shared", detail=detail))
        session.emit("waiting", {"message": f"another program is on the device: {detail}"})


def probe(session: EvaluationSession) -> None:
    """See whether the device still computes, after a candidate that failed on it.

    Raises:
        InfrastructureError: it does not; the evaluation is repeated with a new judge.
    """
    host = session.host
    host.bad_probes += 1
    if not session.ask("probe", {}, timeout_s=PROBE_S)["right"]:
        raise InfrastructureError(f"{host.device.name} does not compute what it should")
    host.bad_probes, host.suspect = 0, False


def size_blocks(session: EvaluationSession) -> None:
    """Learn from the reference what room a side's calls need on the device."""
    for case in session.request.problem.cases:
        fields = {"params": dict(case.params), "seed": session.seed("sizes", case.name)}
        found = session.ask("measure", fields)
        record_workload(session, case.name, found)
        reserve = output_capacity(found["outputs"], found["count"])
        pool = int(POOL_FACTOR * (found["peak"] + found["outputs"])) + POOL_BYTES
        session.reserve_bytes = max(session.reserve_bytes, reserve)
        session.pool_bytes = max(session.pool_bytes, pool)
    session.ceilings = known_ceilings(session)


def output_capacity(size: int, count: int) -> int:
    """Return the bytes set aside for `count` outputs of `size` bytes in all.

    Whole grains: the pool lies behind, and all that a call allocates is aligned as its start is.
    """
    return -(-size // OUTPUT_GRAIN) * OUTPUT_GRAIN + OUTPUT_GRAIN * count


def labels_of(times: CaseTimes) -> list[Label]:
    """Return what a device's clock saw of the candidate beside its time."""
    calls, found = times.totals["candidate"], []
    if times.launching:
        detail = "launches of the baseline take too long to be queued; all sides' are in the times"
        found.append(Label(name="launch_time_included", detail=f"{times.case}: {detail}"))
    elif times.early * 2 > len(calls):
        detail = f"{times.early} of {len(calls)} calls waited for the device themselves"
        found.append(Label(name="host_synchronizing", detail=f"{times.case}: {detail}"))
    if times.said and not times.launching and corrected_times(times, "candidate") is calls:
        said = bootstrap.median(times.said["candidate"]) * 1e6
        seen = bootstrap.median(calls) * 1e6
        detail = f"{said:.1f} us by its own events, {seen:.1f} us by the judge's, which stand"
        found.append(Label(name="clock_mismatch", detail=f"{times.case}: {detail}"))
    return found


def look_for_disturbance(session: EvaluationSession, observations: Observations) -> None:
    """Time the first baseline again, now that no candidate is alive."""
    name = session.request.baselines[0].name
    times = observations.times[-1]
    case = session.request.problem.cases[len(observations.times) - 1]
    alone = blocks.time_uncontended(session, case, name)
    times.disturbed = [taken_share(times, name, alone)]


def taken_share(times: CaseTimes, baseline: str, alone_s: float) -> float:
    """Return by what share of its time alone a baseline was slower beside the candidate.

    What a candidate leaves on the device while it lives slows everybody, the baseline too. Where
    launches are in the times, which follow the host, it may also be what the candidate used of the
    CPU meanwhile, as a share of the baseline's calls.
    """
    call_latency_s = bootstrap.median(times.totals[baseline])
    share = (call_latency_s - alone_s - DISTURBED_FLOOR_S) / alone_s
    if times.launching:
        return max(share - HOST_DRIFT, bootstrap.median(times.disturbed))
    return share
