"""The comparison of strategies in a real browser: table, regret, differences, size."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_page import BROWSER, CONTRAST, DRIVER, SIZES, opened
from tests.unit.reports.test_html_report import a_run
from tests.unit.reports.test_strategy_report import NAMES, compared
from tests.unit.scoring.test_strategy_table import final, turn_of
from tilewright.reports.html_report import document, page
from tilewright.reports.loader import gather
from tilewright.reports.strategy_report import COLUMNS

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
MANY = tuple(f"strategy_{number}" for number in range(11))
OVERLAPS = """
const boxes = [...document.querySelectorAll('#strategies g.curve text')]
  .map(t => t.getBoundingClientRect()).sort((a, b) => a.top - b.top);
return boxes.filter((box, k) => k && box.top < boxes[k - 1].bottom - 3).length;
"""
STYLES = """
return [...document.querySelectorAll('#strategies g.curve polyline')]
  .map(l => l.getAttribute('stroke') + ' ' + l.getAttribute('stroke-dasharray'));
"""


def shown(browser: Any, run: Path, folder: Path, size: str = "desktop") -> Any:
    return opened(browser, page(document(gather([run]), "t")), folder, size)


def many(folder: Path, seeds: int, judged: int) -> Path:
    """Write a run of eleven strategies, which get faster at different rates."""
    made = []
    for sample in range(len(MANY) * seeds):
        rate = 1 + sample // seeds / 10
        for number in range(judged):
            speed = 1 + math.log1p(number * rate) + (sample * 7 + number * 3) % 5 / 10
            made.append(turn_of(sample, number, speed))
        made.append(final(sample, 2 + rate, 500))
    return a_run(folder, made, protocols=("strict",), strategies=MANY, samples=seeds)


def cells(browser: Any, selector: str) -> list[list[str]]:
    rows = browser.find_elements("css selector", f"{selector} tbody tr")
    return [[cell.text for cell in row.find_elements("tag name", "td")] for row in rows]


@pytest.mark.parametrize("size", SIZES)
def test_the_table_has_a_row_per_strategy_and_fits(browser, tmp_path, size):
    made = shown(browser, compared(tmp_path / "run"), tmp_path, size)
    rows = cells(made, "#strategies .columns")
    assert [row[0] for row in rows] == list(NAMES)
    assert {len(row) for row in rows} == {len(COLUMNS)}
    # The slow one never gets near the best, so that one cell of its row is empty.
    assert [row.count("") for row in rows] == [0, 1, 0]
    wide = made.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 1
    heads = made.find_elements("css selector", "#strategies .columns th")
    assert all(head.get_attribute("title") for head in heads[1:])


def test_each_line_has_a_name_a_pattern_and_a_button(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    made = shown(browser, many(tmp_path / "run", 2, 30), tmp_path)
    styles = made.execute_script(STYLES)
    assert len(set(styles)) == len(MANY)
    assert len({style.split(" ", 1)[1] for style in styles}) > 2
    assert made.execute_script(OVERLAPS) == 0
    keys = made.find_elements("css selector", "#strategies .keys button")
    assert [key.text.split()[0] for key in keys] == list(MANY)
    keys[2].send_keys(Keys.ENTER)
    assert keys[2].get_attribute("aria-pressed") == "true"
    assert len(made.find_elements("css selector", "#strategies g.curve.faint")) == len(MANY) - 1
    keys[2].send_keys(Keys.ENTER)
    keys[2].send_keys(Keys.TAB)
    label = made.find_element("css selector", "#strategies .plot svg").get_attribute("aria-label")
    assert "Mean regret" in label
    made.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    table = made.find_element("css selector", "#strategies .plot + details")
    assert len(table.find_elements("css selector", "tbody tr")) == len(MANY)


def test_differences_are_listed_for_all_pairs_or_for_one_strategy(browser, tmp_path):
    made = shown(browser, many(tmp_path / "run", 3, 5), tmp_path)
    made.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    pairs = made.find_element("css selector", "#strategies .pairs")
    assert "55 of 55 pairs" in pairs.text
    pairs.find_element("tag name", "select").send_keys("strategy_3")
    assert "10 of 55 pairs" in pairs.text
    few = shown(browser, compared(tmp_path / "few"), tmp_path)
    assert few.find_elements("css selector", "#strategies .pairs") == []
    assert "not resolved" in few.find_element("id", "strategies").text


def test_candidates_name_their_trajectory_and_are_found_by_it(browser, tmp_path):
    made = shown(browser, compared(tmp_path / "run"), tmp_path)
    made.find_element("id", "find").send_keys("slow, seed 2")
    assert made.find_element("id", "count").text == "3 of 3"
    assert "slow, seed 2" in made.find_element("css selector", "#rows tbody tr").text


def test_a_run_of_one_strategy_shows_no_comparison(browser, tmp_path):
    run = a_run(tmp_path / "run", [turn_of(0, 0, 2.0)], protocols=("strict",), strategies=("a",))
    assert not shown(browser, run, tmp_path).find_element("id", "strategies").is_displayed()


def test_text_of_the_comparison_is_readable_in_dark_mode(browser, tmp_path):
    made = shown(browser, compared(tmp_path / "run"), tmp_path)
    wanted = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    made.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    ratio = made.execute_script(CONTRAST)
    made.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert ratio["least"] >= 4.5, ratio


def test_a_comparison_of_44000_candidates_opens_within_two_seconds(browser, tmp_path):
    made = shown(browser, many(tmp_path / "run", 20, 200), tmp_path)
    took = made.execute_script(
        "const t = performance.getEntriesByType('navigation')[0];"
        "return t.loadEventEnd - t.startTime"
    )
    assert took < 2000
    assert len(cells(made, "#strategies .columns")) == len(MANY)
    assert (tmp_path / "report.html").stat().st_size <= 8_000_000
