#!/bin/sh
# Installs missing packages, builds the library and shows it beside other allocators: on eight nodes of a virtual
# machine, and on this one. Arguments go to `numalloc demo`.
. "$(dirname -- "$0")/common.sh"
# shellcheck disable=SC2086  # lists of words
install_packages $BUILD_PACKAGES $DEMO_PACKAGES || fail "the packages could not be installed"
cmake --preset release -D NUMALLOC_BUILD_TESTS=OFF -D NUMALLOC_BUILD_BENCHMARKS=OFF -B build/demo >/dev/null &&
    cmake --build build/demo || fail "the library could not be built"
say "installing the tools in .venv"
quietly venv make_venv "" || fail "the tools could not be installed in .venv"
exec .venv/bin/numalloc demo --library build/demo/libnumalloc.so "$@"
