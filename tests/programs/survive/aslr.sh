#!/bin/sh
# aslr.sh COMMAND...: the address that the command prints must differ between runs, by more than
# the few bits that would be easy to guess.
if [ "$(cat /proc/sys/kernel/randomize_va_space)" != 2 ]; then
    echo "skipped: the kernel does not randomise addresses"
    exit 77
fi
different=$(for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "$@" address || echo failed; done | sort -u)
count=$(echo "$different" | wc -l)
if [ "$count" -lt 11 ] || echo "$different" | grep -q failed; then
    echo "only $count different addresses in 12 runs:"
    echo "$different"
    exit 1
fi
echo "$count different addresses in 12 runs"
