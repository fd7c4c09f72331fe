"""Plug-ins: found without an import, loaded one by one, with clear errors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tilewright import records, registry
from tilewright.checks.evidence import Evidence
from tilewright.errors import PluginError
from tilewright.loop import budget, rollout_environment
from tilewright.records import Rules, events
from tilewright.registry import KINDS, RENAMED, catalogue, load, renamed_uses
from tilewright.rl.worlds import World


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that puts a package with entry points on the path."""

    def install(package: str, entries: dict[str, str], **modules: str) -> Path:
        root = tmp_path / package
        info = root / f"{package.replace('-', '_')}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[tilewright.checks]", *lines, ""]))
        for name, text in modules.items():
            (root / f"{name}.py").write_text(text)
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.syspath_prepend(root)
        return root

    return install


def test_listing_imports_nothing(install):
    install("fake-pack", {"zeta": "tw_zeta:THING", "alpha": "tw_alpha:THING"}, tw_zeta="1 / 0")
    found = catalogue("checks")
    assert [name for name in found if name in {"alpha", "zeta"}] == ["alpha", "zeta"]
    assert list(found) == sorted(found)
    plugin = found["zeta"]
    assert (plugin.kind, plugin.package, plugin.version) == ("checks", "fake-pack", "1.2")
    assert plugin.entry.value == "tw_zeta:THING"
    assert "tw_zeta" not in sys.modules


def test_loading_returns_the_object(install):
    install("fake-pack", {"zeta": "tw_zeta:THING"}, tw_zeta="THING = [1, 2]")
    assert load("checks", "zeta") == [1, 2]


def test_an_unknown_name_lists_what_is_installed(install):
    install("fake-pack", {"zeta": "tw_zeta:THING"})
    with pytest.raises(PluginError, match=r"no check 'nope'; installed: .*zeta"):
        load("checks", "nope")


def test_an_unknown_kind_lists_the_kinds():
    with pytest.raises(PluginError, match="kinds: checks, engines, languages"):
        catalogue("hats")
    with pytest.raises(PluginError, match="kinds: checks, engines, languages"):
        load("hats", "top")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import tw_not_there", "ModuleNotFoundError: No module named 'tw_not_there'$"),
        ("OTHER = 1", "AttributeError"),
        ("import torch.tw_not_there", r"pip install 'tilewright\[judge\]'$"),
    ],
)
def test_a_failed_import_names_plugin_package_and_cause(install, source, message, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    install("fake-pack", {"zeta": "tw_zeta:THING"}, tw_zeta=source)
    with pytest.raises(PluginError, match=message) as caught:
        load("checks", "zeta")
    assert "cannot import checks/zeta (tw_zeta:THING, from fake-pack 1.2)" in str(caught.value)
    assert caught.value.__cause__ is not None
    assert caught.value.exit_code == 2


def test_two_of_one_name_are_refused(install):
    install("fake-pack", {"zeta": "tw_zeta:THING"})
    install("other-pack", {"zeta": "tw_other:THING"})
    with pytest.raises(PluginError, match="two plug-ins share one name") as caught:
        catalogue("checks")
    assert "fake-pack" in str(caught.value)
    assert "other-pack" in str(caught.value)


def test_a_restriction_settles_two_of_one_name(install):
    install("fake-pack", {"zeta": "tw_zeta:THING"}, tw_zeta="THING = 1")
    install("other-pack", {"zeta": "tw_other:THING"}, tw_other="THING = 2")
    assert load("checks", "zeta", packages=["Other.Pack"]) == 2
    assert load("checks", "zeta", packages=["fake_pack"]) == 1


def test_a_restriction_hides_and_says_so(install):
    install("fake-pack", {"zeta": "tw_zeta:THING"}, tw_zeta="THING = 1")
    assert "zeta" not in catalogue("checks", packages=())
    with pytest.raises(PluginError, match="the setting `plugins` does not admit its package"):
        load("checks", "zeta", packages=())


def test_our_own_plugins_are_always_admitted():
    for kind in KINDS:
        own = [
            name
            for name, plugin in catalogue(kind).items()
            if plugin.package == registry.OWN_PACKAGE
        ]
        assert own == list(catalogue(kind, packages=()))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "from tilewright.records.log import read_events",
            "tilewright.records.log is now tilewright.records.event_log",
        ),
        ("from tilewright.records.events import Told", "Told is now TurnFinished"),
        (
            "class Check:\n    def inspect(self, evidence):\n"
            "        return [item for item in evidence.census if evidence.right_when_seeded]\n"
            "THING = Check()",
            "census is now operator_counts, "
            "right_when_seeded is now passes_with_initial_weights; update the plug-in",
        ),
    ],
)
def test_a_plug_in_written_for_old_names_is_refused_with_the_new_ones(install, source, message):
    install("fake-pack", {"zeta": "tw_zeta:THING"}, tw_zeta=source)
    with pytest.raises(
        PluginError, match=rf"zeta \(tw_zeta:THING, from fake-pack 1.2\).*{message}"
    ):
        load("checks", "zeta")


def test_a_world_with_old_method_names_is_refused_and_own_names_of_a_plug_in_are_not():
    world = ModuleType("world")
    exec("class World:\n    def answered(self): ...\n", vars(world))
    assert renamed_uses("worlds", world) == ["answered is now evaluate"]
    check = ModuleType("check")
    exec("def census(): ...\ndef inspect(evidence):\n    return census()\n", vars(check))
    assert renamed_uses("checks", check) == []


def test_every_new_name_for_plug_ins_exists():
    for old, new in RENAMED["modules"].items():
        assert importlib.util.find_spec(new) is not None, old
    for name in RENAMED["attributes"]["checks"].values():
        assert name in Evidence.__dataclass_fields__ or name in Rules.model_fields
    assert all(hasattr(World, name) for name in RENAMED["methods"]["worlds"].values())
    known = (events, rollout_environment, budget, records)
    assert all(
        any(hasattr(module, name) for module in known) for name in RENAMED["classes"].values()
    )
