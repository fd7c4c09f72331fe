"""The KernelGYM API: its whole request and answer, its rules, and unjudged tasks."""

from __future__ import annotations

import threading
import time
import urllib.request

import pytest

from tests.services.test_kernelgym import GOOD, KERNEL, task
from tests.services.test_serve import Server, asked, free_port
from tilewright.config import load
from tilewright.errors import InfrastructureError

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
pytestmark = pytest.mark.timed
ANSWER = {
    *("task_id", "status", "compiled", "correctness", "decoy_kernel", "reference_runtime"),
    *("kernel_runtime", "speedup", "metadata", "error_message", "error_code", "submitted_at"),
    *("completed_at", "processing_time"),
}
WHOLE = {
    "toolkit": "kernelbench",
    "backend_adapter": "kernelbench",
    "num_correct_trials": 5,
    "num_perf_trials": 100,
    "num_warmup": 3,
    "timeout": 300,
    "device_preference": None,
    "force_refresh": False,
    "reference_backend": None,
    "uuid": "u-1",
    "use_reference_cache": False,
    "is_valid": True,
    "verbose_errors": True,
    "enable_profiling": True,
    "enable_triton_detection": True,
    "run_triton_detection": True,
    "measure_performance": True,
    "run_performance": True,
    "run_correctness": True,
    "cases": None,
    "cases_code": None,
    "workflow": "kernelbench",
    "resources": {"gpus": 1},
    "detect_decoy_kernel": True,
}
MEANT = {"timeout", "enable_profiling"}
TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def _leaf(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) + 1)


class ModelNew(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.bias = bias

    def forward(self, x):
        {body}
        return torch.clamp_min(x + self.bias, 0)
"""
LEAF = "_leaf[(1,)](torch.zeros(1, device=x.device))"


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    words = ["--set", "eval.timing.max_s=0.3", "--set", "eval.limits.call_timeout_s=5"]
    made = {
        name: Server(tmp_path_factory.mktemp(name) / "home", "--protocol", name, *words)
        for name in ("strict", "kernelgym")
    }
    yield made
    for server in made.values():
        server.stop()


def test_the_whole_kernelgym_request_and_answer_are_supported(servers):
    fields = {**task("whole"), **WHOLE}
    status, found = asked(f"{servers['strict'].url}/evaluate", fields)
    assert status == 200
    assert set(found) == ANSWER
    listed = set(WHOLE) - MEANT
    assert set(found["metadata"]["fields_without_effect"]) == listed
    assert {
        *("num_custom_kernels", "num_total_kernels"),
        *("custom_kernel_cuda_time_in_profiling_us", "total_kernel_run_time_in_profiling_us"),
    } <= set(found["metadata"])
    assert (found["status"], found["correctness"], found["error_code"]) == ("completed", True, None)
    later = asked(f"{servers['strict'].url}/results/whole")[1]
    assert {name: later[name] for name in ANSWER - {"metadata"}} == {
        name: found[name] for name in ANSWER - {"metadata"}
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"task_id": ""}, {"task_id": "a" * 101}, {"task_id": 7},
        {"reference_code": "x" * 9}, {"kernel_code": "x" * 100_001}, {"timeout": 3601},
        {"priority": "urgent"}, {"entry_point": "Mo del"},
    ],
)  # fmt: skip
def test_fields_that_kernelgym_models_refuse_are_refused(servers, fields):
    assert asked(f"{servers['strict'].url}/evaluate", task("bounds") | fields)[0] == 422


# By the strict rules, and by KernelGYM's: status, compiled, correctness, decoy, code.
TABLE = {
    "right": (
        {"body": GOOD},
        ("completed", True, True, False, None),
        ("completed", True, True, False, None),
    ),
    "within its tolerance": (
        {"body": "return torch.clamp_min(x + self.bias, 0) + 5e-3"},
        ("completed", True, False, False, "CORRECTNESS_ERROR"),
        ("completed", True, True, False, None),
    ),
    "values": (
        {"body": "return x"},
        ("completed", True, False, False, "CORRECTNESS_ERROR"),
        ("completed", True, False, False, "CORRECTNESS_ERROR"),
    ),
    "overwrites its input": (
        {"body": "return x.add_(self.bias).clamp_min_(0)"},
        ("completed", True, False, True, None),
        ("completed", True, True, False, None),
    ),
    "no launch": (
        {"kernel_code": TRITON.format(body=""), "backend": "triton"},
        ("completed", True, False, True, None),
        ("completed", True, True, True, None),
    ),
    "a fig leaf": (
        {"kernel_code": TRITON.format(body=LEAF), "backend": "triton"},
        ("completed", True, False, True, None),
        ("completed", True, True, False, None),
    ),
    "constructor": (
        {"kernel_code": KERNEL.format(body=GOOD).replace("self.bias = bias", "raise RuntimeError")},
        ("completed", True, False, False, "RUNTIME_ERROR"),
        ("completed", True, False, False, "RUNTIME_ERROR"),
    ),
    "constructor with another exception": (
        {"kernel_code": KERNEL.format(body=GOOD).replace("self.bias = bias", "raise ValueError")},
        ("failed", False, False, False, "COMPILATION_ERROR"),
        ("failed", False, False, False, "COMPILATION_ERROR"),
    ),
    "zero trials": (
        {"body": "return x", "num_correct_trials": 0, "run_correctness": False},
        ("completed", True, False, False, "CORRECTNESS_ERROR"),
        ("completed", True, False, False, "CORRECTNESS_ERROR"),
    ),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("rules", ["strict", "kernelgym"])
def test_each_request_is_answered_by_its_requested_rules(servers, name, rules):
    fields, strict, kernelgym = TABLE[name]
    status, found = asked(f"{servers[rules].url}/evaluate", task(name.replace(" ", "-"), **fields))
    assert status == 200, found
    said = ("status", "compiled", "correctness", "decoy_kernel", "error_code")
    assert tuple(found[key] for key in said) == (strict if rules == "strict" else kernelgym), found
    if rules == "kernelgym" and found["correctness"] and fields.get("backend") != "triton":
        assert found["speedup"] == found["reference_runtime"] / found["kernel_runtime"]
    else:
        assert bool(found["speedup"]) == (name == "right")


def test_a_task_that_cannot_be_judged_is_processing_then_unjudged(tmp_path):
    import uvicorn

    from tilewright.serve.app import create_app
    from tilewright.serve.service import Service

    def evaluate(_, __):
        raise InfrastructureError("the device fell off the bus")

    settings = load(overrides=[f"serve.log={tmp_path}/log"], environ={})
    service = Service(settings, "none", evaluate, tmp_path, 2)
    app = create_app(service)
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    url, found = f"http://127.0.0.1:{port}", {}
    try:
        while not server.started:
            time.sleep(0.02)

        def ask() -> None:
            found["answer"] = asked(f"{url}/evaluate", task("lost"))[1]

        asking = threading.Thread(target=ask)
        asking.start()
        seen = []
        while asking.is_alive():
            status, row = asked(f"{url}/status/lost")
            seen += [row["status"]] if status == 200 else []
            time.sleep(0.1)
        assert "processing" in seen[:-1]
        assert set(seen) <= {"processing", "failed"}
        answer = found["answer"]
        assert (answer["status"], answer["error_code"]) == ("failed", "UNJUDGED")
        assert (answer["correctness"], answer["speedup"]) == (False, 0)
        assert "after 3 attempts" in answer["error_message"]
        with urllib.request.urlopen(f"{url}/metrics", timeout=10) as metrics:
            lines = metrics.read().decode().splitlines()
        assert "tilewright_unjudged_total 1.0" in lines
        assert "tilewright_internal_errors_total 3.0" in lines
        task_row = service.store.task(service.store.named("local", "lost"))
        assert (task_row.state, task_row.attempts) == ("failed", 3)
        assert asked(f"{url}/results/lost")[1]["error_code"] == "UNJUDGED"
    finally:
        server.should_exit = True
        thread.join(60)
