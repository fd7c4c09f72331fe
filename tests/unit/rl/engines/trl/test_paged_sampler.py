"""Sampling with a paged cache, on a tiny model of fp32 weights and on the CPU."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import gc
from contextlib import nullcontext

import pytest
import torch

pytest.importorskip("trl")
pytestmark = pytest.mark.filterwarnings("ignore")

import peft
import transformers
from transformers.generation.continuous_batching import PagedAttentionCache

from tests.training_fixtures import settings, toy, write_model
from tilewright.errors import ConfigError, PolicyError
from tilewright.rl.engines.trl import models
from tilewright.rl.engines.trl.paged_sampler import PagedSampler, check_paged
from tilewright.rl.engines.trl.preflight import check_rl
from tilewright.rl.engines.trl.sampler import TransformersSampler
from tilewright.rl.engines.trl.sampler_choice import make_sampler
from tilewright.rl.presets import SamplingSection

SHORT = SamplingSection(reply_tokens=24)
PROMPTS = [[5 + place] * (3 + 7 * place) for place in range(5)] + [[9] * 150, [8]]
"""More rows than the cache holds at once, one of them longer than a page."""


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads that share busy cores wait for each other in each of many small operations."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("paged")
    write_model(toy(made), made / "model")
    return made


@pytest.fixture
def model(folder):
    return models.load_model(str(folder / "model"))


def sampler(folder, model, precision="fp32", note=lambda _: None):
    tokenizer = models.load_tokenizer(str(folder / "model"))
    return PagedSampler(
        model, tokenizer, 3, None, nullcontext, "tiny", sampled_in=precision, note=note
    )


def forward(model, sample, temperature=1.0, precision="fp32"):
    """Return the log-probabilities of a reply, from one forward pass without a cache, (reply,)."""
    ids = torch.tensor([sample.prompt + sample.reply])
    half = torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else nullcontext()
    with torch.no_grad(), half:
        logits = model(input_ids=ids).logits[0, len(sample.prompt) - 1 : -1].float()
    chosen = torch.tensor(sample.reply)[:, None]
    return (logits / temperature).log_softmax(-1).gather(-1, chosen)[:, 0]


def most_apart(model, samples, temperature=1.0, precision="fp32"):
    return max(
        float((wanted - torch.tensor(item.logprobs)).abs().max())
        for item in samples
        for wanted in [forward(model, item, temperature, precision)]
    )


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_are_those_of_a_forward_pass(folder, model, temperature):
    sampling = SamplingSection(reply_tokens=24, temperature=temperature)
    found = sampler(folder, model).sample(PROMPTS, "seed", sampling)
    assert [list(item.prompt) for item in found] == PROMPTS
    assert most_apart(model, found, temperature) < 1e-5


def test_log_probabilities_in_bf16_are_those_of_a_forward_pass_in_bf16(folder, model):
    found = sampler(folder, model, "bf16").sample(PROMPTS, "seed", SHORT)
    assert 1e-6 < most_apart(model, found) < 0.05
    assert most_apart(model, found, precision="bf16") < 0.02


def test_adapters_take_part(folder, model):
    adapters = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, adapters)
    plain = sampler(folder, adapted).sample(PROMPTS, "seed", SHORT)
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.add_(0.3 * torch.randn_like(weight))
    changed = sampler(folder, adapted).sample(PROMPTS, "seed", SHORT)
    assert most_apart(adapted, changed) < 1e-5
    assert most_apart(adapted, plain) > 1e-3


def test_a_reply_ends_at_its_end_token_or_at_the_limit(folder, model):
    made = sampler(folder, model)
    end = made.tokenizer.eos_token_id
    found = made.sample(PROMPTS * 8, "ends", SamplingSection(reply_tokens=60))
    assert {item.finish for item in found} == {"stop", "length"}
    for item in found:
        assert len(item.reply) == len(item.logprobs)
        assert end not in item.reply[:-1]
        assert (item.reply[-1] == end) == (item.finish == "stop")
        assert item.finish == "stop" or len(item.reply) == 60


def test_the_seed_chooses_the_replies_and_the_callers_random_numbers_stay(folder, model):
    made = sampler(folder, model)
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    first = made.sample(PROMPTS, "one", SHORT)
    assert torch.equal(torch.rand(3), wanted)
    assert made.sample(PROMPTS, "two", SHORT) != first


def test_tokens_are_as_frequent_as_with_generate(folder, model):
    """Compare the first tokens of 4,000 replies to one prompt with their probabilities."""
    made = sampler(folder, model)
    made.batch_size = 500
    found = made.sample([[5, 6, 7]] * 4000, "many", SamplingSection(reply_tokens=1))
    with torch.no_grad():
        wanted = model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1)
    seen = torch.bincount(torch.tensor([item.reply[0] for item in found]), minlength=len(wanted))
    likely = wanted * 4000 >= 5
    squares = ((seen - wanted * 4000) ** 2 / (wanted * 4000))[likely]
    # Chi-square with as many degrees of freedom: mean n, deviation sqrt(2 n).
    assert squares.sum() < len(squares) + 5 * (2 * len(squares)) ** 0.5


def test_the_model_is_left_as_it_was_and_the_cache_is_gone(folder, model):
    model.train()
    told = []
    made = sampler(folder, model, note=told.append)
    made.sample(PROMPTS, "seed", SHORT)
    made.sample(PROMPTS, "seed", SHORT)
    assert model.training
    assert model.config._attn_implementation == "sdpa"
    assert not [each for each in gc.get_objects() if isinstance(each, PagedAttentionCache)]
    (line,) = told
    assert "pages of 128 tokens, 3 rows at once" in line


def test_a_failure_inside_the_thread_is_an_error_of_sampling(folder, model):
    with pytest.raises(PolicyError, match=r"sampling from tiny, machine\.sampler paged: "):
        sampler(folder, model).sample([[10**9]], "seed", SHORT)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.reads_settings
def test_the_setting_chooses_the_sampler(folder, model):
    tokenizer = models.load_tokenizer(str(folder / "model"))

    def chosen(*overrides):
        machine = toy(folder, *overrides).machine
        return make_sampler(machine, model, tokenizer, None, nullcontext, "tiny")

    assert type(chosen()) is TransformersSampler
    paged = chosen("machine.sampler=paged", "machine.sampler_precision=bf16")
    assert isinstance(paged, PagedSampler)
    assert (paged.sampled_in, paged.batch_size) == ("bf16", 8)
    assert chosen("machine.sampler=paged").sampled_in == "fp32"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (transformers.MistralConfig(sliding_window=8), "layers of sliding_attention"),
        (transformers.Gemma2Config(), "layers of sliding_attention"),
        (transformers.BloomConfig(), "attention in a way of its own"),
    ],
)
def test_models_without_attention_over_pages_are_refused(config, reason):
    with pytest.raises(ConfigError, match=rf"machine\.sampler is paged, .* {reason}.*generate"):
        check_paged(config)


def test_a_run_with_such_a_model_does_not_begin(folder, tmp_path):
    tokenizer = models.load_tokenizer(str(folder / "model"))
    small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
    config = transformers.MistralConfig(
        vocab_size=len(tokenizer),
        num_attention_heads=2,
        num_key_value_heads=2,
        sliding_window=8,
        **small,
    )
    models.save(transformers.MistralForCausalLM(config), tokenizer, tmp_path / "model")
    check_rl(settings(tmp_path), fresh=False)
    with pytest.raises(ConfigError, match=r"machine\.sampler is paged"):
        check_rl(settings(tmp_path, "machine.sampler=paged"), fresh=False)
