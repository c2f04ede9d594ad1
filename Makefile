PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types layers clean install

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: $(STAMP)  ## distil handwritten digits, with and without privacy; writes demo/
	$(BIN)/limbeck demo --out demo --force

test: $(STAMP) lint types layers  ## everything that CI runs
	$(BIN)/pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check limbeck tests benchmarks
	$(BIN)/ruff format --check limbeck tests benchmarks

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) demo
