# Each target sets up all that it needs in .venv: torch first and alone, at the tested version, then the package.
# Where pip would fetch a CUDA build and a CPU build is wanted, set PIP_EXTRA_INDEX_URL to torch's index of CPU builds.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint types clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,datasets]'
	touch .venv/ready

# Learns handwritten digits in a few minutes, draws 64, writes a page about it and says where both are.
# Started again, it goes on where it stopped.
demo: setup
	if test -e runs/demo/config.yaml; then $(BIN)/adance train --resume runs/demo; \
	else $(BIN)/adance train --out runs/demo; fi
	$(BIN)/adance report runs/demo

test: lint types
	$(BIN)/pytest

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
