#!/bin/sh
# overcommit.sh COMMAND...: runs the command while vm.overcommit_memory is 2, and puts the setting
# back whatever happens. The setting is the machine's, so it is changed for a moment only, with the
# whole of memory allowed; where that is not ours to do the test says so and is skipped.
mode=/proc/sys/vm/overcommit_memory
ratio=/proc/sys/vm/overcommit_ratio
[ -w $mode ] && [ -w $ratio ] || { echo "skipped: $mode is not writable here"; exit 77; }
exec 9>/tmp/numalloc-overcommit.lock
flock 9
old_mode=$(cat $mode) old_ratio=$(cat $ratio)
restore() { echo "$old_mode" > $mode; echo "$old_ratio" > $ratio; }
trap restore EXIT
trap 'exit 1' INT TERM HUP
{ echo 95 > $ratio && echo 2 > $mode; } 2>/dev/null || { echo "skipped: $mode cannot be set here"; exit 77; }
[ "$(cat $mode)" = 2 ] || { echo "skipped: $mode did not take"; exit 77; }
timeout 600 "$@"
