#!/bin/sh
# Installs what is missing, builds, and tests. Status 0: passed; 1: the project failed; 2: the machine did (nothing could be
# installed, no disk). The stages are in tests/gate; CONTRIBUTING.md says what may be in the gate.
. "$(dirname -- "$0")/common.sh"
usage="usage: sh scripts/test.sh [--full | --quick | --help]
  (nothing)  the gate: installs what is missing, builds, and runs every test whose verdict depends on the tree alone
  --full     the gate, then everything else (figures, real programs, virtual machines, aarch64, fuzzing, packages), which
             is reported and rejects nothing; the network is used throughout
  --quick    the debug build, its unit tests and the structure of the sources; installs nothing"
mode=gate
[ $# -le 1 ] || fail "too many words; accepted: --full, --quick, --help or nothing"
case ${1-} in
'') [ $# = 0 ] || fail "the option is empty; accepted: --full, --quick, --help or nothing" ;;
--full) mode=full ;;
--quick) mode=quick ;;
--help | -h) say "$usage"; exit 0 ;;
*) fail "unknown option '$1'; accepted: --full, --quick, --help or nothing" ;;
esac

if [ $mode = quick ]; then
    if command -v ccache >/dev/null; then
        CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
        CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
        export CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
    fi
    cmake --preset debug &&
        cmake --build --preset debug --target numalloc_shared numalloc_static numalloc_binding tests/unit/all || exit 1
    status=0
    ctest --preset debug -j "$(nproc)" --no-tests=error -L '^unit$' -LE '^full$' || status=1
    # Of the others some compile the library by other compilers, and some take what only users' build has.
    ctest --preset debug -j "$(nproc)" --no-tests=error \
        -R '^structure[.](layers|idioms|thread_safety|symbols|binding_symbols|links|walks|mirror|prose|python|headers)$' || status=1
    exit $status
fi

# machine_failed WHAT: no verdict on the project.
machine_failed() { printf 'test.sh: %s; the project was not tested\n' "$*" >&2; exit 2; }

case $root in
*[\ :]*) machine_failed "LD_PRELOAD can name no library in '$root': it takes a blank and a colon for the end of a name" ;;
esac
random_bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)
[ "$random_bits" -le 28 ] || setarch -R true 2>/dev/null ||
    machine_failed "ThreadSanitizer works with 28 random bits in addresses (vm.mmap_rnd_bits is $random_bits) or without (setarch -R is refused)"
mkdir -p build || machine_failed "no folder build can be made"
say "== packages"
# shellcheck disable=SC2086  # lists of words
quietly packages install_packages $BUILD_PACKAGES $DEMO_PACKAGES $TEST_PACKAGES || machine_failed "the packages could not be installed"
# shellcheck disable=SC2046  # a list of words
quietly packages-of-tests install_packages $(test_packages) || machine_failed "the tests' packages could not be installed"
say "== tools"
quietly venv make_venv '[test]' || machine_failed "the tools could not be installed in .venv"
say "== the virtual machine's kernel"
# shellcheck disable=SC2086  # a list of words
quietly kernel $LIMITED env XDG_CACHE_HOME="${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}" .venv/bin/python -m numalloc_tools.guest.fetch ||
    machine_failed "the virtual machine's kernel could not be fetched"
if [ $mode = full ]; then
    # The servers among them are not to start by themselves; tests/world sees to that.
    say "== packages of real programs"
    # shellcheck disable=SC2086  # a list of words
    quietly world-packages as_root $LIMITED .venv/bin/python tests/world --quick --packages || say "some of tests/world's packages are missing"
    exec .venv/bin/python tests/gate --full </dev/null
fi
exec .venv/bin/python tests/gate </dev/null
