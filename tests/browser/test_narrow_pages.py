"""Pages at the width of a phone: the cells of a row stand below each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests import sample_reports
from tests.browser.test_every_page import WIDER
from tests.browser.test_page import BROWSER, DRIVER, many, opened
from tests.browser.test_view import PROBLEM, a_run, shown
from tilewright.reports.turn_view import Turns
from tilewright.reports.viewer_server import exported

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PLACES = """return [...document.querySelectorAll('#rows > tbody > tr')].map((row) => {
  const cells = [...row.cells].filter((cell) => cell.offsetParent && cell.textContent);
  return [row.getBoundingClientRect().height,
          Math.max(...cells.map((cell) => cell.getBoundingClientRect().right))]; });"""


def places(page: Any) -> list[tuple[float, float]]:
    """Return the height of each row, and the right end of its farthest cell."""
    return [(height, right) for height, right in page.execute_script(PLACES)]


def test_a_row_of_candidates_is_short_and_wholly_visible(browser, tmp_path):
    page = opened(browser, many(tmp_path), tmp_path, "phone")
    rows = places(page)
    assert len(rows) == 200
    assert max(height for height, _ in rows) < 130
    assert max(right for _, right in rows) <= 390
    assert not page.find_element("css selector", "#rows thead").is_displayed()


def test_a_row_of_turns_is_short_and_its_numbers_have_units(browser, tmp_path):
    path = tmp_path / "view.html"
    path.write_text(exported(Turns(a_run(tmp_path / "run"))), encoding="utf-8")
    page = shown(browser, path.as_uri(), "phone")
    rows = places(page)
    assert len(rows) == 5
    assert max(height for height, _ in rows[:4]) < 130
    assert max(right for _, right in rows) <= 390
    page.find_element("css selector", "#rows button.row").click()
    detail = page.find_element("css selector", "#rows td.detail")
    assert detail.rect["width"] > 330
    script = """return [...document.querySelectorAll('#rows td[data-unit="tokens"]')]
      .map((cell) => getComputedStyle(cell, '::after').content)"""
    assert set(page.execute_script(script)) == {'" tokens"'}


def test_a_long_title_in_a_choice_does_not_widen_the_page(browser, tmp_path):
    run = a_run(tmp_path / "run")
    base = sample_reports.correct().request.problem
    title = "Root-mean-square normalisation of each row, times a weight for each column"
    known = base.model_copy(update={"id": PROBLEM, "description": title})
    (run / "problems.jsonl").write_text(f"{known.to_json()}\n")
    path = tmp_path / "view.html"
    path.write_text(exported(Turns(run)), encoding="utf-8")
    page = shown(browser, path.as_uri(), "phone")
    chosen = page.find_element("css selector", "#problem option")
    assert title in chosen.text
    assert page.execute_script(WIDER) <= 1


def test_a_wide_table_shows_that_it_scrolls(browser, tmp_path):
    page = opened(browser, many(tmp_path), tmp_path, "phone")
    script = """const box = document.querySelector('#headline .wide');
      return [box.scrollWidth > box.clientWidth, getComputedStyle(box).backgroundImage,
              getComputedStyle(box).backgroundAttachment];"""
    scrolls, image, attachment = page.execute_script(script)
    assert scrolls
    assert image.count("linear-gradient") == 4
    assert attachment == "local, local, scroll, scroll"
