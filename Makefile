# The front door: `make demo` and `make test` do all their own set-up. `make help` lists the rest.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all build wheel bench dev format lint clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 20

demo: ## install what is missing, build, enlarge a photo with a small trained network
	@scripts/setup cpp demo
	@scripts/build release polyphase
	@.venv/bin/python scripts/demo.py

test: ## install what is missing, build with sanitizers, run every test (large suites as slices)
	@scripts/setup cpp tools python.apt
	@.venv/bin/python scripts/check.py

test-all: ## the same with every suite at full size
	@scripts/setup cpp tools python networks wheel exports
	@.venv/bin/python scripts/check.py --full

build: ## the release build, in build/release
	@scripts/setup cpp
	@scripts/build release

wheel: ## a wheel of the Python package in dist/, for machines without a compiler
	@scripts/setup cpp wheel
	@scripts/wheel

bench: ## measure the suite of layers beside PyTorch, ONNX Runtime and OpenVINO (`bench --help` says what else)
	@scripts/setup cpp python bench
	@scripts/build release polyphase_python
	@PYTHONPATH=build/release/python .venv/bin/python bench layers --suite --json build/bench.json --plots build/bench

dev: ## the build for writing code, in build/dev, and its tests
	@scripts/setup cpp
	@scripts/build dev
	@CTEST_OUTPUT_ON_FAILURE=1 CTEST_PARALLEL_LEVEL=$$(nproc) scripts/build dev test

format: ## lay out all C++ with clang-format
	@scripts/setup cpp tools
	@.venv/bin/python scripts/lint.py --format --fix

lint: ## clang-format and clang-tidy over all C++
	@scripts/setup cpp tools
	@scripts/build tidy polyphase_generated
	@.venv/bin/python scripts/lint.py --format --tidy build/tidy

clean: ## remove the builds, not what was installed
	rm -rf build
