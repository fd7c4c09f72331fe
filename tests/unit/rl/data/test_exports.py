"""Runs become training rows, and conversations of other projects become runs."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests import sample_reports as reports
from tests.unit.loop.test_rollout import PROBLEM, numbered, play
from tilewright.cli.main import cli
from tilewright.loop.prompts.opening import opening
from tilewright.loop.run_state import lines_of
from tilewright.loop.table_input import RowWriter, read_rows
from tilewright.problems.loader import find_problem
from tilewright.records import Problem
from tilewright.records.event_log import read_events
from tilewright.reports.turn_view import Turns
from tilewright.rl.data.exports import ExportPlan, Selection, export
from tilewright.rl.data.imports import import_rows

MODULE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
"""


def a_run(folder):
    folder.mkdir()
    script = (reports.incorrect(), reports.unjudged(), reports.correct())
    play(
        folder,
        lambda _, ask: f"<think>why</think>answer {ask.turn}\n{numbered(ask.turn)}",
        script=script,
    )
    return folder


def exported(folder, kind, **more):
    target = folder.parent / f"{folder.name}-{kind}.jsonl"
    left_out = []
    done = export(
        ExportPlan(sources=(str(folder),), target=target, format=kind, **more), left_out.append
    )
    assert not left_out
    assert done.rows == len(lines_of(target))
    return [json.loads(line) for line in lines_of(target)]


def import_coldstart(rows, folder, name):
    skipped = []
    placed = ((f"{name}[{number}]", row) for number, row in enumerate(rows))
    done = import_rows(placed, folder, name, "drkernel-coldstart", skipped.append)
    return done.turns, skipped


def coldstart(rounds=5, **more):
    messages = []
    for number in range(rounds):
        messages.append({"role": "user", "content": f"ask {number}"})
        messages.append({"role": "assistant", "content": f"answer {number}"})
    row = {"uuid": 7, "entry_point": "Model", "original_python_code": MODULE, "num_rounds": rounds}
    return {**row, "messages": messages, **more}


def test_a_turn_row_has_prompt_reply_and_every_reward(tmp_path):
    rows = exported(a_run(tmp_path / "run"), "turns")
    assert [row["verdict"] for row in rows] == ["incorrect", "unjudged", "correct"]
    assert rows[0]["prompt"] == [{"role": "user", "content": opening(PROBLEM, None)}]
    # What was not judged is shown to nobody, and has no reward.
    assert len(rows[2]["prompt"]) == 3
    assert set(rows[1]["rewards"].values()) == {None}
    assert rows[2]["rewards"]["tilewright"] == pytest.approx(2.36)
    assert rows[0]["completion"][0]["content"].startswith("<think>why</think>answer 0")


def test_a_row_of_a_trajectory_is_one_conversation(tmp_path):
    (row,) = exported(a_run(tmp_path / "run"), "sft")
    roles = [item["role"] for item in row["messages"]]
    # Of the three the second could not be judged, so the last prompt did not show it.
    assert roles == ["user", "assistant"] * 2
    assert "why" not in row["messages"][1]["content"]
    assert [item["weight"] for item in row["messages"]] == [0, 1, 0, 1]
    assert [item["turn"] for item in row["turns"]] == [0, 2]


def test_unjudged_turns_are_exported_only_on_request(tmp_path):
    run = a_run(tmp_path / "run")
    (row,) = exported(run, "sft", choice=Selection(verdicts=("unjudged",)))
    assert [item["weight"] for item in row["messages"]] == [0, 0, 0, 1]


def test_each_turn_is_exported_once_in_its_own_context(tmp_path):
    (tmp_path / "run").mkdir()
    play(
        tmp_path / "run",
        lambda _, ask: f"answer {ask.turn}\n{numbered(ask.turn)}",
        "loop.options={context: last_w, w: 1}",
        script=(reports.correct(), reports.incorrect(), reports.correct()),
    )
    rows = exported(tmp_path / "run", "sft")
    # The last prompt shows the second turn alone, which itself had seen the first.
    weights = [[item["weight"] for item in row["messages"]] for row in rows]
    assert weights == [[0, 1, 0, 1], [0, 0, 0, 1]]
    (row,) = exported(tmp_path / "run", "sft", choice=Selection(verdicts=("incorrect",)))
    assert [item["weight"] for item in row["messages"]] == [0, 0, 0, 1]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_are_written_and_filtered(tmp_path, suffix):
    run, target = a_run(tmp_path / "run"), tmp_path / f"rows{suffix}"
    words = ["data", "export", str(run), "--to", str(target), "--verdict", "correct"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    if suffix == ".jsonl":
        (row,) = [json.loads(line) for line in target.read_text().splitlines()]
    else:
        from pyarrow import parquet

        (row,) = parquet.read_table(target).to_pylist()
    assert row["verdict"] == "correct"


@pytest.mark.parametrize(
    "words", [["--to", "rows.csv"], ["--to", "x.jsonl", "--format", "rl", "--verdict", "correct"]]
)
def test_an_invalid_export_is_refused(tmp_path, words):
    result = CliRunner().invoke(cli, ["data", "export", str(a_run(tmp_path / "run")), *words])
    assert result.exit_code == 2


def test_conversations_become_a_run_without_a_verdict(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    count, skipped = import_coldstart([coldstart()], run, "coldstart.parquet")
    assert (count, skipped) == (5, [])
    rows = exported(tmp_path / "run", "turns")
    assert [row["verdict"] for row in rows] == [None] * 5
    assert [row["completion"][0]["content"] for row in rows] == [f"answer {n}" for n in range(5)]
    # Their words, not ours: the opening and all that follows.
    said = [item["content"] for item in rows[2]["prompt"]]
    assert said == ["ask 0", "answer 0", "ask 1", "answer 1", "ask 2"]
    assert len(list(read_events(run))) == 11
    turns = Turns(run)
    assert [row["verdict"] for row in turns.rows] == ["propose"] * 5
    assert [item["text"] for item in turns.whole(1)["prompt"]] == said[:3]


@pytest.mark.parametrize(
    "row",
    [
        {},
        coldstart(messages=[{"role": "assistant", "content": "x"}]),
        coldstart(original_python_code="def ("),
        coldstart(messages=None),
    ],
)
def test_an_unreadable_row_is_named_and_the_rest_is_imported(tmp_path, row):
    count, skipped = import_coldstart([row, coldstart()], tmp_path, "some.parquet")
    assert count == 5
    assert len(skipped) == 1
    assert skipped[0].startswith("some.parquet[0]: ")


def test_the_import_command_reads_parquet(tmp_path):
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([coldstart(), coldstart(uuid=8)]), path)
    words = ["data", "import", str(path), "--out", str(tmp_path / "runs")]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    (run,) = (tmp_path / "runs").iterdir()
    assert len(Turns(run).rows) == 10


def test_a_damaged_file_is_named_and_the_next_is_read(tmp_path):
    import pyarrow
    from pyarrow import parquet

    whole, half, runs = tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "runs"
    parquet.write_table(pyarrow.Table.from_pylist([coldstart()]), whole)
    half.write_bytes(whole.read_bytes()[:-20])
    words = ["data", "import", str(half), str(whole), "--out", str(runs), "--json"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0
    assert f"left out: {half}: not parquet" in result.stderr
    assert json.loads(result.stdout)["left_out"] == 1
    assert CliRunner().invoke(cli, ["data", "import", str(half), "--out", str(runs)]).exit_code == 6
    assert len(list(runs.iterdir())) == 1


def broken_off(path):
    with RowWriter(path, {"n": "int64"}) as writer:
        writer.write({"n": 1})
        raise RuntimeError


def test_a_file_is_written_completely_or_not_at_all(tmp_path):
    for name in ("a.jsonl", "a.parquet", "folder"):
        with pytest.raises(RuntimeError):
            broken_off(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_row_that_cannot_be_written_is_named(tmp_path, suffix):
    left_out = []
    path = tmp_path / f"a{suffix}"
    with RowWriter(path, {"id": "string", "n": "int64"}, left_out.append) as writer:
        for row in ({"id": "one", "n": 1}, {"id": "two", "n": object()}, {"id": "three", "n": 3}):
            writer.write(row, row["id"])
    assert writer.count == 2
    assert [row["id"] for _, row in read_rows(path, pytest.fail)] == ["one", "three"]
    assert len(left_out) == 1
    assert left_out[0].startswith("two: ")


def test_nan_and_infinity_are_read_as_none(tmp_path):
    import pyarrow
    from pyarrow import parquet

    rows = [{"s": float("nan"), "in": {"deep": [float("inf"), 1.0]}}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"s": NaN, "in": {"deep": [Infinity, 1.0]}}\n')
    for name in ("a.parquet", "a.jsonl"):
        ((_, row),) = read_rows(tmp_path / name, pytest.fail)
        assert row == {"s": None, "in": {"deep": [None, 1.0]}}


def test_importing_a_missing_file_has_exit_code_2():
    assert CliRunner().invoke(cli, ["data", "import", "nowhere.parquet"]).exit_code == 2


def rl_row(**extra):
    return {
        "data_source": "cuda_llm",
        "prompt": [{"role": "user", "content": "Write a kernel."}],
        "ability": "kernel_optimization",
        "reward_model": {"ground_truth": MODULE, "style": "rule"},
        "extra_info": {"entry_point": "Model", "level": 1, "module_name": "m", "ops": "[]",
                       "original_prompt": "p", "repo_name": "r", "type": "t", "uuid": 3, **extra},
    }  # fmt: skip


def test_prompts_become_problems_and_rows_for_trl_and_verl(tmp_path):
    path = tmp_path / "rl.jsonl"
    rows = [rl_row(), rl_row(uuid=4), {"prompt": 1}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"half')
    words = ["data", "import", str(path), "--format", "drkernel-rl", "--out", str(tmp_path / "r")]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0
    assert f"left out: {path}:3: the field `" in result.output
    assert f"left out: {path}:4: cut off, not JSON" in result.output
    (run,) = (tmp_path / "r").iterdir()
    assert exported(run, "drkernel-rl") == rows[:2]
    found = exported(run, "rl")
    assert [item["prompt"] for item in found] == [rows[0]["prompt"]] * 2
    assert Problem.from_json(found[1]["problem"]).id == "rl/4"


def test_problems_of_an_address_become_prompts(tmp_path):
    target = tmp_path / "rl.parquet"
    words = ["data", "export", "softmax", "--format", "rl", "--to", str(target), "--json"]
    result = CliRunner().invoke(cli, [*words, "--language", "triton"])
    assert json.loads(result.stdout)["rows"] == 1
    from pyarrow import parquet

    (row,) = parquet.read_table(target).to_pylist()
    assert row["prompt"] == [{"role": "user", "content": opening(PROBLEM, "triton")}]


def test_a_format_without_functions_names_the_function_problems(tmp_path):
    words = [
        "data",
        "export",
        "softmax",
        "--format",
        "drkernel-rl",
        "--to",
        str(tmp_path / "a.jsonl"),
    ]
    result = CliRunner().invoke(cli, words)
    assert "left out: bundled/softmax: the format holds problems with a class" in result.output
    assert (tmp_path / "a.jsonl").read_text() == ""


def test_runs_are_exported_in_the_cold_start_format(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    run = tmp_path / "run"
    run.mkdir()
    problem = find_problem(str(path))
    script = (reports.incorrect(), reports.correct())

    def write(_, ask):
        return f"```python\nclass ModelNew:\n    turn = {ask.turn}\n```"

    play(run, write, "loop.turns=2", script=script, problem=problem)
    (row,) = exported(run, "drkernel-coldstart")
    assert [item["role"] for item in row["messages"]] == ["user", "assistant"] * 2
    assert (row["num_rounds"], row["best_round"], row["final_speedup"]) == (2, 2, 1.42)
    assert row["original_python_code"] == MODULE


def test_one_name_for_two_problems_and_one_problem_twice(tmp_path):
    other = MODULE.replace("x + 1", "x + 2")
    rows = [coldstart(), coldstart(), coldstart(original_python_code=other)]
    count, skipped = import_coldstart(rows, tmp_path, "a")
    assert (count, skipped) == (15, [])
    found = [(row["problem"], row["sample"]) for row in exported(tmp_path, "sft")]
    assert found == [("coldstart/7", 0), ("coldstart/7", 1), ("coldstart/7-2", 0)]
    assert [row["uuid"] for row in exported(tmp_path, "drkernel-coldstart")] == [7, 7, 7]


def test_a_damaged_line_of_a_log_is_named_and_the_rest_is_exported(tmp_path):
    run = a_run(tmp_path / "run")
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    told = [number for number, line in enumerate(lines) if b'"turn_finished"' in line]
    lines[told[0]] = b'{"event":"told", half\n'
    (run / "events.jsonl").write_bytes(b"".join(lines) + b'{"event":')
    target, left_out = tmp_path / "rows.jsonl", []
    done = export(ExportPlan(sources=(str(run),), target=target), left_out.append)
    assert (done.rows, done.left_out) == (2, 1)
    assert left_out[0].startswith(f"{run / 'events.jsonl'}:{told[0] + 1}: damaged")


@pytest.mark.parametrize(
    ("choice", "turns"),
    [
        (Selection(), [0, 1, 2]),
        (Selection(verdicts=("incorrect", "unjudged")), [0, 1]),
        (Selection(least_speedup=1.3), [2]),
        (Selection(least_speedup=1.4), []),
        (Selection(with_labels=("library_call",)), [2]),
        (Selection(without=("library_call",)), [0, 1]),
    ],
)
def test_turns_are_chosen(tmp_path, choice, turns):
    rows = exported(a_run(tmp_path / "run"), "turns", choice=choice)
    assert [row["turn"] for row in rows] == turns


def test_repeated_programs_are_left_out(tmp_path):
    run, target = tmp_path / "run", tmp_path / "rows.jsonl"
    run.mkdir()
    steps = "\n".join(f"    y{n} = x * {n} + y{n - 1}" for n in range(1, 30))
    body = f"def softmax(x):\n    y0 = 0\n{steps}\n    return y29\n"
    said = [
        body,
        f"# another comment\n{body}",
        body.replace("x * 7 ", "x * 8 "),
        "def softmax(x): 1",
    ]
    play(run, lambda _, ask: f"```python\n{said[ask.turn]}```", "loop.turns=4")
    found = {}
    for kind in ("off", "exact", "near"):
        found[kind] = export(
            ExportPlan(sources=(str(run),), target=target, dedupe=kind), pytest.fail
        )
    assert [found[kind].rows for kind in found] == [4, 3, 2]
    assert (found["near"].repeated, found["near"].nearly_repeated) == (1, 1)


def test_problems_are_held_out_whole_and_by_their_reference(tmp_path):
    rows = [
        coldstart(uuid=n, original_python_code=MODULE.replace("+ 1", f"+ {n // 2}"))
        for n in range(80)
    ]
    import_coldstart(rows, tmp_path, "a")
    target = tmp_path / "sft.jsonl"
    words = ["data", "export", str(tmp_path), "--format", "sft", "--to", str(target), "--held-out"]
    assert CliRunner().invoke(cli, [*words, "0.25"]).exit_code == 0
    aside = [json.loads(line)["problem"] for line in lines_of(tmp_path / "sft.held-out.jsonl")]
    kept = [json.loads(line)["problem"] for line in lines_of(target)]
    assert len(kept) + len(aside) == 80
    assert 4 <= len(aside) <= 40
    numbers = {int(name.rpartition("/")[2]) // 2 for name in aside}
    assert not numbers & {int(name.rpartition("/")[2]) // 2 for name in kept}


def test_a_folder_is_a_data_set(tmp_path):
    import datasets

    target = tmp_path / "set"
    words = ["data", "export", str(a_run(tmp_path / "run")), "--to", str(target)]
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert datasets.load_from_disk(str(target))["verdict"] == ["incorrect", "unjudged", "correct"]
