"""The page of a comparison in a real browser."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import sample_reports
from tests.browser.test_page import BROWSER, DRIVER, SIZES
from tests.unit.cli.test_compare import HOSTILE, a_run
from tilewright._version import __version__

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SIZES_OF_TEXTS = """return [...document.querySelectorAll('.ratios svg text')]
  .map((text) => parseFloat(getComputedStyle(text).fontSize));"""
TICKS_NEAR = """const ticks = [...document.querySelectorAll('.ratios svg > line')];
const wide = document.querySelector('.ratios svg').getBoundingClientRect().width;
return [...document.querySelectorAll('.ratios circle')].map((dot) =>
  Math.min(...ticks.map((tick) => Math.abs(tick.x1.baseVal.value - dot.cx.baseVal.value))) / wide);
"""
TOUCHING = """const texts = [...document.querySelectorAll('.ratios svg > text')].slice(0, -1)
  .map((text) => text.getBoundingClientRect()).sort((a, b) => a.left - b.left);
return texts.filter((box, n) => box.left < 0 || box.right > innerWidth
  || (n && texts[n - 1].right > box.left)).length;"""
FILLED = """const box = document.querySelector('.ratios svg').getBoundingClientRect();
return box.width / document.querySelector('main').getBoundingClientRect().width;"""
LONG = "set/" + "a_very_long_name_" * 6


@pytest.mark.parametrize("size", SIZES)
def test_ratios_are_plotted_and_listed(browser, tmp_path, size):
    speeds = {"a": 1.0, "b": 2.0, "c": None, "d": 1.0, HOSTILE: 1.0, LONG: 3.0}
    before = a_run(tmp_path / "before", **speeds)
    changed = {"a": 1.5, "b": None, "c": 1.0, HOSTILE: 40.0, LONG: 0.1}
    after = a_run(tmp_path / "after", **{**speeds, **changed})
    known = sample_reports.correct().request.problem
    known = known.model_copy(update={"id": "set/a", "description": "A sum of rows."})
    with (after / "problems.jsonl").open("a") as file:
        file.write(f"{known.to_json()}\n")
    words = ["compare", str(before), str(after), "--page", str(tmp_path / "page.html")]
    subprocess.run([sys.executable, "-m", "tilewright", *words], check=True, capture_output=True)
    browser.set_window_size(*SIZES[size])
    browser.get_log("browser")
    browser.get((tmp_path / "page.html").as_uri())
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []

    assert browser.find_element("tag name", "h1").text.startswith("6 problems: 1 broke, 1 slower")
    assert len(browser.find_elements("css selector", "svg circle")) == 4
    assert len(browser.find_elements("css selector", "tbody tr")) == 6
    assert browser.find_elements("css selector", "main b") == []
    titles = [
        str(node.get_attribute("textContent"))
        for node in browser.find_elements("css selector", "svg g title")
    ]
    # The slowest first, each with its whole name and its interval.
    assert titles[0].startswith(f"{LONG}: slower, 0.033")
    assert titles[-1].startswith(f"{HOSTILE}: faster, 40.00x [")
    ticks = [node.text for node in browser.find_elements("css selector", "svg > text")]
    assert "1x" in ticks
    assert ticks[-1] == "speed-up after / speed-up before; left of 1 is slower"
    about = [item.text for item in browser.find_elements("css selector", "header p")]
    assert about == [
        f"Before: {before}, one, tilewright {__version__}.",
        f"After: {after}, one, tilewright {__version__}.",
        f"This page again: tilewright compare {before} {after} --page FILE",
    ]
    heads = browser.find_elements("css selector", "th.term")
    assert [item.text for item in heads] == ["before", "after", "ratio"]
    assert all(item.get_attribute("title") for item in heads)
    browser.find_element("css selector", "footer summary").click()
    assert browser.find_element("css selector", "footer dl").text.count("\n") >= 3
    (titled,) = browser.find_elements("xpath", "//td[span]")
    assert titled.text == "set/a\nA sum of rows"
    sizes = browser.execute_script(SIZES_OF_TEXTS)
    assert min(sizes) >= 10
    # The ends of the axis have ticks, and every dot is near one.
    assert {"0.02x", "50x"} <= set(ticks)
    near = browser.execute_script(TICKS_NEAR)
    assert len(near) == 4
    assert max(near) <= 0.15
    assert browser.execute_script(TOUCHING) == 0
    assert browser.execute_script(FILLED) == 1
    wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 1
