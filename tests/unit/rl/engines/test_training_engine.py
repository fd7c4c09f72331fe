"""Engines are plug-ins, and an environment that does not fit one is refused with a command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.training_fixtures import toy
from tilewright.errors import ConfigError, PluginError
from tilewright.rl.engines.training_engine import find_engine
from tilewright.rl.engines.trl.trl_engine import refuse_settings_of_verl


@pytest.mark.reads_settings
def test_the_engine_of_a_run_is_found_by_its_setting(tmp_path):
    assert find_engine(toy(tmp_path).engine).summary.startswith("TRL")
    assert find_engine(toy(tmp_path, "engine=verl").engine).summary.startswith("verl")
    with pytest.raises(PluginError, match="no engine 'verk'"):
        find_engine("verk")


def test_a_wrong_environment_is_refused_with_the_command_that_makes_the_right_one():
    engine = find_engine("trl")
    cases = {
        "nothing_of_this_name is not installed": {"needed": {"nothing_of_this_name": ""}},
        "and 0.0.1 is needed": {"needed": {"pytest": "0.0.1"}},
        "needs an environment of its own": {"excluded": {"pytest": "1"}},
    }
    for text, change in cases.items():
        with pytest.raises(ConfigError, match=text) as refused:
            replace(engine, **change).require_packages()
        assert "pip install 'tilewright[train]'" in str(refused.value)
    replace(engine, needed={"pytest": ""}, excluded={"pytest": "1000"}).require_packages()


@pytest.mark.reads_settings
@pytest.mark.parametrize(
    "change",
    [
        "gpus=2",
        "nodes=2",
        "tensor_parallel=2",
        "sampler=vllm",
        "server_memory=0.9",
        "offload=true",
        "verl={trainer.nnodes: 2}",
    ],
)
def test_the_engine_trl_refuses_settings_of_verl(tmp_path, change):
    machine = toy(tmp_path, f"machine.{change}").machine
    with pytest.raises(ConfigError, match=rf"machine\.{change.partition('=')[0]}: only the engine"):
        refuse_settings_of_verl(machine)
    refuse_settings_of_verl(toy(tmp_path).machine)
