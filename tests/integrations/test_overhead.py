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
from tilewright.integrations.packages import (
    INSPECT,
    OLD_VERIFIERS,
    OPENENV,
    VERIFIERS,
    Package,
    in_range,
    installed,
)
from tilewright.problems.loader import find_problem
from tilewright.rl.episodes import Episodes

ANSWERS, ROUNDS, MAX_ADDED_MS = 100, 3, 20
RIGHT = f"```python\n{reports.SOURCE}\n```"
MODULES = {
    "verifiers": "tilewright.integrations.verifiers_taskset",
    "verifiers 0.2": "tilewright.integrations.verifiers_environment",
}


class Instant:
    """An executor that answers with a stored report at once, so that only our time is left."""

    def evaluate(self, request, *_, **__):
        return reports.correct().model_copy(update={"request": request})

    def kill(self):
        pass

    close = kill


@pytest.fixture
def instant(monkeypatch, tmp_path):
    """Let each executor answer at once, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tilewright.loop.answer_evaluator.open_executor", lambda *_: Instant())


def added_ms(spent: list[float]) -> float:
    """Return the lower quartile: other processes only add time, and may take half of the calls."""
    found = 1000 * statistics.quantiles(spent, n=4)[0]
    print(f"{found:.1f} ms in the lower quartile of {len(spent)}")
    return found


def added_to(plain: list[float], ours: list[float]) -> float:
    """Return the CPU time that each of our candidates adds to one of the tool alone, in ms."""
    found = 1000 * (min(ours) - min(plain)) / ANSWERS
    print(f"{found:.1f} ms of CPU time more than the tool alone")
    return found


def package_in_range(*packages: Package) -> None:
    version = installed(packages[0].name)
    if version is None or not any(in_range(version, item) for item in packages):
        pytest.skip(f"not shown: {packages[0].name} {version}")


@pytest.mark.usefixtures("instant")
def test_a_rollout_of_verifiers_adds_less_than_20_ms():
    package_in_range(VERIFIERS)
    import verifiers.v1 as vf
    from verifiers.v1.trace import AgentInfo, MessageNode, TraceTask

    from tilewright.integrations.verifiers_taskset import Kernels, KernelsConfig, RolloutState

    (task,) = Kernels(KernelsConfig(problems="add_relu")).load()
    spent = []
    for _ in range(ANSWERS):
        node = MessageNode(sampled=True, message=vf.AssistantMessage(content=RIGHT))
        shown = TraceTask(type="KernelTask", data=task.data)
        trace = vf.Trace(task=shown, agent=AgentInfo(config=vf.AgentConfig()), nodes=[node])
        trace.state = RolloutState()
        since = time.perf_counter()
        asyncio.run(task.finalize(trace, None))
        reward = asyncio.run(task.reward(trace))
        figures = asyncio.run(task.figures(trace))
        spent.append(time.perf_counter() - since)
        assert (reward > 1, figures["correct"]) == (True, 1)
    assert added_ms(spent) < MAX_ADDED_MS


@pytest.mark.usefixtures("instant")
def test_a_step_of_openenv_adds_less_than_20_ms(monkeypatch):
    package_in_range(OPENENV)
    from tilewright.integrations import openenv_server
    from tilewright.integrations.openenv import KernelAction

    monkeypatch.setattr(openenv_server, "open_executor", lambda *_: Instant())
    pool = openenv_server.DevicePool(load(environ={}), ["add_relu"], ANSWERS)
    session = openenv_server.KernelSession(pool)
    spent = []
    for _ in range(ANSWERS):
        since = time.perf_counter()
        session.reset()
        found = session.step(KernelAction(source=reports.SOURCE))
        spent.append(time.perf_counter() - since)
        assert (found.verdict, found.reward is None) == ("correct", False)
    session.close()
    assert added_ms(spent) < MAX_ADDED_MS


@pytest.mark.usefixtures("instant")
def test_a_sample_of_inspect_adds_less_than_20_ms():
    package_in_range(INSPECT)
    from inspect_ai import Task
    from inspect_ai import eval as run_task
    from inspect_ai.model import GenerateConfig, Model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    from tests.integrations.scripted_model import Scripted
    from tilewright.integrations.inspect import kernels

    ours = kernels(problems="add_relu")
    (sample,) = ours.dataset
    plain = Task(dataset=[sample], solver=generate(), scorer=match(), name="plain")
    model, seconds = Model(Scripted("same", reply=RIGHT), GenerateConfig()), {}
    for task in (plain, ours) * ROUNDS:
        since = time.process_time()
        (log,) = run_task(task, model=model, epochs=ANSWERS, display="none")
        seconds.setdefault(task.name, []).append(time.process_time() - since)
        assert (log.status, len(log.samples)) == ("success", ANSWERS)
    assert added_to(seconds["plain"], seconds["kernels"]) < MAX_ADDED_MS


@pytest.mark.usefixtures("instant")
def test_a_rollout_of_verifiers_0_2_adds_less_than_20_ms(model, monkeypatch):
    package_in_range(OLD_VERIFIERS)
    monkeypatch.setenv("MODEL_KEY", "none")
    import verifiers as vf
    from verifiers.types import ClientConfig

    from tilewright.integrations.verifiers import load_environment

    model.choose = lambda _: RIGHT
    ours = load_environment(problems="add_relu")
    plain = vf.SingleTurnEnv(eval_dataset=ours.get_eval_dataset(), rubric=vf.Rubric())
    seconds = {}
    for name, environment in (("plain", plain), ("ours", ours)) * ROUNDS:
        since = time.process_time()
        found = asyncio.run(
            environment.evaluate(
                client=ClientConfig(api_key_var="MODEL_KEY", api_base_url=model.url),
                model="stand-in",
                rollouts_per_example=ANSWERS,
                max_concurrent=1,
            )
        )
        seconds.setdefault(name, []).append(time.process_time() - since)
        assert len(found["outputs"]) == ANSWERS
    assert added_to(seconds["plain"], seconds["ours"]) < MAX_ADDED_MS


@pytest.mark.usefixtures("instant")
def test_the_function_of_kernelbench_adds_less_than_20_ms(monkeypatch):
    monkeypatch.setattr("tilewright.api._executors", {})
    monkeypatch.setattr("tilewright.api.open_executor", lambda *_: Instant())
    from tests.kernelbench_sources import PROBLEM, RIGHT
    from tilewright.integrations.kernelbench import eval_kernel_against_ref

    spent = []
    for _ in range(ANSWERS):
        since = time.perf_counter()
        result = eval_kernel_against_ref(PROBLEM, RIGHT, device="cpu")
        spent.append(time.perf_counter() - since)
        assert result.correctness
    assert added_ms(spent) < MAX_ADDED_MS


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
    assert added_ms(spent) < MAX_ADDED_MS


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
