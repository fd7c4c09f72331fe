# Works from a fresh clone with python3 (3.11 or newer, with venv), g++ and make.
# Every target installs what it needs first, once; `make PYTHON=python3.12 test` picks a Python.

PYTHON ?= python3
VENV   ?= .venv
EXTRAS ?= judge,triton,cpp,dev
# Tests beside each other, each worker on cores of its own.
JOBS   ?= auto
# Servers, clusters, trainers: `make services` has them, by files, since those of a file share one.
SERVED := tests/services
# They wait much, so that one worker more than there are cores keeps the cores at work.
SERVED_JOBS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# The tests of a file share a server. Slow files come first: none runs alone at the end.
BY_FILE := --dist loadfile --no-loadscope-reorder
# Threads of torch in several workers would spin for cores that other workers have.
ONE_THREAD := OMP_NUM_THREADS=1
# A worker whose tests wait gives the rest of them to the other ones.
BY_TEST := --dist worksteal
# The tests of a file share a forkserver. Those with the mark `alone` watch memory or the clock.
FORKED := tests/processes
GPU    := tests/gpu
# Tests with the mark `nightly` take long, and a shorter test of the same promise runs without them.
CHOSEN ?= not nightly
# More options for pytest, for example `make test ARGS="-k config"`.
ARGS   ?=
# A test of the settings, which `make test` has, runs all tests with the mark `reads_settings`.
ONCE   := $(if $(ARGS),($(CHOSEN)),($(CHOSEN)) and not reads_settings)
# Pytest's status when ARGS choose none of the tests that it was given.
NONE_CHOSEN := test $$? = 5
# Measure one bar: `make bars ONLY=faults`.
ONLY   ?=
# Letters of families of the red-team suite, and the seed of its generators.
FAMILY ?=
SEED   ?=
# A bar on a GPU, and KernelBench's problems for its A/A: a JSON line each.
PART   ?= aa
# A Python with the published search systems; ours needs none of them.
ORIGINALS ?= $(VENV)/bin/python

# The oldest supported torch, as pyproject.toml names it, and the environment of `make oldest-torch`.
OLDEST_TORCH := 2.9
OLDEST := .venv-torch-$(OLDEST_TORCH)

# Libraries whose kernels `make audit` judges; empty: all. Results and pages of an audit.
LIBRARY ?=
RESULTS ?= out/audit/audit.jsonl
PAGES   ?= out/audit/pages
# The environment of the engine verl, which no environment of the engine trl can be.
VERL := .venv-verl

# A clone of KernelBench for `make test-integrations`, and an environment with what its scripts need.
KERNELBENCH_CLONE ?=
# A clone of reference-kernels, for the same.
GPUMODE_CLONE     ?=
KERNELBENCH_VENV  := .venv-kernelbench
# The extras of integrations: their tests run in .venv-integration-NAME.
PACKAGES := verifiers verifiers-0-2 openenv inspect
# TRL trains with rollouts in an environment of OpenEnv.
WITH_openenv := ,train

BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed
SITE   := $(VENV)/installed-site
PYTEST := $(BIN)/python -m pytest -q
SOURCE := src tests docs benchmarks

.DEFAULT_GOAL := help
.PHONY: help install venv demo test services test-all check lint types imports pages fragments fix docs docs-site pictures changelog oldest-torch verl test-verl test-integrations test-kernelbench test-loggers rehearsals corpus attacks attacks-sample bars originals bench-counts gpu-check gpu-bars audit audit-pages coverage clean
.DELETE_ON_ERROR:
# make would remove what a chain of its rules made.
.PRECIOUS: .venv-integration-%/installed

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

install: $(STAMP)  ## install everything into .venv
venv: $(STAMP)

# pip would compile on one core. Some packages have files for other Pythons, which do not compile.
# Half of the files are of parts of packages of which we import few or none.
UNUSED := /(tests?|testing|transformers/models|openai/types|rllib|pygments/lexers)/
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else \
	    f"tilewright needs Python 3.11 or newer; {sys.executable} is {v[0]}.{v[1]}. Try: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	    echo "cannot make a virtual environment: install the venv module of $(PYTHON)" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[$(EXTRAS)]'
	@$(BIN)/python -m compileall -q -j 0 -x '$(UNUSED)' $(VENV)/lib > /dev/null 2>&1 || true
	@touch $@

demo: $(STAMP)  ## judge the bundled candidates and show the verdicts
	$(BIN)/tilewright demo

test: $(STAMP)  ## run the tests that this machine can, but for those of services and long ones
	$(ONE_THREAD) $(PYTEST) -n $(JOBS) $(BY_TEST) -m "$(ONCE)" $(SERVED:%=--ignore=%) $(FORKED:%=--ignore=%) $(GPU:%=--ignore=%) $(ARGS)
	$(PYTEST) -n $(JOBS) $(BY_FILE) -m "not alone and $(ONCE)" $(FORKED) $(ARGS) || $(NONE_CHOSEN)
	$(PYTEST) -m "(alone or gpu) and $(ONCE)" $(FORKED) $(GPU) $(ARGS) || $(NONE_CHOSEN)

services: $(STAMP)  ## run the tests of servers, clusters and trainers, but for long ones
	$(ONE_THREAD) $(PYTEST) -n $(SERVED_JOBS) $(BY_FILE) -m "$(CHOSEN)" $(SERVED) $(ARGS) || $(NONE_CHOSEN)

test-all:  ## run all tests, long ones with the mark `nightly` among them
	$(MAKE) test CHOSEN="nightly or not nightly"
	$(MAKE) services CHOSEN="nightly or not nightly"

check: lint types imports pages fragments  ## lint, types, import contracts, generated pages, prose

lint: $(STAMP)
	$(BIN)/ruff check $(SOURCE)
	$(BIN)/ruff format --check $(SOURCE)

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

pages: $(STAMP)
	$(BIN)/python docs/_generate.py --check
	$(BIN)/python docs/_prose.py

fragments: $(STAMP)
	$(BIN)/towncrier build --draft --version Unreleased > /dev/null

fix: $(STAMP)  ## format, and repair what the linter can
	$(BIN)/ruff check --fix $(SOURCE)
	$(BIN)/ruff format $(SOURCE)

docs: $(STAMP)  ## generate docs/reference
	$(BIN)/python docs/_generate.py

# Nothing else needs these packages.
$(SITE): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS),site]'
	@touch $@

docs-site: $(SITE)  ## build the pages of docs as a site in out/site
	$(BIN)/python docs/_site.py

pictures: $(SITE)  ## make the verdict table of the demo and docs/images again, with Chromium
	$(BIN)/python docs/_demo_table.py
	$(BIN)/python docs/_screenshots.py

changelog: $(STAMP)  ## show the news fragments of changelog.d as bullets
	$(BIN)/towncrier build --draft --version Unreleased

# Large: torch's CUDA build of that version. Without triton, of which it demands an older one.
oldest-torch:  ## run the tests with the oldest supported torch, in an environment of its own
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	grep -vE '^(torch|triton)[=<>]' constraints.txt > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(OLDEST)/constraints.txt \
	    'torch==$(OLDEST_TORCH).*' -e '.[judge,cpp,dev]'
	$(OLDEST)/bin/python -m pytest -q -n $(JOBS) tests/unit $(ARGS)

corpus: $(STAMP)  ## judge every hack and its honest twin, and print the table
	$(BIN)/python -m benchmarks --only corpus

# The red-team suite, or a part: make attacks FAMILY=AC, with ONLY, SEED, and ARGS="--changed --json rows.json".
attacks: $(STAMP)  ## evaluate the red-team suite, and print what each attack gains
	$(BIN)/python -m benchmarks.attacks.red_team $(if $(ONLY),--only $(ONLY)) $(if $(FAMILY),--family $(FAMILY)) $(if $(SEED),--seed $(SEED)) $(ARGS)

attacks-sample: $(STAMP)  ## evaluate 12 attacks and 8 honest files of it, chosen by the commit
	$(BIN)/python -m benchmarks.attacks.red_team --sample 12,8 --commit "$$(git rev-parse HEAD 2> /dev/null)" --seconds 60 --store out/attacks-sample.jsonl

# All bars, or one of them: make bars ONLY=corpus|attacks|telling_calls|planted_bugs|faults|aa|tolerance|cost|bundled_cost|message_cost|fuzz|bad_input|bench_kills|host_kills|study_kills|recipe_kills|loggers|pytest|eval_wait|reports|loop|synth|climb|systems|races|serve|dashboard|serve_faults|serve_hostile|data|train|engines|nano|recipes
bars: $(STAMP)  ## measure the bars of a CPU: wanted, seen, held; ONLY=NAME measures one
	$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY))

rehearsals: $(STAMP)  ## run all recipes, the study nano-rehearsal, and two mutations that must miss a bar
	$(BIN)/python -m benchmarks.training.recipes out/recipes
	$(BIN)/python -m benchmarks.training.nano out/rehearsal
	! $(BIN)/python -m benchmarks.training.nano out/rehearsal-checks --mutate checks
	! $(BIN)/python -m benchmarks.training.nano out/rehearsal-profiling --mutate profiling

# Each package has an environment of its own, which the first run installs: some 5 GB in all.
# ONLY=openenv runs the tests of one package.
$(VERL)/installed: pyproject.toml constraints-verl.txt
	test -x $(VERL)/bin/python || $(PYTHON) -m venv $(VERL)
	$(VERL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-verl.txt \
	    -e '.[verl]' hypothesis pytest pytest-timeout
	@touch $@

verl: $(VERL)/installed  ## install the engine verl into .venv-verl

# pytest-asyncio comes with verl, and its warnings are errors here.
test-verl: $(STAMP) $(VERL)/installed  ## run the tests of the engine verl, and compare it with the engine trl
	TILEWRIGHT_TRL_PYTHON=$(abspath $(BIN)/python) $(VERL)/bin/python -m pytest -q -p no:asyncio tests/verl $(ARGS)

test-integrations: $(STAMP) $(if $(ONLY),test-integration-$(ONLY),$(PACKAGES:%=test-integration-%) test-loggers test-kernelbench)  ## run the tests of integrations with their packages

.venv-integration-%/installed: pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	grep -E '^(torch|triton|numpy|pytest|pytest-timeout|hypothesis|hatchling|psutil)[=<>]' constraints.txt > $(@D)/constraints.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c $(@D)/constraints.txt \
	    -e '.[judge,cpp,$*$(WITH_$*)]' pytest pytest-timeout hypothesis hatchling psutil
	@touch $@

# Warnings of the packages are not ours.
test-integration-%: .venv-integration-%/installed
	TESTED_EXTRA=$* .venv-integration-$*/bin/python -m pytest -q -rs -W default tests/integrations $(ARGS)

test-kernelbench: $(STAMP)
	test -x $(KERNELBENCH_VENV)/bin/python || $(PYTHON) -m venv $(KERNELBENCH_VENV)
	$(KERNELBENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check numpy pydra-config tabulate
	GPUMODE_CLONE="$(GPUMODE_CLONE)" KERNELBENCH_CLONE="$(KERNELBENCH_CLONE)" KERNELBENCH_PYTHON="$(CURDIR)/$(KERNELBENCH_VENV)/bin/python" \
	    $(PYTEST) -rs tests/unit/integrations $(ARGS)

# Packages that cannot share an environment. Each environment sees the packages of $(VENV) too.
LOGGERS := 'trackio>=0.43.0,<0.44' 'wandb>=0.31.0,<0.32' 'mlflow>=3.17.2,<3.19'

test-loggers: $(STAMP)  ## run the tests of loggers and FlashInfer, each package in an environment of its own
	set -e; for wanted in $(LOGGERS); do \
	    made=.venv-$${wanted%%>*}; test -x $$made/bin/python || $(PYTHON) -m venv $$made; \
	    echo "import site; site.addsitedir('$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')')" \
	        > $$($$made/bin/python -c 'import site; print(site.getsitepackages()[0])')/tilewright.pth; \
	    $$made/bin/python -m pip install --quiet --disable-pip-version-check "$$wanted"; \
	    TESTED_EXTRA=$${wanted%%>*} $$made/bin/python -m pytest -q -k "$${wanted%%>*}" \
	        tests/unit/integrations/test_run_loggers.py tests/integrations/test_overhead.py $(ARGS); \
	done
	test -x .venv-flashinfer/bin/python || $(PYTHON) -m venv .venv-flashinfer
	echo "import site; site.addsitedir('$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')')" \
	    > $$(.venv-flashinfer/bin/python -c 'import site; print(site.getsitepackages()[0])')/tilewright.pth
	.venv-flashinfer/bin/python -m pip install --quiet --disable-pip-version-check --no-deps flashinfer-bench==0.1.2 docstring-parser
	.venv-flashinfer/bin/python -m pytest -q tests/unit/integrations/test_flashinfer.py $(ARGS)

# The Python that has the published packages: make originals ORIGINALS=path/to/python
originals: $(STAMP)  ## make the golden traces of published search systems again
	PYTHONPATH="$(CURDIR)/src:$(CURDIR)" $(ORIGINALS) -m benchmarks.originals.openevolve
	PYTHONPATH="$(CURDIR)/src:$(CURDIR)" $(ORIGINALS) -m benchmarks.originals.openevolve_curves

bench-counts: $(STAMP)  ## count the problems of local clones: make bench-counts DIR=path
	$(BIN)/python -m benchmarks.accuracy.problem_counts $(DIR)

# On a GPU machine the packages are there, and often no index to install them from.
gpu-check:  ## one candidate of each kind on a GPU, with the Python that is active
	PYTHONPATH="$(CURDIR)/src:$(CURDIR):$$PYTHONPATH" $(PYTHON) -m benchmarks.gpu smoke

# One bar: make gpu-bars PART=aa|delta|stream|builds|coverage|corpus|attacks|liger|faults|agreement|memory|climb|scale|train|paged|integrations|large|nano
gpu-bars:  ## measure one bar on a GPU: make gpu-bars PART=NAME
	PYTHONPATH="$(CURDIR)/src:$(CURDIR):$$PYTHONPATH" $(PYTHON) -m benchmarks.gpu $(PART)

# AUDIT_LIBRARIES names the folders of the libraries. More options: make audit ARGS="--seconds 540 --skip compile".
audit:  ## judge the kernels of installed libraries on a GPU: make audit LIBRARY=liger-kernel
	PYTHONPATH="$(CURDIR)/src:$(CURDIR):$$PYTHONPATH" $(PYTHON) -m benchmarks.audit run $(LIBRARY:%=--library %) $(ARGS)

# RESULTS is the file that `make audit` wrote, and PAGES the folder of the pages.
audit-pages: $(STAMP)  ## write the pages of an audit: make audit-pages RESULTS=FILE PAGES=FOLDER
	$(BIN)/python -m benchmarks.audit page $(RESULTS) $(PAGES)

coverage: $(STAMP)  ## branch coverage, with the floors that we promise
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	# A GPU alone runs these, and those of the runner below.
	$(BIN)/coverage report --include='*/tilewright/records/*,*/tilewright/scoring/*,*/tilewright/checks/*,*/tilewright/evaluator/*' --fail-under=90 \
	    --omit='*/judge/gpu_process.py,*/judge/launch_gate.py,*/runners/gpu_runner.py,*/pipeline/gpu_checks.py'
	$(BIN)/coverage report --include='*/tilewright/runner/*' --fail-under=85 \
	    --omit='*/runner/gpu_memory.py'

clean:  ## remove the environment, caches and coverage data
	rm -rf $(VENV) $(OLDEST) .venv-integration-* .venv-trackio .venv-wandb .venv-mlflow .venv-flashinfer $(KERNELBENCH_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find src tests docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
