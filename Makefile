# The two commands: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Tests start many processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-ray test-slow docs docs-serve notebooks package matrix bench evidence assurance assurance-quick lint types format clean
help:
	@echo "make demo    train a private model on UCI Adult and look at it (under 2 minutes)"
	@echo "make test    run the tests (under 10 minutes)"
	@echo "make test-ray  those on a Ray cluster of this machine (1 minute)    make test-slow  the slow ones"
	@echo "make docs    build the site in build/site, warnings as errors (under 1 minute)"
	@echo "make docs-serve  the site on http://127.0.0.1:8000, built anew as pages change"
	@echo "make notebooks  run the notebooks and keep their outputs (under 10 minutes)"
	@echo "make package  build wheel and sdist in dist, checked for a package index"
	@echo "make matrix  install and try it with Python 3.11 to 3.14, lowest and newest dependencies"
	@echo "make bench   time it against other methods, side by side (about 5 minutes)"
	@echo "make assurance  evidence that fits are private, as docs/assurance.md (about 20 minutes)"
	@echo "make assurance-quick  a small version of it (under 3 minutes)"
	@echo "make evidence   all of it, the paper's tables and the benchmarks (a night)"
	@echo "make lint    ruff, imports, wording of docs    make types   mypy --strict"
	@echo "make format  rewrite the code's layout   make clean   remove everything built"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "dplasso needs Python 3.11 or newer; say which with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[plot]'
	@touch $@

$(VENV)/.dev-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.run-installed

demo: $(VENV)/.run-installed
	$(BIN)/dplasso demo --out demo

$(VENV)/.docs-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[docs]'
	@touch $@ $(VENV)/.run-installed

docs: $(VENV)/.docs-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

docs-serve: $(VENV)/.docs-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --quiet

notebooks: $(VENV)/.docs-installed
	$(BIN)/python tools/notebooks.py

package: | $(BIN)/python
	$(INSTALL) build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

matrix: | $(BIN)/python
	$(INSTALL) build uv
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/matrix.py

# All workers keep compiled kernels in .numba_cache, so a second run compiles nothing. In the first run each worker begins with
# folders of its own, so that two rarely compile the same kernel.
test: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not ray and not evidence"

$(VENV)/.ray-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[dev,ray]'
	@touch $@ $(VENV)/.dev-installed $(VENV)/.run-installed

# Rows in partitions on a cluster of this machine, with no other test beside.
test-ray: $(VENV)/.ray-installed
	$(BIN)/python -m pytest -m "ray and not slow" tests

# What `make assurance-quick` does too, and many killed workers.
test-slow: $(VENV)/.ray-installed
	$(BIN)/python -m pytest -m slow

$(VENV)/.bench-installed: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[bench]' \
	|| { echo "skglm or copt does not install here; the report will leave them out"; \
	$(INSTALL) -e .; }
	@touch $@ $(VENV)/.run-installed

bench: $(VENV)/.bench-installed
	$(BIN)/python -m evidence benchmarks --quick --again

assurance: $(VENV)/.dev-installed
	$(BIN)/python -m evidence assurance --again --at-once 2

assurance-quick: $(VENV)/.dev-installed
	$(BIN)/python -m evidence assurance --quick --again --at-once 2

# All published figures that one machine makes in a night; what is finished is not measured again.
evidence: $(VENV)/.bench-installed $(VENV)/.dev-installed
	$(BIN)/python -m evidence assurance benchmarks --at-once 1
	$(BIN)/python -m evidence paper --twin

lint: $(VENV)/.dev-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/prose.py

types: $(VENV)/.dev-installed
	$(BIN)/mypy

format: $(VENV)/.dev-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .numba_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis demo build dist
