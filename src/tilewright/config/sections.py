"""The tree of settings: its sections, with their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tilewright.records import Limits, Protocol, Rules, TimingPlan

__all__ = [
    "Config",
    "EvalSection",
    "LoopSection",
    "ModelSection",
    "RewardSection",
    "Section",
    "ServeSection",
]

LOCAL = "local"
RAY = "ray"


class Section(BaseModel):
    """Base of every section: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EvalSection(Section):
    """How one candidate is judged."""

    protocol: Protocol = "strict"
    """`strict` (ours) or `official` (the published rules of the problem's benchmark)."""
    device: str = "cpu"
    """Where candidates run."""
    devices: tuple[str, ...] = ()
    """Devices of one model that share the work of a run; none: `eval.device` alone."""
    baselines: tuple[str, ...] = Field(default=("eager",), min_length=1)
    """What a speed-up is against: `eager`, `compile`, `max-autotune`, or a candidate's path."""
    require_layers: tuple[str, ...] = ()
    """Isolation layers without which no candidate is run."""
    reuse: bool = False
    """Answer identical work from the store instead of judging it again."""
    rules: Rules = Rules()
    timing: TimingPlan = TimingPlan()
    limits: Limits = Limits()


class ModelSection(Section):
    """How a model behind a server is asked, or one of this machine sampled."""

    base_url: str | None = None
    """Where a server speaks OpenAI's chat protocol; `null`: the default of the `openai` package."""
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that holds the key. The key itself is written nowhere."""
    temperature: float | None = Field(default=1.0, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    """Of the sampler, where a server takes one; each reply gets one of its own made of it."""
    max_tokens: int = Field(default=16384, ge=1)
    """Of one reply, what is thought aloud included."""
    timeout_s: float = Field(default=600.0, gt=0)
    retries: int = Field(default=5, ge=0)
    pause_s: float = Field(default=1.0, ge=0)
    """Before the first repetition of a request; doubled each time."""
    concurrency: int = Field(default=16, ge=1)
    """Requests that are under way at once."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    usd_per_million_in: float = Field(default=0.0, ge=0)
    """Price of a million tokens of prompts."""
    usd_per_million_out: float = Field(default=0.0, ge=0)
    device: str = "cpu"
    """Where a model of this machine (`local:PATH`) computes: `cpu`, `cuda` or `cuda:N`."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Added to each request as it is, for what one server alone knows."""


class LoopSection(Section):
    """How a model is asked again and again."""

    strategy: str = "sequential"
    """Decides what to ask next."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What that strategy alone knows, as `context: top_w` and `w: 4`."""
    turns: int = Field(default=14, ge=1)
    """Answers in each trajectory."""
    samples: int = Field(default=1, ge=1)
    """Trajectories for each problem."""
    in_flight: int = Field(default=4, ge=1)
    """Turns that are under way at once."""
    reward: Literal["speed", "tilewright", "paper", "released_code"] = "speed"
    """What the strategy maximises: `speed` has no cap, which suits search; the others do."""
    feedback: Literal["tilewright", "paper", "released_code"] = "tilewright"
    """What a model is told of a verdict."""
    feedback_tokens: int = Field(default=1200, ge=100)
    """How long that may be."""
    language: str | None = None
    """In which candidates are to be written; `null`: as the model likes."""
    turn_s: float = Field(default=120.0, gt=0)
    """What one evaluation may take; it lowers `eval.limits.total_s`."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Tokens that a run may use, of prompts and replies together."""
    max_turns: int | None = Field(default=None, ge=0)
    """Turns that a run may make, over all trajectories."""
    max_device_s: float | None = Field(default=None, ge=0)
    """Seconds of evaluations."""
    max_wall_s: float | None = Field(default=None, gt=0)
    """Seconds of a sitting; what is under way then is asked again when the run is resumed."""
    max_usd: float | None = Field(default=None, ge=0)


class RewardSection(Section):
    """How replies are scored for a trainer that is not ours."""

    name: Literal["tilewright", "paper", "released_code", "speed"] = "tilewright"
    """Which reward; all are views of one verdict."""
    checks: bool = True
    """`false`: what was rejected for a finding is paid like what is correct. For ablations; the
    candidate is judged all the same, behind the same wall."""
    on_unjudged: Literal["raise", "zero", "none"] = "raise"
    """What a reply earns that could not be judged, after all attempts: an error, 0, or `None`,
    which TRL reads as "this reward does not apply" and verl does not know."""
    retries: int = Field(default=2, ge=0)
    """How often a reply is judged once more that could not be judged."""
    pause_s: float = Field(default=5.0, ge=0)
    """Before the first repetition; doubled each time."""
    concurrency: int = Field(default=4, ge=1)
    """Replies that are judged at once."""


class ServeSection(Section):
    """What `tilewright serve` allows its clients, and how long it remembers."""

    protocol: Literal["strict", "kernelgym"] = "strict"
    """By whose rules KernelGYM's door answers: ours, or KernelGYM's over an `official` report."""
    log: Path | None = None
    """Where requests and tasks are logged, a JSON object a line; `null`: to stderr."""
    most_waiting: int = Field(default=10_000, ge=1)
    """Tasks that may wait; above that a submission is answered with 429."""
    most_waiting_each: int = Field(default=5_000, ge=1)
    """Tasks of one client with a token that may wait."""
    requests_per_s: float = Field(default=200.0, gt=0)
    """Of each client with a token, in the long run; also of each address without a valid one."""
    burst: int = Field(default=2_000, ge=1)
    """Requests that a client may make at once after a pause."""
    body_bytes: int = Field(default=4 << 20, ge=1024)
    """How large a request's body may be."""
    body_s: float = Field(default=30.0, gt=0)
    """How long it may take to arrive."""
    headers_s: float = Field(default=10.0, gt=0)
    """How long a connection may be open without a whole request line and its headers."""
    connections: int = Field(default=1_000, ge=8)
    """Open at once; what comes above is answered with 503."""
    drain_s: float = Field(default=600.0, gt=0)
    """How long a server that is to end waits for what it is judging."""
    keep_days: float | None = Field(default=30.0, gt=0)
    """Ended tasks that are older are forgotten, with their reports; `null`: none."""
    keep_tasks: int | None = Field(default=200_000, ge=1)
    """How many ended tasks are kept, the latest; `null`: all."""


class Config(Section):
    """Every setting of tilewright."""

    home: Path = Path("~/.cache/tilewright")
    """Where builds, calibrations, leases and stored results are kept."""
    runs: Path = Path("runs")
    """Where run folders are written."""
    plugins: tuple[str, ...] | None = None
    """Packages whose plug-ins may be loaded beside our own; `null`: all that are installed."""
    executor: str = LOCAL
    """Where candidates are judged: `local`, the address of a `tilewright serve` as
    `http://x:TOKEN@host:port`, or a Ray cluster: `ray` (one started here), `ray:auto`,
    `ray:HOST:PORT`, each with `?accelerator=NAME` where it has several kinds."""
    eval: EvalSection = EvalSection()
    model: ModelSection = ModelSection()
    loop: LoopSection = LoopSection()
    reward: RewardSection = RewardSection()
    serve: ServeSection = ServeSection()
