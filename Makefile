PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test mutants database lint types layers clean install

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: $(STAMP)  ## distil handwritten digits, with and without privacy; writes demo/
	$(BIN)/limbeck demo --out demo --force

test: $(STAMP) database lint types layers  ## everything that CI runs
	$(BIN)/pytest -n 2

mutants: $(STAMP)  ## broken mechanisms, each with the test that catches it
	$(BIN)/python -m tests.mutants

# The ledger's tests start a PostgreSQL server of their own; where there is none and we may, it is installed.
database:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; } \
	  || echo "no PostgreSQL server: the ledger is tested on SQLite alone"

lint: $(STAMP)
	$(BIN)/ruff check limbeck tests benchmarks
	$(BIN)/ruff format --check limbeck tests benchmarks

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) demo
