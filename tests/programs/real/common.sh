# Sourced by the tests of real programs: LIBRARY is the first argument of each. A program's output
# is compared with what it is without the library, and every test proves that the library was in
# the processes it means to test.
set -u
LIBRARY=$1
shift
folder=$(mktemp -d) || exit 1
cleanup() { :; }
trap 'cleanup; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP

fail() { echo "FAILED: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
need() { for program; do command -v "$program" >/dev/null || skip "no $program here"; done; }

# `none` and NUMALLOC_TEST_ANY=1 try a test itself on the system's malloc.
if [ "$LIBRARY" = none ]; then
    preloaded() { "$@"; }
else
    [ -r "$LIBRARY" ] || fail "no library $LIBRARY"
    preloaded() { env LD_PRELOAD="$LIBRARY" "$@"; }
fi

# watched COMMAND...: preloaded, with the dynamic loader writing down what each process loads.
watched() { preloaded env LD_DEBUG=files LD_DEBUG_OUTPUT="$folder/loader" "$@"; }

# The number of watched processes that initialised the library.
processes_with_library() { grep -l 'calling init: .*libnumalloc' "$folder"/loader.* 2>/dev/null | wc -l; }

require_processes() {
    [ -n "${NUMALLOC_TEST_ANY:-}" ] && return
    count=$(processes_with_library)
    [ "$count" -ge "$1" ] || fail "the library was in $count processes, not in $1 or more"
    echo "the library was in $count processes"
}

# The library is mapped in process $1.
require_mapped() {
    [ -n "${NUMALLOC_TEST_ANY:-}" ] && return
    grep -q libnumalloc "/proc/$1/maps" || fail "process $1 does not map the library"
}

# silent FILE: what was written on stderr must be nothing.
silent() { [ ! -s "$1" ] || { cat "$1"; fail "stderr is not silent"; }; }

# What a program that can read its own maps prints of them.
if [ -n "${NUMALLOC_TEST_ANY:-}" ]; then MAPPED=False; else MAPPED=True; fi
