"""Bugs in the calls of CPU runners: when inputs arrive, what counts, where outputs lie."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bug import RUNNER, UNIT, planted

ORDER = "test_inputs_arrive_and_outputs_are_read_while_the_runner_is_stopped"
ACCOUNTS = UNIT + "evaluator/runners/test_cpu_accounting.py"
FRESH = UNIT + "evaluator/timing/test_fresh_inputs.py"
RENEWED = UNIT + "evaluator/judge/test_renewed_inputs.py"
MAP = UNIT + "evaluator/judge/test_memory_map.py"
OUTPUTS = UNIT + "evaluator/judge/test_output_memory.py"

CALL = (
    *planted(
        "evaluator/timing/concentrated_work.py",
        UNIT + "evaluator/timing/test_concentrated_work.py",
        (
            "work of many calls in one is forgiven",
            "MIN_GAP, CERTAIN_GAP = 0.02",
            "MIN_GAP, CERTAIN_GAP = 9.0",
        ),
        ("one disturbed call makes a candidate slower", "MIN_LONG_CALLS = 2", "MIN_LONG_CALLS = 1"),
    ),
    *planted(
        "evaluator/timing/work_ahead.py",
        UNIT + "evaluator/timing/test_work_ahead.py",
        (
            "outputs that lie ready need not be outlasted",
            "CALLS_FOR_EACH = 4",
            "CALLS_FOR_EACH = 0",
        ),
    ),
    *planted(
        "evaluator/runners/cpu_runner.py",
        RUNNER,
        (
            "no runner is stopped before its inputs are written",
            "        self.stop()\n        ready_cpu_s, waited_s",
            "        ready_cpu_s, waited_s",
            ORDER,
        ),
        (
            "no runner is stopped before its memory is read",
            "        self.stop()\n        stopped_at, stopped",
            "        stopped_at, stopped",
            ORDER,
        ),
        (
            "a call is released before its inputs are written",
            "        if not write_inputs():\n",
            "        flags[sync_page.GO] = sequence\n        if not write_inputs():\n",
            ORDER,
        ),
        (
            "a runner goes on before its outputs are seen",
            "        finish(sequence)\n",
            "        tree.resume()\n        finish(sequence)\n",
            ORDER,
        ),
        (
            "a call whose inputs cannot be written is made",
            "        if not write_inputs():\n",
            "        if write_inputs() is None:\n",
            "test_a_runner_whose_inputs_cannot_be_written_is_ended",
        ),
        (
            "work between two calls is not charged",
            "return CallTiming(total_s, ready_cpu_s - before, result)",
            "return CallTiming(total_s, 0.0 * before, result)",
            "test_cpu_time_between_calls_is_not_that_of_a_call",
        ),
        (
            "work of a stopped runner is not charged",
            "before, self._cpu_before = self._cpu_before, tree.cpu_s()",
            "before, self._cpu_before = self._cpu_before, stopped_cpu_s",
            "test_cpu_time_used_while_stopped_is_charged_to_the_call",
        ),
        (
            "a runner that another process resumed continues",
            "if not tree.is_stopped():",
            "if tree.is_stopped() is None:",
            "test_a_runner_that_runs_while_stopped_is_ended",
        ),
        (
            "memory of a runner that does not stop is read",
            "if not self.child.tree.freeze():",
            "if self.child.tree.freeze() is None:",
            "test_a_runner_that_does_not_stop_is_ended_without_inputs",
        ),
        (
            "a runner may change the address of its inputs",
            "        if first:\n",
            "        if base:\n",
            "test_the_first_report_of_address_and_memory_is_final",
        ),
        (
            "callers hold the newest outputs alone",
            "self._choices.sample(self.held, max(len(self.held) + 1 - most, 0))",
            "self.held[: max(len(self.held) + 1 - most, 0)]",
            "test_callers_hold_few_outputs_of_secret_calls_and_some_for_long",
        ),
    ),
    *planted(
        "evaluator/runners/cpu_accounting.py",
        ACCOUNTS,
        (
            "the credit of an empty call has no limit",
            "min(empty_s, MAX_EMPTY_CALL_S)",
            "empty_s",
        ),
        (
            "CPU time after the stop is not charged with several threads",
            "readings.stopped_s + readings.late_cpu_s",
            "readings.stopped_s",
        ),
        (
            "a runner that sleeps is not charged",
            "max(asleep_s - ASLEEP_S, 0.0)",
            "max(asleep_s - ASLEEP_S, 0.0) * 0",
        ),
        (
            "a runner is charged while it waits for its core",
            "- readings.cpu_s - readings.waited_s",
            "- readings.cpu_s",
        ),
    ),
    *planted(
        "runner/host_memory.py",
        RUNNER,
        (
            "the runner reports only the last address when it completes",
            "page[OUTPUTS + place] = address",
            "page[OUTPUTS] = address",
            "test_output_addresses_are_reported_with_the_completion_timestamp",
        ),
    ),
    *planted(
        "runner/calls.py",
        UNIT + "runner/test_host_memory.py",
        (
            "a caller loses outputs that it holds",
            "                leaf = _clone(leaf)\n",
            "                pass\n",
            "test_an_output_over_one_that_is_held_is_copied",
        ),
    ),
    *planted(
        "evaluator/runners/host_call.py",
        FRESH,
        (
            "the judge is not told which outputs are held",
            "held=runner.held, dropped",
            "held=[], dropped",
            "test_the_judge_is_told_which_outputs_are_held",
        ),
    ),
)

VALUES = (
    *planted(
        "evaluator/timing/blocks.py",
        FRESH,
        (
            "every timed call gets the same seed",
            "seed = choices.getrandbits(63)",
            "seed = 7",
        ),
        (
            "every timed call gets the same forward seed",
            "forward_seed = choices.getrandbits(31)",
            "forward_seed = 7",
        ),
        (
            "inputs of timed calls lie at one address",
            "slot = self.clock, choices.randrange(self.slots)",
            "slot = self.clock, 0",
        ),
        (
            "calls on input variations enter the ratio",
            "        if call.varied:\n",
            "        if call is None:\n",
        ),
        (
            "no timed call is on an input variation",
            "choices.random() < VARIED_SHARE:",
            "choices.random() < 0:",
        ),
        (
            "both calls of a pair get different inputs",
            "if place and not clock.pairs:",
            "if place:",
        ),
        (
            "a call gets the tree of an earlier sample",
            "replace(sample.layout, tree=answer.tree)",
            "replace(sample.layout)",
        ),
    ),
    *planted(
        "evaluator/judge/renewed_inputs.py",
        RENEWED,
        (
            "inputs of timed calls keep their values",
            "    plain.write(sample.image)\n",
            "    plain.items.clear()\n",
        ),
        (
            "every tail of a timed call is thick",
            "bool(seed & 1)",
            "False",
        ),
        (
            "inputs of timed calls are always nominal",
            "plain = changed if varied else plain",
            "plain = plain if varied else plain",
        ),
        (
            "inputs of another layout are written",
            "fresh = same_layout(tree, sample.tree)",
            "fresh = True",
        ),
        (
            "gradients of timed calls keep their values",
            "        value.copy_(noise)\n",
            "        value.copy_(value)\n",
        ),
        (
            "a variation is computed only where it is used",
            "if varied or sample.size <= EQUAL_WORK_BYTES:",
            "if varied:",
            "test_a_variation_is_computed_for_every_call",
        ),
    ),
    *planted(
        "evaluator/judge/process.py",
        UNIT + "evaluator/judge/test_timed_calls.py",
        (
            "a failure to write inputs is not reported",
            "return messages.InputsWritten(written)",
            "return messages.InputsWritten(True)",
        ),
        (
            "timed calls all get the same values",
            "            sample,\n            message.seed,\n",
            "            sample,\n            3,\n",
        ),
    ),
)

PLACES = (
    *planted(
        "evaluator/judge/memory_map.py",
        MAP,
        ("shared memory counts as private", "if area.shared:", "if area is None:"),
        ("a mapped file counts as private", "elif area.of_file:", "elif area is None:"),
        ("a hole counts as memory", "if area.start > covered:", "if area is None:"),
        ("the end of a map counts as memory", "if covered < stop:", "if covered < start:"),
        (
            "the printed map ends at every kind of line end",
            'text.removesuffix(b"\\n").split(b"\\n") if text else ()',
            "text.splitlines()",
        ),
    ),
    *planted(
        "evaluator/judge/output_memory.py",
        OUTPUTS,
        (
            "nobody asks in which memory an output lies",
            "        found |= memory.foreign(span)\n",
            "        found |= set()\n",
        ),
        (
            "outputs may overlap each other",
            "if (one, other) not in placement.shares_outputs",
            "if (one, other) in placement.shares_outputs",
        ),
        (
            "outputs that are held are not compared",
            "for span in held.values()]",
            "for span in held.values()][:0]",
        ),
        (
            "outputs of problems in place keep their values",
            "not in placement.reuses_outputs and not runner.memory.overlaps_inputs(span)",
            "not in placement.reuses_outputs and runner.memory.overlaps_inputs(span)",
        ),
        (
            "outputs that are given back keep their values",
            "            memory.write(start, (data * (size // PAGE + 1))[:size])\n",
            "            memory.write(start, b'')\n",
        ),
    ),
    *planted(
        "evaluator/judge/output_placement.py",
        OUTPUTS,
        (
            "halves of one tensor count as one output",
            "            if start < last and first < stop\n",
            "",
        ),
        (
            "an input that the reference overwrites counts as returned as it was",
            "if own is copy or same_values(own, copy)",
            "if own is copy or own is not copy",
        ),
    ),
    *planted(
        "evaluator/judge/outputs_in_inputs.py",
        OUTPUTS,
        (
            "an output may lie in any input",
            "if found is None or not (found[2] in may_write or place in self._placement.aliases):",
            "if found is None:",
        ),
        (
            "an output may reach beyond an input",
            "if first <= start and stop <= last:",
            "if first <= start < last:",
        ),
        (
            "an input that was right may be returned",
            "            if not different.kind:\n",
            "            if different is None:\n",
        ),
    ),
    *planted(
        "evaluator/judge/memory_reader.py",
        UNIT + "evaluator/judge/test_hostile_memory.py",
        (
            "inputs are written at the first slot",
            "self._address + base + done)",
            "self._address + done)",
        ),
        (
            "inputs that cannot be read count as unchanged",
            "into[:] = bytes(0xFF ^ value for value in into)",
            "pass",
            "test_inputs_that_cannot_be_read_count_as_overwritten",
        ),
        ("only the first window is compared", "stop in windows:", "stop in windows[:1]:"),
        (
            "every window starts at the first byte",
            "self._address + base + start, into)",
            "self._address + base, into)",
        ),
    ),
    *planted(
        "evaluator/judge/process.py",
        UNIT + "evaluator/judge/test_hostile_memory.py",
        (
            "the inputs of a call are never compared",
            "overwritten(sample, *seen, self.writable, windows)",
            "overwritten(sample, *seen, self.writable, [])",
        ),
        (
            "the inputs of another slot are compared",
            "runner.memory.inputs(message.base,",
            "runner.memory.inputs(0,",
        ),
    ),
)

BUGS = (*CALL, *VALUES, *PLACES)
