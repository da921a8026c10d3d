# Two commands for a newcomer: `make demo` and `make test`. Both build a private .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Some machines tell Python to keep no bytecode: then every process compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench soak clean

help: ## list these commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-7s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "smrmf needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "==> making a private environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/ready-%: pyproject.toml | $(BIN)/python
	@echo "==> installing smrmf with its '$*' extra (a minute the first time)"
	@# By uv, in a tenth of the time. It does not know pip's settings: where it finds nothing, pip does it.
	@# Not compiled now: of most packages few modules are ever imported, and these are compiled then.
	@$(PIP) uv
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --editable '.[$*]' || $(PIP) --editable '.[$*]'
	@touch $@

demo: $(VENV)/ready-plot ## cluster the embedded digits, show clusters and exemplars, draw demo.png
	@echo "==> clustering scikit-learn's digits"
	@$(BIN)/python examples/demo_digits.py

test: $(VENV)/ready-test ## run the whole test suite
	@echo "==> running the tests"
	@$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist worksteal

lint: $(VENV)/ready-test ## lint, format check, types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(VENV)/ready-test ## speed against peers and plain kernels (an idle machine gives honest ratios)
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/kernels.py

soak: $(VENV)/ready-test ## attack it for some 25 minutes: odd data, interruptions, kills, full disks (two idle cores)
	@$(BIN)/python tests/soak/run.py

clean: ## remove the environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis demo.png
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
