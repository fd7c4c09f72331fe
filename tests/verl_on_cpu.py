"""Runs verl on a CPU, for tests alone: a platform, an engine key, a server and a process group.

verl loads it as `VERL_USE_EXTERNAL_MODULES=tests.verl_on_cpu`. It is no support of CPUs: models are
sampled one prompt at a time.
"""

# ruff: noqa: ARG001, ARG002, ARG005, E402, E731 - signatures of verl, and a refusal before its imports
from __future__ import annotations

import os
import types
from contextlib import nullcontext

if os.environ.get("TILEWRIGHT_VERL_ON_CPU") != "tests":
    raise ImportError("verl runs on a CPU in tests and in `make bars ONLY=engines` alone")

import ray
import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry, set_platform


class Device(types.ModuleType):
    """The functions of torch.cuda that verl calls. None of them does anything."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: {"mem_get_info": (0, 0), "get_device_name": "cpu"}.get(name, 0)


class CpuPlatform(PlatformBase):
    """A CPU that claims to be an accelerator of the resource NPU, which verl counts."""

    device_name, vendor_name, device_module = "cpu", "tests", Device("cpu_device")

    def nothing(self, *_, **__):
        return None

    set_device = synchronize = manual_seed = manual_seed_all = empty_cache = nothing
    set_allocator_settings = profiler_start = profiler_stop = cudart = nothing

    def is_available(self):
        return True

    device_count = is_available

    def is_ipc_supported(self):
        return False

    def current_device(self):
        return "cpu"

    get_device_capability = lambda self, *_: (None, None)

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "TILEWRIGHT_TEST_DEVICES"

    def nvtx_range(self, msg):
        return nullcontext()

    def ray_resource_name(self):
        return "NPU"

    ray_noset_envvars = lambda self: []


PlatformRegistry.register("cpu")(CpuPlatform)
set_platform(CpuPlatform())

from verl.utils import distributed
from verl.workers import engine_workers
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.rollout import base
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

engine = EngineRegistry.register(model_type="language_model", backend=["fsdp2"], device="cpu")
engine(FSDPEngineWithLMHead)


def gloo(timeout_second=None, backend=None):
    if not torch.distributed.is_initialized():
        rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        method = os.environ.get("DIST_INIT_METHOD")
        torch.distributed.init_process_group("gloo", method, rank=rank, world_size=world)


for module in (distributed, engine_workers):
    module.initialize_global_process_group_ray = gloo
# The reference model is kept in memory that only an accelerator can pin.
torch.Tensor.pin_memory = lambda self, *_: self


@ray.remote(num_cpus=0)
class HfServer:
    """One model of transformers. Lifetime: one session."""

    def __init__(self, path):
        import transformers

        torch.set_num_threads(1)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path).float().eval()

    def load(self, weights):
        self.model.load_state_dict({n: w.float() for n, w in weights.items()}, strict=False)

    def generate(self, prompt_ids, sampling_params, **_):
        from tilewright.loop.policies.local_model import LogprobRecorder

        recorder, ids = LogprobRecorder(sampling_params["temperature"]), torch.tensor([prompt_ids])
        found = self.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, top_p=1.0,
            temperature=sampling_params["temperature"], logits_processor=[recorder],
            max_new_tokens=sampling_params["max_tokens"],
            pad_token_id=self.model.generation_config.eos_token_id,
        )  # fmt: skip
        reply = found[0, len(prompt_ids) :].tolist()
        return TokenOutput(token_ids=reply, log_probs=recorder.logprobs(found)[0])

    def nothing(self, *_, **__):
        return None

    wake_up = sleep = clear_kv_cache = set_global_steps = nothing


class HfReplica(RolloutReplica):
    async def launch_servers(self):
        self._server_address = name = f"hf_server_{self.replica_rank}"
        self._server_handle = HfServer.options(name=name).remote(self.model_config.path)
        self.servers = [self._server_handle]


class ServerAdapter(base.BaseRollout):
    """The side of the trainer: it sends the weights to the server of its rank."""

    async def release(self, *_, **__): ...

    resume = release

    async def update_weights(self, weights, **_):
        found = {name: weight.detach().cpu().clone() for name, weight in weights}
        server = ray.get_actor(f"hf_server_{torch.distributed.get_rank()}")
        await server.load.remote(found)


RolloutReplicaRegistry.register("vllm", lambda: HfReplica)
base._ROLLOUT_REGISTRY["vllm", "async"] = f"{__name__}.ServerAdapter"
