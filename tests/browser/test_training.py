"""The page of a training in a real browser: its curves, and what a training does not have."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_page import BROWSER, DRIVER, SIZES
from tests.browser.test_view import a_run, served, shown
from tests.unit.reports.test_html_report import begun
from tilewright.loop.run_state import begin
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, Stepped, Turn, TurnFinished
from tilewright.reports.csv_markdown import as_markdown
from tilewright.reports.html_report import document, page
from tilewright.reports.loader import gather, title_of
from tilewright.reports.turn_view import Turns
from tilewright.reports.viewer_server import exported

pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def a_training(folder: Path, steps: range) -> None:
    """Add steps to the log of a run, with a reward that rises from 0.5 to 1.15."""
    with EventLog(folder) as log:
        for step in steps:
            figures: dict[str, float | None] = {
                "reward": 0.5 + 0.06 * (step - 1),
                "correct": step / 20,
                "fast@1": step / 40,
                "loss": 1 / step,
                "kl": None,
                "entropy": 2.0,
                "trained_tokens": 1000.0,
                "seconds/sample": 3.0,
                "seconds/update": 1.0,
            }
            log.append(Stepped(step=step, batch=f"step{step - 1:05}", figures=figures))
            if step % 4 == 0:
                scored: dict[str, float | None] = {"reward": 0.4}
                log.append(Stepped(step=step, batch=f"score{step:05}", figures=scored))


def dots(page: Any, title: str, section: str = "curves") -> list[str]:
    """Return the texts of the points of a chart of a training."""
    script = """return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"""
    chart = f"#{section} svg[aria-label^='{title} against'] circle title"
    return list(page.execute_script(script, chart))


@pytest.mark.parametrize("size", SIZES)
def test_a_training_has_curves_that_grow_while_it_runs(browser, tmp_path, size):
    folder = a_run(tmp_path / "run")
    a_training(folder, range(1, 8))
    with served(folder) as viewer:
        page = shown(browser, viewer.url, size)
        assert len([text for text in dots(page, "Reward") if "held out" not in text]) == 7
        # The training was killed after step 7 and continues from its checkpoint at step 6.
        a_training(folder, range(7, 13))
        start = time.monotonic()
        while len([text for text in dots(page, "Reward") if "held out" not in text]) != 12:
            assert time.monotonic() - start < 3
            time.sleep(0.05)
        rewards = dots(page, "Reward")
        assert "reward, step 1: 0.5" in rewards
        assert "reward, step 12: 1.16" in rewards
        assert [text for text in rewards if "held out" in text] == [
            f"reward (held out), step {step}: 0.4" for step in (4, 8, 12)
        ]
        assert page.find_element("id", "trained").text == (
            "12 steps of training: reward 0.5 at step 1, 1.16 at step 12; correct 0.05 at step 1, "
            "0.6 at step 12; loss 1 at step 1, 0.0833 at step 12."
        )
        assert dots(page, "Tokens")[0] == "trained tokens per second, step 1: 250"
        assert len(dots(page, "Time")) == 24
        names = page.find_elements("css selector", "#curves svg text")
        assert {"optimizer step", "seconds per step", "loss"} <= {item.text for item in names}
        # Held-out scores are four steps apart, and no line joins them.
        script = "return document.querySelectorAll(arguments[0]).length"
        reward = "#curves svg[aria-label^='Reward against'] polyline"
        assert page.execute_script(script, reward) == 1
        script = "return document.documentElement.scrollWidth - window.innerWidth"
        assert page.execute_script(script) <= 1


def test_the_turns_of_a_step_are_chosen_by_its_name_or_by_a_point_of_a_curve(browser, tmp_path):
    folder = without_device(tmp_path / "run", "train")
    with EventLog(folder) as log:
        for batch in ("step00000", "step00001", "score00004"):
            for turn in range(2):
                ask = Ask(id=f"{batch}/synth/0#0.{turn}", problem=f"{batch}/synth/0", turn=turn)
                item = EvalSummary(protocol="strict", verdict="correct", speedup=2.0)
                log.append(TurnFinished(turn=Turn(ask=ask, judgements=(item,))))
    page = on_disk(browser, folder)
    names = "return [...document.querySelectorAll('#rows button.row')].map((e) => e.textContent)"
    script = "return [...document.querySelectorAll('#step option')].map((e) => e.textContent)"
    assert page.execute_script(script) == [
        *("every step", "step 1", "step 2", "held out after step 4")
    ]
    page.find_element("id", "step").send_keys("step 2")
    assert page.execute_script(names) == ["step 2, turn 1", "step 2, turn 2"]
    (first,) = page.find_elements("css selector", "[aria-label^='Reward'] [data-step='step 1']")
    first.click()
    assert page.execute_script(names) == ["step 1, turn 1", "step 1, turn 2"]
    assert page.find_element("id", "step").get_attribute("value") == "step 1"
    # No turn of step 3 is known, so its point chooses nothing.
    (third,) = page.find_elements("css selector", "[aria-label^='Reward'] [data-step='step 3']")
    third.click()
    assert len(page.execute_script(names)) == 2
    # The leader of a search has no meaning among samples of a changing model.
    assert "leader" not in page.find_element("id", "rows").text
    assert not page.find_element("id", "marked").is_displayed()


def test_a_search_shows_no_training(browser, tmp_path):
    text = exported(Turns(a_run(tmp_path / "run")))
    (tmp_path / "view.html").write_text(text, encoding="utf-8")
    page = shown(browser, (tmp_path / "view.html").as_uri())
    assert not page.find_element("id", "training").is_displayed()
    assert not page.find_element("id", "stepped").is_displayed()
    # There is one trajectory, so that there is nothing to choose.
    assert not page.find_element("id", "whose").is_displayed()


def without_device(folder: Path, kind: str, steps: int = 12) -> Path:
    """Return the run of a training that judges on no device."""
    folder.mkdir()
    fields = {"kind": kind, "name": "preset", "problems": "synth", "protocols": ("strict",)}
    begin(folder, begun(**fields, device="none"), [], {})
    a_training(folder, range(1, steps + 1))
    return folder


def on_disk(browser: Any, folder: Path) -> Any:
    path = folder / "view.html"
    path.write_text(exported(Turns(folder)), encoding="utf-8")
    return shown(browser, path.as_uri())


def test_the_page_of_sft_has_curves_and_nothing_of_turns(browser, tmp_path):
    page = on_disk(browser, without_device(tmp_path / "run", "sft"))
    assert page.find_element("tag name", "h1").text == "Training on synth (preset)"
    about = page.find_element("id", "about").text
    assert "of evaluation" not in about
    assert about.startswith("synth by preset, tilewright 0.1.0. To show it again")
    assert not any(page.find_element("id", name).is_displayed() for name in ("climb", "turns"))
    units = [item.text for item in page.find_elements("css selector", "#curves svg text")]
    assert "nats per token" in units


def test_axes_have_round_numbers(browser, tmp_path):
    page = on_disk(browser, without_device(tmp_path / "run", "train", 97))
    script = """const charts = [...document.querySelectorAll('#curves svg[aria-label]')];
      const name = (chart) => chart.getAttribute('aria-label').split(' ')[0];
      const words = (chart) => [...chart.querySelectorAll('text')].map((text) => text.textContent);
      return Object.fromEntries(charts.map((chart) => [name(chart), words(chart)]));"""
    texts = page.execute_script(script)
    assert texts["Reward"][:9] == ["0", "20", "40", "60", "80", "0", "2", "4", "6"]
    assert texts["Tokens"][5:-2] == ["0", "50", "100", "150", "200", "250"]
    assert texts["Loss"][5:-2] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert not page.find_element("id", "climb").is_displayed()


def test_lines_that_coincide_are_told_apart_and_named_in_words(browser, tmp_path):
    folder = without_device(tmp_path / "run", "train")
    with EventLog(folder) as log:
        for step in range(13, 16):
            same = {f"fast@{p}": 0.5 for p in ("1", "1.2", "1.5", "2")}
            log.append(Stepped(step=step, batch="step", figures=same | {"seconds/log_probs": 1.0}))
    page = on_disk(browser, folder)
    fast = "#curves svg[aria-label^='Fast against'] polyline"
    script = """return [...document.querySelectorAll(arguments[0])]
      .map((line) => line.getAttribute('stroke-dasharray'))"""
    dashes = page.execute_script(script, fast)
    assert len(set(dashes)) == 4
    legends = [item.text for item in page.find_elements("css selector", "#curves .legend span")]
    assert {"correct and faster than 1.2x", "log-probabilities", "reward (held out)"} <= set(
        legends
    )
    assert not any("/" in text or "_" in text for text in legends)
    # A chart of one line needs no legend.
    charts = page.find_elements("css selector", "#curves figure")
    loss = next(chart for chart in charts if chart.text.startswith("Loss"))
    assert loss.find_elements("css selector", ".legend") == []


def test_the_report_of_a_training_says_of_which_turns_its_best_is(browser, tmp_path):
    folder = without_device(tmp_path / "run", "train")
    with EventLog(folder) as log:
        for turn, speedup in enumerate((14.4, 12.47)):
            ask = Ask(id=f"synth/0#0.{turn}", problem="synth/0", turn=turn)
            exact = {"speedup": speedup, "low": speedup, "high": speedup}
            item = EvalSummary(protocol="strict", verdict="correct", **exact)
            log.append(TurnFinished(turn=Turn(ask=ask, judgements=(item,))))
    gathered = gather([folder])
    text = page(document(gathered, title_of(gathered.runs[0].begun)))
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    found = shown(browser, (tmp_path / "report.html").as_uri())
    assert found.find_element("tag name", "h1").text == "Training on synth (preset)"
    assert found.find_element("id", "sentence").text == (
        "12 steps of training: reward 0.5 at step 1, 1.16 at step 12; correct 0.05 at step 1, "
        "0.6 at step 12; loss 1 at step 1, 0.0833 at step 12. 2 turns for 1 problem: 2 are "
        "correct; at the last turn of 1 trajectory 1 is correct, 1 is measurably "
        "faster, the best of them 12.47x (synth/0); the best of all turns: 14.40x (synth/0)."
    )
    rewards = [text for text in dots(found, "Reward", "training") if "held out" not in text]
    assert len(rewards) == 12
    assert (rewards[0], rewards[-1]) == ("reward, step 1: 0.5", "reward, step 12: 1.16")
    assert found.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 1
    assert "last turn of each trajectory" in found.find_element("id", "headline").text
    cells = found.find_elements("css selector", "#rows td.n")
    assert [cell.text for cell in cells] == ["14.40x", "12.47x"]


def test_the_report_of_sft_has_its_loss_and_nothing_of_candidates(browser, tmp_path):
    gathered = gather([without_device(tmp_path / "run", "sft")])
    text = page(document(gathered, title_of(gathered.runs[0].begun)))
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    found = shown(browser, (tmp_path / "report.html").as_uri())
    assert found.find_element("id", "sentence").text.startswith("12 steps of training: ")
    assert dots(found, "Loss", "training")[0] == "loss, step 1: 1"
    assert "12 steps of training" in as_markdown(gathered, "t")
    names = ("headline", "curves", "kinds", "candidates", "where", "diff", "flips", "roofline")
    assert not any(found.find_element("id", name).is_displayed() for name in names)
