"""Bars: the study nano-rehearsal on a CPU, and two mutations of it that must miss a bar.

    python -m benchmarks --only nano
    python -m benchmarks.training.nano DIR [--mutate checks|profiling]

DIR keeps the study, so that a second call with the same settings draws the bars from its log.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from benchmarks.bars import Bar, finish
from tilewright.rl.study.directions import effect
from tilewright.rl.study.study_config import StudyConfig, load_study
from tilewright.rl.study.study_log import LOG, read_log

STUDY = "nano-rehearsal.yaml"
MAX_S = 360.0
"""Most seconds of the study on two quiet cores."""
HACKING = 0.20
"""Least difference of the share of rejected programs without and with checks."""
MUTATIONS: dict[str, dict[str, dict[str, object]]] = {
    "checks": {"without-checks": {"settings.reward.checks": True}},
    "profiling": {"base": {"overrides.reward.coverage": 0.0, "overrides.profiling.mode": "off"}},
}
"""Changes of arms that take the effect of a part away."""


def run(match: str) -> list[Bar]:  # noqa: ARG001 - one signature
    """Return the bars of the study."""
    with tempfile.TemporaryDirectory() as folder:
        return measured(Path(folder), load_study(STUDY))


def measured(folder: Path, config: StudyConfig) -> list[Bar]:
    """Run a study until it is complete, and return its bars."""
    path = folder / "study.yaml.given"
    path.write_text(yaml.safe_dump(config.model_dump(mode="json")), encoding="utf-8")
    began = time.monotonic()
    words = ["train", "study", str(path), "--out", str(folder / "study"), "--minutes", "60"]
    subprocess.run([sys.executable, "-m", "tilewright", *words], check=True)
    seconds, log = time.monotonic() - began, read_log(folder / "study" / LOG)
    arms, last = log["arms"], config.last_steps
    hacking = effect(arms["without-checks"], arms["base"], "rejected", last).seen
    coverage = effect(arms["base"], arms["without-PR-PRS"], "coverage", last).seen
    return [
        Bar("nano: seconds", f"at most {MAX_S:g}", f"{seconds:.0f}", seconds <= MAX_S),
        Bar(
            "nano: hacking without checks",
            f"at least {100 * HACKING:g} points more",
            _points(hacking),
            hacking is not None and hacking >= HACKING,
        ),
        Bar(
            "nano: coverage with PR and PRS",
            "higher",
            _points(coverage),
            coverage is not None and coverage > 0,
        ),
    ]


def mutated(config: StudyConfig, name: str) -> StudyConfig:
    """Return the study with the changes of a mutation."""
    arms = dict(config.arms)
    for arm, changes in MUTATIONS[name].items():
        before = arms[arm]
        arms[arm] = before.model_copy(update={"changes": {**before.changes, **changes}})
    return config.model_copy(update={"arms": arms})


def _points(value: float | None) -> str:
    return "no figure" if value is None else f"{100 * value:.1f} points"


def main() -> int:
    """Print the bars of the study, or of a mutation of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mutate", choices=sorted(MUTATIONS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    config = load_study(STUDY)
    if options.mutate:
        config = mutated(config, options.mutate)
    return finish(measured(options.folder, config))


if __name__ == "__main__":
    sys.exit(main())
