# Everything a person does with a clone. `make help` lists it.
#
# Paths are relative on purpose: a checkout whose own path holds spaces works too.

PYTHON ?= python3
ARGS ?=
TILL ?=
ADD ?=
# Three workers for each processor: most tests wait for a process, and leave theirs idle.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 3)
PYTEST_ARGS ?= -n $(WORKERS) --maxprocesses=6
UPGRADE ?=
ARCH ?= amd64

BIN := .venv/bin
ADAPTERS := $(wildcard adapters/*/pyproject.toml)
EDITABLE := -e . $(patsubst %/pyproject.toml,-e %,$(ADAPTERS))
LIBRARIES = $(shell grep -c '^[a-z0-9].*==' requirements/dev.txt)
LOCK_BIN := .venv-lock/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test slow check simulate soak fuzz mutants bench deb deb-test systemd-test compose-test reference messages goldens screenshots windows-bundle lock clean

help: ## list these targets
	@echo 'usage: make TARGET [PYTHON=python3.12]'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-15s %s\n", $$1, $$2 }'

setup: .venv/.installed ## make .venv, with the program in it
	@case ' $(MAKECMDGOALS) ' in *' setup '*) printf '%s\n' '' 'tillbridge is in .venv. Now, and in each new terminal, type:' '' \
		"    . \"$$PWD/.venv/bin/activate\"" '' 'Then, in a folder of its own that has a bridge.toml (an empty one will do):' '' \
		'    tillbridge run' '' ;; esac

demo: setup ## the whole thing on this machine (ARGS=--once plays it once and ends; TILL=clover another till)
	$(BIN)/tillbridge demo $(if $(TILL),--till $(TILL)) $(ARGS)

test: setup ## all tests but the slow ones (PYTEST_ARGS="tests/unit -x" for some)
	@$(BIN)/python -m compileall -q src adapters/*/src  # tests start hundreds of processes of it
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest $(PYTEST_ARGS)  # what pytest compiles, the next run has

ON_POSTGRESQL = $(wildcard $(addprefix tests/integration/test_,order*.py menu_*.py catalogue_flow.py community_*.py))

slow: setup ## the tests that do at length what others do in short
	$(BIN)/pytest $(PYTEST_ARGS) -m slow --timeout 600
	TEST_LEDGERS=postgresql $(BIN)/pytest $(PYTEST_ARGS) $(ON_POSTGRESQL)

# Three at once, which two processors share: the types, those that only Windows sees, and the tests compiled once, not by
# each of the workers of `make test`.
check: setup ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 --no-warn-unreachable src & windows=$$!; \
		{ told=$$(PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -qq) || { echo "$$told"; exit 1; }; } & tests=$$!; \
		$(BIN)/mypy $(wildcard src tests bench packaging/deb) $(wildcard adapters/*/src adapters/*/tests); \
		code=$$?; wait $$windows || code=1; wait $$tests || code=1; exit $$code

simulate: setup ## the whole bridge in virtual time, with faults (ARGS="--seed 7" plays one again; --help)
	$(BIN)/python -m tests.simulation $(ARGS)

soak: setup ## the installed program, killed and its disk broken (ARGS="--minutes 60 --seed 7"; --control has to lose)
	$(BIN)/python -m tests.soak $(ARGS)

fuzz: setup ## what strangers send, damaged (ARGS="--seconds 60 webhook-body"; --list)
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--only-binary :all: --require-hashes -r requirements/fuzz.txt || echo 'Without atheris: inputs are changed at random.'
	$(BIN)/python -m tests.fuzz $(ARGS)

mutants: setup ## changes of the parts that decide, which their unit tests must notice (ARGS="money guard")
	$(BIN)/python -m tests.mutants $(ARGS)

bench: setup ## the measurements (ARGS=--help tells more)
	$(BIN)/python -m bench $(ARGS)

deb: setup ## the Debian package in dist/ (ARCH=arm64 for a Raspberry Pi)
	$(BIN)/python packaging/deb/build.py --arch $(ARCH)

deb-test: setup ## the package installed, updated and purged on a small Debian (root, mmdebstrap; minutes)
	TILLBRIDGE_MACHINE_TESTS=1 $(BIN)/pytest $(PYTEST_ARGS) -n 0 tests/machine/test_deb_package.py

systemd-test: setup ## the package under a real systemd: killed, hung, stopped, rebooted (root, systemd-nspawn)
	TILLBRIDGE_MACHINE_TESTS=1 $(BIN)/pytest $(PYTEST_ARGS) -n 0 tests/machine/test_systemd.py

compose-test: setup ## deploy/ in containers: bridges killed and made anew (podman, podman-compose, its images)
	TILLBRIDGE_MACHINE_TESTS=1 $(BIN)/pytest $(PYTEST_ARGS) -n 0 tests/machine/test_compose.py

reference: setup ## the pages that are made from the code (adapter API, its protocol, problems)
	$(BIN)/python -m tests.support.adapter_reference > docs/adapters/reference.md
	$(BIN)/python -m tests.support.process_schema > docs/adapters/process.schema.json
	$(BIN)/python -m tests.support.problem_reference > docs/problems.md

messages: setup ## every text that people read, into dist/tillbridge.pot and the catalogues (ADD=pt begins one)
	$(BIN)/python -m tests.support.messages $(ADD)

goldens: setup ## write tests/goldens anew, after a change that is meant (read the difference)
	$(BIN)/pytest -q --renew-goldens tests/integration/test_goldens.py

screenshots: setup ## the pictures of the page in docs/images, taken with Chromium
	$(BIN)/python -m tests.support.screenshots docs/images

windows-bundle: setup ## the zip for Windows, in dist/ (needs a package index)
	$(BIN)/python packaging/windows/bundle.py dist $(ARGS)

# A changed lock installs again; a changed pyproject.toml or version renews only the program's own entry.
.venv/.locked: requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'tillbridge needs Python 3.11 or newer, and "$(PYTHON)" is not.' >&2; \
		echo 'Install one and name it: make setup PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo '"$(PYTHON)" cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@echo 'Making .venv: $(LIBRARIES) libraries are downloaded and installed into it, which takes two to four minutes.'
	@$(PYTHON) -m venv .venv
	@{ $(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements/dev.txt; echo "ended $$?"; } | \
		awk '/^(Collecting|Processing) / { printf "\r  downloading %d of %d ", ++n, $(LIBRARIES) } \
			/^Installing collected/ { printf "\n  installing them ...\n" } /^ended [0-9]+$$/ { code = $$2 } \
			{ fflush() } END { exit code }'
	@touch $@

.venv/.installed: .venv/.locked pyproject.toml src/tillbridge/__init__.py $(ADAPTERS)
	@echo '  installing tillbridge and its adapters ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation $(EDITABLE)
	@$(BIN)/python -m compileall -q src  # so that the program starts as fast as an installed one
	@touch $@

# UPGRADE=--upgrade moves every pin to the newest release; without it only what pyproject.toml asks for changes.
lock: .venv-lock/.installed ## renew requirements/*.txt (maintainers; UPGRADE=--upgrade for new releases)
	$(COMPILE) --group pyproject.toml:lock --output-file requirements/lock.txt
	$(COMPILE) --group pyproject.toml:build --output-file requirements/build.txt
	$(COMPILE) --group pyproject.toml:fuzz --output-file requirements/fuzz.txt
	$(COMPILE) pyproject.toml --output-file requirements/run.txt
	$(COMPILE) pyproject.toml --group dev --constraints requirements/run.txt --output-file requirements/dev.txt

COMPILE = UV_CUSTOM_COMPILE_COMMAND='make lock' $(LOCK_BIN)/uv pip compile --quiet $(UPGRADE) \
	--universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-emit-index-url --no-emit-find-links

.venv-lock/.installed: requirements/lock.txt
	$(PYTHON) -m venv .venv-lock
	$(LOCK_BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	@touch $@

clean: ## remove what the targets above made
	rm -rf .venv .venv-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
