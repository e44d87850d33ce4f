# One environment serves every command: .venv, made by `make env` from constraints.txt.
# A second one, .venv-old-board, is a board with tflite-runtime 2.14; the tests run the agent in it.

PYTHON ?= python3
PYTEST = .venv/bin/python -m pytest --numprocesses auto --dist loadfile

EXTRAS = .[audio,detection,onnx,plots,repair,report,runtimes,survey]

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env demo test test-all test-newest check lint protos schemas site dist trial clean

help:
	@echo 'make demo      check whether the example model may ship, on an emulated device, into runs/demo'
	@echo 'make test      run the tests that need nothing else'
	@echo 'make test-all  run those that need more, such as QEMU, adb, OpenSSH, Ray and Chromium'
	@echo 'make test-newest  run the fast tests with the newest of each dependency that pyproject.toml allows'
	@echo 'make check     the short run before a commit: make lint, and the fast tests of make test'
	@echo 'make lint      check style, types and the directions between the rooms'
	@echo 'make env       make the environments only; PYTHON=python3.12 chooses another Python'
	@echo 'make protos    write the Python code of agent.proto again'
	@echo 'make schemas   write the JSON schemas again that are written from the types of documents'
	@echo 'make site      make the documentation as static pages, into build/site; links that lead nowhere fail it'
	@echo 'make dist      build what is released, the wheel and the sdist, look at both, and list what comes with them'
	@echo 'make trial     install the built wheel alone and check the example with it, on each of PYTHONS'
	@echo 'make clean     delete the environments, the caches and what was built; runs/ stays'

env: .venv/.complete .venv-old-board/.complete

demo: .venv/.complete
	.venv/bin/edgeflare check examples/fashion_lenet4 --device emulated-builtin \
	    --out runs/demo --overwrite

# What needs nothing beside .venv, on workers of which each takes one file after the other.
test: .venv/.complete
	$(PYTEST) -m 'not system'

# What needs more: emulators, phones, boards, Ray, a browser. It says what it skips, and why.
test-all: env
	$(PYTEST) -m system

# Says, before a user does, which new release of a dependency breaks something; constraints.txt
# follows, or a cap in pyproject.toml. What is written by a generator is held to the pinned one.
test-newest: .venv-newest/.complete
	.venv-newest/bin/python -m pytest --numprocesses auto --dist loadfile -m 'not (slow or system)' \
	    -k 'not (committed_files or is_pinned or schemas_beside)'

# What is not slow either.
check: lint
	$(PYTEST) -m 'not (slow or system)' --hypothesis-profile short

lint: .venv/.complete
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

protos: .venv/.complete
	.venv/bin/python -m grpc_tools.protoc --proto_path=protos --python_out=protos \
	    --pyi_out=protos --grpc_python_out=protos protos/edgeflare_protos/agent.proto

schemas: .venv/.complete
	.venv/bin/python -m edgeflare.schemas

# The pages of docs/, with what only the site has beside them.
site: .venv/.complete
	.venv/bin/python -m pip install --quiet --constraint constraints.txt --group site
	rm -rf build/site build/site-source
	mkdir -p build
	cp -r docs build/site-source
	cp site/* build/site-source
	EDGEFLARE_CHECKOUT=$(CURDIR) .venv/bin/python -m sphinx -W --keep-going -q -b html build/site-source build/site

# The version is that of the tag at HEAD, v0.1.0; without one it is a development version. The wheel
# is installed alone, and what came with it is the bill of materials.
dist: .venv-release/.complete
	@tags=$$(git tag --points-at HEAD); [ -z "$$tags" ] || \
	    echo "$$tags" | grep -Eqx 'v[0-9]+\.[0-9]+\.[0-9]+((a|b|rc)[0-9]+)?' || { \
	    echo "$$(echo $$tags) at HEAD is no version: a release has a tag such as v0.1.0" >&2; exit 1; }
	rm -rf dist build/wheel-alone
	.venv-release/bin/python -m build --no-isolation --outdir dist .
	.venv-release/bin/twine check --strict dist/*
	$(PYTHON) -m venv build/wheel-alone
	build/wheel-alone/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	build/wheel-alone/bin/edgeflare --version
	.venv-release/bin/cyclonedx-py environment --output-reproducible --output-file dist/edgeflare.cdx.json \
	    build/wheel-alone

# As a stranger would: the newest of each dependency, no checkout in sight.
PYTHONS ?= $(PYTHON)
trial:
	@set -e; wheel=$$(echo $(CURDIR)/dist/*.whl); [ -f "$$wheel" ] || { \
	    echo 'no wheel, or several, in dist: make dist builds one' >&2; exit 1; }; \
	for python in $(PYTHONS); do \
	    rm -rf build/trial; "$$python" -m venv build/trial; \
	    build/trial/bin/python -m pip install --quiet "$$wheel"; \
	    (cd build/trial; PATH="$$PWD/bin:$$PATH"; \
	        edgeflare doctor >/dev/null; edgeflare doctor --example example >/dev/null; \
	        edgeflare check example --limit 60 --undecided pass --out verdict --quiet; \
	        _EDGEFLARE_COMPLETE=complete_bash COMP_WORDS='edgeflare sur' COMP_CWORD=1 edgeflare \
            | grep -qx survey; \
	        python -c 'import sys, edgeflare as e; print(sys.version.split()[0], e.check.__name__, "ok")'); \
	done

clean:
	rm -rf .venv .venv-old-board .venv-old-litert .venv-labgrid .venv-newest .venv-release build dist
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Packages for an environment; where they do not come, one line, and a file with all that pip said.
install = { $(1)/bin/python -m pip install --quiet $(2) 2>$(1)/pip.log || { \
    echo "pip could not fill $(1): $$(sed -n 's/^ERROR: //p' $(1)/pip.log | head -n 1)" \
        "(is there a network? $(1)/pip.log has the rest)" >&2; \
    exit 1; }; }

# The build back end goes in first, so that the editable install builds with the pinned one, and a
# pip that knows dependency groups.
.venv/.complete: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || { \
	    echo '$(PYTHON) is not Python 3.10 to 3.13; name one that is: make env PYTHON=python3.12' >&2; \
	    exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo '$(PYTHON) cannot make environments; on Debian and Ubuntu: apt-get install python3-venv' >&2; \
	    exit 1; }
	@echo 'making .venv from constraints.txt'
	@$(PYTHON) -m venv .venv
	@$(call install,.venv,--constraint constraints.txt --upgrade pip hatchling hatch-vcs)
	@$(call install,.venv,--constraint constraints.txt --no-build-isolation --group dev --editable '$(EXTRAS)')
	@touch $@

# Without a Python that tflite-runtime has wheels for, nothing is made and the line comes each time.
.venv-old-board/.complete: constraints-old-board.txt
	@for python in '$(PYTHON)' python3.11 python3.10; do \
	    "$$python" -c 'import ensurepip, sys; sys.exit(not (3, 10) <= sys.version_info < (3, 12))' \
	        2>/dev/null || continue; \
	    echo 'making .venv-old-board from constraints-old-board.txt'; \
	    "$$python" -m venv .venv-old-board && \
	    $(call install,.venv-old-board,--requirement constraints-old-board.txt) && \
	    touch $@; \
	    exit; \
	done; \
	echo 'no Python 3.10 or 3.11 for tflite-runtime 2.14: the tests of the old board will be skipped'

.venv-newest/.complete: pyproject.toml
	@$(PYTHON) -m venv .venv-newest
	@$(call install,.venv-newest,--upgrade pip hatchling hatch-vcs)
	@$(call install,.venv-newest,--upgrade --no-build-isolation --group dev --editable '$(EXTRAS)')
	@touch $@

.venv-release/.complete: constraints-release.txt pyproject.toml
	@$(PYTHON) -m venv .venv-release
	@$(call install,.venv-release,--constraint constraints-release.txt --upgrade pip)
	@$(call install,.venv-release,--constraint constraints-release.txt hatchling hatch-vcs --group release)
	@touch $@
