"""Bugs in what a GPU needs: the launch counter, builds, the end of a call, device memory."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bug import SUPPRESSION, UNIT, planted

LAUNCHES = (
    *planted(
        "runner/launch_counter.py",
        UNIT + "runner/test_launch_counter.py",
        (
            "compiled code traces the launch counter",
            "function._torchdynamo_disable = True",
            "function._torchdynamo_disable = False",
        ),
        (
            "torch.compile compiles the frames of the launch counter",
            "frames.set_code_exec_strategy(function.__code__, UNTRACED)",
            "frames.reset_code(function.__code__)",
        ),
    ),
    *planted(
        "runner/launch_counter.py",
        UNIT + "runner/test_triton_candidates.py",
        (
            "launches are never counted",
            "self.count += 1",
            "self.count += 0",
            "test_a_kept_compiled_kernel_and_a_kept_launcher_are_counted",
        ),
        (
            "a kept compiled kernel passes the counter by",
            "kind.run = property(run)",
            "kind.counted_run = property(run)",
            "test_a_kept_compiled_kernel_is_suppressed",
        ),
        (
            "what torch.compile wrote is the candidate's own",
            'startswith("torch.")',
            'startswith("torch..")',
            "test_a_kernel_that_torch_wrote_is_not_the_candidates_own",
        ),
        (
            "a replayed graph counts nothing",
            "self.count += own",
            "self.count += 0",
            "test_a_replay_counts_the_own_launches_that_were_captured",
        ),
    ),
    *planted(
        "runner/kept_outputs.py",
        UNIT + "runner/test_kept_outputs.py",
        ("a kept base is no reason for a copy", "sys.getrefcount(base), of_base", "0, 0"),
        (
            "each view is copied",
            "alone = self.view if counts.base_names else self.tensor",
            "alone = self.tensor",
        ),
        (
            "outputs that overlap are kept by nobody",
            "if pair in shared or not _overlap(leaves[place], leaf):",
            "if True:",
            "test_an_output_at_two_places_is_kept_unless_the_reference_returns_it_so",
        ),
        (
            "a view beside the returned ones is no reason for a copy",
            "alone.tensors + leaves + views",
            "alone.tensors + 1000",
            "test_outputs_of_one_memory_are_kept_if_anything_else_refers_to_them",
        ),
        (
            "a kept name is no reason for a copy",
            "return ReferenceCounts(names, tensors, 0, 0)",
            "return ReferenceCounts(0, tensors, 0, 0)",
        ),
    ),
    *planted(
        "evaluator/judge/ready_outputs.py",
        UNIT + "evaluator/judge/test_ready_outputs.py",
        (
            "no output lay ready",
            "if count >= MIN_PLACES and share > MIN_SHARE:",
            "if count >= MIN_PLACES and share > 1.0:",
            "test_an_output_that_was_there_before_is_found_whole",
        ),
        (
            "one element of a place that agrees is enough",
            "(self._before == self._after).all(1)",
            "(self._before == self._after).any(1)",
            "test_zeros_at_random_places_of_reused_memory_are_no_output_that_lay_ready",
        ),
        (
            "memory that was given back counts as an output",
            " & (self._after != GIVEN_BACK).any(1)",
            "",
            "test_memory_that_its_caller_has_overwritten_is_no_output",
        ),
    ),
    *planted(
        "evaluator/timing/host_variation.py",
        UNIT + "evaluator/timing/test_host_variation.py",
        (
            "an interval that depends on the host stays narrow",
            "if times.candidate_waits == baseline_waits:",
            "if True:",
            "test_a_candidate_that_waits_has_a_lower_end_that_allows_for_other_hosts",
        ),
        (
            "calls that include launches count as waits",
            "if not times.on_device or times.gpu.launching:",
            "if not times.on_device:",
            "test_if_none_or_both_wait_the_interval_stays",
        ),
        (
            "a slow candidate hides by a wait",
            "return width, width if baseline_waits else 0.0",
            "return width, width",
            "test_a_candidate_that_waits_has_a_lower_end_that_allows_for_other_hosts",
        ),
    ),
    *planted(
        "evaluator/verdict.py",
        UNIT + "evaluator/test_verdict.py",
        (
            "the variation between hosts shrinks with the number of cases",
            "compare_strict(case, baseline, between, (), any_host=False)",
            "compare_strict(case, baseline, between, ())",
            "test_the_variation_between_hosts_does_not_shrink_with_the_number_of_cases",
        ),
    ),
    *planted(
        "evaluator/judge/output_memory.py",
        UNIT + "evaluator/judge/test_compared_outputs.py",
        (
            "an output in the inputs is read in another order than they lie",
            "if in_order and not runner.memory.overlaps_inputs(span):",
            "if in_order:",
            "test_an_output_in_the_inputs_has_no_order_of_its_own",
        ),
        (
            "no output is read with the strides of the reference's",
            "in_order = permuted_strides(expected[place]) is not None",
            "in_order = False",
            "test_an_output_is_read_in_the_order_that_its_runner_reports",
        ),
        (
            "strides that are not dense are read",
            "in_order = permuted_strides(expected[place]) is not None",
            "in_order = not expected[place].is_contiguous()",
            "test_a_report_has_no_effect_if_the_reference_is_not_dense",
        ),
    ),
    *planted(
        "evaluator/timing/value_dependence.py",
        UNIT + "evaluator/timing/test_value_dependence.py",
        (
            "work in calls on variations costs nothing",
            'if not _is_slower(times, "candidate"):',
            "if times:",
            "test_work_that_was_moved_into_varied_calls_makes_no_gain",
        ),
    ),
    *planted(
        "evaluator/timing/work_ahead.py",
        UNIT + "evaluator/timing/test_work_ahead.py",
        (
            "what lay ready on a GPU costs nothing",
            "return _found_fill_s(times, DEVICE_FILL_S, DEVICE_BYTES_PER_S)",
            "return 0.0",
            "test_on_a_gpu_a_gain_allows_for_what_lay_ready_in_compared_calls",
        ),
    ),
    *planted(
        "checks/unused_kernels.py",
        UNIT + "checks/test_findings.py",
        (
            "a count of zero launches rejects without suppression",
            "if not evidence.right_when_suppressed:",
            "if evidence.launches and max(evidence.launches) > 0:",
            "test_a_kernel_that_is_never_launched_is_unused_if_it_is_not_missed",
        ),
    ),
    *planted(
        "evaluator/pipeline/launch_suppression.py",
        SUPPRESSION,
        (
            "an output that never changes shows that launches are unused",
            "right=True if differ else None",
            "right=True",
            "test_an_output_that_proves_nothing_rejects_nobody",
        ),
        (
            "a kernel that cannot run is taken for a used one",
            "fail=not launched",
            "fail=False",
            "test_a_kernel_whose_launch_always_raises_is_unused",
        ),
    ),
)

ENDS = (
    *planted(
        "evaluator/timing/unfinished_work.py",
        UNIT + "evaluator/timing/test_unfinished_work.py",
        (
            "the latency of calls is not compared with their end",
            "if not waited or not queued",
            "if True or not waited or not queued",
            "test_a_caller_that_waits_longer_shows_work_after_the_end",
        ),
        (
            "calls back to back are not compared with single ones",
            "if seconds is None or times",
            "if True or seconds is None or times",
            "test_calls_back_to_back_that_take_longer_show_work_after_the_end",
        ),
        (
            "the band of call ends ignores the baseline",
            "ours - max([0.0, *theirs])",
            "ours",
            "test_readings_that_agree_show_no_work_after_the_end",
        ),
    ),
    *planted(
        "checks/call_ends.py",
        UNIT + "checks/test_findings.py",
        (
            "work after the end of a call rejects nobody",
            "if seconds <= 0:",
            "if seconds >= 0:",
            "test_work_after_the_end_of_a_call_is_rejected",
        ),
    ),
)

BUGS = (*LAUNCHES, *ENDS)
