"""Write docs/images: pictures of the HTML pages of real small runs, in light and in dark.

python docs/_screenshots.py                 make all pictures
python docs/_screenshots.py --only view     make those of one page

It needs Chromium, chromedriver and the extra `site`.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import tilewright
from tilewright.cli.demo import DEMO, QUICK, exhibits
from tilewright.problems.loader import BUNDLED

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 900
"""Pixels of the window; a picture shows its first screen."""
WAIT_S = 60.0
"""Seconds until a page or a server must be ready."""
SETTINGS = [word for item in QUICK for word in ("--set", item)]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def main() -> int:
    """Run a benchmark, a search and a server, and write a picture of the page of each."""
    parser = argparse.ArgumentParser(description="Make the pictures of docs/images.")
    parser.add_argument("--only", choices=sorted(PAGES), help="make the pictures of one page")
    chosen = parser.parse_args().only
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tilewright-pictures-") as name:
        for picture, page in PAGES.items():
            if chosen in (None, picture):
                folder = Path(name) / picture
                folder.mkdir()
                with page(folder) as address, browser(folder) as window:
                    write_pictures(window, picture, address)
    return 0


def write_pictures(window: Any, picture: str, address: str) -> None:  # noqa: ANN401 - selenium's
    """Write the two pictures of a page."""
    for mode in ("light", "dark"):
        path = IMAGES / f"{picture}-{mode}.png"
        path.write_bytes(shot(window, address, mode))
        print(f"written: docs/images/{path.name}, {path.stat().st_size} bytes")


def run(folder: Path, *words: str) -> None:
    """Run a command of tilewright in a folder.

    A command that finds candidates which are not correct may exit with 1.
    """
    command = [sys.executable, "-m", "tilewright", *words]
    answer = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    if answer.returncode not in (0, 1):
        raise SystemExit(f"tilewright {words[0]} exits with {answer.returncode}")


def only(folder: Path) -> Path:
    """Return the one run in a folder."""
    (found,) = folder.iterdir()
    return found


@contextmanager
def report_page(folder: Path) -> Iterator[str]:
    """Evaluate bundled candidates under both protocols; yield the address of `report`'s page."""
    answers = folder / "answers"
    answers.mkdir()
    given = [(item.problem, item.path) for item in exhibits(DEMO)]
    given += [(path.parents[1].name, path) for path in sorted(BUNDLED.glob("*/candidates/cpp_*"))]
    for number, (problem, path) in enumerate(given):
        shutil.copyfile(path, answers / f"{problem}.{number}{path.suffix}")
    words = ["--candidates", "answers", "--protocol", "strict,official", "--out", "bench"]
    run(folder, "bench", "bundled", *words, *SETTINGS)
    made = only(folder / "bench")
    run(folder, "report", f"bench/{made.name}", "--title", "Bundled candidates")
    page = made / "report.html"
    # It names its own folder; a picture must not hold a path of this machine.
    page.write_text(page.read_text("utf-8").replace(f"{folder}/", ""), encoding="utf-8")
    yield page.as_uri()


@contextmanager
def view_page(folder: Path) -> Iterator[str]:
    """Repeat the recorded search on this machine; yield the address of `view`'s page."""
    words = ["--model", "recorded:bundled", "--turns", "6", "--out", "search"]
    run(folder, "optimize", "rmsnorm", *words)
    run(folder, "view", f"search/{only(folder / 'search').name}", "--export", "view.html")
    yield (folder / "view.html").as_uri()


@contextmanager
def training_page(folder: Path) -> Iterator[str]:
    """Train the model of the tutorial; yield the address of the page with its curves."""
    train(folder)
    run(folder, "view", f"runs/{only(folder / 'runs').name}", "--export", "training.html")
    yield (folder / "training.html").as_uri()


@contextmanager
def runs_page(folder: Path) -> Iterator[str]:
    """Train the model of the tutorial and repeat a search; yield the address of the list."""
    train(folder)
    words = ["--model", "recorded:bundled", "--turns", "6", "--out", "runs"]
    run(folder, "optimize", "rmsnorm", *words)
    run(folder, "view", "runs", "--export", "list.html")
    page = folder / "list.html"
    page.write_text(page.read_text("utf-8").replace(f"{folder}/", ""), encoding="utf-8")
    yield page.as_uri()


@contextmanager
def comparison_page(folder: Path) -> Iterator[str]:
    """Judge two versions of four candidates; yield the address of the page of `compare`."""
    chosen = {path.parents[1].name: path for path in sorted(BUNDLED.glob("*/candidates/cpp_*"))}
    slow = {item.problem: item.path for item in exhibits(DEMO)}
    for name, other in (("before", {}), ("after", slow)):
        (folder / name).mkdir()
        for problem, path in list(chosen.items())[:4]:
            used = other.get(problem, path)
            shutil.copyfile(used, folder / name / f"{problem}{used.suffix}")
        words = ["--candidates", name, "--out", f"{name}-runs", *SETTINGS]
        run(folder, "bench", "bundled", *words)
    paths = [f"{name}-runs/{only(folder / f'{name}-runs').name}" for name in ("before", "after")]
    run(folder, "compare", *paths, "--page", "compare.html")
    yield (folder / "compare.html").as_uri()


def train(folder: Path) -> None:
    """Run the blocks of the training tutorial, up to the reinforcement learning."""
    text = (ROOT / "docs/tutorials/train-your-first-kernel-writer.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh run\n(.*?)```", text, re.DOTALL)[:4]
    start = f"set -eu\nexport PATH={Path(sys.executable).parent}:$PATH"
    script = "\n".join([start, *blocks])
    subprocess.run(["bash", "-c", script], cwd=folder, stdout=subprocess.DEVNULL, check=True)


@contextmanager
def dashboard(folder: Path) -> Iterator[str]:
    """Yield the address of a server that has judged the candidates of the demo."""
    home = folder / "home"
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    command = [sys.executable, "-m", "tilewright", "serve", "--port", str(port)]
    command += ["--set", f"home={home}"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client = tilewright.Client(f"http://127.0.0.1:{port}", patience_s=WAIT_S)
        for item in exhibits(DEMO):
            client.evaluate(item.path, item.problem, config=QUICK)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def browser(folder: Path) -> Iterator[Any]:
    """Yield a browser window without a visible screen."""
    from selenium import webdriver

    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in paths:
        raise SystemExit("pictures need chromium and chromedriver: install the packages of both")
    options = webdriver.ChromeOptions()
    options.binary_location = str(paths[0])
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(paths[1])))
    try:
        yield window
    finally:
        window.quit()


def shot(window: Any, address: str, mode: str) -> bytes:  # noqa: ANN401 - selenium's
    """Return a compressed picture of a page once it is ready."""
    from PIL import Image

    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {"features": [{"name": "prefers-color-scheme", "value": mode}]}
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    window.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    window.get(address)
    limit = time.monotonic() + WAIT_S
    # A page without a script is ready at once.
    ready = "return document.scripts.length ? document.body.dataset.ready : 'yes'"
    while window.execute_script(ready) != "yes":
        if time.monotonic() > limit:
            raise SystemExit(f"{re.sub(r'.*/', '', address)} is not ready after {WAIT_S:.0f} s")
        time.sleep(0.1)
    # The dashboard is ready before the first news of its server arrive.
    time.sleep(2)
    picture = Image.open(io.BytesIO(window.get_screenshot_as_png())).convert("RGB")
    packed = io.BytesIO()
    picture.save(packed, "PNG", optimize=True)
    return packed.getvalue()


PAGES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "report": report_page,
    "view": view_page,
    "training": training_page,
    "runs": runs_page,
    "compare": comparison_page,
    "dashboard": dashboard,
}
"""The pages that are shown, by the name of their pictures."""


if __name__ == "__main__":
    sys.exit(main())
