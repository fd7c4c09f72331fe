"""Kernel-Smith (arXiv 2603.28342): the steps of searches as training data, then GRPO on the best.

A search becomes edges from a program to the one that improves on it. Supervised learning takes the
edges that gained. Learning from rewards takes the parents of the best edges as stored prompts.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from tilewright.errors import RecordError
from tilewright.rl.data.cold_start import ColdStartMix
from tilewright.rl.data.logs import RunLog
from tilewright.rl.data.scripted_searches import write_searches
from tilewright.rl.data.step_contexts import ContextSteps, contexts_in, step_conversations
from tilewright.rl.prompt_contexts import write_contexts
from tilewright.rl.recipes.driven_searches import SEARCHED
from tilewright.rl.recipes.grpo_values import grpo_values
from tilewright.rl.recipes.recipe import Recipe, RecipeData, RecipeStage, RecipeValue, Variant
from tilewright.rl.recipes.small_scale import CONVERSATIONS, small_rl, small_sft, write_rows

SEARCHES, CONTEXTS = "searches", "contexts.jsonl"
COUNT, TURNS = 700, 4
"""Searches, and programs of each, at the scale `small`."""
STATEMENT = "Prompts of best steps train the model that drives the best searches."
MIX = ColdStartMix(fused=0.1, split=0.2, lazy=0.35, wrong=0.15, broken=0.1, hack=0.1)


def _searches(data: RecipeData) -> Path:
    folder = data.path / SEARCHES
    if not folder.exists():
        write_searches(
            folder,
            data.group,
            data.store(),
            MIX,
            count=COUNT,
            turns=TURNS,
            seed=0,
            extent=data.extent,
        )
    return folder


def _steps(data: RecipeData) -> dict[str, Any]:
    target = data.path / CONVERSATIONS
    if not target.exists():
        with closing(RunLog(_searches(data), _refused)) as log:
            write_rows(target, step_conversations(log))
    return {"data.conversations": [str(target)]}


def _contexts(data: RecipeData, steps: ContextSteps = "best") -> dict[str, Any]:
    target = data.path / (CONTEXTS if steps == "best" else f"{steps}-{CONTEXTS}")
    if not target.exists():
        with closing(RunLog(_searches(data), _refused)) as log:
            write_contexts(target, contexts_in(log, steps))
    return {"data.contexts": str(target)}


def _refused(problem: str) -> None:
    raise RecordError(f"{problem}; remove the folder {SEARCHES}, which is written again")


SFT = RecipeStage(
    "sft",
    "sft",
    "Supervised learning on the steps that are correct and, from a kernel, faster.",
    (
        RecipeValue("overrides.sft.epochs", 4, "ours", "not published", 5),
        RecipeValue("overrides.sft.learning_rate", 1e-5, "ours", "not published", 0.004),
        RecipeValue("overrides.sft.batch", 64, "ours", "not published", 16),
        RecipeValue("data.max_tokens", 65536, "paper", "64k tokens of context", 512),
        *small_sft(),
    ),
    _steps,
)

RL = RecipeStage(
    "rl",
    "rl",
    "GRPO on the stored parents of the best steps; the reward is the gain over the parent.",
    (
        RecipeValue("overrides.reward.function", "relative_to_parent", "paper", "section on RL"),
        RecipeValue("overrides.reward.speedup_estimate", "estimate", "paper", "no interval"),
        *grpo_values(0, "not published"),
        RecipeValue("overrides.sampling.rollouts", 8, "paper", "8 samples of a prompt"),
        RecipeValue("overrides.sampling.prompts", 32, "ours", "not published", 16),
        RecipeValue("overrides.optimizer.learning_rate", 1e-6, "ours", "not published", 0.001),
        RecipeValue("overrides.optimizer.steps", 63, "ours", "1 epoch of 2,017 prompts", 12),
        RecipeValue("overrides.evaluation.turns", None, "ours", "a search on a held-out one", 40),
        RecipeValue("overrides.evaluation.samples", None, "ours", "searches of a problem", 4),
        *small_rl(65536, "64k tokens of context"),
    ),
    _contexts,
    needs_contexts=True,
)

RECIPE = Recipe(
    name="kernel_smith",
    title="Kernel-Smith",
    source="arXiv 2603.28342",
    summary="A model learns to make one good step of a search, from stored contexts of the best "
    "steps. At the scale small a script makes the searches.",
    formulas=(
        "kept: correct, and s_child / s_parent > 1 if the parent is a kernel   (step data)",
        "r = s_child / s_parent if correct, else 0; s_parent of a reference = 1   (RL)",
        "A_i = (r_i - mean(r)) / (std(r) + epsilon) over the group   (GRPO, Shao et al. 2024)",
    ),
    stages=(SFT, RL),
    variants=(
        Variant(
            "all-steps",
            "rl",
            {},
            f"{STATEMENT} Those of all steps come second.",
            SEARCHED,
            -0.05,
            partial(_contexts, steps="all"),
        ),
        Variant(
            "first-steps",
            "rl",
            {},
            f"{STATEMENT} Those of first steps are not above those of all steps.",
            SEARCHED,
            -0.1,
            partial(_contexts, steps="first"),
        ),
    ),
    data="steps and contexts of searches (`tilewright data export --format step-sft` and "
    "`contexts`), their problems, and a model that can write Triton",
)
