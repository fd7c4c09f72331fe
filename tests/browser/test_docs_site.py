"""The documentation site in a real browser, from disk and without a network."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser.test_page import BROWSER, CONTRAST, DRIVER, FLAGS, SIZES, pytestmark
from tests.conventions.tree import ROOT

for package in ("sphinx", "furo", "myst_parser"):
    pytest.importorskip(package, reason="needs the site's packages: make docs-site installs them")
pytestmark = [*pytestmark, pytest.mark.slow, pytest.mark.timeout(600)]
OPENED = (
    *("index", "tutorials/first-evaluation", "guides/serve", "guides/use-from-python"),
    *("reference/cli", "reference/config", "reference/hacks", "reference/python"),
    *("explanation/glossary", "explanation/architecture", "adr/index", "measurements/README"),
    *("repository/readme", "repository/contributing", "repository/changelog"),
)
FOUND = {
    "tolerance": "explanation/correctness.html",
    "Slurm": "guides/run-on-many-gpus.html",
    "evaluate_async": "reference/python.html",
}
"""Words to search for, with the page that a result of each must open."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Build the site once, also for several workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "docs-site"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            command = [sys.executable, "docs/_site.py", "--out", str(folder)]
            answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert (answer.returncode, answer.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a browser that reaches no host and logs every request."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    profile = tmp_path_factory.mktemp("profile")
    blocked = "--host-resolver-rules=MAP * ~NOTFOUND"
    for flag in (*FLAGS, blocked, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield made
    made.quit()


def opened(browser: Any, address: str, size: str = "desktop") -> Any:
    width, height = SIZES[size]
    shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(address)
    return browser


def asserts_quiet(browser: Any) -> None:
    """Assert that the page has asked no host and that the console is empty."""
    assert browser.get_log("browser") == []
    events = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    asked = [
        item["params"]["request"]["url"]
        for item in events
        if item["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    assert {urlsplit(url).scheme for url in asked} <= {"file", "data"}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", OPENED)
def test_pages_open_from_disk_without_a_network_and_fit(offline, site, name, size):
    shown = opened(offline, (site / f"{name}.html").as_uri(), size)
    assert shown.find_element("css selector", "article h1").text
    wide = shown.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    asserts_quiet(shown)


@pytest.mark.parametrize("word", FOUND)
def test_a_search_finds_the_page(offline, site, word):
    from selenium.webdriver.common.keys import Keys

    shown = opened(offline, (site / "index.html").as_uri())
    shown.find_element("css selector", ".sidebar-search").send_keys(word, Keys.ENTER)
    limit = time.monotonic() + 30
    while not (links := results(shown)):
        assert time.monotonic() < limit, shown.get_log("browser")
        time.sleep(0.1)
    wanted = (site / FOUND[word]).as_uri()
    address = next(url for url in links if url.partition("#")[0].partition("?")[0] == wanted)
    asserts_quiet(shown)
    opened(offline, address)
    assert word in shown.find_element("css selector", "article").text
    asserts_quiet(shown)


def results(browser: Any) -> list[str]:
    """Return the addresses of the results once the search is finished."""
    script = """return document.querySelector('.search-summary')?.innerText.includes('finished')
      ? [...document.querySelectorAll('#search-results li a')].map((item) => item.href) : []"""
    return list(browser.execute_script(script))


def test_every_link_of_the_first_page_leads_somewhere(offline, site):
    shown = opened(offline, (site / "index.html").as_uri())
    links = set(shown.execute_script("return [...document.links].map((item) => item.href)"))
    assert len(links) > 150
    local = {url for url in links if url.startswith("file:")}
    # The one link out of the site is that of the theme, in the foot of the page.
    assert {urlsplit(url).netloc for url in links - local} <= {"github.com"}
    wrong = []
    for url in local:
        parts = urlsplit(url)
        path = Path(unquote(parts.path))
        if not path.is_file() or (
            parts.fragment and f'id="{unquote(parts.fragment)}"' not in path.read_text("utf-8")
        ):
            wrong.append(url)
    assert not wrong


def test_the_first_page_shows_verdicts_and_pictures_in_light_and_dark(offline, site):
    shown = opened(offline, (site / "index.html").as_uri())
    assert "softmax_without_max     softmax           incorrect" in shown.find_element(
        "css selector", "article pre"
    ).get_attribute("textContent")
    for mode, other in (("light", "dark"), ("dark", "light")):
        wanted = {"features": [{"name": "prefers-color-scheme", "value": mode}]}
        shown.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        ratio = shown.execute_script(CONTRAST)
        assert ratio["dark"] == (mode == "dark")
        assert ratio["least"] >= 4.5, ratio
        for picture in ("report", "view", "dashboard"):
            seen, hidden = (
                shown.find_element("css selector", f"article img[src$='{picture}-{name}.png']")
                for name in (mode, other)
            )
            assert (seen.is_displayed(), hidden.is_displayed()) == (True, False)
            assert seen.get_property("naturalWidth") == 1280
            assert seen.get_attribute("alt")
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_site_has_every_document(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in ROOT.glob("docs/**/*.md")}
    assert {page for page in pages if not (site / f"{page}.html").is_file()} == set()
