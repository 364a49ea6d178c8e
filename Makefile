# tfdp: two commands for a newcomer, `make demo` and `make test`; each sets up everything it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# TensorFlow's own start-up notices would drown what the commands say.
export TF_CPP_MIN_LOG_LEVEL ?= 2
# Two files of tests at a time: many wait for processes to end. Cases share ranks, and the proofs of a script references.
TWO := -n 2 --dist loadgroup

.PHONY: help demo quick test samples long readme prove calls generated faults soak lint keras2 peers matrix clean

help:
	@echo "make demo    install, migrate a real script, show the diff, train on 2 processes, prove it equivalent"
	@echo "make quick   install, run the unit tests and train on two processes, in two minutes"
	@echo "make test    install, run the test suite: fifteen minutes; with TFDP_TESTS_EXEC=1 no process of it is a fork"
	@echo "make samples a part of make prove and make calls, in ten minutes"
	@echo "make readme  paste the README's commands into a fresh copy of this checkout, install included"
	@echo "make long    the tests with one process, real ranks and command lines whole, of which make test leaves a part out"
	@echo "make prove   prove every fixture script on 2 and 3 processes in both modes, and its mutants wrong"
	@echo "make calls   train many kinds of models on sharded calls and in one process, and break the runtime in many ways"
	@echo "make generated  many generated scripts of each kind, others at each run, and proofs of some"
	@echo "make faults  what one rank can do wrong, on 2, 3 and 4 processes: time to the error, and the message"
	@echo "make soak    a job of which a rank is killed every 20 s, for 5 minutes, ends as one that is left alone, and leaves nothing"
	@echo "make lint    ruff, mypy --strict and the contract between rooms (import-linter)"
	@echo "make keras2  a sample of the kinds of training on Keras 2: TensorFlow 2.15 in an environment of its own"
	@echo "make peers   build Horovod 0.28.1 beside TensorFlow 2.15, once, and hold migrated scripts against it"
	@echo "make matrix  the runtime suite on the other supported TensorFlow and Python versions"
	@echo "make clean   remove everything that the other commands made"

$(STAMP): pyproject.toml hatch_build.py
	@echo "== Making $(VENV) with $$($(PYTHON) --version) and installing tfdp with TensorFlow (CPU)"
	@test -x $(BIN)/python || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cpu,dev]"
	@touch $@

demo: $(STAMP)
	@bash docs/demo.sh

quick: $(STAMP)
	@echo "== Unit tests, and a training on two processes"
	@$(BIN)/python -m pytest -q $(TWO) tests/unit tests/parallel/test_smoke.py::test_dtensor_mlp

test: $(STAMP)
	@echo "== Rules, facts and other unit tests (no TensorFlow)"
	@$(BIN)/python -m pytest -q $(TWO) tests/unit tests/generated
	@echo "== One process, real ranks, command line (all: make long)"
	@$(BIN)/python -m pytest -q $(TWO) tests/single tests/parallel tests/cli --sample

samples: $(STAMP)
	@echo "== Samples: proofs of the fixture scripts (all: make prove), kinds of training on sharded calls (all: make calls)"
	@$(BIN)/python -m pytest -q $(TWO) tests/proofs tests/calls --sample

long: $(STAMP)
	@echo "== One process, real ranks, command line: all tests"
	@$(BIN)/python -m pytest -q $(TWO) tests/single tests/parallel tests/cli

readme:
	@$(PYTHON) tests/readme.py

prove: $(STAMP)
	@echo "== Proofs of all fixture scripts, both modes, on 2 and 3 processes, and what each mutant fails by"
	@$(BIN)/python -m pytest -q $(TWO) tests/proofs

calls: $(STAMP)
	@echo "== All kinds of training on sharded calls against one process, on 2 and 3 workers, and mutants of the runtime"
	@$(BIN)/python -m pytest -q $(TWO) tests/calls

generated: $(STAMP)
	@TFDP_GENERATED=40 TFDP_GENERATED_PROOFS=10 TFDP_GENERATED_SEED=$$$$ $(BIN)/python -m pytest -q $(TWO) tests/generated

faults: $(STAMP)
	@$(BIN)/python tests/parallel/fault_table.py

soak: $(STAMP)
	@$(BIN)/python tests/parallel/restart_soak.py fit --epochs 120
	@$(BIN)/python tests/parallel/restart_soak.py loop --epochs 250

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@PYTHONPATH=tests $(BIN)/lint-imports --no-cache

keras2:
	@CELLS=py3.11-tf2.15 TESTS="tests/calls --sample" bash tests/matrix.sh

peers: $(STAMP)
	@bash tests/peers/make.sh
	@bash tests/peers/engines.sh
	@$(BIN)/python -m pytest -q -n 2 tests/peers

matrix:
	@bash tests/matrix.sh

clean:
	rm -rf $(VENV) .matrix .peers build dist demo-out try .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
