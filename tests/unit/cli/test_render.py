"""Rendered reports: golden texts, and the rules that they follow."""

from __future__ import annotations

import re

import pytest

from tests import sample_reports as reports
from tilewright.cli.render import (
    Row,
    comparisons_table,
    reason,
    report_view,
    rows_table,
    short_reason,
    speed_of,
    to_text,
)
from tilewright.cli.render_explain import CheckSeen, explain_view, spread_of
from tilewright.cli.system_checks import Item
from tilewright.records import Ceilings, Failed, KernelShape, KernelTime, Work
from tilewright.records.codes import FailureReason
from tilewright.scoring.report_text import reason_of, short_time, speed_text

CORRECT = """\
correct  bundled/add_relu by fast.py (torch), strict, on cpu

case   baseline  time    candidate time  speed-up                                         labels
tiny   eager     12 us   11.9 us         no measurable difference [0.985, 1.025]          short_call
large  eager     2.5 ms  1.25 ms         2.00x [1.92, 2.08]                       faster

speed-up     1.42x [1.36, 1.47] (against eager, geometric mean of 2 cases)
outputs      2 of 2 correct, at most 0.2 of the tolerance (large, scale; float64); 1 of 2 variations, 1
             skipped (large, heavy_tail: the reference itself is inaccurate)
timed calls  80 of the candidate, with new inputs in each; every compared output was correct
all times    uncalibrated: `tilewright doctor --calibrate` fits the intervals to this machine
label        library_call: aten::relu
isolation    2 of 3 layers active; not: landlock (Function not implemented)
"""  # noqa: E501 - as a terminal shows it

INCORRECT = """\
incorrect  bundled/add_relu by fast.py (torch), strict, on cpu
  values (tiny, nominal): at [1, 4]: expected 0.5, got 0; error 5.2e+05 times the allowed one

outputs    0 of 1 correct
isolation  2 of 3 layers active; not: landlock (Function not implemented)
output     25 characters; explain shows them
"""

REJECTED = """\
rejected  bundled/add_relu by fast.py (torch), strict, on cpu
  no kernel of the candidate's own was launched

outputs    1 of 1 correct, at most 0.031 of the tolerance (tiny, nominal; float64)
finding    decisive: unused_kernels: no kernel of the candidate's own was launched
isolation  2 of 3 layers active; not: landlock (Function not implemented)
"""


@pytest.mark.parametrize(
    ("report", "golden"),
    [
        (reports.correct(), CORRECT),
        (reports.incorrect(), INCORRECT),
        (reports.rejected(), REJECTED),
    ],
    ids=["correct", "incorrect", "rejected"],
)
def test_a_report_is_rendered_as_its_golden_text(report, golden):
    assert to_text(report_view(report)) == golden


def test_a_failure_names_its_stage_once():
    failed = Failed(stage="build", reason="build", message="BuildError: no such file")
    report = reports.failed().model_copy(update={"outcome": failed})
    assert reason_of(report) == "build: BuildError: no such file"
    later = failed.model_copy(update={"reason": FailureReason.MISSING_ENTRY})
    assert reason_of(reports.failed().model_copy(update={"outcome": later})).startswith(
        "missing_entry in build: "
    )


@pytest.mark.parametrize(
    "line",
    [
        "candidate.cpp:3:5: error: 'y' was not declared",
        "candidate.cpp:1:10: fatal error: x: No such file or directory",
        "candidate.cu(12): error: expected a ;",
        "k.cu(7): error C2065: 'y': undeclared identifier",
    ],
)
def test_the_reason_of_a_build_is_the_compilers_first_error(line):
    message = f"BuildError: candidate.cpp: In function 'int f()':\n{line}\n    3 | y"
    failed = Failed(stage="build", reason="build", message=message)
    report = reports.failed().model_copy(update={"outcome": failed})
    assert reason_of(report) == f"build: {line}"


def test_the_roofline_of_a_tiny_case_is_left_out():
    """At the ceilings, its work takes less than a microsecond."""
    made = on_a_gpu()
    (work,) = made.work
    tiny = work.model_copy(update={"case": "tiny", "moved_bytes": 1000, "flops": 10})
    text = to_text(report_view(made.model_copy(update={"work": (work, tiny)})))
    assert "roofline     large: " in text
    assert "roofline     tiny: " not in text


def test_candidate_text_cannot_move_the_cursor_or_change_colour():
    view = explain_view(reports.incorrect(), [], "None.")
    text = to_text(view)
    assert "\x1b" not in text
    assert "\\x1b[2Jcorrect" in text
    assert "boom [/bold]" in to_text(report_view(reports.failed()))


@pytest.mark.parametrize(
    ("speedup", "low", "high", "shown"),
    [
        (1.42, 1.40, 1.44, "1.42x [1.40, 1.44]"),
        (1.01, 0.99, 1.03, "no measurable difference [0.990, 1.030]"),
        (1.01, 1.0, 1.03, "no measurable difference [1.000, 1.030]"),
        (1.012, 1.004, 1.02, "1.012x [1.004, 1.020]"),
        (0.5, 0.4, 0.6, "0.50x [0.40, 0.60]"),
        # Wide, and it nearly holds 1.
        (1.09, 1.01, 1.18, "1.09x [1.01, 1.18], not certain"),
        (250.0, 200.0, 300.0, "250x [200, 300]"),
        (0.033, 0.0326, 0.0334, "0.033x [0.033, 0.033]"),
        (0.0042, 0.004, 0.0151, "0.0042x [0.0040, 0.015]"),
        (1.3, None, None, "1.30x, no interval"),
    ],
)
def test_a_speedup_is_shown_with_its_interval(speedup, low, high, shown):
    assert speed_text(speedup, low, high) == shown


def test_labels_have_room_beside_a_speedup_that_is_not_certain():
    (timed, *_) = reports.correct().comparisons
    unsure = {"speedup": 1.41, "speedup_low": 1.12, "speedup_high": 1.85}
    unsure |= {"conclusion": "no measurable difference", "labels": ("short_call", "wide_interval")}
    plain = timed.model_copy(update={"case": "other", "labels": ()})
    text = to_text(comparisons_table([timed.model_copy(update=unsure), plain]))
    assert "not certain" in text
    assert len(text.splitlines()) <= 4


def test_no_speedup_is_shown_where_the_interval_includes_one():
    for low in (0.5, 0.97, 0.999, 1.0):
        for high in (1.0, 1.001, 1.2, 3.0):
            assert not re.search(r"\dx", speed_text((low * high) ** 0.5, low, high))


@pytest.mark.parametrize(
    ("microseconds", "shown"), [(0.25, "0.25 us"), (999, "999 us"), (1500, "1.5 ms"), (2e6, "2 s")]
)
def test_times_are_shown_in_readable_units(microseconds, shown):
    assert short_time(microseconds) == shown


def test_reasons_are_one_short_line():
    shown = {
        "correct": "library_call",
        "incorrect": "tiny, nominal: at [1, 4]: expected 0.5, got 0",
        "failed": "exception in load: ValueError: boom [/bold]",
        "rejected": "no kernel of the candidate's own was launched",
        "unjudged": "no_device: CUDA candidates need a GPU",
    }
    for name, text in shown.items():
        assert short_reason(getattr(reports, name)()) == text
    long = reports.report(reports.Unjudged(reason="no_device", message="word " * 200))
    assert len(reason(long)) == 300
    assert reason(long).endswith("...")


def test_an_untimed_or_wrong_candidate_shows_no_speedup():
    assert speed_of(reports.report()) == "untimed"
    assert speed_of(reports.incorrect()) == ""


def test_the_verdict_table_is_rendered_as_its_golden_text():
    rows = [
        Row("fused", "softmax", "correct", "1.42x [1.40, 1.44]", "", as_expected=True),
        Row("trick", "softmax", "correct", "", "it got through", as_expected=False),
    ]
    assert to_text(rows_table(rows)) == (
        "candidate  problem  verdict               speed-up, or why not\n"
        "fused      softmax  correct               1.42x [1.40, 1.44]\n"
        "trick      softmax  correct (unexpected)  it got through\n"
    )


def test_explain_shows_every_part_of_a_report():
    report = reports.correct()
    finding = reports.rejected().findings[0]
    checks = [
        CheckSeen("unused_kernels", "Own kernels.", (finding,)),
        CheckSeen("inputs", "Inputs.", ()),
    ]
    text = " ".join(to_text(explain_view(report, checks, "runs/1/reproduce.py")).split())
    for wanted in (
        "build 12.3 ms",
        "total 2.5 s 0.2000 s outside 2.3000 s of calls",
        "large heavy_tail skipped float64 7 the reference itself is inaccurate",
        'unused_kernel: {"calls": 3}',
        "inputs none. Inputs.",
        "landlock no Function not implemented",
        "root seed 0123456789abcdef0123456789abcdef",
        "runs/1/reproduce.py",
    ):
        assert wanted in text


def test_the_spread_shows_quantiles_of_both_runners():
    spread = spread_of(reports.comparison("tiny", 2.0, 0.1, us=100.0))
    assert spread is not None
    assert spread.blocks == 20
    assert spread.reference_us == (100.0,) * 5
    assert spread.candidate_us[0] == 50.0
    assert list(spread.ratios) == sorted(spread.ratios)
    bare = reports.comparison("tiny", 2.0, 0.1).model_copy(update={"raw_us": ()})
    assert spread_of(bare) is None


def test_doctor_lists_missing_items_and_how_to_get_them():
    from tilewright.cli.doctor import doctor_view

    items = [Item("torch", True, "2.9.0"), Item("g++", False, "none", "C++", "apt install g++")]
    assert to_text(doctor_view(items)) == (
        "ok  torch  2.9.0\nno  g++    none\n\nMissing\ng++  would enable C++; apt install g++\n"
    )


def on_a_gpu():
    """Return a report as a GPU gives it, with all that is shown of one."""
    made = reports.correct()
    candidate = made.comparisons[1].candidate
    took = candidate.model_copy(
        update={"call_latency_us": 4000.0, "back_to_back_us": None, "peak_bytes": 0}
    )
    large = made.comparisons[1].model_copy(update={"candidate": took})
    work = {"precision": "tf32", "moved_bytes": 4_000_000_000, "output_bytes": 0, "peak_bytes": 0}
    return made.model_copy(
        update={
            "comparisons": (made.comparisons[0], large),
            "work": (Work(case="large", flops=10**9, **work),),
            "ceilings": Ceilings(memory_bandwidth_bytes_per_s=4e12, flops_per_s={"tf32": 4e14}),
            "kernels": (
                KernelTime(
                    name="rows",
                    launches=1,
                    total_us=30.0,
                    library=False,
                    shape=KernelShape(name="rows", blocks=96, threads=128, registers=40),
                ),
                KernelTime(name="at::native::fill", launches=2, total_us=10.0, library=True),
            ),
        }
    )


def test_a_gpu_report_shows_its_roofline_fraction():
    text = to_text(report_view(on_a_gpu()))
    assert "roofline     large: 80%, limited by memory; a Python caller waits 4 ms" in text


def test_explain_names_the_bottleneck_and_the_kernels():
    text = " ".join(to_text(explain_view(on_a_gpu(), [], "None.")).split())
    assert "Roofline" in text
    assert "4 GB must be moved, which takes 1 ms" in text
    assert "a Python caller waits" in text
    assert "30 us 75% 1 own rows" in text
    assert "rows 96 128 40" in text
    assert "10 us 25% 2 library at::native::fill" in text
