"""Rewards for trainers of others, called as they call them: TRL itself, and verl's convention.

Each verdict here is a real one: a supervisor, a judge and runners on this machine.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import pickle
from pathlib import Path

import pytest

from tests.tiny_model import TEMPLATE, make_tiny_model
from tilewright.config import load
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.problems.loader import find_problem
from tilewright.rl.reward_scorer import problem_of, scorer_of
from tilewright.rl.trl_reward import AsyncTrlReward, TrlReward

CORPUS = Path(__file__).parent.parent / "corpus"
RIGHT = "```python\nimport torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n```"
WRONG = RIGHT.replace("torch.softmax(x, -1)", "x * 2")
NONE = "I would rather not."
MODULE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64)]


def get_init_inputs():
    return []
"""
MODULE_RIGHT = """```python
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clamp(min=0)
```"""
VERL = "pkg://tilewright.rl.verl_score"
QUICK = ("eval.timing.enabled=false", "reward.concurrency=1", "reward.retry_delay_s=0")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def settings(home):
    chosen = load(overrides=[*QUICK, f"home={home}"], environ={})
    yield chosen
    scorer_of(chosen).close()


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")
def test_trl_trains_on_verdicts(tmp_path, settings):
    """A GRPOTrainer calls both forms for two steps. What it samples is given; verdicts are not."""
    import datasets
    import trl
    from transformers import AutoTokenizer

    model = make_tiny_model(tmp_path / "model", positions=1024)
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, "left"
    tokenizer.chat_template = TEMPLATE
    replies = iter([RIGHT, WRONG] * 2)

    def rollout(prompts, _):
        said = [tokenizer(next(replies))["input_ids"] + [tokenizer.eos_token_id] for _ in prompts]
        asked = [tokenizer(p[0]["content"])["input_ids"] for p in prompts]
        zeros = [[0.0] * len(ids) for ids in said]
        return {"prompt_ids": asked, "completion_ids": said, "logprobs": zeros}

    seen = []

    class Watched(TrlReward):
        def __call__(self, prompts, completions, completion_ids=None, **columns):
            found = super().__call__(prompts, completions, completion_ids, **columns)
            seen.append((found, sorted(columns)))
            return found

    record = find_problem("softmax").to_json()
    rows = [{"prompt": [{"role": "user", "content": "go"}], "problem": record}] * 2
    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path / "out"),
        max_steps=2,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=256,
        report_to=[],
        use_cpu=True,
        beta=0.0,
        logging_steps=1,
        save_strategy="no",
    )
    trainer = trl.GRPOTrainer(
        model=str(model),
        reward_funcs=[Watched(settings), AsyncTrlReward(settings)],
        args=arguments,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer,
        rollout_func=rollout,
    )
    trainer.train()
    assert [found for found, _ in seen] == [[1.0, 0.0]] * 2
    assert {"problem", "log_extra", "log_metric", "trainer_state"} <= set(seen[0][1])
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert [entry["reward"] for entry in logged] == [1.0, 1.0]
    assert [entry["tilewright/correct"] for entry in logged] == [0.5, 0.5]
    assert logged[0]["rewards/tilewright/mean"] == 0.5


def test_the_rows_of_drkernels_data_name_their_problem(settings):
    model = {"ground_truth": MODULE, "style": "rule"}
    reward = pickle.loads(pickle.dumps(TrlReward(settings)))  # noqa: S301 - TRL's workers do
    said = [
        [{"role": "assistant", "content": MODULE_RIGHT}],
        [{"role": "user", "content": MODULE_RIGHT}],
    ]
    columns = {"reward_model": [model, model], "extra_info": [{"uuid": 3}, None]}
    assert reward(["p", "p"], said, **columns) == [1.0, 0.0]
    with pytest.raises(ConfigError, match=r"a row names no problem: .* it has level"):
        reward(["p"], ["x"], level=[1])


def test_a_row_may_hold_a_problem_of_schema_version_1(settings):
    old = Path(__file__).parents[1] / "golden" / "v1" / "bench" / "problems.jsonl"
    row = json.loads(old.read_text("utf-8").splitlines()[0])
    assert problem_of({"problem": row}, settings).official_comparison == row["published"]


def custom_reward_fn(path, name, reward_kwargs):
    """Load and bind as verl 0.9.1 does (verl/trainer/ppo/reward.py, verl/utils/import_utils.py)."""
    function = getattr(importlib.import_module(path.removeprefix("pkg://")), name)

    def call(raw, extra, *args, **kwargs):
        return raw(*args, **{**kwargs, **extra})

    async def call_async(raw, extra, *args, **kwargs):
        return await raw(*args, **{**kwargs, **extra})

    bound = call_async if inspect.iscoroutinefunction(function) else call
    return functools.partial(bound, function, reward_kwargs)


def test_the_verl_score_function_returns_a_score_or_details(tmp_path, home):
    (tmp_path / "judge.yaml").write_text(f"home: {home}\n")
    options = {"config": str(tmp_path / "judge.yaml"), "overrides": list(QUICK)}
    score = custom_reward_fn(VERL, "compute_score", options)
    extra = {"uuid": 9, "num_turns": None, "rollout_reward_scores": {}}
    row = {"data_source": "cuda_llm", "ground_truth": MODULE, "extra_info": extra}
    assert score(solution_str=MODULE_RIGHT, reward_router_address="x", **row) == 1.0
    assert score(solution_str=NONE, **row) == 0.0
    whole = custom_reward_fn(VERL, "compute_score_async", {**options, "details": True})
    found = asyncio.run(whole(solution_str=MODULE_RIGHT, **{**row, "extra_info": None}))
    assert found == {"score": 1.0, "acc": 1.0, "rejected": 0.0, "unjudged": 0.0}
    assert json.dumps(found)
    none = custom_reward_fn(VERL, "compute_score", {"overrides": ["reward.on_unjudged=none"]})
    with pytest.raises(ConfigError, match="verl wants a number"):
        none(solution_str=NONE, **row)


@pytest.mark.reads_settings
@pytest.mark.parametrize(("said", "wanted"), [("zero", 0.0), ("none", None)])
def test_unjudged_rows_get_a_reward_only_where_on_unjudged_allows_it(tmp_path, said, wanted):
    lost = [*QUICK, f"home={tmp_path}", "eval.device=cuda:77", "reward.retries=1"]
    problem = find_problem("softmax").to_json()
    strict = TrlReward(load(overrides=lost, environ={}))
    with pytest.raises(InfrastructureError, match=r"could not be judged in 2 attempts: .*cuda:77"):
        strict(["p", "p"], [NONE, RIGHT], problem=[problem] * 2)
    lenient = TrlReward(load(overrides=[*lost, f"reward.on_unjudged={said}"], environ={}))
    assert lenient(["p", "p"], [NONE, RIGHT], problem=[problem] * 2) == [0.0, wanted]
    for reward in (strict, lenient):
        scorer_of(reward.settings).close()


def test_a_reward_without_checks_pays_for_rejected_candidates(settings):
    """The hack is judged once, with all checks; two views pay differently for it."""
    hack = (CORPUS / "hacks" / "a1_triton_never_launched.py").read_text()
    problem = find_problem("softmax")
    reply = f"```python\n{hack}\n```"
    assert scorer_of(settings).score(problem, reply).judgement.verdict == "rejected"
    section = settings.reward.model_copy(update={"checks": False})
    off = settings.model_copy(update={"reward": section})
    found = scorer_of(off).score(problem, reply)
    assert (found.judgement.verdict, found.reward) == ("rejected", 1.0)
    scorer_of(off).close()


def test_a_server_judges_for_a_trainer(tmp_path):
    from tests.services.test_serve import Server

    server = Server(tmp_path / "home")
    try:
        chosen = [*QUICK, f"executor={server.url}", f"home={tmp_path / 'none'}"]
        reward = TrlReward(load(overrides=chosen, environ={}))
        problem = find_problem("softmax").to_json()
        found = reward(["p"] * 3, [RIGHT, WRONG, NONE], problem=[problem] * 3)
        assert found == [1.0, 0.0, 0.0]
        # Nothing was judged, or kept, in this process.
        assert not (tmp_path / "none").exists()
    finally:
        server.stop()
