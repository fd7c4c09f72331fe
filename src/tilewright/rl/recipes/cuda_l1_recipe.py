"""CUDA-L1 (arXiv 2507.14111): supervised learning, self-supervised learning, contrastive RL.

The second stage learns from its own correct programs alone. In the third, each prompt shows two
earlier programs of different speed, and rewards are relative to earlier rewards of the problem.
"""

from __future__ import annotations

from functools import partial

from tilewright.rl.data.cold_start import ColdStartMix
from tilewright.rl.recipes.grpo_values import ABSENT, grpo_values
from tilewright.rl.recipes.recipe import Recipe, RecipeStage, RecipeValue, Variant
from tilewright.rl.recipes.small_scale import cold_start_rows, small_rl, small_sft

STAGE_2, STAGE_3 = "section on self-supervised learning", "section on contrastive RL"

SFT = RecipeStage(
    "sft",
    "sft",
    "Supervised learning on correct programs of several language models.",
    (
        RecipeValue("overrides.sft.epochs", 3, "ours", "not published", 4),
        RecipeValue("overrides.sft.learning_rate", 1e-5, "ours", "not published", 0.004),
        RecipeValue("overrides.sft.batch", 64, "ours", "not published", 16),
        RecipeValue("data.max_tokens", 16384, "ours", "not published", 512),
        *small_sft(),
    ),
    # Later turns show earlier programs, as the prompts of the third stage do.
    partial(
        cold_start_rows,
        count=1200,
        turns=3,
        mix=ColdStartMix(fused=0.1, split=0.25, lazy=0.2, wrong=0.25, broken=0.2, hack=0.0),
    ),
)

SELF = RecipeStage(
    "self",
    "rl",
    "Learning from the correct ones of its own programs; the others have no effect.",
    (
        RecipeValue("overrides.reward.function", "weighted", "paper", STAGE_2),
        RecipeValue("overrides.reward.correct", 1.0, "paper", STAGE_2),
        RecipeValue("overrides.reward.speed", 0.0, "paper", "only correctness counts"),
        RecipeValue("overrides.reward.coverage", 0.0, "paper", ABSENT),
        RecipeValue("overrides.advantage.estimator", "reinforce", "paper", "no baseline"),
        RecipeValue("overrides.loss.aggregation", "seq-mean-token-mean", "ours", "not published"),
        RecipeValue("overrides.loss.denominator", "all", "paper", "the weights of all samples"),
        RecipeValue("overrides.loss.scale", 1.0, "ours", "no constant divides the mean"),
        RecipeValue("overrides.profiling.mode", "off", "paper", ABSENT),
        RecipeValue("overrides.mismatch.level", "off", "paper", ABSENT),
        RecipeValue("overrides.optimizer.skip_without_advantage", True, "paper", STAGE_2),
        RecipeValue("overrides.sampling.turns", 1, "paper", "one reply to a prompt"),
        RecipeValue("overrides.sampling.rollouts", 8, "ours", "not published", 16),
        RecipeValue("overrides.sampling.prompts", 64, "ours", "not published", 4),
        RecipeValue("overrides.optimizer.learning_rate", 1e-6, "ours", "not published", 0.0005),
        RecipeValue("overrides.optimizer.steps", 40, "ours", "until the success saturates", 6),
        *small_rl(),
    ),
)

CONTRASTIVE = RecipeStage(
    "contrastive",
    "rl",
    "GRPO on the speed-up; each prompt shows two earlier programs of different speed.",
    (
        RecipeValue("overrides.reward.function", "weighted", "paper", STAGE_3),
        RecipeValue("overrides.reward.correct", 0.0, "paper", "the speed-up alone counts"),
        RecipeValue("overrides.reward.speed", 1.0, "paper", "the speed-up alone counts"),
        RecipeValue("overrides.reward.coverage", 0.0, "paper", ABSENT),
        RecipeValue("overrides.reward.max_speedup", 1000.0, "ours", "smoothing clips the reward"),
        RecipeValue("overrides.reward.speedup_estimate", "estimate", "paper", "no interval"),
        RecipeValue("overrides.smoothing.window", 256, "ours", "not published"),
        RecipeValue("overrides.smoothing.clip", 1.5, "paper", STAGE_3),
        RecipeValue("overrides.exemplars.selection", "buckets", "paper", STAGE_3),
        RecipeValue("overrides.exemplars.count", 2, "paper", STAGE_3),
        RecipeValue("overrides.exemplars.delta", 0.1, "ours", "not published"),
        *(
            item
            for item in grpo_values(1, "not published; as TRL and verl do")
            if item.path not in ("overrides.loss.kl", "overrides.loss.aggregation")
        ),
        RecipeValue("overrides.loss.kl", 0.01, "ours", "a KL term without a published weight"),
        RecipeValue(
            "overrides.loss.aggregation", "token-mean", "ours", "the KL term needs equal weights"
        ),
        RecipeValue("overrides.sampling.rollouts", 8, "ours", "not published", 16),
        RecipeValue("overrides.sampling.prompts", 64, "ours", "not published", 4),
        RecipeValue("overrides.optimizer.learning_rate", 1e-6, "ours", "not published", 0.001),
        RecipeValue("overrides.optimizer.steps", 40, "ours", "not published", 12),
        *small_rl(),
    ),
)

RECIPE = Recipe(
    name="cuda_l1",
    title="CUDA-L1",
    source="arXiv 2507.14111",
    summary="A model compares earlier programs of different speed in its prompt, and writes a "
    "faster one. Only the speed-up pays.",
    formulas=(
        "r = 1 if correct, else 0; no baseline   (self-supervised learning)",
        "P(bucket i) ~ exp((s_i - mu) / tau), two different buckets   (exemplars)",
        "r' = clip((r - mu) / sigma, -1.5, 1.5)   (smoothing)",
        "A_i = (r'_i - mean(r')) / (std(r') + epsilon) over the group   (GRPO, Shao et al. 2024)",
    ),
    stages=(SFT, SELF, CONTRASTIVE),
    data="conversations with correct programs (`tilewright data export`), problems for RL, and a "
    "model that can write CUDA or Triton",
    variants=(
        Variant(
            "without-exemplars",
            "contrastive",
            {"overrides.exemplars.selection": "none"},
            "The mean speed-up is 2.41 with GRPO without exemplars, and 3.12 with them.",
            "fast@1.2",
            -0.1,
        ),
        Variant(
            "random-exemplars",
            "contrastive",
            {"overrides.exemplars.selection": "random"},
            "The mean speed-up is 2.14 with random exemplars, and 3.12 with those of buckets.",
            "fast@1.2",
            -0.1,
        ),
        Variant(
            "best-exemplars",
            "contrastive",
            {"overrides.exemplars.selection": "best"},
            "The paper does not compare buckets with the best programs alone.",
            "fast@1.2",
            0.0,
        ),
    ),
)
