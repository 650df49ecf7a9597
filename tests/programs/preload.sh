#!/bin/sh
# preload.sh LIBRARY COMMAND...: runs the command with the library preloaded. ctest itself and this
# shell stay on the system's malloc. `none` as the library runs the command without one, to check a
# test on glibc (set NUMALLOC_TEST_ANY=1 as well).
library=$1
shift
if [ "$library" = none ]; then
    exec "$@"
fi
[ -r "$library" ] || { echo "preload.sh: no library $library" >&2; exit 1; }
exec env LD_PRELOAD="$library" "$@"
