# make demo and make test install everything they need in .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TUNE_READY := .venv/.tune
RAY_READY := .venv/.ray
DOCS_READY := .venv/.docs
# The newest torch of the extra installs gigabytes of CUDA libraries; this one needs only the CPU. With a GPU, choose another.
TORCH ?= torch==2.13.0
# Processes that run tests at the same time.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: setup demo lint test campaign docs reference picture tutorial package models install-tune install-ray bench bench-full \
  adapter calibration settings overnight-domains clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("fewparse needs Python 3.11 or later")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/fewparse models pull
	touch $(READY)

demo: setup
	$(BIN)/fewparse parse calendar --yes < demo/utterances.txt

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Without torch (make install-tune), Ray (make install-ray) and the other models (make models), the tests that need
# them are skipped.
test: lint
	$(PYTEST)

# Long tests that make test leaves out: all of the benchmark data, and many more random examples of each property.
campaign: setup
	$(PYTEST) -m 'campaign or hypothesis' --hypothesis-profile=campaign

# Build the documentation in site/, and check its links. (The variable: no advertisement in the output.)
docs: $(DOCS_READY) reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/check_site.py site

# Write the pages of docs/reference that are made from the code.
reference: setup
	$(BIN)/python tools/reference_pages.py

# Make the picture of a terminal in the README from a real run.
picture: setup
	$(BIN)/python tools/terminal_picture.py

# Play the tutorial in an empty environment, with the wheel that is built here.
tutorial: setup
	$(BIN)/python tools/play_tutorial.py $(OPTIONS)

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	touch $(DOCS_READY)

# Build the distributions in dist/, and try the wheel in an empty environment.
package: setup
	$(BIN)/python tools/check_package.py

# Download the other models of the catalogue, whose tests are skipped without them. This accepts their licences.
models: setup
	$(BIN)/fewparse models pull gemma3-270m --accept-licence

# Install torch and transformers, for fewparse tune and for models of transformers.
install-tune: $(TUNE_READY)

$(TUNE_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,transformers,tune]'
	touch $(TUNE_READY)

# Install Ray, for experiments with several workers.
install-ray: $(RAY_READY)

$(RAY_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,ray]'
	touch $(RAY_READY)

# Speed, quickly: masks beside other engines (pip install xgrammar outlines-core), and parses at a time.
bench: setup
	PYTHONPATH=tests $(BIN)/python benchmarks/masks.py
	$(BIN)/python benchmarks/constraints.py
	$(BIN)/python benchmarks/concurrency.py

# All of it, with the accuracy of the decoders.
bench-full: bench
	$(BIN)/python benchmarks/decoders.py

# Tune the adapters of the bundled domains on their training examples.
adapter: install-tune
	$(BIN)/fewparse tune calendar --epochs 5
	$(BIN)/fewparse tune starter --epochs 12 --held-out 0 --rank 4 --augmented 0.7

# Calibrate the confidence of the bundled domain, with adapters tuned on folds of its training examples.
calibration: install-tune
	$(BIN)/fewparse calibrate calendar --folds 4

# Compare settings of the calendar domain.
settings: setup
	$(BIN)/python benchmarks/calendar_settings.py

# Repeat a table of the paper: make table4 OPTIONS='--model gguf:FILE --limit 20'; make improved-table4 with the
# settings of the domains. Records are in experiments, and packed in benchmarks/results/paper.
table1: setup
	$(BIN)/fewparse reproduce $@ $(OPTIONS)

table%: setup
	$(call reproduce,paper,$@)

improved-table%: setup
	$(call reproduce,improved,table$*)

# The eight domains of Overnight with both embedded models, prompted.
overnight-domains: setup
	test -d experiments/domains || $(BIN)/python benchmarks/paper_records.py unpack experiments/domains domains
	$(BIN)/fewparse experiment benchmarks/experiments/$@.toml $(OPTIONS) --extend --out experiments/domains/overnight
	$(BIN)/python benchmarks/paper_records.py pack experiments/domains domains

define reproduce
test -d experiments/$(1) || $(BIN)/python benchmarks/paper_records.py unpack experiments/$(1) $(1)
$(BIN)/fewparse reproduce $(2) --$(1) $(OPTIONS) --out experiments/$(1)
$(BIN)/python benchmarks/paper_records.py pack experiments/$(1) $(1)
cp experiments/$(1)/$(2).json benchmarks/results/paper/$(1)-$(2).json
cp experiments/$(1)/$(2).md benchmarks/results/paper/$(1)-$(2).md
endef

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
