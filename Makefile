# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
export BERTH_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: run test test-cluster cluster cluster-down setup lint lock manifests findings clean

# A day on a small cluster, alive in the terminal; it ends by itself within a minute and leaves a page. Where no terminal
# shows it: the same as lines, as fast as it is decided.
run: setup
	@$(BIN)/berth up --for 50

test: setup lint
	$(BIN)/python -m pytest

# The tests on a real control plane, which Go builds the first time (devcluster/README.md). They are not skipped here:
# BERTH_ALLOW_SKIP=1 leaves them out where neither Go nor ready programs are.
test-cluster: setup
	BERTH_CLUSTER_REQUIRED=1 $(BIN)/python -m pytest tests/cluster

# A cluster to play with: NODES=1000 PROFILE=h100 make cluster. Prints the path of its kubeconfig.
NODES   ?= 100
PROFILE ?= h100
cluster: setup
	@$(BIN)/python -m devcluster up --nodes $(NODES) --profile $(PROFILE)

cluster-down:
	@$(BIN)/python -m devcluster down

lint: setup
	$(BIN)/ruff check --no-cache src tests benchmarks devcluster
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(VENV)/.ready

# The lock file carries every version with its hashes; nothing is resolved at install time.
$(VENV)/.ready: requirements.lock pyproject.toml
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@echo "installing what requirements.lock names, a minute or two ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@echo "compiling the hot loops, half a minute ..."
	@$(BIN)/python -m berth.app.compile
	@touch $@

lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o requirements.lock

# What of deploy/ is made from something else: the chart's copy of the CRDs, the manifests for `kubectl apply -k`. Helm is
# found in PATH or named by HELM.
manifests: setup
	$(BIN)/python deploy/manifests.py

# The pages of docs/findings, made of the rules.
findings: setup
	$(BIN)/python docs/make_findings.py

clean:
	rm -rf $(VENV) build dist
