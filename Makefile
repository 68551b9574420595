# Everything is installed into this checkout: .venv, node_modules, generated contract artifacts.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SLITHER := .slither
AUDIT := .audit
SITE := .site
SITE_SOURCE := docs/site
SBOM := .consilium/sbom.json
CONTRACTS := chain/contracts
DASHBOARD := dashboard
REQUIREMENTS := requirements
# Of each package one version, in a file whose hash is committed; wheels alone, for what builds others would come unhashed.
PIP_HASHED := -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary=:all:
SERVED := server/consilium_server/dashboard
ARGS ?=
# `cpu`, `cuda`, or the URL of an index. For Linux PyPI has torch only with CUDA: 2.7 GB to download.
TORCH ?= cpu
CPU_SIZE := 0.4 GB to download
CUDA_SIZE := 2.7 GB to download for torch
TORCH_INDEX := $(if $(filter cpu,$(TORCH)),https://download.pytorch.org/whl/cpu,$(filter-out cuda,$(TORCH)))
SERVICES := redis-server postgresql chromium nginx-light gettext-base nftables gcc libc6-dev
WORKERS ?= 3
WHOLE_NETWORKS := tests/e2e/test_demo_runs.py tests/e2e/test_up.py tests/e2e/test_aggregator_killed.py \
	tests/e2e/test_internet.py \
	tests/e2e/test_dashboard.py tests/e2e/test_dashboard_operate.py tests/e2e/test_dashboard_desk.py

require_python = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing): pass PYTHON=/path/to/python"; exit 1; }
require_node = command -v npm >/dev/null && node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' || { \
	echo "Node.js 20 or newer with npm is needed, and node is $$(node --version 2>/dev/null || echo missing): install it, then run this again"; exit 1; }

.PHONY: help demo up dashboard wheel site test test-deep check format lint audit sbom coverage slither slither-installed contracts contracts-test dashboard-test python-test demo-test bench clean install tools dev services
.DEFAULT_GOAL := help

help:
	@echo "make demo               install, then run a whole task on this machine (ARGS=\"--help\" shows the options)"
	@echo "make up                 install, then run a whole network until Ctrl-C (ARGS=\"--help\" shows the options)"
	@echo "make dashboard          install what it needs, and build it: the API then serves it"
	@echo "make wheel              build what pip installs elsewhere, into dist"
	@echo "make site               build these docs as a site with search, into .consilium/site"
	@echo "make test               install what tests need, then lint, type check and all tests (WORKERS=N: Python test processes)"
	@echo "make check              in seconds: lint, formats and types of Python, after a change"
	@echo "make format             put sources into their one format"
	@echo "make test-deep          slower depth: long fuzzing, coverage, every attack end to end"
	@echo "make bench              measure, and write bench/results"
	@echo "make audit              ask the registries for known vulnerabilities of what is pinned (ARGS=\"--help\" shows the options)"
	@echo "make sbom               write a bill of materials (CycloneDX) into .consilium"
	@echo "make clean              remove what was installed and generated"

demo: tools install contracts
	@$(BIN)/consilium demo $(ARGS)

up: tools install dashboard
	@$(BIN)/consilium up $(ARGS)

# Side by side, the longest first: compiling uses one core, and lint has its turn after the contracts' tests. What each
# command says comes in one piece, where make can (4.0). Whole demos by themselves: each starts some fifteen processes
# and keeps deadlines.
test: tools
	@$(MAKE) --no-print-directory -j 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=line) \
		contracts-test python-test lint dashboard-test
	@$(MAKE) --no-print-directory demo-test

# Before minutes of installation.
tools:
	@test -f $(VENV)/.demo || { $(require_python); }
	@test -f chain/consilium_chain/contracts/Tasks.json || { $(require_node); }

install: $(VENV)/.demo

# Tests start these themselves, on free ports or in network namespaces, from Debian's packages.
services:
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 \
		&& (for one in redis-server chromium nginx envsubst nft cc; do command -v $$one >/dev/null || exit 1; done) || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null || { \
			echo "$(SERVICES): not all are installed, and only root can: tests that need them are skipped"; exit 0; }; \
		echo "installing $(SERVICES)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends \
			$(SERVICES) >/dev/null; }
dev: $(VENV)/.dev
contracts: $(CONTRACTS)/node_modules/.installed chain/consilium_chain/contracts/Tasks.json

$(VENV)/.demo: pyproject.toml constraints.txt $(wildcard $(REQUIREMENTS)/*.txt)
	@$(require_python)
	@test -d $(VENV) || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing Python packages into $(VENV), once: one to three minutes, $(if $(filter cuda,$(TORCH)),$(CUDA_SIZE),$(CPU_SIZE))"
	@$(BIN)/python $(PIP_HASHED) $(foreach one,build base server client demo,-r $(REQUIREMENTS)/$(one).txt)
	@# Without a hash: a machine's torch may be a build of its own (without CUDA, say), whose file is not the index's. Its
	@# other needs are installed by now, but for the libraries of a build with CUDA.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		--retries 2 $(addprefix --extra-index-url=,$(TORCH_INDEX)) torch==2.13.0
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.demo client/encoders.txt
	@$(BIN)/python $(PIP_HASHED) -r $(REQUIREMENTS)/text.txt -r $(REQUIREMENTS)/dev.txt -r client/encoders.txt
	@touch $@

# Of its own: Slither needs another version of web3 than the chain room.
$(SLITHER)/.installed: $(CONTRACTS)/slither-requirements.txt
	@echo "installing Slither into $(SLITHER)"
	@test -d $(SLITHER) || $(PYTHON) -m venv $(SLITHER)
	@$(SLITHER)/bin/python $(PIP_HASHED) -r $(CONTRACTS)/slither-requirements.txt
	@touch $@

$(CONTRACTS)/node_modules/.installed: $(CONTRACTS)/package-lock.json
	@$(require_node)
	@echo "installing the contract tools into $(CONTRACTS)/node_modules"
	@# Not `npm ci`: it insists on other platforms' optional binaries, some of which were never published.
	@cd $(CONTRACTS) && npm install --no-save --loglevel=error --no-audit --no-fund --no-update-notifier
	@ls $(CONTRACTS)/node_modules/@foundry-rs/*/bin/anvil >/dev/null 2>&1 || { \
		echo "npm has no build of Foundry for this machine: install anvil and forge by hand (getfoundry.sh)"; exit 1; }
	@touch $@

dashboard: install contracts $(SERVED)/index.html

# With contracts and dashboard inside: who installs it needs no Node.js, compiler or checkout.
wheel: tools dashboard
	@rm -rf dist && $(BIN)/python -m hatchling build -d dist

# Of its own, for tests and commands need none of it: ten seconds, 130 MB.
$(SITE)/.installed: $(REQUIREMENTS)/site.txt $(SITE_SOURCE)/package-lock.json
	@$(require_python)
	@$(require_node)
	@echo "installing MkDocs into $(SITE)"
	@test -d $(SITE) || $(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/python $(PIP_HASHED) -r $(REQUIREMENTS)/site.txt
	@cd $(SITE_SOURCE) && npm install --no-save --loglevel=error --no-audit --no-fund --no-update-notifier
	@touch $@

# A warning ends it: a page outside the navigation, a link or an anchor that leads nowhere.
site: $(SITE)/.installed
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet --strict -f $(SITE_SOURCE)/mkdocs.yml
	@echo "open .consilium/site/index.html"

$(DASHBOARD)/node_modules/.installed: $(DASHBOARD)/package-lock.json
	@$(require_node)
	@echo "installing the dashboard's tools into $(DASHBOARD)/node_modules"
	@cd $(DASHBOARD) && npm install --no-save --loglevel=error --no-audit --no-fund --no-update-notifier
	@touch $@

$(DASHBOARD)/src/generated/abi.ts: $(DASHBOARD)/node_modules/.installed chain/consilium_chain/contracts/Tasks.json $(wildcard server/consilium_server/api/*.py) $(DASHBOARD)/scripts/generate.mjs
	@mkdir -p $(@D)
	@$(BIN)/consilium server openapi > $(@D)/openapi.json
	@cd $(DASHBOARD) && npm run --silent generate -- $(CURDIR)/chain/consilium_chain/contracts src/generated/openapi.json \
		"$$($(CURDIR)/$(BIN)/python -c 'from consilium_zk.kzg import setup_path; print(setup_path())')"

$(SERVED)/index.html: $(DASHBOARD)/src/generated/abi.ts client/consilium_client/privacy/membership.json $(shell find $(DASHBOARD)/src $(DASHBOARD)/public $(DASHBOARD)/*.ts $(DASHBOARD)/*.json $(DASHBOARD)/index.html -type f 2>/dev/null | grep -v /generated/)
	@echo "building the dashboard"
	@cd $(DASHBOARD) && npm run --silent build -- --logLevel warn
	@touch $@

chain/consilium_chain/contracts/Tasks.json: $(CONTRACTS)/node_modules/.installed $(shell find $(CONTRACTS)/src $(CONTRACTS)/script $(CONTRACTS)/foundry.toml -type f)
	@echo "compiling the contracts"
	@cd $(CONTRACTS) && npm run --silent build
	@touch $@

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
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not deep" \
		$(addprefix --ignore=,$(WHOLE_NETWORKS))

demo-test: dev contracts services dashboard
	$(BIN)/pytest -m "not deep" $(WHOLE_NETWORKS)

test-deep: dev contracts services coverage
	cd $(CONTRACTS) && FOUNDRY_PROFILE=deep npm run --silent test -- --no-match-contract GasTest
	$(BIN)/pytest -n 2 --dist loadfile $(addprefix --ignore=,$(WHOLE_NETWORKS))
	$(BIN)/pytest $(WHOLE_NETWORKS)

bench: dev contracts
	$(BIN)/python -m bench $(ARGS)

$(AUDIT)/.installed: audit/pip-audit.txt
	@echo "installing pip-audit into $(AUDIT)"
	@test -d $(AUDIT) || $(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/python $(PIP_HASHED) -r audit/pip-audit.txt
	@touch $@

# Fails where a vulnerability is known, and where a registry does not answer (ARGS="--where-answered": not then).
audit: $(AUDIT)/.installed
	@$(AUDIT)/bin/python audit/vulnerabilities.py $(ARGS)

sbom: dev
	@$(BIN)/python audit/sbom.py $(SBOM)

clean:
	rm -rf $(VENV) $(SLITHER) $(AUDIT) $(SITE) $(SITE_SOURCE)/node_modules dist .consilium .hypothesis .*_cache
	rm -rf $(CONTRACTS)/node_modules $(CONTRACTS)/out $(CONTRACTS)/cache chain/consilium_chain/contracts
	rm -rf $(DASHBOARD)/node_modules $(DASHBOARD)/src/generated $(SERVED)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
