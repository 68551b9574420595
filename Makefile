# Everything is installed into this checkout: .venv, node_modules, generated contract artifacts.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SLITHER := .slither
AUDIT := .audit
SITE := .site
SITE_SOURCE := docs/site
TASK_REFERENCE := $(SITE_SOURCE)/pages/docs/task-reference.md
SBOM := .consilium/sbom.json
CONTRACTS := chain/contracts
DASHBOARD := dashboard
REQUIREMENTS := requirements
# Of each package one version, in a file whose hash is committed; wheels alone, for what builds others would come unhashed.
PIP_HASHED := -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary=:all:
SERVED := server/consilium_server/dashboard
ARGS ?=
# `cpu`, `cuda`, or the URL of an index; by default the one that is installed. The stamp holds it: another choice installs
# torch again. For Linux PyPI has torch only with CUDA: 2.7 GB to download.
INSTALLED_TORCH := $(shell cat $(VENV)/.demo 2>/dev/null)
TORCH ?= $(or $(INSTALLED_TORCH),cpu)
OTHER_TORCH := $(if $(INSTALLED_TORCH),$(filter-out $(INSTALLED_TORCH),$(TORCH)))
CPU_SIZE := 0.4 GB to download
CUDA_SIZE := 2.7 GB to download for torch
NO_TORCH = $(TORCH_INDEX) gave no torch: it comes from the usual registry, where torch for Linux has CUDA ($(CUDA_SIZE)); Ctrl-C stops it
PIP_TORCH := -m pip install --quiet --disable-pip-version-check --retries 2 torch==2.13.0
TORCH_INDEX := $(if $(filter cpu,$(TORCH)),https://download.pytorch.org/whl/cpu,$(filter-out cuda,$(TORCH)))
SERVICES := redis-server postgresql chromium nginx-light gettext-base nftables gcc libc6-dev
WORKERS ?= 3
WHOLE_NETWORKS := tests/e2e/test_demo_runs.py tests/e2e/test_demo_programs.py tests/e2e/test_up.py tests/e2e/test_aggregator_killed.py \
	tests/e2e/test_internet.py tests/e2e/test_two_machines.py \
	tests/e2e/test_dashboard.py tests/e2e/test_dashboard_operate.py tests/e2e/test_dashboard_desk.py \
	tests/e2e/test_dashboard_wallets.py tests/e2e/test_dashboard_audit.py tests/e2e/test_wallet_matrix.py

# Each step of the installation: alone in this checkout, with one line that says what to do when it fails.
STEP_PYTHON = $(if $(wildcard $(VENV)/.demo),$(or $(wildcard $(BIN)/python),$(PYTHON)),$(PYTHON))
STEP = $(STEP_PYTHON) setup/run_step.py
# What a stamp stands for is made again if it is gone: an empty name is no prerequisite.
unless_there = $(if $(wildcard $(1)),,again)
NO_FOUNDRY := npm has no build of Foundry for this machine: install anvil and forge by hand (getfoundry.sh), then run this again
# Without bounds, npm waits many minutes for a registry that is down.
NPM_PATIENCE := --fetch-retries=3 --fetch-retry-factor=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=4000
NPM_INSTALL := npm install $(NPM_PATIENCE) --no-save --loglevel=error --no-audit --no-fund --no-update-notifier

require_python = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing): pass PYTHON=/path/to/python"; exit 1; }
require_step = test -f $(VENV)/.demo || { $(require_python); }
# Vite's own bounds.
require_node = command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split(".").map(Number); \
	process.exit(Number(!((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22)))' 2>/dev/null || { \
	echo "Node.js 20.19, 22.12 or newer with npm is needed, and node is $$(node --version 2>/dev/null || echo missing), npm is $$(command -v npm >/dev/null && npm --version 2>/dev/null || echo missing): install it, then run this again"; exit 1; }
require_torch = case "$(TORCH)" in cpu|cuda|*://*) ;; *) \
	echo "TORCH is cpu, cuda or the URL of an index, and not $(TORCH): pass one of these"; exit 1;; esac

.PHONY: help demo up dashboard wheel site test test-deep check format lint audit sbom coverage slither slither-installed contracts contracts-test dashboard-test python-test demo-test newest-flower bench clean install tools tools-of-dashboard installed again dev services
.DEFAULT_GOAL := help

help:
	@echo "make demo               install, then run a whole task on this machine (ARGS=\"--help\" shows the options)"
	@echo "make up                 install, then run a whole network until Ctrl-C (ARGS=\"--help\" shows the options)"
	@echo "make dashboard          install what it needs, and build it: the API then serves it"
	@echo "make wheel              build what pip installs elsewhere, into dist"
	@echo "make site               build these docs as a site with search, into .consilium/site"
	@echo "make test               install what tests need, then lint and all tests, even if one fails; a table at the end (WORKERS=N: Python test processes)"
	@echo "make check              in seconds: lint, formats and types of Python, after a change"
	@echo "make format             put sources into their one format"
	@echo "make test-deep          slower depth: long fuzzing, coverage, every attack end to end"
	@echo "make bench              measure, and write bench/results"
	@echo "make audit              ask the registries for known vulnerabilities of what is pinned (ARGS=\"--help\" shows the options)"
	@echo "make sbom               write a bill of materials (CycloneDX) into .consilium"
	@echo "make clean              remove what was installed and generated"

demo: tools install contracts
	@$(BIN)/consilium demo $(ARGS)

up: tools-of-dashboard install dashboard
	@$(BIN)/consilium up $(ARGS)

# Every part runs, even if one fails; a table of all is the end. Beside each other, the longest first: compiling uses one
# core, and lint has its turn after the contracts' tests. Whole demos by themselves: each starts some fifteen processes
# and keeps deadlines.
test: tools-of-dashboard
	@$(STEP_PYTHON) setup/run_parts.py --make "$(MAKE)" --beside 2 \
		installed --then contracts-test python-test lint dashboard-test newest-flower --then demo-test

installed:
	@$(MAKE) --no-print-directory -k dev contracts slither-installed services dashboard

# Before minutes of installation.
tools:
	@$(require_torch)
	@$(require_step)
	@test -f chain/consilium_chain/contracts/Tasks.json || { $(require_node); }

tools-of-dashboard: tools
	@test -f $(SERVED)/index.html || { $(require_node); }

again:

install: $(VENV)/.demo

# Tests start these themselves, on free ports or in network namespaces, from Debian's packages.
services:
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 \
		&& (for one in redis-server chromium nginx envsubst nft cc; do command -v $$one >/dev/null || exit 1; done) || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null || { \
			echo "$(SERVICES): not all are installed, and only root can: tests that need them are skipped"; exit 0; }; \
		echo "installing $(SERVICES)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends \
			$(SERVICES) >/dev/null || { \
			echo "apt-get did not install $(SERVICES): check network and disk, or install them by hand, then run this again"; \
			exit 1; }; }
dev: $(VENV)/.dev
contracts: $(CONTRACTS)/node_modules/.installed chain/consilium_chain/contracts/Tasks.json

# torch has no hash: a machine's torch may be a build of its own (without CUDA, say), whose file is not the index's. Its
# other needs are installed by then, but for the libraries of a build with CUDA.
$(VENV)/.demo: pyproject.toml constraints.txt $(wildcard $(REQUIREMENTS)/*.txt) \
		$(if $(OTHER_TORCH),again) $(call unless_there,$(BIN)/consilium)
	@$(require_torch)
	@$(require_python)
	@$(PYTHON) setup/run_step.py $@ --of "$^" --holds "$(TORCH)" --venv $(VENV) --there $(BIN)/consilium "run \`make clean\`, then this again" \
		--says "installing Python packages into $(VENV), once: one to three minutes, $(if $(filter cuda,$(TORCH)),$(CUDA_SIZE),$(CPU_SIZE))" \
		--do $(BIN)/python $(PIP_HASHED) $(foreach one,build base server client onnx demo,-r $(REQUIREMENTS)/$(one).txt) \
		$(if $(OTHER_TORCH),--do $(BIN)/python $(PIP_TORCH) --no-deps --force-reinstall $(addprefix --index-url=,$(TORCH_INDEX)),\
		$(if $(TORCH_INDEX),--try "$(NO_TORCH)" \
			$(BIN)/python $(PIP_TORCH) --no-deps --index-url=$(TORCH_INDEX))) \
		--do $(BIN)/python $(PIP_TORCH) -c constraints.txt $(addprefix --extra-index-url=,$(TORCH_INDEX)) \
		--do $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .

$(VENV)/.dev: $(VENV)/.demo client/encoders.txt $(call unless_there,$(BIN)/pytest)
	@$(STEP) $@ --of "$^" --holds dev --there $(BIN)/pytest "run \`make clean\`, then this again" \
		--says "installing the tests' packages into $(VENV)" \
		--do $(BIN)/python $(PIP_HASHED) -r $(REQUIREMENTS)/text.txt -r $(REQUIREMENTS)/dev.txt -r client/encoders.txt

# Of its own: Slither needs another version of web3 than the chain room.
$(SLITHER)/.installed: $(CONTRACTS)/slither-requirements.txt
	@$(require_step)
	@$(STEP) $@ --of "$^" --holds slither --venv $(SLITHER) --says "installing Slither into $(SLITHER)" \
		--do $(SLITHER)/bin/python $(PIP_HASHED) -r $(CONTRACTS)/slither-requirements.txt

# Not `npm ci`: it insists on other platforms' optional binaries, some of which were never published.
$(CONTRACTS)/node_modules/.installed: $(CONTRACTS)/package-lock.json \
		$(call unless_there,$(CONTRACTS)/node_modules/@foundry-rs/*/bin/anvil)
	@$(require_node)
	@$(require_step)
	@$(STEP) $@ --of "$^" --holds contracts --in $(CONTRACTS) --fills $(CONTRACTS)/node_modules --there "$(CONTRACTS)/node_modules/@foundry-rs/*/bin/anvil" "$(NO_FOUNDRY)" \
		--there "$(CONTRACTS)/node_modules/@foundry-rs/*/bin/forge" "$(NO_FOUNDRY)" \
		--says "installing the contract tools into $(CONTRACTS)/node_modules" --do $(NPM_INSTALL) \
		--do $(STEP_PYTHON) $(CURDIR)/setup/own_foundry.py $(CURDIR)/$(CONTRACTS)

dashboard: tools-of-dashboard install contracts $(SERVED)/index.html

# With contracts and dashboard inside: who installs it needs no Node.js, compiler or checkout.
wheel: tools-of-dashboard dashboard
	@rm -rf dist && $(BIN)/python -m hatchling build -d dist

# Of its own, for tests and commands need none of it: ten seconds, 130 MB.
$(SITE)/.installed: $(REQUIREMENTS)/site.txt $(SITE_SOURCE)/package-lock.json
	@$(require_step)
	@$(require_node)
	@$(STEP) $@ --of "$^" --holds site --venv $(SITE) --there $(SITE)/bin/mkdocs "remove $(SITE), then run this again" \
		--says "installing MkDocs into $(SITE)" --do $(SITE)/bin/python $(PIP_HASHED) -r $(REQUIREMENTS)/site.txt \
		--do npm --prefix $(SITE_SOURCE) install $(NPM_PATIENCE) --no-save --loglevel=error --no-audit --no-fund --no-update-notifier

# By the command itself, so the page has this checkout's keys.
$(TASK_REFERENCE): $(VENV)/.demo operators/consilium_operators/task_reference.py $(wildcard chain/consilium_chain/tasks/*.py)
	@mkdir -p $(@D)
	@$(BIN)/consilium task reference --markdown > $@.new && mv $@.new $@

# A warning ends it: a page outside the navigation, a link or an anchor that leads nowhere. With --quiet none would.
site: $(SITE)/.installed $(TASK_REFERENCE)
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict -f $(SITE_SOURCE)/mkdocs.yml
	@echo "open .consilium/site/index.html"

$(DASHBOARD)/node_modules/.installed: $(DASHBOARD)/package-lock.json $(call unless_there,$(DASHBOARD)/node_modules/.bin/vite)
	@$(require_node)
	@$(require_step)
	@$(STEP) $@ --of "$^" --holds dashboard --in $(DASHBOARD) --fills $(DASHBOARD)/node_modules --there $(DASHBOARD)/node_modules/.bin/vite "remove $(DASHBOARD)/node_modules, then run this again" \
		--says "installing the dashboard's tools into $(DASHBOARD)/node_modules" --do $(NPM_INSTALL)

$(DASHBOARD)/src/generated/abi.ts: $(DASHBOARD)/node_modules/.installed chain/consilium_chain/contracts/Tasks.json $(wildcard server/consilium_server/api/*.py) $(DASHBOARD)/scripts/generate.mjs
	@mkdir -p $(@D)
	@$(BIN)/consilium server openapi > $(@D)/openapi.json
	@$(STEP) $@ --of "$^" --in $(DASHBOARD) --do npm run --silent generate -- $(CURDIR)/chain/consilium_chain/contracts \
		src/generated/openapi.json "$$($(CURDIR)/$(BIN)/python -c 'from consilium_zk.kzg import setup_path; print(setup_path())')"

# Built beside the served one, which stays whole until then.
$(SERVED)/index.html: $(DASHBOARD)/src/generated/abi.ts client/consilium_client/privacy/membership.json $(shell find $(DASHBOARD)/src $(DASHBOARD)/public $(DASHBOARD)/*.ts $(DASHBOARD)/*.json $(DASHBOARD)/index.html -type f 2>/dev/null | grep -v /generated/)
	@$(require_node)
	@$(STEP) $@ --of "$^" --in $(DASHBOARD) --says "building the dashboard" \
		--do npm run --silent build -- --logLevel warn --outDir node_modules/.served \
		--do rm -rf $(CURDIR)/$(SERVED) --do mv node_modules/.served $(CURDIR)/$(SERVED)

chain/consilium_chain/contracts/Tasks.json: $(CONTRACTS)/node_modules/.installed $(shell find $(CONTRACTS)/src $(CONTRACTS)/script $(CONTRACTS)/foundry.toml -type f)
	@$(require_node)
	@$(require_step)
	@$(STEP) $@ --of "$^" --in $(CONTRACTS) --says "compiling the contracts" --do npm run --silent build

slither-installed: $(SLITHER)/.installed

slither: slither-installed contracts
	cd $(CONTRACTS) && SLITHER=$(CURDIR)/$(SLITHER)/bin/slither npm run --silent slither

# Compiles everything once more, and runs every test without an optimizer.
coverage: contracts
	cd $(CONTRACTS) && npm run --silent coverage

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: dev contracts $(DASHBOARD)/node_modules/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cd $(CONTRACTS) && npm run --silent fmt
	cd $(DASHBOARD) && npm run --silent format

lint: check contracts slither
	cd $(CONTRACTS) && npm run --silent fmt:check

contracts-test: contracts
	cd $(CONTRACTS) && FORGE_SNAPSHOT_CHECK=true npm run --silent test

dashboard-test: dashboard
	cd $(DASHBOARD) && npm run --silent types && npm run --silent lint && npm run --silent format:check && npm run --silent test

# A file's tests go to one process: what they share is made once, and the longest files come first (tests/conftest.py).
# More processes than cores: each waits half of its time, for blocks and for the processes that it starts.
python-test: dev contracts services
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not deep" --durations=50 --durations-min=5 \
		$(addprefix --ignore=,$(WHOLE_NETWORKS))

demo-test: dev contracts services dashboard
	$(BIN)/pytest -m "not deep" --durations=30 --durations-min=5 $(WHOLE_NETWORKS)

# With the newest Flower that pip finds: fails with no version, and says in the table what came of it.
newest-flower: dev
	@$(BIN)/python setup/newest_flower.py

test-deep: dev contracts services coverage
	cd $(CONTRACTS) && FOUNDRY_PROFILE=deep npm run --silent test -- --no-match-contract GasTest
	$(BIN)/pytest -n 2 --dist loadfile $(addprefix --ignore=,$(WHOLE_NETWORKS))
	$(BIN)/pytest $(WHOLE_NETWORKS)

bench: dev contracts
	$(BIN)/python -m bench $(ARGS)

$(AUDIT)/.installed: audit/pip-audit.txt
	@$(require_step)
	@$(STEP) $@ --of "$^" --holds audit --venv $(AUDIT) --says "installing pip-audit into $(AUDIT)" \
		--do $(AUDIT)/bin/python $(PIP_HASHED) -r audit/pip-audit.txt

# Fails where a vulnerability is known, and where a registry does not answer (ARGS="--where-answered": not then).
audit: $(AUDIT)/.installed
	@$(AUDIT)/bin/python audit/vulnerabilities.py $(ARGS)

sbom: dev
	@$(BIN)/python audit/sbom.py $(SBOM)

clean:
	rm -rf $(VENV) $(SLITHER) $(AUDIT) $(SITE) $(SITE_SOURCE)/node_modules $(dir $(TASK_REFERENCE)) dist .consilium .hypothesis .*_cache
	rm -rf $(CONTRACTS)/node_modules $(CONTRACTS)/out $(CONTRACTS)/cache chain/consilium_chain/contracts
	rm -rf $(DASHBOARD)/node_modules $(DASHBOARD)/src/generated $(SERVED)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
