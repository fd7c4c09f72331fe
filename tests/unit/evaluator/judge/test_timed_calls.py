"""The judge after a timed call: snapshot, comparison, check of the inputs.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import mmap

import pytest
import torch

from tests.unit.evaluator.judge.test_process import FUNCTION, NOWHERE


@pytest.mark.parametrize("unreadable", ["candidate", "eager"])
@pytest.mark.parametrize("address", [*NOWHERE, (1 << 64) - 1])
def test_a_timed_output_that_cannot_be_read_is_wrong(judge, address, unreadable):
    judge.load(FUNCTION)
    judge.map("eager")
    judge.map()
    x, y = judge.inputs(judge.sample(timed=True))
    right = torch.relu(x + y)
    for runner in ("eager", "candidate"):
        changes = {"addresses": [address]} if runner == unreadable else {}
        answer = judge.timed(runner, right, compare=runner == "candidate", **changes)

    assert answer["wrong"] == "values"
    assert "cannot be read" in answer["message"]


def test_renewed_inputs_are_written_and_outputs_expected_of_them(judge):
    judge.load(FUNCTION)
    judge.map()
    sample = judge.sample(timed=True)
    seen = [judge.inputs(sample)[0].clone()]
    for seed in (7, 8):
        renewed = judge.renew(seed)
        assert renewed == {"fresh": True, "tree": sample["tree"]}
        x, y = (value.clone() for value in judge.inputs(sample))
        assert not any(torch.equal(x, old) for old in seen)
        seen.append(x)
        answer = judge.timed("candidate", torch.relu(x + y), look=None, expect=True, compare=True)
        assert (answer["wrong"], answer["mutated"], answer["misplaced"]) == ("", [], [])
        earlier = torch.relu(seen[-2] + y)
        assert judge.timed("candidate", earlier, expect=True, compare=True)["wrong"] == "values"


def test_small_elements_that_are_left_out_are_wrong_in_a_call_that_counts_as_checked(judge):
    small = FUNCTION.replace("torch.relu(x + y)", "torch.cat([x, (x + y).tanh() * 1e-7], -1)")
    judge.load(small.replace('case["n"]', "256"))
    judge.map()
    sample = judge.sample(timed=True)
    assert judge.renew(7)["fresh"]
    x, y = judge.inputs(sample)
    right = torch.cat([x, (x + y).tanh() * 1e-7], -1)
    wrong = torch.cat([x, torch.zeros_like(x)], -1)

    def seen(output: torch.Tensor, *, as_checked: bool) -> str:
        answer = judge.timed("candidate", output, expect=True, compare=True, as_checked=as_checked)
        return f"{answer['wrong']}: {answer['message']}" if answer["wrong"] else ""

    assert seen(right, as_checked=True) == ""
    assert seen(wrong, as_checked=False) == ""
    assert seen(wrong, as_checked=True).startswith("values: by the rules of checked calls: ")


def test_pages_of_an_output_that_nobody_wrote_are_reported(judge):
    judge.load("""import torch
def inputs(case, generator):
    return torch.randn(8, generator=generator),
def reference(x):
    return torch.zeros(1 << 18)
""")
    judge.map()
    judge.inputs(judge.sample(timed=True))
    pages = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    output = torch.frombuffer(pages, dtype=torch.float32)
    given_back = {"dropped": [judge.calls + 1]}
    assert judge.timed("candidate", output, **given_back)["ready_bytes"] == 1 << 20
    output.fill_(0.0)
    assert judge.timed("candidate", output)["ready_bytes"] == 0


def test_inputs_of_varied_calls_are_judged_too(judge):
    judge.load(FUNCTION)
    judge.map()
    sample = judge.sample(timed=True)
    nominal = judge.inputs(sample)[0].clone()
    for varied in (True, False):
        assert judge.renew(7, "scale", varied=varied)["fresh"]
        x, y = (value.clone() for value in judge.inputs(sample))
        assert (float(x.abs().max()) > 16 * float(nominal.abs().max())) is varied
        right = torch.relu(x + y)
        assert judge.timed("candidate", right, expect=True, compare=True)["wrong"] == ""
        wrong = right + 0.1 * right.max()
        assert judge.timed("candidate", wrong, expect=True, compare=True)["wrong"] == "values"


def test_a_timed_call_is_not_judged_where_the_reference_is_not_finite(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "x - x.exp().log() + y"))
    judge.map()
    sample = judge.sample(timed=True)
    for variation, wrong in (("nominal", "nonfinite"), ("scale", "")):
        assert judge.renew(7, variation, varied=variation != "nominal")["fresh"]
        x, y = judge.inputs(sample)
        expected = x - x.exp().log() + y
        assert bool(expected.isfinite().all()) is (variation == "nominal")
        exact = y.expand_as(expected).contiguous()
        assert judge.timed("candidate", exact, expect=True, compare=True)["wrong"] == ""
        lost = exact * float("nan")
        assert judge.timed("candidate", lost, expect=True, compare=True)["wrong"] == wrong


@pytest.mark.parametrize("difference", [0.0, 1.0, float("nan")])
def test_timed_values_next_to_infinite_ones_are_judged(judge, difference):
    masked = "(x + y).masked_fill(torch.arange(8) > 5, float('-inf'))"
    judge.load(FUNCTION.replace("torch.relu(x + y)", masked))
    judge.map()
    sample = judge.sample(timed=True)
    assert judge.renew(7)["fresh"]
    x, y = judge.inputs(sample)
    found = (x + y).masked_fill(torch.arange(8) > 5, float("-inf")) + difference
    wrong = {0.0: "", 1.0: "values"}.get(difference, "nonfinite")
    assert judge.timed("candidate", found, expect=True, compare=True)["wrong"] == wrong


def test_scalars_of_a_renewed_sample_come_with_its_tree(judge):
    source = FUNCTION.replace(
        "torch.randn(8, generator=generator)", "float(torch.rand((), generator=generator))"
    )
    judge.load(source)
    judge.map()
    sample = judge.sample(timed=True)
    judge.inputs(sample)
    renewed = judge.renew(7)
    x, y = judge.inputs(renewed)

    assert y != sample["tree"]["v"][1]["v"]
    answer = judge.timed("candidate", torch.relu(x + y), expect=True, compare=True)
    assert answer["wrong"] == ""


def test_values_of_other_shapes_fill_the_sample_and_are_judged(judge):
    size = "int(torch.randint(5, 900, (), generator=generator))"
    judge.load(FUNCTION.replace('case["n"]', size))
    judge.map()
    sample = judge.sample(timed=True)
    before = judge.inputs(sample)[0].clone()
    assert judge.renew(7) == {"fresh": False, "tree": sample["tree"]}

    x, y = (value.clone() for value in judge.inputs(sample))
    assert not torch.isin(x, before).all()
    right = torch.relu(x + y)
    assert judge.timed("candidate", right, expect=True, compare=True)["wrong"] == ""


def test_timed_outputs_are_compared_with_the_baselines(judge):
    judge.load(FUNCTION)
    judge.map("eager")
    judge.map()
    x, y = judge.inputs(judge.sample(timed=True))
    right = torch.relu(x + y)
    for candidate, wrong in (
        (right, ""),
        (right + 1, "values"),
        (right * float("nan"), "nonfinite"),
    ):
        assert judge.timed("eager", right)["wrong"] == ""
        assert judge.timed("candidate", candidate, compare=True)["wrong"] == wrong


def test_a_snapshot_is_a_copy_of_the_runners_memory(judge):
    judge.load(FUNCTION)
    judge.map("eager")
    judge.map()
    x, y = judge.inputs(judge.sample(timed=True))
    right = torch.relu(x + y)
    theirs = right + 1
    judge.timed("candidate", theirs)
    assert judge.kept[0].data_ptr() == theirs.data_ptr()
    theirs.copy_(right)

    assert judge.timed("eager", right, compare=True)["wrong"] == "values"


def test_published_rules_compare_timed_outputs_by_their_tolerance(judge):
    judge.load(FUNCTION, rule={"name": "allclose", "tolerance": 1e-2})
    judge.map("eager")
    judge.map()
    x, y = judge.inputs(judge.sample(timed=True))
    right = torch.relu(x + y)
    judge.timed("eager", right)

    assert judge.timed("candidate", right + 5e-3, compare=True)["wrong"] == ""


HARD_INTEGERS = """
import torch

def inputs(case, generator):
    return (torch.randn(case["n"], 8, generator=generator),)

def reference(x):
    return ((x + 1e8) - 1e8 > 0).int()
"""


def test_timed_integers_are_exact_where_the_reference_is_certain(judge):
    judge.load(HARD_INTEGERS)
    judge.map("eager")
    judge.map()
    (x,) = judge.inputs(judge.sample(timed=True))
    rounded, exact = ((x + 1e8) - 1e8 > 0).int(), (x > 0).int()
    assert not torch.equal(rounded, exact)
    judge.timed("eager", rounded)
    assert judge.timed("candidate", exact, compare=True)["wrong"] == ""

    judge.timed("eager", rounded)
    wrong = exact.clone()
    wrong[x < 0] = 1
    assert judge.timed("candidate", wrong, compare=True)["wrong"] == "values"


def test_a_wrong_earlier_answer_is_not_taken_for_the_present_one(judge):
    judge.load(FUNCTION)
    judge.map()
    x, y = judge.inputs(judge.sample())
    right = torch.relu(x + y)
    assert judge.check(right)["wrong"] == ""
    judge.timed("candidate", right + 1)
    described = judge.put(right)
    answer = judge.ask("check", sample="d", runner="candidate", outputs=described)

    assert answer["wrong"] == "values"


def test_mutation_is_found_without_keeping_outputs(judge):
    judge.load(FUNCTION)
    judge.map()
    x, _ = judge.inputs(judge.sample(timed=True))
    x.zero_()
    output = torch.empty(4, 8)

    seen = judge.timed("candidate", output, keep=False, look=None)
    assert (seen["mutated"], seen["misplaced"]) == (["input 0"], [])
    assert judge.timed("candidate", output, keep=False, look=[])["mutated"] == []


@pytest.mark.parametrize("base", [0, 4096])
def test_inputs_are_compared_in_the_requested_windows(judge, base):
    judge.load(FUNCTION)
    judge.map()
    sample = judge.sample(timed=True)
    judge.inputs(sample, base)
    output, size = torch.empty(4, 8), sample["size"]
    place = sample["tree"]["v"][0]["offset"] + 8

    def seen(*look: list[int]) -> list[str]:
        answer = judge.timed("candidate", output, keep=False, base=base, look=list(look))
        return list(answer["mutated"])

    assert seen([0, size]) == []
    judge.area.inputs[base + place] ^= 1
    assert seen([0, place], [place + 1, size]) == []
    assert seen() == []
    assert seen([0, 1], [place, place + 1]) == ["input 0"]


@pytest.mark.parametrize("address", [16, 1 << 56])
def test_inputs_that_cannot_be_written_are_reported(judge, address):
    judge.load(FUNCTION)
    judge.map(address=address)
    judge.sample(timed=True)

    written = judge.ask("publish", sample="d", runner="candidate", base=0)
    assert written == {"written": False}
