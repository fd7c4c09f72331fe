"""A preset in words and formulas, made of its settings, so that the two cannot differ. No torch."""

from __future__ import annotations

from tilewright.rl.paper_vs_code import DISAGREEMENTS, ruling
from tilewright.rl.presets import (
    AdvantageSection,
    EvaluationSection,
    FilterSection,
    LossSection,
    MismatchSection,
    OptimizerSection,
    Preset,
    ProfilingSection,
    ReturnSection,
    RewardSection,
    SamplingSection,
    SftSection,
    singleton_of,
)

__all__ = ["explain"]

_ALONE = {
    "return": "A = G, a baseline of 0",
    "zero": "A = 0",
    "none": "no advantage, it leaves the loss",
}
_UNJUDGED = {
    "earlier": "an unjudged turn and the turns before it have no return",
    "trajectory": "an unjudged turn leaves its whole trajectory without returns",
}
_COUNTED = {
    "kept": "what is kept",
    "all": "all that was generated",
    "planned": "what was planned, whatever is kept",
}


def explain(preset: Preset) -> str:
    """Return a page on a preset: its formulas in the order in which they are applied.

    Equations are those of arXiv 2602.05885.
    """
    parts = {
        "reward": _reward(preset.reward),
        "return": _returns(preset.returns),
        "filters": _filters(preset.filters, preset.sampling),
        "MRS": _mismatch(preset.mismatch),
        "PRS": _profiling(preset.profiling),
        "advantage": _advantage(preset.advantage),
        "loss": _loss(preset.loss),
        "sampling": _sampling(preset.sampling),
        "optimizer": _optimizer(preset.optimizer),
        "cold start": _sft(preset.sft),
        "evaluation": _evaluation(preset.evaluation),
        "paper against code": [ruling(preset, item) for item in DISAGREEMENTS],
    }
    lines = [f"preset {preset.name}"]
    for head, body in parts.items():
        lines += ["", head, *(f"  {line}" for line in body)]
    return "\n".join(lines) + "\n"


def _reward(section: RewardSection) -> list[str]:
    speed = (
        "the speed-up" if section.speedup_estimate == "estimate" else "the low end of the speed-up"
    )
    return [
        f"R = C ({section.correct:g} + {section.speed:g} min(s, {section.max_speedup:g}) "
        f"+ {section.coverage:g} PR)   (eq. 1, 7, 8)",
        f"C: correct and no decoy; s: {speed}; PR: coverage; a term without a number is 0",
    ]


def _returns(section: ReturnSection) -> list[str]:
    return [
        f"G_t = sum over k >= t of gamma^(k-t) R_k, gamma = {section.gamma:g}   (eq. 2)",
        f"{_UNJUDGED[section.unjudged]}; unjudged is never a reward of 0",
    ]


def _filters(section: FilterSection, sampling: SamplingSection) -> list[str]:
    lines = []
    if section.regress:
        lines.append("dropped: turns with R <= 0 after an earlier R > 0; they count as R = 0")
    if section.zero_variance:
        lines.append(
            f"dropped: prompts whose last rewards have std < {section.least_std:g}, or of which "
            f"fewer than {sampling.rollouts // 2 + 1} were judged; not drawn anew"
        )
    return lines or ["off"]


def _mismatch(section: MismatchSection) -> list[str]:
    if section.level == "off":
        return ["off"]
    bounds = f"{section.low:g} <= w <= {section.high:g}"
    ratio = "rho = exp(log p of the trainer before the step - log p of the sampler)"
    mean = "exp(mean log rho)" if section.mean == "geometric" else "mean rho"
    over = {
        "token": f"a token is kept iff {section.low:g} <= rho <= {section.high:g}",
        "turn": f"a turn is kept iff {bounds}, w = {mean} over its tokens   (eq. 6)",
        "trajectory": f"a trajectory is kept iff {bounds}, w = {mean} over all generated tokens "
        "of all its turns   (eq. 6)",
    }
    lines = [ratio, over[section.level]]
    if section.min_ratio is not None:
        lines.append(f"a turn with any rho < {section.min_ratio:g} is dropped, whatever w is")
    return [*lines, "rho multiplies nothing"]


def _profiling(section: ProfilingSection) -> list[str]:
    if section.mode == "off":
        return ["off"]
    chance = {
        "soft": f"p = clip((PR - {section.cutoff:g}) / {section.softness:g}, 0, 1)   (eq. 9)",
        "hard": f"p = 1 if PR >= {section.cutoff:g} else 0   (app. D)",
    }
    return [
        f"a correct turn that is no decoy is kept iff u < p, {chance[section.mode]}",
        "u: 8 bytes of BLAKE2b of seed, group, rollout and turn, over 2^64",
    ]


def _advantage(section: AdvantageSection) -> list[str]:
    spread = f" / (std + {section.epsilon:g}), ddof = {section.ddof}" * section.divide_by_std
    formula = {
        "trloo": "A_i = G_i - mean of the other G_j of the same prompt and turn   (eq. 5)",
        "grpo": f"A_i = (G_i - mean of all G_j of the same prompt and turn){spread}   (eq. 3)",
        "rloo": "A_i = G_i - mean of the other G_j of the same prompt, G that of the trajectory",
        "reinforce": "A_i = G_i",
    }
    lines = [formula[section.estimator]]
    if section.estimator != "reinforce":
        lines.append(f"alone in its group: {_ALONE[singleton_of(section)]}")
    return [*lines, "turns that MRS or PRS drops stay in the means and in earlier returns"]


def _loss(section: LossSection) -> list[str]:
    low, high = 1.0 - section.clip_low, 1.0 + section.clip_high
    lines = [
        "r = exp(log p now - log p before the step)",
        f"l = -min(r A, clip(r, {low:g}, {high:g}) A)",
    ]
    if section.dual_clip is not None:
        lines.append(f"where A < 0: at most {section.dual_clip:g} |A|")
    return [
        *lines,
        f"{section.aggregation} / {section.scale:g}, the mean over {_COUNTED[section.denominator]}",
        "no KL term, no entropy term",
    ]


def _sampling(section: SamplingSection) -> list[str]:
    return [
        f"{section.prompts} prompts x {section.rollouts} rollouts x {section.turns} turns, always "
        "all turns",
        f"temperature {section.temperature:g}, top_k {section.top_k}, top_p {section.top_p:g}",
        f"{section.context_tokens} tokens of context, {section.reply_tokens} of a reply; whole "
        "oldest turns are dropped, a turn without room is absent",
    ]


def _optimizer(section: OptimizerSection) -> list[str]:
    return [
        f"AdamW, rate {section.learning_rate:g} constant, weight decay {section.weight_decay:g}, "
        f"gradient norm at most {section.max_grad_norm:g}",
        f"{section.steps} steps, one a rollout batch",
    ]


def _sft(section: SftSection) -> list[str]:
    return [
        f"rate {section.learning_rate:g}, batch {section.batch}, {section.epochs} epochs, loss on "
        "the assistant's turns"
    ]


def _evaluation(section: EvaluationSection) -> list[str]:
    trials = "as the timing plan says" if section.timing_trials is None else section.timing_trials
    return [
        f"{section.samples} samples x {section.turns} turns, temperature {section.temperature:g}, "
        f"top_p {section.top_p:g}, {section.context_tokens} tokens of context",
        f"timed calls: {trials}; long searches remember {section.memory}, w = {section.w}",
    ]
