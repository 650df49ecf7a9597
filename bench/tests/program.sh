#!/bin/sh
# program.sh LIBRARY DAMAGE_LIBRARY DAMAGE PROGRAM ARGUMENTS...: the program runs small, with the library
# preloaded and on the system's malloc; its last line must be JSON that says all was well, and that its pages
# were counted where the kernel allows it. An answer that it tells must be the same with other numbers of
# threads. A wrong option must be refused. On a malloc that damages objects (see damage.c) it must fail, unless
# DAMAGE is none; on one that gives no memory it always must.
set -eu
library=$1
damaging=$2
damage=$3
program=$4
shift 4

runs_well() {
    last=$("$@" | tail -n 1)
    case $last in
        '{"program": "'*'"check": "ok"}') ;;
        *) echo "$*: ends with '$last'" >&2; exit 1 ;;
    esac
}

runs_well env LD_PRELOAD="$library" "$program" "$@"
runs_well "$program" "$@" --report-pages
case $last in
    *'"local_pages": 0, "remote_pages": 0,'*) echo "$* --report-pages: counted none of its pages: $last" >&2; exit 1 ;;
esac

# What was found out does not depend on who did which part of it.
answer=$(printf '%s\n' "$last" | sed -n 's/.*"answer": \([0-9.]*\).*/\1/p')
for threads in ${answer:+1 3}; do
    runs_well "$program" "$@" --threads $threads
    case $last in
        *"\"answer\": $answer,"*) ;;
        *) echo "$* --threads $threads: the answer is not $answer: $last" >&2; exit 1 ;;
    esac
done

status=0
words=$("$program" --no-such-option 1 2>&1) || status=$?
case $status:$words in
    2:*accepted:*--threads*) ;;
    *) echo "$program --no-such-option: status $status, said '$words'" >&2; exit 1 ;;
esac

# With "none" memory runs out instead.
for what in $(printf '%s\n' "$damage" none | sort -u); do
    status=0
    words=$(BENCH_DAMAGE=$what LD_PRELOAD="$damaging" "$program" "$@" 2>&1) || status=$?
    case $status:$words in
        1:"$(basename "$program"): "*) ;;
        *) echo "$program with BENCH_DAMAGE=$what: status $status, said '$words'" >&2; exit 1 ;;
    esac
done
