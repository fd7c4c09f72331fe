"""A preset in words and formulas, made from its settings, so that the two agree. No torch.

Equations are those of Dr. Kernel (arXiv 2602.05885), in the order of their application.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.rl.paper_vs_code import DISAGREEMENTS, ruling
from tilewright.rl.presets import Preset
from tilewright.rl.rewards.turn_reward import find_reward

_PAGE = """\
preset {p.name}

reward
{reward}

return
  G_t = sum over k >= t of gamma^(k-t) R_k, gamma = {p.returns.gamma:g}   (eq. 2)
  {unjudged}; unjudged is never a reward of 0

filters
{filters}

MRS
{mismatch}

PRS
{profiling}

advantage
{advantage}
  turns that MRS or PRS drops stay in the means and in earlier returns

loss
{loss}
  {kl}, no entropy term

sampling
  {s.prompts} prompts x {s.rollouts} rollouts x {s.turns} turns, always all turns
  temperature {s.temperature:g}, top_k {s.top_k}, top_p {s.top_p:g}
  {s.context_tokens} tokens of context, {s.reply_tokens} of a reply; whole oldest turns are \
dropped, a turn without room is absent

optimizer
  AdamW, {rate}, weight decay {o.weight_decay:g}, gradient norm at most \
{o.max_grad_norm:g}
  {o.steps} steps, one a rollout batch

cold start
  rate {p.sft.learning_rate:g}, batch {p.sft.batch}, {p.sft.epochs} epochs, loss on the \
assistant's turns

evaluation
  {e.samples} samples x {e.turns} turns, temperature {e.temperature:g}, top_p {e.top_p:g}, \
{e.context_tokens} tokens of context
  timed calls: {trials}; long searches remember {e.memory}, w = {e.w}

paper against code
{disagreements}
"""
_UNJUDGED = {
    "earlier": "an unjudged turn and the turns before it have no return",
    "trajectory": "an unjudged turn leaves its whole trajectory without returns",
}
_KEPT = {
    "token": "a token is kept iff {m.low:g} <= rho <= {m.high:g}",
    "turn": "a turn is kept iff {m.low:g} <= w <= {m.high:g}, w = {mean} over its tokens   (eq. 6)",
    "trajectory": "a trajectory is kept iff {m.low:g} <= w <= {m.high:g}, w = {mean} over {over}"
    "   (eq. 6)",
}
_OVER = {
    "generated": "all generated tokens of all its turns",
    "learnable": "the tokens of its turns with a return that no filter drops",
}
_MEANS = {"geometric": "exp(mean log rho)", "arithmetic": "mean rho"}
_CHANCES = {
    "soft": "p = clip((PR - {c.cutoff:g}) / {c.softness:g}, 0, 1)   (eq. 9)",
    "hard": "p = 1 if PR >= {c.cutoff:g} else 0   (app. D)",
}
_ADVANTAGES = {
    "trloo": "A_i = G_i - mean of the other G_j of the same prompt and turn   (eq. 5)",
    "grpo": "A_i = (G_i - mean of all G_j of the same prompt and turn){spread}   (eq. 3)",
    "rloo": "A_i = G_i - mean of the other G_j of the same prompt, G that of the trajectory",
    "reinforce": "A_i = G_i",
}
_ALONE = {
    "return": "A = G, a baseline of 0",
    "zero": "A = 0",
    "none": "no advantage, it leaves the loss",
}
_SCHEDULES = {
    "constant": "constant",
    "linear": "falling linearly to 0 after the last step",
    "cosine": "falling as a cosine to 0 after the last step",
}
_COUNTED = {
    "kept": "what is kept",
    "all": "all that was generated",
    "planned": "what was planned, whatever is kept",
}


def explain(preset: Preset) -> str:
    """Return a page on a preset: its formulas in the order of their application."""
    parts = {
        "reward": find_reward(preset.reward.function).formula(preset.reward).splitlines(),
        "filters": _filters(preset),
        "mismatch": _mismatch(preset),
        "profiling": _profiling(preset),
        "advantage": _advantage(preset),
        "loss": _loss(preset),
        "disagreements": (ruling(preset, item) for item in DISAGREEMENTS),
    }
    return _PAGE.format(
        p=preset,
        s=preset.sampling,
        o=preset.optimizer,
        e=preset.evaluation,
        unjudged=_UNJUDGED[preset.returns.unjudged],
        rate=_rate(preset),
        kl=_kl(preset),
        trials=preset.evaluation.timing_trials or "as the timing plan says",
        **{name: "\n".join(f"  {line}" for line in lines) for name, lines in parts.items()},
    )


def _filters(preset: Preset) -> Iterator[str]:
    section = preset.filters
    if section.regress:
        yield "dropped: turns with R <= 0 after an earlier R > 0; they count as R = 0"
    if section.zero_variance:
        yield (
            f"dropped: prompts whose last rewards have std < {section.least_std:g}, or of which "
            f"fewer than {preset.sampling.rollouts // 2 + 1} were judged; not drawn anew"
        )
    if not section.regress and not section.zero_variance:
        yield "off"


def _mismatch(preset: Preset) -> Iterator[str]:
    section = preset.mismatch
    if section.level == "off":
        yield "off"
        return
    yield "rho = exp(log p of the trainer before the step - log p of the sampler)"
    yield _KEPT[section.level].format(
        m=section, mean=_MEANS[section.mean], over=_OVER[section.over]
    )
    if section.min_ratio is not None:
        yield f"a turn with any rho < {section.min_ratio:g} is dropped, whatever w is"
    yield "rho multiplies nothing"


def _profiling(preset: Preset) -> Iterator[str]:
    if preset.profiling.mode == "off":
        yield "off"
        return
    chance = _CHANCES[preset.profiling.mode].format(c=preset.profiling)
    yield f"a correct turn is kept iff u < p, {chance}"
    yield "u: 8 bytes of BLAKE2b of seed, group, rollout and turn, over 2^64"


def _advantage(preset: Preset) -> Iterator[str]:
    section = preset.advantage
    spread = f" / (std + {section.epsilon:g}), ddof = {section.ddof}" * section.divide_by_std
    yield _ADVANTAGES[section.estimator].format(spread=spread)
    if section.estimator != "reinforce":
        yield f"alone in its group: {_ALONE[section.alone]}"


def _rate(preset: Preset) -> str:
    section = preset.optimizer
    rate = f"rate {section.learning_rate:g}"
    if section.warmup_steps:
        rate = f"rate rising over {section.warmup_steps} steps to {section.learning_rate:g}, then"
    return f"{rate} {_SCHEDULES[section.schedule]}"


def _kl(preset: Preset) -> str:
    section = preset.loss
    if section.kl == 0:
        return "no KL term"
    return (
        f"l + {section.kl:g} {section.kl_estimator}, k3 = exp(d) - d - 1, "
        "d = log p of the initial model - log p now"
    )


def _loss(preset: Preset) -> Iterator[str]:
    section = preset.loss
    low, high = 1.0 - section.clip_low, 1.0 + section.clip_high
    yield "r = exp(log p now - log p before the step)"
    yield f"l = -min(r A, clip(r, {low:g}, {high:g}) A)"
    if section.dual_clip is not None:
        yield f"where A < 0: at most {section.dual_clip:g} |A|"
    counted = _COUNTED[section.denominator]
    yield f"{section.aggregation} / {section.scale:g}, the mean over {counted}"
