"""The comparison of strategies in a report: all columns, losses, ties, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.reports.test_html_report import a_run
from tests.unit.scoring.test_strategy_table import final, turn_of
from tilewright.cli.main import cli
from tilewright.cli.render import to_text
from tilewright.cli.render_bench import bench_view, turn_text, turns_table
from tilewright.records.events import Ask, Choice, Reply, Turn
from tilewright.reports.csv_markdown import as_markdown
from tilewright.reports.glossary import definitions
from tilewright.reports.html_report import document
from tilewright.reports.loader import gather
from tilewright.reports.strategy_report import (
    COLUMNS,
    chance_text,
    factor_text,
    strategy_files,
)

NAMES = ("fast", "slow", "same")
SEEDS = 3
SPEEDS = {"fast": (4.0, 4.1, 4.2), "slow": (2.0, 2.1, 2.0), "same": (4.1, 4.2, 4.0)}


def without_judgements(sample: int) -> list[Turn]:
    """Return a refused draft, words and a choice: turns that nobody judges."""
    asks = [
        Ask.model_validate({"id": f"p#{sample}.{role}", "problem": "p", "sample": sample} | more)
        for role, more in {
            "draft": {"role": "draft", "turn": 5},
            "say": {"role": "say", "turn": 6},
            "choose": {"role": "choose", "turn": 7, "choices": ("a", "b")},
        }.items()
    ]
    draft, say, choose = (Turn(ask=ask, reply=Reply(text="b")) for ask in asks)
    return [
        draft.model_copy(update={"refused": "the reply has no code"}),
        say,
        choose.model_copy(update={"choice": Choice(taken=1)}),
    ]


def compared(folder: Path, samples: int = SEEDS) -> Path:
    """Write a run of three strategies: one wins, one loses, two are equal as far as known."""
    made = []
    for place, name in enumerate(NAMES):
        for seed in range(samples):
            sample, speed = place * samples + seed, SPEEDS[name][seed]
            made += [turn_of(sample, 0, 1.2), turn_of(sample, 1, 1.1 * speed), final(sample, speed)]
    made += without_judgements(0)
    return a_run(folder, made, protocols=("strict",), strategies=NAMES, samples=samples)


def test_a_comparison_has_a_row_per_strategy_with_all_columns_explained(tmp_path):
    shown = document(gather([compared(tmp_path / "run")]), "t")["runs"][0]["comparison"]
    assert [title for title, _ in shown["columns"]] == [column.title for column in COLUMNS]
    assert all(meaning for title, meaning in shown["columns"][1:])
    row = dict(zip((column.title for column in COLUMNS), shown["row_texts"][0], strict=True))
    assert row["strategy"] == "fast"
    assert row["re-measured best"].startswith("4.10x [")
    assert (row["trajectories"], row["judged candidates"]) == ("3", "2.0")
    assert (row["drafts refused"], row["wrong winners"]) == ("0.3", "0%")
    assert row["claimed over re-measured"] == "1.100"


def test_losses_and_ties_are_shown_like_wins(tmp_path):
    shown = document(gather([compared(tmp_path / "run")]), "t")["runs"][0]["comparison"]
    assert shown["standings"] == [
        ["fast", "slow", "none", "same"],
        ["slow", "none", "fast, same", "none"],
        ["same", "slow", "none", "fast"],
    ]
    better = {tuple(row[:2]): row[4] for row in shown["difference_texts"]}
    assert better[("fast", "same")] == "not resolved"
    assert better[("slow", "same")] == "same"


def test_one_trajectory_has_no_interval(tmp_path):
    shown = document(gather([compared(tmp_path / "run", 1)]), "t")["runs"][0]["comparison"]
    assert shown["row_texts"][0][2] == "4.00x, no interval"
    assert {row[4] for row in shown["difference_texts"]} == {"not resolved"}
    assert factor_text(2.0, 1.5, 2.5) == "2.00x [1.50, 2.50]"


def test_a_run_of_one_strategy_has_no_comparison(tmp_path):
    run = a_run(tmp_path / "run", [turn_of(0, 0, 2.0)], protocols=("strict",), strategies=("a",))
    gathered = gather([run])
    assert document(gathered, "t")["runs"][0]["comparison"] is None
    assert "Strategies" not in as_markdown(gathered, "t")
    assert strategy_files((item.name, item.comparison) for item in gathered.runs) == {}


def test_the_page_says_which_trials_its_speedups_come_from(tmp_path):
    without = [turn_of(sample, 0, 2.0) for sample in range(len(NAMES))]
    fields = {"protocols": ("strict",), "strategies": NAMES, "samples": 1}
    selected = gather([a_run(tmp_path / "a", without, **fields)])
    assert "No candidate was measured again" in as_markdown(selected, "t")
    wrong = [*without, *(final(sample, None) for sample in range(len(NAMES)))]
    for name, made in {"b": wrong, "c": [*without, final(0, 2.0)]}.items():
        measured = gather([a_run(tmp_path / name, made, **fields)])
        assert "Those trials selected nothing" in as_markdown(measured, "t")


def test_markdown_shows_the_comparison_and_what_chance_alone_would_show(tmp_path):
    text = as_markdown(gather([compared(tmp_path / "run")]), "t")
    assert "## Strategies of somebody" in text
    assert "| slow | same | 3 | " in text
    assert "| slow | 3.500x | 1.878x |" in text
    assert "| slow | none | fast, same | none |" in text
    assert "- wrong winners: Share of trajectories" in text
    assert "about 0.2 of the 3 intervals" in text
    assert chance_text(1).startswith("The interval")


def test_the_command_writes_the_numbers_of_the_comparison(tmp_path):
    run = compared(tmp_path / "run")
    done = CliRunner().invoke(cli, ["report", str(run)])
    assert done.exit_code == 0
    assert "strategy_regret.csv" in done.stderr
    rows = list(csv.DictReader(io.StringIO((run / "strategies.csv").read_text())))
    assert [row["strategy"] for row in rows] == list(NAMES)
    assert float(rows[0]["speedup"]) == pytest.approx(4.0992, abs=1e-3)
    text = (run / "strategy_differences.csv").read_text()
    pairs = list(csv.DictReader(io.StringIO(text)))
    assert [row["better"] for row in pairs] == ["fast", "not resolved", "same"]
    regrets = list(csv.DictReader(io.StringIO((run / "strategy_regret.csv").read_text())))
    assert len(regrets) == 2 * len(NAMES)
    document_ = json.loads((run / "report.json").read_text())
    assert document_["runs"][0]["comparison"]["rows"][0]["strategy"] == "fast"


def test_turns_without_a_verdict_are_no_candidates_and_stop_nothing(tmp_path):
    gathered = gather([compared(tmp_path / "run")])
    run = gathered.runs[0]
    # Each trajectory has two answers; its final trial judges one of them again, and a draft.
    assert run.summary["candidates"] == 2 * SEEDS * len(NAMES) + 1
    draft, say, choose = without_judgements(0)
    assert turn_text(draft) == "p#0.draft: draft, refused (the reply has no code)"
    assert turn_text(say) == "p#0.say: say"
    assert turn_text(choose) == "p#0.choose: choose"
    assert "the reply has no code" in to_text(turns_table([draft, say, choose]))
    view = to_text(bench_view({**run.summary, "strategies": run.comparison}))
    for title in ("re-measured", "drafts", "not resolved", "3 trajectories each"):
        assert title in view


def test_columns_are_terms_of_the_glossary():
    assert [item.title for item in COLUMNS if item.title not in definitions()] == []
