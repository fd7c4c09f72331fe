"""Old names of settings and options: accepted, announced once, and never mixed with new names."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tilewright.cli.main import cli
from tilewright.cli.renamed_options import RENAMED_OPTIONS, REPLACED_OPTIONS
from tilewright.config import RENAMED_SETTINGS, RENAMED_TRAINING, leaves, load
from tilewright.errors import ConfigError
from tilewright.rl.presets import Preset
from tilewright.rl.training_config import TrainConfig, load_training

OLD = "eval.limits.call_s"
NEW = "eval.limits.call_timeout_s"


def lines(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


@pytest.fixture
def write(tmp_path):
    def write(text: str):
        path = tmp_path / "settings.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def command_of(verb: str):
    found = cli
    for name in verb.split():
        found = found.get_command(None, name)
    return found


def nested(path: str, value: str) -> str:
    parts = path.split(".")
    return "".join(f"{'  ' * depth}{name}:\n" for depth, name in enumerate(parts))[:-1] + value


@pytest.mark.parametrize(("old", "new"), RENAMED_SETTINGS.items())
def test_an_old_setting_sets_the_new_one_and_is_announced_in_one_line(write, capsys, old, new):
    value = "[seccomp]" if "require" in new and "custom" not in new else "true"
    value = value if "require" in new else "7"
    by_flag = load(overrides=[f"{old}={value}"], environ={})
    (line,) = lines(capsys)
    assert old in line
    assert new in line
    by_file = load(write(nested(old, f" {value}")), environ={})
    assert len(lines(capsys)) == 1
    wanted = load(overrides=[f"{new}={value}"], environ={})
    assert by_flag == by_file == wanted != load(environ={})
    assert lines(capsys) == []


def test_every_new_name_is_a_setting_and_no_old_name_is():
    trees = [
        (RENAMED_SETTINGS, [leaf.path for leaf in leaves()]),
        (
            RENAMED_TRAINING,
            [leaf.path for leaf in leaves(TrainConfig)]
            + [f"overrides.{leaf.path}" for leaf in leaves(Preset)],
        ),
    ]
    for table, paths in trees:
        for old, new in table.items():
            assert any(path == new or path.startswith(f"{new}.") for path in paths), new
            assert not any(path == old or path.startswith(f"{old}.") for path in paths), old


def test_several_old_settings_are_announced_in_one_line(capsys):
    load(overrides=[f"{OLD}=1", "loop.turn_s=60"], environ={})
    (line,) = lines(capsys)
    assert f"{OLD} is now {NEW}" in line
    assert "loop.turn_s is now loop.eval_timeout_s" in line


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("eval: {limits: {call_s: 1, call_timeout_s: 2}}", []),
        ("eval: {limits: {call_s: 1}}", [f"{NEW}=2"]),
        ("eval: {limits: {call_timeout_s: 1}}", [f"{OLD}=1"]),
        ("", [f"{OLD}=1", f"{NEW}=1"]),
        ("", [f"{NEW}=1", f"{OLD}=1"]),
        ("", ["eval={limits: {call_s: 1, call_timeout_s: 2}}"]),
    ],
)
def test_both_names_of_one_setting_are_refused_and_named(write, text, overrides):
    with pytest.raises(ConfigError) as raised:
        load(write(text), overrides, environ={})
    assert OLD in str(raised.value)
    assert NEW in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_recorded_run_is_renamed_silently_and_takes_new_names(write, capsys):
    file = write("eval: {limits: {call_s: 1}}")
    assert load(file, environ={}, recorded=True).eval.limits.call_timeout_s == 1.0
    again = load(file, [f"{NEW}=2"], environ={}, recorded=True)
    assert again.eval.limits.call_timeout_s == 2.0
    assert lines(capsys) == []


def test_an_old_setting_of_a_wrong_value_is_refused_under_its_new_name():
    with pytest.raises(ConfigError, match="call_timeout_s"):
        load(overrides=[f"{OLD}=soon"], environ={})
    with pytest.raises(ConfigError, match="eval"):
        load(overrides=["eval=3"], environ={})


def test_old_settings_of_a_training_are_renamed(write, capsys):
    file = write(
        "own_kernels: false\n"
        "model: {fresh: {hidden: 64}}\n"
        "machine: {rows_together: 4, recompute: true}\n"
        "overrides: {mismatch: {veto: 0.5}, reward: {most_speedup: 20}}\n"
        "settings: {loop: {in_flight: 9}}\n"
    )
    found = load_training(file)
    (line,) = lines(capsys)
    for name in (
        "own_kernels",
        "model.fresh",
        "settings.loop.in_flight",
        "overrides.mismatch.veto",
    ):
        assert f"{name} is now {RENAMED_TRAINING[name]}" in line
    assert not found.require_custom_kernel
    assert found.model.from_scratch.hidden == 64
    assert (found.machine.train_batch_size, found.machine.gradient_checkpointing) == (4, True)
    assert found.estimator().mismatch.min_ratio == 0.5
    assert found.estimator().reward.max_speedup == 20
    assert found.settings.loop.max_concurrency == 9
    assert load_training(file, recorded=True) == found
    assert lines(capsys) == []
    with pytest.raises(ConfigError, match=r"model\.fresh .*model\.from_scratch"):
        load_training(file, ["model.from_scratch.hidden=32"])


@pytest.mark.parametrize("verb", RENAMED_OPTIONS)
def test_old_options_are_hidden_and_new_ones_are_in_the_help(verb):
    shown = {name for param in command_of(verb).params for name in param.opts}
    for old, new in RENAMED_OPTIONS[verb].items():
        assert new in shown
        assert old not in shown
    for old, words in REPLACED_OPTIONS.get(verb, {}).items():
        assert old not in shown
        assert command_of(" ".join([verb, *words])) is not None


@pytest.mark.parametrize("form", [["--replay", "no"], ["--replay=no"]])
def test_an_old_option_works_and_is_announced_in_one_line(form):
    result = CliRunner().invoke(cli, ["eval", *form])
    announced, error = result.stderr.splitlines()
    assert announced == "tilewright: deprecated option: --replay is now --from-report"
    assert "no such run or report" in error
    assert result.exit_code == 6


def test_both_names_of_one_option_are_refused_and_named():
    result = CliRunner().invoke(cli, ["eval", "--replay", "a", "--from-report", "b"])
    assert result.exit_code == 2
    assert "--replay is the old name of --from-report" in result.stderr


def test_an_argument_after_two_dashes_is_no_option():
    result = CliRunner().invoke(cli, ["explain", "--", "--trace"])
    assert "deprecated" not in result.stderr
    assert "--trace" in result.stderr


def test_the_old_options_about_tokens_call_the_sub_commands(tmp_path):
    def run(*words: str):
        return CliRunner().invoke(cli, ["serve", *words, "--set", f"home={tmp_path}"])

    made = run("--make-token", "trainer", "--scope", "read")
    assert made.exit_code == 0
    assert "--make-token is now token create" in made.stderr
    assert len(made.stdout.strip()) > 20
    assert run("token", "list").stdout == run("--list-tokens").stdout == "trainer  read\n"
    assert run("--revoke-token=trainer").exit_code == 0
    assert run("token", "list").stdout == ""


def test_options_before_a_sub_command_are_refused():
    result = CliRunner().invoke(cli, ["serve", "--port", "1", "token", "list"])
    assert result.exit_code == 2
    assert "after the sub-command" in result.stderr
