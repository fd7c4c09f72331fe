"""Where the paper and its released code disagree, and what each preset does about it.

Dr. Kernel, arXiv 2602.05885 (version 2), against hkust-nlp/KernelGYM at commit 3a84417. Where a
preset decides by settings, these are named and read, never written down twice. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from tilewright.rl.presets import PAPER, RELEASED_CODE, Preset

Stance = Literal["as in the paper", "as in the code", "its own", "corrected", "not applicable"]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A topic, and what paper and code say about it."""

    topic: str
    paper: str
    code: str
    settings: tuple[str, ...] = ()
    """Dotted paths of a preset that decide it; `paper` and `released_code` reproduce their side."""
    fixed: Stance | None = None
    """The choice of every preset, if no setting decides or all presets agree."""
    ours: str = ""
    """Our choice, if it is neither the paper's nor the code's."""

    @property
    def number(self) -> int:
        """Its place in the table, from 1."""
        return DISAGREEMENTS.index(self) + 1


DISAGREEMENTS: tuple[Disagreement, ...] = (
    Disagreement(
        "scale of the reward",
        "weights 1, 1, 1",
        "weights 0.5, 0.5, 0.5",
        ("reward.correct", "reward.speed", "reward.coverage"),
    ),
    Disagreement(
        "what coverage is a share of",
        "device time",
        "device and host time, with rows of the framework's operators",
        fixed="corrected",
        ours="the smaller of the own launches' share of device time and of the time that is saved "
        "when they are suppressed",
    ),
    Disagreement(
        "modes in which decoys are looked for",
        "train and eval",
        "inference_mode and enable_grad",
        fixed="corrected",
        ours="the calls that are judged and timed, and one without own launches beside them",
    ),
    Disagreement(
        "when something is a decoy",
        "no own kernel runs in either mode (both readings are open)",
        "not launched in both modes, or by a rule over the profile",
        fixed="corrected",
        ours="none launched in the timed calls, or the output still right without the launches",
    ),
    Disagreement(
        "level of mismatch rejection",
        "the sequence, veto included: a turn or a whole trajectory, it does not say",
        "geometric over the trajectory, veto by turn",
        ("mismatch.level", "mismatch.mean", "mismatch.min_ratio"),
        fixed="as in the code",
        ours="the paper's sequence is read as the trajectory",
    ),
    Disagreement(
        "GRPO with a group of one",
        "mean over the valid, so the advantage is 0",
        "baseline 0, so the advantage is the return",
        ("advantage.grpo_singleton",),
    ),
    Disagreement(
        "learning rate and batch of the cold start",
        "1e-6 and 256",
        "2e-5 and 64, which the published checkpoint confirms",
        ("sft.learning_rate", "sft.batch"),
    ),
    Disagreement("steps", "300", "the published checkpoint is of step 230", ("optimizer.steps",)),
    Disagreement(
        "memory of test-time scaling",
        "the w turns of the highest reward",
        "the w turns in a row with the largest sum",
        ("evaluation.memory", "evaluation.w"),
    ),
    Disagreement(
        "context, in tokens",
        "32768",
        "18432 in training, 28672 in evaluation",
        ("sampling.context_tokens", "evaluation.context_tokens"),
    ),
    Disagreement(
        "timed calls in evaluation",
        "not said",
        "10, against 100 in training",
        ("evaluation.timing_trials",),
    ),
    Disagreement(
        "work of a worker that dies",
        "given to another",
        "lost",
        fixed="corrected",
        ours="made once more, then unjudged; an unjudged turn is masked and never a zero",
    ),
    Disagreement(
        "filters by reward",
        "none",
        "prompts without variance are drawn anew, relapses are masked",
        ("filters.zero_variance", "filters.regress"),
        ours="what the filters drop is not drawn anew",
    ),
    Disagreement(
        "what MRS stands for",
        "mismatch rejection sampling",
        "once multi-turn rejection sampling",
        fixed="not applicable",
        ours="the paper's name",
    ),
    Disagreement(
        "the headline in summaries of the paper",
        "14B: 25.6 % fast@1.2 on level 2; 31.6 with scaling, last turn; 47.8 best turn",
        "20.0 % called the 14B's, and called higher than 26.7 and 28.6; it is the 8B's",
        fixed="not applicable",
        ours="nothing is computed from it",
    ),
    Disagreement(
        "tokens in the mean of mismatch rejection",
        "all of the sequence",
        "those still in the loss after the filter of relapses and the mask of errors",
        ("mismatch.over",),
    ),
)


def settings_of(preset: Preset, item: Disagreement) -> dict[str, object]:
    """Return the settings of a preset that decide an item, by dotted path."""
    return {path: attrgetter(path)(preset) for path in item.settings}


def stance(preset: Preset, item: Disagreement) -> Stance:
    """Tell whether a preset follows the paper or the code."""
    chosen = settings_of(preset, item)
    if chosen == settings_of(RELEASED_CODE, item):
        return item.fixed or "as in the code"
    follows = item.fixed is None and chosen == settings_of(PAPER, item)
    return "as in the paper" if follows else "its own"


def ruling(preset: Preset, item: Disagreement) -> str:
    """Say in one line what a preset does about an item."""
    chosen = ", ".join(f"{path} = {value}" for path, value in settings_of(preset, item).items())
    parts = "; ".join(part for part in (chosen, item.ours) if part)
    return f"{item.number}. {item.topic}: {stance(preset, item)}: {parts}"
