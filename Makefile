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
TOOLS := .venv/tools/bin
SITE := .venv/docs/bin
INSTALL := pip install --quiet --disable-pip-version-check
PINNED := $(INSTALL) --require-hashes

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: install ## A running sale on this machine, with everything it needs (SECKILL_PORT=)
	@$(BIN)/seckill up --demo

.PHONY: test
test: .venv/test .venv/docs/ready ## The test suite, on real servers
	@scripts/get-servers .venv/servers
	@tests/get-chromium || echo "The browser tests are skipped." >&2
	@# Three at a time: most of a fault test is waiting, and each of the three has servers of its own. Hundreds of processes
	@# are started: compiled once, whatever the environment says.
	@# What failed is tried once more, alone, and named.
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist worksteal || $(BIN)/python -m tests.second_try $$?

.PHONY: test-quick
test-quick: .venv/test ## The tests of a first look: one store of each kind, nothing that is killed; three minutes
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --quick -n 3 --dist worksteal

.PHONY: mutants
mutants: .venv/test ## Plant every known flaw, one at a time: a test must catch each; interrupted, it goes on (ONLY=word, words or a name)
	@scripts/get-servers .venv/servers
	@# As one argument, so that it may be a name; make has put it into the environment.
	$(BIN)/python -m tests.mutants --kept .mutants/caught "$${ONLY:-}"

.PHONY: keep-version
keep-version: .venv/test ## Keep what this version writes, for every later one to read: once for a release (VERSION=0.3.0)
	@test -n "$(VERSION)" || { echo "Say which: make keep-version VERSION=0.3.0" >&2; exit 1; }
	@scripts/get-servers .venv/servers
	@$(BIN)/python -m tests.upgrades.keep_version $(VERSION)

.PHONY: simulate
simulate: .venv/test ## Thousands of made-up sales with faults, in made-up time (SEEDS=5000, or SEED= for one again)
	@$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),5000) --first $(or $(FIRST),1) $(if $(SEED),--seed $(SEED))

.PHONY: endure
endure: .venv/test ## Hours of faults and millions of admissions on every set-up, in .endure; interrupted, it goes on (LEGS=)
	@scripts/get-servers .venv/servers
	@$(BIN)/python -m tests.endure $(if $(LEGS),--legs $(LEGS))

.PHONY: check
check: .venv/test ## Style, types, and which part may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

.PHONY: embed
embed: .venv/test ## Build embed.js, and the types of the API, from their sources (needs Node)
	@cd embed && npm ci --silent && node build.mjs
	@$(BIN)/python embed/describe.py | node embed/types.mjs
	@cd embed && npm run --silent check

.PHONY: screenshots
screenshots: .venv/test ## Take the pictures in docs/ anew
	@tests/get-chromium && tests/get-fonts
	$(BIN)/python -m tests.browser.screenshots docs

.PHONY: docs
docs: site ## The documents as a site: built into the package (a running instance shows it at /help), and served here
	@echo "http://127.0.0.1:$(or $(PORT),8001)/"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory seckill/web/help $(or $(PORT),8001)

.PHONY: site
site: .venv/docs/ready ## Only build them
	@NO_MKDOCS_2_WARNING=1 $(SITE)/mkdocs build --quiet --strict

.PHONY: calculator
calculator: .venv/run ## Write the constants of the capacity model for the calculator in the documents
	@$(BIN)/python -m scripts.calculator_model

.PHONY: install
install: .venv/kernel ## Only set up .venv; the command is then .venv/bin/seckill

# Every file has hashes: pip takes nothing else.
COMPILE := $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links
.PHONY: lock
lock: .venv/tools/ready ## Pin the newest versions that pyproject.toml allows
	$(COMPILE) --upgrade pyproject.toml --extra all --output-file requirements.txt
	$(COMPILE) --upgrade pyproject.toml --extra all --extra test --output-file requirements-test.txt
	@# A role on its own has a server of its operator's, so the one that the laptop brings along stays out.
	$(COMPILE) pyproject.toml --extra postgres --extra mysql --extra rabbitmq --extra stripe --extra alipay --extra wechat \
		--extra images --extra otel --constraint requirements.txt \
		--output-file requirements-production.txt
	@# The shops use seckill as it is installed here; with it, these are all that they need.
	for shop in examples/*-shop; do \
		$(COMPILE) $$shop/requirements.in --constraint requirements-test.txt --output-file $$shop/requirements.txt; done
	$(COMPILE) --upgrade --group build --constraint requirements-test.txt --output-file requirements-build.txt
	$(COMPILE) --upgrade --group docs --output-file requirements-docs.txt
	$(COMPILE) --upgrade --group tools --output-file requirements-tools.txt

.PHONY: dist
dist: .venv/run site ## Wheel and sdist in dist/, the same bytes from the same commit
	@scripts/build-dist $(BIN)/hatchling dist

.PHONY: image-steps
image-steps: ## Run the steps of the Dockerfile, and what it starts, unprivileged and without an engine for containers (Linux)
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	SECKILL_DATABASE_URL=sqlite:////tmp/ledger.db $(PYTHON) scripts/run-dockerfile Dockerfile "$$folder" -- --version -- migrate

.PHONY: sbom
sbom: .venv/tools/ready ## The parts list of a production image, as build/sbom.cdx.json (CycloneDX)
	@mkdir -p build
	@$(TOOLS)/cyclonedx-py requirements requirements-production.txt --pyproject pyproject.toml --mc-type application \
		--output-reproducible --output-format JSON --output-file build/sbom.cdx.json
	@echo "build/sbom.cdx.json"

.PHONY: audit-deps
audit-deps: .venv/tools/ready ## Ask the vulnerability database of PyPI about everything that is pinned
	@scripts/audit-deps $(TOOLS)/pip-audit

.PHONY: pin-images
pin-images: ## Ask the registry for the digests of the images, as deploy/images.env
	@$(PYTHON) scripts/pin-images

.venv/python:
	@if [ -z "$(PYTHON)" ]; then echo "seckill needs Python 3.11 or newer: install one, or say make PYTHON=…" >&2; exit 1; fi
	$(PYTHON) -m venv .venv
	@touch $@

.venv/run: .venv/python requirements.txt requirements-build.txt pyproject.toml
	@echo "Installing into .venv (about a minute, needs the network) …"
	$(BIN)/$(PINNED) -r requirements.txt -r requirements-build.txt
	$(BIN)/$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# Where there is no compiler, Python does the same, and it says so.
.venv/kernel: .venv/run seckill/native/kernel.c seckill/native/ring.c
	@$(BIN)/python -m seckill.native
	@touch $@

.venv/test: .venv/kernel requirements-test.txt
	@echo "Installing what the tests need into .venv (about a minute, needs the network) …"
	$(BIN)/$(PINNED) -r requirements-test.txt
	@touch $@

.venv/docs/ready: .venv/python requirements-docs.txt
	$(BIN)/python -m venv .venv/docs
	$(SITE)/$(PINNED) -r requirements-docs.txt
	@touch $@

.venv/tools/ready: .venv/python requirements-tools.txt
	$(BIN)/python -m venv .venv/tools
	$(TOOLS)/$(PINNED) -r requirements-tools.txt
	@touch $@
