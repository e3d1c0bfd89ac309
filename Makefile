# Each target alone does all set-up on a fresh machine: it makes .venv and installs once, then runs.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PYTHON_FILES := src tests benchmarks docs/notebooks docs/_notebooks.py
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# The real datasets of a developer's machine, where there are any.
export CANDOR_DATA ?= $(if $(wildcard ../shared/data),$(abspath ../shared/data),)
ifeq ($(CANDOR_DATA),)
unexport CANDOR_DATA
endif
# Compiled files are kept: else each worker, and each process that a test starts, would compile all of them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast test-slow check bench clean

demo: $(INSTALLED)
	$(BIN)/candor demo --out runs/demo

test: $(INSTALLED)
	$(PYTEST) -m "not slow" --durations 30

# The inner loop: data, graphs, scores, networks, training and forecasters, without commands, pages and services.
test-fast: $(INSTALLED)
	$(PYTEST) -m "not slow" $(addprefix tests/,core data graph metrics nets training forecasting)

test-slow: $(INSTALLED)
	CANDOR_EXPLORE=1 $(BIN)/python -m pytest -m "slow or hypothesis"

check: $(INSTALLED)
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

bench: $(INSTALLED)
	for benchmark in benchmarks/bench_*.py; do $(BIN)/python $$benchmark || exit 1; done

$(INSTALLED): pyproject.toml constraints.txt
	@echo "installing into .venv: some minutes the first time"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv runs
