# make demo    certify an embedded network, write report.html      make test       all that CI runs
# make lint    ruff, mypy, import rules                            make bench      the fixed networks, resumable
# make clean   remove .venv and caches                             make soundness  2,500 random problems, resumable

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INPUTS := pyproject.toml constraints.txt setup.py $(wildcard src/kernel/*)

.PHONY: demo test lint bench soundness clean
.DELETE_ON_ERROR:

demo: $(VENV)/.report
	$(BIN)/likewise demo -o report.html

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# GRID: smoke, adult, known, mild, paper, settings, smooth, versus, wide. Finished cells are kept in results/ and skipped when it is run again.
GRID ?= smoke
bench: $(VENV)/.all
	$(BIN)/python benchmarks/bench.py $(GRID)
	$(BIN)/python benchmarks/table.py $(GRID) -o results/$(GRID).md

soundness: $(VENV)/.all
	$(BIN)/python benchmarks/soundness.py
	$(BIN)/python benchmarks/soundness.py --step 14 --seed0 28000 --count 500
	$(BIN)/python benchmarks/soundness.py --suite wide --count 500
	$(BIN)/python benchmarks/large_pairs.py

# Each stamp says what was installed from which pins; the code itself is linked, not copied, and the kernel is built.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.report: $(INPUTS) | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[report]'
	touch $@

$(VENV)/.all: $(INPUTS) | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[all]'
	touch $@ $(VENV)/.report

clean:
	rm -rf $(VENV) build src/likewise/search/*.so report.html .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf src/*.egg-info
