# Two commands do everything on a machine with python3, gcc and make:
#   make demo    solve the pendulum, print the summary, write demo.png
#   make test    run the tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(shell find src -name '*.py' -o -name '*.pxd')
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test slow lint bench clean

demo: $(VENV)/.demo
	$(BIN)/python examples/pendulum.py demo.png

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m "not slow"

slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" cython-lint src/tether/_core

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.overhead
	$(BIN)/python -m benchmarks.work_precision
	$(BIN)/python -m benchmarks.high_index
	$(BIN)/python -m benchmarks.machine
	$(BIN)/python -m benchmarks.trust

clean:
	rm -rf $(VENV) build src/*.egg-info src/tether/_core/*.c src/tether/_core/*.so

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python $(SOURCES)
	$(PIP) '.[plot]'
	touch $@

$(VENV)/.test: $(BIN)/python $(SOURCES)
	$(PIP) '.[plot,test]'
	touch $@

$(VENV)/.lint: $(VENV)/.test
	$(PIP) '.[lint]'
	touch $@

$(VENV)/.bench: $(VENV)/.test benchmarks/requirements.txt
	$(PIP) -r benchmarks/requirements.txt
	touch $@
