"""Bugs in the supervisor: timing, verdicts, launches, processes, deadlines, caches."""

from __future__ import annotations

from benchmarks.sabotage_bugs import PIPELINE, RULES, SIDES, UNIT, planted

CLOCK = (
    *planted(
        "evaluator/times.py",
        UNIT + "test_timing_math.py",
        (
            "the sides of the ratio are swapped",
            '_paired(net(times, baseline), net(times, "candidate"))',
            '_paired(net(times, "candidate"), net(times, baseline))',
        ),
        (
            "the sides of the published ratio are swapped",
            "means[0] / means[1]",
            "means[1] / means[0]",
        ),
    ),
    *planted(
        "evaluator/timing.py",
        UNIT + "test_sabotage_timing.py",
        (
            "the stop rule looks at the estimate",
            "if max(widths) <= max(",
            "if times.totals[names[-1]][-1] < 0.9 or max(widths) <= max(",
        ),
        ("ABAB instead of ABBA", "(first, first[::-1])", "(first, first)"),
        (
            "both calls of a pair get other contents",
            "None if place and clock.pairs else",
            "None if False else",
        ),
        (
            "timed calls are not compared",
            "drawn.output_bytes <= clock.check_all_bytes",
            "drawn.output_bytes <= 0",
        ),
        ("other dtypes are allowed when timed", "if said != turn.drawn.outputs:", "if not said:"),
    ),
    *planted(
        "evaluator/clocks.py",
        UNIT + "test_sabotage_timing.py",
        (
            "CPU use in the baseline's turn is ignored",
            "(candidate.child.cpu_s() - before)",
            "(before - before)",
        ),
        (
            "outputs are read where another side said",
            "evaluation.sides[turn.name].output_addresses(",
            'evaluation.sides["candidate"].output_addresses(',
        ),
        (
            "the same windows are looked at every time",
            'choices("windows", times.case, len(times.totals["candidate"]))',
            'choices("windows")',
        ),
        (
            "inputs of timed calls are looked at in the baseline",
            'if turn.name != "candidate" or',
            'if turn.name == "candidate" or',
        ),
    ),
    *planted(
        "evaluator/times.py",
        UNIT + "test_sabotage_timing.py",
        ("a wrong timed call is not kept", 'if answer["wrong"]:', "if answer is None:"),
        ("an input overwritten when timed is not kept", "self.mutated += [", "_ = ["),
        (
            "work beside a call is not charged",
            "total + max(outside - limit, 0.0)",
            "total",
        ),
        (
            "what everybody does beside a call is charged",
            "max(outside - limit, 0.0)",
            "max(outside, 0.0)",
        ),
        (
            "the candidate's own work beside a call is usual",
            'times.outside.items() if name != "candidate"]',
            'times.outside.items() if name == "candidate"]',
        ),
        ("the busiest baseline is usual", "max(min(statistics", "max(max(statistics"),
        (
            "the slack of short calls is dropped",
            "if is_short(times, baseline):",
            "if times is None:",
        ),
        (
            "what the harness does hides nothing",
            "HIDDEN_FLOOR_S + HIDDEN_SHARE * _usual_outside(times)",
            "HIDDEN_FLOOR_S",
        ),
    ),
    *planted(
        "evaluator/clocks.py",
        PIPELINE,
        (
            "inputs may be overwritten while timed",
            '"look": _windows(evaluation, times, turn)',
            '"look": []',
            "test_inputs_may_not_be_overwritten_only_when_timed",
        ),
    ),
    *planted(
        "scoring/statistics.py",
        UNIT + "test_statistics.py",
        (
            "the interval lacks what differs between processes",
            "between = _normal_half_width(level) * between_process_sigma",
            "between = 0.0",
        ),
        ("faster by the estimate", "if interval.low > 1.0:", "if interval.estimate > 1.0:"),
    ),
    *planted(
        "evaluator/sides.py",
        SIDES,
        (
            "nobody is stopped before memory is read",
            "self.child.freeze()",
            "pass",
            "test_a_side_stands_still_while_its_outputs_are_read",
        ),
        (
            "the snapshot is taken after the thaw",
            "snapshot()\n        self.child.thaw()",
            "self.child.thaw()\n        snapshot()",
            "test_a_side_stands_still_while_its_outputs_are_read",
        ),
        (
            "work between two calls is nobody's",
            "before, armed = self._cpu_before, self.child.cpu_s()",
            "before = armed = self.child.cpu_s()",
            "test_work_beside_a_call_is_all_since_the_last_stamp_but_the_call_itself",
        ),
        (
            "what other threads do during a call is nobody's",
            "if self._threads == 1 else armed",
            "if self._threads == 0 else armed",
            "test_work_beside_a_call_is_all_since_the_last_stamp_but_the_call_itself",
        ),
        (
            "a call itself is work beside it",
            "self._cpu_before - (done - start) if",
            "self._cpu_before if",
            "test_work_beside_a_call_is_all_since_the_last_stamp_but_the_call_itself",
        ),
        (
            "the clock of a side is read while it runs",
            "self.child.freeze()\n        self._cpu_before = self.child.cpu_s()",
            "self._cpu_before = self.child.cpu_s()\n        self.child.freeze()",
            "test_work_beside_a_call_is_all_since_the_last_stamp_but_the_call_itself",
        ),
        (
            "a side may say later that its mirror lies elsewhere",
            "if first:\n",
            "if fds:\n",
            "test_the_first_word_on_mirror_and_memory_is_the_only_one",
        ),
    ),
    *planted(
        "contestant/host_memory.py",
        SIDES,
        (
            "only the last output's address is said at the stamp",
            "token[OUTPUTS + place] = address",
            "token[OUTPUTS] = address",
            "test_where_the_outputs_lie_is_said_at_the_stamp_and_not_later",
        ),
    ),
    *planted(
        "contestant/calls.py",
        PIPELINE,
        (
            "outputs that are views are read as if they were dense",
            "return _contiguous(_detach(leaf))",
            "return _detach(leaf)",
            "test_an_output_that_is_a_view_is_judged_by_its_values",
        ),
    ),
    *planted(
        "evaluator/processes.py",
        "tests/processes/test_sabotage_tree.py",
        (
            "only the first process of a tree is stopped",
            "for pid in self._pids[1:]:",
            "for pid in self._pids[:0]:",
        ),
        (
            "the CPU time of child processes is not counted",
            "total += time.clock_gettime(",
            "total = time.clock_gettime(",
        ),
    ),
)

VERDICT = (
    *planted(
        "evaluator/verdict.py",
        UNIT + "test_verdict.py",
        (
            "CPU use outside the calls is ignored",
            "statistics.quantile(ours, 0.25) - usual",
            "usual - usual",
        ),
        (
            "a decisive finding does not reject",
            "if isinstance(outcome, Correct) and decisive:",
            "if outcome is None:",
        ),
        (
            "a speed-up for who is not correct",
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
        "evaluator/verdict.py",
        PIPELINE,
        (
            "a baseline that waits makes others look busy",
            "usual = max([0.0, *(",
            "usual = max([*(",
            "test_a_baseline_that_waits_in_its_calls_makes_nobodys_work_suspicious",
        ),
    ),
    *planted(
        "records/report.py",
        UNIT + "test_records.py",
        (
            "a report may give a failure a speed-up",
            "if self.speedup is not None and not isinstance(self.outcome, Correct):",
            "if self.speedup == 0:",
        ),
    ),
    *planted(
        "contestant/launches.py",
        PIPELINE,
        (
            "the knock-out suppresses nothing",
            "None if self.suppress else self.measured(launch, *args, **kwargs)",
            "launch(*args, **kwargs)",
            "test_who_is_right_without_its_kernels_is_a_decoy",
        ),
        (
            "launches are never counted",
            "self.count += 1",
            "self.count += 0",
            "test_who_is_right_without_its_kernels_is_a_decoy",
        ),
    ),
    *planted(
        "contestant/loaders/c_abi.py",
        PIPELINE,
        (
            "the knock-out of native kernels suppresses nothing",
            "if not launches.suppress:",
            "if launches:",
            "test_a_native_kernel_is_missed_when_it_is_knocked_out",
        ),
    ),
    *planted(
        "evaluator/knockout.py",
        PIPELINE,
        (
            "right when knocked out is turned round",
            "right = not evaluation",
            "right = not not evaluation",
            "test_who_is_right_without_its_kernels_is_a_decoy",
        ),
    ),
    *planted(
        "evaluator/evaluate.py",
        PIPELINE,
        (
            "folded weights are not told apart",
            'outcome = outcome.model_copy(update={"kind": "weights"})',
            "pass",
            "test_weights_that_were_folded_are_named",
        ),
        (
            "a wrong timed call is no matter",
            "if collected.times[-1].wrong:",
            "if not collected.times[-1]:",
            "test_a_call_that_is_wrong_only_when_timed_is_incorrect",
        ),
        (
            "a baseline that does not load is the candidate's fault",
            "raise _baseline_failed(name, ended) from ended",
            "raise",
            "test_a_baseline_that_fails_is_not_the_candidates_fault",
        ),
        (
            "a baseline that fails when timed is the candidate's fault",
            "if ended.side in names:",
            "if ended is None:",
            "test_a_baseline_that_fails_is_not_the_candidates_fault",
        ),
    ),
)

HOUSEKEEPING = (
    *planted(
        "evaluator/evaluation.py",
        RULES,
        (
            "a required layer is ignored",
            "if layer not in active]",
            "if layer is None]",
            "test_a_layer_that_is_off_is_recorded_as_off",
        ),
        (
            "a layer that is off is recorded as active",
            "active=not reason",
            "active=True",
            "test_a_layer_that_is_off_is_recorded_as_off",
        ),
    ),
    *planted(
        "evaluator/host.py",
        PIPELINE,
        (
            "the lease is not taken",
            "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            "pass",
            "test_the_lease_is_held_while_a_candidate_runs",
        ),
        (
            "a taken lease is not waited for",
            "while not _locked(file):",
            "if not _locked(file):",
            "test_a_second_evaluation_waits_for_the_lease_and_says_so",
        ),
    ),
    *planted(
        "evaluator/sides.py",
        RULES,
        (
            "the deadline of an answer is not enforced",
            "timeout_s = timeout_s or self.limits.call_s",
            "timeout_s = 1e6",
            "test_an_answer_is_waited_for_until_its_deadline",
        ),
        (
            "the deadline of a timed call is not enforced",
            "if time.monotonic() > limit:",
            "if limit < 0:",
            "test_an_answer_is_waited_for_until_its_deadline",
        ),
        (
            "the deadline of the evaluation is not enforced",
            "if now > self._deadline:",
            "if self._deadline < 0:",
            "test_the_whole_evaluation_has_a_deadline",
        ),
        (
            "memory is not bounded",
            "if used > allowed + LIBRARY_BYTES:",
            "if used < 0:",
            "test_memory_beyond_the_limit_ends_it",
        ),
    ),
    *planted(
        "evaluator/build.py",
        RULES,
        (
            "builds are kept by name",
            "[plan.digest(), candidate.entry",
            "[candidate.files[0].path, candidate.entry",
            "test_builds_are_kept_by_content_and_never_by_name",
        ),
    ),
    *planted(
        "records/store.py",
        UNIT + "test_runs_store.py",
        ("unjudged is remembered", 'if report.verdict == "unjudged":', "if not report.verdict:"),
        (
            "reports are kept whatever the rules",
            'update={"seed": None}',
            'update={"seed": None, "rules": None, "protocol": "strict"}',
        ),
    ),
)

BUGS = (*CLOCK, *VERDICT, *HOUSEKEEPING)
