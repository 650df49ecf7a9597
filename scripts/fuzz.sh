#!/bin/sh
# Fuzzes the library's readers with clang's libFuzzer: builds tests/fuzz in build/fuzz, and runs each target from its corpus.
# What is found is kept in build/fuzz/found-TARGET. 77: clang has no libFuzzer here.
cd "$(dirname -- "$0")/.." || exit 1
usage="usage: sh scripts/fuzz.sh [SECONDS [TARGET...]]
  SECONDS  for each target; 3600 unless told
  TARGET   options, rule_file, machine; all unless told"
seconds=${1-3600}
case $seconds in
-h | --help) printf '%s\n' "$usage"; exit 0 ;;
'' | *[!0-9]* | 0*) printf "fuzz.sh: '%s' is no number of seconds\n%s\n" "$seconds" "$usage" >&2; exit 2 ;;
esac
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- options rule_file machine
for target; do
    [ -f "tests/fuzz/$target.cpp" ] || { printf "fuzz.sh: there is no target '%s'\n%s\n" "$target" "$usage" >&2; exit 2; }
done

flags="-std=c++20 -g -O1 -fno-exceptions -fno-rtti -fsanitize=undefined -fno-sanitize-recover=all -Isrc -Iinclude"
out=build/fuzz
mkdir -p "$out" || exit 1
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$out/empty.cpp"
clang++ -fsanitize=fuzzer "$out/empty.cpp" -o "$out/empty" 2>/dev/null || { echo "clang++ with libFuzzer is not installed (Debian: clang, libclang-rt-14-dev)"; exit 77; }

launcher=
command -v ccache >/dev/null && launcher=ccache
objects=
for source in src/options/options.cpp src/placement/rule_file.cpp src/placement/policy.cpp src/os/*.cpp; do
    object=$out/$(echo "${source%.cpp}" | tr / _).o
    objects="$objects $object"
    $launcher clang++ $flags -fsanitize=fuzzer-no-link -c "$source" -o "$object" || exit 1
done
failed=0
for target; do
    clang++ $flags -fsanitize=fuzzer "tests/fuzz/$target.cpp" $objects -o "$out/$target" || exit 1
    mkdir -p "$out/corpus-$target" "$out/found-$target" || exit 1
    # Without a limit of memory: that of a rule file is never given back, since a process reads one.
    "$out/$target" -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=0 -print_final_stats=1 \
        -artifact_prefix="$out/found-$target/" "$out/corpus-$target" "tests/fuzz/corpus/$target" >"$out/$target.log" 2>&1 || failed=1
    grep -E '^Done|ERROR|runtime error|Test unit written' "$out/$target.log" | sed "s/^/$target: /"
done
exit $failed
