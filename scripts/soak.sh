#!/bin/sh
# Random calls of the whole interface by many threads on four made-up nodes, all of what they hold checked, assertions on:
# builds tests/fuzz/soak.cpp in build/soak, and runs it. Status 3: the seconds were over first.
cd "$(dirname -- "$0")/.." || exit 1
usage="usage: sh scripts/soak.sh [--hardened] [OPERATIONS [THREADS [SECONDS [SEED]]]]
  --hardened  with the sources as libnumalloc-hardened.so has them
  OPERATIONS  1000000000 unless told
  THREADS     at a time; 8 unless told
  SECONDS     at most; 86400 unless told
  SEED        of the choices; the time unless told"
program=soak
[ "${1-}" != --hardened ] || { program=soak_hardened; shift; }
case ${1-} in -h | --help) printf '%s\n' "$usage"; exit 0 ;; esac
[ $# -le 4 ] || { printf 'soak.sh: too many words\n%s\n' "$usage" >&2; exit 2; }
for word; do
    case $word in
    '' | *[!0-9]* | 0*) printf "soak.sh: '%s' is no number above 0\n%s\n" "$word" "$usage" >&2; exit 2 ;;
    esac
done

out=build/soak
mkdir -p build || exit 1
{
    cmake -G Ninja -S . -B "$out" -D CMAKE_BUILD_TYPE=RelWithDebInfo -D NUMALLOC_CHECKS=ON -D NUMALLOC_BUILD_BENCHMARKS=OFF \
        -D NUMALLOC_BUILD_RESEARCH=OFF && cmake --build "$out" --target $program
} >"$out.log" 2>&1 || { cat "$out.log"; exit 1; }
exec "$out/tests/fuzz/$program" "${1-1000000000}" "${2-8}" "${3-86400}" "${4-$(date +%s)}"
