"""The numbers of a report: every problem counts, and no unknown time does."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.reports.test_html_report import a_run, turns
from tilewright.records.events import Ask, EvalSummary, Turn
from tilewright.reports.csv_markdown import as_markdown
from tilewright.reports.html_report import document, kept
from tilewright.reports.loader import MAX_WHOLE_REPORTS, chosen, gather, read_run


def test_a_problem_without_a_candidate_counts_as_not_correct(tmp_path):
    every = [f"kernelbench/level{1 + n % 3}-{n}" for n in range(10)]
    found = {}
    for name, count in (("all", 10), ("one", 1)):
        made = turns(count, verdict="correct", speedup=2.0, low=1.9, high=2.1)
        run = a_run(tmp_path / name, made, name=name)
        (run / "problems.jsonl").write_text("".join(f'{{"id": "{item}"}}\n' for item in every))
        (run / "candidates.jsonl").write_text("{}\n" * count)
        found[name] = run
    gathered = gather(list(found.values()))
    few = gathered.runs[1].summary["protocols"]["strict"]
    assert (few["judged"], few["unanswered"], few["problems"], few["correct"]) == (1, 9, 10, 1)
    assert next(item["fast_p"] for item in few["fast_p"] if item["p"] == 1) == 0.1
    assert (few["pass_at"], few["fast_at"]) == ({"1": 0.1}, {"1": 0.1})
    assert few["groups"]["level3"]["correct"] == 0
    assert few["verdicts"] == {"correct": 1}
    assert "| one | strict | 1 | 9 | 10 problems | 10.0% | 10.0% | " in as_markdown(gathered, "t")
    # Of what is still to be judged nobody knows.
    asks = [json.dumps({"ask": {"problem": item}}) + "\n" for item in every[:4]]
    (found["one"] / "candidates.jsonl").write_text("".join(asks))
    run = gather([found["one"]]).runs[0]
    assert (run.left, run.summary["unanswered"]) == (3, 6)


def test_untimed_correct_candidates_are_not_reported_as_slow(tmp_path):
    made = turns(6, verdict="correct", speedup=None, low=None, high=None)
    gathered = gather([a_run(tmp_path / "run", [*made, *turns(12)[10:]], name="somebody")])
    numbers = gathered.runs[0].summary["protocols"]["strict"]
    assert (numbers["correct"], numbers["timed"], numbers["fast_p"]) == (6, 0, [])
    assert numbers["amsr"] is numbers["mean_with_zeros"] is None
    text = as_markdown(gathered, "t")
    assert "| somebody | strict | 7 | 0 | 7 problems | 85.7% |  |  |  |  |" in text
    assert "last turn of each of 7 trajectories: correct 57.1%\n" in text


def test_the_slowest_and_fastest_candidates_arekept_whole(tmp_path):
    speeds = {700: 0.001, 701: 55.0}
    made = [
        Turn(
            ask=Ask(id=f"p-{n}#0", problem=f"p-{n}"),
            judgements=(
                EvalSummary(
                    protocol="strict",
                    verdict="correct",
                    speedup=speeds.get(n, 1.0),
                    report=f"reports/{n}.json",
                ),
            ),
        )
        for n in range(1000)
    ]
    refused = [
        turn.model_copy(
            update={"judgements": (turn.judgements[0].model_copy(update={"verdict": "rejected"}),)}
        )
        for turn in made
    ]
    one, two = a_run(tmp_path / "1", refused, name="1"), a_run(tmp_path / "2", made, name="2")
    runs = [read_run(one), read_run(two)]
    picked = chosen(runs, MAX_WHOLE_REPORTS)
    assert len(picked) == MAX_WHOLE_REPORTS
    assert [sum(number == n for number, *_ in picked) for n in (0, 1)] == [150, 150]
    assert {"p-700#0", "p-701#0"} < {turn.ask.id for number, turn, _ in picked if number == 1}
    shown = {f"{turn.ask.id}/strict" for number, turn, _ in picked if number == 1}
    assert len(kept(runs[1], shown, 500)) <= 500


def test_learning_curves_and_explained_deviance_are_in_the_page(tmp_path):
    made = [
        turn.model_copy(update={"ask": turn.ask.model_copy(update={"turn": n % 2})})
        for n, turn in enumerate(turns(12))
    ]
    one, two = a_run(tmp_path / "1", made, name="1"), a_run(tmp_path / "2", turns(12), name="2")
    shown = document(gather([one, two]), "t")
    assert [row["turn"] for row in shown["runs"][0]["curves"]] == [1, 2]
    assert set(shown["explained_by_run"]) == {"strict", "official"}
    assert all(0 <= part <= 1 for part in shown["explained_by_run"].values())
    text = as_markdown(gather([a_flip(tmp_path / "3", "3"), a_flip(tmp_path / "4", "4")]), "t")
    assert "| 3: a#0 | official: correct, strict: rejected |  | input_mutation |" in text


def a_flip(folder: Path, name: str) -> Path:
    judgements = (
        EvalSummary(protocol="official", verdict="correct", speedup=9.0),
        EvalSummary(protocol="strict", verdict="rejected", reason="input_mutation"),
    )
    return a_run(folder, [Turn(ask=Ask(id="a#0", problem="a"), judgements=judgements)], name=name)
