"""Bugs in the shared use of a device and of its memory, and in the look at a reference."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bug import UNIT, planted

LEASE_AND_REFERENCE = (
    *planted(
        "evaluator/processes/device_lease.py",
        UNIT + "evaluator/processes/test_device_lease.py",
        (
            "evaluations that time share the device",
            "(try_share if self._shared else try_lock)(self._device)",
            "try_share(self._device)",
        ),
        (
            "shared leases may begin before one that waits",
            "if not self._blocks_new_leases and not try_share(self._queue):",
            "if False:",
        ),
        (
            "a waiter keeps its place for ever",
            "if taken or not self._blocks_new_leases:",
            "if not taken and not self._blocks_new_leases:",
        ),
    ),
    *planted(
        "evaluator/pipeline/session.py",
        UNIT + "evaluator/pipeline/test_judge_preparation.py",
        (
            "a judge that was ended is asked",
            "if self.judge.child is not None and not self.judge.running:",
            "if False:",
        ),
    ),
    *planted(
        "evaluator/judge/problem_modes.py",
        UNIT + "evaluator/pipeline/test_written_arguments.py",
        (
            "writes around arguments are not seen",
            "any(bool((_bytes(v) != _bytes(expected[v.dtype])).any()) for v in watched)",
            "False",
        ),
        (
            "undefined memory holds no NaN",
            "value.fill_(math.nan)",
            "value.fill_(fill)",
        ),
    ),
    *planted(
        "evaluator/judge/autotuned_kernels.py",
        UNIT + "evaluator/judge/test_autotuned_kernels.py",
        (
            "the judge tunes every configuration",
            "if tuner._tilewright_chosen is tuner.nargs:",
            "if False:",
        ),
    ),
)

MEMORY_OF_A_DEVICE = (
    *planted(
        "evaluator/pipeline/memory_attribution.py",
        UNIT + "evaluator/pipeline/test_memory_admission.py",
        (
            "a candidate is blamed for memory that others held",
            "if session.host.shares_memory:",
            "if session is None:",
            "test_a_candidate_that_lacks_memory_beside_others_is_repeated_alone",
        ),
        (
            "any failure beside others counts as a lack of device memory",
            "if not is_out_of_device_memory(outcome) or not session.host.leased:",
            "if not session.host.leased:",
            "test_a_candidate_that_lacks_host_memory_ends_nobodys_idle_processes",
        ),
    ),
    *planted(
        "evaluator/pipeline/memory_attribution.py",
        UNIT + "evaluator/pipeline/test_memory_attribution.py",
        (
            "a candidate may choose the oracle by the memory that it takes",
            "if not session.judge.ran_out_of_memory or not decided:",
            "if session.judge.ran_out_of_memory or not decided:",
            "test_a_candidate_that_takes_the_memory_of_the_oracle_failed",
        ),
    ),
    *planted(
        "evaluator/pipeline/strangers.py",
        UNIT + "evaluator/pipeline/test_strangers.py",
        (
            "memory of siblings is a stranger's",
            "siblings = sum(host.ledger.others().values()) if host.ledger else 0",
            "siblings = 0",
            "test_siblings_are_no_strangers_and_strangers_are_labelled",
        ),
        (
            "the driver's list does not count",
            "if memory.strangers is not None:",
            "if memory.strangers is None:",
            "test_the_drivers_list_tells_strangers_from_siblings_that_hold_more_than_they_say",
        ),
    ),
    *planted(
        "evaluator/devices/device_processes.py",
        UNIT + "evaluator/devices/test_device_processes.py",
        (
            "children of a supervisor are strangers",
            "        pid = parent\n    return False",
            "        return False\n    return False",
            "test_what_descendants_of_a_supervisor_hold_is_ours",
        ),
    ),
    *planted(
        "evaluator/processes/host.py",
        "tests/processes/test_memory_ledger.py",
        (
            "a supervisor that waits for the lease keeps its memory",
            "if self.ledger is not None and not self.leased and self.ledger.release_requested:",
            "if self.ledger is None:",
            "test_a_supervisor_that_waits_for_the_lease_releases_to_its_holder",
        ),
    ),
)

BUGS = (*LEASE_AND_REFERENCE, *MEMORY_OF_A_DEVICE)
