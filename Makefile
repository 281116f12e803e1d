# Everything runs in .venv, made on first use. `make loo` and `make test` need Python 3.11+ and nothing else.
PYTHON ?= python3
# What to install torch from; the README says how to get the small CPU build on an ordinary machine.
TORCH ?= torch==2.13.0
# The versions that every check has run with; empty takes the newest that the dependencies allow.
CONSTRAINTS ?= --constraint constraints.txt
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: loo test check bench mutants clean

loo: $(VENV)/installed
	$(BIN)/python -m deep.experiments.loo --test aggrefact

test: check
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term

check: $(VENV)/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/test-installed
	$(BIN)/python benchmarks/cells.py

mutants: $(VENV)/mutation-installed
	$(BIN)/python benchmarks/mutants.py --jobs $(JOBS)

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable .
	touch $@

$(VENV)/test-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable '.[test]'
	touch $@

$(VENV)/mutation-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable '.[mutation]'
	touch $@

clean:
	rm -rf $(VENV) build dist runs *.egg-info .coverage .coverage.*
