"""Documents in prompts: chosen for each request, named in the log, copied into the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.search.system_runs import search, settings_of
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.run_state import begin_session, resume_session
from tilewright.loop.shown_documents import FOLDER
from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import RequestsIssued
from tilewright.testing.strategy_checks import BEGUN, PROBLEM
from tilewright.testing.synth_world import SynthWorld

MODULE = """---
title: Planted
keywords: [reference, inputs, return, vector]
languages: [any]
devices: [any]
sources: [a test]
---
{}
"""


def base_of(folder: Path, text: str = "A vector has 12345 lanes.") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "index.md").write_text("- [Planted](planted.md)\n")
    (folder / "planted.md").write_text(MODULE.format(text))
    return folder


@pytest.mark.reads_settings
def test_shown_documents_are_in_the_log_and_in_the_run(tmp_path):
    run, settings = tmp_path / "run", settings_of("greedy", 1, knowledge=base_of(tmp_path / "base"))
    run.mkdir()
    search(run, settings, SynthWorld())
    asks = [a for e in read_events(run) if isinstance(e, RequestsIssued) for a in e.asks]
    shown = {digest for ask in asks for digest in ask.documents}
    copies = {path.stem: path.read_text() for path in (run / FOLDER).iterdir()}
    assert {digest[:16] for digest in shown} == set(copies)
    assert any("12345 lanes" in text for text in copies.values())


def test_a_document_that_changed_stops_the_resume_and_is_named(tmp_path):
    base, run = base_of(tmp_path / "base"), tmp_path / "run"
    settings = settings_of("greedy", 1, knowledge=base)
    run.mkdir()
    search(run, settings, SynthWorld())
    lines = (run / EVENTS).read_text().splitlines(keepends=True)
    (run / EVENTS).write_text("".join(lines[:9]))
    assert resume_session(run, settings).finished
    base_of(base, "A vector has 4 lanes.")
    with pytest.raises(RecordError, match="the document 'Planted' was changed or removed"):
        resume_session(run, settings)


def test_without_the_setting_no_prompt_shows_a_document(tmp_path):
    run = begin_session(tmp_path, BEGUN, [PROBLEM], settings_of("greedy", 1))
    assert run.strategy.documents is None
    assert run.strategy.ask(1)[0].documents == ()


def test_a_folder_without_an_index_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="empty"):
        begin_session(
            tmp_path, BEGUN, [PROBLEM], settings_of("greedy", 1, knowledge=tmp_path / "empty")
        )
