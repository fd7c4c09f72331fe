"""Settings: their sources, and the messages of errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tilewright import config
from tilewright.config import Config, dump, leaves, load
from tilewright.errors import ConfigError


@pytest.fixture
def write(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "run.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_without_anything_the_defaults_hold():
    assert load(environ={}).eval == Config().eval


def test_a_file_changes_only_the_settings_that_it_names(write):
    loaded = load(write("eval:\n  timing: {max_s: 5}\n"), environ={})
    assert loaded.eval.timing.max_s == 5.0
    assert loaded.eval.timing.min_blocks == Config().eval.timing.min_blocks
    assert loaded.eval.limits == Config().eval.limits


def test_an_override_beats_the_file_and_the_last_override_wins(write):
    file = write("eval: {protocol: official, device: 'cuda:1'}")
    loaded = load(file, ["eval.protocol=strict", "eval.device=a", "eval.device=b"], environ={})
    assert (loaded.eval.protocol, loaded.eval.device) == ("strict", "b")


def test_an_override_may_set_a_part_of_a_section():
    loaded = load(overrides=["eval.timing.max_s=9", "eval.timing={min_blocks: 8}"], environ={})
    assert (loaded.eval.timing.max_s, loaded.eval.timing.min_blocks) == (9.0, 8)


def test_a_value_is_yaml():
    loaded = load(overrides=["eval.require_isolation=[seccomp, landlock]"], environ={})
    assert loaded.eval.require_isolation == ("seccomp", "landlock")
    assert (
        load(overrides=["eval.limits.total_timeout_s=1e3"], environ={}).eval.limits.total_timeout_s
        == 1000.0
    )


def test_the_environment_is_the_lowest_source(write):
    environ = {config.HOME_VARIABLE: "/a", config.PLUGINS_VARIABLE: "one, two,"}
    assert load(environ=environ).home == Path("/a")
    assert load(environ=environ).plugins == ("one", "two")
    assert load(write("home: /b"), environ=environ).home == Path("/b")
    assert load(write("home: /b"), ["home=/c"], environ=environ).home == Path("/c")


def test_an_empty_list_of_plugins_admits_none():
    assert load(environ={config.PLUGINS_VARIABLE: ""}).plugins == ()
    assert load(environ={}).plugins is None


def test_the_process_environment_is_read_by_default(monkeypatch):
    monkeypatch.setenv(config.HOME_VARIABLE, "/somewhere")
    assert load().home == Path("/somewhere")


def test_the_home_folder_is_expanded():
    assert load(overrides=["home=~/x"], environ={}).home == Path("~/x").expanduser()


def test_an_empty_file_is_no_error(write):
    assert load(write("# nothing\n"), environ={}) == load(environ={})


def test_the_tree_cannot_be_changed():
    with pytest.raises(ValidationError):
        load(environ={}).runs = Path("elsewhere")


@pytest.mark.parametrize(
    ("override", "nearest"),
    [
        ("eval.timing.max_seconds=5", "eval.timing.max_s"),
        ("eval.limits.memory_byte=1", "eval.limits.memory_bytes"),
        ("evl.device=cpu", "eval.device"),
        ("timing.max_s=5", "eval.timing.max_s"),
        ("protocol=strict", "eval.protocol"),
        ("hom=/a", "home"),
    ],
)
def test_an_unknown_key_names_the_nearest(override, nearest):
    with pytest.raises(ConfigError, match=rf"no such setting; did you mean {nearest}\?$"):
        load(overrides=[override], environ={})


def test_an_unknown_key_far_from_all_points_to_the_list():
    with pytest.raises(ConfigError, match=r"qqqq=1: no such setting; docs/reference/config\.md"):
        load(overrides=["qqqq=1"], environ={})


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("eval.device", "write path=value"),
        ("=3", "write path=value"),
        ("eval..device=3", "write path=value"),
        ("eval.timing.max_s=-1", r"max_s=-1: expected more than 0, got -1$"),
        ("eval.timing.max_s=.nan", r"max_s=\.nan: expected a finite number"),
        ("eval.protocol=lenient", r": expected 'strict' or 'official', got 'lenient'$"),
        ("eval.timing=3", "a section, not a setting"),
        ("eval.baselines=[]", "expected at least 1 items"),
        ("eval.device={", "not YAML"),
        ("eval.rules={precision: tf32, precision: fp32}", "'precision' is repeated"),
        ("home.deeper=3", "expected a path"),
    ],
)
def test_a_wrong_override_is_named(override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load(overrides=["eval.device=cpu", override], environ={})
    assert override.partition("=")[0] in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "settings are a mapping, not a list"),
        ("eval: [", "not YAML"),
        ("eval: {device: cpu}\neval: {}\n", "'eval' is repeated"),
        ("runs: !!python/object/apply:os.getcwd []\n", "not YAML"),
        ("1: 2\n", "1: Keys should be strings"),
        ("? [a]\n: b\n", "not YAML"),
    ],
)
def test_a_wrong_file_is_named(write, text, message):
    path = write(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load(path, ["eval.device=cpu"], environ={})
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    missing = tmp_path / "no.yaml"
    with pytest.raises(ConfigError, match="no such file or folder; name a YAML file of settings"):
        load(missing, environ={})
    missing.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match="not UTF-8 text: byte 0xff on line 1"):
        load(missing, environ={})


def test_a_dumped_tree_loads_again(write):
    loaded = load(overrides=["eval.timing.max_s=7", "plugins=[a]", "runs=here"], environ={})
    assert load(write(dump(loaded)), environ={}) == loaded


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_override_loads_or_raises_a_config_error(path, value):
    try:
        loaded = load(overrides=[f"{path}={value}"], environ={})
    except ConfigError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
    else:
        assert isinstance(loaded, Config)


@given(st.sampled_from([leaf.path for leaf in leaves()]), st.text(max_size=40))
def test_any_value_loads_or_raises_a_config_error(path, value):
    try:
        loaded = load(overrides=[f"{path}={value}"], environ={})
    except ConfigError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
    else:
        assert isinstance(loaded, Config)


def test_leaves_list_every_setting_of_the_tree():
    paths = [leaf.path for leaf in leaves()]
    assert len(paths) == len(set(paths))
    assert {"home", "eval.protocol", "eval.limits.memory_bytes"} <= set(paths)
    for leaf in leaves():
        value = load(environ={})
        for part in leaf.path.split("."):
            value = getattr(value, part)
        if leaf.path != "home":
            assert value == leaf.default, leaf.path
        assert leaf.annotation


def test_environment_returns_what_is_set(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TEST_A", "1")
    monkeypatch.delenv("TILEWRIGHT_TEST_B", raising=False)
    assert config.environment(["TILEWRIGHT_TEST_A", "TILEWRIGHT_TEST_B"]) == {
        "TILEWRIGHT_TEST_A": "1"
    }


def test_a_variable_that_the_user_set_keeps_its_value(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TEST_A", "1")
    monkeypatch.setenv("TILEWRIGHT_TEST_B", "")
    monkeypatch.delenv("TILEWRIGHT_TEST_B")
    wanted = {"TILEWRIGHT_TEST_A": "2", "TILEWRIGHT_TEST_B": "3"}
    assert config.with_defaults(wanted) == {"TILEWRIGHT_TEST_A": "1", "TILEWRIGHT_TEST_B": "3"}
    assert config.environment(wanted) == {"TILEWRIGHT_TEST_A": "1", "TILEWRIGHT_TEST_B": "3"}
