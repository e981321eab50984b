# make demo and make test set up everything they need in .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TUNE_READY := .venv/.tune
# Any torch of the extra will do, on a GPU another one. Of this one the CPU has all it needs; the newest plain one brings
# gigabytes of CUDA libraries.
TORCH ?= torch==2.13.0

.PHONY: setup demo test lint install-tune bench adapter settings clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("fewparse needs Python 3.11 or later")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/fewparse models pull
	touch $(READY)

demo: setup
	$(BIN)/fewparse parse calendar < demo/utterances.txt

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest

# What `fewparse tune` and models of transformers need; without it, their tests are skipped.
install-tune: $(TUNE_READY)

$(TUNE_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,transformers,tune]'
	touch $(TUNE_READY)

bench: setup
	$(BIN)/python benchmarks/constraints.py
	$(BIN)/python benchmarks/decoders.py

# The bundled domain's adapter, from its training examples alone.
adapter: install-tune
	$(BIN)/fewparse tune calendar --epochs 5

settings: setup
	$(BIN)/python benchmarks/calendar_settings.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
