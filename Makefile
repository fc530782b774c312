# python ≥ 3.11, bash and make are all that is assumed.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The first that is new enough. Some of these names may be shims that only complain.
ifndef PYTHON
PYTHON := $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$name && break; done)
endif
BIN := .venv/bin

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: install ## A running sale on this machine, with everything it needs
	@$(BIN)/seckill up --demo

.PHONY: test
test: .venv/test ## The test suite, on real servers
	@scripts/get-servers .venv/servers
	@tests/get-chromium || echo "The browser tests are skipped." >&2
	@# Three at a time: most of a fault test is waiting, and each of the three has servers of its own. Hundreds of processes
	@# are started: compiled once, whatever the environment says.
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist worksteal

.PHONY: mutants
mutants: .venv/test ## Plant every known flaw, one at a time: a test must catch each
	@scripts/get-servers .venv/servers
	$(BIN)/python -m tests.mutants $(ONLY)

.PHONY: simulate
simulate: .venv/test ## Thousands of made-up sales with faults, in made-up time (SEEDS=5000, or SEED= for one again)
	@$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),5000) --first $(or $(FIRST),1) $(if $(SEED),--seed $(SEED))

.PHONY: check
check: .venv/test ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: screenshots
screenshots: .venv/test ## Take the pictures in docs/ anew
	@tests/get-chromium
	$(BIN)/python -m tests.browser.screenshots docs

.PHONY: install
install: .venv/run ## Only set up .venv; the command is then .venv/bin/seckill

.PHONY: lock
lock: .venv/test ## Pin the newest versions that pyproject.toml allows
	$(BIN)/pip install --quiet uv
	for extra in "" test; do \
		$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
			--no-emit-index-url --no-emit-find-links pyproject.toml $${extra:+--extra $$extra} \
			--output-file requirements$${extra:+-$$extra}.txt; \
	done

.venv/python:
	@if [ -z "$(PYTHON)" ]; then echo "seckill needs Python 3.11 or newer: install one, or say make PYTHON=…" >&2; exit 1; fi
	$(PYTHON) -m venv .venv
	@touch $@

.venv/run: .venv/python requirements.txt pyproject.toml
	@echo "Installing into .venv (about a minute, needs the network) …"
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv/test: .venv/run requirements-test.txt
	@echo "Installing what the tests need into .venv (about a minute, needs the network) …"
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-test.txt
	@touch $@
