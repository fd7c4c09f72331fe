"""The page of an audited library in a real browser: it sorts and filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.audit.libraries import LIBRARIES
from benchmarks.audit.page import library_page
from benchmarks.audit.results import read
from tests.browser.test_page import BROWSER, DRIVER, SIZES, opened

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RESULTS = Path(__file__).parents[1] / "benchmarks" / "audit" / "results.jsonl"
FIRST = (
    "return [...document.querySelectorAll('#cells tbody tr')].map((row) => row.cells[0].innerText)"
)


def page(browser: Any, folder: Path, size: str = "desktop") -> Any:
    text = library_page(read(RESULTS), LIBRARIES["liger-kernel"], {})
    return opened(browser, text, folder, size)


def test_a_click_on_a_head_sorts_and_a_second_one_reverses(browser, tmp_path):
    shown = page(browser, tmp_path)
    head = "document.querySelectorAll('#cells th button')[0].click()"
    before = shown.execute_script(FIRST)
    assert before == sorted(before)
    assert len(set(before)) > 1
    shown.execute_script(head)
    assert shown.execute_script(FIRST) == before[::-1]
    shown.execute_script(head)
    assert shown.execute_script(FIRST) == before


def test_a_filter_and_a_search_leave_the_rows_that_match(browser, tmp_path):
    shown = page(browser, tmp_path)
    assert shown.find_element("id", "count").text == "2 of 2 cells"
    shown.find_element("id", "find").send_keys("softmax")
    assert shown.execute_script(FIRST) == ["softmax"]
    assert shown.find_element("id", "count").text == "1 of 2 cells"


@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_no_wider_than_the_window(browser, tmp_path, size):
    shown = page(browser, tmp_path, size)
    wide = "return document.documentElement.scrollWidth - window.innerWidth"
    assert shown.execute_script(wide) <= 1
