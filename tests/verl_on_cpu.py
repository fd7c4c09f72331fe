"""Runs verl on a CPU, for tests alone: a platform, an engine key, a server and a process group.

verl loads it as `VERL_USE_EXTERNAL_MODULES=tests.verl_on_cpu`. It is no support of CPUs: models are
sampled one prompt at a time.
"""

from __future__ import annotations

import os
import types
from contextlib import nullcontext

if os.environ.get("TILEWRIGHT_VERL_ON_CPU") != "tests":
    raise ImportError("verl runs on a CPU in tests and in `make bars ONLY=engines` alone")

import ray  # noqa: E402
import torch  # noqa: E402
from verl.plugin.platform import PlatformBase, PlatformRegistry, set_platform  # noqa: E402


class _Device(types.ModuleType):
    """The functions of torch.cuda that verl calls. Each does nothing, or returns 0."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        found = {"mem_get_info": (0, 0), "get_device_name": "cpu"}.get(name, 0)
        return lambda *_, **__: found


class CpuPlatform(PlatformBase):
    """A CPU that claims to be an accelerator of the resource NPU, which verl counts."""

    device_name = "cpu"
    vendor_name = "tests"
    device_module = _Device("cpu_device")
    current_device = set_device = synchronize = manual_seed = manual_seed_all = empty_cache = (
        set_allocator_settings
    ) = profiler_start = profiler_stop = lambda self, *_, **__: None

    def is_available(self):
        return True

    def device_count(self):
        return 1

    def current_device(self):
        return "cpu"

    def get_device_capability(self, device_index=0):
        return None, None

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "TILEWRIGHT_TEST_DEVICES"

    def nvtx_range(self, msg):
        return nullcontext()

    def ray_resource_name(self):
        return "NPU"

    def ray_noset_envvars(self):
        return []

    def is_ipc_supported(self):
        return False

    def cudart(self):
        return None


PlatformRegistry.register("cpu")(CpuPlatform)
set_platform(CpuPlatform())

from verl.utils import distributed  # noqa: E402
from verl.workers import engine_workers  # noqa: E402
from verl.workers.engine import EngineRegistry  # noqa: E402
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead  # noqa: E402
from verl.workers.rollout import base  # noqa: E402
from verl.workers.rollout.replica import (  # noqa: E402
    RolloutReplica,
    RolloutReplicaRegistry,
    TokenOutput,
)

EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")(
    FSDPEngineWithLMHead
)


def _gloo(timeout_second=None, backend=None):
    if not torch.distributed.is_initialized():
        rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        method = os.environ.get("DIST_INIT_METHOD")
        torch.distributed.init_process_group("gloo", method, rank=rank, world_size=world)


# The reference model is kept in memory that only an accelerator can pin.
torch.Tensor.pin_memory = lambda self, *_: self
distributed.initialize_global_process_group_ray = _gloo
engine_workers.initialize_global_process_group_ray = _gloo


@ray.remote(num_cpus=0)
class HfServer:
    """One model of transformers. Lifetime: one session."""

    def __init__(self, path):
        import transformers

        torch.set_num_threads(1)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        self.model.eval()

    def load(self, weights):
        self.model.load_state_dict({n: w.float() for n, w in weights.items()}, strict=False)

    def generate(self, prompt_ids, sampling_params, request_id, **_):
        from tilewright.loop.policies.local_model import LogprobRecorder

        recorder = LogprobRecorder(sampling_params["temperature"])
        ids = torch.tensor([prompt_ids])
        config = self.model.generation_config
        found = self.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, top_p=1.0,
            temperature=sampling_params["temperature"], logits_processor=[recorder],
            max_new_tokens=sampling_params["max_tokens"], pad_token_id=config.eos_token_id,
        )  # fmt: skip
        reply = found[0, len(prompt_ids) :].tolist()
        return TokenOutput(token_ids=reply, log_probs=recorder.logprobs(found)[0])

    def nothing(self, *_, **__):
        return None

    wake_up = sleep = clear_kv_cache = set_global_steps = nothing


class HfReplica(RolloutReplica):
    async def launch_servers(self):
        name = f"hf_server_{self.replica_rank}"
        self._server_handle = HfServer.options(name=name).remote(self.model_config.path)
        self._server_address, self.servers = name, [self._server_handle]


class ServerAdapter(base.BaseRollout):
    """The side of the trainer: it sends the weights to the server of its rank."""

    async def resume(self, tags):
        return None

    async def release(self):
        return None

    async def update_weights(self, weights, **_):
        found = {name: weight.detach().cpu().clone() for name, weight in weights}
        rank = torch.distributed.get_rank()
        await ray.get_actor(f"hf_server_{rank}").load.remote(found)


RolloutReplicaRegistry.register("vllm", lambda: HfReplica)
base._ROLLOUT_REGISTRY["vllm", "async"] = f"{__name__}.ServerAdapter"
