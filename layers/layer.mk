# How a layer is built: wheels for the runtime, whatever Python and machine build it, then our own package.
# FACTBOOK_LAYER_PLATFORM (aarch64 or x86_64) and FACTBOOK_LAYER_PYTHON say for which runtime.
FACTBOOK_LAYER_PLATFORM ?= aarch64
FACTBOOK_LAYER_PYTHON ?= 3.13
PYTHON ?= python3

# Amazon Linux 2023 has glibc 2.34, so wheels for anything up to it run.
TAGS := manylinux2014 manylinux_2_17 manylinux_2_24 manylinux_2_26 manylinux_2_27 manylinux_2_28 manylinux_2_31 manylinux_2_34
REQUIREMENTS := $(HERE)/../../requirements

# $(1): name of the lock, $(2): our package
define build-layer
	"$(PYTHON)" -m pip --disable-pip-version-check install --quiet --no-compile --require-hashes --no-deps \
	  --only-binary=:all: --implementation cp --python-version $(FACTBOOK_LAYER_PYTHON) \
	  $(TAGS:%=--platform %_$(FACTBOOK_LAYER_PLATFORM)) --target "$(ARTIFACTS_DIR)/python" -r "$(REQUIREMENTS)/$(1).txt"
	cp -R $(2) "$(ARTIFACTS_DIR)/python/"
	find "$(ARTIFACTS_DIR)" -name __pycache__ -prune -exec rm -r {} +
endef
