#!/bin/sh
# with_sysctl.sh NAME VALUE COMMAND...: the setting is the whole machine's, and is put back whatever happens.
file=/proc/sys/$1
before=$(cat "$file")
trap 'echo "$before" > "$file"' EXIT
trap 'exit 1' INT TERM HUP
echo "$2" > "$file" || exit 77
shift 2
"$@"
