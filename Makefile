# The verbs of the house. `make demo` and `make test` set up what they need; the others too, where they need it.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test soak bench dist install lint gen deny clean
MAKEFLAGS += --no-print-directory

export PATH := $(CURDIR)/.venv/bin:$(PATH):$(HOME)/.cargo/bin
export PYTHON ?= $(CURDIR)/.venv/bin/python
export DIST ?= $(CURDIR)/dist
export CARGO_TARGET_DIR ?= $(CURDIR)/target

BINDINGS := bindings-python bindings-node bindings-c

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install what is missing on this machine
	@scripts/setup.sh

demo: setup ## a Flask app and an Express app draw from the same bucket, before your eyes; STORE=redis for one on a Redis
	@STORE=$(STORE) scripts/demo.sh

test: setup ## everything, in every language; STEPS="lint core" runs only those whose name begins so
	@$(PYTHON) scripts/test.py $(STEPS)

soak: setup ## what takes longer: the scenes of the tests, many more times
	@$(PYTHON) scripts/test.py --soak

bench: setup ## mirab beside its peers, in every language; ONLY="rust-memory c-memory", ROUNDS=21, SLOT=30 (milliseconds)
	@$(PYTHON) benchmarks/run.py $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SLOT),--slot $(SLOT))

dist: setup ## dist/: the wheel, the npm tarballs and the C archive
	@for part in $(BINDINGS); do $(MAKE) -C $$part dist || exit 1; done

install: ## the C library and its header; DESTDIR and PREFIX are honoured
	@$(MAKE) -C bindings-c install

lint: setup ## every lint gate
	@$(PYTHON) scripts/test.py lint

gen: setup ## regenerate what is generated: the C header, the types of the Node package
	@for part in $(BINDINGS); do $(MAKE) -C $$part gen || exit 1; done

deny: setup ## licences, sources and advisories of the Rust dependencies (builds cargo-deny the first time)
	@scripts/deny.sh

clean: ## remove what was built, not what was set up
	@for part in $(BINDINGS); do $(MAKE) -C $$part clean || exit 1; done
	rm -rf dist target .cache .pytest_cache .ruff_cache .mypy_cache
