"""Every code that a report or an event log of tilewright may hold, each defined once.

The members are strings, so that JSON holds the value. The glossary explains each of them. A check
of a plug-in may add finding codes and labels of its own: those fields accept any string.
"""

from __future__ import annotations

from enum import StrEnum

from tilewright.wire.names import IsolationLayer

__all__ = [
    "FailureReason",
    "FindingCode",
    "IncorrectKind",
    "InputOrigin",
    "IsolationLayer",
    "LabelName",
    "Stage",
    "UnjudgedReason",
]


class FindingCode(StrEnum):
    """The subject of a finding."""

    ALIASED_OUTPUT = "aliased_output"
    ASSEMBLED_NAMES = "assembled_names"
    BASELINE_INTERFERENCE = "baseline_interference"
    ENCODED_TEXT = "encoded_text"
    INCORRECT_WHEN_TIMED = "incorrect_when_timed"
    INPUT_MUTATION = "input_mutation"
    INTROSPECTION = "introspection"
    LABEL_DENIED = "label_denied"
    MISPLACED_OUTPUT = "misplaced_output"
    OUTSIDE_INCLUDE = "outside_include"
    PATCHED_LIBRARY = "patched_library"
    PROC_ACCESS = "proc_access"
    STALE_AFTER_FIRST_CALL = "stale_after_first_call"
    TOKEN_PASTING = "token_pasting"
    UNFINISHED_WORK = "unfinished_work"
    UNTIMED_WORK = "untimed_work"
    UNUSED_KERNEL = "unused_kernel"
    WEIGHTS_CONSTANT_FOLDED = "weights_constant_folded"


class LabelName(StrEnum):
    """The name of a label: of a report, or of one comparison's interval."""

    CLOCK_MISMATCH = "clock_mismatch"
    CONSTANT_INPUT = "constant_input"
    CUDA_ON_CPU = "cuda_on_cpu"
    DEVICE_SHARED = "device_shared"
    EXIT_TIMEOUT = "exit_timeout"
    EXIT_UNVERIFIED = "exit_unverified"
    HOST_SYNCHRONIZING = "host_synchronizing"
    INPUTS_NOT_REPEATABLE = "inputs_not_repeatable"
    INPUTS_SHARE_MEMORY = "inputs_share_memory"
    INPUT_SHAPES_VARY = "input_shapes_vary"
    LAUNCH_TIME_INCLUDED = "launch_time_included"
    HALF_PRECISION = "half_precision"
    LIBRARY_CALL = "library_call"
    NO_VARIATION_JUDGED = "no_variation_judged"
    NOT_TIMED = "not_timed"
    PARTLY_UNDEFINED_REFERENCE = "partly_undefined_reference"
    REPEATED_ROWS = "repeated_rows"
    SEED_IGNORED = "seed_ignored"
    SHORT_CALL = "short_call"
    SLOW_INPUTS = "slow_inputs"
    TIMED_SAMPLE = "timed_sample"
    TORCH_COMPILE = "torch_compile"
    UNCALIBRATED = "uncalibrated"
    UNSOUND_PROBLEM = "unsound_problem"
    VALUE_DEPENDENT_TIME = "value_dependent_time"
    WEAK_CASE = "weak_case"
    WEAK_INPUTS = "weak_inputs"
    WEAK_PROBLEM = "weak_problem"
    WEIGHTS_CONSTANT_FOLDED = "weights_constant_folded"
    WEIGHTS_NOT_REPLACED = "weights_not_replaced"
    WHOLE_TORCH_HEADER = "whole_torch_header"
    WIDE_INTERVAL = "wide_interval"
    WORK_OF_OTHER_CALLS = "work_of_other_calls"


class Stage(StrEnum):
    """A measured stage of an evaluation, in the order of the pipeline; `total` is all of them."""

    BUILD = "build"
    PRECOMPILE = "precompile"
    PREPARE_JUDGE = "prepare_judge"
    DEVICE_WAIT = "device_wait"
    START_JUDGE = "start_judge"
    CHECK_PROBLEM = "check_problem"
    LOAD = "load"
    CONSTRUCT = "construct"
    """Where a failure of `load` came from the construction of a class. No stage record has it."""
    CORRECTNESS = "correctness"
    TRACE = "trace"
    TIMING = "timing"
    PROFILE = "profile"
    LAUNCH_SUPPRESSION = "launch_suppression"
    SHUTDOWN = "shutdown"
    CEILINGS = "ceilings"
    CLEANUP = "cleanup"
    TOTAL = "total"


class IncorrectKind(StrEnum):
    """In what an output, or an input after the call, differs from the reference's."""

    COUNT = "count"
    SHAPE = "shape"
    DTYPE = "dtype"
    VALUES = "values"
    NONFINITE = "nonfinite"
    MUTATION = "mutation"
    WEIGHTS = "weights"


class InputOrigin(StrEnum):
    """Where the inputs of a wrong call came from."""

    NOMINAL = "nominal"
    """The problem's own generator, at a size that the problem declares."""
    VARIED = "varied"
    """An input variation of the judge, at a size that the problem declares."""
    HIDDEN_SIZE = "hidden_size"
    """A secret size within the problem's ranges."""
    TIMED = "timed"
    """A call that was also timed."""


class FailureReason(StrEnum):
    """Why a candidate failed."""

    SYNTAX_ERROR = "syntax_error"
    MISSING_ENTRY = "missing_entry"
    """Its entry point is defined nowhere."""
    BUILD = "build"
    EXCEPTION = "exception"
    CRASH = "crash"
    UNEXPECTED_EXIT = "unexpected_exit"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    PROTOCOL_VIOLATION = "protocol_violation"
    MEMORY_CORRUPTION = "memory_corruption"
    NO_CANDIDATE = "no_candidate"
    """Nothing was submitted for a problem of a benchmark run."""


class UnjudgedReason(StrEnum):
    """Why there is no verdict."""

    BF16_UNSUPPORTED_IN_INTERPRETER = "bf16_unsupported_in_interpreter"
    DEVICE_SHARED = "device_shared"
    ISOLATION_UNAVAILABLE = "isolation_unavailable"
    NO_COMPILER = "no_compiler"
    NO_DEVICE = "no_device"
    NONDETERMINISTIC_REFERENCE = "nondeterministic_reference"
    STATEFUL_REFERENCE = "stateful_reference"
    UNSOUND_PROBLEM = "unsound_problem"
    UNSUPPORTED_DEVICE = "unsupported_device"
