"""Bugs in the supervisor: verdicts, launches, processes, deadlines, caches."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bug import (
    PIPELINE,
    REQUESTS,
    RULES,
    RUNNER,
    SUPPRESSION,
    UNIT,
    planted,
)

VERDICT = (
    *planted(
        "evaluator/verdict.py",
        UNIT + "evaluator/test_verdict.py",
        (
            "a decisive finding does not reject",
            "if isinstance(outcome, Correct) and decisive:",
            "if outcome is None:",
        ),
        (
            "an incorrect candidate gets a speed-up",
            "if isinstance(outcome, Correct) and comparisons:",
            "if comparisons:",
        ),
        (
            "denied labels are allowed",
            "if label.name in request.rules.deny_labels]",
            "if label is None]",
        ),
    ),
    *planted(
        "records/report.py",
        UNIT + "records/test_validation.py",
        (
            "a report with a failure may have a speed-up",
            "if self.speedup is not None and not isinstance(self.outcome, Correct):",
            "if self.speedup == 0:",
        ),
    ),
    *planted(
        "evaluator/runners/cpu_runner.py",
        RUNNER,
        (
            "a runner is timed while its other processes still run",
            "if not self.child.forbid_processes():",
            "if self.child.forbid_processes() is None:",
            "test_a_runner_whose_other_processes_live_on_is_not_timed",
        ),
    ),
    *planted(
        "evaluator/timing/blocks.py",
        UNIT + "evaluator/timing/test_blocks.py",
        (
            "a runner is timed without a check for other processes",
            "        runner.forbid_processes()\n",
            "        runner.allow_processes()\n",
            "test_runners_may_start_no_process_from_first_to_last_block_of_a_replicate",
        ),
    ),
    *planted(
        "runner/launch_counter.py",
        SUPPRESSION,
        (
            "launch suppression suppresses nothing",
            "None if self.suppress else self.measured(launch, *args, **kwargs)",
            "launch(*args, **kwargs)",
            "test_a_candidate_that_is_right_with_suppressed_launches_is_rejected",
        ),
    ),
    *planted(
        "runner/loaders/c_abi.py",
        SUPPRESSION,
        (
            "suppression of native launches suppresses nothing",
            "if not launches.suppress:",
            "if launches:",
            "test_launch_suppression_of_a_native_kernel_changes_its_output",
        ),
    ),
    *planted(
        "evaluator/pipeline/launch_suppression.py",
        SUPPRESSION,
        (
            "the result under launch suppression is inverted",
            "if made.answer.wrong:",
            "if not made.answer.wrong:",
            "test_a_candidate_that_is_right_with_suppressed_launches_is_rejected",
        ),
    ),
    *planted(
        "evaluator/pipeline/wrong_output.py",
        PIPELINE,
        (
            "constant-folded weights are not recognised",
            'return outcome.model_copy(update={"kind": IncorrectKind.WEIGHTS})',
            "pass",
            "test_folded_weights_are_named",
        ),
    ),
    *planted(
        "evaluator/pipeline/timing_stage.py",
        PIPELINE,
        (
            "a wrong timed call does not change the verdict",
            "if times.wrong:",
            "if not times:",
            "test_a_call_that_is_wrong_only_when_timed_is_incorrect",
        ),
        (
            "a failed baseline call is attributed to the candidate",
            "if ended.runner in names:",
            "if ended is None:",
            "test_a_failing_baseline_leaves_the_candidate_unjudged",
        ),
    ),
    *planted(
        "evaluator/runners/baselines.py",
        PIPELINE,
        (
            "a baseline that does not load is attributed to the candidate",
            "raise baseline_failed(context, name, ended) from ended",
            "raise",
            "test_a_failing_baseline_leaves_the_candidate_unjudged",
        ),
    ),
)

LIMITS = (
    *planted(
        "evaluator/processes/memory_use.py",
        "tests/processes/test_memory_use.py",
        (
            "files without a name are not counted",
            "self.objects[key] = found.st_blocks * _BLOCK",
            "self.objects[key] = 0",
            "test_memory_that_is_not_resident_is_counted",
        ),
        (
            "only the first thread's descriptors are counted",
            'for task in os.listdir(f"/proc/{pid}/task"):',
            "for task in [str(pid)]:",
            "test_memory_that_is_not_resident_is_counted",
        ),
        (
            "pages of forked processes count in each of them",
            "if anonymous > limit:",
            "if anonymous < 0:",
            "test_forked_processes_share_their_memory",
        ),
    ),
    *planted(
        "evaluator/processes/queued_descriptors.py",
        "tests/processes/test_memory_use.py",
        (
            "sockets in the queue of a socket are not followed",
            "yield from peek(os.dup(each), depth + 1, seen)",
            "yield from ()",
            "test_memory_that_is_not_resident_is_counted",
        ),
    ),
    *planted(
        "evaluator/pipeline/lifecycle.py",
        "tests/processes/test_evaluate_limits.py",
        (
            "a candidate may take as long to end as a setting says",
            "min(session.request.limits.exit_s, MAX_EXIT_S)",
            "session.request.limits.exit_s",
            "test_a_hang_at_exit_costs_at_most_three_seconds",
        ),
    ),
)

HOUSEKEEPING = (
    *planted(
        "evaluator/runners/pool.py",
        RULES,
        (
            "a required isolation layer is ignored",
            "if layer not in active]",
            "if layer is None]",
            "test_a_layer_that_is_off_is_recorded_as_off",
        ),
        (
            "an inactive isolation layer is recorded as active",
            "active=not reason",
            "active=True",
            "test_a_layer_that_is_off_is_recorded_as_off",
        ),
    ),
    *planted(
        "records/file_lock.py",
        PIPELINE,
        (
            "the device lease is not acquired",
            "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            "pass",
            "test_the_lease_is_held_while_a_candidate_runs",
        ),
    ),
    *planted(
        "evaluator/processes/host.py",
        UNIT + "evaluator/processes/test_host.py",
        (
            "a candidate with several streams gets one queue",
            "if not extra_paths and not streams:",
            "if not extra_paths:",
        ),
    ),
    *planted(
        "evaluator/processes/host.py",
        PIPELINE,
        (
            "the supervisor does not wait for a lease in use",
            "while not lease.try_take():",
            "if not lease.try_take():",
            "test_a_second_evaluation_waits_for_the_lease_and_reports_it",
        ),
    ),
    *planted(
        "evaluator/runners/cpu_runner.py",
        RULES,
        (
            "the deadline of an answer is not enforced",
            "timeout_s = timeout_s or self.call_timeout_s",
            "timeout_s = 1e6",
            "test_an_answer_after_its_deadline_is_a_timeout",
        ),
        (
            "the deadline of a timed call is not enforced",
            "if limit.is_over():",
            "if limit.at < 0:",
            "test_an_answer_after_its_deadline_is_a_timeout",
        ),
        (
            "the deadline of the session is not enforced",
            "if now > self._deadline:",
            "if self._deadline < 0:",
            "test_the_whole_evaluation_has_a_deadline",
        ),
        (
            "memory has no limit",
            "if message := self.excess():\n            raise self._failed(FailureReason.OUT",
            'if message := "":\n            raise self._failed(FailureReason.OUT',
            "test_memory_beyond_the_limit_ends_the_candidate",
        ),
    ),
    *planted(
        "evaluator/context.py",
        REQUESTS,
        (
            "a candidate that asked for a build meets the same inputs again",
            "return derive(self.root, *names, *self._digests)",
            "return derive(self.root, *names)",
        ),
    ),
    *planted(
        "evaluator/runners/build_requests.py",
        REQUESTS,
        (
            "a candidate may ask for a build until its evaluation suits it",
            "if not self._accepted:",
            "if self._accepted is None:",
        ),
        (
            "a candidate may ask for any number of builds",
            "if self._left <= 0:",
            "if self._left < -99:",
        ),
    ),
    *planted(
        "evaluator/pipeline/prepare.py",
        RULES,
        (
            "builds are cached by name",
            "[plan.digest(), FLAG, candidate.entry",
            "[candidate.files[0].path, candidate.entry",
            "test_builds_are_cached_by_content_and_never_by_name",
        ),
    ),
    *planted(
        "records/run_folder.py",
        UNIT + "records/test_run_folder.py",
        (
            "unjudged results are cached",
            'if report.verdict == "unjudged":',
            "if not report.verdict:",
        ),
        (
            "reports are cached for other rules",
            'update={"seed": None}',
            'update={"seed": None, "rules": None, "protocol": "strict"}',
        ),
    ),
)

ALONE = (
    *planted(
        "evaluator/processes/spawn_guard.py",
        "tests/processes/test_spawn_guard.py",
        (
            "the process-creation guard is never closed",
            "lambda: self.closed",
            "lambda: False",
            "test_a_closed_guard_refuses_new_processes_and_allows_threads",
        ),
    ),
    *planted(
        "runner/sandbox/seccomp.py",
        "tests/processes/test_spawn_guard.py",
        (
            "a new process counts as a thread",
            "_step(_EQUAL, 0, 0, 1)",
            "_step(_EQUAL, 0, 1, 0)",
            "test_a_closed_guard_refuses_new_processes_and_allows_threads",
        ),
    ),
    *planted(
        "evaluator/processes/process_tree.py",
        "tests/processes/test_spawn_guard.py",
        (
            "other processes of a runner survive",
            "_signal(pid, signal.SIGKILL)",
            "_signal(pid, signal.SIGCONT)",
            "test_forbidding_processes_leaves_only_the_payload",
        ),
    ),
    *planted(
        "evaluator/processes/host.py",
        "tests/processes/test_spawn_guard.py",
        (
            "no runner has a process-creation guard",
            "if timed or layer != IsolationLayer.PROCESS_CREATION_GUARD",
            "if layer != IsolationLayer.PROCESS_CREATION_GUARD",
            "test_only_timed_runners_have_the_process_creation_guard",
        ),
    ),
)

BUGS = (*VERDICT, *LIMITS, *HOUSEKEEPING, *ALONE)
