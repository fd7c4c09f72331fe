"""The page of a study: a function of its log alone, so it is drawn again byte for byte."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.rl.study.directions import Effect, effect, last_value, next_seed
from tilewright.rl.study.step_chart import step_chart
from tilewright.rl.study.study_config import StudyConfig

PAGE = "page.md"
CHARTS = {
    "rejected": "share of rejected programs",
    "coverage": "coverage of correct programs",
    "correct": "share of correct programs",
    "fast@1.2": "share of programs with a speed-up above 1.2",
    "reward": "mean reward",
    "kept_mismatch": "share of turns that mismatch rejection kept",
    "entropy": "entropy of a token, in nats",
}
"""The figures with a chart, and their titles."""
BEST = "best speed-up so far, mean over problems"
SCALED = "share of trajectories whose best so far is above 1.2"
COLUMNS = {
    "correct": "correct",
    "rejected": "rejected",
    "coverage": "coverage",
    "fast@1.2": "fast@1.2",
    "reward": "reward",
    "off_store": "not in the store",
    "groups_equal": "groups without a difference",
}
"""The figures of the table of arms, and their headings."""


def study_pages(log: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of the page by name: the text, and a chart for each figure."""
    config = StudyConfig.model_validate(log["study"])
    word = "synthetic verdicts" if config.is_synthetic else ""
    # A figure of synthetic verdicts says so in its file name.
    prefix = "synthetic-" if config.is_synthetic else ""
    charts = {
        f"{prefix}{name.replace('@', '-at-')}.svg": step_chart(title, _series(log, name), word)
        for name, title in CHARTS.items()
    }
    if any(run["best_so_far"] for seeds in log["arms"].values() for run in seeds.values()):
        charts[f"{prefix}best.svg"] = step_chart(BEST, _best_series(log), word)
    if log["scaling"]:
        series = {name: [figures["fast@1.2"]] for name, figures in log["scaling"].items()}
        charts[f"{prefix}scaling.svg"] = step_chart(SCALED, series, word, "turn")
    return {PAGE: "\n".join(_lines(log, config, list(charts))), **charts}


def _lines(log: Mapping[str, Any], config: StudyConfig, charts: Sequence[str]) -> Iterator[str]:
    yield f"# Study {config.name}"
    yield ""
    if config.is_synthetic:
        yield "All verdicts are **synthetic**: a formula computed them, and no program ran."
        yield "The page shows that the tools work, and nothing about kernels."
        yield ""
    versions = ", ".join(f"{name} {value}" for name, value in sorted(log["versions"].items()))
    yield f"Device of the verdicts: {log['device'] or 'none'}."
    yield f"Versions: {versions}."
    yield ""
    yield f"    tilewright train study {config.name}.yaml --out DIR --minutes 9"
    yield ""
    yield from _rerun(log, config)
    yield from _directions(log, config)
    yield from _arms(log, config)
    yield from _bests(log, config)
    yield from _scaling(log, config)
    yield from _fresh(log)
    yield "## Charts"
    yield ""
    for name in charts:
        yield f"![{name.removesuffix('.svg')}]({name})"
    yield ""
    yield from _gate(log, config)
    yield from _seconds(log)
    yield "## Settings"
    yield ""
    yield f"Group `{config.group}`; cold start: {config.cold_start.conversations} conversations."
    yield ""
    yield from ("| arm | seeds | changes |", "| --- | --- | --- |")
    for name, arm in config.arms.items():
        changes = ", ".join(f"`{path}={value}`" for path, value in arm.changes.items())
        yield f"| {name} | {arm.seeds} | {changes} |"
    yield ""


def _rerun(log: Mapping[str, Any], config: StudyConfig) -> Iterator[str]:
    """Yield the command that trains the first arm with one more seed, and where it should end."""
    name, arm = next(iter(config.arms.items()))
    seed, runs = arm.first_seed + arm.seeds, log["arms"][name]
    found = {key: next_seed(runs, key, config.last_steps) for key in COLUMNS}
    known = {key: ends for key, ends in found.items() if ends is not None}
    yield f"This command trains the arm `{name}` alone, with another seed:"
    yield ""
    yield f"    tilewright train study {config.name}.yaml --arm {name} --seed {seed} --out DIR"
    yield ""
    if not known:
        return
    yield "Its figures then lie in these 95 % prediction intervals for one more seed:"
    yield ""
    yield from ("| figure | from | to |", "| --- | --- | --- |")
    for key, (low, high) in known.items():
        yield f"| {COLUMNS[key]} | {_number(low)} | {_number(high)} |"
    yield ""


def _directions(log: Mapping[str, Any], config: StudyConfig) -> Iterator[str]:
    yield "## Directions"
    yield ""
    yield (
        "A difference is resolved if its 95 % interval over paired seeds excludes 0 and it is at "
        "least 10 points."
    )
    yield ""
    yield "| statement | figure | arms | predicted | seen | resolvable | resolved | refuted by |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for item in config.directions:
        found = effect(
            log["arms"][item.arm], log["arms"][item.against], item.figure, config.last_steps
        )
        statement = f"{item.statement} ({item.place})" if item.place else item.statement
        yield (
            f"| {statement} | {item.figure} | {item.arm} less {item.against} | "
            f"{_points(item.predicted)} | {_seen(found)} | {_points(found.resolvable)} | "
            f"{_resolved(found)} | {item.refuted} |"
        )
    yield ""


def _arms(log: Mapping[str, Any], config: StudyConfig) -> Iterator[str]:
    yield "## Arms"
    yield ""
    yield f"Each figure is that of the first step, and the mean of the last {config.last_steps}."
    yield ""
    yield f"| arm | seed | steps | {' | '.join(COLUMNS.values())} | stopped |"
    yield "| --- " * (len(COLUMNS) + 4) + "|"
    for name, seeds in log["arms"].items():
        for seed, run in seeds.items():
            figures = run["figures"]
            cells = [
                f"{_number(last_value(figures[:1], key, 1))} to "
                f"{_number(last_value(figures, key, config.last_steps))}"
                for key in COLUMNS
            ]
            yield (f"| {name} | {seed} | {len(figures)} | {' | '.join(cells)} | {run['stopped']} |")
    yield ""


def _bests(log: Mapping[str, Any], config: StudyConfig) -> Iterator[str]:
    yield "## Best programs"
    yield ""
    yield "The best speed-up of each problem among all programs that an arm had judged."
    references = log["reference"]
    if references:
        yield (
            f"The reference is the best of as many programs of the arm `{config.reference}`, which "
            "does not learn. The log counts the programs of both."
        )
    else:
        yield "An arm without learning is the reference: the best of so many samples of one model."
    yield ""
    more = " programs of the reference | its best | its pass@16 |" if references else ""
    head = "| arm | seed | programs | problems with a correct one | geometric mean of the best |"
    yield f"{head}{more}"
    yield "| --- | --- | --- | --- | --- |" + " --- | --- | --- |" * bool(references)
    for name, seeds in log["arms"].items():
        for seed, run in seeds.items():
            row = f"| {name} | {seed} | {run['programs']} | {len(run['best'])} | {_mean(run)} |"
            if references:
                other = references[name][seed]
                row += f" {other['programs']} | {_mean(other)} | {_number(other['pass@16'])} |"
            yield row
    yield ""


def _mean(run: Mapping[str, Any]) -> str:
    best = list(run["best"].values())
    return f"{statistics.geometric_mean(best):.2f}x" if best else ""


def _scaling(log: Mapping[str, Any], config: StudyConfig) -> Iterator[str]:
    found, section = log["scaling"], config.scaling
    if not found or section is None:
        return
    yield "## Test-time scaling"
    yield ""
    yield (
        f"The model of {section.arm}, seed 0, writes {section.turns} turns: {section.samples} "
        f"trajectories of each problem, with w = {section.w}."
    )
    yield "All contexts have the same first turns. Each share is that of the best program so far."
    yield ""
    turns = range(1, section.turns + 1)
    yield f"| context | figure | {' | '.join(f'turn {turn}' for turn in turns)} |"
    yield "| --- | --- |" + " --- |" * section.turns
    for context, figures in found.items():
        for name, values in figures.items():
            yield f"| {context} | {name} | {' | '.join(map(_number, values))} |"
    yield ""


def _fresh(log: Mapping[str, Any]) -> Iterator[str]:
    if not log["fresh"]:
        return
    yield "## Fresh scores"
    yield ""
    yield "The correct programs of the last steps were evaluated again after all training."
    yield ""
    yield from (
        "| arm | fast@1.2 as stored | fresh | programs | median difference | largest |",
        "| --- | --- | --- | --- | --- | --- |",
    )
    for name, row in log["fresh"].items():
        shares = f"{_number(row['fast@1.2'])} | {_number(row['fresh_fast@1.2'])}"
        logs = f"{_percent(row['median_log'])} | {_percent(row['most_log'])}"
        yield f"| {name} | {shares} | {row['differences']:.0f} | {logs} |"
    yield ""


def _gate(log: Mapping[str, Any], config: StudyConfig) -> Iterator[str]:
    yield "## Gate"
    yield ""
    failed = [row["name"] for row in log["gate"] if not row["held"]]
    if failed and config.gate.override:
        yield f"The arms ran although {len(failed)} lines fail: the settings override the gate."
        yield ""
    yield from ("| figure | wanted | seen | 95 % | held |", "| --- | --- | --- | --- | --- |")
    for row in log["gate"]:
        ends = [row["low"], row["high"]]
        interval = " to ".join(map(_number, ends)) if None not in ends else ""
        held = "yes" if row["held"] else "**no**"
        yield f"| {row['name']} | {row['wanted']} | {_number(row['seen'])} | {interval} | {held} |"
    yield ""


def _seconds(log: Mapping[str, Any]) -> Iterator[str]:
    yield "## Time"
    yield ""
    yield from ("| stage | seconds |", "| --- | --- |")
    for name, seconds in log["seconds"].items():
        yield f"| {name} | {seconds:.0f} |"
    yield ""


def _series(log: Mapping[str, Any], name: str) -> dict[str, list[list[float | None]]]:
    return {
        arm: [[step.get(name) for step in run["figures"]] for run in seeds.values()]
        for arm, seeds in log["arms"].items()
    }


def _best_series(log: Mapping[str, Any]) -> dict[str, list[list[float]]]:
    return {
        arm: [run["best_so_far"] for run in seeds.values()] for arm, seeds in log["arms"].items()
    }


def _seen(found: Effect) -> str:
    if found.seen is None:
        return "no figure"
    if found.low is None or found.high is None:
        return f"{_points(found.seen)}, one seed"
    return f"{_points(found.seen)} [{_points(found.low)}, {_points(found.high)}]"


def _resolved(found: Effect) -> str:
    return "yes" if found.is_resolved else "not resolved"


def _points(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _percent(log_ratio: float | None) -> str:
    return "" if log_ratio is None else f"{100 * log_ratio:.1f} %"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
