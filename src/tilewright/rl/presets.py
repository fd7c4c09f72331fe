"""Three estimators, each as one frozen tree of settings: `paper`, `released_code`, `tilewright`.

The first two are Dr. Kernel (arXiv 2602.05885) as it is written and as it was released; where those
disagree is in `disagreements.py`. Ours differs where a difference has a reason, which stands at its
definition below. No torch is loaded here.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tilewright.config import Section
from tilewright.errors import ConfigError
from tilewright.rl.options import (
    Aggregation,
    Denominator,
    Estimator,
    Level,
    Mean,
    ProfilingMode,
    Singleton,
    Spread,
    Unjudged,
)

__all__ = [
    "PAPER",
    "PRESETS",
    "RELEASED_CODE",
    "TILEWRIGHT",
    "AdvantageSection",
    "EvaluationSection",
    "FilterSection",
    "LossSection",
    "MismatchSection",
    "OptimizerSection",
    "Preset",
    "ProfilingSection",
    "ReturnSection",
    "RewardSection",
    "SamplingSection",
    "SftSection",
    "preset",
    "singleton_of",
]


class RewardSection(Section):
    """R = C (correct + speed min(s, most_speedup) + coverage PR)."""

    correct: float = Field(default=1.0, ge=0)
    speed: float = Field(default=1.0, ge=0)
    coverage: float = Field(default=1.0, ge=0)
    """Weight of the profiling ratio; 0 is without PR."""
    most_speedup: float = Field(default=3.0, gt=0)
    speed_from: Literal["estimate", "low"] = "estimate"
    """What s is: the speed-up, or the lower end of its interval."""


class ReturnSection(Section):
    """From rewards of turns to returns."""

    gamma: float = Field(default=1.0, ge=0, le=1)
    unjudged: Unjudged = "earlier"
    """Which turns have no return because another was not judged."""


class AdvantageSection(Section):
    """From returns to advantages."""

    estimator: Estimator = "trloo"
    singleton: Singleton = "return"
    """Who is alone in a group, under `trloo` and `rloo`."""
    grpo_singleton: Singleton = "zero"
    """The same under `grpo`."""
    divide_by_std: bool = False
    """Under `grpo`: divide by the standard deviation of the group."""
    ddof: Spread = 1
    epsilon: float = Field(default=1e-6, gt=0)


class MismatchSection(Section):
    """Mismatch rejection sampling."""

    level: Level = "trajectory"
    mean: Mean = "geometric"
    low: float = Field(default=0.999, gt=0)
    high: float = Field(default=1.001, gt=0)
    veto: float | None = Field(default=1e-4, gt=0, le=1)
    """Least ratio of one token; it rejects the turn."""


class ProfilingSection(Section):
    """Profiling-based rejection sampling."""

    mode: ProfilingMode = "soft"
    cutoff: float = Field(default=0.3, ge=0, le=1)
    softness: float = Field(default=0.1, gt=0)


class LossSection(Section):
    """The clipped surrogate, and over what it is a mean. No KL term, no entropy term."""

    clip_low: float = Field(default=0.2, ge=0, le=1)
    clip_high: float = Field(default=0.28, ge=0)
    dual_clip: float | None = Field(default=3.0, gt=1)
    aggregation: Aggregation = "seq-mean-token-sum"
    denominator: Denominator = "kept"
    scale: float = Field(default=1000.0, gt=0)
    """Divides the loss."""


class FilterSection(Section):
    """What is dropped, by its reward, before anything is compared."""

    zero_variance: bool = False
    """Prompts whose last rewards hardly differ, or were hardly judged."""
    least_std: float = Field(default=1e-3, ge=0)
    regress: bool = False
    """Turns that earn nothing after an earlier one of their trajectory did."""


class SamplingSection(Section):
    """How a rollout batch is drawn: always all turns, whatever they earn."""

    prompts: int = Field(default=16, ge=1)
    """In one optimizer step, which is one rollout batch."""
    rollouts: int = Field(default=16, ge=1)
    """Trajectories of each prompt."""
    turns: int = Field(default=3, ge=1)
    temperature: float = Field(default=1.0, gt=0)
    top_k: int = Field(default=0, ge=0)
    """0: all tokens."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    context_tokens: int = Field(default=32768, ge=1)
    """Prompt and reply together."""
    reply_tokens: int = Field(default=8192, ge=1)
    """Of one turn."""


class OptimizerSection(Section):
    """AdamW with a constant rate, one step a batch."""

    learning_rate: float = Field(default=1e-6, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    steps: int = Field(default=300, ge=1)


class SftSection(Section):
    """The cold start before learning from rewards."""

    learning_rate: float = Field(default=1e-6, gt=0)
    batch: int = Field(default=256, ge=1)
    epochs: int = Field(default=4, ge=1)


class EvaluationSection(Section):
    """How a trained model is scored."""

    samples: int = Field(default=8, ge=1)
    turns: int = Field(default=3, ge=1)
    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=0.95, gt=0, le=1)
    context_tokens: int = Field(default=32768, ge=1)
    timing_trials: int | None = Field(default=None, ge=1)
    """`null`: as the timing plan of the evaluator says."""
    memory: Literal["top_w", "best_window"] = "top_w"
    """Which earlier turns a long search shows again; a context of the loop."""
    w: int = Field(default=4, ge=1)
    """How many of them."""


class Preset(Section):
    """Everything that an estimator leaves open."""

    name: str
    reward: RewardSection = RewardSection()
    returns: ReturnSection = ReturnSection()
    advantage: AdvantageSection = AdvantageSection()
    mismatch: MismatchSection = MismatchSection()
    profiling: ProfilingSection = ProfilingSection()
    loss: LossSection = LossSection()
    filters: FilterSection = FilterSection()
    sampling: SamplingSection = SamplingSection()
    optimizer: OptimizerSection = OptimizerSection()
    sft: SftSection = SftSection()
    evaluation: EvaluationSection = EvaluationSection()


# Equation 6 is over "the sequence", which with several turns can be read as a turn or as all of
# them. All presets read it as the released code does: the mean over all generated tokens of the
# trajectory, the veto by turn. `level: turn` is the other reading.
PAPER = Preset(name="paper")

RELEASED_CODE = Preset(
    name="released_code",
    reward=RewardSection(correct=0.5, speed=0.5, coverage=0.5),
    returns=ReturnSection(unjudged="trajectory"),
    advantage=AdvantageSection(grpo_singleton="return"),
    filters=FilterSection(zero_variance=True, regress=True),
    sampling=SamplingSection(context_tokens=18432),
    optimizer=OptimizerSection(steps=230),
    sft=SftSection(learning_rate=2e-5, batch=64),
    evaluation=EvaluationSection(context_tokens=28672, timing_trials=10, memory="best_window"),
)

# The reward is `tilewright.scoring.rewards.tilewright`: the lower end of an interval is never luck.
# Coverage is not paid for, PRS still drops lazy successes. A turn that is alone teaches nothing:
# its own return, never negative, would always be reinforced. The denominator is what was planned,
# which no reward moves, so that the gradient is unbiased but for MRS and PRS. Supervised learning
# follows the code, with which the published checkpoint was made.
TILEWRIGHT = Preset(
    name="tilewright",
    reward=RewardSection(coverage=0.0, speed_from="low"),
    advantage=AdvantageSection(singleton="none", grpo_singleton="none"),
    loss=LossSection(denominator="planned"),
    sft=SftSection(learning_rate=2e-5, batch=64),
)

PRESETS: dict[str, Preset] = {each.name: each for each in (PAPER, RELEASED_CODE, TILEWRIGHT)}


def preset(name: str) -> Preset:
    """Return the preset of a name.

    Raises:
        ConfigError: there is none.
    """
    if name not in PRESETS:
        raise ConfigError(f"no preset is called {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]


def singleton_of(section: AdvantageSection) -> Singleton:
    """Return what who is alone in a group gets under the estimator that is chosen."""
    return section.grpo_singleton if section.estimator == "grpo" else section.singleton
