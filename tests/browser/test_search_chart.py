"""The chart and the headline of a search in a real browser, and its turns by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_page import BROWSER, DRIVER, SIZES
from tests.browser.test_view import count, shown
from tests.sample_reports import correct
from tests.unit.reports.test_html_report import a_run
from tests.unit.scoring.test_strategy_table import final, turn_of
from tilewright.records.events import EvalSummary, Turn
from tilewright.reports.turn_view import Turns
from tilewright.reports.viewer_server import exported

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def judged(turn: Turn, **fields: Any) -> Turn:
    summary = EvalSummary(protocol="strict", seconds=2.0, **fields)
    return turn.model_copy(update={"judgements": (summary,)})


def a_search() -> list[Turn]:
    """Return six turns: incorrect, slow, failed, fast, slower, and the fast one measured again."""
    turns = [turn_of(0, n, 1.0, parents=(f"p#0.{n - 1}",) if n else ()) for n in range(5)]
    return [
        judged(turns[0], verdict="incorrect", reason="values"),
        judged(turns[1], verdict="correct", speedup=0.5, low=0.45, high=0.55),
        judged(turns[2], verdict="failed", reason="IndexError"),
        judged(turns[3], verdict="correct", speedup=1.62, low=1.5, high=1.74),
        judged(turns[4], verdict="correct", speedup=1.2, low=1.1, high=1.3),
        judged(
            final(0, 1.61).model_copy(
                update={"ask": final(0, 1.61).ask.model_copy(update={"parents": ("p#0.3",)})}
            ),
            verdict="correct",
            speedup=1.61,
            low=1.55,
            high=1.67,
        ),
    ]


@pytest.fixture
def page_of(browser: Any, tmp_path: Path) -> Any:
    run = a_run(tmp_path / "run", a_search(), protocols=("strict",), strategies=("one",), samples=1)
    path = tmp_path / "view.html"
    path.write_text(exported(Turns(run)), encoding="utf-8")

    def at(size: str = "desktop") -> Any:
        browser.get("about:blank")
        return shown(browser, path.as_uri(), size)

    return at


@pytest.mark.parametrize("size", SIZES)
def test_the_headline_names_the_best_turn_and_its_repeated_measurement(page_of, size):
    page = page_of(size)
    assert page.find_element("id", "sentence").text == (
        "The best of 5 turns is turn 4: 1.62x [1.50, 1.74]; measured once more: "
        "1.61x [1.55, 1.67]. Verdicts: 1 incorrect, 3 correct, 1 failed."
    )
    assert "12.0 s of evaluation" in page.find_element("id", "about").text
    width = page.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert width <= 1


def test_the_chart_names_its_axes_and_draws_what_was_measured(page_of):
    page = page_of()
    texts = [item.text for item in page.find_elements("css selector", "#tree svg text")]
    assert "turn of the trajectory" in texts
    assert "speed-up, logarithmic; bars are 95 % intervals" in texts
    assert {"no speed", "0.5x", "1x", "2x"} <= set(texts)
    # Four turns have an interval; a turn without a speed is joined to nothing.
    assert count(page, "#tree .interval") == 4
    assert count(page, "#tree .lineage") == 2
    assert count(page, "#tree .again") == 1
    box = "return document.querySelector(arguments[0]).getBoundingClientRect()"
    strip = page.execute_script(box, "#tree .strip")
    for number, inside in ((0, True), (1, False), (2, True), (3, False)):
        dot = page.execute_script(box, f"#tree [data-n='{number}']")
        assert (strip["top"] < dot["top"] < strip["bottom"]) == inside
    titles = page.execute_script(
        "return [...document.querySelectorAll('#tree .dot title')].map(t => t.textContent)"
    )
    assert titles[3].startswith("turn 4, p#0.3: correct 1.62x [1.50, 1.74]")


def test_the_line_of_the_best_so_far_rises_where_a_turn_was_better(page_of):
    page = page_of()
    points = page.execute_script(
        "return document.querySelector('#tree .best').getAttribute('points')"
    )
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert len(heights) == 4
    assert heights[0] == heights[1] > heights[2] == heights[3]
    assert count(page, "#tree .band") == 2


def test_turns_open_under_their_row_and_by_keyboard(page_of):
    page = page_of()
    page.find_elements("css selector", "#rows button.row")[1].click()
    assert page.find_element("id", "h-one").text == "turn 2, p#0.1"
    above = "return document.querySelector('#rows .opened').previousSibling.textContent"
    assert page.execute_script(above).startswith("turn 2")
    for keys, name in (("j", "turn 3, p#0.2"), ("jj", "turn 5, p#0.4"), ("k", "turn 4, p#0.3")):
        page.find_element("css selector", "body").send_keys(keys)
        assert page.find_element("id", "h-one").text == name
    page.find_element("id", "next").click()
    assert page.find_element("id", "h-one").text == "turn 5, p#0.4"
    page.find_element("id", "find").send_keys("jk")
    assert page.find_element("id", "h-one").text == "turn 5, p#0.4"
    page.find_element("id", "h-one").send_keys("\ue00c")
    assert not page.find_element("id", "one").is_displayed()


def test_a_turn_that_the_list_does_not_show_opens_below_the_chart(page_of):
    page = page_of()
    page.find_element("id", "verdict").send_keys("failed")
    page.execute_script("location.hash = '#turn-3'")
    assert page.execute_script("return document.getElementById('one').parentNode.id") == "beside"
    assert page.find_element("id", "h-one").text == "turn 4, p#0.3"


def test_the_measurement_of_the_winner_after_a_search_is_shown(browser, tmp_path):
    run = a_run(
        tmp_path / "run", a_search()[:5], protocols=("strict",), strategies=("one",), samples=1
    )
    report = correct()
    problem = report.request.problem.model_copy(update={"id": "p"})
    request = report.request.model_copy(update={"problem": problem})
    again = {"request": request, "speedup": 1.5, "speedup_low": 1.4, "speedup_high": 1.6}
    folder = run / "winner" / "p"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(report.model_copy(update=again).to_json())
    (run / "winner" / "damaged").mkdir()
    (run / "winner" / "damaged" / "report.json").write_text("{")
    path = tmp_path / "view.html"
    path.write_text(exported(Turns(run)), encoding="utf-8")
    page = shown(browser, path.as_uri())
    sentence = page.find_element("id", "sentence").text
    assert "measured once more: 1.50x [1.40, 1.60]. Verdicts" in sentence
    script = "return document.querySelector('#tree .again title').textContent"
    assert page.execute_script(script).startswith("the best candidate, measured once more: 1.50x")
