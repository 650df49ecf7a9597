#!/bin/sh
# binding.sh LIBRARY ATTRIBUTES CHILDREN [ALLOCATOR...]: the two programs with the library that binds threads, on the
# C library's malloc and on each of the other allocators. malloc stays theirs.
library=$1
attributes=$2
children=$3
shift 3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export NUMALLOC_TEST_ANY=1 # the programs would refuse another malloc than libnumalloc.so's

# expect TEXT PRELOAD PROGRAM: exactly TEXT on stdout, nothing on stderr. Through files, not pipes, which a
# child left behind would keep open.
expect() {
    timeout -s ABRT 250 env LD_PRELOAD="$2" "$3" > "$folder/said" 2> "$folder/errors"
    status=$?
    if [ $status -ne 0 ] || [ "$(cat "$folder/said")" != "$1" ] || [ -s "$folder/errors" ]; then
        echo "FAILED: $3 with $2: status $status, said: $(cat "$folder/said")"
        cat "$folder/errors"
        exit 1
    fi
}

for peer in '' "$@"; do
    preload="$library${peer:+ $peer}"
    malloc=$(timeout 250 env LD_PRELOAD="$preload" LD_DEBUG=bindings LD_BIND_NOW=1 "$attributes" 2>&1 >/dev/null |
        sed -n 's/.*binding file [^ ]*attributes [^ ]* to \([^ ]*\) .*normal symbol `malloc.*/\1/p' | head -n 1)
    case $malloc in
        */libnumalloc*|'') echo "FAILED: malloc is $malloc with $preload"; exit 1 ;;
    esac
    for binding in auto interleave saturate none; do
        export NUMALLOC_BINDING=$binding
        expect "attributes are kept" "$preload" "$attributes"
    done
    unset NUMALLOC_BINDING
    # tbbmalloc's locks know nothing of fork: by itself, too, a threaded program's child hangs in it.
    [ "$peer" = libtbbmalloc_proxy.so.2 ] || expect "all children did what they should" "$preload" "$children"
    echo "malloc is $malloc"
done
