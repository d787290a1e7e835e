# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export BERTH_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: run test setup lint bench clean

run: setup
	$(BIN)/berth simulate packing

test: setup lint
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(VENV)/.ready

# The lock file carries every version with its hashes; nothing is resolved at install time.
$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	$(BIN)/python -m berth.app.compile
	touch $@

lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o requirements.lock

clean:
	rm -rf $(VENV) build dist
