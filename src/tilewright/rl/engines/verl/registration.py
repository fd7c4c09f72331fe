"""Whether verl has our agent loop and trainer: it hides the errors of plug-ins that it loads."""

from __future__ import annotations

from tilewright.errors import ConfigError


def require_registered(place: str) -> None:
    """Refuse a process in which verl does not have our agent loop and trainer.

    Raises:
        ConfigError: one is absent; the message names the place and the cause.
    """
    import verl  # noqa: F401 - it loads the plug-ins
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    from tilewright.rl.engines.verl.registered_names import AGENT_LOOP, TRAINER

    if AGENT_LOOP in _agent_loop_registry and TRAINER in TRAINER_REGISTRY:
        return
    raise ConfigError(
        f"verl has not loaded the plug-in of tilewright in {place}: {_cause()}; install tilewright "
        "there, and leave VERL_USE_EXTERNAL_PLUGINS unset"
    )


def _cause() -> str:
    try:
        import tilewright.rl.engines.verl.plugin  # noqa: F401
    except Exception as error:  # noqa: BLE001 - any error of an import; verl hides it
        return f"{type(error).__name__}: {error}"
    return "its entry point verl.plugins was not used"
