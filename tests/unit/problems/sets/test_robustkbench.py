"""Tasks in the format of robust-kbench: what becomes a problem, and what is refused by name."""

from __future__ import annotations

import json

import pytest

from tilewright.errors import ProblemError
from tilewright.problems.sets.robustkbench import SET

FORWARD = '''
import torch


def forward_fn(x, weight, slope):
    """Scales "x", then clamps it.

    Args: more.
    """
    return (x * weight).clamp(min=slope)


class Model(torch.nn.Module):
    def __init__(self, width=3, slope=0.5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width))
        self.slope = slope

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, self.slope)


def get_inputs(rows=2, width=3):
    return [torch.randn(rows, width)]


raise SystemExit("never run while it is read")
'''
CONFIGS = {
    "single_init_configs": [{"slope": 0.25}],
    "single_input_configs": [{"rows": 4}],
    "single_shared_configs": [{"width": 5}],
    "multi_init_configs": [{"slope": 0.25}, {"slope": 0.75}],
    "multi_input_configs": [{"rows": 4}],
    "multi_shared_configs": [{"width": 5}],
}


def write_task(folder, forward=FORWARD, configs=CONFIGS):
    folder.mkdir(parents=True)
    (folder / "func_forward.py").write_text(forward)
    (folder / "config_forward.json").write_text(json.dumps(configs))


def read(tmp_path, **changes):
    write_task(tmp_path / "tasks" / "scale", **changes)
    return SET.read(tmp_path, "r1")


def test_a_task_becomes_a_function_with_its_configurations(tmp_path):
    found = read(tmp_path)
    assert found.skipped == []
    (problem,) = found.problems
    assert (problem.id, problem.entry, problem.aliases) == (
        *("robustkbench/scale", "forward_fn", ("forward",)),
    )
    assert [case.params for case in problem.cases] == [
        {"place": 0, "slope": 0.25, "width": 5, "rows": 4},
        {"place": 1, "slope": 0.75, "width": 5, "rows": 4},
    ]
    assert problem.tolerance == 1e-5
    assert "Apache" in problem.licence
    assert problem.revision == "r1"


def test_its_inputs_are_the_arguments_that_the_model_passes(tmp_path):
    torch = pytest.importorskip("torch")
    found = read(tmp_path, forward=FORWARD.replace("raise SystemExit", "print"))
    (problem,), space = found.problems, {}
    exec(compile(problem.source.text, "problem.py", "exec"), space)
    assert space["__doc__"] == 'Scales "x", then clamps it.'
    case, state = {"place": 1}, torch.random.get_rng_state()
    first, again, other = (
        space["inputs"](case, torch.Generator().manual_seed(seed)) for seed in (7, 7, 8)
    )
    assert torch.equal(torch.random.get_rng_state(), state), "the caller's generator has moved"
    x, weight, slope = first
    assert (tuple(x.shape), tuple(weight.shape), slope) == ((4, 5), (5,), 0.75)
    assert not weight.requires_grad
    assert torch.equal(x, again[0])
    assert not torch.equal(x, other[0])
    assert not torch.equal(weight, other[1])
    assert torch.equal(space["reference"](*first), (x * weight).clamp(min=0.75))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"forward": FORWARD.replace("def get_inputs", "def inputs_of")}, "defines no get_inputs"),
        ({"forward": FORWARD.replace("return fn(", "return 2 * fn(")}, "does more than return"),
        ({"forward": FORWARD.replace("self.slope)", "slope=self.slope)")}, "does more than return"),
        ({"forward": "def forward_fn(:"}, "not Python"),
        ({"configs": {**CONFIGS, "multi_init_configs": None}}, "multi_init_configs is not a list"),
        ({"configs": [1]}, "single_init_configs is not a list"),
    ],
)
def test_a_task_that_is_no_function_is_named(tmp_path, changes, said):
    found = read(tmp_path, **changes)
    assert found.problems == []
    (message,) = found.skipped
    assert said in message


def test_a_backward_task_is_named_and_the_forward_one_read(tmp_path):
    write_task(tmp_path / "tasks" / "scale")
    (tmp_path / "tasks" / "scale" / "func_backward.py").write_text("")
    found = SET.read(tmp_path, "")
    assert len(found.problems) == 1
    assert "backward passes are not read" in found.skipped[0]


def test_tasks_of_kernelbench_have_its_names(tmp_path):
    write_task(tmp_path / "tasks" / "kernelbench" / "level_2" / "task_31")
    assert SET.read(tmp_path, "").problems[0].id == "robustkbench/level2-31"


def test_a_link_and_an_empty_folder_are_refused(tmp_path):
    outside = tmp_path / "outside.py"
    outside.write_text(FORWARD)
    place = tmp_path / "clone" / "tasks" / "scale"
    place.mkdir(parents=True)
    (place / "func_forward.py").symlink_to(outside)
    assert "a link, which is not followed" in SET.read(tmp_path / "clone", "").skipped[0]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProblemError, match="no task of robust-kbench here"):
        SET.read(tmp_path / "empty", "")
