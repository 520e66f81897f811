# Two commands matter: `make run` and `make test`. Each sets up all it needs, and both are safe to repeat.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
SRC    := core operator worker cli tests e2e
JOBS   ?= auto

.DEFAULT_GOAL := help
.PHONY: help run test lint fmt unit nightly e2e bench docs crds requirements clean

help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) -V 2>&1)"; \
	    echo "hint: make PYTHON=/path/to/python3.11 …"; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "installing python3-venv"; apt-get update -qq && apt-get install -y -qq python3-venv; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: $(STAMP) ## set up and check the example playbook
	$(BIN)/noetl check examples/*.yaml

test: $(STAMP) lint unit ## set up and pass every check and test

lint: $(STAMP) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check $(SRC)
	$(BIN)/ruff format --check $(SRC)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: $(STAMP) ## the tests without a cluster
	$(BIN)/pytest -n $(JOBS)

nightly: $(STAMP) ## the property tests with many more examples
	HYPOTHESIS_PROFILE=nightly $(BIN)/pytest -n $(JOBS) -m "not cluster"

fmt: $(STAMP) ## format and sort imports
	$(BIN)/ruff check --fix --quiet $(SRC) || true
	$(BIN)/ruff format $(SRC)

bench: $(STAMP) ## the measurements
	$(BIN)/python e2e/bench/language.py

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
	rm -rf $(VENV)-lock

clean: ## remove what make made (the virtual environment and caches)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
