"""Composing verl's configuration, and running its trainer."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

import hydra
import ray
from omegaconf import DictConfig, OmegaConf
from verl.trainer import main_ppo
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import validate_config

from tilewright.errors import ConfigError, InfrastructureError, TilewrightError, boundary
from tilewright.rl.engines.verl.registered_names import ACTOR
from tilewright.rl.engines.verl.registration import require_registered
from tilewright.rl.engines.verl.verl_settings import VerlSetting, flags_of
from tilewright.rl.training_session import Note, Reached

POLL_S = 0.5
"""Seconds between two looks at the progress of the run."""


def resolved(flags: Sequence[str]) -> DictConfig:
    """Return verl's whole configuration after these flags, checked by verl.

    Raises:
        ConfigError: verl refuses a setting.
    """
    folder = str(Path(main_ppo.__file__).parent / "config")
    with (
        boundary(ConfigError, "verl refuses its settings"),
        redirect_stdout(io.StringIO()),
        hydra.initialize_config_dir(folder, version_base=None),
    ):
        found = hydra.compose("ppo_trainer", overrides=list(flags))
        validate_config(
            config=found,
            use_reference_policy=need_reference_policy(found),
            use_critic=need_critic(found),
        )
    return found


def resolved_text(settings: Sequence[VerlSetting]) -> str:
    """Return verl's whole configuration, a line for each value with its origin."""
    sources = {setting.path.lstrip("+"): setting.source for setting in settings}
    tree = OmegaConf.to_container(resolved(flags_of(settings)), resolve=True)
    lines = []
    for path, value in _leaves(tree, ""):
        # A list or a mapping that we set as a whole is one value of ours.
        own = next((name for name in _prefixes(path) if name in sources), None)
        lines.append(f"{path}: {json.dumps(value)}  # {sources[own] if own else 'verl'}")
    return "\n".join(lines) + "\n"


def _leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - of omegaconf
    if not isinstance(tree, dict) or not tree:
        yield path, tree
        return
    for name, value in tree.items():
        yield from _leaves(value, f"{path}.{name}" if path else str(name))


def _prefixes(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def run_trainer(config: DictConfig, log: Path, note: Note, reached: Reached) -> None:
    """Run verl's trainer until it ends.

    The file `log` gets the output of verl in this process.

    Raises:
        TilewrightError: the run, or verl, failed.
    """
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(ended, note, reached), daemon=True)
    follower.start()
    try:
        with (
            boundary(InfrastructureError, "verl"),
            log.open("a", encoding="utf-8") as text,
            redirect_stdout(text),
        ):
            _run(config)
    finally:
        ended.set()
        follower.join()
        ray.shutdown()


_TaskRunner: Any = main_ppo.TaskRunnerV1.__ray_metadata__.modified_class


class CheckedTaskRunner(_TaskRunner):  # type: ignore[misc]
    """verl's own runner, in a process that has our plug-in. Lifetime: one session."""

    def run(self, config: DictConfig) -> None:
        """Run the training, or refuse this process before verl looks for the trainer."""
        require_registered("the trainer's process")
        super().run(config)


def _run(config: DictConfig) -> None:
    try:
        main_ppo.run_ppo(config, task_runner_class=ray.remote(CheckedTaskRunner))
    except ray.exceptions.RayError as error:
        raise _own(error) from error


def _follow(ended: threading.Event, note: Note, reached: Reached) -> None:
    """Show the notes and the phases of the run until the trainer ends."""
    seen: tuple[int, int, str] | None = None
    over = False
    while not over:
        # One more look after the end has the last lines.
        over = ended.wait(POLL_S)
        with suppress(ValueError, ray.exceptions.RayError, RuntimeError):
            if not ray.is_initialized():
                # A look-up would start a second Ray.
                continue
            run: Any = ray.get_actor(ACTOR)
            lines, phase = ray.get(run.progress.remote(), timeout=30)
            for line in lines:
                note(line)
            if phase is not None and phase != seen:
                reached(*phase)
                seen = phase


def _own(error: BaseException) -> TilewrightError:
    """Return the failure of ours that Ray carried here, or one that names the failure of verl."""
    found = error
    # A failure that passes several processes is wrapped once in each.
    while isinstance(found, ray.exceptions.RayTaskError) and found.cause is not None:
        found = found.cause
    if isinstance(found, TilewrightError):
        return found
    text = str(found).strip().splitlines() or [""]
    return InfrastructureError(f"verl failed: {type(found).__name__}: {text[-1]}")
