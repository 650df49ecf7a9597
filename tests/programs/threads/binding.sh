#!/bin/sh
# binding.sh LIBRARY ATTRIBUTES CHILDREN: the two programs with the library that binds threads, on the
# C library's malloc and on each of Debian's other allocators. malloc stays theirs.
library=$1
attributes=$2
children=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export NUMALLOC_TEST_ANY=1 # the programs would refuse another malloc than libnumalloc.so's

# Where a program hangs, what each of its threads and children waits for; then they are ended.
watch() {
    for _ in $(seq 90); do sleep 0.5; done
    for pid in $(pgrep -f -- "^$1"); do
        echo "after 45 s process $pid still runs:"
        gdb -p "$pid" -batch -ex 'thread apply all backtrace' 2>&1
    done
    pkill -KILL -f -- "^$1"
}

# expect TEXT PRELOAD PROGRAM: exactly TEXT on stdout, nothing on stderr. Through files, not pipes, which a
# child left behind would keep open.
expect() {
    watch "$3" > "$folder/stacks" 2>&1 &
    watcher=$!
    env LD_PRELOAD="$2" "$3" > "$folder/said" 2> "$folder/errors"
    status=$?
    if [ $status -ne 0 ] || [ "$(cat "$folder/said")" != "$1" ] || [ -s "$folder/errors" ]; then
        echo "FAILED: $3 with $2: status $status, said: $(cat "$folder/said")"
        cat "$folder/errors" "$folder/stacks"
        exit 1
    fi
    kill $watcher
}

for peer in '' libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2 libtbbmalloc_proxy.so.2; do
    preload="$library${peer:+ $peer}"
    malloc=$(timeout 60 env LD_PRELOAD="$preload" LD_DEBUG=bindings LD_BIND_NOW=1 "$attributes" 2>&1 >/dev/null |
        sed -n 's/.*binding file [^ ]*attributes [^ ]* to \([^ ]*\) .*normal symbol `malloc.*/\1/p' | head -n 1)
    case $malloc in
        */libnumalloc*|'') echo "FAILED: malloc is $malloc with $preload"; exit 1 ;;
    esac
    for binding in interleave saturate none; do
        export NUMALLOC_BINDING=$binding
        expect "attributes are kept" "$preload" "$attributes"
    done
    unset NUMALLOC_BINDING
    # tbbmalloc's locks know nothing of fork: by itself, too, a threaded program's child hangs in it.
    [ "$peer" = libtbbmalloc_proxy.so.2 ] || expect "all children did what they should" "$preload" "$children"
    echo "malloc is $malloc"
done
