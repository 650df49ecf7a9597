#!/bin/sh
# openmp.sh LIBRARY PROGRAM...: OpenMP's number of threads, places and bindings are what they are
# without the library, for each program (one a run-time library) and each setting.
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1
[ $# -gt 0 ] || fail "no program"
# Not OMP_DYNAMIC: then the number of threads follows the machine's load.
for program; do
    for setting in NOTHING=1 OMP_NUM_THREADS=3 OMP_NUM_THREADS=17 OMP_PROC_BIND=true OMP_PROC_BIND=spread OMP_PROC_BIND=close \
        OMP_PLACES=cores OMP_PLACES=threads OMP_PLACES='{0}' OMP_THREAD_LIMIT=2; do
        for cpus in all 0; do
            if [ $cpus = all ]; then run="env"; else run="taskset -c $cpus env"; fi
            for binding in auto interleave saturate none; do
                $run "$setting" "$program" > expected 2> expected.errors
                preloaded $run "$setting" NUMALLOC_BINDING=$binding "$program" > got 2> errors || { cat errors; fail "$program under $setting"; }
                cmp -s errors expected.errors || { cat errors; fail "$program under $setting: stderr"; }
                cmp got expected || { cat expected got; fail "$(basename "$program") under $setting, cpus $cpus, binding $binding"; }
            done
        done
    done
    watched "$program" > /dev/null || fail "watched"
    require_processes 2   # itself and its shell
    rm -f "$folder"/loader.*
    tail -3 got
done
