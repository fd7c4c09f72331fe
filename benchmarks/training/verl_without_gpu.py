"""The environment and the settings with which verl runs on a CPU, in tests and bars alone."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
ON_CPU = {
    "PYTHONPATH": str(ROOT),
    "PYTHONWARNINGS": "ignore",
    "VERL_USE_EXTERNAL_MODULES": "tests.verl_on_cpu",
    "TILEWRIGHT_VERL_ON_CPU": "tests",
}
"""Variables of its processes; the platform is that of `tests/verl_on_cpu.py`."""
WITHOUT_GPU = {
    "actor_rollout_ref.model.use_remove_padding": False,
    "+actor_rollout_ref.model.override_config.attn_implementation": "eager",
    "actor_rollout_ref.actor.use_torch_compile": False,
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile": False,
    "actor_rollout_ref.rollout.free_cache_engine": False,
    "ray_kwargs.ray_init.num_cpus": 12,
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 2,
}
"""Settings of verl, by their path."""
