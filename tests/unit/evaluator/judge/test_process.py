"""The judge's `main` in a thread: messages in, answers out, without a candidate."""

from __future__ import annotations

import contextlib
import json
import os

import pytest
import torch

FUNCTION = """
import torch

def inputs(case, generator):
    return torch.randn(case["n"], 8, generator=generator), torch.randn(8, generator=generator)

def reference(x, y):
    return torch.relu(x + y)
"""
MODULE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.gain = torch.nn.Parameter(torch.ones(8))

    def forward(self, x):
        return self.first(x) * self.gain

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""


def test_the_role_reports_that_it_is_ready(judge):
    assert judge.role.ready.kind == "ready"
    assert judge.role.ready.fields == {"applied": {"rlimits": ""}}


def test_a_right_output_is_right_and_a_wrong_one_is_not(judge):
    answer = judge.load(FUNCTION)
    assert (answer.fields["is_module"], answer.kind) == (False, "answer")
    judge.map()
    sample = judge.sample()
    x, y = judge.inputs(sample)

    assert [sample[name] for name in ("oracle", "structure", "skipped", "random")] == [
        "float64",
        "1",
        "",
        False,
    ]
    assert sample["outputs"] == [{"dtype": "float32", "shape": [4, 8]}]
    right = judge.check(torch.relu(x + y))
    assert (right["wrong"], right["mutated"]) == ("", [])
    assert 0 <= right["error"] <= 1
    wrong = judge.check(torch.relu(x + y) + 1e-3)
    assert wrong["wrong"] == "values"
    assert wrong["error"] > 1


def test_the_answer_to_a_sample_request_holds_no_values(judge):
    judge.load(FUNCTION)
    text = json.dumps(judge.sample(seed=987654321987))

    assert "987654321987" not in text
    assert set(json.loads(text)) == {
        "variation",
        *(
            "tree",
            "grad_outputs",
            "grads",
            "size",
            "outputs",
            "output_bytes",
            "structure",
            "oracle",
        ),
        *("random", "stateful", "skipped", "call_s", "ran_out_of_memory", "places"),
    }


def test_outputs_are_compared_at_the_reported_address(judge):
    judge.load(FUNCTION)
    judge.map()
    x, y = judge.inputs(judge.sample())
    described, right = judge.put(torch.zeros(4, 8)), torch.relu(x + y)
    # As long as it is held, the judge's thread gets other memory for the right values.
    (zeros,) = judge.kept

    for address, wrong in (
        (zeros.data_ptr(), "values"),
        (right.data_ptr(), ""),
        (right.data_ptr() + 4, "values"),
    ):
        judge.timed("candidate", torch.zeros(4, 8), addresses=[address])
        answer = judge.ask("check", sample="d", runner="candidate", outputs=described)
        assert answer["wrong"] == wrong


ALLCLOSE = {"name": "allclose", "tolerance": 1e-2}
NOWHERE = [0, 1 << 56, (1 << 57) - 1]


@pytest.mark.parametrize("rule", [None, ALLCLOSE])
@pytest.mark.parametrize("address", NOWHERE)
def test_an_unreadable_output_is_wrong_and_the_judge_continues(judge, address, rule):
    judge.load(FUNCTION, rule=rule)
    judge.map()
    x, y = judge.inputs(judge.sample())
    described = judge.put(torch.relu(x + y))
    judge.timed("candidate", addresses=[address])
    answer = judge.ask("check", sample="d", runner="candidate", outputs=described)

    assert (answer["wrong"], answer["error"]) == ("values", None)
    assert "cannot be read" in answer["message"]
    assert judge.check(torch.relu(x + y))["wrong"] == ""


def test_an_output_without_an_address_is_no_tensor(judge):
    judge.load(FUNCTION)
    judge.map()
    x, y = judge.inputs(judge.sample())
    judge.timed("candidate", torch.relu(x + y))
    (item,) = judge.put(torch.relu(x + y))
    del item["address"]
    answer = judge.ask("check", sample="d", runner="candidate", outputs=[item])

    assert answer["wrong"] == "dtype"


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda item: [item, item], "count"),
        (lambda item: [], "count"),  # noqa: ARG005
        (lambda item: [{**item, "shape": [8, 4]}], "shape"),
        (lambda item: [{**item, "dtype": "float64"}], "dtype"),
    ],
)
def test_a_reported_output_must_have_the_expected_form(judge, change, wrong):
    judge.load(FUNCTION)
    judge.map()
    x, y = judge.inputs(judge.sample())
    judge.timed("candidate", torch.relu(x + y))
    (item,) = judge.put(torch.relu(x + y))
    answer = judge.ask("check", sample="d", runner="candidate", outputs=change(item))

    assert wrong == answer["wrong"]
    assert "expected" in answer["message"]


def test_keys_of_a_dict_must_agree(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "{'a': x, 'b': y}"))
    judge.map()
    x, y = judge.inputs(judge.sample())
    assert judge.check(x, y)["wrong"] == "count"
    outputs = judge.put(x, y)
    outputs[0]["structure"] = "a,b"

    answer = judge.ask("check", sample="d", runner="candidate", outputs=outputs)

    assert answer["wrong"] == ""


def test_empty_outputs_are_compared_too(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "(x[:0], x)"))
    judge.map()
    x, _ = judge.inputs(judge.sample())

    assert judge.check(x[:0], x)["wrong"] == ""
    assert judge.check(x[:1], x)["wrong"] == "shape"


def test_an_infinite_error_is_reported_as_none(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "x * 0"))
    judge.map()
    x, _ = judge.inputs(judge.sample())
    answer = judge.check(torch.full_like(x, 1e30))

    assert (answer["wrong"], answer["error"]) == ("values", None)


@pytest.mark.parametrize("base", [0, 4096])
def test_overwritten_inputs_and_guards_are_found(judge, base):
    judge.load(FUNCTION)
    judge.map()
    sample = judge.sample()
    x, y = judge.inputs(sample, base)
    right = torch.relu(x + y)
    x[2, 3] += 1.0
    assert judge.check(right, base=base)["mutated"] == ["input 0"]
    x, y = judge.inputs(sample, base)
    assert judge.check(right, base=base)["mutated"] == []
    judge.area.inputs[base] ^= 0xFF
    assert judge.check(right, base=base)["mutated"] == ["memory around the inputs"]


def test_donated_inputs_may_be_overwritten(judge):
    judge.load(FUNCTION, writable_inputs=["y"])
    judge.map()
    sample = judge.sample()
    x, y = judge.inputs(sample)
    right = torch.relu(x + y)
    y.zero_()

    assert judge.check(right)["mutated"] == []
    assert sample["places"]["aliases"]
    (span,) = sample["places"]["writable"]
    assert span[1] - span[0] == y.nbytes


def test_a_candidate_may_overwrite_what_the_reference_overwrites(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "torch.relu(x.add_(y))"))
    judge.map()
    sample = judge.sample()
    x, y = judge.inputs(sample)
    right = torch.relu(x + y)
    x.zero_()
    assert judge.check(right)["mutated"] == []
    assert sample["places"]["aliases"]
    y.zero_()
    assert judge.check(right)["mutated"] == ["input 1"]


def test_arguments_are_passed_by_name_where_the_problem_says_so(judge):
    judge.load(FUNCTION.replace("reference(x, y)", "reference(x, *, y)"), keywords=["y"])
    judge.map()
    sample = judge.sample()
    x, y = judge.inputs(sample)
    assert judge.check(torch.relu(x + y))["wrong"] == ""


def test_published_rules_use_their_tolerance(judge):
    judge.load(FUNCTION, rule=ALLCLOSE)
    judge.map()
    sample = judge.sample()
    x, y = judge.inputs(sample)

    assert sample["oracle"] == "float32"
    assert judge.check(torch.relu(x + y) + 5e-3)["wrong"] == ""
    assert judge.check(torch.relu(x + y) + 0.1)["wrong"] == "values"


@pytest.mark.parametrize(
    ("kind", "source", "message"),
    [
        (
            "problem",
            "raise RuntimeError('gone')",
            "loading the problem: RuntimeError: gone",
        ),
        ("problem", MODULE.replace("Linear(8, 8)", "Linear(8, 'x')"), "building the reference"),
        ("sample", FUNCTION.replace('case["n"]', 'case["m"]'), "generating inputs: KeyError"),
        ("sample", FUNCTION.replace("x + y", "x @ y.T @ y"), "running the reference"),
    ],
)
def test_a_failing_problem_is_reported_and_the_judge_continues(judge, kind, source, message):
    answer = judge.load(source, "module" if "Model" in source else "function")
    if kind == "sample":
        assert answer.kind == "answer"
        fields = {"params": {"n": 4}, "variation": "nominal", "seed": 1, "forward_seed": 1}
        answer = judge.role.ask("sample", {"sample": "d", "timed": False, **fields})

    assert answer.kind == "problem_failed"
    assert message in answer.fields["message"]
    assert judge.load(FUNCTION).kind == "answer"


def memories() -> int:
    """Return how many descriptors of a process's memory are open here."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{name}").endswith("/mem")
    return found


def test_forgetting_a_runner_frees_its_memory_and_descriptors(judge):
    judge.load(FUNCTION)
    before, held = len(os.listdir("/proc/self/fd")), memories()
    judge.map()
    judge.sample()
    assert memories() == held + 1
    judge.ask("forget", runners=["candidate", "never"], samples=["d", "never"])
    assert memories() == held
    # A map keeps a descriptor of its own until it is collected; received ones are closed.
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    judge.map()
    judge.sample()

    assert memories() == held + 1


def test_the_judge_ends_when_the_supervisor_is_gone(judge):
    judge.role.channel.close()

    assert not judge.role.alive()


@pytest.mark.parametrize(
    ("expected", "said", "right"),
    [
        ('{"a": x + y}', "a", True),
        ('{"a": x + y}', "1", True),
        ('{"a": x + y}', "b", False),
        ("x + y", "a", False),
        ("x + y", "1", True),
    ],
)
def test_a_dict_output_must_have_the_expected_keys(judge, expected, said, right):
    judge.load(FUNCTION.replace("torch.relu(x + y)", expected))
    judge.map()
    x, y = judge.inputs(judge.sample())
    judge.timed("candidate", x + y)
    described = judge.put(x + y)
    described[0]["structure"] = said
    answer = judge.ask("check", sample="d", runner="candidate", outputs=described)

    assert (answer["wrong"] == "") is right
