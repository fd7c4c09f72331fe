"""Bugs in the clock: what is timed, what is charged, what the ratio is."""

from __future__ import annotations

from benchmarks.sabotage_bugs import PIPELINE, SIDES, UNIT, planted

BUGS = (
    *planted(
        "evaluator/times.py",
        UNIT + "test_timing_math.py",
        (
            "the sides of the ratio are swapped",
            '_paired(net(times, baseline), net(times, "candidate"))',
            '_paired(net(times, "candidate"), net(times, baseline))',
        ),
        (
            "CPU use outside the calls accuses nobody",
            "statistics.quantile(ours, 0.25) - max(usual)",
            "max(usual) - max(usual)",
        ),
        (
            "a baseline that waits makes others look busy",
            "[value for value in calls if value >= 0]",
            "calls[:]",
        ),
        (
            "few calls that tell are enough",
            "len(calls) >= max(least, 1)",
            "len(calls) >= 1",
        ),
        (
            "pairs of processes are taken for one",
            "edges = [*(times.pair_starts or [0]), len(rows)]",
            "edges = [0, len(rows)]",
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
        (
            "long calls are timed in one pair of processes",
            "pairs_needed(steady * 1e6, moved, on_gpu=on_gpu)",
            "1",
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
        "evaluator/timing.py",
        UNIT + "test_pairs_on_device.py",
        (
            "a process with a past is timed for short calls",
            "(pairs > 1 and side.judged",
            "(pairs > 9 and side.judged",
        ),
    ),
    *planted(
        "evaluator/times.py",
        UNIT + "test_pairs_on_device.py",
        (
            "no difference on a device is looked at again",
            "return made < min(most, MOST_PAIRS) and doubtful(",
            "return False and doubtful(",
        ),
        (
            "what says that sides differ is believed as soon as what says nothing",
            "(CLAIM if claimed else 1) * more",
            "more",
        ),
        (
            "a baseline's luck is averaged over pairs that share it",
            "apart = 2 / (1 / len(ratios) + 1 / min(theirs, len(ratios)))",
            "apart = len(ratios)",
        ),
        (
            "a short candidate has as little luck as its baseline",
            "return calibration.sigma(theirs, times.moved_bytes, ours)",
            "return calibration.sigma(theirs, times.moved_bytes)",
        ),
    ),
    *planted(
        "scoring/pairs.py",
        UNIT + "test_pairs_on_device.py",
        (
            "what is known of processes is forgotten where pairs agree",
            "known += between_process_sigma**2",
            "known += 0.0",
        ),
    ),
    *planted(
        "evaluator/clocks.py",
        UNIT + "test_sabotage_timing.py",
        (
            "CPU use in the baseline's turn is ignored",
            "(candidate.child.tree.cpu_s() - before)",
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
        ("the busiest baseline is usual", "return min((statistics", "return max((statistics"),
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
        "evaluator/knockout.py",
        PIPELINE,
        (
            "who is right in a process knocked out late is not asked again",
            "if found is None or found.right:",
            "if found is None:",
            "test_a_process_that_is_dear_is_knocked_out_itself_before_it_ends",
        ),
    ),
    *planted(
        "scoring/statistics.py",
        UNIT + "test_statistics.py",
        (
            "a noisy interval claims as much as a narrow one",
            "stretch = STRETCH if is_noisy(interval) else 1.0",
            "stretch = 1.0",
        ),
        (
            "the interval lacks what differs between processes",
            "between = _normal_half_width(level) * between_process_sigma",
            "between = 0.0",
        ),
        (
            "faster by the estimate",
            "if middle > stretch * (middle - math.log(interval.low)):",
            "if middle > 0:",
        ),
    ),
    *planted(
        "scoring/pairs.py",
        UNIT + "test_pairs.py",
        (
            "pairs that disagree are outvoted by what was known",
            "if seen <= BELIED * known",
            "if seen >= 0.0",
        ),
    ),
    *planted(
        "evaluator/sides.py",
        SIDES,
        (
            "nobody is stopped before memory is read",
            "        self._stop()\n        stood, then",
            "        stood, then",
            "test_a_side_stands_still_while_its_outputs_are_read",
        ),
        (
            "the snapshot is taken after the thaw",
            "        snapshot()\n",
            "        tree.thaw()\n        snapshot()\n",
            "test_a_side_stands_still_while_its_outputs_are_read",
        ),
        (
            "work between two calls is nobody's",
            "= self.child.tree, self._cpu_before, self._threads == 1",
            "= self.child.tree, self.child.tree.cpu_s(), self._threads == 1",
            "test_work_beside_a_call_is_all_since_the_last_stamp_but_the_call_itself",
        ),
        (
            "what other threads do before a call is nobody's",
            "outside = armed - before + early + ",
            "outside = armed - before + ",
            "test_work_beside_a_call_is_all_since_the_last_stamp_but_the_call_itself",
        ),
        (
            "a call itself is work beside it",
            "self._cpu_before - (done - start) - before",
            "self._cpu_before - before",
            "test_work_beside_a_call_is_all_since_the_last_stamp_but_the_call_itself",
        ),
        (
            "what a side does while it is stopped is nobody's",
            "self._cpu_before = tree.cpu_s()\n        tree.thaw()",
            "self._cpu_before = then\n        tree.thaw()",
            "test_who_works_while_it_is_stopped_is_charged",
        ),
        (
            "a side that was woken goes on",
            "if not tree.stands():",
            "if tree.stands() is None:",
            "test_who_runs_while_it_is_stopped_is_ended",
        ),
        (
            "a side that does not stop is read",
            "if not self.child.tree.freeze():",
            "if self.child.tree.freeze() is None:",
            "test_who_does_not_stand_still_is_ended",
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
        "evaluator/device_clock.py",
        UNIT + "test_device_clock.py",
        (
            "a candidate says whether launches are in a baseline's times",
            "evaluation.sides[names[0]]",
            "evaluation.sides[names[-1]]",
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
        "evaluator/process_tree.py",
        "tests/processes/test_sabotage_tree.py",
        (
            "only the first process of a tree is stopped",
            "for pid in self.pids[1:]:",
            "for pid in self.pids[:0]:",
        ),
        (
            "nobody waits until a side stands",
            "while not self.stands():",
            "while False:",
        ),
        (
            "the CPU time of child processes is not counted",
            "total += time.clock_gettime(",
            "total = time.clock_gettime(",
        ),
    ),
)
