#!/bin/sh
# sanitized.sh LIBRARY SOURCE NAME COMPILER FLAG...: a program that was built with the sanitizer NAME does the same with
# the library preloaded as without: output, status, and the sanitizer's finding. The library says one line a program.
# A shared run-time that must come first is named by RUNTIME.
library=$1 source=$2 name=$3
shift 3
command -v "$1" > /dev/null || { echo "no $1"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
echo 'int main() {}' > "$work/empty.cpp"
"$@" "$work/empty.cpp" -o "$work/program" 2> "$work/errors" || { echo "no $name with $1"; exit 77; }
"$@" -std=c++20 -fsized-deallocation -g -w -pthread "$source" -o "$work/program" -ldl || exit 1
[ -z "$RUNTIME" ] || library=$("$1" -print-file-name="$RUNTIME"):$library
for fault in '' fault; do
    env "$work/program" $fault > "$work/plain" 2> "$work/plain.errors"
    plain=$?
    LD_PRELOAD=$library "$work/program" $fault > "$work/ours" 2> "$work/ours.errors"
    ours=$?
    said="numalloc: this program runs under $name: numalloc steps aside"
    grep -v '^numalloc: ' "$work/ours.errors" > "$work/rest"
    if [ -z "$fault" ] && { [ $plain -ne 0 ] || ! grep -q "everything ran" "$work/plain"; }; then
        echo "does not run here without the library either"
        cat "$work/plain.errors"
        exit 77
    fi
    if [ $plain -ne $ours ] || ! cmp -s "$work/plain" "$work/ours" ||
        [ "$(grep -c SUMMARY: "$work/plain.errors")" -ne "$(grep -c SUMMARY: "$work/rest")" ] ||
        [ "$(grep -cxF "$said" "$work/ours.errors")" -ne 1 ] || { [ -z "$fault" ] && [ -s "$work/rest" ]; }; then
        echo "$* $fault: status $plain without the library, $ours with it"
        cat "$work/ours" "$work/ours.errors"
        exit 1
    fi
done
grep SUMMARY: "$work/rest" || echo "no fault found, without the library neither"
