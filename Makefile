# Every target does its own set-up: a private environment in .venv, nothing elsewhere.
# Paths stay relative, because make splits names at spaces and the checkout's path may hold some.

PYTHON  ?= python3
WORKERS ?= 2

VENV      := .venv
PY        := $(VENV)/bin/python
PIP       := $(PY) -m pip --disable-pip-version-check --quiet
INSTALLED := $(VENV)/.installed
# WORKERS=0 runs the tests in one process, for a debugger.
PYTEST    := $(PY) -m pytest -n $(WORKERS)

SOURCES := pyproject.toml $(wildcard CMakeLists.txt) \
           $(shell find src native -type f ! -name '*.pyc' ! -name '*.so' 2>/dev/null)

.PHONY: help demo test bench exhaustive lint docs install clean
.DELETE_ON_ERROR:

help:
	@echo "make demo        quantize and survey a small real model, write an HTML report"
	@echo "make test        run the tests: compiled kernels, NumPy only, and the older instruction set"
	@echo "make bench       measure the kernels against the machine's limit and other libraries"
	@echo "make exhaustive  compare with the oracle on every 32-bit input of two casts, and 10 M of each other"
	@echo "make lint        ruff, mypy --strict, import layers, generated tables"
	@echo "make docs        rewrite the tables that come from the catalog"
	@echo "make clean       remove .venv, build and the demo's files"
	@echo "PYTHON=python3.12 chooses the interpreter; NARROWCAST_NATIVE=require refuses a build without kernels"

$(VENV)/.created:
	@"$(PYTHON)" -c 'import sys; sys.exit("narrowcast needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; choose one with make PYTHON=...") if sys.version_info < (3, 11) else None'
	"$(PYTHON)" -m venv $(VENV)
	@touch $@

# The build runs in .venv and not in an isolated environment: an isolated one has a new path each time,
# which would throw away CMake's cache and compile everything again. The stamp carries the time the install
# began, so that a file saved meanwhile is installed by the next call.
$(VENV)/.tools: $(VENV)/.created pyproject.toml
	@$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(VENV)/build-requirements.txt
	$(PIP) install -r $(VENV)/build-requirements.txt cmake ninja
	@touch $@

$(INSTALLED): $(VENV)/.tools $(SOURCES)
	@touch $@.begun
	$(PIP) install --no-build-isolation '.[dev]'
	@mv $@.begun $@

install: $(INSTALLED)

demo: $(INSTALLED)
	@$(PY) examples/demo.py

# The whole suite with the best kernels of this machine, then the tests that depend on the kernels once
# more on each other path. Without a compiled module (no compiler) the first run is the NumPy one.
test: $(INSTALLED)
	@$(PY) -c 'import platform, sys, narrowcast.kernels as k; print("kernel level:", k.level(), "on", platform.machine(), "with Python", sys.version.split()[0])'
	$(PYTEST)
	@level=$$($(PY) -c 'import narrowcast.kernels as k; print(k.level())') && \
	if [ "$$level" = numpy ]; then echo "no compiled kernels here: the run above was the NumPy path"; exit 0; fi; \
	set -e; \
	echo "== kernel level: numpy (NARROWCAST_KERNELS=numpy)"; \
	NARROWCAST_KERNELS=numpy $(PYTEST) -m kernels; \
	if [ "$$level" = v3 ]; then \
	  echo "== kernel level: v2 (NARROWCAST_ISA=v2)"; \
	  NARROWCAST_ISA=v2 $(PYTEST) -m kernels; \
	fi

bench: $(INSTALLED)
	@$(PY) -m bench
	@$(PY) -m bench.import_time

exhaustive: $(INSTALLED)
	@$(PY) -m tests.exhaustive

lint: $(INSTALLED)
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PY) docs/generate.py --check

docs: $(INSTALLED)
	@$(PY) docs/generate.py

clean:
	rm -rf $(VENV) build demo
