"""Sentences on the limits of a kernel and on wasted time, with numbers, from a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.records import EvalReport, KernelShape
from tilewright.scoring.occupancy import occupancy
from tilewright.scoring.paired_times import paired_times
from tilewright.scoring.report_text import engineering, short_time
from tilewright.scoring.roofline import RooflinePoint, roofline_points

MAX_IMPROVABLE_SHARE = 0.85
"""Share of the roofline above which little can be gained."""
MIN_LAUNCH_BOUND_RATIO = 2.0
"""Ratio of call latency to device time above which launches dominate the latency."""
MAX_WARM_SHARE = 0.75
"""Ratio of a call with warm caches to a single call below which the text names the difference."""
MAX_EXTRA_SHARE = 0.25
"""Memory beyond the outputs that needs no sentence, as a share of the bytes to move."""
MIN_LEAST_US = 1.0
"""Least time of a case below which the start of a call takes longer than any work."""
MIN_OPERATORS, MAX_OPERATOR_US = 30, 30.0
"""Operators of a call, and microseconds for each, between which their number limits the call."""
MIN_VECTOR_BYTES = 16
"""Vectors that every x86-64 processor has."""
MAX_LOOPS = 3
"""Loops that the text names."""
REUSE_SHARE = 0.3
"""Share of the peak rate below which a product mostly waits for its operands."""
MIN_OWN_COVERAGE = 0.9
"""Coverage below which the text says that libraries do a part of the work."""
FEW_BLOCKS = 64
"""Blocks of a launch below which every current data-centre GPU has idle multiprocessors."""
LOW_OCCUPANCY = 0.25
"""Occupancy below which too few loads are in flight to reach the bandwidth of the memory."""
THROTTLE_REASONS = ("hardware", "thermal", "power")


def advice(report: EvalReport) -> list[str]:
    """Return sentences, the slowest case first; none if nothing was timed or compiled."""
    found = sorted(roofline_points(report), key=lambda item: -item.candidate_us)
    large = [item for item in found if item.least_us >= MIN_LEAST_US] or found[:1]
    # A cause in the code says more than the share of a peak that follows from it.
    sentences = [*_operators(report), *_loops(report)]
    sentences += [sentence for item in large for sentence in _of_case(item)]
    sentences += _shapes(report, [item.limit for item in large])
    profile = report.profile
    if profile is not None and profile.coverage < MIN_OWN_COVERAGE:
        sentences.append(
            f"{profile.case}: {1 - profile.coverage:.0%} of the device time is not in its own "
            f"{profile.launches} launches a call. Libraries do the rest; the labels name them."
        )
    noted = report.environment.host.get("after timing")
    reasons = noted.get("reasons") if isinstance(noted, dict) else None
    texts = map(str, reasons if isinstance(reasons, list) else [])
    if held := [item for item in texts if item.startswith(THROTTLE_REASONS)]:
        sentences.append(f"The device was held back while it was timed: {', '.join(held)}.")
    return sentences


def _operators(report: EvalReport) -> Iterator[str]:
    """Yield a sentence on a call that spends its time on the start of many operators."""
    used = report.operators
    times = {item.case: paired_times(item).candidate_us for item in reversed(report.comparisons)}
    if used is None or used.case not in times:
        return
    count = sum(used.counts.values())
    each_us = times[used.case] / max(count, 1)
    if count < MIN_OPERATORS or each_us > MAX_OPERATOR_US:
        return
    names = ", ".join(f"{number} {name}" for name, number in list(used.counts.items())[:3])
    yield (
        f"{used.case}: limited by the number of operators. A call makes {count:,} of torch, "
        f"{short_time(each_us)} each ({names}). To start one takes about as long as its work: use "
        "fewer of them, on larger tensors."
    )


def _loops(report: EvalReport) -> Iterator[str]:
    """Yield sentences on loops that the compiler did not vectorize, or only with short vectors."""
    slow = [item for item in report.loops if (item.vector_bytes or 0) < MIN_VECTOR_BYTES]
    for item in slow[:MAX_LOOPS]:
        place = f"{item.path}:{item.line}"
        if item.vector_bytes is not None:
            yield f"{place}: the loop is computed with vectors of {item.vector_bytes} bytes only."
            continue
        why = item.reason.rstrip(". ")
        yield f"{place}: the loop is computed element by element. The compiler: {why}."
    if len(slow) > MAX_LOOPS:
        yield f"{len(slow) - MAX_LOOPS} more loops are not vectorized; the report lists them."


def _shapes(report: EvalReport, limits: Sequence[str]) -> Iterator[str]:
    """Yield sentences on how the kernels were compiled and launched, the costliest fault first.

    `limits` are the rooflines that limit the timed cases.
    """
    shapes = list(launched_shapes(report))
    arch = str(report.environment.host.get("arch", ""))
    for shape in shapes:
        if shape.spilled_bytes:
            yield (
                f"{shape.name}: each thread spills {shape.spilled_bytes:,} bytes of registers to "
                "memory. Use smaller tiles, more warps a block, or fewer stages."
            )
    products = [item.tensor_cores for item in shapes]
    if "compute" in limits and products and not any(item is not False for item in products):
        yield (
            "No kernel uses tensor cores, and the arithmetic limits the call. A product of tiles "
            "(tl.dot, mma) computes many times faster where the precision allows it."
        )
    for shape in shapes:
        if shape.blocks < FEW_BLOCKS:
            yield (
                f"{shape.name}: the launch has {shape.blocks:,} blocks. A large GPU has more "
                "multiprocessors than that, so a part of it idles: use more, smaller blocks."
            )
        found = occupancy(shape, arch)
        if found is not None and found.share < LOW_OCCUPANCY and "memory" in limits:
            yield (
                f"{shape.name}: {found.share:.0%} occupancy, limited by {found.limited_by} "
                f"({_resources(shape)}). More resident warps would hide the latency of memory."
            )


def launched_shapes(report: EvalReport) -> Iterator[KernelShape]:
    """Yield the shapes of the candidate's own kernels, or of the profiled ones of no library."""
    profile = report.profile
    if profile is not None and profile.shapes:
        yield from profile.shapes
        return
    for kernel in report.kernels:
        if kernel.shape is not None and not kernel.library:
            yield kernel.shape


def _resources(shape: KernelShape) -> str:
    known = {
        f"{shape.threads:,} threads a block": True,
        f"{shape.registers} registers a thread": shape.registers is not None,
        f"{engineering(shape.shared_bytes or 0, 'B')} shared": bool(shape.shared_bytes),
    }
    return ", ".join(text for text, is_known in known.items() if is_known)


def _of_case(point: RooflinePoint) -> list[str]:
    found = [_limit(point)]
    candidate = point.comparison.candidate
    extra = (candidate.peak_bytes or 0) - point.work.output_bytes
    if extra > MAX_EXTRA_SHARE * point.work.moved_bytes:
        cost = f", at least {short_time(2 * extra / point.ceiling * 1e6)}"
        found.append(
            f"{point.case}: a call allocates {engineering(extra, 'B')} beyond its outputs. A fused "
            f"kernel does not write and read them again{cost if point.limit == 'memory' else ''}."
        )
    device_us, latency_us = point.candidate_us, candidate.call_latency_us
    if latency_us and latency_us > MIN_LAUNCH_BOUND_RATIO * device_us:
        found.append(
            f"{point.case}: a Python caller waits {short_time(latency_us)} for "
            f"{short_time(device_us)} on the device. Fewer launches, or a captured "
            "graph, would show there; a faster kernel would not."
        )
    warm_us = candidate.back_to_back_us
    if warm_us and warm_us < MAX_WARM_SHARE * device_us:
        found.append(
            f"{point.case}: one after another, with warm caches, a call takes "
            f"{short_time(warm_us)}. The rest is fetching inputs and the launch."
        )
    return found


def _limit(point: RooflinePoint) -> str:
    if point.limit == "memory":
        what = f"{engineering(point.work.moved_bytes, 'B')} must be moved"
        rate = f"{engineering(point.ceiling, 'B/s')} that this device was seen to move"
    else:
        what = f"{engineering(point.work.flops or 0, 'FLOP')} must be computed"
        rate = f"{engineering(point.ceiling, 'FLOP/s')} of {point.work.precision} that it can do"
    share = point.candidate_share
    least, took = short_time(point.least_us), short_time(point.candidate_us)
    text = (
        f"{point.case}: limited by {point.limit}. {what}, which takes {least} at the {rate}; it "
        f"takes {took}, {share:.0%} of that speed (the baseline: {point.reference_share:.0%})."
    )
    if share > 1:
        return f"{text} Caches helped: not all of it came from memory."
    if share >= MAX_IMPROVABLE_SHARE:
        return f"{text} Little is left to win."
    if point.limit == "compute" and share < REUSE_SHARE:
        text = (
            f"{text} It mostly waits for operands: compute in tiles that stay in registers or "
            "caches."
        )
    return f"{text} At that speed it would be {1 / share:.2g}x faster."
