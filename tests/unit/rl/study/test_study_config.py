"""The settings of a study: those that come with tilewright, and what is refused."""

from __future__ import annotations

import pytest
import yaml

from tilewright.errors import ConfigError
from tilewright.rl.study.study_config import first_difference, load_study, one_arm

REHEARSAL = "nano-rehearsal.yaml"


def test_the_rehearsal_comes_with_tilewright():
    found = load_study(REHEARSAL)
    assert found.is_synthetic
    assert [name for name, _ in found.runs()] == ["base", "without-checks", "without-PR-PRS"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": {}}, "arms"),
        ({"arms": {"a/b": {}}}, "arms.a/b: a name has no slash"),
        ({"arms": {"only": {}}}, "directions.0: there is no arm 'without-checks'"),
        ({"cold_start": {"mix": {"fussed": 0.1}}}, "there is no share 'fussed'"),
        ({"cold_start": {"mix": {"fused": 0.9}}}, "the shares of plans sum to"),
        ({"last_steps": 0}, "last_steps: expected at least 1, got 0"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, change, message):
    tree = load_study(REHEARSAL).model_dump(mode="json") | change
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(tree))
    with pytest.raises(ConfigError) as error:
        load_study(str(path))
    assert str(path) in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["absent.yaml", "folder/nano-rehearsal.yaml", "study_config.py"])
def test_a_file_that_is_not_there_is_named(name):
    with pytest.raises(ConfigError, match="no such file"):
        load_study(name)


def test_no_yaml_is_named(tmp_path):
    (tmp_path / "x.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match="no YAML"):
        load_study(str(tmp_path / "x.yaml"))


def test_the_first_difference_is_a_dotted_path():
    one = {"a": {"b": 1, "c": [1]}, "d": 2}
    assert first_difference(one, {"a": {"b": 1, "c": [2]}, "d": 3}) == "a.c"
    assert first_difference(one, {**one, "e": None}) == ""
    assert first_difference(one, {**one, "e": 1}) == "e"
    assert first_difference(one, one) == ""


def test_one_arm_alone_gets_a_seed_that_it_does_not_have():
    study = load_study("nano.yaml")
    assert list(one_arm(study, "base", None).runs()) == [("base", 5)]
    assert list(one_arm(study, "base", 2).runs()) == [("base", 2)]
    assert one_arm(study, "base", 2).training == study.training
    with pytest.raises(ConfigError, match="--arm bass: the study has no such arm; base"):
        one_arm(study, "bass", None)


@pytest.mark.parametrize("path", ["reference", "scaling.arm"])
def test_an_arm_that_is_named_must_exist(tmp_path, path):
    tree = load_study("nano.yaml").model_dump(mode="json")
    tree |= {"reference": "bass"} if path == "reference" else {"scaling": {"arm": "bass"}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(ConfigError, match=f"{path}: there is no arm 'bass'"):
        load_study(str(tmp_path / "s.yaml"))
