"""MTMC (QiMeng-Kernel, arXiv 2511.20100): a small model chooses each edit, a coder makes it.

The decider learns with PPO on trees of programs whose verdicts are known. At the scale small a
script makes the edits, and fails at a stated rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.loop.random_values import chooser
from tilewright.rl.choices.action_tree import ActionTree, read_trees, write_trees
from tilewright.rl.choices.choice_episodes import begun, state_messages
from tilewright.rl.choices.family_trees import family_trees
from tilewright.rl.recipes.recipe import Recipe, RecipeData, RecipeStage, RecipeValue
from tilewright.rl.recipes.small_scale import CONVERSATIONS, WHY, small_sft, write_rows

TREES, HELD_OUT_TREES = "trees.jsonl", "held_out_trees.jsonl"
CHOICES_PER_STATE = 4
"""Sentences that the warm start shows on each program, at the scale `small`."""
TWOSOME = "default of TWOSOME, Tan et al. 2024"
FIGURE = "figure of the environment"
PPO = "section on the training of the policy"


def _trees(data: RecipeData) -> dict[str, Any]:
    """Write the trees of the training problems and of the held-out ones; return both settings."""
    groups = {"data.trees": (TREES, data.group), "data.held_out_trees": (HELD_OUT_TREES, "")}
    if data.held_out:
        groups["data.held_out_trees"] = HELD_OUT_TREES, data.held_out
    found = {}
    for setting, (name, group) in groups.items():
        if not group:
            continue
        target = data.path / name
        if not target.exists():
            write_trees(target, family_trees(group, data.store(group), data.extent))
        found[setting] = str(target)
    return found


def _sentences(data: RecipeData) -> dict[str, Any]:
    target = data.path / CONVERSATIONS
    if not target.exists():
        trees = read_trees(data.path / TREES) if _trees(data) else []
        write_rows(target, (row for tree in trees for row in _rows(tree)))
    return {"data.conversations": [str(target)]}


def _rows(tree: ActionTree) -> Iterator[dict[str, Any]]:
    """Yield conversations in which each program gets some of its legal sentences at random."""
    start = begun(tree)
    for node in tree.nodes:
        if not node.is_correct:
            continue
        draw = chooser(0, "sentences", tree.problem, node.id)
        position = type(start)(tree, node)
        messages = [
            {"role": item.role, "content": item.text, "weight": 0}
            for item in state_messages(position, 0)
        ]
        count = min(CHOICES_PER_STATE, len(node.sentences))
        for sentence in draw.sample(node.sentences, count):
            yield {"messages": [*messages, {"role": "assistant", "content": sentence, "weight": 1}]}


SFT = RecipeStage(
    "sft",
    "sft",
    "A new model learns the sentences, each as likely as the others; a trained model knows them.",
    (
        RecipeValue("overrides.sft.epochs", 1, "ours", "the paper begins with a given model", 2),
        RecipeValue("overrides.sft.learning_rate", 1e-5, "ours", "not part of the paper", 0.004),
        RecipeValue("overrides.sft.batch", 64, "ours", "not part of the paper", 16),
        RecipeValue("data.max_tokens", 4096, "ours", "not published", 512),
        *small_sft(),
    ),
    _sentences,
)

PPO_STAGE = RecipeStage(
    "ppo",
    "choices",
    "PPO with a critic on trees of known verdicts; a step is a choice among legal edits.",
    (
        RecipeValue("overrides.sampling.turns", 8, "ours", "not published"),
        RecipeValue("overrides.sampling.prompts", 4, "ours", f"environments, {TWOSOME}", 4),
        RecipeValue("overrides.sampling.rollouts", 4, "ours", "128 decisions a batch", 24),
        RecipeValue("overrides.choices.normalisation", "token", "paper", TWOSOME),
        RecipeValue("overrides.choices.history", 3, "ours", "the paper: the last few changes", 0),
        RecipeValue("overrides.choices.cumulative", True, "ours", f"{FIGURE}: a ladder"),
        RecipeValue("overrides.choices.decay", 0.05, "ours", "the form is not published"),
        RecipeValue("overrides.choices.coder_success", None, "ours", "a scripted coder", 0.9),
        RecipeValue("overrides.returns.gamma", 0.99, "ours", TWOSOME),
        RecipeValue("overrides.choices.gae_lambda", 0.95, "ours", TWOSOME),
        RecipeValue("overrides.loss.clip_low", 0.2, "ours", TWOSOME),
        RecipeValue("overrides.loss.clip_high", 0.2, "ours", TWOSOME),
        RecipeValue("overrides.loss.kl", 0.01, "ours", f"{PPO}: a KL term without a weight"),
        RecipeValue("overrides.choices.entropy", 0.01, "ours", TWOSOME),
        RecipeValue("overrides.choices.value", 0.5, "ours", TWOSOME),
        RecipeValue("overrides.choices.critic_learning_rate", 3e-5, "ours", TWOSOME, 0.003),
        RecipeValue("overrides.choices.critic_hidden", 1024, "ours", TWOSOME, 128),
        RecipeValue("overrides.choices.epochs", 1, "ours", TWOSOME, 2),
        RecipeValue("overrides.choices.minibatches", 32, "ours", TWOSOME, 4),
        RecipeValue("overrides.optimizer.learning_rate", 1e-6, "ours", TWOSOME, 0.001),
        RecipeValue("overrides.optimizer.max_grad_norm", 0.5, "ours", TWOSOME),
        RecipeValue("overrides.optimizer.weight_decay", 0.0, "ours", TWOSOME),
        RecipeValue("overrides.optimizer.steps", 400, "ours", "50,000 decisions", 40),
        RecipeValue("machine.train_batch_size", None, "ours", WHY, 32),
        RecipeValue("machine.threads", None, "ours", "small batches gain nothing from more", 1),
        RecipeValue("checkpoints.every", None, "ours", "a kill costs so many steps", 5),
    ),
    _trees,
)

RECIPE = Recipe(
    name="mtmc",
    title="MTMC (QiMeng-Kernel)",
    source="arXiv 2511.20100",
    summary="A small model learns to choose the next edit of a program, and a coder makes it. "
    "Learning is look-ups in trees of programs that were judged before.",
    formulas=(
        "score(a) = sum of token log p of sentence a / its tokens; pi = softmax over legal a "
        "  (TWOSOME, arXiv 2401.14151)",
        "r_t = -1 not compiled, else 0.1 + (-0.5 wrong, 0.5 correct, 1.5 correct and faster), "
        "- lambda t   (figure of the environment)",
        "A_t = sum (gamma lambda)^k delta_{t+k}, delta_t = r_t + gamma V(s_{t+1}) - V(s_t) "
        "  (Schulman et al. 2016, equation 16)",
        "l = -min(r A, clip(r) A) - c_H H(pi) + beta k3 + c_V (V - G)^2 / 2   "
        "(Schulman et al. 2017, equation 9)",
    ),
    stages=(SFT, PPO_STAGE),
    data="action trees of judged programs, conversations for a warm start, and a model that knows "
    "the sentences",
)
