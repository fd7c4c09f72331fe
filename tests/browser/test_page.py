"""The report page in a real browser: desktop, phone, keyboard, dark mode, from disk."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests import sample_reports
from tests.unit.reports.test_html_report import HOSTILE, a_run, turns, with_report
from tilewright.records.events import Ask, EvalSummary, Turn
from tilewright.reports.html_report import document, page
from tilewright.reports.loader import annotate, gather
from tilewright.scoring.report_text import speed_text

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    # selenium leaves its connection to the driver open until it is collected.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)
SLOWER = EvalSummary(protocol="strict", verdict="correct", speedup=0.5, low=0.49, high=0.51)
FASTER = EvalSummary(protocol="strict", verdict="correct", speedup=1.62, low=1.34, high=1.74)
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


def opened(browser: Any, text: str, folder: Path, size: str = "desktop") -> Any:
    """Open a page from disk; it must be ready within a second and say no error."""
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    browser.set_window_size(*SIZES[size])
    browser.get_log("browser")
    browser.get(path.as_uri())
    limit = time.monotonic() + 10
    while browser.execute_script("return document.body.dataset.ready") != "yes":
        assert time.monotonic() < limit, browser.get_log("browser")
        time.sleep(0.02)
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
    return browser


def many(folder: Path) -> str:
    one = a_run(folder / "one", turns(250), name="one")
    two = a_run(folder / "two", turns(120), name="two")
    return page(document(gather([one, two]), "A leaderboard"))


@pytest.mark.parametrize("size", SIZES)
def test_the_page_shows_tables_and_plots_and_fits(browser, tmp_path, size):
    shown = opened(browser, many(tmp_path), tmp_path, size)
    script = "return document.querySelectorAll(arguments[0]).length"
    assert shown.execute_script(script, "#headline .wide:first-of-type tbody tr") == 4
    assert shown.execute_script(script, "#curves polyline") >= 4
    assert shown.execute_script(script, "#rows tbody tr") == 200
    wide = shown.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 1
    assert shown.find_element("id", "count").text == "200 of 740"


def test_the_first_sentence_counts_candidates_problems_and_those_without(browser, tmp_path):
    """29 candidates on 12 of 100 problems, and every share says of what."""
    made = [
        Turn(
            ask=Ask(id=f"kernelbench/level1-{n}#{k}", problem=f"kernelbench/level1-{n}", sample=k),
            judgements=(FASTER if k else SLOWER,),
        )
        for n, size in enumerate([2] * 7 + [3] * 5)
        for k in range(size)
    ]
    run = a_run(tmp_path / "20261127-101112-ab12", made, protocols=("strict",))
    base = sample_reports.correct().request.problem
    problems = [
        {"id": f"kernelbench/level1-{n}", "description": f"Operator {n}."} for n in range(100)
    ]
    lines = [f"{base.model_copy(update=item).to_json()}\n" for item in problems]
    (run / "problems.jsonl").write_text("".join(lines))
    (run / "candidates.jsonl").write_text("{}\n" * 29)
    shown = opened(browser, page(document(gather([run]), "t")), tmp_path)
    assert shown.find_element("id", "sentence").text == (
        "29 candidates for 12 of 100 problems (88 have none): 29 are correct, 17 are measurably "
        "faster, the best 1.62x [1.34, 1.74] (kernelbench/level1-0)."
    )
    about = shown.find_element("id", "about").text
    assert "begun 2026-11-27 10:11 UTC" in about
    assert "tilewright report" in about
    heads, cells = (
        [item.text for item in shown.find_elements("css selector", f"#headline {part}")]
        for part in ("table:first-of-type th", "table:first-of-type tbody tr:first-child td")
    )
    row = dict(zip(heads, cells, strict=False))
    assert (row["judged"], row["without a candidate"], row["shares of"]) == (
        "29",
        "88",
        "100 problems",
    )
    assert row["correct"] == "12.0 %"
    said = shown.find_element("id", "headline").text
    assert "each problem counts once, with the share or mean of its own candidates" in said
    assert "A problem without a candidate counts as 0." in said
    tips = shown.find_elements("css selector", "#headline th.term")
    assert {"fast_1", "AMSR"} <= {tip.text for tip in tips}
    assert all(tip.get_attribute("title") for tip in tips)
    first = shown.find_element("css selector", "#rows tbody td")
    assert first.text.splitlines() == ["kernelbench/level1-0#0", "Operator 0"]


@pytest.mark.parametrize("size", SIZES)
def test_an_id_breaks_between_its_parts_alone(browser, tmp_path, size):
    shown = opened(browser, many(tmp_path), tmp_path, size)
    script = "return [...document.querySelectorAll('.part')].map((e) => e.getClientRects().length)"
    assert set(shown.execute_script(script)) == {1}


def test_rows_are_filtered_ordered_and_opened_by_keyboard(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    shown = opened(browser, many(tmp_path), tmp_path)
    shown.find_element("id", "verdict").send_keys("rejected")
    assert shown.find_element("id", "count").text.endswith(f"of {42 * 2 + 20 * 2}")
    shown.find_element("id", "find").send_keys("level1-3#0")
    first = shown.find_element("css selector", "#rows button.row")
    assert first.text == "one: kernelbench/level1-3#0"
    first.send_keys(Keys.ENTER)
    assert first.get_attribute("aria-expanded") == "true"
    detail = shown.find_element("css selector", "#rows .detail").text
    assert detail == "It has no report. reason 0"
    first.send_keys(Keys.ENTER)
    assert shown.find_elements("css selector", "#rows .detail") == []


def test_every_control_is_reached_by_tab_and_has_a_name(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    nameless = shown.execute_script(
        "return [...document.querySelectorAll('select, input, button')].filter(e => e.offsetParent"
        " && !(e.labels && e.labels.length) && !e.textContent.trim()).length"
    )
    assert nameless == 0
    assert shown.execute_script("return document.querySelectorAll('[tabindex=\"-1\"]').length") == 0


def test_dark_mode_is_readable(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    wanted = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    ratio = shown.execute_script(CONTRAST)
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert ratio["dark"]
    assert ratio["least"] >= 4.5, ratio


CONTRAST = """
const light = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(Number).map(x => x / 255)
  .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const paper = light(getComputedStyle(document.body).backgroundColor);
const inks = ["h1", "p", "th", "td", ".verdict.correct", ".verdict.incorrect", ".verdict.rejected",
  ".verdict.failed", ".verdict.unjudged", "button.row"]
  .map(s => document.querySelector(s)).filter(Boolean)
  .map(e => light(getComputedStyle(e).color));
const ratios = inks.map(i => (Math.max(i, paper) + 0.05) / (Math.min(i, paper) + 0.05));
return { least: Math.min(...ratios), dark: paper < 0.2 };
"""


def test_candidate_text_is_shown_and_not_executed(browser, tmp_path):
    shown = opened(
        browser, page(document(gather([with_report(tmp_path / "run")]), "hostile")), tmp_path
    )
    shown.find_element("css selector", "#rows button.row").click()
    text = shown.find_element("css selector", "#rows .detail pre").text
    assert "document.title='owned'" in text
    assert HOSTILE.split("\u2028")[0].strip() in text
    assert shown.title == "hostile"


def test_a_leaderboard_names_runs_and_shows_notes_with_verdicts(browser, tmp_path):
    one, two = (a_run(tmp_path / name, turns(6), name=name) for name in ("first", "second"))
    annotate([two], "kernelbench/level1-0#0", "zeros \u202egnorw")
    page_ = opened(browser, page(document(gather([one, two]), "t")), tmp_path)
    names = [item.text for item in page_.find_elements("css selector", "#rows button.row")]
    assert "first: kernelbench/level1-0#0" in names
    assert "second: kernelbench/level1-0#0" in names
    page_.find_element("id", "find").send_keys("zeros")
    rows = page_.find_elements("css selector", "#rows tbody tr")
    assert {"second: kernelbench/level1-0#0"} == {
        row.text.partition(" strict")[0].partition(" official")[0] for row in rows
    }
    assert "A person says: zeros \\u202egnorw" in rows[0].text
    said = page_.find_element("id", "headline").text
    assert "Knowing the run explains 0.0 % (strict), 0.0 % (official) of the deviance" in said


def test_untimed_candidates_have_no_speedup_and_turns_have_a_curve(browser, tmp_path):
    untimed = turns(6, verdict="correct", speedup=None, low=None, high=None)
    text = page(document(gather([a_run(tmp_path / "untimed", untimed)]), "t"))
    cells = [
        c.text
        for c in opened(browser, text, tmp_path).find_elements(
            "css selector", "#headline tbody tr:first-child td"
        )
    ]
    assert cells[:5] == ["strict", "6", "0", "6 problems", "100.0 %"]
    assert cells[5:8] == ["", "", ""]
    made = [
        turn.model_copy(update={"ask": turn.ask.model_copy(update={"turn": n % 2})})
        for n, turn in enumerate(turns(12))
    ]
    text = page(document(gather([a_run(tmp_path / "turned", made)]), "t"))
    assert "turn by turn" in opened(browser, text, tmp_path).find_element("id", "headline").text


def test_unanswered_and_unlinted_problems_are_mentioned_where_they_exist(browser, tmp_path):
    some = a_run(
        tmp_path / "some",
        turns(6),
        unsound_problems={"kernelbench/level1-0": ("zeros",)},
        problems_not_linted=2,
    )
    said = [opened(browser, page(document(gather([some]), "t")), tmp_path)]
    parts = [said[0].find_element("id", part).text for part in ("headline", "kinds")]
    assert "without a candidate" not in parts[0]
    assert "\nstrict 1 correct, 1 incorrect" in parts[1]
    assert "1 (2 problems were never linted)\nofficial" in parts[1]
    assert parts[1].count("never linted") == 1

    every = [turn.ask.problem for turn in turns(9)]
    (some / "problems.jsonl").write_text("".join(f'{{"id": "{item}"}}\n' for item in every))
    (some / "candidates.jsonl").write_text("{}\n" * 6)
    text = page(document(gather([some]), "t"))
    table = opened(browser, text, tmp_path).find_element("id", "headline")
    assert "unjudged without a candidate shares of correct" in table.text
    assert [c.text for c in table.find_elements("css selector", "tbody tr:first-child td")][
        3
    ] == "3"


def test_two_sources_are_compared_line_by_line(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    runs = [with_report(tmp_path / str(n), f"first\n{n}\nlast") for n in range(2)]
    shown = opened(browser, page(document(gather(runs[:1]), "one")), tmp_path)
    assert not shown.find_element("id", "diff").is_displayed()
    shown = opened(browser, page(document(gather(runs), "two")), tmp_path)
    lines = shown.find_elements("css selector", "#difference span")
    assert [line.text.strip() for line in lines] == ["first", "- 0", "+ 1", "last"]
    # Two equal sources differ in no line.
    shown.find_element("id", "right").send_keys(Keys.ARROW_UP)
    lines = shown.find_elements("css selector", "#difference span")
    assert [line.text.strip() for line in lines] == ["first", "0", "last"]
    assert {line.get_attribute("class") for line in lines} == {""}


def test_flips_are_counted_by_defect_and_failures_by_kind(browser, tmp_path):
    official = EvalSummary(protocol="official", verdict="correct", speedup=2.0)
    strict = [
        EvalSummary(protocol="strict", verdict="incorrect", code="values", inputs=inputs)
        for inputs in ("nominal", "timed")
    ]
    made = [
        Turn(ask=Ask(id=f"p#{n}", problem="p", sample=n), judgements=(strict[n % 2], official))
        for n in range(4)
    ]
    shown = opened(browser, page(document(gather([a_run(tmp_path / "r", made)]), "t")), tmp_path)
    rows = shown.find_elements("css selector", "#flips .wide:first-of-type tbody tr")
    assert [row.text.partition("correct ")[2][:3] for row in rows[:2]] == ["B3:", "B5:"]
    assert rows[0].text.endswith(" 2")
    assert "4 incorrect: values" in shown.find_element("id", "kinds").text


def test_the_first_table_appears_within_a_second(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    took = shown.execute_script(
        "const t = performance.getEntriesByType('navigation')[0];"
        "return t.loadEventEnd - t.startTime"
    )
    assert took < 1000


def test_the_page_and_the_terminal_show_a_speedup_alike(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    ends: list[tuple[float, float | None, float | None]]
    ends = [(1.1, 1.01, 1.2), (0.92, 0.84, 0.995), (1.1, 1.06, 1.14), (0.9, 0.87, 0.93)]
    ends += [(1.02, 1.001, 1.04), (1.02, 0.999, 1.04), (2.0, 1.2, 2.9), (1.0, 1.0, 1.0)]
    ends += [(1.1, 1.0, 1.18), (250.0, 200.0, 300.0), (3.0, 3.0, 3.0), (99.7, 80.0, 120.4)]
    ends += [(1.3, None, None), (0.004, 0.003, 0.005), (0.95, None, None), (1.012, 1.004, 1.02)]
    for middle, low, high in ends:
        item = {"speedup": middle, "low": low, "high": high}
        text = shown.execute_script("return speed(arguments[0])", item)
        assert text == speed_text(middle, low, high)


def test_candidates_open_one_after_another_by_the_keys_j_and_k(browser, tmp_path):
    shown = opened(browser, many(tmp_path), tmp_path)
    is_open = (
        "return [...document.querySelectorAll('#rows button.row')]"
        ".map((b, n) => (b.getAttribute('aria-expanded') === 'true' ? n : -1)).filter(n => n >= 0)"
    )
    body = shown.find_element("css selector", "body")
    for keys, number in (("j", 0), ("jj", 2), ("k", 1)):
        body.send_keys(keys)
        assert shown.execute_script(is_open) == [number]
    shown.find_element("id", "find").send_keys("level1-3")
    assert shown.execute_script(is_open) == []
