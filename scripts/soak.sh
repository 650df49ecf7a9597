#!/bin/sh
# Random calls of the whole interface by many threads on four made-up nodes, all of what they hold checked, assertions on:
# builds tests/fuzz/soak.cpp in build/soak, and runs it. Status 3: the seconds were over first.
cd "$(dirname -- "$0")/.." || exit 1
usage="usage: sh scripts/soak.sh [OPERATIONS [THREADS [SECONDS [SEED]]]]
  OPERATIONS  1000000000 unless told
  THREADS     at a time; 8 unless told
  SECONDS     at most; 86400 unless told
  SEED        of the choices; the time unless told"
case ${1-} in -h | --help) printf '%s\n' "$usage"; exit 0 ;; esac
[ $# -le 4 ] || { printf 'soak.sh: too many words\n%s\n' "$usage" >&2; exit 2; }
for word; do
    case $word in
    '' | *[!0-9]* | 0*) printf "soak.sh: '%s' is no number above 0\n%s\n" "$word" "$usage" >&2; exit 2 ;;
    esac
done

out=build/soak
mkdir -p "$out" || exit 1
launcher=
command -v ccache >/dev/null && launcher=ccache
# As the archive has them: threads are not bound.
sources=$(find src -name '*.cpp' | grep -Ev '/aside.cpp|/nothrow_new.cpp|/interpose/' | sort)
sources="$sources src/api/interpose/fork_handlers.cpp tests/fuzz/api/made_up_nodes.cpp tests/fuzz/soak.cpp"
{
    cat <<END
builddir = $out
rule compile
    command = $launcher ${CXX:-c++} -std=c++20 -O2 -g1 -fno-exceptions -fno-rtti -fno-builtin -fsized-deallocation -Isrc -Iinclude $
        -Itests/fuzz -Itests/programs -Itests/programs/support -DNUMALLOC_CHECKS -DNUMALLOC_STATIC -pthread $
        -MMD -MF \$out.d -c \$in -o \$out
    description = compile \$in
    depfile = \$out.d
    deps = gcc
rule link
    command = ${CXX:-c++} -pthread \$in -Wl,--wrap=_ZN8numalloc2os13init_topologyEv -o \$out
    description = link \$out
END
    objects=
    for source in $sources; do
        object=$out/$(echo "${source%.cpp}" | tr / _).o
        objects="$objects $object"
        echo "build $object: compile $source"
    done
    echo "build $out/soak: link$objects"
} >"$out/build.ninja"
ninja -f "$out/build.ninja" "$out/soak" >"$out/build.log" || { cat "$out/build.log"; exit 1; }
exec "$out/soak" "${1-1000000000}" "${2-8}" "${3-86400}" "${4-$(date +%s)}"
