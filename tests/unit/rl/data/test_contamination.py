"""Which training data counts as the problem of a benchmark, however it is written."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.unit.rl.data.test_exports import coldstart, import_coldstart
from tilewright.cli.main import cli
from tilewright.problems.loader import parse_problem
from tilewright.rl.data.contamination import Benchmark, reference_digest, shapes_and_operators
from tilewright.rl.data.programs import SeenPrograms, canonical, similarity, sketch

BENCH = '''import torch
import torch.nn as nn


class Model(nn.Module):
    """Matrix product, then GELU, then a softmax."""

    def __init__(self, wide, narrow):
        super(Model, self).__init__()
        self.linear = nn.Linear(wide, narrow)

    def forward(self, x):
        x = self.linear(x)
        x = torch.nn.functional.gelu(x)
        return torch.nn.functional.softmax(x, dim=1)


batch_size = 128
in_features = 100
out_features = 10


def get_inputs():
    return [torch.randn(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
'''
RENAMED = (
    BENCH.replace("wide", "n").replace("narrow", "m").replace("self.linear", "self.layer")
    .replace("(self, x)", "(self, t: torch.Tensor) -> torch.Tensor").replace("batch_size", "rows")
    .replace("(x)", "(t)").replace("x = ", "t = ").replace("softmax(x,", "softmax(t,")
)  # fmt: skip
REWRITTEN = """import torch
from torch import nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, a: int, b: int):
        super().__init__()
        self.first = nn.Linear(a, b)

    def forward(self, given: torch.Tensor):
        made = F.gelu(self.first(given))
        return F.softmax(made, dim=1)


N, (K, _) = 2 ** 7, (50 + 50, 1)


def get_inputs():
    given = torch.randn((N, K))
    return [given]


def get_init_inputs():
    return [K, 10]
"""
OTHER = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, a, b):
        return torch.cumsum(a * b, dim=-1).relu()


batch_size = 128
in_features = 100


def get_inputs():
    return [torch.randn(batch_size, in_features), torch.randn(batch_size, in_features)]


def get_init_inputs():
    return []
"""


def problem(text, name="p"):
    return parse_problem(text, name, name, name)


def hows(text, prompt=""):
    bench = Benchmark([problem(BENCH, "bench/1"), problem(OTHER, "bench/2")])
    return {item.how: item.benchmark for item in bench.matches(problem(text, "mine"), prompt)}


def test_the_same_program_under_other_names():
    assert RENAMED != BENCH
    assert reference_digest(RENAMED) == reference_digest(BENCH)
    assert hows(RENAMED)["reference"] == "bench/1"
    assert reference_digest(BENCH.replace("gelu", "relu")) != reference_digest(BENCH)
    assert reference_digest(BENCH.replace("dim=1", "dim=0")) != reference_digest(BENCH)


def test_the_same_work_written_anew():
    found = hows(REWRITTEN)
    assert found["shapes and operators"] == "bench/1"
    assert "reference" not in found
    other = shapes_and_operators(problem(REWRITTEN.replace("50 + 50", "51 + 50")))
    assert other not in (None, shapes_and_operators(problem(BENCH)))


def test_a_prompt_that_holds_a_benchmarks_reference():
    plain = OTHER.replace("cumsum(a * b, dim=-1).relu()", "matmul(a, b)")
    assert hows(plain) == {}
    assert hows(plain, f"Optimise this:\n{BENCH}") == {"prompt": "bench/1"}


@pytest.mark.parametrize(
    "text",
    [
        OTHER.replace("a * b", "a - b").replace("cumsum", "logsumexp").replace("128", "64"),
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.tanh(x)\n\n\ndef get_inputs():\n    return [torch.rand(4)]\n",
    ],
)
def test_another_problem_of_the_same_kind_is_no_contamination(text):
    assert hows(text) == {}


def test_source_that_cannot_be_parsed_is_compared_as_text():
    deep = "x = " + "-" * 40_000 + "1"
    assert reference_digest(deep) == reference_digest(f"{deep}\n\n")
    assert canonical("def (") == "def ("


def test_contaminated_rows_are_left_out_and_reported(tmp_path):
    bench, run = tmp_path / "bench.py", tmp_path / "run"
    bench.write_text(BENCH)
    run.mkdir()
    rows = [coldstart(uuid=1, original_python_code=RENAMED), coldstart(uuid=2)]
    import_coldstart(rows, run, "a")
    words = ["data", "export", str(run), "--format", "sft", "--to", str(tmp_path / "sft.jsonl")]
    result = CliRunner().invoke(cli, [*words, "--decontaminate", str(bench), "--json"])
    said = json.loads(result.stdout)
    assert (said["rows"], said["contaminated"]) == (1, 5)
    assert {item["how"] for item in said["matches"]} >= {"reference", "shapes and operators"}
    lines = (tmp_path / "sft.matches.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == said["matches"]
    assert {item["problem"] for item in said["matches"]} == {"coldstart/1"}
    assert {item["benchmark"] for item in said["matches"]} == {"bench"}


def test_programs_are_compared_within_their_own_problem():
    seen = SeenPrograms()
    assert seen.is_new("p", "x = 1  # one")
    assert not seen.is_new("p", "x = 1")
    assert seen.is_new("q", "x = 1")
    assert (seen.equal, seen.alike) == (1, 0)


def test_similarity_of_sketches():
    words = [f"word{n}" for n in range(400)]
    whole, most = sketch(" ".join(words)), sketch(" ".join(words[:200]))
    assert similarity(whole, whole) == 1.0
    # 196 of 396 shingles.
    assert similarity(whole, most) == pytest.approx(0.495, abs=0.2)
    assert similarity(whole, sketch("else entirely and nothing in common at all")) < 0.05
