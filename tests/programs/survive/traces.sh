#!/bin/sh
# traces.sh PRELOAD LIBRARY PROGRAM: the program's account of itself is the same with the library.
folder=$(mktemp -d) || exit 1
# What is compared. Some shells count themselves in SHLVL. Of several nodes' binding the kernel's own account shows, alone.
shows='^NUMALLOC_[BT]|^NUMALLOC_TEST|^SHLVL='
[ "$(cat /sys/devices/system/node/online)" = 0 ] || shows="$shows|^Cpus_allowed"
trap 'rm -rf "$folder"' EXIT
NUMALLOC_TEST_ANY=1 "$3" > "$folder/without" 2>&1 < /dev/null || { cat "$folder/without"; exit 1; }
[ "$(grep -c '^== ' "$folder/without")" = 7 ] || { echo "not the whole account"; exit 1; }
for setting in NUMALLOC_BINDING=auto NUMALLOC_BINDING=interleave NUMALLOC_BINDING=saturate NUMALLOC_BINDING=none NUMALLOC_THP=on NUMALLOC_THP=off; do
    NUMALLOC_TEST_ANY=1 "$1" "$2" env "$setting" "$3" > "$folder/with" 2>&1 < /dev/null || { cat "$folder/with"; exit 1; }
    grep -Ev "$shows" "$folder/with" > "$folder/got"
    grep -Ev "$shows" "$folder/without" > "$folder/expected"
    diff "$folder/expected" "$folder/got" || { echo "different under $setting"; exit 1; }
done
# Had the library not been there, all would be the same, too.
[ "$2" = none ] || "$1" "$2" "$3" > /dev/null || { echo "the library was not in use"; exit 1; }
echo "no traces in $(wc -l < "$folder/got") lines"
