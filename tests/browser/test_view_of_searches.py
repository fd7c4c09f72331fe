"""The viewer of a search in a real browser: trajectories, lineage, choices, refused answers."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_page import BROWSER, DRIVER, SIZES
from tests.browser.test_strategies import MANY, many
from tests.browser.test_view import count, shown
from tests.unit.reports.test_html_report import a_run
from tests.unit.reports.test_strategy_report import without_judgements
from tests.unit.scoring.test_strategy_table import final, turn_of
from tilewright.records.events import Choice, Turn
from tilewright.reports.turn_view import Turns
from tilewright.reports.viewer_server import Viewer, exported

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
LONG = "a_strategy_with_a_rather_long_name"


def a_search() -> list[Turn]:
    """Return turns of two strategies: a chain, children, a trial, a repeat, and a final trial."""
    chain = [
        turn_of(0, number, 1.0 + number / 10, parents=(f"p#0.{number - 1}",) if number else ())
        for number in range(14)
    ]
    asked = {"operator": "mix", "form": "evolve", "shown_turns": ("p#0.2", "p#0.3")}
    child = turn_of(0, 20, 1.1, parents=("p#0.13", "p#0.2"), **asked)
    child = child.model_copy(update={"prompt": "digest of a prompt of another version"})
    trial = turn_of(0, 21, 1.0, role="measure", parents=("p#0.13",), source="0 13")
    same = turn_of(0, 22, 1.1, parents=("p#0.13",)).model_copy(update={"repeats": "p#0.20"})
    draft, say, choose = without_judgements(0)
    choice = Choice(taken=1, logprobs=((-2.0, -1.0), (-0.5,)))
    choose = choose.model_copy(update={"choice": choice})
    return [*chain, child, trial, same, draft, say, choose, final(0, 2.0), turn_of(1, 0, 1.5)]


@pytest.fixture
def page_of(browser: Any, tmp_path: Path) -> Any:
    """Return a function that opens the exported page of a search, at a turn if one is named."""
    run = a_run(
        tmp_path / "run", a_search(), protocols=("strict",), strategies=("one", LONG), samples=1
    )
    path = tmp_path / "view.html"
    path.write_text(exported(Turns(run)), encoding="utf-8")

    def open_at(turn: int | None = None, size: str = "desktop") -> Any:
        browser.get("about:blank")
        return shown(browser, path.as_uri() + ("" if turn is None else f"#turn-{turn}"), size)

    return open_at


def detail(page: Any) -> str:
    page.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    return str(page.find_element("id", "detail").text)


@pytest.mark.parametrize("size", SIZES)
def test_a_turn_shows_its_request_its_lineage_and_its_exemplars(page_of, size):
    page = page_of(14, size)
    text = detail(page)
    for part in ("one, seed 0", "mix", "evolve", "p#0.13 correct", "6 more between them"):
        assert part in text
    assert "It has several parents: p#0.13 correct" in text
    assert text.index("Turns that its prompt shows") < text.index("p#0.3 correct")
    assert "another version made it" in text
    wide = page.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 1


def test_links_lead_from_turn_to_turn_and_back(page_of):
    page = page_of(14)
    page.find_element("css selector", "#detail .lineage a").click()
    assert page.find_element("id", "h-one").text == "turn 1, p#0.0"
    assert page.execute_script("return location.hash") == "#turn-0"
    page.back()
    wait_for(page, "p#0.20")
    parent = page_of(13)
    text = detail(parent)
    assert text.index("Trials of its code:") < text.index("p#0.21 correct 1.000x (trial)")
    assert text.index("Children:") < text.index("p#0.20 correct 1.100x (mix)")
    assert "estimate of its code\ncorrect" in text
    assert "2 trials" in text


def wait_for(page: Any, name: str) -> None:
    limit = time.monotonic() + 10
    while not page.find_element("id", "h-one").text.endswith(f", {name}"):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_refused_drafts_words_choices_and_repeats_are_shown(page_of):
    assert "same code as\np#0.20 correct" in detail(page_of(16))
    assert "Refused: the reply has no code" in detail(page_of(17))
    assert "Words of the model" in detail(page_of(18))
    page = page_of(19)
    rows = page.find_elements("css selector", "#detail table tbody tr")
    cells = [[cell.text for cell in row.find_elements("tag name", "td")] for row in rows]
    assert [row[:3] for row in cells] == [["1", "a", "7.6 %"], ["2", "b", "92.4 %"]]
    assert [row[3:] for row in cells] == [
        ["26.9 %", "7.6 %", ""],
        ["73.1 %", "92.4 %", "taken"],
    ]


@pytest.mark.parametrize(
    ("mark", "rows"),
    [("refused", 1), ("repeat", 1), ("final trial", 1), ("new leader", 16), ("every turn", 22)],
)
def test_marks_of_searches_are_filters(page_of, mark, rows):
    page = page_of()
    page.find_element("id", "mark").send_keys(mark)
    assert count(page, "#rows tbody tr") == rows


def test_one_trajectory_is_shown_alone(page_of):
    page = page_of()
    assert count(page, "#tree [data-n]") == 22
    # A shape for each verdict, so that colour alone tells nothing.
    shapes = page.execute_script(
        "return [...document.querySelectorAll('#tree [data-n]')]"
        ".map(p => p.getAttribute('d').replace(/[\\d.]+/g, ''))"
    )
    assert len(set(shapes)) == 3
    page.find_element("id", "trajectory").send_keys(LONG)
    assert count(page, "#tree [data-n]") == count(page, "#rows tbody tr") == 1
    assert f"{LONG}, seed 0" in page.find_element("css selector", "#rows tbody tr").text


def test_a_comparison_of_44000_turns_opens(browser, tmp_path):
    made = Viewer(Turns(many(tmp_path / "run", 20, 200)))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        page = shown(browser, made.url, within_s=20)
        total = len(MANY) * 20 * 201
        assert page.find_element("id", "count").text == f"200 of {total}"
        assert "Choose one trajectory" in page.find_element("id", "drawn").text
        first = page.execute_script(
            "return Math.min(...[...document.querySelectorAll('#tree [data-n]')]"
            ".map(mark => mark.getBoundingClientRect().left))"
        )
        assert first < 200
        page.find_element("id", "trajectory").send_keys("strategy_7, seed 3")
        assert page.find_element("id", "count").text == "200 of 201"
        assert count(page, "#tree [data-n]") == 201
    finally:
        made.shutdown()
        made.server_close()


def test_the_archive_at_the_end_is_a_table_of_places(browser: Any, tmp_path: Path) -> None:
    run = a_run(
        tmp_path / "run", a_search(), protocols=("strict",), strategies=("one", LONG), samples=1
    )
    turns = Turns(run)
    turns.cells = [
        {"sample": 0, "place": "island 1, complexity 3, diversity 0", "id": "p#0.13"},
        {"sample": 1, "place": "island 2, complexity 1, diversity 4", "id": "p#1.0"},
    ]
    path = tmp_path / "view.html"
    path.write_text(exported(turns), encoding="utf-8")
    page = shown(browser, path.as_uri(), "desktop")
    rows = page.find_elements("css selector", "#cells tbody tr")
    assert ["island 1" in rows[0].text, "island 2" in rows[1].text] == [True, True]
    assert "2.30x" in rows[0].text
    rows[0].find_element("css selector", "button").click()
    assert page.find_element("id", "h-one").text == "turn 14, p#0.13"


def test_a_search_without_an_archive_has_no_such_table(page_of: Any) -> None:
    assert not page_of().find_element("id", "archive").is_displayed()
