"""The viewer in a real browser: live while a run continues, and as one file from disk."""

from __future__ import annotations

import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import sample_reports
from tests.browser.test_page import BROWSER, CONTRAST, DRIVER, SIZES
from tests.unit.loop.test_rollout import CODE, play
from tests.unit.reports.test_html_report import HOSTILE
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, Reply, Turn, TurnFinished
from tilewright.reports.turn_view import Turns
from tilewright.reports.viewer_server import Viewer, exported

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PROBLEM = "bundled/softmax"


def a_run(folder: Path) -> Path:
    """Play three turns; add a regression and a hack, and a reply that would be markup."""
    folder.mkdir()
    play(folder, lambda _, ask: f"answer {ask.turn}\n{CODE}")
    rows = [
        EvalSummary(protocol="strict", verdict="correct", speedup=0.5, low=0.4, high=0.6),
        EvalSummary(protocol="strict", verdict="rejected", reason=HOSTILE),
    ]
    with EventLog(folder) as log:
        for number, item in enumerate(rows, start=3):
            parent = f"{PROBLEM}#0.{number - 1}"
            ask = Ask(id=f"{PROBLEM}#0.{number}", problem=PROBLEM, turn=number, parents=(parent,))
            reply = Reply(text=HOSTILE, reasoning=HOSTILE, prompt_tokens=7, usd=0.5)
            turn = Turn(ask=ask, reply=reply, feedback=HOSTILE, judgements=(item,))
            log.append(TurnFinished(turn=turn))
    return folder


def shown(browser: Any, address: str, size: str = "desktop", within_s: float = 10.0) -> Any:
    browser.set_window_size(*SIZES[size])
    browser.get_log("browser")
    browser.get(address)
    limit = time.monotonic() + within_s
    while browser.execute_script("return document.body.dataset.ready") != "yes":
        assert time.monotonic() < limit, browser.get_log("browser")
        time.sleep(0.02)
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
    return browser


@contextmanager
def served(folder: Path) -> Iterator[Viewer]:
    made = Viewer(Turns(folder))
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def viewer(tmp_path):
    with served(a_run(tmp_path / "run")) as made:
        yield made


def count(browser: Any, selector: str) -> int:
    return int(browser.execute_script(f"return document.querySelectorAll('{selector}').length"))


def opened(browser: Any, number: int) -> str:
    """Open a turn from the list; return what is shown of it."""
    browser.find_elements("css selector", "#rows button.row")[number].click()
    limit = time.monotonic() + 10
    # The server is asked for the turn after its title is shown.
    while f"0.{number}" not in browser.find_element("id", "h-one").text or not count(
        browser, "#detail > *"
    ):
        assert time.monotonic() < limit
        time.sleep(0.02)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    return str(browser.find_element("id", "detail").text)


@pytest.mark.parametrize("size", SIZES)
def test_turns_are_plotted_listed_and_opened(browser, viewer, size):
    page = shown(browser, viewer.url, size)
    assert count(page, "#rows tbody tr") == count(page, "#tree [data-n]") == 5
    wide = page.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 1
    # An id breaks between its parts alone.
    script = "return [...document.querySelectorAll('.part')].map((e) => e.getClientRects().length)"
    assert set(page.execute_script(script)) == {1}
    text = opened(page, 1)
    for part in ("What the model is told of it", "Verdict: correct", "answer 1", "def softmax"):
        assert part in text
    assert "Make this computation fast" in text
    assert "answer 0" in text
    assert "another version" not in text


def test_the_feedback_wraps_and_a_reply_by_hand_says_so(browser, tmp_path):
    folder = a_run(tmp_path / "run")
    long = "word " * 200
    with EventLog(folder) as log:
        ask = Ask(id=f"{PROBLEM}#0.5", problem=PROBLEM, turn=5)
        reply = Reply(text="text", model="by hand")
        log.append(TurnFinished(turn=Turn(ask=ask, reply=reply, feedback=long)))
    (tmp_path / "view.html").write_text(exported(Turns(folder)), encoding="utf-8")
    page = shown(browser, (tmp_path / "view.html").as_uri(), "phone")
    assert "Reply, written by hand" in opened(page, 5)
    script = "const e = document.querySelector('.prose'); return [e.scrollWidth, e.clientWidth]"
    inner, outer = page.execute_script(script)
    assert inner <= outer


def test_the_detail_names_its_times_and_gives_them_equal_digits(browser, tmp_path):
    folder = a_run(tmp_path / "run")
    (folder / "reports").mkdir(exist_ok=True)
    (folder / "reports" / "a.json").write_text(sample_reports.correct().to_json())
    item = EvalSummary(protocol="strict", verdict="correct", report="reports/a.json")
    with EventLog(folder) as log:
        ask = Ask(id=f"{PROBLEM}#0.5", problem=PROBLEM, turn=5)
        log.append(TurnFinished(turn=Turn(ask=ask, judgements=(item,))))
    with served(folder) as viewer:
        page = shown(browser, viewer.url)
        opened(page, 5)
        tables = page.find_elements("css selector", "#detail table")
        heads = [item.text for item in tables[-1].find_elements("css selector", "th")]
        named = ["time of baseline", "time of this turn", "speed-up", "speed-up of parent"]
        assert heads[2:] == named
        times = [item.text for item in tables[-1].find_elements("css selector", "tbody td.n")][:2]
        assert all(re.fullmatch(r"(\d{3}|\d\.\d\d|\d\d\.\d) (us|ms)", text) for text in times)


def test_model_output_is_shown_as_text_and_never_as_markup(browser, viewer):
    page = shown(browser, viewer.url)
    assert HOSTILE.strip()[:20] in opened(page, 4)
    assert page.execute_script("return window.hacked") is None


@pytest.mark.parametrize(
    ("mark", "rows"),
    [("first correct", 1), ("best so far", 1), ("regression", 2), ("hack", 1), ("every turn", 5)],
)
def test_filters_show_what_is_marked(browser, viewer, mark, rows):
    page = shown(browser, viewer.url)
    page.find_element("id", "mark").send_keys(mark)
    assert count(page, "#rows tbody tr") == rows


def test_new_turns_appear_while_a_run_continues(browser, viewer):
    page = shown(browser, viewer.url)
    item = EvalSummary(protocol="strict", verdict="correct", speedup=9.0, low=8.0, high=10.0)
    ask = Ask(id=f"{PROBLEM}#0.5", problem=PROBLEM, turn=5)
    with EventLog(viewer.shown.folder) as log:
        log.append(TurnFinished(turn=Turn(ask=ask, judgements=(item,))))
    limit = time.monotonic() + 10
    while count(page, "#rows tbody tr") != 6:
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_a_single_file_works_from_disk_and_in_dark_mode(browser, tmp_path):
    path = tmp_path / "view.html"
    path.write_text(exported(Turns(a_run(tmp_path / "run"))), encoding="utf-8")
    page = shown(browser, path.as_uri())
    assert "def softmax" in opened(page, 2)
    wanted = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    ratio = page.execute_script(CONTRAST)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert ratio["least"] >= 4.5, ratio


def test_the_list_of_problems_has_their_titles(browser, tmp_path):
    folder = a_run(tmp_path / "run")
    (name,) = (name for name in Turns(folder).problems)
    path = tmp_path / "view.html"
    path.write_text(exported(Turns(folder)), encoding="utf-8")
    page = shown(browser, path.as_uri())
    (option,) = page.find_elements("css selector", "#problem option")
    assert option.text == f"{name}: Softmax over the last dimension"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_verdict_has_the_same_colour_in_chart_legend_and_list(browser, tmp_path, scheme):
    path = tmp_path / "view.html"
    path.write_text(exported(Turns(a_run(tmp_path / "run"))), encoding="utf-8")
    page = shown(browser, path.as_uri())
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    script = """const parts = ['#rows td.rejected', '#tree path.rejected', '#legend path.rejected'];
      return parts.map((part) => {
      const style = getComputedStyle(document.querySelector(part));
      return [part.includes('path') ? style.fill : style.color, style.filter]; })"""
    found = page.execute_script(script)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert found[0] == found[1] == found[2]


def test_ten_thousand_turns_open(browser, tmp_path):
    folder = a_run(tmp_path / "run")
    lines = []
    for number in range(10_000):
        item = EvalSummary(protocol="strict", verdict="correct", speedup=1 + number / 1e4)
        ask = Ask(id=f"p{number % 50}#0.{number}", problem=f"p{number % 50}", turn=number // 50)
        turn = Turn(ask=ask, reply=Reply(text="x" * 500), judgements=(item,))
        lines.append(TurnFinished(turn=turn).model_dump_json() + "\n")
    with open(folder / "events.jsonl", "a", encoding="utf-8") as log:
        log.writelines(lines)
    made = Viewer(Turns(folder))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        page = shown(browser, made.url, within_s=20)
        assert page.find_element("id", "count").text == "200 of 10005"
    finally:
        made.shutdown()
        made.server_close()


def asked(url: str, host: str | None = None) -> int:
    request = urllib.request.Request(url, headers={"host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_server_answers_local_requests_only_and_refuses_bad_ones(viewer):
    port = viewer.server_address[1]
    assert viewer.server_address[0] == "127.0.0.1"
    assert asked(viewer.url) == 200
    assert asked(viewer.url, host=f"evil.example:{port}") == 403
    assert asked(viewer.url + "turn.json?n=4") == 200
    for bad in ("turn.json?n=99", "turn.json?n=x", "turn.json"):
        assert asked(viewer.url + bad) == 400
    assert asked(viewer.url + "../../etc/passwd") == 404
