"""Documents of schema version 1: the names of their fields and values, and the step to 2."""

from __future__ import annotations

from typing import Any, Final, get_args

from pydantic import BaseModel

__all__ = ["FIELDS", "VALUES", "upgrade"]

FIELDS: Final[dict[str, dict[str, str]]] = {
    "CaseResult": {
        "contents": "input_variation",
        "verdict": "result",
        "error_over_bound": "error_over_tolerance",
    },
    "Ceilings": {"bytes_per_s": "memory_bandwidth_bytes_per_s"},
    "Comparison": {
        "decision": "conclusion",
        "pairs": "blocks_per_process",
        "reference": "baseline_timing",
        "said_us": "self_reported_us",
    },
    "EvalReport": {"printed": "candidate_output", "protections": "isolation"},
    "EvalRequest": {"require_layers": "require_isolation"},
    "Incorrect": {"error_over_bound": "error_over_tolerance"},
    "Limits": {
        "call_s": "call_timeout_s",
        "output_bytes": "stdout_bytes",
        "tmp_bytes": "tmpfs_bytes",
        "total_s": "total_timeout_s",
    },
    "Problem": {
        "contents": "input_variations",
        "donates": "writable_inputs",
        "keywords": "keyword_args",
        "published": "official_comparison",
        "sizes": "size_ranges",
    },
    "Profile": {"own_share": "self_reported_share", "saved_share": "suppressed_share"},
    "Rules": {"require_own_kernel": "require_custom_kernel"},
    "Timing": {"batched_us": "back_to_back_us", "call_us": "call_latency_us"},
    "TimingPlan": {
        "more_pairs": "extra_replicates",
        "target_half_width": "target_ci_half_width",
    },
}
"""Class of a record: the name of a field in version 1, and its name now."""

_CHECKS: Final = {
    "decoys": "unused_kernels",
    "disguise": "obfuscation",
    "libraries": "library_use",
    "outside_work": "untimed_work",
    "timed_outputs": "timed_correctness",
}
_CODES: Final = {
    "aliased output": "aliased_output",
    "assembled names": "assembled_names",
    "decoy": "unused_kernel",
    "denied label": "label_denied",
    "disturbs baseline": "baseline_interference",
    "encoded text": "encoded_text",
    "includes foreign files": "outside_include",
    "input mutation": "input_mutation",
    "looks at its caller": "introspection",
    "outside work": "untimed_work",
    "pastes tokens": "token_pasting",
    "patches a library": "patched_library",
    "reads /proc": "proc_access",
    "weights folded": "weights_constant_folded",
    "wrong when timed": "incorrect_when_timed",
}
_LABELS: Final = {
    "device shared": "device_shared",
    "exit not seen": "exit_unverified",
    "hangs at exit": "exit_timeout",
    "launches counted": "launch_time_included",
    "library call": "library_call",
    "noisy": "wide_interval",
    "not timed": "not_timed",
    "own clock disagrees": "clock_mismatch",
    "short": "short_call",
    "synchronises": "host_synchronizing",
    "torch.compile": "torch_compile",
    "weights folded": "weights_constant_folded",
    "weights not redrawn": "weights_not_replaced",
}
_STAGES: Final = {
    "close": "cleanup",
    "compile ahead": "precompile",
    "exit": "shutdown",
    "knockout": "launch_suppression",
    "lease": "device_wait",
    "prepare": "build",
    "spawn": "start_judge",
}
_LAYERS: Final = {
    "cores": "cpu_affinity",
    "descriptors": "file_descriptors",
    "door": "process_creation_guard",
    "limits": "rlimits",
    "mount view": "mount_namespace",
    "namespaces": "ipc_uts_cgroup_namespaces",
    "other uid": "separate_uid",
    "process tree": "pid_namespace",
}
VALUES: Final[dict[str, dict[str, dict[str, str]]]] = {
    "CaseResult": {"result": {"right": "pass", "wrong": "fail"}},
    "Comparison": {"labels": _LABELS},
    "EvalRequest": {"require_isolation": _LAYERS},
    "EvalSummary": {"findings": _CODES, "labels": _LABELS},
    "Failed": {
        "reason": {
            "exit": "unexpected_exit",
            "memory corruption": "memory_corruption",
            "out of memory": "out_of_memory",
            "protocol": "protocol_violation",
            "unparseable": "syntax_error",
        },
        "stage": _STAGES,
    },
    "Finding": {"check": _CHECKS, "code": _CODES},
    "Label": {"name": _LABELS},
    "Protection": {"name": _LAYERS},
    "Rules": {"deny_labels": _LABELS},
    "StageRecord": {"name": _STAGES},
    "Timing": {
        "method": {
            "cuda_events": "cuda_events_candidate",
            "judge_events": "cuda_events_trusted",
            "supervisor_clock": "host_clock",
        }
    },
    "Unjudged": {
        "reason": {
            "bf16 in the interpreter": "bf16_unsupported_in_interpreter",
            "no candidate": "no_candidate",
            "no compiler": "no_compiler",
            "no device": "no_device",
            "random problem": "nondeterministic_reference",
            "required layer not active": "isolation_unavailable",
            "stateful problem": "stateful_reference",
            "wrong device": "unsupported_device",
        }
    },
}
"""Class of a record, its field by the name it has now: values in version 1, and their names now."""


def upgrade(record: type[BaseModel], document: dict[str, Any]) -> dict[str, Any]:
    """Return a version 1 document of `record` as version 2 writes it; unknown keys stay.

    Only names are changed, so that the validation that follows sees every other defect.
    """
    names = FIELDS.get(record.__name__, {})
    made = {names.get(key, key): value for key, value in document.items()}
    for key, values in VALUES.get(record.__name__, {}).items():
        if key in made:
            made[key] = _renamed(made[key], values)
    for key, field in record.model_fields.items():
        nested = _records_in(field.annotation)
        if nested and key in made:
            made[key] = _upgraded(made[key], nested)
    if made.get("schema_version") == 1:
        made["schema_version"] = 2
    return made


def _renamed(value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return names.get(value, value)
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value


def _upgraded(value: Any, nested: list[type[BaseModel]]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [_upgraded(item, nested) for item in value]
    if not isinstance(value, dict):
        return value
    return upgrade(_chosen(nested, value), value)


def _chosen(nested: list[type[BaseModel]], value: dict[str, Any]) -> type[BaseModel]:
    """Return the member of a union to which a document belongs, by its constant field."""
    for record in nested[1:]:
        constants = {
            key: field.default
            for key, field in record.model_fields.items()
            if key in ("verdict", "event")
        }
        if constants and all(value.get(key) == default for key, default in constants.items()):
            return record
    return nested[0]


def _records_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [record for part in get_args(annotation) for record in _records_in(part)]
