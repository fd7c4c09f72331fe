"""`tests/unit` mirrors `src/tilewright`, and no name has two meanings."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.conventions.tree import ROOT, SOURCE, parsed, python_files

UNIT = ROOT / "tests" / "unit"
BUNDLED = SOURCE / "problems" / "bundled"

# Files that test a behaviour of several modules of their package.
BEHAVIOUR_FILES = {
    "integrations/test_action.py",
    "integrations/test_kernelbench_values.py",
    "integrations/test_existing_interfaces.py",
    *("cli/test_windows.py", "checks/test_findings.py", "cli/test_output_and_progress.py"),
    *("cli/test_reproduced_figures.py", "cli/test_missing_entry.py"),
    *("evaluator/judge/test_compared_outputs.py", "evaluator/judge/test_hostile_memory.py"),
    *("evaluator/judge/test_timed_calls.py", "evaluator/pipeline/test_gold_files.py"),
    "evaluator/pipeline/test_written_arguments.py",
    *("evaluator/judge/test_timed_output_size.py", "evaluator/judge/test_weight_messages.py"),
    *("evaluator/pipeline/test_verdicts.py", "evaluator/test_supervisor_rules.py"),
    *("evaluator/timing/test_as_checked.py", "evaluator/timing/test_fresh_inputs.py"),
    "evaluator/timing/test_gpu_replicates.py",
    *("evaluator/timing/test_self_reported_times.py", "evaluator/timing/test_varied_calls.py"),
    *("executors/test_client_extra.py", "executors/test_device_choice.py"),
    *("executors/test_supervisor_exchanges.py", "serve/test_dispatcher_faults.py"),
    "knowledge/test_bundled_modules.py",
    "loop/archives/test_grid_traces.py",
    "loop/strategies/test_polca_traces.py",
    "loop/prompts/test_forms.py",
    *("languages/test_detection_and_builds.py", "problems/sets/test_damaged_rows.py"),
    *("records/test_validation.py", "reports/test_reported_numbers.py"),
    *("rl/engines/trl/test_trl_contract.py", "rl/test_rejection_and_filters.py"),
    *("rl/test_training_data.py", "runner/sandbox/test_sandbox_steps.py"),
    "runner/test_error_reports.py",
    *("runner/test_native_candidates.py", "runner/test_triton_candidates.py"),
    *("scoring/test_scipy_agreement.py", "serve/test_server_parts.py"),
}

SHARED_MODULE_NAMES = {
    "base": "the protocol or base record of each package",
    "host": "the command lists warm hosts; the other is the state of a device",
    "factory": "makes the objects of its package from settings",
    "loader": "reads the files of its package",
    "main": "the entry point of a program",
    "client": "one calls a server, the other the judge",
    "messages": "what the judge and what a runner may send",
    "inputs": "the judge observes changed inputs that the check reports",
    "flashinfer": "the set of problems and the traces of one project, FlashInfer",
    "kernelbench": "the set of problems and the function of one project, KernelBench",
    "kernelgym": "the API and the rules of one project, KernelGYM",
    "mcp": "the command and the server of one protocol",
    "problem_lint": "the pipeline makes the record of this name",
    "sync_page": "the layout of the page and the supervisor's end of it",
    "report": "the command shows the record of this name",
    "weights": "the judge and a check of one concern",
}


def modules() -> list[Path]:
    return [path for path in python_files(under=SOURCE) if BUNDLED not in path.parents]


def test_unit_tests_mirror_the_packages():
    packages = {path.parent.relative_to(SOURCE) for path in modules()}
    known = {path.relative_to(SOURCE) for path in modules()}
    behaviour = set()
    for path in UNIT.rglob("test_*.py"):
        place = path.relative_to(UNIT)
        assert place.parent in packages, f"{place}: no such package"
        if place.with_name(place.name.removeprefix("test_")) not in known:
            behaviour.add(place.as_posix())
    assert behaviour == BEHAVIOUR_FILES


def test_no_module_name_has_two_meanings():
    places = defaultdict(set)
    for path in modules():
        if path.name not in ("__init__.py", "__main__.py"):
            places[path.stem].add(path)
    repeated = {name for name, found in places.items() if len(found) > 1}
    assert repeated == set(SHARED_MODULE_NAMES)


def test_no_public_class_name_has_two_meanings():
    places = defaultdict(set)
    for path in modules():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(path)
    assert {name for name, found in places.items() if len(found) > 1} == set()
