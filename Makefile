# What a newcomer types. Every target first sets up what it needs in .venv, at the versions of constraints.txt, and
# does nothing when nothing changed: the files in .venv/.made remember what was installed.
#
#   PYTHON=python3.12 make test     use that interpreter (and make .venv anew when it is another version)
#   make test ARGS="-k layers"      hand arguments on to pytest

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.ONESHELL:
.SHELLFLAGS := -eu -c
.PHONY: help demo lab app test test-long check docs bench gpu-check build wheel lock clean

ARGS ?=
ASKED_FOR := $(PYTHON)
PYTHON ?= python3
# Files of tests side by side, in conftest.py's order, some folders whole; one more than cores, as tests in a browser often wait.
# Matrix libraries get one thread each: more of them wait for one another.
SIDE_BY_SIDE := -n $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) < 4 ? $$(getconf _NPROCESSORS_ONLN) + 1 : 4))) --dist loadfile --no-loadscope-reorder
# Python keeps what it compiled, whatever the environment says: many tests start it, and half of its time would go there.
COMPILED_ONCE := PYTHONDONTWRITEBYTECODE=
COMPILER := $(if $(filter default,$(origin CXX)),c++,$(CXX))   # as in workbench/host_library.py

MADE := .venv/.made
INTERPRETER := $(MADE)/from-$(subst /,-,$(PYTHON))
RUN := .venv/bin/python
LIBRARY := workbench/_host.so
BENCHMARKS = $(filter-out benchmarks/gpu.py benchmarks/device_counts.py,$(sort $(shell grep -l __main__ benchmarks/*.py)))

# Up to pip 25.2 the first variable also holds for the environment that the package is built in; from 25.3 the second does.
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(RUN) -m pip

help:    ## this list
	@sed -n 's/^\([a-z-]*\): .*## /  make \1\t/p' Makefile | expand -t 18

demo: $(MADE)/core $(LIBRARY)    ## a snapshot, its groups, a table and demo.html; no browser needed
	@.venv/bin/workbench demo --overwrite

lab: $(MADE)/lab $(LIBRARY)    ## JupyterLab with the notebooks and panels, on this machine only
	@echo "Starting JupyterLab, which opens in your browser within about 10 seconds; stop it with Ctrl+C."
	.venv/bin/workbench lab

app: $(MADE)/lab $(LIBRARY)    ## the panels alone, as pages of this machine in a browser
	@.venv/bin/voila app/pages --Voila.config_file_paths=app $(ARGS)

test: $(MADE)/test $(MADE)/kdcount $(MADE)/browser $(LIBRARY)    ## all tests but the long ones
	@OPENBLAS_NUM_THREADS=1 $(COMPILED_ONCE) $(RUN) -m pytest $(SIDE_BY_SIDE) $(ARGS)

test-long: $(MADE)/test $(MADE)/browser $(LIBRARY)    ## what `make test` leaves out: more parameters and random examples, sanitisers, every GPU, wheels
	@OPENBLAS_NUM_THREADS=1 $(COMPILED_ONCE) $(RUN) -m pytest -m long $(SIDE_BY_SIDE) $(ARGS)

check: $(MADE)/test    ## style (ruff) and types (mypy)
	@$(RUN) -m ruff check
	$(RUN) -m mypy

docs: $(MADE)/docs $(LIBRARY)    ## the documentation, with its notebooks run: docs/_build/html/index.html
	@$(RUN) -m sphinx -W --keep-going -d docs/_build/doctrees docs docs/_build/html $(ARGS)

bench: $(MADE)/bench $(LIBRARY)    ## all benchmarks but the GPU's; one: .venv/bin/python benchmarks/NAME.py
	@for script in $(BENCHMARKS); do
		echo "== $$script"
		$(RUN) $$script
	done

gpu-check:    ## every kernel on this machine's GPU, compared with the CPU and measured; PYTHON has CuPy and NumPy
	@$(PYTHON) benchmarks/gpu.py $(ARGS)

build: $(INTERPRETER)    ## compile the kernels again
	@$(RUN) workbench/host_library.py

wheel: $(MADE)/test $(LIBRARY)    ## a wheel for other machines, in dist/
	@rm -rf build/wheel dist
	$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheel .
	PATH="$$PWD/.venv/bin:$$PATH" $(RUN) -m auditwheel repair --wheel-dir dist build/wheel/*.whl

lock: $(INTERPRETER)    ## constraints.txt from pyproject.toml; ARGS=--upgrade takes the newest versions
	@$(RUN) -m pip install --quiet uv
	$(RUN) -m uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras --no-emit-package lossbench \
		--no-annotate --no-header --quiet --output-file constraints.txt $(ARGS)

clean:    ## remove everything that make made
	@rm -rf .venv build dist docs/_build docs/notebooks .mypy_cache .ruff_cache .pytest_cache .hypothesis $(LIBRARY) workbench/_host_sanitised.so workbench/_host_shuffled.so demo.html
	find . -name __pycache__ -prune -exec rm -rf {} +


# An environment that is there is kept, unless another version of Python was asked for.
$(INTERPRETER):
	@fail() { echo "$$1" >&2; exit 1; }
	version='import sys, pip; print(sys.version_info[:2])'
	here=$$($(RUN) -c "$$version" 2>/dev/null) || here=none
	wanted=$$($(PYTHON) -c 'import sys; print(sys.version_info[:2])' 2>/dev/null) || wanted=missing
	if [ "$$here" != none ] && { [ -z "$(ASKED_FOR)" ] || [ "$$here" = "$$wanted" ]; }; then
		mkdir -p $(MADE)
		touch -r .venv/pyvenv.cfg $@
		exit 0
	fi
	[ "$$wanted" != missing ] ||
		fail "Lossbench needs Python 3.11 or newer, and $(PYTHON) does not run: apt install python3 python3-venv"
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
		fail "Lossbench needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V): apt install python3.11 python3.11-venv, then say PYTHON=python3.11 make ..."
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null ||
		fail "Lossbench needs Python's venv module, which $(PYTHON) lacks: apt install $(notdir $(PYTHON))-venv"
	$(PYTHON) -m venv --clear .venv
	mkdir -p $(MADE)
	touch $@

$(MADE)/core: EXTRAS :=
$(MADE)/lab: EXTRAS := [lab,io,codecs,dask]
$(MADE)/test: EXTRAS := [test]
$(MADE)/docs: EXTRAS := [docs]
$(MADE)/bench: EXTRAS := [test,peers]
# What the first time takes, with an ordinary connection and two cores.
COMPILED := are fetched, and the kernels are compiled
$(MADE)/core: TAKES := about 1 minute in which NumPy and pcodec $(COMPILED)
$(MADE)/lab: TAKES := 2 to 5 minutes in which JupyterLab, libraries for charts, codecs and readers $(COMPILED)
$(MADE)/test $(MADE)/docs $(MADE)/bench: TAKES := 3 to 8 minutes in which JupyterLab, all codecs and readers, and tools $(COMPILED)

$(MADE)/core $(MADE)/lab $(MADE)/test $(MADE)/docs $(MADE)/bench: pyproject.toml constraints.txt hatch_build.py $(INTERPRETER)
	@command -v $(firstword $(COMPILER)) >/dev/null || {
		echo "Lossbench needs a C++ compiler, and $(firstword $(COMPILER)) was not found: apt install g++ (or name yours in CXX)" >&2
		exit 1
	}
	echo "Setting up .venv, which is done once: $(TAKES). Nothing is shown meanwhile ..."
	began=$$(date +%s)
	$(PIP) install --quiet --editable ".$(EXTRAS)"
	echo "Set up within $$(($$(date +%s) - began)) s. The next start takes seconds."
	touch $(MADE)/core $@

# The finder that the tests compare with has no wheels, so it is built where that is possible.
$(MADE)/kdcount: $(MADE)/test
	@header='import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())'
	if ! $(RUN) -c "$$header"; then
		echo "Note: no kdcount, as it needs Python's headers (apt install python3-dev, then make clean test); tests against it are skipped."
	else
		echo "Building kdcount, which the tests compare with: about half a minute ..."
		$(PIP) install --quiet kdcount >$(MADE)/kdcount.log 2>&1 ||
			echo "Note: kdcount did not build ($(MADE)/kdcount.log says why); tests against it are skipped."
	fi
	touch $@

# Tests in a browser use the Chromium that is there. Where there is none, Playwright's own is fetched, if it can be.
$(MADE)/browser: $(MADE)/test
	@for name in "$${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
		if [ -n "$$name" ] && command -v "$$name" >/dev/null; then
			touch $@
			exit 0
		fi
	done
	echo "Fetching Chromium for the tests in a browser: about a minute ..."
	.venv/bin/playwright install chromium >$(MADE)/browser.log 2>&1 ||
		echo "Note: no Chromium (apt install chromium, or name one in CHROMIUM); tests in a browser are skipped."
	touch $@

# The folder is named too, as a source that is gone changes the library as well. Installing has usually built it already.
$(LIBRARY): kernels $(wildcard kernels/*.cu kernels/*.cuh kernels/*.cpp) workbench/host_library.py $(INTERPRETER)
	@echo "Compiling the kernels ..."
	$(RUN) workbench/host_library.py
