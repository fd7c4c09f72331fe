"""One browser for all tests of a process: its start takes seconds of computing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.test_page import BROWSER, DRIVER, FLAGS


@pytest.fixture(scope="session")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield made
    made.quit()


@pytest.fixture
def browser(one_browser: Any) -> Any:
    """Return the browser on an empty page. A test chooses the size of the window once."""
    one_browser.get("about:blank")
    one_browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    one_browser.get_log("browser")
    return one_browser
