"""The page of published search systems: what each strategy reproduces, and what is ours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright import registry
from tilewright.loop.strategies.base import Options

Standing = Literal["reproduced", "corrected", "ours", "not applicable"]
TITLE = "# Search systems\n\n"
OPENING = """Each table lists the parts of a published system and what our strategy makes of them.

- **reproduced**: as published, or as in the published code.
- **corrected**: the published rule has a known fault. An option restores it where one is named.
- **ours**: nothing is published, so the value or the rule is our choice. The option changes it.
- **not applicable**: the part has no place in our loop, or another part of tilewright does it.

"""


@dataclass(frozen=True)
class Part:
    """A part of a published system."""

    name: str
    standing: Standing
    note: str
    options: tuple[str, ...] = ()
    """Options of the strategy that set it."""


@dataclass(frozen=True)
class System:
    """A published system and the strategy that follows it."""

    strategy: str
    source: str
    code: str
    """How equality with the original is shown."""
    parts: tuple[Part, ...]


NO_CODE = "No code was published. Tests hold the published rules and the fixtures that follow."
SYSTEMS = (
    System(
        "polca",
        "POLCA, arXiv 2603.14769",
        "112 recorded searches of the published code (OpenTrace, branch `experimental`, commit "
        "acb9719) are repeated with no difference; curves on SynthKernel-1 agree.",
        (
            Part("loop: measure, propose, net, measure, store", "reproduced", "one generator"),
            Part("priorities by mean or upper confidence bound", "reproduced", "", ("priority",)),
            Part(
                "priority by time",
                "corrected",
                "the code takes the oldest, its comment says the latest: both are there",
                ("priority",),
            ),
            Part(
                "priorities are computed when a program is stored",
                "reproduced",
                "`corrected` computes them at each choice",
                ("rules",),
            ),
            Part(
                "a stored program is a copy, and the best one stays in the heap",
                "reproduced",
                "`corrected` has one entry for each program",
                ("rules",),
            ),
            Part(
                "a full memory drops the end of the heap's array",
                "reproduced",
                "`corrected` drops the worst",
                ("memory", "rules"),
            ),
            Part(
                "short-term memory",
                "reproduced",
                "merged every few iterations",
                ("merge_every", "short_memory"),
            ),
            Part("epsilon-net, farthest first", "reproduced", "", ("epsilon",)),
            Part(
                "embedding model",
                "ours",
                "a deterministic embedding, or vectors of a server (`model.embeddings`)",
            ),
            Part(
                "epsilon for another embedding",
                "ours",
                "`calibrate` takes a quantile of the first distances",
                ("calibration", "quantile"),
            ),
            Part("number of programs and proposals", "reproduced", "", ("candidates", "proposals")),
            Part("the best program is explored", "reproduced", "", ("use_best",)),
            Part("explored programs are validated", "reproduced", "", ("validate_explored",)),
            Part("summariser of up to five unseen candidates", "reproduced", "", ("summary",)),
            Part(
                "range of scores",
                "ours",
                "speed-ups have no top, and the bound needs one",
                ("score_max", "kappa"),
            ),
            Part("Pareto choice among the top 20", "not applicable", "there is one score"),
            Part(
                "first program",
                "ours",
                "the original is given one; here the model writes the first ones",
            ),
        ),
    ),
    System(
        "openevolve",
        "OpenEvolve 0.4.1, github.com/codelion/openevolve",
        "600 scripted inserts are repeated in four settings with no difference; curves on "
        "SynthKernel-1 agree.",
        (
            Part(
                "islands, population, elite list",
                "reproduced",
                "",
                ("islands", "population", "elites"),
            ),
            Part("draw of parents", "reproduced", "", ("explore", "exploit")),
            Part("grid of features, one program per cell", "reproduced", "", ("features", "bins")),
            Part("diversity against references", "reproduced", "", ("references",)),
            Part(
                "migration on a ring",
                "reproduced",
                "",
                ("migration_interval", "migration_share"),
            ),
            Part(
                "inspirations: best, top, neighbours, random",
                "reproduced",
                "",
                ("elite_share", "diverse"),
            ),
            Part("programs in a prompt", "reproduced", "", ("top", "diverse")),
            Part(
                "island of a child",
                "reproduced",
                "that of its request, as in 0.4.1, or that of its parent",
                ("lineage",),
            ),
            Part(
                "sets and random ids that depend on the hash seed",
                "corrected",
                "orders are fixed, so equal seeds give one log (openevolve#97, #267)",
            ),
            Part(
                "answers as patches",
                "ours",
                "0.4.1 asks for patches by default, and we ask for whole files",
                ("answer",),
            ),
            Part("novelty by a model", "not applicable", "equal code is judged once"),
            Part("cascade of evaluators", "not applicable", "the judge has stages of its own"),
        ),
    ),
    System(
        "kernel_smith",
        "Kernel-Smith, arXiv 2603.28342",
        f"{NO_CODE} Its archive is that of `openevolve`.",
        (
            Part("islands with grids", "reproduced", "", ("islands", "population", "bins")),
            Part(
                "dimensions of the grid",
                "corrected",
                "complexity and diversity; the published score as a dimension makes results worse "
                "(openevolve#152)",
                ("features",),
            ),
            Part("whole programs", "reproduced", "form `evolve`"),
            Part(
                "score: linear in the speed-up",
                "ours",
                "the coefficients are unpublished",
                ("not_built", "built", "slope"),
            ),
            Part("metrics and hardware in the prompt", "reproduced", "feedback and device sheet"),
            Part("100 timed runs", "not applicable", "the judge decides how many it needs"),
            Part(
                "verification that the kernel runs",
                "not applicable",
                "launch suppression of the judge",
            ),
            Part("training of steps", "not applicable", "`data export --format steps` writes rows"),
        ),
    ),
    System(
        "kernel_evolve",
        "KernelEvolve, arXiv 2512.23236",
        NO_CODE,
        (
            Part("fitness: compiled baseline by candidate, or 0", "reproduced", ""),
            Part(
                "selectors: greedy, UCT, evolution",
                "reproduced",
                "the default is ours",
                ("selection",),
            ),
            Part("UCT constant", "ours", "sqrt 2", ("exploration",)),
            Part("mean or largest fitness of a subtree", "reproduced", "", ("value",)),
            Part("requests in flight count as visits", "ours", "they would crowd on one node"),
            Part("tournament of `evolution`", "ours", "", ("tournament",)),
            Part("one operator for all steps", "reproduced", "the context differs"),
            Part(
                "independent drafts at the start", "reproduced", "their number is ours", ("drafts",)
            ),
            Part("repair of failed programs", "ours", "at most three in a row"),
            Part("requests per node", "ours", "", ("fan_out", "max_children", "others")),
            Part(
                "end: budget, no progress, or a fitness",
                "reproduced",
                "the numbers are ours",
                ("stall", "threshold"),
            ),
            Part("list of tried changes", "reproduced", "found by comparing programs"),
            Part(
                "context agents and deep search",
                "corrected",
                "one step without agents: a knowledge base, index first (`loop.knowledge`)",
            ),
            Part("database with transactions", "not applicable", "the event log holds all"),
            Part("warm start", "reproduced", "`--from RUN`; candidates are judged again"),
            Part("dispatcher with fallback", "reproduced", "`loop.dispatcher`"),
            Part(
                "profilers as tools", "not applicable", "the report holds what the judge measured"
            ),
        ),
    ),
    System(
        "cuda_l1",
        "CUDA-L1, arXiv 2507.14111",
        NO_CODE,
        (
            Part(
                "exemplars with scores, worst first",
                "reproduced",
                "form `exemplars`",
                ("n_exemplars",),
            ),
            Part("distinct buckets, softmax of their means", "reproduced", "", ("selection",)),
            Part("temperature", "ours", "the deviation of the means, at least 0.1", ("tau",)),
            Part("width of a bucket", "ours", "0.1 in log2 of the score", ("delta",)),
            Part("only correct programs enter", "reproduced", ""),
            Part(
                "score: median of trials",
                "reproduced",
                "the judge measures in blocks of its own",
            ),
            Part("rounding towards 1", "not applicable", "intervals take its place"),
            Part(
                "second device above a threefold speed-up", "not applicable", "races take its place"
            ),
            Part("judge model against cheating", "not applicable", "the judge refuses cheats"),
        ),
    ),
    System(
        "mtmc",
        "QiMeng-Kernel (MTMC), arXiv 2511.20100",
        f"{NO_CODE} The normalisation is tested against the fixture of TWOSOME's code.",
        (
            Part("a decider and a coder", "reproduced", "`models.decider`, `models.coder`"),
            Part("four types of actions on regions of the code", "reproduced", ""),
            Part("legality of actions", "ours", "by syntax and data flow of the language"),
            Part("log-probabilities of sentences", "reproduced", "", ("normalisation",)),
            Part("most likely or drawn action", "reproduced", "", ("decision",)),
            Part("stop action and most steps", "ours", "", ("max_steps",)),
            Part("last steps in the prompt", "reproduced", "their number is ours", ("history",)),
            Part("after a failure the program stays", "ours", ""),
            Part("new sequence while requests are left", "ours", "", ("restart",)),
            Part("ladder of rewards", "reproduced", "in the rows of actions"),
            Part("training of the decider", "not applicable", "the recipe `mtmc` of training"),
        ),
    ),
    System(
        "autotriton",
        "AutoTriton, arXiv 2507.05687",
        NO_CODE,
        (
            Part("independent samples", "reproduced", "", ("stop_after",)),
            Part("reward: Triton times correct", "reproduced", "speed does not count"),
            Part(
                "rule for Triton",
                "corrected",
                "`strict` refuses kernels that only decorate; `paper_minimal` is published",
                ("rule",),
            ),
            Part("supervised and reinforcement training", "not applicable", "recipes of training"),
        ),
    ),
)


def page(table: Callable[[tuple[str, ...], Sequence[tuple[str, ...]]], str]) -> str:
    """Return the page; an option that a strategy does not have is an error."""
    parts = [TITLE, OPENING]
    for system in SYSTEMS:
        known = _options(system.strategy)
        rows = []
        for part in system.parts:
            for name in part.options:
                if name not in known:
                    raise KeyError(f"{system.strategy} has no option {name!r}")
            options = ", ".join(f"`{name}`" for name in part.options)
            rows.append((part.name, part.standing, options, part.note))
        parts.append(f"## `{system.strategy}`\n\n{system.source}. {system.code}\n\n")
        parts.append(table(("part", "standing", "options", "note"), rows))
    return "".join(parts).rstrip() + "\n"


def _options(strategy: str) -> set[str]:
    module = sys.modules[registry.load("strategies", strategy).__module__]
    found = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Options) and item is not Options
    ]
    return {name for item in found for name in item.model_fields}
