"""Bugs in the judge: comparison, draws, weights, seeds, what is said, asked and read."""

from __future__ import annotations

from benchmarks.sabotage_bugs import PIPELINE, RULES, SIDES, UNIT, planted

COMPARISON = planted(
    "evaluator/judge/comparison.py",
    UNIT + "test_comparison.py",
    ("every value is right", "if worst <= 1.0:", "if worst <= float('inf'):"),
    ("many may be wrong", "wrong <= FEW * count", "wrong <= count"),
    ("a few may be anything", "each.beside <= 1.0 for each", "each.beside >= 0.0 for each"),
    ("NaN is allowed", "finite = torch.isfinite(got)", "finite = ~torch.isinf(got)"),
    ("the sign of infinity is ignored", "(want == got)", "(want.abs() == got.abs())"),
    ("absolute tolerance", "size = finite.abs()", "size = torch.ones_like(finite)"),
    ("integers may be off by one", "wrong = value != output", "wrong = value + 1 < output"),
    ("a median for the 99.9th percentile", "PERCENTILE = 0.999", "PERCENTILE = 0.5"),
    ("the largest error for the percentile", "PERCENTILE = 0.999", "PERCENTILE = 1.0"),
    ("shape is not checked", 'if item["shape"] != shape:', "if shape is None:"),
    ("dtype is not checked", 'if item["dtype"] != dtype:', "if dtype is None:"),
    ("any sway is allowed", "expected.sway.clamp_max(most)", "expected.sway"),
)

JUDGE = (
    *planted(
        "evaluator/judge/comparison.py",
        UNIT + "test_sabotage_judge.py",
        ("rounding bound x 100", "EPS_FACTOR = ", "EPS_FACTOR = 100 * "),
        (
            "the reference's error x 100",
            "REFERENCE_ERROR_FACTOR = ",
            "REFERENCE_ERROR_FACTOR = 100 * ",
        ),
    ),
    *planted(
        "evaluator/judge/main.py",
        UNIT + "test_judge.py",
        (
            "what a side says of its outputs is ignored",
            'self._shape_of(drawn, fields["outputs"])',
            "None",
        ),
    ),
    *planted(
        "evaluator/judge/main.py",
        UNIT + "test_judge_timed.py",
        (
            "a stale expected value when timed",
            'self.snapshots.pop("eager")',
            "[item.value for item in drawn.expected]",
        ),
        (
            "timed calls all get the same contents",
            'self.draws[fields["draw"]].stir(fields["stir"])',
            "pass",
        ),
    ),
    *planted(
        "evaluator/judge/main.py",
        UNIT + "test_sabotage_judge.py",
        (
            "the last of several outputs is not compared",
            "item, output in zip(drawn.expected, outputs, strict=True)",
            "item, output in list(zip(drawn.expected, outputs))[: max(1, len(outputs) - 1)]",
        ),
        (
            "the last of several outputs is not compared when timed",
            "zip(drawn.expected, outputs, centers, strict=True)",
            "list(zip(drawn.expected, outputs, centers))[: max(1, len(outputs) - 1)]",
        ),
        (
            "expected values of another draw",
            'difference, worst = self._shape_of(drawn, fields["outputs"]), None',
            "drawn = list(self.draws.values())[-1]\n"
            '        difference, worst = self._shape_of(drawn, fields["outputs"]), None',
        ),
    ),
    *planted(
        "evaluator/judge/main.py",
        UNIT + "test_judge_weights.py",
        (
            "weights are not redrawn",
            'weights.redraw(model, frame.fields["seed"])',
            "{name: v.clone() for name, v in model.named_parameters()}",
        ),
        (
            "the reference keeps its old weights",
            "model.load_state_dict(self.applied, strict=False)",
            "pass",
        ),
    ),
    *planted(
        "evaluator/judge/draws.py",
        UNIT + "test_draws.py",
        (
            "overwritten inputs are not noticed",
            "size = drawn.size",
            "return []\n    size = drawn.size",
        ),
        (
            "guard bytes are not looked at",
            "if bool((different & ~covered).any()):",
            "if covered is None:",
        ),
        (
            "two seeds that agree are no chance",
            "if not has_drawn:",
            "if has_drawn or not has_drawn:",
        ),
        (
            "variations of the contents are never applied",
            "vary(value, contents, generator) if",
            "value.clone() if",
        ),
        (
            "random references are not recognised",
            "again, _ = refs.run(reference, args, grad_outputs, other)",
            "again = values",
        ),
    ),
    *planted(
        "evaluator/judge/reference.py",
        UNIT + "test_reference.py",
        (
            "the input seed is ignored",
            "torch.Generator(self.device).manual_seed(seed)",
            "torch.Generator(self.device).manual_seed(0)",
        ),
        (
            "the oracle is float32",
            "kind = torch.float64 if value.is_floating_point() else value.dtype\n",
            "kind = value.dtype\n",
        ),
    ),
    *planted(
        "evaluator/correctness.py",
        PIPELINE,
        (
            "hidden sizes are never drawn",
            "for case in hidden_cases(evaluation):",
            "for case in hidden_cases(evaluation)[:0]:",
            "test_what_is_wrong_somewhere_is_incorrect",
        ),
        (
            "only nominal contents are drawn",
            "enumerate(_variations(evaluation, case, sizes[case.name])):",
            "enumerate(()):",
            "test_what_is_wrong_somewhere_is_incorrect",
        ),
        (
            "a wrong output is recorded and forgiven",
            "if answer.wrong:\n",
            "if answer is None:\n",
            "test_what_is_wrong_somewhere_is_incorrect",
        ),
        (
            "unjudged becomes incorrect",
            "if drawn.random and",
            "if not drawn and",
            "test_a_random_reference_is_unjudged_and_not_wrong",
        ),
    ),
    *planted(
        "evaluator/correctness.py",
        RULES,
        (
            "hidden sizes next to published ones are the published ones",
            "choices.choice((-1, 1))",
            "choices.choice((0, 0))",
            "test_hidden_sizes_are_others_and_within_bounds",
        ),
    ),
)

MEMORY = (
    *planted(
        "evaluator/judge/main.py",
        UNIT + "test_sabotage_memory.py",
        (
            "all outputs are read where the first one lies",
            "zip(drawn.expected, places, strict=True)",
            "zip(drawn.expected, places[:1] * len(places), strict=True)",
        ),
        (
            "outputs are read from another side's memory",
            "side.memory.read(address, item.value)",
            "next(iter(self.sides.values())).memory.read(address, item.value)",
        ),
        (
            "an output that cannot be read is right",
            "if output is None:\n                difference = UNREADABLE",
            'if output is None:\n                difference = Difference("", "", None)',
        ),
        (
            "an output that cannot be read when timed is right",
            "if output is None or center is None:\n                difference = UNREADABLE",
            "if output is None or center is None:\n"
            '                difference = Difference("", "", None)',
        ),
        ("the mirror is never looked at", 'drawn.image, fields["look"])', "drawn.image, [])"),
        (
            "the mirror is looked at in another slot",
            'memory.differs(fields["base"],',
            "memory.differs(0,",
        ),
    ),
    *planted(
        "evaluator/judge/memory.py",
        UNIT + "test_sabotage_memory.py",
        (
            "outputs are read from the wrong place",
            "if _read_into(memory, address, into)",
            "if _read_into(memory, address & ~4095, into)",
        ),
        (
            "an output that ends early is whole",
            "if count == 0:\n            return False",
            "if count == 0:\n            return True",
        ),
        (
            "what cannot be read is taken for zeros",
            "return value if _read_into(memory, address, into) else None",
            "return value if _read_into(memory, address, into) else value.zero_()",
        ),
        ("only the first window is looked at", "stop in windows:", "stop in windows[:1]:"),
        ("every window begins at the first byte", "address + start, there)", "address, there)"),
        (
            "what cannot be looked at is unchanged",
            "if not _read_into(memory, address + start, there) or",
            "if _read_into(memory, address + start, there) and",
        ),
    ),
)

SECRETS = (
    *planted(
        "evaluator/seeds.py",
        UNIT + "test_seeds.py",
        (
            "all seeds are the same",
            'text = "|".join([root, *(str(name) for name in names)])',
            "text = root",
        ),
        ("the root is no secret", "secrets.token_hex(16)", '"0" * 32'),
    ),
    *planted(
        "evaluator/evaluation.py",
        PIPELINE,
        (
            "the input seed is in the call",
            '"args": drawn.tree,',
            '"args": drawn.tree, "seed": str(drawn.seed),',
            "test_a_contestant_is_told_no_secret",
        ),
    ),
    *planted(
        "evaluator/evaluation.py",
        UNIT + "test_streams.py",
        (
            "nobody gets the queues for several streams",
            "streams = self.several_streams",
            "streams = False",
        ),
    ),
    *planted(
        "evaluator/testimony.py",
        UNIT + "test_testimony.py",
        ("more fields than the schema has", 'extra="forbid"', 'extra="ignore"'),
        ("other types than the schema has", "strict=True", "strict=False"),
    ),
    *planted(
        "evaluator/testimony.py",
        SIDES,
        ("an address is believed without bounds", "Field(ge=0, lt=1 << 57)", "Field()"),
    ),
)

BUGS = (*COMPARISON, *JUDGE, *MEMORY, *SECRETS)
