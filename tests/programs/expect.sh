#!/bin/sh
# expect.sh TEXT COMMAND...: the command must end with 0, print exactly TEXT on stdout and nothing
# at all on stderr. 77 says that it cannot run here.
wanted=$1
shift
errors=$(mktemp) || exit 1
trap 'rm -f "$errors"' EXIT
got=$("$@" 2>"$errors")
status=$?
[ $status -ne 77 ] || { echo "$got"; exit 77; }
if [ $status -ne 0 ] || [ "$got" != "$wanted" ] || [ -s "$errors" ]; then
    echo "expect.sh: $*: status $status"
    echo "stdout: $got"
    echo "wanted: $wanted"
    echo "stderr:"
    cat "$errors"
    exit 1
fi
