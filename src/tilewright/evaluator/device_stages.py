"""What a GPU needs beside what every device needs: room, a look at its state, a probe."""

from __future__ import annotations

from tilewright.errors import InfrastructureError
from tilewright.evaluator import timing
from tilewright.evaluator.evaluation import Evaluation
from tilewright.evaluator.host import Host
from tilewright.evaluator.roofline import known_ceilings, note_work
from tilewright.evaluator.times import CaseTimes, refined
from tilewright.evaluator.verdict import Collected
from tilewright.records import Label
from tilewright.scoring import statistics

__all__ = [
    "labels_of",
    "look_at_device",
    "look_for_disturbance",
    "probe",
    "refuse_quarantined",
    "room_for_outputs",
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


def refuse_quarantined(host: Host) -> None:
    """Leave a device alone that failed twice to compute something known.

    Raises:
        InfrastructureError: it did.
    """
    if host.bad_probes >= BAD_PROBES:
        raise InfrastructureError(
            f"unjudged: {host.device.name} ({host.device.uuid}) is quarantined: it failed twice to "
            "compute something known; look at it, then start tilewright again"
        )


def look_at_device(evaluation: Evaluation, collected: Collected) -> None:
    """Note the state of the GPU; name another program on it before any number is made."""
    found = evaluation.note_conditions("before")
    if found is None or evaluation.host.occupied:
        # Our own processes would be taken for another program.
        return
    used, busy = found.used_bytes or 0, found.busy_percent or 0
    if used > OTHERS_BYTES:
        detail = f"{used >> 20} MiB of its memory were in use before we began, {busy} % busy"
        collected.labels.append(Label(name="device shared", detail=detail))
        evaluation.emit("waiting", {"message": f"another program is on the device: {detail}"})


def probe(evaluation: Evaluation) -> None:
    """See whether the device still computes, after a candidate that failed on it.

    Raises:
        InfrastructureError: it does not; the evaluation is repeated with a new judge.
    """
    host = evaluation.host
    host.bad_probes += 1
    if not evaluation.ask("probe", {}, timeout_s=PROBE_S)["right"]:
        raise InfrastructureError(f"{host.device.name} does not compute what it should")
    host.bad_probes, host.suspect = 0, False


def size_blocks(evaluation: Evaluation) -> None:
    """Learn from the reference what room a side's calls need on the device."""
    for case in evaluation.request.problem.cases:
        fields = {"params": dict(case.params), "seed": evaluation.seed("sizes", case.name)}
        found = evaluation.ask("measure", fields)
        note_work(evaluation, case.name, found)
        reserve = room_for_outputs(found["outputs"], found["count"])
        pool = int(POOL_FACTOR * (found["peak"] + found["outputs"])) + POOL_BYTES
        evaluation.reserve_bytes = max(evaluation.reserve_bytes, reserve)
        evaluation.pool_bytes = max(evaluation.pool_bytes, pool)
    evaluation.ceilings = known_ceilings(evaluation)


def room_for_outputs(size: int, count: int) -> int:
    """Return the bytes set aside for `count` outputs of `size` bytes in all.

    Whole grains: the pool lies behind, and all that a call allocates is aligned as its start is.
    """
    return -(-size // OUTPUT_GRAIN) * OUTPUT_GRAIN + OUTPUT_GRAIN * count


def labels_of(times: CaseTimes) -> list[Label]:
    """Return what a device's clock saw of the candidate beside its time."""
    calls, found = times.totals["candidate"], []
    if times.launching:
        detail = "launches of the baseline take too long to be queued; all sides' are in the times"
        found.append(Label(name="launches counted", detail=f"{times.case}: {detail}"))
    elif times.early * 2 > len(calls):
        detail = f"{times.early} of {len(calls)} calls waited for the device themselves"
        found.append(Label(name="synchronises", detail=f"{times.case}: {detail}"))
    if times.said and not times.launching and refined(times, "candidate") is calls:
        said = statistics.median(times.said["candidate"]) * 1e6
        seen = statistics.median(calls) * 1e6
        detail = f"{said:.1f} us by its own events, {seen:.1f} us by the judge's, which stand"
        found.append(Label(name="own clock disagrees", detail=f"{times.case}: {detail}"))
    return found


def look_for_disturbance(evaluation: Evaluation, collected: Collected) -> None:
    """Time the first baseline again, now that no candidate is alive."""
    name = evaluation.request.baselines[0].name
    times = collected.times[-1]
    case = evaluation.request.problem.cases[len(collected.times) - 1]
    alone = timing.time_alone(evaluation, case, name)
    times.disturbed = [taken_share(times, name, alone)]


def taken_share(times: CaseTimes, baseline: str, alone_s: float) -> float:
    """Return by what share of its time alone a baseline was slower beside the candidate.

    What a candidate leaves on the device while it lives slows everybody, the baseline too. Where
    launches are in the times, which follow the host, it may also be what the candidate used of the
    CPU meanwhile, as a share of the baseline's calls.
    """
    beside_s = statistics.median(times.totals[baseline])
    share = (beside_s - alone_s - DISTURBED_FLOOR_S) / alone_s
    if times.launching:
        return max(share - HOST_DRIFT, statistics.median(times.disturbed))
    return share
