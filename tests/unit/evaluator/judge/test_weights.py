"""Weights: resampled so that nothing of the old ones shows, and matched to a candidate."""

from __future__ import annotations

import pytest
import torch

from tilewright.evaluator.judge.weights import (
    MAX_WEIGHT_NAMES,
    is_constant,
    is_known_before,
    named_alike,
    resample,
    unmatched,
    valued_alike,
)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 32)
        self.norm = torch.nn.BatchNorm1d(32)
        self.gain = torch.nn.Parameter(torch.full((8,), 1e-6))
        self.count = torch.nn.Parameter(torch.arange(3), requires_grad=False)
        self.register_buffer("table", torch.arange(4.0))


def charged_times() -> Net:
    torch.manual_seed(3)
    return Net()


def entries(state: dict[str, torch.Tensor]) -> list[list[object]]:
    return [[name, list(value.shape), "float32"] for name, value in state.items()]


def test_every_float_parameter_and_running_statistic_is_drawn():
    assert {
        "linear.weight",
        "linear.bias",
        "norm.weight",
        "norm.bias",
        "gain",
        "norm.running_mean",
        "norm.running_var",
    } == set(resample(charged_times(), 1))


def test_constants_become_visibly_different():
    model = charged_times()
    fresh = resample(model, 1)

    for name in ("norm.weight", "norm.bias", "gain", "norm.running_mean", "norm.running_var"):
        old = model.state_dict()[name]
        assert is_constant(old)
        assert float(fresh[name].std()) > 0.05
        assert float((fresh[name] - old).abs().max()) > 0.1


def test_scale_and_mean_stay_and_variances_stay_positive():
    model = charged_times()
    fresh = resample(model, 1)
    old, new = model.linear.weight.detach(), fresh["linear.weight"]

    assert abs(float(new.std()) / float(old.std()) - 1) < 0.1
    assert abs(float(new.mean()) - float(old.mean())) < 0.02
    assert float(fresh["norm.running_var"].min()) >= 0.5


def test_a_single_number_is_drawn_too():
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.tensor(2.0))
    model.none = torch.nn.Parameter(torch.empty(0, 3))

    fresh = resample(model, 1)

    assert float(fresh["scale"]) != 2.0
    assert tuple(fresh["none"].shape) == (0, 3)


def test_the_seed_decides_and_the_model_is_left_alone():
    model = charged_times()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first, again, other = resample(model, 1), resample(model, 1), resample(model, 2)

    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_dtypes_are_kept():
    fresh = resample(charged_times().double(), 1)

    assert {torch.float64} == {value.dtype for value in fresh.values()}


def test_names_match_where_the_shapes_agree():
    fresh = {"w": torch.ones(2, 3), "b": torch.ones(3)}
    said = [["w", [2, 3], "float32"], ["b", [4], "float32"], ["extra", [1], "float32"]]

    assert named_alike(fresh, said) == {"w": "w"}
    assert unmatched(fresh, said) == []


def test_renamed_weights_match_by_their_seeded_values():
    model = charged_times()
    seeded = {name: value.detach() for name, value in model.named_parameters()}
    fresh = resample(model, 1)
    theirs = {f"layers.{i}": seeded[name].clone() for i, name in enumerate(fresh) if name in seeded}
    said = entries(theirs)

    assert set(unmatched(fresh, said)) == set(theirs)
    for name, value in theirs.items():
        ours = valued_alike(value, seeded)
        assert ours is not None
        assert torch.equal(theirs[name], seeded[ours])
    # norm.weight is alone in its values; the linear layer's weight too.
    assert {valued_alike(value, seeded) for value in theirs.values()} >= {"linear.weight", "gain"}


def test_other_values_and_other_dtypes_do_not_match():
    seeded = {"w": torch.tensor([0.1, 0.2])}

    assert valued_alike(torch.tensor([0.1, 0.3]), seeded) is None
    assert valued_alike(torch.tensor([0.1, 0.2]).half(), seeded) is None
    assert valued_alike(torch.tensor([0.1, 0.2]), seeded) == "w"


def test_only_a_bounded_number_of_unmatched_names_is_read():
    fresh = {"w": torch.ones(2, 3), "v": torch.ones(2, 3), "b": torch.ones(3)}
    said = [[f"n{n}", [2, 3], "float32"] for n in range(10_000)] + [["b", [3], "float32"]]

    assert unmatched(fresh, said) == [f"n{n}" for n in range(2 * MAX_WEIGHT_NAMES)]


def test_a_tensor_is_constant_when_all_values_are_equal():
    assert is_constant(torch.zeros(3))
    assert is_constant(torch.empty(0))
    assert is_constant(torch.tensor(1.0))
    assert not is_constant(torch.tensor([1.0, 2.0]))


def test_a_weight_that_is_known_before_it_is_built_is_no_random_one():
    generator = torch.Generator().manual_seed(3)

    def drawn(kind: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(64, 64, generator=generator).to(kind)

    sparse = drawn() * (torch.rand(64, 64, generator=generator) > 0.5)
    table = torch.cos(torch.arange(4096.0)).reshape(64, 64)

    assert is_known_before(sparse, drawn())
    assert is_known_before(torch.eye(64), torch.eye(64))
    assert is_known_before(table, table.clone())
    assert not is_known_before(table, drawn())
    assert not is_known_before(torch.arange(64) * 0, torch.zeros(64))
    for kind in (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        assert not is_known_before(drawn(kind), drawn(kind)), kind


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_a_short_weight_is_random_though_some_of_its_elements_are_equal(kind):
    generator = torch.Generator().manual_seed(4)

    def drawn(count: int) -> torch.Tensor:
        return torch.rand(count, generator=generator).to(kind)

    for count in (2, 3, 8, 9, 15, 16, 24):
        assert not any(is_known_before(drawn(count), drawn(count)) for _ in range(200)), count
    known = torch.tensor([0.5, -0.5, 0.25, 2.0]).to(kind)
    assert is_known_before(known, known)
