#!/bin/sh
# gcc compiling this project's own sources: the same objects as without the library.
# gcc.sh LIBRARY SOURCE_FOLDER
. "$(dirname "$0")/common.sh"
need g++
source=$1
cd "$folder" || exit 1
# Whatever is there: a few of the larger files.
files=$(find "$source/src" -name '*.cpp' -size +3k | sort | head -6)
[ -n "$files" ] || fail "no sources in $source/src"
for file in $files; do
    flags="-std=c++20 -O2 -g -fPIC -I$source/src -I$source/include"
    # shellcheck disable=SC2086
    g++ $flags -c "$file" -o expected.o || fail "g++ without the library on $file"
    # shellcheck disable=SC2086
    watched g++ $flags -c "$file" -o got.o 2> errors || { cat errors; fail "g++ on $file"; }
    silent errors
    cmp got.o expected.o || fail "other code for $file"
done
# The driver, the compiler and the assembler, for each file.
require_processes $(($(echo "$files" | wc -w) * 3))
