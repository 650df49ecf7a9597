#!/bin/sh
# bare_root.sh PROGRAM: the folder `root` with the program, what it is linked with, env and ours; no /proc, no /sys.
mkdir -p root/usr/bin
for program in "$1" /usr/bin/env ${LIBRARY:+"$LIBRARY"}; do
    ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "root$(dirname "$library")"
        cp -n "$library" "root$library"
    done
done
cp "$1" root/
cp /usr/bin/env root/usr/bin/
[ -z "${LIBRARY:-}" ] || cp "$LIBRARY" root/libnumalloc.so
