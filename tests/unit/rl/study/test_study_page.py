"""The page of a study is a function of its log."""

from __future__ import annotations

import json
import re

import pytest

from tilewright.errors import RecordError
from tilewright.rl.study.study_config import load_study
from tilewright.rl.study.study_log import read_log, write_log
from tilewright.rl.study.study_page import PAGE, study_pages


def a_log(rejected=(0.0, 0.6), verdicts="synthetic"):
    """Return the log of a study of one seed, whose arms end with these rejected shares."""
    study = load_study("nano-rehearsal.yaml").model_dump(mode="json") | {"verdicts": verdicts}
    ends = {"base": rejected[0], "without-checks": rejected[1], "without-PR-PRS": 0.0}
    figures = lambda end: [{"rejected": 0.1, "coverage": 0.8}, {"rejected": end, "coverage": 1.0}]  # noqa: E731
    return {
        "format": 1,
        "study": study | {"last_steps": 1},
        "versions": {"tilewright": "0.1.0"},
        "device": "synthetic",
        "gate": [
            {
                "name": "correct", "wanted": "0.4 to 0.7", "seen": 0.3, "low": 0.2, "high": 0.4,
                "held": False, "setting": "cold_start.mix.wrong",
            }
        ],
        "arms": {
            name: {
                "0": {
                    "figures": figures(end),
                    "stopped": "",
                    "programs": 96,
                    "best": {"p": 2.0, "q": 8.0},
                    "best_so_far": [1.0, 5.0],
                }
            }
            for name, end in ends.items()
        },
        "reference": {},
        "scaling": {},
        "fresh": {},
        "seconds": {"cold start": 80.0},
    }  # fmt: skip


def row_of(page, statement):
    return next(line for line in page.splitlines() if line.startswith(f"| {statement}"))


def test_a_difference_between_arms_is_in_the_table_of_directions():
    page = study_pages(a_log())[PAGE]
    row = row_of(page, "the hacking ratio rises")
    assert "| 30.0 | 60.0, one seed |" in row
    assert "not resolved" in row


def test_a_stopped_arm_and_a_failing_gate_are_shown():
    log = a_log()
    log["arms"]["base"]["0"] = {
        "figures": [],
        "stopped": "mismatch rejection kept nothing",
        "programs": 0,
        "best": {},
        "best_so_far": [],
    }
    page = study_pages(log)[PAGE]
    assert "mismatch rejection kept nothing" in page
    assert "no figure" in row_of(page, "the hacking ratio rises")
    assert "although 1 lines fail" in page
    assert "| correct | 0.4 to 0.7 | 0.3 | 0.2 to 0.4 | **no** |" in page


def test_the_best_programs_are_summed_up():
    page = study_pages(a_log())[PAGE]
    assert "| base | 0 | 96 | 2 | 4.00x |" in page


def test_fresh_scores_are_shown_with_their_differences():
    row = {
        "fast@1.2": 0.5, "fresh_fast@1.2": 0.4, "differences": 7.0, "median_log": 0.012,
        "most_log": None,
    }  # fmt: skip
    page = study_pages(a_log() | {"fresh": {"base, seed 0": row}})[PAGE]
    assert "| base, seed 0 | 0.5 | 0.4 | 7 | 1.2 % |  |" in page
    assert "Fresh scores" not in study_pages(a_log())[PAGE]


def test_synthetic_figures_say_so_in_text_pictures_and_file_names():
    pages = study_pages(a_log())
    assert "**synthetic**" in pages.pop(PAGE)
    assert pages
    for name, text in pages.items():
        assert name.startswith("synthetic-")
        assert "synthetic verdicts" in text
    real = study_pages(a_log(verdicts="census"))
    assert "synthetic" not in "".join(real[name] for name in real if name != PAGE)
    assert not any(name.startswith("synthetic") for name in real)


def test_every_picture_of_the_page_is_a_file():
    pages = study_pages(a_log())
    assert set(re.findall(r"\]\((.*?)\)", pages[PAGE])) == set(pages) - {PAGE}


def test_a_written_log_gives_the_same_page_byte_for_byte(tmp_path):
    log, path = a_log(), tmp_path / "log.json.gz"
    write_log(path, log)
    assert study_pages(read_log(path)) == study_pages(log)
    first = path.read_bytes()
    write_log(path, json.loads(json.dumps(log)))
    assert path.read_bytes() == first


@pytest.mark.parametrize("content", [b"", b"no gzip", b"\x1f\x8b\x08"])
def test_a_damaged_log_is_refused(tmp_path, content):
    path = tmp_path / "log.json.gz"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="is no log of a study"):
        read_log(path)
    write_log(path, a_log() | {"format": 99})
    with pytest.raises(RecordError, match="format 99"):
        read_log(path)


def test_the_reference_has_as_many_programs_as_the_arm():
    log = a_log()
    log["study"]["reference"] = "base"
    other = {"programs": 90, "best": {"p": 1.0, "q": 4.0}, "pass@16": 0.875}
    log["reference"] = {name: {"0": other} for name in log["arms"]}
    page = study_pages(log)[PAGE]
    assert "the best of as many programs of the arm `base`" in page
    assert "| without-checks | 0 | 96 | 2 | 4.00x | 90 | 2.00x | 0.875 |" in page


def test_test_time_scaling_has_a_table_and_a_chart_over_turns():
    log = a_log()
    log["study"]["scaling"] = {"arm": "base", "turns": 2}
    figures = {"correct": [0.5, 0.75], "fast@1.2": [0.25, 0.5], "speedup": [1.5, 2.0]}
    log["scaling"] = {"vanilla": figures, "top_w": figures}
    pages = study_pages(log)
    assert "| top_w | fast@1.2 | 0.25 | 0.5 |" in pages[PAGE]
    assert "turn, 1 to 2" in pages["synthetic-scaling.svg"]
    assert "synthetic-scaling.svg" not in study_pages(a_log())


def test_the_best_so_far_has_a_chart():
    assert "best speed-up so far" in study_pages(a_log())["synthetic-best.svg"]


def test_the_page_has_the_command_and_the_interval_of_one_more_seed():
    log = a_log()
    one = "tilewright train study nano-rehearsal.yaml --arm base --seed 1 --out DIR"
    assert one in study_pages(log)[PAGE]
    log["study"]["arms"]["base"]["seeds"] = 2
    end = {"figures": [{"rejected": 0.2}]}
    log["arms"]["base"]["1"] = log["arms"]["base"]["0"] | end
    page = study_pages(log)[PAGE]
    assert "--arm base --seed 2" in page
    # The mean of 0 and 0.2, and 12.706 times the deviation, times the root of 1.5.
    assert "| rejected | -2.1 | 2.3 |" in page
