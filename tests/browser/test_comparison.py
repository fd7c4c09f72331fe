"""The page of a comparison in a real browser."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.browser.test_page import BROWSER, DRIVER, SIZES
from tests.unit.cli.test_compare import HOSTILE, a_run

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SIZES_OF_TEXTS = """const drawn = document.querySelector('.ratios svg');
const scale = drawn.getBoundingClientRect().width / drawn.viewBox.baseVal.width;
return [...drawn.querySelectorAll('text')]
  .map((text) => parseFloat(getComputedStyle(text).fontSize) * scale);"""
TICKS_NEAR = """const ticks = [...document.querySelectorAll('.ratios svg > line')];
return [...document.querySelectorAll('.ratios circle')].map((dot) =>
  Math.min(...ticks.map((tick) => Math.abs(tick.x1.baseVal.value - dot.cx.baseVal.value))));"""
LONG = "set/" + "a_very_long_name_" * 6


@pytest.mark.parametrize("size", SIZES)
def test_ratios_are_plotted_and_listed(browser, tmp_path, size):
    speeds = {"a": 1.0, "b": 2.0, "c": None, "d": 1.0, HOSTILE: 1.0, LONG: 3.0}
    before = a_run(tmp_path / "before", **speeds)
    changed = {"a": 1.5, "b": None, "c": 1.0, HOSTILE: 40.0, LONG: 0.1}
    after = a_run(tmp_path / "after", **{**speeds, **changed})
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
    assert browser.find_element("css selector", "header p").text == (
        f"Before: {before}. After: {after}."
    )
    sizes = browser.execute_script(SIZES_OF_TEXTS)
    assert min(sizes) >= 10
    # The ends of the axis have ticks, and every dot is near one.
    assert {"0.02x", "50x"} <= set(ticks)
    near = browser.execute_script(TICKS_NEAR)
    assert len(near) == 4
    assert max(near) <= 60
    wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 1
