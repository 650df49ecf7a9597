#!/bin/sh
# Builds and tests, in stages. All stages run even where one fails; the end is a table of them, and
# the status is 0 only if all are well.
. "$(dirname -- "$0")/common.sh"
usage="usage: sh scripts/test.sh [--quick | --help]
  (nothing)  installs what is missing, builds every preset and runs every test
  --quick    the debug build, its unit tests and the structure of the sources; installs nothing"
quick=
[ $# -le 1 ] || fail "too many words; accepted: --quick, --help or nothing"
case ${1-} in
'') [ $# = 0 ] || fail "the option is empty; accepted: --quick, --help or nothing" ;;
--quick) quick=yes ;;
--help | -h) say "$usage"; exit 0 ;;
*) fail "unknown option '$1'; accepted: --quick, --help or nothing" ;;
esac
logs=build/test-logs
mkdir -p $logs
: > $logs/summary
: > $logs/closing
begun=$(date +%s)

# cpu_of FILE: the seconds of CPU time of all ended children, as the builtin `times` wrote them there.
cpu_of() { sed -n 2p "$1" | tr ms '  ' | awk '{ printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }'; }

# stage NAME COMMAND...: runs it, keeps its output in a log, and notes time, verdict and closing line.
stage() {
    name=$1
    log=$logs/$name.log
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    start=$(date +%s)
    times > "$log.times"
    cpu=$(cpu_of "$log.times")
    { "$@" 2>&1; echo $? > "$log.status"; } | tee "$log"
    status=$(cat "$log.status")
    verdict=passed
    [ "$status" = 0 ] || verdict="FAILED ($status)"
    times > "$log.times"
    printf '%-16s %5d s %7d s  %s\n' "$name" $(($(date +%s) - start)) $(($(cpu_of "$log.times") - cpu)) "$verdict" >> $logs/summary
    rm -f "$log.times" "$log.status"
    closing=$(grep -E '^[0-9]+% tests passed|^=+ .*(passed|failed|error).* =+$|^[0-9]+ (passed|failed)' "$log" | tail -n 1)
    [ -z "$closing" ] || printf '%s: %s\n' "$name" "$closing" >> $logs/closing
}

packages() {
    # shellcheck disable=SC2046,SC2086  # lists of words
    install_packages $BUILD_PACKAGES $DEMO_PACKAGES $TEST_PACKAGES && install_packages $(test_packages)
}

build_aarch64() {
    # shellcheck disable=SC2046  # a list of words
    cmake --preset aarch64 && cmake --build --preset aarch64 --target $(.venv/bin/python tests/numa/aarch64_choice.py)
}

# Real programs under glibc's malloc and under ours: the choice of a few minutes, and that faults would be seen.
world() {
    stage world .venv/bin/python tests/world --quick
    stage world-tests .venv/bin/python -m pytest -n 2 tests/world
}

# The programs that the tests below need of the debug build; its unit tests are those of ubsan.
build_debug() {
    cmake --preset debug && cmake --build --preset debug --target \
        numalloc_shared numalloc_static numalloc_binding tests/programs/all soak
}

build_quick() {
    cmake --preset debug && cmake --build --preset debug --target \
        numalloc_shared numalloc_static numalloc_binding tests/unit/all
}

closing_table() {
    printf '\n== %d s in all\n' $(($(date +%s) - begun))
    printf '%-16s %7s %9s\n' stage time 'CPU time'
    cat $logs/summary
    printf '\n'
    cat $logs/closing
    failed=$(grep -c FAILED $logs/summary)
    [ "$failed" = 0 ] || { say "$failed stages failed; their output is in $logs"; exit 1; }
}

jobs=$(nproc)
if [ "$quick" ]; then
    if command -v ccache >/dev/null; then
        CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
        CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
        export CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
    fi
    stage build-debug build_quick
    stage unit ctest --preset debug -j "$jobs" --no-tests=error -L unit
    # Of the others some compile the library by other compilers, and some take what only users' build has.
    stage structure ctest --preset debug -j "$jobs" --no-tests=error \
        -R '^structure[.](layers|idioms|thread_safety|symbols|binding_symbols|links|prose|python|headers)$'
    closing_table
    exit 0
fi

stage packages packages
stage venv make_venv '[test]'
# The servers among them are not to start by themselves; tests/world sees to that.
stage world-packages as_root .venv/bin/python tests/world --quick --packages
# The benchmark programs are built here only.
stage build-release build release -D NUMALLOC_WERROR=ON -D NUMALLOC_TOOLS_PYTHON="$PWD/.venv/bin/python"
# No time is measured there, so that they and the compilers may share the machine.
world > $logs/both-worlds.log 2>&1 &
stage build-debug build_debug
# What its tests in the lab need of it; structure.compilers_aarch64 takes the library too.
stage build-aarch64 build_aarch64
for preset in tsan ubsan; do stage "build-$preset" build $preset; done
wait
cat $logs/both-worlds.log
stage test-release ctest --preset release -j "$jobs" --no-tests=error
# Figures are about the library that users run; real programs take long without optimisation. `replaced` asks which
# function a call reaches: the linker answers that, and it has the same table of symbols for both builds. The unit
# tests run with the same assertions under ubsan. A later date makes no difference to assertions.
stage test-debug ctest --preset debug -j "$jobs" --no-tests=error -L 'programs|survive' -E '^(figures|replaced)[.]|_after_[36]0_days$'
stage test-tsan ctest --preset tsan -j "$jobs" --no-tests=error
stage test-ubsan ctest --preset ubsan -j "$jobs" --no-tests=error
# The tools' own tests, and the library in virtual NUMA machines: two at a time, each of which keeps
# a core busy and takes up to 8 GiB; the tests of one machine stay together, the long ones come first.
stage pytest .venv/bin/python -m pytest -n 2 --dist loadgroup --durations 10 tests/numa tools

closing_table
