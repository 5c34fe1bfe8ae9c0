# Each target installs what it needs in .venv: torch first and alone, at the tested version, then the package.
# uv does it if it is installed, and pip otherwise; scripts/setup says which build of torch they take.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo docs test test-clusters hardening lowest dist lint types clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" scripts/setup

# Learns handwritten digits in a few minutes, draws 64 samples, writes a page and prints the path of both.
# Started again, it continues where it stopped.
demo: setup
	if test -e runs/demo/config.yaml; then $(BIN)/adance train --resume runs/demo; \
	else $(BIN)/adance train --out runs/demo; fi
	$(BIN)/adance report runs/demo

# Two processes; tests of one xdist_group share a process, and with it the programs that it has compiled.
test: lint types
	$(BIN)/pytest -n 2 --dist loadgroup

# The site, in docs/_build/html: it runs every example and the blocks of every page, and compares the values they claim.
# It fails at a broken link or an undocumented name. Chromium, if it is installed, then opens every page.
docs: setup
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	$(BIN)/pytest -m pages tests/examples/test_pages.py tests/training/test_hub_round_trip.py
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	$(BIN)/pytest -m site tests/test_site.py

# Sweeps on ray and on dask, which are large: not part of `make test`.
test-clusters: setup
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,ray,dask]'
	$(BIN)/pytest -m cluster

# Slow robustness tests: killed runs, full disks, damaged files, unusual environments. `make test` runs some of them.
hardening: setup
	$(BIN)/pytest -m hardening -n 2

# The wheel with the lowest versions that pyproject.toml allows, of all but torch, in an environment of its own; by uv.
lowest:
	scripts/lowest .venv-lowest $(PYTHON)

# A wheel and an sdist, in dist/.
dist: setup
	$(BIN)/pip install --quiet build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

clean:
	rm -rf .venv .venv-lowest .mypy_cache .ruff_cache .pytest_cache docs/_build docs/gallery
