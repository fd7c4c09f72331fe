"""The time that an integration adds to an evaluation, and what it imports into the caller."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

import pytest

from tests import sample_reports as reports
from tilewright.config import load
from tilewright.integrations.catalogue import INTEGRATIONS, installed_version, state_of
from tilewright.integrations.judged_answers import Episode
from tilewright.problems.loader import find_problem
from tilewright.rl.episodes import Episodes

ANSWERS, MAX_ADDED_S = 100, 0.020
RIGHT = f"```python\n{reports.SOURCE}\n```"
MODULES = {
    "verifiers": "tilewright.integrations.verifiers_taskset",
    "verifiers 0.2": "tilewright.integrations.verifiers_environment",
}


class Instant:
    """An executor that answers with a stored report at once, so that only our time is left."""

    def evaluate(self, request, *_, **__):
        return reports.correct().model_copy(update={"request": request})


def test_an_episode_adds_less_than_20_ms_per_candidate(tmp_path):
    settings = load(overrides=[f"runs={tmp_path}"], environ={})
    with Episodes(settings, "test", Instant()) as episodes:
        spent = []
        for _ in range(ANSWERS):
            episode = Episode(episodes, settings)
            since = time.perf_counter()
            episode.reset(find_problem("add_relu"))
            answer, _ = asyncio.run(episode.answer(RIGHT))
            spent.append(time.perf_counter() - since)
            assert answer.verdict == "correct"
    print(f"median {1000 * statistics.median(spent):.1f} ms of {ANSWERS} answers")
    assert statistics.median(spent) < MAX_ADDED_S


@pytest.mark.parametrize("item", INTEGRATIONS, ids=lambda item: item.name)
def test_no_integration_imports_torch_into_the_caller(item):
    version = installed_version(item)
    if item.versions and state_of(item, version) != "ready":
        pytest.skip(f"not shown: {item.package} {version}")
    module = item.module
    if item.name == "verifiers":
        module = MODULES["verifiers" if str(version).startswith("0.4") else "verifiers 0.2"]
    code = f"import sys, {module}; sys.exit(int('torch' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
