"""The dashboard and the API's description, of a real server in a real browser."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_page import SIZES, pytestmark  # noqa: F401 - marks
from tests.services.test_serve import BAD, GOOD, Server, asked, request, submit, token_of

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
LATE_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("dashboard") / "home")
    yield made
    made.stop()


def until(seen: Callable[[], bool], within_s: float = LATE_S) -> float:
    """Wait until something is seen; return the seconds."""
    start = time.monotonic()
    while not seen():
        assert time.monotonic() - start < within_s
        time.sleep(0.05)
    return time.monotonic() - start


def opened(browser: Any, url: str, size: str = "desktop") -> Any:
    browser.set_window_size(*SIZES[size])
    browser.get_log("browser")
    browser.get(url)
    until(lambda: browser.execute_script("return document.body.dataset.ready") == "yes")
    return browser


def hosts(browser: Any) -> set[str]:
    """Return the hosts that the page has asked."""
    script = "return performance.getEntriesByType('resource').map((item) => item.name)"
    return {name.split("/")[2] for name in browser.execute_script(script) if "://" in name}


def errors(browser: Any) -> list[Any]:
    return [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]


@pytest.mark.parametrize("size", SIZES)
def test_it_shows_tasks_as_they_end(browser, server, size):
    shown = opened(browser, server.url, size)
    sentence = shown.find_element("id", "sentence")
    until(lambda: "verdict" in sentence.text)
    # By script in one go: the page replaces its rows whenever the server sends news.
    script = "return [...document.querySelectorAll('#recent tbody tr')].map((e) => e.innerText)"
    rows = lambda: list(shown.execute_script(script))  # noqa: E731
    before, number = len(rows()), list(SIZES).index(size)
    submit(server, GOOD.format(700 + number))
    submit(server, BAD.format(800 + number))
    assert until(lambda: len(rows()) >= before + 2) < 4
    until(lambda: all("done" in row for row in rows()))
    assert not shown.find_element("id", "access").is_displayed()
    assert "incorrect" in rows()[0] + rows()[1]
    # The sentence says over which tasks, which are those of the list.
    about = shown.execute_script("return document.getElementById('about').innerText")
    assert f"the {len(rows())} tasks that began last waited" in about
    assert "bundled/softmax" in rows()[0]
    assert "0 wait" in shown.execute_script("return document.getElementById('sentence').innerText")
    for label in ("Verdicts and internal errors by minute", "held a device"):
        assert shown.find_elements("css selector", f"svg[aria-label*='{label}'] rect title")
    names = "return [...document.querySelectorAll('#verdicts text')].map((e) => e.textContent)"
    assert {"minutes", "verdicts per minute"} <= set(shown.execute_script(names))
    wide = shown.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 1
    # The long title of a problem breaks into lines, so that no column is out of sight.
    hidden = shown.execute_script("""document.querySelector('#recent .title').textContent =
      'word '.repeat(60);
      const box = document.querySelector('#recent').parentElement;
      return box.scrollWidth - box.clientWidth""")
    assert hidden <= 1 or size != "desktop"
    shown.execute_script("const b = document.querySelector('#recent button'); b.focus(); b.click()")
    until(lambda: bool(shown.find_elements("css selector", "#recent .detail pre")))
    assert "Softmax" in rows()[0]
    # The address names the open task; j and k open its neighbours, and Esc closes.
    (key,) = re.findall("#task-(.+)", shown.current_url)
    keys = shown.execute_script(
        "return [...document.querySelectorAll('#recent button')].map((e) => e.dataset.key)"
    )
    assert key == keys[0]
    is_open = """return [...document.querySelectorAll('#recent button[aria-expanded=true]')]
      .map((e) => e.dataset.key)"""
    for word, wanted in (("j", keys[1:2]), ("k", keys[:1]), ("\ue00c", [])):
        shown.switch_to.active_element.send_keys(word)
        until(lambda wanted=wanted: shown.execute_script(is_open) == wanted)
    shown.get("about:blank")
    opened(shown, f"{server.url}/#task-{keys[1]}", size)
    until(lambda: shown.execute_script(is_open) == keys[1:2])
    shown.execute_script("document.querySelector('#recent button').focus()")
    # The next news of the server leaves the keyboard where it was.
    submit(server, GOOD.format(900 + number))
    until(lambda: len(rows()) >= before + 4)
    assert shown.execute_script("return document.activeElement.dataset.key")
    assert hosts(shown) == {server.url.split("/")[2]}
    assert errors(shown) == []


def test_nothing_is_shown_without_a_token(browser, tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    token = token_of(home, "reader", "read")
    server = Server(home, host="0.0.0.0")
    try:
        shown = opened(browser, server.url)
        until(lambda: shown.find_element("id", "token").is_displayed())
        assert not shown.find_element("id", "content").is_displayed()
        assert shown.find_element("id", "sentence").text == ""
        shown.find_element("id", "token").send_keys("wrong")
        shown.find_element("css selector", "#access button").click()
        until(lambda: "valid token" in shown.find_element("id", "refused").text)
        shown.find_element("id", "token").send_keys(token)
        shown.find_element("css selector", "#access button").click()
        until(lambda: "0 verdicts" in shown.find_element("id", "sentence").text)
        assert token not in shown.page_source
    finally:
        server.stop()


def test_a_timed_task_has_its_speed_up(browser, server):
    timed = request(GOOD.format(1000)).model_dump(mode="json")
    timed["timing"] |= {"enabled": True, "max_s": 0.5}
    assert asked(f"{server.url}/v1/tasks", {"request": timed})[0] == 202
    shown = opened(browser, server.url)
    script = "const row = document.querySelector('#recent tbody tr'); return row && row.innerText"
    until(lambda: "done" in (shown.execute_script(script) or ""))
    text = shown.execute_script(script)
    assert re.search(r"\d\.\d{2,3}x \[|no measurable difference \[", text)


COLOURS = """
const looks = (node, name) => { const style = getComputedStyle(node);
  return [style[name], style.filter]; };
return Object.fromEntries(['correct', 'incorrect', 'failed', 'rejected', 'unjudged'].map((kind) => {
  const bar = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  bar.setAttribute('class', kind);
  document.querySelector('#verdicts svg').append(bar);
  const mark = document.querySelector('#verdicts .legend i.' + kind);
  return [kind, [looks(mark, 'backgroundColor'), looks(bar, 'fill')]]; }));"""


def test_the_server_prints_the_address_of_the_dashboard(browser, server):
    printed = server.log.read_text()
    assert f"dashboard: {server.url}/\n" in printed
    shown = opened(browser, re.search(r"dashboard: (\S+)", printed)[1])
    assert shown.find_element("tag name", "h1").text == "tilewright server"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_legend_has_the_colours_of_the_bars(browser, server, scheme):
    shown = opened(browser, server.url)
    until(lambda: "verdict" in shown.find_element("id", "sentence").text)
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    found = shown.execute_script(COLOURS)
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert [kind for kind, (mark, bar) in found.items() if mark != bar] == []
    colours = [
        [int(part) for part in re.findall(r"\d+", mark[0])[:3]] for mark, _ in found.values()
    ]
    # No two verdicts are nearly of one colour.
    assert min(math.dist(a, b) for a, b in itertools.combinations(colours, 2)) > 60


def test_the_description_of_the_api_needs_no_other_host(browser, server):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(f"{server.url}/docs")
    until(lambda: "/v1/overview" in browser.find_element("tag name", "body").text)
    assert hosts(browser) == {server.url.split("/")[2]}
    assert errors(browser) == []
