"""Bugs in the judge: comparison, input samples, weights, seeds, messages and memory."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bug import PIPELINE, RULES, RUNNER, UNIT, planted

COMPARISON = planted(
    "evaluator/judge/comparison.py",
    UNIT + "evaluator/judge/test_comparison.py",
    (
        "every value counts as correct",
        "if worst > 1.0 and not tail",
        "if worst > float('inf') and not tail",
    ),
    ("NaN is allowed", "finite = torch.isfinite(got)", "finite = ~torch.isinf(got)"),
    ("the sign of infinity is ignored", "(want == got)", "(want.abs() == got.abs())"),
    ("a median for the 99.9th percentile", "PERCENTILE = 0.999", "PERCENTILE = 0.5"),
    ("the largest error for the percentile", "PERCENTILE = 0.999", "PERCENTILE = 1.0"),
    (
        "rounding sensitivity has no limit",
        "expected.rounding_sensitivity.clamp_max(most)",
        "expected.rounding_sensitivity",
    ),
)

WIDENED = "return wrong > max(TAIL_SHARE, FEW) * output.numel() + 1"
JUDGE = (
    *planted(
        "evaluator/judge/wider_tolerance.py",
        "tests/property/test_comparison_parts.py",
        ("no wrong output gets a wider tolerance", WIDENED, "return True"),
        ("each wrong output gets a wider tolerance", WIDENED, "return False"),
        ("one wrong element excludes a wider tolerance", WIDENED, "return wrong > 0"),
        (
            "an error that sensitivity explains excludes a wider tolerance",
            "SENSITIVITY_FACTOR * MAX_SENSITIVITY * size",
            "0.0 * size",
        ),
    ),
    *planted(
        "evaluator/judge/comparison.py",
        UNIT + "evaluator/judge/test_compared_outputs.py",
        ("rounding tolerance x 100", "EPS_FACTOR = ", "EPS_FACTOR = 100 * "),
        ("outputs are compared without the whole error", "if ratio <= 1.0:", "if ratio <= 1e9:"),
        (
            "the reference's error x 100",
            "\nREFERENCE_ERROR_FACTOR = ",
            "\nREFERENCE_ERROR_FACTOR = 100 * ",
        ),
    ),
    *planted(
        "evaluator/judge/process.py",
        UNIT + "evaluator/judge/test_process.py",
        (
            "descriptions of outputs by a runner are ignored",
            "self._shape_of(sample, message.outputs)",
            "None",
        ),
    ),
    *planted(
        "evaluator/judge/process.py",
        UNIT + "evaluator/judge/test_timed_calls.py",
        (
            "timed calls are compared with an old expected value",
            'centers = _contiguous(self._snapshot(sample, self.runners["eager"]))',
            "centers = [item.value for item in sample.expected]",
        ),
    ),
    *planted(
        "evaluator/judge/process.py",
        UNIT + "evaluator/judge/test_compared_outputs.py",
        (
            "the last of several outputs is not compared",
            "in enumerate(zip(sample.expected, outputs, strict=True)):",
            "in list(enumerate(zip(sample.expected, outputs)))[: max(1, len(outputs) - 1)]:",
        ),
        (
            "expected values of another sample",
            "difference, worst = self._shape_of(sample, message.outputs), None",
            "sample = list(self.samples.values())[-1]\n"
            "        difference, worst = self._shape_of(sample, message.outputs), None",
        ),
    ),
    *planted(
        "evaluator/judge/output_description.py",
        UNIT + "evaluator/judge/test_comparison.py",
        ("shape is not checked", 'if item["shape"] != shape:', "if shape is None:"),
        ("dtype is not checked", 'if item["dtype"] != dtype:', "if dtype is None:"),
    ),
    *planted(
        "evaluator/judge/weight_loader.py",
        UNIT + "evaluator/judge/test_weight_messages.py",
        (
            "weights are not resampled",
            "weights.resample(model, message.seed, self._buffers)",
            "{name: v.clone() for name, v in model.named_parameters()}",
        ),
        (
            "the reference keeps its old weights",
            "model.load_state_dict(self._applied, strict=False)",
            "pass",
        ),
    ),
    *planted(
        "evaluator/judge/overwritten_inputs.py",
        UNIT + "evaluator/judge/test_overwritten_inputs.py",
        (
            "overwritten inputs are not reported",
            "    different = torch.zeros(sample.size",
            "    return []\n    different = torch.zeros(sample.size",
        ),
        (
            "guard bytes are not checked",
            "if bool((different & ~covered).any()):",
            "if covered is None:",
        ),
    ),
    *planted(
        "evaluator/judge/inputs.py",
        UNIT + "evaluator/judge/test_inputs.py",
        (
            "two seeds with equal outputs prove a deterministic reference",
            "if not sampled_any:",
            "if sampled_any or not sampled_any:",
        ),
        (
            "input variations are never applied",
            "vary(value, variation, generator, structured=keep, thin=thin)",
            "value.clone()",
        ),
        (
            "random references are not recognised",
            "again, _ = refs.run(reference, args, grad_outputs, other, sample.after.written)",
            "again = values",
        ),
    ),
    *planted(
        "evaluator/judge/number_formats.py",
        UNIT + "evaluator/judge/test_number_formats.py",
        (
            "steps of float8 are not counted",
            "    if found <= allowed:\n",
            "    if found <= 1.0:\n",
        ),
        (
            "a complex element has only its real part",
            "        return pairs.flatten(-2) if value.dim() else pairs\n",
            "        return pairs[..., 0]\n",
        ),
        (
            "a float8 element has the tolerance of its whole row",
            "row * FLOAT8_SMALL if dtype in FLOAT8 else row",
            "row * 16 if dtype in FLOAT8 else row",
        ),
    ),
    *planted(
        "evaluator/judge/weights.py",
        UNIT + "evaluator/judge/test_number_formats.py",
        (
            "declared buffers keep their order",
            "    return octets[order].view(value.dtype).reshape(value.shape)\n",
            "    return value.clone()\n",
        ),
    ),
    *planted(
        "evaluator/judge/reference.py",
        UNIT + "evaluator/judge/test_reference.py",
        (
            "the input seed is ignored",
            "torch.Generator(device).manual_seed(seed)",
            "torch.Generator(device).manual_seed(0)",
        ),
    ),
    *planted(
        "evaluator/pipeline/correctness.py",
        PIPELINE,
        (
            "hidden sizes are never tested",
            'for case in hidden_cases(problem, session.context.choices("sizes")):',
            'for case in hidden_cases(problem, session.context.choices("sizes"))[:0]:',
            "test_a_candidate_that_is_wrong_for_some_inputs_is_incorrect",
        ),
        (
            "only nominal inputs are tested",
            "for variation in _variations(session, number, size):",
            "for variation in ():",
            "test_a_candidate_that_is_wrong_for_some_inputs_is_incorrect",
        ),
        (
            "a wrong output is recorded but does not count",
            "if answer.wrong:\n",
            "if answer is None:\n",
            "test_a_candidate_that_is_wrong_for_some_inputs_is_incorrect",
        ),
        (
            "unjudged becomes incorrect",
            "if layout.random and",
            "if not sample and",
            "test_a_random_reference_leaves_the_candidate_unjudged",
        ),
    ),
    *planted(
        "evaluator/pipeline/correctness.py",
        RULES,
        (
            "hidden sizes near public ones equal the public ones",
            "choices.choice(inside or [declared])",
            "declared",
            "test_hidden_sizes_differ_from_public_ones_and_stay_in_range",
        ),
    ),
)

MEMORY = (
    *planted(
        "evaluator/judge/process.py",
        UNIT + "evaluator/judge/test_hostile_memory.py",
        (
            "all outputs are read at the address of the first",
            "zip(sample.expected[: sample.after.returned], runner.last, strict=True)",
            "zip(sample.expected, runner.last[:1] * len(runner.last), strict=True)",
        ),
        (
            "outputs are read from another runner's memory",
            "runner.memory.read(address, item.value, permuted",
            "next(iter(self.runners.values())).memory.read(address, item.value, permuted",
        ),
        (
            "an unreadable output counts as correct",
            "if output is None:\n                difference = UNREADABLE",
            'if output is None:\n                difference = Mismatch("", "", None)',
        ),
    ),
    *planted(
        "evaluator/judge/timed_comparison.py",
        UNIT + "evaluator/judge/test_hostile_memory.py",
        (
            "an unreadable output of a timed call counts as correct",
            "                return UNREADABLE\n",
            "                return None\n",
        ),
    ),
    *planted(
        "evaluator/judge/timed_comparison.py",
        UNIT + "evaluator/judge/test_compared_outputs.py",
        (
            "the last of several outputs is not compared when timed",
            "items = zip(sample.expected, outputs, centers, strict=True)\n        for place",
            "items = list(zip(sample.expected, outputs, centers))[: max(1, len(outputs) - 1)]\n"
            "        for place",
        ),
    ),
    *planted(
        "evaluator/judge/memory_reader.py",
        UNIT + "evaluator/judge/test_hostile_memory.py",
        (
            "outputs are read from a wrong offset",
            "if _read_into(memory, address, into)",
            "if _read_into(memory, address & ~4095, into)",
        ),
        (
            "a truncated output counts as complete",
            "if count == 0:\n            return False",
            "if count == 0:\n            return True",
        ),
        (
            "unreadable memory counts as zeros",
            "return value if _read_into(memory, address, into) else None",
            "return value if _read_into(memory, address, into) else value.zero_()",
        ),
    ),
)

SECRETS = (
    *planted(
        "evaluator/seeds.py",
        UNIT + "evaluator/test_seeds.py",
        (
            "all seeds are the same",
            'text = "|".join([root, *(str(name) for name in names)])',
            "text = root",
        ),
        ("the root seed is not secret", "secrets.token_hex(16)", '"0" * 32'),
    ),
    *planted(
        "evaluator/judge_client/client.py",
        PIPELINE,
        (
            "the input seed is in the call",
            '"args": self.layout.tree,',
            '"args": self.layout.tree, "seed": str(self.seed),',
            "test_the_runner_receives_no_secret",
        ),
    ),
    *planted(
        "evaluator/runners/pool.py",
        UNIT + "languages/test_stream_use.py",
        (
            "no runner gets the queues for several streams",
            "streams = self.context.several_streams",
            "streams = False",
        ),
    ),
    *planted(
        "evaluator/runners/messages.py",
        UNIT + "evaluator/runners/test_messages.py",
        ("more fields than the schema has", 'extra="forbid"', 'extra="ignore"'),
        ("other types than the schema has", "strict=True", "strict=False"),
    ),
    *planted(
        "evaluator/runners/messages.py",
        RUNNER,
        ("an address outside of the memory is accepted", "Field(ge=0, lt=1 << 57)", "Field()"),
    ),
)

PROBLEMS = (
    *planted(
        "evaluator/judge/dependence.py",
        UNIT + "evaluator/judge/test_soundness.py",
        (
            "rounding errors count as dependence",
            "remains > REMAINS * gap",
            "remains >= 0 * gap",
            "test_outputs_that_depend_on_no_input_are_constant",
        ),
        (
            "only the problem's own inputs are tried",
            "SMALL, LARGE = Effort(seeds=4, variants=6, weights=3)",
            "SMALL, LARGE = Effort(seeds=4, variants=0, weights=3)",
            "test_a_constant_on_nominal_inputs_is_weak_and_not_unsound",
        ),
        (
            "the randomness of a reference is not looked for",
            "if _is_random(reference, args):",
            "if _is_random is None:",
            "test_a_random_reference_keeps_its_own_reason",
        ),
    ),
    *planted(
        "evaluator/judge/soundness.py",
        UNIT + "evaluator/judge/test_soundness.py",
        (
            "an overwritten sample is not noticed",
            "shares_memory=overwritten or (shared and differ)",
            "shares_memory=False",
            "test_samples_in_one_buffer_are_named_and_judged_from_copies",
        ),
        (
            "a sample is never repeated",
            "repeatable=_equal(before, again)",
            "repeatable=True",
            "test_a_generator_that_cannot_repeat_a_sample_is_named",
        ),
        (
            "the published rule is ignored by the check",
            "degenerate_answers.passes(first, answers[n], rule)",
            "degenerate_answers.passes(first, answers[n], None)",
            "test_a_published_rule_is_used_where_it_is_given",
        ),
    ),
    *planted(
        "evaluator/pipeline/problem_check.py",
        "tests/processes/test_problem_check.py",
        (
            "an unsound problem gets a verdict",
            "if health.unsound and",
            "if not health.cases and",
            "test_an_unsound_problem_has_no_strict_verdict_and_is_checked_once",
        ),
        (
            "a stored check of another version is used",
            "(health.version, health.evaluator) == (HEALTH_VERSION, __version__)",
            "health.version is not None",
            "test_a_damaged_stored_check_is_made_again",
        ),
    ),
)

TIMES = planted(
    "scoring/paired_times.py",
    "tests/property/test_paired_times.py",
    (
        "medians are shown beside a speed-up",
        "return PairedTimes(middle * side, middle / side)",
        "return PairedTimes(baseline_us, candidate_us)",
    ),
)

BUGS = (*COMPARISON, *JUDGE, *MEMORY, *SECRETS, *PROBLEMS, *TIMES)
