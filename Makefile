# Needs Debian 12 (or an Ubuntu with the same packages); `make setup` installs
# the rest. BAZEL and BAZEL_FLAGS may be set from outside, e.g.
#   make test BAZEL_FLAGS=--jobs=4
BAZEL ?= bazel
BAZEL_FLAGS ?=
export BAZEL BAZEL_FLAGS
export PYTHON_BIN_PATH := $(CURDIR)/.venv/bin/python

# Published measurements, where a checkout has them beside it; tests that need
# them skip elsewhere.
ifneq ($(wildcard $(CURDIR)/../shared/data),)
export PLANCAST_SHARED_DATA ?= $(abspath $(CURDIR)/../shared/data)
endif

CORE := //python/plancast:_core.so

.PHONY: build run test test-torch fuzz soak lint bench wheel docs gallery accuracy shown knobs uncertainty format clean setup compile_commands

build: setup
	$(BAZEL) build -c opt $(BAZEL_FLAGS) $(CORE)
	@tools/install_dev.sh "$$($(BAZEL) info -c opt $(BAZEL_FLAGS) bazel-bin 2>/dev/null)/python/plancast/_core.so"

run: build
	@tools/main_job.sh

test: build
	$(BAZEL) test -c opt $(BAZEL_FLAGS) //...

# Importers against torch, transformers and onnx, which nothing else needs: in a
# virtual environment of their own.
test-torch: build
	@tools/test_torch.sh

# Every reader and command with inputs of RUNS seeds from FIRST on, FUZZ=TARGET only one;
# what is wrong is recorded and the run goes on (docs/fuzzing.md).
RUNS ?= 2000
FIRST ?= 1000000
fuzz: build
	.venv/bin/python -m tests.fuzz.run --runs $(RUNS) --first $(FIRST) $(if $(FUZZ),--target "$(FUZZ)")
	$(BAZEL) run -c opt $(BAZEL_FLAGS) //tests/fuzz/native:run -- --runs=$(RUNS) --first=$(FIRST)

# The long campaigns of docs/reliability.md: SESSIONS of random users, as many of threads, FAULTS of
# each kind on each command, and memory over many forecasts; from seed FIRST on.
SESSIONS ?= 20000
FAULTS ?= 200
soak: build
	.venv/bin/python -m tests.fuzz.sessions --count $(SESSIONS) --seed $(FIRST)
	.venv/bin/python -m tests.fuzz.threads --count $(SESSIONS) --seed $(FIRST)
	.venv/bin/python -m tests.fuzz.faults --count $(FAULTS) --seed $(FIRST)
	.venv/bin/python -m tests.fuzz.leaks

lint: setup
	@tools/lint.sh

bench: build
	@tools/bench.sh $(BENCH)

# dist/: a wheel that needs no package of Debian's and a source distribution, both checked.
wheel: setup
	@tools/wheel.sh

# The API reference in out/api, from docstrings; guides are docs/.
docs: build
	.venv/bin/python -m pdoc --docformat google --no-show-source -o out/api \
	  plancast plancast.launchers '!plancast\.(?!launchers)'

# Pictures of docs/questions; needs chromium.
gallery: build
	.venv/bin/python tools/gallery.py

format: setup
	git ls-files -co --exclude-standard -- '*.h' '*.cc' | grep -v ^third_party/ | xargs -r clang-format -i
	.venv/bin/ruff check --quiet --fix . || true
	.venv/bin/ruff format --quiet .

# docs/accuracy.md from its template and the published measurements.
TRUTH := $(PLANCAST_SHARED_DATA)/truth
accuracy: build
	.venv/bin/plancast validate $(TRUTH) --uncalibrated --learn 1 --learn 3 --learn 5 \
	  --template docs/templates/accuracy.md --report docs/accuracy.md

# Outputs that docs/questions.md and docs/training_runs.md show, as commands print them now.
shown: build
	.venv/bin/python tools/shown.py

# docs/memory_knobs.md and its pictures.
knobs: build
	.venv/bin/python tools/knobs.py

# How sure forecasts are, from the same; then build again.
uncertainty: build
	.venv/bin/plancast validate $(TRUTH) examples/validation/bloom_2022.csv --fit-uncertainty planner/uncertainty/data/uncertainty.textproto

clean:
	$(BAZEL) clean
	rm -rf out dist build .mypy_cache .ruff_cache .pytest_cache python/plancast/_core.so

setup:
	@tools/setup.sh

compile_commands: setup
	.venv/bin/python tools/compile_commands.py
