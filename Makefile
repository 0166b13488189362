# make demo: everything from nothing to answers by name. make test: lint, types, tests. make test-all: the rest.
PYTHON ?= python3
BIN := .venv/bin
DEMO := runs/demo

.PHONY: demo test test-all slow fuzz atheris package docs peers gpu-check nccl-check clean

demo: .venv/installed
	rm -rf $(DEMO)
	$(BIN)/modulekge train world --model ModulE-HH --out $(DEMO)
	$(BIN)/modulekge predict $(DEMO) --head France --relation borders -k 10
	$(BIN)/modulekge predict $(DEMO) --tail Swahili --relation official_language -k 5
	@echo "Ask more: $(BIN)/modulekge predict $(DEMO) --head Japan --relation uses_currency"
	@echo "Explore it in a browser: $(BIN)/modulekge serve $(DEMO)"

test: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadfile -m "not slow and not integration"

# What starts processes, a browser or a compiler, or fuzzes; with make test, all that CI runs.
test-all: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadfile -m integration --durations 30

# Results on small benchmarks, reproduced in minutes; MODULEKGE_DATA names the folder that holds them.
slow: .venv/installed-test
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -m slow

# Readers of files on changed inputs, guided by what these reach; FUZZ says for how many seconds.
FUZZ ?= 300
fuzz: .venv/installed-test
	$(BIN)/python scripts/fuzz.py --seconds $(FUZZ)

# The same readers with Atheris; where there is no wheel of it, clang has to be there to build one.
atheris: .venv/installed-test
	$(BIN)/python -c "import atheris" 2> /dev/null || $(BIN)/pip install --quiet atheris
	$(BIN)/python scripts/fuzz_atheris.py -max_total_time=$(FUZZ)

# The wheel and the sdist, checked, each installed where nothing else is, and used from training to the page.
package: .venv/installed-test
	$(BIN)/pip install --quiet build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) scripts/smoke.py dist/*.whl dist/*.tar.gz

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[serve]'
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/pip install --quiet --editable '.[test,lint]'
	touch $@

# Every row on a GPU against the CPU; needs PyTorch with CUDA and nothing else.
gpu-check:
	PYTHONPATH=src $(PYTHON) scripts/gpu_check.py

# Two processes over NCCL train what one trains; on one GPU too.
nccl-check:
	PYTHONPATH=src $(PYTHON) scripts/nccl_check.py

# The documents as a site, in site/. Without --quiet, under which mkdocs counts no warning.
docs: .venv/installed-test
	$(BIN)/mkdocs build --strict

# Our rows against PyKEEN's models with the same weights, in an environment of its own.
peers: .venv-peers/installed
	.venv-peers/bin/pytest -q -p no:cacheprovider --rootdir peers -c /dev/null peers

.venv-peers/installed: pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --editable . pykeen pytest
	touch $@

clean:
	rm -rf .venv .venv-peers .venv-why dist runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
