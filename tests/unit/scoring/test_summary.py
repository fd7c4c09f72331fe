"""The numbers of a run: weak problems, unanswered problems, turns without code."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.reports.test_html_report import a_run
from tests.unit.scoring.test_learning_curves import turn
from tilewright.cli.render_bench import bench_view
from tilewright.errors import RecordError
from tilewright.records.events import Ask, Turn
from tilewright.reports.csv_markdown import as_markdown
from tilewright.reports.html_report import document
from tilewright.reports.loader import ANNOTATIONS, gather
from tilewright.scoring.learning_curves import curves
from tilewright.scoring.metrics import Score, amsr, mean_with_zeros
from tilewright.scoring.summary import _numbers, explained_by_run, summary_of


def strict(turns, **more):
    return summary_of(turns, **more)["protocols"]["strict"]


def test_a_later_turn_without_code_does_not_remove_an_answer():
    said = Turn(ask=Ask(id="a.1", problem="a", turn=1, role="say"))
    found = strict([turn("a", 0), said])
    assert (found["problems"], found["correct"]) == (1, 1)


def test_a_weak_problem_without_a_candidate_is_left_out():
    found = strict([turn("a", 0)], weak=["b"], unanswered=["b"])
    assert (found["problems"], found["unanswered"], found["weak_left_out"]) == (1, 0, 1)


def test_unanswered_problems_count_where_all_answered_ones_are_weak(tmp_path):
    found = summary_of([turn("a", 0)], weak=["a"], unanswered=["b"])
    numbers = found["protocols"]["strict"]
    assert (numbers["judged"], numbers["problems"], numbers["correct"]) == (0, 1, 0)
    assert numbers["fast_p"][0]["fast_p"] == 0
    console = Console(width=120)
    with console.capture() as shown:
        console.print(bench_view(found))
    assert "1 candidate for 1 of 2 problems (1 has none): none was judged." in shown.get()
    assert "0 of 0 candidates" in shown.get()
    run = a_run(
        tmp_path / "run", [turn("a", 0)], unsound_problems={"a": ("zeros",)}, protocols=("strict",)
    )
    (run / "problems.jsonl").write_text('{"id": "a"}\n{"id": "b"}\n')
    (run / "candidates.jsonl").write_text("{}\n")
    assert "| strict | 0 | 1 | 1 problem | 0.0% |" in as_markdown(gather([run]), "t")


def test_the_denominator_of_each_share_is_printed():
    sizes = [2] * 7 + [3] * 5
    turns = [
        Turn(
            ask=Ask(id=f"p{n}#{k}", problem=f"p{n}", sample=k),
            judgements=turn(f"p{n}", 0, speedup=2.0).judgements,
        )
        for n, size in enumerate(sizes)
        for k in range(size)
    ]
    lacking = [f"q{n}" for n in range(88)]
    found = summary_of(turns, unanswered=lacking)
    numbers = found["protocols"]["strict"]
    # No sample is invented for a problem without a candidate.
    assert (numbers["judged"], numbers["unanswered"], numbers["problems"]) == (29, 88, 100)
    assert numbers["correct_share"] == numbers["pass_at"]["1"] == pytest.approx(0.12)
    assert numbers["fast_p"][0]["fast_p"] == pytest.approx(0.12)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(bench_view(found))
    assert "29 candidates for 12 of 100 problems (88 have none): 29 are correct" in shown.get()
    assert "29 of 29 candidates" in shown.get()
    said = "100 problems: 29 candidates for 12 of them, and 88 without one, which count as 0"
    assert said in shown.get()


def test_a_problem_counts_once_however_many_candidates_it_has():
    fast = turn("a", 0, speedup=2.0).judgements
    slow = turn("b", 0, speedup=0.5).judgements
    turns = [
        Turn(ask=Ask(id=f"{name}#{k}", problem=name, sample=k), judgements=found)
        for name, size, found in (("a", 1, fast), ("b", 9, slow))
        for k in range(size)
    ]
    numbers = summary_of(turns, unanswered=["c", "d"])["protocols"]["strict"]
    assert numbers["correct_share"] == pytest.approx(2 / 4)
    (one,) = [row for row in numbers["fast_p"] if row["p"] == 1.0]
    assert one["fast_p"] == one["at_least"] == pytest.approx(1 / 4)
    assert numbers["fast_at"]["1"] == pytest.approx(1 / 4)
    assert (numbers["amsr"], numbers["mean_with_zeros"]) == (2 / 4, 2.5 / 4)
    assert numbers["geometric_mean"] == pytest.approx(2**-0.8)


def test_the_run_explains_no_deviance_where_only_a_weak_problem_differs():
    one = [turn("a", 0), turn("b", 0), turn("c", 0, "failed")]
    two = [turn("a", 0, "failed"), turn("b", 0), turn("c", 0, "failed")]
    runs = {"one": one, "two": two}
    assert explained_by_run(runs, ["strict"])["strict"] > 0.05
    assert explained_by_run(runs, ["strict"], ["a"])["strict"] == pytest.approx(0)
    lacking = explained_by_run({"one": one, "two": two[:2]}, ["strict"], ["a"], {"two": ["c"]})
    assert lacking["strict"] == pytest.approx(0)


def test_learning_curves_leave_out_the_same_problems_as_the_headline(tmp_path):
    turns = [turn("a", 0, "failed"), turn("b", 0, "failed"), turn("a", 1, speedup=5.0)]
    turns.append(turn("b", 1, "failed"))
    assert curves(turns)[1]["correct"] == 0.5
    assert (curves(turns, ["a"])[1]["judged"], curves(turns, ["a"])[1]["correct"]) == (1, 0.0)
    published = [turn("a", 0, protocol="official")]
    assert curves(published, ["a"])[0]["judged"] == 1
    # What one of several runs knows to be weak counts in none.
    one = a_run(tmp_path / "1", turns, name="1", protocols=("strict",))
    two = a_run(
        tmp_path / "2", turns, name="2", protocols=("strict",), unsound_problems={"a": ("zeros",)}
    )
    shown = document(gather([one, two]), "t")
    assert [run["curves"][1]["judged"] for run in shown["runs"]] == [1, 1]


def test_the_amsr_lies_in_its_interval_with_untimed_correct_candidates():
    wrong = Score(ok=False)
    groups = [[Score(ok=True), wrong, wrong, wrong], [Score(ok=True, speedup=2.0)]]
    groups.append([Score(ok=True, speedup=2.0)])
    found = _numbers(dict(zip("abc", groups, strict=True)))
    low, high = found["amsr_95"]
    assert found["amsr"] == pytest.approx(4 / 3)
    assert low <= 4 / 3 <= high
    assert _numbers({"a": [Score(ok=True)], "b": groups[1]})["amsr"] == 2.0


def test_a_rejected_candidate_adds_no_speedup():
    rejected = Score(ok=False, speedup=9.0, rejected=True)
    slow = Score(ok=True, speedup=0.5)
    assert (amsr([rejected, slow]), mean_with_zeros([rejected, slow])) == (0.0, 0.25)
    untimed = _numbers({"a": [Score(ok=True)], "b": [rejected]})
    assert (untimed["amsr"], untimed["mean_with_zeros"]) == (None, None)


def test_annotations_must_be_valid_utf8(tmp_path: Path):
    run = a_run(tmp_path / "run", [turn("a", 0)])
    (run / ANNOTATIONS).write_text('"a": "\\ud800"\n')
    with pytest.raises(RecordError, match="UTF-8"):
        gather([run])
