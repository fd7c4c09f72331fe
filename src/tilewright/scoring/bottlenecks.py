"""What limits a kernel and what it wastes, in plain words with numbers. From a report, pure."""

from __future__ import annotations

from tilewright.records import EvalReport, Profile
from tilewright.scoring.report_text import engineering, short_time
from tilewright.scoring.roofline import Light, lights

__all__ = ["advice"]

NEAR = 0.85
"""From this share of the ceiling on little is left to win."""
WAITING = 2.0
"""A caller who waits longer than this many times the device time pays for launches."""
WARM = 0.75
"""A batch below this share of a single call shows what fetching inputs anew costs."""
EXTRA = 0.25
"""Memory beyond the outputs that is worth a word, as a share of what must be moved."""
OWN = 0.9
"""Below this coverage somebody else does a good part of the work."""
HELD_BACK = ("hardware", "thermal", "power")


def advice(report: EvalReport) -> list[str]:
    """Return sentences, the case that takes longest first; none where no ceiling is known."""
    found = sorted(lights(report), key=lambda item: -item.comparison.candidate.median_us)
    said = [sentence for item in found for sentence in _of_case(item)]
    if report.profile is not None:
        said += _of_profile(report.profile)
    return said + _of_device(report)


def _of_case(light: Light) -> list[str]:
    said = [_limit(light)]
    said += _memory(light)
    candidate = light.comparison.candidate
    if candidate.call_latency_us and candidate.call_latency_us > WAITING * candidate.median_us:
        said.append(
            f"{light.case}: a Python caller waits {short_time(candidate.call_latency_us)} for "
            f"{short_time(candidate.median_us)} on the device. Fewer launches, or a captured "
            "graph, would show there; a faster kernel would not."
        )
    if candidate.back_to_back_us and candidate.back_to_back_us < WARM * candidate.median_us:
        said.append(
            f"{light.case}: one after another, with warm caches, a call takes "
            f"{short_time(candidate.back_to_back_us)}. The rest is fetching inputs and the launch."
        )
    return said


def _limit(light: Light) -> str:
    if light.limit == "memory":
        what = f"{engineering(light.work.moved_bytes, 'B')} must be moved"
        rate = f"{engineering(light.ceiling, 'B/s')} that this device was seen to move"
    else:
        what = f"{engineering(light.work.flops or 0, 'FLOP')} must be computed"
        rate = f"{engineering(light.ceiling, 'FLOP/s')} of {light.work.precision} that it can do"
    share = light.candidate_share
    least, took = short_time(light.least_us), short_time(light.comparison.candidate.median_us)
    text = (
        f"{light.case}: limited by {light.limit}. {what}, which takes {least} at the {rate}; it "
        f"takes {took}, {share:.0%} of that speed (the baseline: {light.reference_share:.0%})."
    )
    if share > 1:
        return f"{text} Caches helped: not all of it came from memory."
    if share >= NEAR:
        return f"{text} Little is left to win."
    return f"{text} At that speed it would be {1 / share:.2g}x faster."


def _memory(light: Light) -> list[str]:
    """Say what a call allocates beyond its outputs."""
    peak = light.comparison.candidate.peak_bytes
    if peak is None:
        return []
    extra = peak - light.work.output_bytes
    if extra <= EXTRA * light.work.moved_bytes:
        return []
    least = light.least_us if light.limit == "memory" else None
    cost = f", at least {short_time(2 * extra / light.ceiling * 1e6)}" if least else ""
    return [
        f"{light.case}: a call allocates {engineering(extra, 'B')} beyond its outputs. What is "
        f"written there and read again is traffic that a fused kernel does not have{cost}."
    ]


def _of_profile(profile: Profile) -> list[str]:
    if profile.coverage >= OWN:
        return []
    return [
        f"{profile.case}: {1 - profile.coverage:.0%} of the device time is not in its own "
        f"{profile.launches} launches a call. Libraries do the rest; the labels name them."
    ]


def _of_device(report: EvalReport) -> list[str]:
    noted = report.environment.host.get("after timing")
    reasons = noted.get("reasons") if isinstance(noted, dict) else None
    said = [str(item) for item in reasons] if isinstance(reasons, list) else []
    held = [item for item in said if item.startswith(HELD_BACK)]
    return [f"The device was held back while it was timed: {', '.join(held)}."] if held else []
