# Two commands matter: `make run` and `make test`. Each sets up all it needs, and both are safe to repeat.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
SRC    := core operator worker cli tests e2e
JOBS   ?= auto
SECONDS_OF_CHAOS ?= 60

.DEFAULT_GOAL := help
.PHONY: help run test lint fmt unit nightly e2e chaos bench docs crds requirements clean \
        cluster-up cluster-down cluster-status

help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) -V 2>&1)"; \
	    echo "hint: make PYTHON=/path/to/python3.11 …"; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "installing python3-venv"; apt-get update -qq && apt-get install -y -qq python3-venv; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q core operator/noetl_operator worker cli
	@touch $@

run: $(STAMP) ## set up and run an example playbook on this machine, without a cluster
	$(BIN)/python examples/tour/run.py

test: $(STAMP) lint unit chaos e2e ## set up and pass every check and test

lint: $(STAMP) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check $(SRC)
	$(BIN)/ruff format --check $(SRC)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: $(STAMP) ## the tests without a cluster
	$(BIN)/pytest -n $(JOBS)

e2e: $(STAMP) ## the tests on a real Kubernetes, where this machine can have one
	$(BIN)/pytest e2e

chaos: $(STAMP) ## a minute of killing operators, workers and Postgres under load
	$(BIN)/python -m e2e.chaos --seconds $(SECONDS_OF_CHAOS)

cluster-up: $(STAMP) ## have a Kubernetes of our own running, to try things on
	$(BIN)/python -m e2e.cluster up

cluster-down: $(STAMP) ## end it and remove every trace of it
	$(BIN)/python -m e2e.cluster down

cluster-status: $(STAMP) ## say what of it runs
	$(BIN)/python -m e2e.cluster status

nightly: $(STAMP) ## the property tests with many more examples
	HYPOTHESIS_PROFILE=nightly $(BIN)/pytest -n $(JOBS) -m "not cluster"

fmt: $(STAMP) ## format and sort imports
	$(BIN)/ruff check --fix --quiet $(SRC) || true
	$(BIN)/ruff format $(SRC)

bench: $(STAMP) ## the measurements
	$(BIN)/python -m e2e.bench.language
	$(BIN)/python -m e2e.bench.engine
	$(BIN)/python -m e2e.bench.durable

crds: $(STAMP) ## write crds/ from the model
	$(BIN)/python -m noetl_cli.crds crds

docs: $(STAMP) ## write the generated reference pages
	$(BIN)/python -m noetl_cli.reference docs/reference

requirements: ## resolve requirements/*.txt anew (pinned and hashed, without index addresses)
	$(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install --quiet uv
	for extra in operator worker dev; do \
	  $(VENV)-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --custom-compile-command "make requirements" $(ARGS) --extra $$extra pyproject.toml -o requirements/$$extra.txt || exit 1; \
	done
	echo 'hatchling>=1.27' | $(VENV)-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make requirements" $(ARGS) - -o requirements/build.txt
	rm -rf $(VENV)-lock

clean: ## remove what make made (the virtual environment and caches)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
