"""One Chromium for all tests of pages: each start of it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.test_page import BROWSER, DRIVER, FLAGS


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield made
    made.quit()


@pytest.fixture(scope="module")
def browser(chromium: Any) -> Any:
    """Return the browser with a window that no other module has used."""
    used = chromium.current_window_handle
    chromium.switch_to.new_window("window")
    fresh = chromium.current_window_handle
    chromium.switch_to.window(used)
    chromium.close()
    chromium.switch_to.window(fresh)
    return chromium
