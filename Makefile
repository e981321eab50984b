# make demo and make test set up everything they need in .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TESTABLE := .venv/.testable
# The tests also run the transformers route; any torch of the extra will do, this one is what they were last run with.
TORCH ?= torch==2.13.*

.PHONY: setup demo test lint bench adapter settings clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("fewparse needs Python 3.11 or later")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/fewparse models pull
	touch $(READY)

demo: setup
	$(BIN)/fewparse parse calendar < demo/utterances.txt

$(TESTABLE): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,transformers,tune]' '$(TORCH)'
	touch $(TESTABLE)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint $(TESTABLE)
	$(BIN)/python -m pytest

bench: setup
	$(BIN)/python benchmarks/constraints.py
	$(BIN)/python benchmarks/decoders.py

# The bundled domain's adapter, from its training examples alone.
adapter: $(TESTABLE)
	$(BIN)/fewparse tune calendar --epochs 5

settings: setup
	$(BIN)/python benchmarks/calendar_settings.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
