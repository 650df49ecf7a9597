#!/bin/sh
# binding.sh LIBRARY ATTRIBUTES CHILDREN: the two programs with the library that binds threads, on the
# C library's malloc and on each of Debian's other allocators that is installed. malloc stays theirs.
library=$1
attributes=$2
children=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export NUMALLOC_TEST_ANY=1 # the programs would refuse another malloc than libnumalloc.so's

# expect TEXT PRELOAD COMMAND...: exactly TEXT on stdout, nothing on stderr.
expect() {
    text=$1
    preload=$2
    shift 2
    said=$(env LD_PRELOAD="$preload" "$@" 2> "$folder/errors")
    status=$?
    if [ $status -ne 0 ] || [ "$said" != "$text" ] || [ -s "$folder/errors" ]; then
        echo "FAILED: $* with $preload: status $status, said: $said"
        cat "$folder/errors"
        exit 1
    fi
}

for peer in '' libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2 libtbbmalloc_proxy.so.2; do
    [ -z "$peer" ] || [ -e "/usr/lib/$(uname -m)-linux-gnu/$peer" ] || continue
    preload="$library${peer:+ $peer}"
    malloc=$(env LD_PRELOAD="$preload" LD_DEBUG=bindings LD_BIND_NOW=1 "$attributes" 2>&1 >/dev/null |
        sed -n 's/.*binding file [^ ]*attributes [^ ]* to \([^ ]*\) .*normal symbol `malloc.*/\1/p' | head -n 1)
    case $malloc in
        */libnumalloc*|'') echo "FAILED: malloc is $malloc with $preload"; exit 1 ;;
    esac
    for binding in interleave saturate none; do
        expect "attributes are kept" "$preload" env NUMALLOC_BINDING=$binding "$attributes"
    done
    expect "all children did what they should" "$preload" "$children"
    echo "malloc is $malloc"
done
