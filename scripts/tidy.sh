#!/bin/sh
# The library's sources by clang-tidy, with the checks of .clang-tidy: two minutes for all of them on two cores.
. "$(dirname -- "$0")/common.sh"
usage="usage: sh scripts/tidy.sh [FILE...]
  FILE  sources (*.cpp); all in src unless told"
case ${1-} in
-h | --help) say "$usage"; exit 0 ;;
esac
for file; do
    case $file in *.cpp) ;; *) fail "'$file' is no C++ source; accepted: *.cpp" ;; esac
    [ -f "$file" ] || fail "there is no file '$file'"
done
install_packages clang-tidy g++ || exit 1
if [ $# = 0 ]; then find src -name '*.cpp'; else printf '%s\n' "$@"; fi | sort |
    xargs -P "$(nproc)" -I FILE clang-tidy --quiet FILE -- -std=gnu++20 -Isrc -Iinclude -fno-exceptions -fno-rtti -fsized-deallocation
