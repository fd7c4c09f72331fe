"""Three estimators, each as one frozen tree of settings: `paper`, `released_code`, `tilewright`.

The first two are Dr. Kernel (arXiv 2602.05885): its text, and its released code. No torch.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from tilewright.config import Section
from tilewright.errors import ConfigError, suggestion

Estimator = Literal["trloo", "grpo", "rloo", "reinforce"]
"""From returns to advantages. `trloo` and `grpo` compare turns of one prompt and one place,
`rloo` whole trajectories of one prompt, `reinforce` nothing."""
Singleton = Literal["return", "zero", "none"]
"""The advantage of a turn that is alone in its group. `return` is its return, as with a baseline of
0. A turn with `none` leaves the loss."""
Unjudged = Literal["earlier", "trajectory"]
"""Turns that an unjudged turn removes: the `earlier` turns, whose returns would need it, or the
whole `trajectory`."""
Level = Literal["off", "token", "turn", "trajectory"]
"""The unit that mismatch rejection keeps or drops."""
Mean = Literal["geometric", "arithmetic"]
"""How the ratios of a turn or a trajectory become one number."""
Over = Literal["generated", "learnable"]
"""The tokens of a mean ratio: all `generated` ones, or those of turns that have a return and that
no filter drops."""
ProfilingMode = Literal["soft", "hard", "off"]
"""`soft` keeps by chance, rising with the coverage; `hard` cuts."""
Aggregation = Literal["seq-mean-token-sum", "seq-mean-token-mean", "token-mean"]
"""From tokens to one loss; a sequence is a row, and a row is one turn."""
Denominator = Literal["kept", "all", "planned"]
"""The number of items that a mean divides by: those `kept` in the loss, `all` generated ones, or
the `planned` ones. Only `planned` depends on no reward."""
Schedule = Literal["constant", "linear", "cosine"]
"""The learning rate after the warm-up."""
Spread = Literal[0, 1]
"""Degrees of freedom that a standard deviation gives up."""


class TurnRewardSection(Section):
    """R = C (correct + speed min(s, max_speedup) + coverage PR), or another function."""

    function: str = "weighted"
    """Name of the reward: `weighted`, `rule_x_execution`, or a plug-in of the kind `rewards`. The
    settings below are those of `weighted` unless they say otherwise."""
    correct: float = Field(default=1.0, ge=0)
    """Reward of a correct candidate before its speed-up counts. An incorrect one gets 0."""
    speed: float = Field(default=1.0, ge=0)
    """Weight of the capped speed-up."""
    coverage: float = Field(default=1.0, ge=0)
    """Weight of the profiling ratio (PR). 0: the reward ignores coverage."""
    max_speedup: float = Field(default=3.0, gt=0)
    """Cap of s."""
    speedup_estimate: Literal["estimate", "low"] = "estimate"
    """Value of s: the estimate of the speed-up, or the lower end of its interval."""
    triton_rule: Literal["none", "paper_minimal", "strict"] = "strict"
    """Under `rule_x_execution`: the rule that tells whether a program is Triton. `none` leaves the
    rule out of the reward."""


class SmoothingSection(Section):
    """Rewards relative to earlier ones of the same problem: clip((r - mu) / sigma, -clip, clip).

    mu and sigma are the mean and the standard deviation of the last rewards before the batch
    (CUDA-L1, arXiv 2507.14111, section on contrastive RL).
    """

    window: int = Field(default=0, ge=0)
    """Number of earlier rewards of a problem that mu and sigma are of. 0: rewards stay as they
    are. With fewer than two earlier ones, those of the batch take their place."""
    clip: float = Field(default=1.5, gt=0)
    """Largest absolute value of a smoothed reward."""


class ExemplarSection(Section):
    """Earlier correct programs of the same training that a prompt shows, slowest first.

    The draw of CUDA-L1 (arXiv 2507.14111, section on contrastive exemplars) is `buckets`.
    """

    selection: Literal["none", "buckets", "random", "best"] = "none"
    """`buckets` draws programs of different speed, and prefers fast ones; `random` draws any
    programs; `best` takes the fastest; `none` shows none."""
    count: int = Field(default=2, ge=1)
    """Programs that a prompt shows, if there are so many."""
    delta: float = Field(default=0.1, gt=0)
    """Width of a bucket in log2 of the speed-up."""
    tau: float | None = Field(default=None, gt=0)
    """Temperature of the draw of buckets, in units of the speed-up. `null`: the standard deviation
    of the means of the buckets, at least 0.1."""


class ReturnSection(Section):
    """From rewards of turns to returns."""

    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount of the reward of each later turn (Dr. Kernel, equation 2)."""
    unjudged: Unjudged = "earlier"
    """Turns that have no return because another turn is unjudged."""


class AdvantageSection(Section):
    """From returns to advantages."""

    estimator: Estimator = "trloo"
    """Baseline that is subtracted from returns: `trloo` and `grpo` compare turns of one prompt and
    place, `rloo` whole trajectories of one prompt, `reinforce` nothing."""
    singleton_advantage: Singleton = "return"
    """Advantage of a turn that is alone in its group, under `trloo` and `rloo`."""
    grpo_singleton: Singleton = "zero"
    """The same under `grpo`."""
    divide_by_std: bool = False
    """Under `grpo`: divide by the standard deviation of the group."""
    ddof: Spread = 1
    """Degrees of freedom that the standard deviation gives up."""
    epsilon: float = Field(default=1e-6, gt=0)
    """Added to the standard deviation before the division."""

    @property
    def alone(self) -> Singleton:
        """The advantage of a turn that is alone in its group, under the chosen estimator."""
        return self.grpo_singleton if self.estimator == "grpo" else self.singleton_advantage


class MismatchSection(Section):
    """Mismatch rejection sampling."""

    level: Level = "trajectory"
    """Unit that is kept or dropped. `off` keeps all."""
    mean: Mean = "geometric"
    """How the ratios of a turn or a trajectory become one number."""
    over: Over = "generated"
    """Tokens of the mean: all `generated` ones, or only those of `learnable` turns, which have a
    return and which no filter drops."""
    low: float = Field(default=0.999, gt=0)
    """Lowest mean ratio that is kept."""
    high: float = Field(default=1.001, gt=0)
    """Highest mean ratio that is kept."""
    min_ratio: float | None = Field(default=1e-4, gt=0, le=1)
    """Lowest ratio of one token. A turn with a lower one is rejected."""


class ProfilingSection(Section):
    """Profiling-based rejection sampling."""

    mode: ProfilingMode = "soft"
    """`soft` keeps by chance, rising with the coverage; `hard` cuts at `cutoff`; `off` keeps
    all."""
    cutoff: float = Field(default=0.3, ge=0, le=1)
    """Coverage up to which `soft` keeps nothing, and from which on `hard` keeps all."""
    softness: float = Field(default=0.1, gt=0)
    """Range of coverage above `cutoff` over which the chance of `soft` rises from 0 to 1."""


class LossSection(Section):
    """The clipped surrogate, its normalisation, and a KL term. There is no entropy term."""

    clip_low: float = Field(default=0.2, ge=0, le=1)
    """The ratio of the policies is clipped at 1 minus this."""
    clip_high: float = Field(default=0.28, ge=0)
    """The ratio of the policies is clipped at 1 plus this."""
    dual_clip: float | None = Field(default=3.0, gt=1)
    """Cap of the loss of a token with a negative advantage, in units of that advantage. `null`:
    none."""
    aggregation: Aggregation = "seq-mean-token-sum"
    """From tokens to one loss. A sequence is one turn."""
    denominator: Denominator = "kept"
    """Items that a mean divides by: those `kept` in the loss, `all` generated ones, or the
    `planned` number."""
    scale: float = Field(default=1000.0, gt=0)
    """Divides the loss."""
    kl: float = Field(default=0.0, ge=0)
    """Weight of the divergence from the initial model in the loss. 0: none."""
    kl_estimator: Literal["k3"] = "k3"
    """Estimator of that divergence: `k3` is exp(d) - d - 1, with d the log-probability of the
    initial model less that of the model."""

    @model_validator(mode="after")
    def _weights_are_equal(self) -> LossSection:
        # TRL has one weight of the KL term for all rows that pass through the model together.
        if self.kl > 0 and self.aggregation == "seq-mean-token-mean":
            raise ValueError("a KL term needs the aggregation seq-mean-token-sum or token-mean")
        return self


class FilterSection(Section):
    """Turns and prompts that are dropped by their reward, before advantages."""

    zero_variance: bool = False
    """Drop prompts whose last rewards hardly differ, or are mostly unjudged."""
    least_std: float = Field(default=1e-3, ge=0)
    """Standard deviation below which the last rewards of a prompt hardly differ."""
    regress: bool = False
    """Drop turns with zero reward after a rewarded turn of their trajectory."""


class SamplingSection(Section):
    """How a rollout batch is sampled. Each trajectory has all turns, whatever their rewards."""

    prompts: int = Field(default=16, ge=1)
    """Prompts of one rollout batch, which is one optimizer step."""
    rollouts: int = Field(default=16, ge=1)
    """Trajectories of each prompt."""
    turns: int = Field(default=3, ge=1)
    """Turns of each trajectory."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature at which tokens are sampled."""
    top_k: int = Field(default=0, ge=0)
    """Sample from the k most likely tokens. 0: all tokens."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample from the most likely tokens that together have this probability."""
    context_tokens: int = Field(default=32768, ge=1)
    """Most tokens of prompt and reply together."""
    reply_tokens: int = Field(default=8192, ge=1)
    """Most tokens of one reply."""


class ChoiceSection(Section):
    """Learning to choose among sentences, as MTMC's decider does (`tilewright train choices`).

    The policy is that of TWOSOME (Tan et al. 2024, arXiv 2401.14151), whose values are the defaults
    where MTMC (arXiv 2511.20100) is silent. Episodes have `sampling.turns` steps at most.
    """

    normalisation: Literal["sum", "token", "word"] = "token"
    """How token log-probabilities make the score of a sentence: their sum, or divided by the number
    of tokens or of words."""
    history: int = Field(default=3, ge=0)
    """Earlier changes that a prompt shows, with what they led to."""
    cumulative: bool = True
    """Whether the rungs of the reward add up. False: the highest one counts alone."""
    decay: float = Field(default=0.05, ge=0)
    """Reward that each further step of an episode costs."""
    decay_form: Literal["additive", "multiplicative"] = "additive"
    """`additive`: r - decay t. `multiplicative`: r max(1 - decay t, 0)."""
    coder_success: float = Field(default=1.0, ge=0, le=1)
    """Probability that the scripted coder makes the exact edit. Else it writes a broken program."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Lambda of the generalised advantage estimation."""
    entropy: float = Field(default=0.01, ge=0)
    """Weight of the entropy of the policy in the loss."""
    value: float = Field(default=0.5, ge=0)
    """Weight of the loss of the critic."""
    critic_hidden: int = Field(default=1024, ge=1)
    """Width of the critic, which has two layers."""
    critic_learning_rate: float = Field(default=3e-5, gt=0)
    """Learning rate of the critic."""
    critic_only_batches: int = Field(default=0, ge=0)
    """Batches at the beginning that train the critic alone."""
    epochs: int = Field(default=1, ge=1)
    """Passes over a batch."""
    minibatches: int = Field(default=4, ge=1)
    """Optimizer steps of a pass."""


class OptimizerSection(Section):
    """AdamW with one step per batch."""

    learning_rate: float = Field(default=1e-6, gt=0)
    """Learning rate of AdamW after the warm-up."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps over which the learning rate rises in equal parts. The first steps of AdamW move each
    weight by the whole rate, whatever the gradient is."""
    schedule: Schedule = "constant"
    """Learning rate after the warm-up: `constant`, or falling to almost 0 at the last step,
    `linear` or as a `cosine`."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled weight decay of AdamW."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Norm of the gradient at which it is clipped."""
    steps: int = Field(default=300, ge=1)
    """Optimizer steps of a run."""
    skip_without_advantage: bool = False
    """Leave the weights as they are after a batch without any advantage. False: momentum and weight
    decay move them all the same."""


class SftSection(Section):
    """The cold start before learning from rewards."""

    learning_rate: float = Field(default=1e-6, gt=0)
    """Learning rate of supervised fine-tuning."""
    batch: int = Field(default=256, ge=1)
    """Sequences of one optimizer step."""
    epochs: int = Field(default=4, ge=1)
    """Passes over the data."""


class EvaluationSection(Section):
    """How a trained model is scored on held-out problems."""

    samples: int = Field(default=8, ge=1)
    """Trajectories of each held-out problem."""
    turns: int = Field(default=3, ge=1)
    """Turns of each trajectory."""
    temperature: float = Field(default=1.0, ge=0)
    """Temperature at which tokens are sampled. 0: the most likely token."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Sample from the most likely tokens that together have this probability."""
    context_tokens: int = Field(default=32768, ge=1)
    """Most tokens of prompt and reply together."""
    timing_trials: int | None = Field(default=None, ge=1)
    """Timed calls of each case. `null`: the evaluator's timing plan."""
    memory: Literal["top_w", "best_window"] = "top_w"
    """Context window: the earlier turns that a prompt repeats."""
    w: int = Field(default=4, ge=1)
    """Number of turns in that window."""


class Preset(Section):
    """Everything that an estimator leaves open."""

    name: str
    """Name of the preset, as in `estimator`."""
    reward: TurnRewardSection = TurnRewardSection()
    smoothing: SmoothingSection = SmoothingSection()
    exemplars: ExemplarSection = ExemplarSection()
    returns: ReturnSection = ReturnSection()
    advantage: AdvantageSection = AdvantageSection()
    mismatch: MismatchSection = MismatchSection()
    profiling: ProfilingSection = ProfilingSection()
    loss: LossSection = LossSection()
    filters: FilterSection = FilterSection()
    sampling: SamplingSection = SamplingSection()
    choices: ChoiceSection = ChoiceSection()
    optimizer: OptimizerSection = OptimizerSection()
    sft: SftSection = SftSection()
    evaluation: EvaluationSection = EvaluationSection()


# Equation 6 is over "the sequence", which with several turns can be read as a turn or as all of
# them. All presets read it as the released code does: the mean over all generated tokens of the
# trajectory, the veto by turn. `level: turn` is the other reading.
PAPER = Preset(name="paper")

RELEASED_CODE = Preset(
    name="released_code",
    reward=TurnRewardSection(correct=0.5, speed=0.5, coverage=0.5),
    returns=ReturnSection(unjudged="trajectory"),
    advantage=AdvantageSection(grpo_singleton="return"),
    mismatch=MismatchSection(over="learnable"),
    filters=FilterSection(zero_variance=True, regress=True),
    sampling=SamplingSection(context_tokens=18432),
    optimizer=OptimizerSection(steps=230),
    sft=SftSection(learning_rate=2e-5, batch=64),
    evaluation=EvaluationSection(context_tokens=28672, timing_trials=10, memory="best_window"),
)

# The reward is `tilewright.scoring.rewards.tilewright`: noise rarely raises the lower end.
# The reward ignores coverage; PRS still drops correct answers whose own kernels do little. A turn
# that is alone in its group has no advantage: its return is never negative, so it would always be
# reinforced. The denominator is the planned number, which no reward changes, so the gradient is
# unbiased except for MRS and PRS. Supervised learning follows the code behind the published model.
TILEWRIGHT = Preset(
    name="tilewright",
    reward=TurnRewardSection(coverage=0.0, speedup_estimate="low"),
    advantage=AdvantageSection(singleton_advantage="none", grpo_singleton="none"),
    loss=LossSection(denominator="planned"),
    sft=SftSection(learning_rate=2e-5, batch=64),
)

PRESETS: dict[str, Preset] = {each.name: each for each in (PAPER, RELEASED_CODE, TILEWRIGHT)}


def preset(name: str) -> Preset:
    """Return the preset of a name."""
    if name not in PRESETS:
        hint = suggestion(name, PRESETS) or f"there are {', '.join(PRESETS)}"
        raise ConfigError(f"no preset is called {name!r}; {hint}")
    return PRESETS[name]
