"""Every page works from disk: at two widths, in two colour schemes, and without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import sample_reports
from tests.browser.test_page import BROWSER, CONTRAST, DRIVER, SIZES, many, opened
from tests.browser.test_training import without_device
from tests.browser.test_view import a_run
from tests.unit.cli.test_compare import a_run as a_bench
from tilewright.records.run_folder import write_report
from tilewright.reports.comparison_page import as_page
from tilewright.reports.html_report import page_of_eval
from tilewright.reports.run_comparison import compare_runs, compared_run
from tilewright.reports.run_list import RunList
from tilewright.reports.turn_view import Turns
from tilewright.reports.viewer_server import exported, runs_page

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CLIPPED = """return [...document.querySelectorAll('table, svg, pre')].filter((item) => {
  if (!item.offsetParent && item.tagName !== 'svg') return false;
  const box = item.getBoundingClientRect();
  if (box.right <= window.innerWidth + 1) return false;
  for (let above = item; above; above = above.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(above).overflowX)) return false;
  return true; }).map((item) => item.outerHTML.slice(0, 80));"""
ASKED = "return performance.getEntriesByType('resource').map((item) => item.name)"
WIDER = "return document.documentElement.scrollWidth - window.innerWidth"


def eval_page(folder: Path) -> str:
    (folder / "run").mkdir()
    write_report(folder / "run", sample_reports.correct())
    return page_of_eval(folder / "run")


def list_page(folder: Path) -> str:
    a_run(folder / "one")
    runs = RunList(folder)
    runs.look()
    return runs_page(runs.rows(), folder, live=False)


def compared(folder: Path) -> str:
    before = a_bench(folder / "before", a=1.0, b=2.0, c=None)
    after = a_bench(folder / "after", a=1.5, b=None, c=1.0)
    page = as_page(compare_runs(compared_run(before, "strict"), compared_run(after, "strict")))
    # This page has no script that could say that it is ready.
    return page.replace("<body>", '<body data-ready="yes">')


PAGES: dict[str, tuple[Callable[[Path], str], str]] = {
    "report": (many, "candidates for"),
    "eval": (eval_page, "1 candidate for 1 problem"),
    "search": (lambda folder: exported(Turns(a_run(folder / "run"))), "The best of 5 turns"),
    "training": (
        lambda folder: exported(Turns(without_device(folder / "run", "train"))),
        "12 steps of training",
    ),
    "runs": (list_page, "1 run: "),
    "comparison": (compared, "3 problems: "),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_reads_well_and_asks_nobody(browser, tmp_path, name, size, scheme):
    make, sentence = PAGES[name]
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    try:
        shown = opened(browser, make(tmp_path), tmp_path, size)
        assert sentence in shown.find_element("tag name", "body").text
        assert shown.execute_script(ASKED) == []
        assert shown.execute_script(WIDER) <= 1
        assert shown.execute_script(CLIPPED) == []
        found: dict[str, Any] = shown.execute_script(CONTRAST)
        assert found["dark"] == (scheme == "dark")
        assert found["least"] >= 4.5, found
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
