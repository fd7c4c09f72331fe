"""The report page for a newcomer: sentences, headings, commands, terms and a candidate's detail."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests import sample_reports
from tests.browser.test_page import BROWSER, DRIVER, FASTER, many, opened
from tests.unit.reports.test_html_report import a_run, turns, with_report
from tilewright.records.events import Ask, EvalSummary, Turn
from tilewright.records.run_folder import write_report
from tilewright.reports.html_report import document, page, page_of_eval
from tilewright.reports.loader import gather

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
LIGHT = {"limit": "memory", "share": 0.5, "flops_per_s": 0, "bytes_per_s": 1.0}


def texts(shown: Any, selector: str) -> list[str]:
    return [item.text for item in shown.find_elements("css selector", selector)]


def test_headings_and_sentences_are_plain(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    heads = texts(shown, "#headline th")
    assert {"fast_1, sure", "mean speed-up, failures as 0"} <= set(heads)
    sure = next(
        item for item in shown.find_elements("css selector", "th.term") if "sure" in item.text
    )
    assert "whole confidence interval lies above p" in sure.get_attribute("title")
    said = texts(shown, "#headline p")
    assert any(text.startswith("By the rules of Dr. Kernel (arXiv 2602.05885)") for text in said)
    # No two tables stand next to each other without a sentence between them.
    script = "return document.querySelectorAll('#headline .wide + .wide').length"
    assert shown.execute_script(script) == 0
    grouped = texts(shown, "#groups p")
    assert grouped[0].startswith("Knowing the group explains 17.8 % (one, strict)")
    head, cell = (shown.find_element("css selector", f"#rows {part}") for part in ("th.n", "td.n"))
    right = [item.rect["x"] + item.rect["width"] for item in (head, cell)]
    assert right[0] == pytest.approx(right[1], abs=1)
    assert head.value_of_css_property("text-align") == "right"


def test_the_command_names_all_runs_and_options(browser, tmp_path):
    runs = [a_run(tmp_path / name, turns(6), name=name) for name in ("one", "two")]
    text = page(document(gather(runs, full=True), "A title", "out"))
    about = opened(browser, text, tmp_path).find_element("id", "about").text
    command = f"tilewright report {runs[0]} {runs[1]} --title 'A title' --out "
    assert command in about
    assert about.endswith("/out --all-candidates")


def test_an_id_does_not_break_before_its_sample(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    parts = texts(shown, "#rows button.row:first-child .part")
    assert parts[:3] == ["one:", "kernelbench/", "level1-0#0"]


def test_a_single_candidate_is_seen_in_the_distribution(browser, tmp_path):
    made = [Turn(ask=Ask(id="p#0", problem="p"), judgements=(FASTER,))]
    run = a_run(tmp_path / "run", made, protocols=("strict",))
    shown = opened(browser, page(document(gather([run]), "t")), tmp_path)
    line = "#curves svg[aria-label^='Distribution'] polyline"
    points = shown.find_element("css selector", line).get_attribute("points").split()
    assert [point.split(",")[1] for point in points] == ["235", "235", "20", "20"]


def test_the_page_of_a_run_of_eval_has_its_candidate_alone(browser, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    write_report(run, sample_reports.correct())
    shown = opened(browser, page_of_eval(run), tmp_path)
    for name in ("headline", "curves", "kinds", "diff"):
        assert not shown.find_element("id", name).is_displayed()
    assert shown.find_element("id", "sentence").text.startswith("1 candidate for 1 problem")
    assert texts(shown, "#rows .detail pre.source")


def test_a_link_opens_its_candidate(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    buttons = shown.find_elements("css selector", "#rows button.row")
    buttons[5].click()
    link = shown.current_url
    assert "#0%2Fkernelbench%2Flevel3-" in link
    buttons[5].click()
    assert "#" not in shown.current_url
    shown.get("about:blank")
    shown.get(link)
    (opens,) = shown.find_elements("css selector", "#rows button[aria-expanded=true]")
    assert shown.find_elements("css selector", "#rows button.row").index(opens) == 5
    # The last candidate is not among the rows that are listed at first.
    last = shown.execute_script("""const run = JSON.parse(data.textContent).runs[1];
      const row = run.rows.at(-1);
      return `1/${row.ask}/${row.judgements.at(-1).protocol}`;""")
    shown.execute_script("location.hash = encodeURIComponent(arguments[0])", last)
    script = """const row = document.getElementById(arguments[0]);
      return Boolean(row && row.nextElementSibling.querySelector('.detail'));"""
    limit = time.monotonic() + 5
    while not shown.execute_script(script, last):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_search_counts_turns_and_names_its_last_measurement(browser, tmp_path):
    made = [
        Turn(ask=Ask(id=f"p#0.{turn}", problem="p", turn=turn), judgements=(item,))
        for turn, item in enumerate((EvalSummary(protocol="strict", verdict="failed"), FASTER))
    ]
    run = a_run(tmp_path / "run", made, protocols=("strict",))
    (run / "winner" / "p").mkdir(parents=True)
    write_report(run / "winner" / "p", sample_reports.correct())
    shown = opened(browser, page(document(gather([run]), "t")), tmp_path)
    sentence = shown.find_element("id", "sentence").text
    assert sentence.startswith(
        "2 turns for 1 problem: 1 is correct; at the last turn of 1 trajectory 1 is correct"
    )
    assert " The winner, measured once more: " in sentence
    assert [text.splitlines()[-1] for text in texts(shown, "#rows td:first-child")] == [
        "turn 1",
        "turn 2",
    ]


def test_points_without_counted_operations_have_a_place_of_their_own(browser, tmp_path):
    made = document(gather([with_report(tmp_path / "run")]), "t")
    (whole,) = made["runs"][0]["whole"].values()
    whole["lights"] = [
        {**LIGHT, "case": "small", "intensity": 0},
        {**LIGHT, "case": "large", "intensity": 0.02},
    ]
    shown = opened(browser, page(made), tmp_path)
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
    names = shown.execute_script(script, "#roofline text")
    assert names[:5] == ["not counted", "0.01", "1", "100", "10,000"]
    places = """return [...document.querySelectorAll('#roofline circle')]
      .map((point) => Number(point.getAttribute('cx')))"""
    uncounted, counted = shown.execute_script(places)
    assert uncounted < 100 < 150 < counted


def test_the_detail_of_a_candidate_adds_to_its_row(browser, tmp_path):
    run = with_report(tmp_path / "run", "def f(): pass")
    shown = opened(browser, page(document(gather([run]), "t")), tmp_path)
    shown.find_element("css selector", "#rows button.row").click()
    detail = shown.find_element("css selector", "#rows .detail").text
    assert "a.py:" in detail
    assert "First wrong input sample: case " in detail
    assert ", variation " in detail
    assert f"tilewright explain {run}/reports/a.json" in detail
    # The row has the message, and the detail does not repeat it.
    assert texts(shown, "#rows .detail pre") == ["def f(): pass"]


def test_two_candidates_of_one_problem_are_compared_first(browser, tmp_path):
    run = with_report(tmp_path / "run", "one")
    made = document(gather([run]), "t")
    rows, whole = made["runs"][0]["rows"], made["runs"][0]["whole"]
    (key,) = whole
    for ask, problem in (("q#0", "q"), ("p#1", "p")):
        rows.append({**rows[0], "ask": ask, "problem": problem})
        whole[f"{ask}/strict"] = {**whole[key], "source": ask}
    shown = opened(browser, page(made), tmp_path)
    lines = [text.strip() for text in texts(shown, "#difference span")]
    assert lines == ["- one", "+ p#1"]


def test_flips_without_a_known_defect_have_no_column_for_it(browser, tmp_path):
    judged = (
        EvalSummary(protocol="strict", verdict="failed", reason="why"),
        EvalSummary(protocol="official", verdict="correct", speedup=2.0),
    )
    made = [Turn(ask=Ask(id="p#0", problem="p"), judgements=judged)]
    shown_document = document(gather([a_run(tmp_path / "run", made)]), "t")
    summary = shown_document["runs"][0]["summary"]
    for item in (*summary["flips"], *summary["flip_kinds"]):
        item["cause"] = ""
    shown = opened(browser, page(shown_document), tmp_path)
    heads = texts(shown, "#flips th")
    assert heads == ["run", "verdicts", "candidates", "candidate", "verdicts", "why"]


def test_the_terms_are_those_of_the_page(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    shown.find_element("css selector", "footer summary").click()
    terms = [text for text in texts(shown, "footer dt") if text]
    assert {"fast_p", "AMSR", "pass@k", "protocol", "unused_kernel"} <= set(terms)
    assert not {"A/A run", "census", "launch gate"} & set(terms)


def test_a_training_on_texts_has_no_empty_tables(browser, tmp_path):
    run = a_run(tmp_path / "run", [], kind="sft", device="none", protocols=("strict",))
    shown = opened(browser, page(document(gather([run]), "t")), tmp_path)
    said = shown.find_element("id", "sentence").text
    assert said == "No step of the training has ended yet."
    seen = [item.text for item in shown.find_elements("css selector", "h2") if item.is_displayed()]
    assert seen == []
