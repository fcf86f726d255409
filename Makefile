# One command for each job; everything that is installed lives in .venv.
# A machine needs Python 3.11 or later and make. Java 17 and Maven add Apache Kafka to the tests.

PYTHON ?= python3
# Two workers keep two cores busy; broker tests mostly wait, so more only makes them time out.
JOBS ?= 2
# Options for pytest or the benchmark: make test ARGS='-k fence -x'
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test check bench soak test-docker lock format clean

help: ## Say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

install: $(STAMP) ## Set up .venv from the lock file; nothing to do when nothing changed

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "tallystick needs Python 3.11 or later, and $(PYTHON) is older: make PYTHON=python3.12" >&2; \
		exit 2; }
	@echo "installing into $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV) || { \
		echo "$(PYTHON) -m venv failed: on Debian, apt-get install python3-venv" >&2; exit 2; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: install ## Show the main job on the embedded broker
	@$(BIN)/tallystick demo $(ARGS)

test: install ## Run the tests, on Apache Kafka where Java and Maven are
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

check: install ## Lint, formatting, types and the rules of STYLE.md
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_tidy.py tests/test_imports.py

bench: install ## Measure commit to receipt
	@$(BIN)/python -m ops.bench $(ARGS)

soak: install ## Run twenty thousand simulated worlds (docs/simulator.md)
	@$(BIN)/python -m ops.cli sim --seeds 20000 $(ARGS)

test-docker: install ## Run the Docker test for real; starts an engine of its own where none answers
	@PYTHON=$(CURDIR)/$(BIN)/python ops/broker/docker_image/test.sh $(ARGS)

lock: ## Resolve requirements.lock anew (needs uv)
	@printf 'hatchling>=1.27\neditables>=0.5\n' | uv pip compile --quiet pyproject.toml - \
		--extra worker --extra registry --extra embedded --extra dev \
		--universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-annotate --no-header -o requirements.lock

format: install ## Format the code and fix what ruff can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean: ## Remove everything that make made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
