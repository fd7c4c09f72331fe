"""The tree of settings: its sections, with their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tilewright.records import Limits, Protocol, Rules, TimingPlan

LOCAL = "local"
RAY = "ray"


LoggerName = Literal["tensorboard", "trackio", "wandb", "mlflow"]
"""A logger of another tool, which shows the curves of a run."""


def _listed(value: object) -> object:
    """Return a list of names that was written with commas; `none` is no name."""
    if not isinstance(value, str):
        return value
    return [name for part in value.split(",") if (name := part.strip()) not in ("", "none")]


Loggers = Annotated[tuple[LoggerName, ...], BeforeValidator(_listed)]
"""Several loggers, also written with commas between them."""


class Section(BaseModel):
    """Base of every section. It is immutable and refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EvalSection(Section):
    """How the evaluator judges one candidate."""

    protocol: Protocol = "strict"
    """Rules of measurement: `strict` (ours) or `official` (of the problem's benchmark)."""
    device: str = "cpu"
    """Device that runs candidates: `cpu`, `cuda` or `cuda:N`."""
    devices: tuple[str, ...] = ()
    """Devices of one model that share the work of a run. Empty: `eval.device` alone."""
    baselines: tuple[str, ...] = Field(default=("eager",), min_length=1)
    """Baselines of a speed-up: `eager`, `compile`, `max-autotune`, or the path of a candidate."""
    require_isolation: tuple[str, ...] = ()
    """Isolation layers that must be active. If one is not, the candidate is unjudged."""
    reuse: bool = False
    """Return a stored report for an identical request instead of a new evaluation."""
    rules: Rules = Rules()
    timing: TimingPlan = TimingPlan()
    limits: Limits = Limits()


class ModelSection(Section):
    """How replies are requested from a model server, or sampled from a local model."""

    base_url: str | None = None
    """URL of a server with OpenAI's chat protocol. `null`: the default of the `openai` package."""
    key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the API key. The key itself is never written to disk."""
    temperature: float | None = Field(default=1.0, ge=0)
    """Temperature at which tokens are sampled. `null`: the server's default."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Sample from the most likely tokens that together have this probability. `null`: the server's
    default."""
    seed: int | None = None
    """Seed of the sampler, if the server accepts one. Each reply gets its own, derived from it."""
    max_tokens: int = Field(default=16384, ge=1)
    """Most tokens of one reply, including its reasoning."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Most seconds of one request."""
    retries: int = Field(default=5, ge=0)
    """Most further attempts of a request that failed."""
    retry_delay_s: float = Field(default=1.0, ge=0)
    """Delay before the first retry of a request. It doubles with each retry."""
    concurrency: int = Field(default=16, ge=1)
    """Most requests at the same time."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Most requests in a minute. `null`: no limit."""
    usd_per_million_in: float = Field(default=0.0, ge=0)
    """Price of a million prompt tokens."""
    usd_per_million_out: float = Field(default=0.0, ge=0)
    """Price of a million reply tokens."""
    embeddings: str | None = None
    """Model of the same server that embeds candidates, for strategies that compare them. `null`: an
    embedding that is computed from the code."""
    device: str = "cpu"
    """Device of a local model (`local:PATH`): `cpu`, `cuda` or `cuda:N`."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Fields that are added to each request unchanged, for options of one server."""


class NamedModel(ModelSection):
    """A further model of a search, with its own server, prices and number of requests."""

    name: str
    """Name of the model, as for `--model`."""


class LoopSection(Section):
    """How a model writes candidates, turn after turn."""

    strategy: str = "sequential"
    """Search strategy: it decides which prompts to issue next. Several with commas between them are
    compared in one run."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of that strategy, for example `context: top_w` and `w: 4`. Of several strategies each
    has a mapping of its own under its name."""
    turns: int = Field(default=14, ge=1)
    """Turns of each trajectory."""
    samples: int = Field(default=1, ge=1)
    """Trajectories of each problem and strategy."""
    trajectory_judged: int | None = Field(default=None, ge=1)
    """Most different candidates of one trajectory that are judged."""
    trajectory_device_s: float | None = Field(default=None, gt=0)
    """Seconds of evaluations after which a trajectory issues no further request."""
    knowledge: str | None = None
    """Knowledge base whose modules prompts show: `bundled`, or a folder that is added to it.
    `null`: no documents."""
    documents: int = Field(default=3, ge=1)
    """Most documents in a prompt."""
    document_tokens: int = Field(default=2500, ge=100)
    """Most tokens of the documents in a prompt together."""
    warm_start: int = Field(default=3, ge=1)
    """Most candidates of each problem that a run takes from earlier ones (`--from`)."""
    keep_candidates: bool = True
    """Whether `optimize` stores its winners below `home`, for later runs with `--from home`."""
    race_candidates: int = Field(default=3, ge=0)
    """Most candidates that race before the best one is measured again: those whose intervals
    overlap with its own. 0 or 1: none. Three, since more seldom overlap."""
    race_trials: int = Field(default=12, ge=2)
    """Most trials of a race: each of three candidates gets about four."""
    final_trials: int = Field(default=0, ge=0)
    """Further trials of the best candidate of each trajectory, after its end and its race."""
    dispatcher: bool = True
    """Whether `optimize` also judges the best candidate with the reference on those sizes on which
    the candidate loses to it."""
    seed: int = 0
    """Seed of the strategy's random values. Sample N of a strategy gets `seed + N`."""
    order: Literal["arrival", "asked"] = "arrival"
    """Order in which the strategy gets results. `asked`: that of its requests, whatever ends first,
    so that equal settings and verdicts give one log."""
    max_concurrency: int = Field(default=4, ge=1)
    """Most turns at the same time."""
    reward: Literal["speed", "tilewright", "paper", "released_code"] = "speed"
    """Reward that the strategy maximises. Only `speed` has no cap, which suits search."""
    feedback: Literal["tilewright", "paper", "released_code"] = "tilewright"
    """Format in which the model receives a verdict."""
    feedback_tokens: int = Field(default=1200, ge=100)
    """Most tokens of that text."""
    language: str | None = None
    """Language of the candidates. `null`: the model chooses."""
    log: Loggers = ()
    """Loggers that show the curves of `bench` and `optimize`, with commas between them. They upload
    nothing, unless their own settings say so."""
    eval_timeout_s: float = Field(default=120.0, gt=0)
    """Most seconds of one evaluation. A lower value replaces `eval.limits.total_timeout_s`."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Most tokens of a run, in prompts and replies together."""
    max_turns: int | None = Field(default=None, ge=0)
    """Most turns of a run, over all trajectories."""
    max_drafts: int | None = Field(default=None, ge=0)
    """Most candidates of a run that are written and not judged at once."""
    max_judged: int | None = Field(default=None, ge=0)
    """Most different candidates of a run that are judged."""
    max_trials: int | None = Field(default=None, ge=0)
    """Most evaluations of a run."""
    max_device_s: float | None = Field(default=None, ge=0)
    """Most seconds of evaluations in a run."""
    max_wall_s: float | None = Field(default=None, gt=0)
    """Most seconds of one invocation. A resumed run repeats the turns that were not finished."""
    max_usd: float | None = Field(default=None, ge=0)
    """Most US dollars of a run, by the prices of `model`."""


class RewardSection(Section):
    """How replies are scored for an external trainer."""

    name: Literal["tilewright", "paper", "released_code", "speed"] = "tilewright"
    """Formula of the reward. All formulas use the same verdict."""
    checks: bool = True
    """`false`: a rejected reply earns the reward of a correct one, also in `train rl`. This is for
    ablations: the evaluator still runs every check, in the same sandbox."""
    on_unjudged: Literal["raise", "zero", "none"] = "raise"
    """Reward of an unjudged reply, after all retries: an error, 0 or `None`. TRL reads `None` as
    "this reward does not apply"; verl does not accept it."""
    retries: int = Field(default=2, ge=0)
    """Most further evaluations of a reply whose evaluation was unjudged."""
    retry_delay_s: float = Field(default=5.0, ge=0)
    """Delay before the first retry. It doubles with each retry."""
    concurrency: int = Field(default=4, ge=1)
    """Most evaluations at the same time."""


class ServeSection(Section):
    """Limits of `tilewright serve` for its clients, and how long it keeps tasks."""

    protocol: Literal["strict", "kernelgym"] = "strict"
    """Scoring rules of the KernelGYM endpoints: ours (`strict`) or KernelGYM's (`kernelgym`)."""
    log: Path | None = None
    """Log file of requests and tasks, one JSON object per line. `null`: stderr."""
    max_queue: int = Field(default=10_000, ge=1)
    """Most queued tasks. Beyond it the server answers a submission with 429."""
    max_queue_per_client: int = Field(default=5_000, ge=1)
    """Most queued tasks of one client with a token."""
    requests_per_s: float = Field(default=200.0, gt=0)
    """Sustained rate of each client with a token, and of each address without a valid token."""
    burst: int = Field(default=2_000, ge=1)
    """Most requests at once after a pause."""
    body_bytes: int = Field(default=4 << 20, ge=1024)
    """Largest body of a request."""
    body_timeout_s: float = Field(default=30.0, gt=0)
    """Most seconds until a whole body has arrived."""
    header_timeout_s: float = Field(default=10.0, gt=0)
    """Most seconds until a whole request line and its headers have arrived."""
    connections: int = Field(default=1_000, ge=8)
    """Most open connections. Beyond it the server answers with 503."""
    shutdown_grace_s: float = Field(default=600.0, gt=0)
    """Most seconds that a stopping server waits for running evaluations."""
    retention_days: float | None = Field(default=30.0, gt=0)
    """Age in days at which finished tasks and their reports are deleted. `null`: never."""
    max_finished_tasks: int | None = Field(default=200_000, ge=1)
    """Most finished tasks that are kept, the latest ones. `null`: all."""


class Config(Section):
    """Every setting of tilewright."""

    home: Path = Path("~/.cache/tilewright")
    """Folder of builds, calibrations, device leases and stored reports."""
    runs: Path = Path("runs")
    """Folder in which run folders are made."""
    plugins: tuple[str, ...] | None = None
    """Packages whose plug-ins are loaded, in addition to ours. `null`: all installed ones."""
    executor: str = LOCAL
    """Where candidates are evaluated: `local`, a server (`http://x:TOKEN@host:port`) or a cluster.
    A Ray cluster is `ray` (started here), `ray:auto` or `ray:HOST:PORT`. With `?accelerator=NAME`
    after it, only devices of that kind are used. `census:FILE` answers from recorded verdicts."""
    host: Literal["auto", "always", "never"] = "auto"
    """Whether `local` evaluations use a warm host, which keeps supervisors up in the background.
    `auto` starts one only at a terminal, outside of CI and Slurm. `never` uses none."""
    eval: EvalSection = EvalSection()
    model: ModelSection = ModelSection()
    models: dict[str, NamedModel] = Field(default_factory=dict)
    """Further models, by the role that a strategy has for them: `coder` or `decider`. A role
    without one is played by the model of the run."""
    loop: LoopSection = LoopSection()
    reward: RewardSection = RewardSection()
    serve: ServeSection = ServeSection()

    def with_eval(self, **changes: object) -> Config:
        return self.model_copy(update={"eval": self.eval.model_copy(update=changes)})
