"""Bugs in timing: measured calls, charged work and the ratio."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bug import PIPELINE, SUPPRESSION, UNIT, planted

BUGS = (
    *planted(
        "evaluator/timing/case_timings.py",
        UNIT + "evaluator/timing/test_case_timings.py",
        (
            "CPU time outside the calls gives no finding",
            "bootstrap.quantile(ours, 0.25) - max(usual)",
            "max(usual) - max(usual)",
        ),
        (
            "a waiting baseline makes the candidate look busy",
            "[value for value in calls if value >= 0]",
            "calls[:]",
        ),
        (
            "few informative calls are enough",
            "len(calls) >= max(least, 1)",
            "len(calls) >= 1",
        ),
    ),
    *planted(
        "evaluator/timing/speedup.py",
        UNIT + "evaluator/timing/test_case_timings.py",
        (
            "the runners of the ratio are swapped",
            '_paired(charged_times(times, baseline), charged_times(times, "candidate"))',
            '_paired(charged_times(times, "candidate"), charged_times(times, baseline))',
        ),
        (
            "process replicates are treated as one",
            "edges = [*(times.replicate_starts or [0]), len(rows)]",
            "edges = [0, len(rows)]",
        ),
        (
            "the runners of the official ratio are swapped",
            "shown.baseline_us / shown.candidate_us",
            "shown.candidate_us / shown.baseline_us",
        ),
    ),
    *planted(
        "evaluator/timing/blocks.py",
        UNIT + "evaluator/timing/test_blocks.py",
        ("ABAB instead of ABBA", "(first, first[::-1])", "(first, first)"),
        (
            "timed calls are not compared",
            "layout.output_bytes <= clock.check_all_bytes",
            "layout.output_bytes <= 0",
        ),
        (
            "timed calls may return other dtypes",
            "if found != call.sample.layout.outputs:",
            "if not found:",
        ),
    ),
    *planted(
        "evaluator/timing/blocks.py",
        UNIT + "evaluator/timing/test_varied_calls.py",
        (
            "calls on variations have an order of their own",
            "self._time_half(order, choices, varied=True)",
            "self._time_half(choices.sample(order, len(order)), choices, varied=True)",
        ),
        (
            "calls on variations have an address of their own",
            "self.clock, choices.randrange(self.slots)",
            "self.clock, 0 if varied else choices.randrange(self.slots)",
        ),
    ),
    *planted(
        "evaluator/timing/rounds.py",
        UNIT + "evaluator/timing/test_blocks.py",
        (
            "long calls are timed in one process replicate",
            "item.planned = planned_replicates(",
            "item.planned = 0 * planned_replicates(",
        ),
    ),
    *planted(
        "evaluator/timing/rounds.py",
        UNIT + "evaluator/timing/test_gpu_replicates.py",
        (
            "short calls are timed in a process with prior work",
            "(planned > 1 and runner.judged",
            "(planned > 9 and runner.judged",
        ),
    ),
    *planted(
        "evaluator/timing/replicate_policy.py",
        UNIT + "evaluator/timing/test_gpu_replicates.py",
        (
            "no difference on a GPU is measured again",
            "return made < min(most, MAX_REPLICATES) and self.may_be_noise(",
            "return False and self.may_be_noise(",
        ),
        (
            "calls below 20 us have the noise threshold of longer ones",
            "if is_short(times, baseline) and made",
            "if not times.blocks and made",
        ),
        (
            "a claimed difference needs no more replicates than none",
            "(self.claimed_factor if claimed else 1) * extra",
            "extra",
        ),
    ),
    *planted(
        "evaluator/timing/blocks.py",
        UNIT + "evaluator/timing/test_fresh_inputs.py",
        (
            "a runner gets values of inputs that are not made yet",
            "not early and has_only_tensors(self.sample.layout.tree)",
            "not early",
        ),
    ),
    *planted(
        "evaluator/timing/gpu_clock.py",
        UNIT + "evaluator/timing/test_gpu_clock.py",
        (
            "a seed that gives other shapes is not replaced by another",
            "not made.renewed.fresh or tree",
            "tree",
        ),
        (
            "a call with another layout than its inputs counts",
            "            if tree != layout.tree:\n",
            "            if tree is None:\n",
        ),
    ),
    *planted(
        "evaluator/runners/gpu_runner.py",
        UNIT + "evaluator/runners/test_gpu_runner.py",
        (
            "the judge is asked to abandon a call after it has waited for the call",
            "    judge.send(AbandonCall(runner.name))\n    judge.drain()\n",
            "    judge.drain()\n    judge.send(AbandonCall(runner.name))\n",
        ),
    ),
    *planted(
        "evaluator/judge/variations.py",
        UNIT + "evaluator/judge/test_renewed_inputs.py",
        (
            "a moved slice becomes dense",
            "    return like(value).copy_(made)\n",
            "    return torch.empty_like(value).copy_(made)\n",
        ),
    ),
    *planted(
        "evaluator/runners/cpu_runner.py",
        UNIT + "evaluator/runners/test_cpu_runner.py",
        (
            "a failure after the constructor is one of the constructor",
            '        self._expect("loaded", frame)\n        self.stage = Stage.LOAD\n',
            '        self._expect("loaded", frame)\n',
        ),
    ),
    *planted(
        "evaluator/timing/speedup.py",
        UNIT + "evaluator/timing/test_gpu_replicates.py",
        (
            "noise of a shared baseline is averaged over replicates",
            "independent = 2 / (1 / len(ratios) + 1 / min(theirs, len(ratios)))",
            "independent = len(ratios)",
        ),
        (
            "a short candidate has the noise of its longer baseline",
            "return calibration.sigma(theirs, times.moved_bytes, ours)",
            "return calibration.sigma(theirs, times.moved_bytes)",
        ),
    ),
    *planted(
        "scoring/process_replicates.py",
        UNIT + "evaluator/timing/test_gpu_replicates.py",
        (
            "the calibration is ignored if replicates agree",
            "known += between_process_sigma**2",
            "known += 0.0",
        ),
    ),
    *planted(
        "evaluator/timing/cpu_clock.py",
        UNIT + "evaluator/timing/test_blocks.py",
        (
            "CPU use in the baseline's turn is ignored",
            "candidate.child.tree.cpu_s() - before",
            "before - before",
        ),
        (
            "inputs of the baseline are compared, not those of the candidate",
            "_inspected(pool, times, call) if own else []",
            "[] if own else _inspected(pool, times, call)",
        ),
        (
            "the same windows are compared each time",
            'choices("windows", times.case, len(times.total_s["candidate"]))',
            'choices("windows")',
        ),
    ),
    *planted(
        "evaluator/timing/case_timings.py",
        UNIT + "evaluator/timing/test_blocks.py",
        ("a wrong timed call is not recorded", "if answer.wrong:", "if answer is None:"),
        ("an overwritten input of a timed call is not recorded", "self.mutated += [", "_ = ["),
        (
            "untimed work is not charged",
            "total + max(outside - limit, 0.0)",
            "total",
        ),
        (
            "short calls have no undetectable work",
            "UNDETECTABLE_S if is_short(times, baseline) else 0.0",
            "0.0",
        ),
        (
            "untimed work of every implementation is charged",
            "max(outside - limit, 0.0)",
            "max(outside, 0.0)",
        ),
        (
            "the candidate's untimed work counts as normal",
            'times.untimed_cpu_s.items() if name != "candidate"]',
            'times.untimed_cpu_s.items() if name == "candidate"]',
        ),
        (
            "the untimed work of the busiest baseline counts as normal",
            "return min(medians",
            "return max(medians",
        ),
    ),
    *planted(
        "evaluator/timing/speedup.py",
        UNIT + "evaluator/timing/test_blocks.py",
        (
            "the slack of short calls is dropped",
            "low *= call_s / (call_s + undetectable_work_s(times, baseline))",
            "pass",
        ),
    ),
    *planted(
        "evaluator/timing/cpu_clock.py",
        PIPELINE,
        (
            "inputs may be overwritten while timed",
            "look=_inspected(pool, times, call) if own else []",
            "look=[]",
            "test_inputs_may_not_be_overwritten_only_when_timed",
        ),
    ),
    *planted(
        "evaluator/pipeline/launch_suppression.py",
        SUPPRESSION,
        (
            "a launch suppression in a used process is not repeated",
            "if found is None or found.right is not False:",
            "if found is None:",
            "test_a_runner_that_is_costly_to_start_is_suppressed_itself_before_it_ends",
        ),
    ),
    *planted(
        "scoring/intervals.py",
        UNIT + "scoring/test_intervals.py",
        (
            "a wide interval claims as much as a narrow one",
            "stretch = STRETCH if is_noisy(interval) else 1.0",
            "stretch = 1.0",
        ),
        (
            "the interval lacks process-to-process variation",
            "between = _normal_half_width(level) * between_process_sigma",
            "between = 0.0",
        ),
        (
            "the estimate alone decides faster",
            "if middle > stretch * (middle - math.log(interval.low)):",
            "if middle > 0:",
        ),
    ),
    *planted(
        "scoring/process_replicates.py",
        UNIT + "scoring/test_process_replicates.py",
        (
            "the calibration outweighs replicates that disagree",
            "observed <= MAX_VARIANCE_RATIO * known",
            "observed >= 0.0",
        ),
    ),
    *planted(
        "scoring/process_replicates.py",
        UNIT + "scoring/test_process_replicates.py",
        (
            "the blocks of all replicates count for each",
            "return [of_block / len(group) for group in groups]",
            "return [of_block / len(apart) for group in groups]",
        ),
        (
            "a disturbed process counts like the others",
            "ends = len(ordered), 1 if len(ordered) >= TRIMMED_FROM else 0",
            "ends = len(ordered), 0",
        ),
        (
            "a few blocks seem to scatter less",
            "of_block *= len(apart) / max(len(apart) - len(groups), 1)",
            "of_block /= 2",
        ),
    ),
    *planted(
        "evaluator/timing/stop_rule.py",
        UNIT + "evaluator/timing/test_blocks.py",
        (
            "the stop rule depends on the estimate",
            "return max(half_width(",
            'return times.total_s["candidate"][-1] < 0.9 or max(half_width(',
        ),
    ),
    *planted(
        "evaluator/timing/stop_rule.py",
        UNIT + "evaluator/timing/test_stop_rule.py",
        (
            "a narrow variation between processes does not sharpen the interval",
            "BETWEEN_SHARE * NORMAL_95 * sigma",
            "0.1",
        ),
        (
            "the narrowest baseline decides",
            "return max(half_width(times, name) for name in self.baselines) <=",
            "return 0.0 <=",
        ),
        ("a replicate has no limit of time", "took_s > limit_s and made >= fewest", "False"),
    ),
    *planted(
        "evaluator/runners/host_call.py",
        UNIT + "evaluator/timing/test_blocks.py",
        (
            "the last of several outputs is never read",
            'runner.reported_outputs(len(fields["expected"]))',
            'runner.reported_outputs(len(fields["expected"]) - 1)',
            "test_outputs_are_read_at_the_addresses_that_their_runner_reported",
        ),
    ),
    *planted(
        "evaluator/timing/gpu_clock.py",
        UNIT + "evaluator/timing/test_gpu_clock.py",
        (
            "the candidate decides whether times include launches",
            "pool.runners[names[0]]",
            "pool.runners[names[-1]]",
        ),
    ),
    *planted(
        "runner/calls.py",
        PIPELINE,
        (
            "strided outputs are read as dense ones",
            "return _contiguous(leaf)",
            "return leaf",
            "test_an_output_that_is_a_view_is_judged_by_its_values",
        ),
    ),
    *planted(
        "evaluator/processes/process_tree.py",
        "tests/processes/test_process_control.py",
        (
            "only the first process of a runner is stopped",
            "for pid in self.pids[1:]:",
            "for pid in self.pids[:0]:",
        ),
        (
            "the supervisor does not wait until a runner has stopped",
            "while not self.is_stopped():",
            "while False:",
        ),
        (
            "the CPU time of child processes is not counted",
            "total += time.clock_gettime(",
            "total = time.clock_gettime(",
        ),
    ),
)
