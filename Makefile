# Two commands to know: `make demo` and `make test`. Both need python3 (3.11 or newer) and make,
# nothing else; the first run builds the environment in .venv, later runs find it there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
PINS := pyproject.toml constraints.txt
OLDEST := $(VENV)-oldest

# Two workers that each use one BLAS thread beat one worker that uses two.
WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# Debian packages that a target needs beyond Python; .ci/apt installs them where it may, and says so.
TEST_PACKAGES := chromium postgresql
BENCH_PACKAGES := r-base-core r-cran-robustbase r-cran-flexmix r-cran-mixtools r-cran-mass

.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help env demo test lint types imports tests slow fuzz docs picture lab bench bench-recovery size format dist test-oldest compare clean

stage = @printf '\n== %s\n' "$(1)"
# pip leaves byte code out on machines that set PYTHONDONTWRITEBYTECODE; every start would pay for it.
compile = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m compileall -q -j 0 $(VENV)/lib > /dev/null || true

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

env: $(VENV)/.dev ## build or refresh the environment in .venv

demo: $(VENV)/.core ## find the regimes of bundled data and say what was found
	@$(BIN)/python examples/demo.py

test: $(VENV)/.dev lint types imports tests ## lint, types, imports and every test
	@printf '\nAll checks passed.\n'

lint: $(VENV)/.dev ## ruff: lint and format check
	$(call stage,lint: ruff check and ruff format)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy, strict, on src/ and lab/
	$(call stage,types: mypy on src/ and lab/)
	@$(BIN)/mypy

imports: $(VENV)/.dev ## import-linter: who may import whom
	$(call stage,imports: import-linter)
	@$(BIN)/lint-imports --no-logo

tests: $(VENV)/.dev ## pytest alone; in a minute with ARGS="-m 'not slow'"
	$(call stage,tests: pytest)
	@.ci/apt $(TEST_PACKAGES)
	@$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --durations=10 $(ARGS)

slow: $(VENV)/.dev ## time all tests, and write which are slow to tests/slow.txt
	@$(ONE_THREAD) $(BIN)/python -m tests.slow -n $(WORKERS)

# A run that fails prints the example and a line that brings it back; the seed brings back the run.
fuzz: $(VENV)/.dev ## fresh random examples of the properties, or TABLES=200 random tables; SEED=1 chooses them
ifdef TABLES
	$(call stage,fuzz: tests.fuzz)
	@$(ONE_THREAD) $(BIN)/python -m tests.fuzz --tables $(TABLES) $(if $(SEED),--seed $(SEED)) $(ARGS)
else
	$(call stage,fuzz: properties and simulations)
	@seed=$(SEED); seed=$${seed:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	  echo "These examples again: make fuzz SEED=$$seed"; \
	  $(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS) -m "hypothesis or simulation" \
	    --hypothesis-profile=fuzz --hypothesis-seed=$$seed $(ARGS)
endif

docs: $(VENV)/.docs ## build the site in docs/_build/html; warnings are errors
	$(call stage,docs: sphinx)
	@$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

picture: $(VENV)/.docs ## draw the picture of the README again
	@$(BIN)/python docs/picture.py

lab: $(VENV)/.dev ## the paper's claims as experiments, in minutes each; ARGS="--quick": in seconds
	$(call stage,lab: python -m lab run all)
	@$(ONE_THREAD) $(BIN)/python -m lab run all $(ARGS)

bench: $(VENV)/.dev ## speed against peers, in half an hour; writes the table of the benchmarks page
	$(call stage,bench: benchmarks.speed)
	@.ci/apt $(BENCH_PACKAGES) || echo "Going on without the peers that need them."
	@$(BIN)/python -m benchmarks.speed $(ARGS)

bench-recovery: $(VENV)/.dev ## who finds every component: hours; see benchmarks/README.md
	$(call stage,bench-recovery: benchmarks.recovery)
	@.ci/apt $(BENCH_PACKAGES) || echo "Going on without the peers that need them."
	@$(ONE_THREAD) $(BIN)/python -m benchmarks.recovery --jobs $(WORKERS) $(ARGS)

size: $(VENV)/.dev ## how large the package is: lines, files, chosen numbers, what a fit passes through
	@$(ONE_THREAD) $(BIN)/python -m benchmarks.house $(ARGS)

bench-real: $(VENV)/.dev ## real tables of R packages: an hour; see benchmarks/real/README.md
	$(call stage,bench-real: benchmarks.real)
	@.ci/apt $(BENCH_PACKAGES) || echo "Going on without the peers that need them."
	@$(ONE_THREAD) $(BIN)/python -m benchmarks.real --jobs $(WORKERS) $(ARGS)

compare: $(VENV)/.dev ## what RANSAC, Huber, flexmix and others find in the same tables, in minutes
	$(call stage,compare: benchmarks.compare)
	@.ci/apt $(BENCH_PACKAGES) || echo "Going on without the peers that need them."
	@$(ONE_THREAD) $(BIN)/python -m benchmarks.compare $(ARGS)

dist: $(VENV)/.dev ## wheel and archive in dist/, each installed and tried in an environment of its own
	$(call stage,dist: hatchling)
	@rm -rf dist
	@$(BIN)/python -m hatchling build -d dist
	@$(BIN)/python .ci/smoke.py $(ARGS)

# Warnings of old packages about each other are not ours, so here they are no errors.
test-oldest: ## the tests with the oldest dependencies that pyproject.toml promises; ARGS="-m 'not slow'": fewer
	$(call stage,test-oldest: pytest)
	@$(PYTHON) .ci/oldest > $(OLDEST).txt
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install -qq --disable-pip-version-check hatchling
	@$(OLDEST)/bin/python -m pip install -qq --disable-pip-version-check --no-build-isolation \
	  -c $(OLDEST).txt -e '.[cli,dask,plot,sql]' pandas hypothesis playwright pytest pytest-xdist \
	  aiohttp flask flask-cors 'moto[s3]' s3fs
	@$(ONE_THREAD) $(OLDEST)/bin/python -m pytest -q -n $(WORKERS) -o filterwarnings=default \
	  -p no:cacheprovider --disable-warnings $(ARGS)

format: $(VENV)/.dev ## let ruff rewrite the files
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean: ## remove the environment, caches and built pages
	rm -rf $(VENV) $(OLDEST) $(OLDEST).txt build dist benchmarks/.cache lab/results docs/_build docs/api/generated docs/gallery \
	  .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, in three layers: what the library needs, what its checks need, what its site needs.
$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "regimix needs Python 3.11 or newer: install it, or name it as in 'make PYTHON=python3.12 demo'." >&2; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV) || \
	  { rm -rf $(VENV); echo "python3 cannot create environments: install its venv module (on Debian and Ubuntu: apt-get install python3-venv)." >&2; exit 1; }

$(VENV)/.core: $(PINS) | $(VENV)/bin/pip
	@echo "Installing regimix and what it needs"
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation -e .
	@$(compile)
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "Installing what the checks need"
	@$(PIP) --no-build-isolation -e '.[dev]'
	@$(compile)
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	@echo "Installing what the documentation needs"
	@$(PIP) --no-build-isolation -e '.[docs]'
	@$(compile)
	@touch $@
