# Two commands do everything: `make demo` and `make test`. Both set up what they need, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
NOX    := build/nox
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)

SEED   ?= 0

.PHONY: setup demo test slow attack coverage docs docs-test lint format dist wheels audit clean

setup: $(READY)

# One install, redone only when the list of parts changes.
$(READY): pyproject.toml lab/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "largesse needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'  # installs dependency groups
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --editable '.[all]' --editable lab
	touch $(READY)

demo: setup
	$(BIN)/largesse demo

# Two workers, one thread each: threads that wait for each other are slower than no threads.
test: setup lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

slow: setup
	$(BIN)/python -m pytest -m slow

# Every property with a hundred times as many inputs made to do harm, drawn from SEED; ONLY=ledger tries some properties.
attack: setup
	$(BIN)/python -m pytest --hypothesis-profile=attack --hypothesis-seed=$(SEED) -m "slow or not slow" tests/properties $(if $(ONLY),-k "$(ONLY)")

# Lines and branches that the fast tests run, as build/coverage/index.html; PART=tests/data measures some tests.
coverage: setup
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term:skip-covered --cov-report=html:build/coverage $(PART)

# The documentation: build/docs/index.html, which needs no server and no network.
docs: setup
	$(BIN)/python docs/tools/pictures.py
	$(BIN)/python docs/tools/screenshots.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# All links, and every tutorial and example of the documentation, run.
docs-test: setup
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m 'slow or not slow' tests/docs

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Environments of their own, built by nox, which needs no setup.
$(NOX)/.ready: pyproject.toml
	$(PYTHON) -m venv $(NOX)
	$(NOX)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check build nox
	touch $(NOX)/.ready

# The wheel and the source archive, in dist/.
dist: $(NOX)/.ready
	rm -rf dist
	$(NOX)/$(SCRIPTS)/python -m build

# The wheel alone and with each extra, in an environment of its own for each Python that is here.
wheels: $(NOX)/.ready
	$(NOX)/$(SCRIPTS)/nox --session wheel extras

# Metadata, workflows, the Dockerfile, and the checks of scientific-python's repo-review.
audit: $(NOX)/.ready
	$(NOX)/$(SCRIPTS)/nox --session audit

clean:
	rm -rf $(VENV) .nox build dist largesse-demo .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
