"""Dr. Kernel (arXiv 2602.05885): TRLOO over several turns, with MRS, PR and PRS.

It has the preset `paper`. The other recipes are compared with it.
"""

from __future__ import annotations

from functools import partial

from tilewright.rl.data.cold_start import ColdStartMix
from tilewright.rl.recipes.recipe import Recipe, RecipeStage, RecipeValue, Variant
from tilewright.rl.recipes.small_scale import cold_start_rows, small_rl, small_sft

SFT = RecipeStage(
    "sft",
    "sft",
    "Supervised learning on conversations of several turns.",
    (
        RecipeValue("preset", "paper", "paper", "appendix on training"),
        RecipeValue("overrides.sft.epochs", 4, "paper", "appendix on training", 3),
        RecipeValue("overrides.sft.learning_rate", 1e-6, "paper", "appendix on training", 0.004),
        RecipeValue("overrides.sft.batch", 256, "paper", "appendix on training", 16),
        RecipeValue("data.max_tokens", 18432, "ours", "that of the released code", 512),
        *small_sft(),
    ),
    partial(cold_start_rows, count=1200, turns=3, mix=ColdStartMix(wrong=0.17, hack=0.15)),
)

RL = RecipeStage(
    "rl",
    "rl",
    "TRLOO on correctness, speed and coverage, with rejection of mismatch and of low coverage.",
    (
        RecipeValue("preset", "paper", "paper", "equations 1 to 9"),
        RecipeValue("overrides.sampling.prompts", 16, "paper", "appendix on training", 4),
        RecipeValue("overrides.sampling.rollouts", 16, "paper", "appendix on training"),
        RecipeValue("overrides.sampling.turns", 3, "paper", "section on RL"),
        RecipeValue("overrides.optimizer.learning_rate", 1e-6, "paper", "appendix", 0.001),
        RecipeValue("overrides.optimizer.steps", 300, "paper", "appendix on training", 12),
        *small_rl(),
    ),
)

RECIPE = Recipe(
    name="dr_kernel",
    title="Dr. Kernel",
    source="arXiv 2602.05885",
    summary="A model improves its own program over several turns. Its reward counts correctness, "
    "speed, and the share of the time that its own kernels take.",
    formulas=(
        "R = C (1 + min(s, 3) + PR)   (equations 1, 7 and 8)",
        "G_t = sum over k >= t of R_k   (equation 2)",
        "A_i = G_i - mean of the other G_j of the same prompt and turn   (equation 5)",
    ),
    stages=(SFT, RL),
    data="conversations of several turns (`tilewright data conversations`), problems for RL, and "
    "a model that can write Python",
    variants=(
        Variant(
            "without-checks",
            "rl",
            {"settings.reward.checks": False},
            "The hacking ratio rises without checks, and stays low with them (figure 8).",
            "rejected",
            0.3,
        ),
    ),
)
