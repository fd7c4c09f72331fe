"""The list of the runs in a folder, in a real browser: live, as a file, with 10,000 runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import sample_reports
from tests.browser.test_page import BROWSER, DRIVER, SIZES
from tests.browser.test_view import a_run, shown
from tests.unit.reports.test_html_report import HOSTILE
from tests.unit.reports.test_run_list import begin, finished
from tilewright.records.event_log import EventLog
from tilewright.reports.run_list import RunList
from tilewright.reports.viewer_server import Viewer, runs_page

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    made = Viewer(RunList(folder))
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made.url
    made.shutdown()
    made.server_close()
    thread.join()


def text(page: Any, name: str) -> str:
    return str(page.find_element("id", name).text)


def wait_until(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    limit = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.parametrize("size", SIZES)
def test_runs_are_listed_followed_and_opened(browser, tmp_path, size):
    a_run(tmp_path / "20261101-120000-aaaa")
    with begin(tmp_path / HOSTILE.replace("/", "")[:60]) as log, served(tmp_path) as address:
        page = shown(browser, address, size)
        wait_until(lambda: text(page, "about") == "")
        assert text(page, "sentence") == "2 runs: 1 is running, 1 has a correct candidate."
        assert page.find_elements("css selector", "#runs b") == []
        assert page.find_element("tag name", "h1").text == f"Runs in {tmp_path.resolve()}"
        # An id takes one line, on a phone too.
        (link,) = page.find_elements("css selector", "#runs a[href*=aaaa]")
        assert len(page.execute_script("return arguments[0].getClientRects()", link)) == 1
        wide = page.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 1

        log.append(finished(0, 1.5))
        wait_until(lambda: "2 have a correct candidate" in text(page, "sentence"), 3.0)
        begin(tmp_path / "20261102-120000-bbbb").close()
        wait_until(lambda: text(page, "sentence").startswith("3 runs: 1 is running"), 3.0)

        page.find_element("id", "find").send_keys("aaaa")
        assert text(page, "count") == "1 of 1"
        page.find_element("css selector", "#runs a").click()
        wait_until(lambda: len(page.find_elements("css selector", "#rows tbody tr")) == 5)


def test_a_page_on_disk_lists_the_runs_without_links(browser, tmp_path):
    a_run(tmp_path / "runs")
    runs = RunList(tmp_path)
    runs.look()
    (tmp_path / "list.html").write_text(runs_page(runs.rows(), tmp_path, live=False))
    page = shown(browser, (tmp_path / "list.html").as_uri())
    assert text(page, "sentence") == "1 run: 0 are running, 1 has a correct candidate."
    assert page.find_elements("css selector", "#runs a") == []


def test_a_run_of_eval_is_listed_and_opened(browser, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "report.json").write_text(sample_reports.correct().to_json())
    with served(tmp_path) as address:
        page = shown(browser, address)
        wait_until(lambda: text(page, "about") == "")
        assert text(page, "sentence") == "1 run: 0 are running, 1 has a correct candidate."
        row = page.find_element("css selector", "#runs tbody tr")
        assert f"tilewright explain {tmp_path}/one" in row.text
        assert "complete" in row.text
        row.find_element("css selector", "a").click()
        wait_until(lambda: page.current_url.startswith(f"{address}runs/one/"))
        assert "correct" in page.find_element("tag name", "body").text
        assert page.find_elements("css selector", "#rows tbody tr")


def test_ten_thousand_runs_are_shown_at_once_and_read_meanwhile(browser, tmp_path):
    with begin(tmp_path / "20260101-000000-0000") as log:
        for turn in range(3):
            log.append(finished(turn, 1.0 + turn))
        content = log.path.read_bytes()
    for number in range(1, 10_000):
        folder = tmp_path / f"20260101-000000-{number:04x}"
        folder.mkdir()
        (folder / "events.jsonl").write_bytes(content)
    with served(tmp_path) as address:
        page = shown(browser, address)
        assert text(page, "sentence").startswith("10000 runs")
        assert text(page, "count").startswith("100 of ")
        wait_until(lambda: "10000 have a correct candidate" in text(page, "sentence"), 60.0)


def test_only_runs_of_the_list_are_served(tmp_path):
    import urllib.error
    import urllib.request

    (tmp_path / "inner").mkdir()
    a_run(tmp_path / "inner" / "one")
    # A run outside of the folder.
    EventLog(tmp_path).close()
    with served(tmp_path / "inner") as address:
        assert urllib.request.urlopen(f"{address}runs/one/rows.json").status == 200
        for path in ("runs/..%2F/rows.json", "runs/none/", "runs/", "rows.json", "events.jsonl"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(address + path)
            assert refused.value.code == 400
            refused.value.close()
