#!/bin/sh
# two_nodes.sh COMMAND...: in a virtual machine of two nodes with two CPUs each, preloading $LIBRARY if there is one, watched
# by watched.c. $LAB: more options of `numalloc lab run`.
[ -x "$NUMALLOC" ] || { echo "the tools are not installed: there is no $NUMALLOC" >&2; exit 77; }
export XDG_CACHE_HOME="$USER_HOME/.cache" # has the machine's kernel
exec "$NUMALLOC" lab run --nodes 2 --cpus-per-node 2 ${LIBRARY:+--preload "$LIBRARY"} ${LAB:-} -- "$BUILD/watched" "$@"
