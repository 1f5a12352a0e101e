# SPDX-License-Identifier: BSD-3-Clause
# Everything a person does here. `make run` needs python3, gcc, g++ and make; the rest comes from PyPI into .venv.
PYTHON ?= python3
VENV := $(CURDIR)/.venv
BUILD := $(CURDIR)/build/dev
BIN := $(VENV)/bin
export PATH := $(BIN):$(PATH)

.PHONY: help run build test test-all bench docs lint format asan tsan fuzz coverage check-kernels clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

run: build ## builds what changed, then trains a small network on mps
	$(BIN)/python examples/quickstart.py

build: $(BUILD)/build.ninja ## the library, its kernels and the bridge, installed into .venv
	@$(BIN)/ninja -C $(BUILD) --quiet

# The build folder holds a complete package; .venv looks into it, so that nothing is copied and nothing is stale.
$(BUILD)/build.ninja: $(VENV)/installed
	$(BIN)/cmake -S . -B $(BUILD) -G Ninja -DOPENMPS_LTO=ON -DPython3_EXECUTABLE=$(BIN)/python > $(VENV)/configure.log || { cat $(VENV)/configure.log; false; }
	@echo $(BUILD)/python > $$($(BIN)/python -c "import sysconfig; print(sysconfig.get_paths()['purelib'])")/openmps.pth
	@printf '#!/bin/sh\nexec $(BIN)/python -m openmps "$$@"\n' > $(BIN)/openmps && chmod +x $(BIN)/openmps

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: requirements-build.txt requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-build.txt -r requirements.txt
	touch $@

# Only format, lint and coverage wait for these.
$(VENV)/installed-dev: requirements-dev.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

test: build ## everything that proves the project right
	$(BIN)/python tools/test.py --build $(BUILD)

test-all: build ## all samples and gradients of PyTorch's operator database (an hour or two; goes on where it stopped), and their page
	$(BIN)/python -m tests.conformance --all --resume; result=$$?; $(BIN)/python tools/conformance_page.py > docs/conformance.md; exit $$result

bench: build ## cpu and mps side by side
	$(BIN)/python bench/ratio.py

docs: build ## the coverage page, written from the operator table
	$(BIN)/python tools/coverage_page.py > build/coverage.md
	mv build/coverage.md docs/coverage.md

lint: $(VENV)/installed-dev ## who includes whom; mistakes that ruff finds in Python
	$(BIN)/python tools/check_includes.py
	$(BIN)/ruff check --quiet

format: $(VENV)/installed-dev ## clang-format and ruff, on lines changed since main and on new files only
	$(BIN)/python tools/format.py

asan: build ## unit tests of the C core under AddressSanitizer and UBSan
	$(call core_build,asan,-DOPENMPS_SANITIZER=address$(comma)undefined)
	$(BIN)/ctest --test-dir build/asan --output-on-failure

tsan: build ## the same under ThreadSanitizer
	$(call core_build,tsan,-DOPENMPS_SANITIZER=thread)
	$(BIN)/ctest --test-dir build/tsan --output-on-failure

SECONDS := 60
fuzz: build ## shader reader, heap and graphs on random input under both; 60 s, or: make fuzz SECONDS=600
	$(call core_build,asan,-DOPENMPS_SANITIZER=address$(comma)undefined)
	$(BIN)/python tools/fuzz.py --build build/asan --kernels $(BUILD)/lib/kernels --seconds $(SECONDS)

coverage: build $(VENV)/installed-dev ## lines of the C core that its unit tests reach: a table, and build/coverage/index.html
	$(call core_build,coverage,-DOPENMPS_COVERAGE=ON)
	$(BIN)/python tools/line_coverage.py --build build/coverage

check-kernels: build ## compiles every kernel for aarch64, for PTX, and as C++14
	$(BIN)/ninja -C $(BUILD) --quiet check-kernels-aarch64 check-kernels-ptx check-kernels-c++14

clean: ## removes what was built; .venv stays
	rm -rf build

comma := ,
# The C core in build/$(1), with the kernels that are built already; $(2): options of it.
define core_build
	$(BIN)/cmake -S . -B build/$(1) -G Ninja -DPython3_EXECUTABLE=$(BIN)/python -DOPENMPS_BRIDGE=OFF $(2) \
	  -DOPENMPS_KERNELS_FROM=$(BUILD)/lib/kernels > /dev/null
	$(BIN)/ninja -C build/$(1) --quiet
endef
