# Two commands do everything on a machine with python3, gcc and make:
#   make demo    solve the pendulum, print the summary, write demo.png
#   make test    run the tests; make test PYTHON=... with another Python
# and before a release
#   make test-all    run them with every Python that is here, and with the oldest NumPy and SciPy
PYTHON ?= python3
# One environment for each version: they can be tested side by side.
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
BIN := $(VENV)/bin
# Versions to install instead of the newest ones, and the oldest that pyproject.toml allows.
PIN ?=
OLDEST := numpy==2.0.0 scipy==1.13.0
SOURCES := pyproject.toml setup.py $(shell find src -name '*.py' -o -name '*.pxd')
# Not compiling what is installed saves half a minute; what is imported is compiled then.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test test-all test-oldest slow lint site bench clean

demo: $(VENV)/.demo
	$(BIN)/python examples/pendulum.py demo.png

# Two processes that share two cores: threads of BLAS beside them would only wait for each other.
test slow: export OPENBLAS_NUM_THREADS = 1

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all:
	set -e; for python in $$(.ci/pythons); do $(MAKE) test PYTHON=$$python; done
	$(MAKE) test-oldest

test-oldest:
	$(MAKE) test PYTHON=$$(.ci/pythons | head -n 1) VENV=.venv-oldest PIN="$(OLDEST)"

slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	PATH="$(abspath $(BIN)):$$PATH" cython-lint src/tether/_core src/tether/trace

site: $(VENV)/.site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open build/site/index.html"

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.overhead
	$(BIN)/python -m benchmarks.work_precision
	$(BIN)/python -m benchmarks.high_index
	$(BIN)/python -m benchmarks.machine
	$(BIN)/python -m benchmarks.trust
	$(BIN)/python -m benchmarks.first_call
	$(BIN)/python -m benchmarks.large
	$(BIN)/python -m benchmarks.ensemble
	$(BIN)/python -m benchmarks.fitting
	$(BIN)/python -m benchmarks.abilities
	$(BIN)/python -m benchmarks.linear_solvers
	$(BIN)/python -m benchmarks.sensitivity
	$(BIN)/python -m benchmarks.page

clean:
	rm -rf .venv-* build src/*.egg-info src/tether/*/*.so

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python $(SOURCES)
	$(PIP) '.[plot]' $(PIN)
	touch $@

$(VENV)/.test: $(BIN)/python $(SOURCES)
	$(PIP) '.[plot,test]' $(PIN)
	touch $@

$(VENV)/.lint: $(VENV)/.test
	$(PIP) '.[lint]'
	touch $@

# The site is made from the sources as they are: tether itself need not be built for it.
$(VENV)/.site: $(BIN)/python pyproject.toml
	$(PIP) $$($(BIN)/python -c "import tomllib; \
	print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	touch $@

$(VENV)/.bench: $(VENV)/.test benchmarks/requirements.txt
	$(PIP) -r benchmarks/requirements.txt
	touch $@
