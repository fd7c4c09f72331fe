"""The KernelGYM API: the requests and failures of its released server."""

from __future__ import annotations

import pytest

from tests.services.test_serve import Server, asked

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
pytestmark = pytest.mark.timed
REFERENCE = """import torch


class Model(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.bias = bias

    def forward(self, x):
        return torch.relu(x + self.bias)


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return [0.5]
"""
KERNEL = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.bias = bias

    def forward(self, x):
        {body}
"""
GOOD = "return torch.clamp_min(x + self.bias, 0)"
ASSIGNED, RAISED = "self.bias = bias", "raise ValueError('no')"
# Eleven calls are compared before the first one is timed. A machine under load times few.
UNTIMED_CALLS = 15
COUNTED, LATER = (
    "self.bias, self.calls = bias, 0",
    f"""self.calls += 1
        if self.calls > {UNTIMED_CALLS}:
            raise RuntimeError("later")
        {GOOD}""",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("gym") / "home"
    made = Server(home, "--set", "eval.timing.max_s=0.3", "--set", "eval.limits.call_timeout_s=3")
    yield made
    made.stop()


def task(name, body=GOOD, **more):
    fields = {
        "task_id": name,
        "reference_code": REFERENCE,
        "kernel_code": KERNEL.format(body=body),
        "backend": "torch",
        "entry_point": "Model",
        "num_correct_trials": 5,
        "num_perf_trials": 100,
        "timeout": 300,
        "priority": "normal",
    }
    return {**fields, **more}


def evaluate(server, *given, **more):
    status, found = asked(f"{server.url}/evaluate", task(*given, **more))
    assert status == 200, found
    return found


def test_a_correct_candidate_has_times_and_a_speedup(server):
    found = evaluate(server, "good", device_preference="cuda:7", use_reference_cache=True)
    assert (found["status"], found["compiled"], found["correctness"]) == ("completed", True, True)
    assert found["decoy_kernel"] is False
    assert found["reference_runtime"] > 0
    assert found["kernel_runtime"] > 0
    assert found["speedup"] > 0
    assert found["error_code"] is None
    wanted = ["device_preference", "num_correct_trials", "num_perf_trials", "use_reference_cache"]
    assert found["metadata"]["fields_without_effect"] == wanted
    assert {"num_custom_kernels", "num_total_kernels"} <= set(found["metadata"])
    assert asked(f"{server.url}/status/good")[1]["status"] == "completed"
    assert asked(f"{server.url}/results/good")[1]["speedup"] == found["speedup"]


@pytest.mark.parametrize(
    ("name", "fields", "wanted"),
    [
        ("syntax", {"kernel_code": "class ModelNew(:\n    pass\n"},
         ("failed", False, False, "COMPILATION_ERROR")),
        ("missing", {"kernel_code": "class Something:\n    pass\n"},
         ("failed", False, False, "VALIDATION_ERROR")),
        ("import", {"kernel_code": "import nowhere_at_all\nclass ModelNew: pass\n"},
         ("failed", False, False, "COMPILATION_ERROR")),
        ("raises", {"body": "raise RuntimeError('boom')"},
         ("completed", True, False, "RUNTIME_ERROR")),
        ("values", {"body": "return x"}, ("completed", True, False, "CORRECTNESS_ERROR")),
        ("shape", {"body": "return torch.relu(x + self.bias)[:1]"},
         ("completed", True, False, "CORRECTNESS_ERROR")),
        ("endless", {"body": "\n        while True: pass"},
         ("failed", True, False, "TIMEOUT_ERROR")),
        ("crash", {"body": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"},
         ("completed", True, False, "RUNTIME_ERROR")),
        ("lock", {"body": "raise OSError('lock: No such file or directory')"},
         ("completed", True, False, "RUNTIME_ERROR")),
        ("memory", {"body": "return torch.zeros(1 << 40)"},
         ("completed", True, False, "RUNTIME_ERROR")),
        ("constructor", {"kernel_code": KERNEL.format(body=GOOD).replace(ASSIGNED, RAISED)},
         ("failed", False, False, "COMPILATION_ERROR")),
        # Right when it was compared, and not when it was timed: the original calls it correct.
        ("when_timed", {"kernel_code": KERNEL.format(body=LATER).replace(ASSIGNED, COUNTED)},
         ("completed", True, False, "RUNTIME_ERROR")),
        # No doing of the candidate's: the original answers with half a result or a failure of it.
        ("reference_raises", {"reference_code": REFERENCE.replace("return torch", "raise torch")},
         ("failed", False, False, "UNJUDGED")),
        ("no_reference", {"reference_code": "x = 1  # no model here"},
         ("failed", False, False, "VALIDATION_ERROR")),
    ],
)  # fmt: skip
def test_failures_have_the_codes_that_the_kernelgym_client_reads(server, name, fields, wanted):
    found = evaluate(server, name, **fields)
    said = tuple(found[key] for key in ("status", "compiled", "correctness", "error_code"))
    assert said == wanted, found
    assert found["speedup"] == 0
    assert found["error_message"]


def test_a_name_with_other_work_is_a_conflict(server):
    evaluate(server, "twice")
    assert asked(f"{server.url}/evaluate", task("twice"))[1]["correctness"] is True
    assert asked(f"{server.url}/evaluate", task("twice", "return x"))[0] == 409
    # Also where it could be no candidate: who polls would be given the other's verdict.
    refused = task("twice", kernel_code="import torch  # no ModelNew\n")
    assert asked(f"{server.url}/evaluate", refused)[0] == 409
    assert asked(f"{server.url}/results/twice")[1]["correctness"] is True


def test_an_entry_point_of_another_name_is_found(server):
    reference = REFERENCE.replace("class Model(", "class Clipped(")
    kernel = KERNEL.format(body=GOOD).replace("ModelNew", "ClippedNew")
    found = evaluate(
        server, "entry", reference_code=reference, kernel_code=kernel, entry_point="Clipped"
    )
    assert found["correctness"] is True, found


def test_a_batch_is_answered_completely_and_in_order(server):
    rows = [task("b0"), task("b1", "return x"), task("b2", kernel_code="def f(:\n  pass\n")]
    status, found = asked(f"{server.url}/evaluate/batch", {"batch_id": "b", "tasks": rows})
    assert (status, found["batch_id"], found["total_tasks"]) == (200, "b", 3)
    assert [item["task_id"] for item in found["results"]] == ["b0", "b1", "b2"]
    assert [item["correctness"] for item in found["results"]] == [True, False, False]


def test_health_and_workers_answer_as_the_kernelgym_client_expects(server):
    assert asked(f"{server.url}/health")[1]["status"] == "healthy"
    assert asked(f"{server.url}/workers/status")[1]["total"] == 2
    assert asked(f"{server.url}/results/unknown")[0] == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"task_id": "a\n"},
        {"task_id": ""},
        {"kernel_code": "x"},
        {"timeout": 1e9},
        {"entry_point": "a b"},
    ],
)
def test_requests_that_kernelgym_refuses_are_refused(server, fields):
    assert asked(f"{server.url}/evaluate", task("refused", **fields))[0] == 422
