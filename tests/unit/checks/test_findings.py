"""Each check fires on its own evidence and has no finding for honest candidates."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.checks.call_ends import CHECK as CALL_ENDS
from tilewright.checks.evidence import Check, Evidence
from tilewright.checks.inputs import CHECK as INPUTS
from tilewright.checks.library_use import CHECK as LIBRARY_USE
from tilewright.checks.library_use import GLUE
from tilewright.checks.obfuscation import CHECK as OBFUSCATION
from tilewright.checks.obfuscation import KINDS
from tilewright.checks.timed_correctness import CHECK as TIMED_CORRECTNESS
from tilewright.checks.untimed_work import (
    CHECK as UNTIMED_WORK,
)
from tilewright.checks.untimed_work import (
    MAX_INTERFERENCE_SHARE,
    MAX_UNTIMED_CPU_S,
    MAX_UNTIMED_CPU_SHARE,
)
from tilewright.checks.unused_kernels import CHECK as UNUSED_KERNELS
from tilewright.checks.weights import CHECK as WEIGHTS
from tilewright.languages.static_features import Sighting, StaticFeatures
from tilewright.records import Rules
from tilewright.registry import catalogue, load
from tilewright.wire.names import OutputMemory

LANGUAGES = ("torch", "triton", "cpp", "cuda")


def evidence(language: str = "triton", **changes: Any) -> Evidence:
    """Return what an honest, timed candidate leaves behind, with changes."""
    honest: dict[str, Any] = {
        "language": language,
        "rules": Rules(),
        "strict": True,
        "features": StaticFeatures(),
        "operator_counts": {"aten::empty": 1, "aten::view": 2},
        "launches": (1, 1, 1),
        "timed_launches": (1, 1),
        "right_when_suppressed": False if language != "torch" else None,
        "call_s": 0.01,
    }
    return Evidence(**{**honest, **changes})


def seen(name: str = "x") -> tuple[Sighting, ...]:
    return (Sighting(name=name, path="candidate.py", line=3),)


def codes(check: Check, given: Evidence, weight: str = "decisive") -> list[str]:
    return [item.code for item in check.inspect(given).findings if item.weight == weight]


def labels(check: Check, given: Evidence) -> list[str]:
    return [item.name for item in check.inspect(given).labels]


@pytest.mark.parametrize("name", catalogue("checks"))
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("strict", [True, False])
def test_an_honest_candidate_has_no_finding(name, language, strict):
    check = load("checks", name)
    observed = check.inspect(evidence(language, strict=strict))

    assert (observed.findings, observed.labels) == ((), ())
    assert check.name == name


@pytest.mark.parametrize("name", catalogue("checks"))
def test_a_candidate_without_calls_has_no_finding(name):
    bare = Evidence("triton", Rules(), strict=True, features=StaticFeatures())

    assert load("checks", name).inspect(bare).findings == ()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("required", [True, False])
def test_a_kernel_that_is_never_launched_is_unused_if_it_is_not_missed(language, required):
    rules = Rules(require_custom_kernel=required)
    given = {"rules": rules, "launches": (0, 0), "timed_launches": ()}
    wanted = ["unused_kernel"] if language != "torch" or required else []

    assert codes(UNUSED_KERNELS, evidence(language, **given, right_when_suppressed=True)) == wanted
    for answer in (False, None):
        found = UNUSED_KERNELS.inspect(evidence(language, **given, right_when_suppressed=answer))
        assert found.findings == ()


def test_the_launches_of_timed_calls_are_named():
    given = {"launches": (1, 1), "right_when_suppressed": True}
    (never,) = UNUSED_KERNELS.inspect(evidence(**given, timed_launches=(0, 0))).findings
    (some,) = UNUSED_KERNELS.inspect(evidence(**given, timed_launches=(0, 1))).findings

    assert never.evidence == {"right_when_suppressed": True, "calls": 2, "launches": 0}
    assert some.evidence == {"right_when_suppressed": True}


def test_an_output_that_is_right_with_suppressed_launches_is_rejected():
    assert codes(UNUSED_KERNELS, evidence(right_when_suppressed=True)) == ["unused_kernel"]
    assert codes(UNUSED_KERNELS, evidence("torch", right_when_suppressed=True)) == []
    assert codes(UNUSED_KERNELS, evidence(right_when_suppressed=None)) == []


def test_work_after_the_end_of_a_call_is_rejected():
    (finding,) = CALL_ENDS.inspect(evidence(unfinished_work_s=1e-4, call_s=1e-6)).findings

    assert (finding.code, finding.weight) == ("unfinished_work", "decisive")
    assert finding.evidence == {"unfinished_work_s": 1e-4, "call_s": 1e-6}


def test_overwritten_inputs_are_named():
    given = evidence(mutated=("input 1", "memory around the inputs"))
    (finding,) = INPUTS.inspect(given).findings

    assert (finding.code, finding.weight) == ("input_mutation", "decisive")
    assert finding.summary == "it overwrote input 1, memory around the inputs"
    assert finding.evidence == {"overwritten": ["input 1", "memory around the inputs"]}


def test_an_output_over_an_input_is_found():
    assert codes(INPUTS, evidence(misplaced=(OutputMemory.INPUT,))) == ["aliased_output"]


@pytest.mark.parametrize("place", [place for place in OutputMemory if place != OutputMemory.INPUT])
def test_an_output_in_other_memory_is_found_and_the_memory_named(place):
    (finding,) = INPUTS.inspect(evidence(misplaced=(place,))).findings

    assert (finding.code, finding.weight) == ("misplaced_output", "decisive")
    assert finding.summary == f"an output lies in {place.value}; the reference's does not"
    assert finding.evidence == {"places": [place.value]}


def test_both_kinds_of_places_are_findings_of_their_own():
    given = evidence(misplaced=(OutputMemory.INPUT, OutputMemory.SHARED, OutputMemory.FILE))

    assert codes(INPUTS, given) == ["aliased_output", "misplaced_output"]
    assert codes(INPUTS, evidence()) == []


def test_the_official_protocol_only_notes_overwritten_inputs():
    given = evidence(strict=False, mutated=("input 0",), misplaced=(OutputMemory.INPUT,))

    assert codes(INPUTS, given) == []
    assert codes(INPUTS, given, "note") == ["input_mutation", "aliased_output"]


def test_library_operators_are_labelled_in_kernel_languages():
    used = {"aten::mm": 2, "aten::relu": 1, "aten::empty": 1, "prims::odd": 1}
    (label,) = LIBRARY_USE.inspect(evidence(operator_counts=used)).labels

    assert (label.name, label.detail) == ("library_call", "aten::mm, aten::relu")
    assert labels(LIBRARY_USE, evidence("torch", operator_counts=used)) == []


@pytest.mark.parametrize("field", ["torch_ops", "aten_calls", "library_calls"])
def test_operators_that_only_the_source_names_are_labelled(field):
    given = evidence(features=StaticFeatures(**{field: seen("sgemm")}))
    (label,) = LIBRARY_USE.inspect(given).labels

    assert label.detail == "in the source, not seen when called: sgemm"
    assert labels(LIBRARY_USE, evidence("torch", features=given.features)) == []


@pytest.mark.parametrize("name", ["torch::empty_like", "at::zeros", "torch.empty"])
def test_allocation_is_no_library_call(name):
    given = evidence(features=StaticFeatures(aten_calls=seen(name)))
    assert labels(LIBRARY_USE, given) == []


def test_loading_libraries_is_a_library_call_and_other_native_access_is_not():
    def features(name: str) -> StaticFeatures:
        return StaticFeatures(native_access=seen(name))

    for name in ("dlopen", "ctypes.CDLL", "ctypes.cdll.LoadLibrary", "_ctypes.dlopen"):
        assert labels(LIBRARY_USE, evidence("cpp", features=features(name))) == ["library_call"]
    for name in ("mprotect", "ctypes.c_float", "ctypes.memmove"):
        assert labels(LIBRARY_USE, evidence("cpp", features=features(name))) == []


def test_moving_values_is_no_library_call():
    glue = {f"aten::{name}": 1 for name in GLUE}

    assert labels(LIBRARY_USE, evidence(operator_counts=glue)) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_compiled_graphs_are_labelled_in_every_language(language):
    def given(name: str) -> Evidence:
        return evidence(language, features=StaticFeatures(compiled=seen(name)))

    assert labels(LIBRARY_USE, given("torch.compile")) == ["torch_compile"]
    assert labels(LIBRARY_USE, given("torch.cuda.graph")) == []


def test_baseline_interference_is_found_beyond_its_share():
    assert codes(UNTIMED_WORK, evidence(disturbed=MAX_INTERFERENCE_SHARE)) == []
    assert codes(UNTIMED_WORK, evidence(disturbed=MAX_INTERFERENCE_SHARE + 0.01)) == [
        "baseline_interference"
    ]


@pytest.mark.parametrize(
    ("call_s", "limit_s"),
    [(0.0001, MAX_UNTIMED_CPU_S), (0.1, MAX_UNTIMED_CPU_SHARE * 0.1)],
)
def test_untimed_work_is_found_beyond_floor_and_share(call_s, limit_s):
    assert codes(UNTIMED_WORK, evidence(call_s=call_s, untimed_cpu_s=limit_s)) == []
    given = evidence(call_s=call_s, untimed_cpu_s=limit_s * 1.01)

    assert codes(UNTIMED_WORK, given) == ["untimed_work"]


def test_wrong_timed_calls_are_noted_with_the_first_and_their_number():
    given = evidence(timed_wrong=("at [0]: expected 1, got 2", "at [1]"))
    (finding,) = TIMED_CORRECTNESS.inspect(given).findings

    assert (finding.code, finding.weight) == ("incorrect_when_timed", "note")
    assert "expected 1, got 2" in finding.summary
    assert finding.evidence == {"first": "at [0]: expected 1, got 2", "count": 2}


def test_folded_weights_are_noted_with_what_was_lacking():
    given = evidence(passes_with_initial_weights=True, lacking_weights=("linear.bias",))
    (finding,) = WEIGHTS.inspect(given).findings

    assert (finding.code, finding.weight) == ("weights_constant_folded", "note")
    assert finding.evidence == {"lacking": ["linear.bias"]}
    assert labels(WEIGHTS, given) == []


def test_weights_that_were_not_resampled_are_labelled():
    given = evidence(lacking_weights=("a", "b"), passes_with_initial_weights=False)
    (label,) = WEIGHTS.inspect(given).labels

    assert label.name == "weights_not_replaced"
    assert label.detail.endswith("a, b")


@pytest.mark.parametrize("field", KINDS)
def test_each_obfuscation_is_noted_once_with_its_places(field):
    places = tuple(Sighting(name="x", path="a.py", line=line) for line in range(1, 30))
    (finding,) = OBFUSCATION.inspect(evidence(features=StaticFeatures(**{field: places}))).findings

    code, text = KINDS[field]
    assert (finding.code, finding.weight) == (code, "note")
    assert finding.summary == f"{text}: x (a.py:1), x (a.py:2), x (a.py:3)"
    assert len(finding.evidence["places"]) == 10


def test_every_finding_and_label_fits_a_report():
    long = tuple("w" * 100 for _ in range(50))
    given = evidence(
        mutated=long,
        lacking_weights=long,
        operator_counts={f"aten::{number:050}": 1 for number in range(60)},
        features=StaticFeatures(decoding=seen("y" * 5000)),
        misplaced=tuple(OutputMemory),
        disturbed=0.5,
        untimed_cpu_s=1.0,
        right_when_suppressed=True,
    )
    for name in catalogue("checks"):
        observed = load("checks", name).inspect(given)
        assert all(len(label.detail) <= 300 for label in observed.labels)
        assert all(finding.check == name for finding in observed.findings)
