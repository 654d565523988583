# Everything a contributor runs. `make` alone says what there is.

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
RUN := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
WEB := src/rota/api/static/index.html
# Text has no width without a font.
BROWSER := "chromium-headless-shell:chromium-headless-shell fonts-dejavu-core"
DATABASES := mariadb-install-db:mariadb-server pg_ctlcluster:postgresql redis-server:redis-server
MPI := "mpicc:libopenmpi-dev openmpi-bin"
# Where the system's Node.js is too old, tools/build-web has put another one into the environment.
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix web
DIST := build/dist-check
# Half a worker a core for tests that compute, two for tests that wait (tests/groups.py); a worker needs half a GiB.
PARALLEL := -n $(shell n=$$(nproc); echo $$((n < 7 ? n * 5 / 2 : 16))) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help run test lint format bench bench-guard bench-million bench-latency bench-learning \
	bench-queue bench-release bench-reserve bench-plan bench-snapshot bench-estimates bench-nodes bench-machines bench-output bench-api bench-past bench-page bench-pipeline bench-large-session faults bugs cluster properties web screenshots client generated docs dist clean
.DELETE_ON_ERROR:

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(RUN) $(WEB)  ## Install into .venv and run examples/tour.txt
	@tools/demo $(CURDIR)/$(BIN)/rota

test: lint $(WEB) $(VENV)/.populate-peers  ## Lint, then the whole test suite
	@tools/need-packages strace:strace ip:iproute2 sshd:openssh-server $(MPI) $(BROWSER) $(DATABASES)
	@tools/need-promtool $(BIN)
	$(NPM) --silent test
	$(BIN)/python -m pytest -m "not slow" $(PARALLEL) $(ARGS)

lint: $(DEV)  ## ruff, mypy, the import rules, no import cycles, derived code up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_cycles.py
	$(BIN)/python tools/blocking_client.py --check

format: $(DEV)  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV) $(VENV)/.peers  ## Jobs a second, beside xargs, GNU parallel, task-spooler and HyperQueue
	$(BIN)/python bench/throughput.py $(ARGS)

bench-guard: $(DEV)  ## BASE=COMMIT: the present commit against that one, in interleaved pairs; fails below 0.95
	@test -n "$(BASE)" || { echo "say against which commit: make bench-guard BASE=COMMIT" >&2; exit 2; }
	$(BIN)/python bench/guard.py "$(BASE)" $(ARGS)

bench-million: $(DEV)  ## A million jobs: add, memory, recovery, queries
	$(BIN)/python bench/million.py $(ARGS)

bench-latency: $(DEV)  ## From add to the first instruction
	$(BIN)/python bench/latency.py $(ARGS)

bench-learning: $(DEV)  ## Jobs given too little memory, and memory given in vain, by rule
	$(BIN)/python bench/learning.py $(ARGS)

bench-queue: $(DEV)  ## 200,000 jobs in 1,000 groups with limits: how long answers take
	$(BIN)/python bench/full_queue.py $(ARGS)

bench-release: $(DEV)  ## How fast dependents are released
	$(BIN)/python bench/release.py $(ARGS)

bench-reserve: $(DEV)  ## One step of the engine, by length of the queue and number of groups
	$(BIN)/python bench/reserve.py $(ARGS)

bench-plan: $(DEV)  ## The planner: whole nodes, mixed requests, single events, traces
	$(BIN)/python bench/plan.py $(ARGS)

bench-snapshot: $(DEV)  ## A snapshot of a plan of 10,000 jobs beside a copy of the bare entries, and a whole what-if
	$(BIN)/python bench/snapshot.py $(ARGS)

bench-estimates: $(DEV)  ## Expected starts and ends against what then happened, over a trace of 30,000 jobs
	$(BIN)/python bench/estimates.py $(ARGS)

bench-nodes: $(DEV)  ## Jobs over four agents beside the local pool, and two thousand agents at one manager
	$(BIN)/python bench/nodes.py $(ARGS)

bench-machines: $(DEV)  ## A lab of 1,000 machines and 10,000 jobs with 500 gangs: from an event to the decision
	$(BIN)/python bench/machines.py $(ARGS)

bench-output: $(DEV)  ## What jobs print, through rota run: bytes a second beside cat and GNU parallel
	$(BIN)/python bench/output.py $(ARGS)

bench-api: $(DEV) $(WEB)  ## The HTTP API over a million jobs, and what open pages cost
	$(BIN)/python bench/api.py $(ARGS)

bench-past: $(DEV)  ## The Gantt chart of a month of a million jobs, beside a plain scan of the same rows
	$(BIN)/python bench/past.py $(ARGS)

bench-pipeline: $(DEV) $(VENV)/.pipeline-peers  ## 10,000 elements through 5 stages, beside make, ninja, Snakemake and BuildStream's scheduler
	$(BIN)/python bench/pipeline.py $(ARGS)

bench-large-session: $(DEV)  ## A session of 100,000 elements: its first job, who waits meanwhile, memory, recovery
	$(BIN)/python bench/large_session.py $(ARGS)

bench-page: $(DEV) $(WEB)  ## The dashboard in a browser over a million jobs: first row, scrolling, events, Gantt
	@tools/need-packages $(BROWSER)
	$(BIN)/python bench/page.py $(ARGS)

faults: $(DEV)  ## The larger campaign of killed processes
	@tools/need-packages strace:strace
	$(BIN)/python -m pytest -m slow tests/faults tests/runner/launch $(ARGS)

bugs: $(DEV)  ## A thousand random runs with bugs at random lines of the engine, and every kind of event
	ROTA_TEST_DOSE=50 $(BIN)/python -m pytest -q $(PARALLEL) tests/core/bugs tests/faults/test_bugs.py $(ARGS)

cluster: $(DEV)  ## The larger campaign of faults on a cluster of network namespaces
	@tools/need-packages ip:iproute2 sshd:openssh-server $(MPI)
	$(BIN)/python -m pytest -m slow tests/cluster tests/pools $(ARGS)

properties: $(DEV)  ## All property tests with twenty times the dose, for hours; MINUTES=60: usual doses for so long
ifdef MINUTES
	tools/properties-for $(MINUTES) $(BIN)/python -m pytest -q -m "hypothesis and not slow" $(PARALLEL) $(ARGS)
else
	ROTA_TEST_DOSE=20 $(BIN)/python -m pytest -m "hypothesis and not slow" $(PARALLEL) $(ARGS)
endif

web: $(WEB)  ## Build the dashboard into the package

screenshots: $(DEV) $(WEB)  ## Pictures of every page of the dashboard, into build/screenshots
	@tools/need-packages $(BROWSER)
	$(BIN)/python tools/screenshots.py $(ARGS)

client: $(DEV)  ## Derive the blocking Python client from the asynchronous one
	$(BIN)/python tools/blocking_client.py

generated: client  ## Write all modules and pages that are generated from the code
	$(BIN)/python tools/job_structs.py
	$(MAKE) --no-print-directory docs

docs: $(RUN)  ## Write the pages that are generated from the code
	{ printf '# States of a job\n\nGenerated by `make docs` from `rota.core.states`.\n\n```mermaid\n'; \
	  $(BIN)/python -m rota.core.states; printf '```\n'; } > docs/states.md
	{ printf '# States of a machine\n\nGenerated by `make docs` from `rota.core.machines.machine_states`.\n\n'; \
	  $(BIN)/python -m rota.core.machines.machine_states; } > docs/machines.md
	$(BIN)/python -m rota.cli.reference
	$(BIN)/python -m rota.api.typescript > web/src/api/types.ts

dist: $(DEV) $(WEB)  ## Build wheel and sdist; install the wheel elsewhere and start it
	rm -rf dist $(DIST)
	$(BIN)/python -m build
	$(BIN)/python -m venv $(DIST)
	$(DIST)/bin/python -m pip --disable-pip-version-check --quiet install dist/*.whl
	cd $(DIST) && bin/rota version

clean:  ## Remove what was made here, the virtual environment too
	rm -rf $(VENV) dist build web/node_modules src/rota/api/static .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(WEB): $(MADE) $(shell find web -type f -not -path '*/node_modules/*' -not -path '*/tests/*' 2>/dev/null)
	@tools/build-web $(abspath $(BIN))/python
	@touch $@

$(MADE):
	@python=$$(tools/find-python) && echo "making $(VENV) with $$python" && "$$python" -m venv --clear $(VENV)
	@touch $@

$(RUN): pyproject.toml $(MADE)
	@echo "installing rota into $(VENV)"
	@$(PIP) install -e .
	@touch $@

$(DEV): pyproject.toml $(MADE)
	@echo "installing rota and its development tools into $(VENV)"
	@$(PIP) install -e '.[dev]'
	@touch $@ $(RUN)

# HyperQueue comes as a Python package; without it the table says that it is missing.
$(VENV)/.peers: $(MADE)
	@$(PIP) install hyperqueue || echo "hyperqueue could not be installed"
	@touch $@

# Each in an environment of its own, because what they need contradicts what others need.
$(VENV)/.pipeline-peers: $(MADE)
	@for name in ninja snakemake BuildStream; do \
	  $(BIN)/python -m venv $(VENV)/peers/$$name && \
	  $(VENV)/peers/$$name/bin/python -m pip --disable-pip-version-check --quiet install $$name \
	  || echo "$$name could not be installed"; \
	done
	@touch $@

# The interpreters of tables: both lines of DataJoint, with the workers that run their batches.
$(VENV)/.populate-peers: $(MADE)
	@for peer in 'datajoint2 datajoint~=2.3.0 psycopg2-binary rq' 'datajoint0 datajoint~=0.14.4 rq' 'rq rq~=2.12'; do \
	  set -- $$peer; name=$$1; shift; \
	  $(BIN)/python -m venv $(VENV)/peers/$$name && \
	  $(VENV)/peers/$$name/bin/python -m pip --disable-pip-version-check --quiet install "$$@" || exit 1; \
	done
	@touch $@
