# make is a front for CMake: `make` sets up and builds, the other targets are listed by `make help`.
BUILD ?= build
BUILD_TYPE ?= Release
DEPS := $(abspath build/deps)
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=
CONFIGURE = cmake -S . -B $(1) -G Ninja -DCMAKE_PREFIX_PATH=$(DEPS) $(CMAKE_FLAGS) $(2) >$(1)/configure.log 2>&1 || (cat $(1)/configure.log; false)

.PHONY: all setup build help demo demo-text test test-torch wheel bench-programs bench bench-peers format lint asan tsan fuzz install clean
all: build

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## install what is missing
	@mkdir -p build
	@tools/setup.sh $(DEPS)

build: setup ## set up and build into build/
	@mkdir -p $(BUILD)
	@$(call CONFIGURE,$(BUILD),-DCMAKE_BUILD_TYPE=$(BUILD_TYPE))
	@cmake --build $(BUILD) -j $(JOBS)

demo: build ## train a residual network on Fashion-MNIST
	@examples/demo.sh $(BUILD)/penstock

demo-text: build ## train a small GPT on a text of Debian's, and let it write
	@tools/setup.sh $(DEPS) packages-text.txt
	@examples/demo_text.sh $(BUILD)/penstock

test: build ## run all tests
	@tools/python_setup.sh build/python-venv tools/requirements.txt
	@$(call CONFIGURE,$(BUILD),-DPENSTOCK_PYTHON=ON -DPython_EXECUTABLE=$(abspath build/python-venv/bin/python))
	@cmake --build $(BUILD) -j $(JOBS) --target test-programs
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

TORCH_VENV ?= build/torch-venv
test-torch: build ## run the tests that need PyTorch, in a virtual environment of its own (TORCH_VENV); ARGS=--all for all networks
	@tools/python_setup.sh build/python-venv tools/requirements.txt
	@tools/python_setup.sh $(TORCH_VENV) tools/requirements-torch.txt --no-compile
	@$(call CONFIGURE,$(BUILD),-DPENSTOCK_PYTHON=ON -DPython_EXECUTABLE=$(abspath build/python-venv/bin/python))
	@cmake --build $(BUILD) -j $(JOBS) --target penstock_python_stub
	@PYTHONPATH=$(abspath $(BUILD)/python) PYTHONPYCACHEPREFIX=$(abspath $(BUILD)/pycache) OMP_WAIT_POLICY=passive \
	  XDG_CACHE_HOME=$(abspath $(BUILD)/test-cache) $(TORCH_VENV)/bin/python -m pytest -q -p no:cacheprovider tests/torch $(ARGS)

wheel: setup ## make a Python wheel in build/wheels, with oneDNN and the program in it
	@tools/python_setup.sh build/python-venv tools/requirements.txt
	@build/python-venv/bin/pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w build/wheels .
	@ls build/wheels/*.whl

bench-programs: build ## build what measures
	@cmake --build $(BUILD) -j $(JOBS) --target bench-programs

bench: bench-programs ## measure speed and memory
	@bench/run.sh $(BUILD)

bench-peers: build ## compare with PyTorch, in a virtual environment of its own
	@bench/peers/run.sh $(BUILD)

format: ## format the code
	@git ls-files -co --exclude-standard '*.cpp' '*.h' | xargs clang-format -i

lint: setup ## check format, clang-tidy
	@tools/setup.sh $(DEPS) packages-lint.txt
	@mkdir -p build/lint
	@$(call CONFIGURE,build/lint,-DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DPENSTOCK_QUICK_BUILD=OFF -DPENSTOCK_JOIN=ON)
	@tools/lint.sh build/lint $(JOBS)

asan: setup ## tests under AddressSanitizer and UBSan
	@mkdir -p build/asan
	@$(call CONFIGURE,build/asan,-DCMAKE_BUILD_TYPE=Sanitize -DPENSTOCK_BENCH=OFF -DPENSTOCK_SANITIZE=address+undefined)
	@cmake --build build/asan -j $(JOBS) --target penstock test-programs
	@cd build/asan && ctest --output-on-failure -j $(JOBS) -LE slow

tsan: setup ## tests of the threaded parts under ThreadSanitizer
	@mkdir -p build/tsan
	@$(call CONFIGURE,build/tsan,-DCMAKE_BUILD_TYPE=Sanitize -DPENSTOCK_BENCH=OFF -DPENSTOCK_SANITIZE=thread)
	@cmake --build build/tsan -j $(JOBS) --target tsan-tests
	@cd build/tsan && ctest --output-on-failure -j $(JOBS) -L tsan

fuzz: setup ## run each fuzzer for SECONDS=60, or those of TARGETS="idx png"
	@tools/setup.sh $(DEPS) packages-fuzz.txt
	@mkdir -p build/fuzz
	@tools/fuzz.sh build/fuzz $(or $(SECONDS),60) $(JOBS) $(TARGETS)

install: build ## install the library, headers and program (PREFIX=/usr/local)
	@cmake --install $(BUILD) --prefix $(or $(PREFIX),/usr/local)

clean: ## remove the build
	@rm -rf build
