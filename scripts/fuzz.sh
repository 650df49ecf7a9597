#!/bin/sh
# Fuzzes the library's readers with clang's libFuzzer: builds tests/fuzz in build/fuzz, and runs each target from its corpus.
# What is found is kept in build/fuzz/found-TARGET. 77: clang has no libFuzzer here.
cd "$(dirname -- "$0")/.." || exit 1
usage="usage: sh scripts/fuzz.sh [SECONDS [TARGET...]]
  SECONDS  for each target; 3600 unless told
  TARGET   options, rule_file, machine, api; all unless told"
seconds=${1-3600}
case $seconds in
-h | --help) printf '%s\n' "$usage"; exit 0 ;;
'' | *[!0-9]* | 0*) printf "fuzz.sh: '%s' is no number of seconds\n%s\n" "$seconds" "$usage" >&2; exit 2 ;;
esac
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- options rule_file machine api
for target; do
    [ -f "tests/fuzz/$target.cpp" ] || { printf "fuzz.sh: there is no target '%s'\n%s\n" "$target" "$usage" >&2; exit 2; }
done

out=build/fuzz
mkdir -p "$out" || exit 1
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$out/empty.cpp"
clang++ -fsanitize=fuzzer "$out/empty.cpp" -o "$out/empty" 2>/dev/null || { echo "clang++ with libFuzzer is not installed (Debian: clang, libclang-rt-dev)"; exit 77; }

launcher=
command -v ccache >/dev/null && launcher=ccache
# Ninja compiles what has changed since the last time. The readers' targets have libc's malloc, that of the interface ours,
# as the archive has it.
object_of() { echo "$out/$(echo "${1%.cpp}" | tr / _).o"; }
compile() { echo "build $(object_of "$1"): compile $1"; }
# Without program_calls.cpp, which passes calls on to what the preloaded library interposes.
readers=$(ls src/options/options.cpp src/placement/rule_file.cpp src/placement/choose_place.cpp src/os/*.cpp | grep -v /program_calls.cpp)
all=$(find src -name '*.cpp' | grep -Ev "/(aside|nothrow_new|program_calls)[.]cpp|/interpose/" | sort)
all="$all src/api/interpose/fork_handlers.cpp tests/fuzz/api/made_up_nodes.cpp"
{
    cat <<END
flags = -std=c++20 -g1 -O1 -fno-exceptions -fno-rtti -fsanitize=undefined -fno-sanitize-recover=all -fno-builtin $
    -fsized-deallocation -Isrc -Iinclude -Itests/fuzz -Itests/programs -Itests/programs/support $
    -DNUMALLOC_CHECKS -DNUMALLOC_STATIC -pthread
rule compile
    command = $launcher clang++ \$flags -fsanitize=fuzzer-no-link \$coverage -MMD -MF \$out.d -c \$in -o \$out
    description = compile \$in
    depfile = \$out.d
    deps = gcc
rule link
    command = clang++ \$flags -fsanitize=fuzzer \$in -Wl,--wrap=_ZN8numalloc2os13init_topologyEv -o \$out
    description = link \$out
END
    for source in $all; do
        compile "$source"
        # The fuzzer would learn the heap's marks of freed objects from comparisons, and write them into objects of its own.
        case " $(echo $readers) " in *" $source "*) ;; *) echo "    coverage = -fno-sanitize-coverage=trace-cmp" ;; esac
    done
    for target in options rule_file machine api; do
        compile "tests/fuzz/$target.cpp"
        [ $target != api ] || echo "    coverage = -fno-sanitize-coverage=trace-cmp"
        sources=$readers
        [ $target != api ] || sources="$all"
        printf 'build %s: link %s' "$out/$target" "$(object_of "tests/fuzz/$target.cpp")"
        for source in $sources; do printf ' %s' "$(object_of "$source")"; done
        echo
    done
    echo "builddir = $out"
} >"$out/build.ninja"
# shellcheck disable=SC2046  # a list of words
ninja -f "$out/build.ninja" $(for target; do echo "$out/$target"; done) >"$out/build.log" || { cat "$out/build.log"; exit 1; }
failed=0
for target; do
    mkdir -p "$out/corpus-$target" "$out/found-$target" || exit 1
    # Without a limit of memory: that of a rule file is never given back, since a process reads one.
    # A sequence of calls is long from the start.
    grow=100
    [ "$target" != api ] || grow=0
    "$out/$target" -max_total_time="$seconds" -max_len=4096 -len_control=$grow -rss_limit_mb=0 -print_final_stats=1 \
        -artifact_prefix="$out/found-$target/" "$out/corpus-$target" "tests/fuzz/corpus/$target" >"$out/$target.log" 2>&1 || failed=1
    grep -E '^Done|ERROR|runtime error|Test unit written' "$out/$target.log" | sed "s/^/$target: /"
done
exit $failed
