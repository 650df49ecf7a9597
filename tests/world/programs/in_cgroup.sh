#!/bin/sh
# in_cgroup.sh MIB COMMAND...: in a memory cgroup of its own with that limit, of whichever version is here.
limit=$(($1 << 20))
shift
for base in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    group=$base/numalloc-world-$$
    mkdir "$group" 2>/dev/null || continue
    for file in memory.limit_in_bytes memory.max; do
        [ -e "$group/$file" ] && echo $limit > "$group/$file" && set=1
    done
    [ -n "${set:-}" ] && break
    rmdir "$group"
done
[ -n "${set:-}" ] || { echo "no memory cgroup can be made here" >&2; exit 77; }
sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" "$@"
status=$?
rmdir "$group"
exit $status
