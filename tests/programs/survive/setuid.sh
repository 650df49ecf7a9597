#!/bin/sh
# setuid.sh COMPILER LIBRARY SOURCE_FOLDER: a program linked with the library is made setuid root
# and run as nobody. It must work, and must not take its options from the environment of a caller
# it cannot trust: a bad value is not even commented, a file named there is not opened.
compiler=$1 library=$2 source=$3
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cp "$library" "$folder/" || exit 1
name=$(basename "$library")
# A library that others may not read could not be loaded by the preloaded control run.
chmod 755 "$folder/$name"
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ -z "$soname" ] || [ "$soname" = "$name" ] || ln -s "$name" "$folder/$soname"
"$compiler" -std=c++20 -O2 -pthread -I"$source/support" -I"$source" "$source/survive/linked_program.cpp" -o "$folder/program" \
    "$folder/$name" -Wl,-rpath,"$folder" -ldl || exit 1
chown root:root "$folder/program"
chmod 4755 "$folder/program"
echo secret-text > "$folder/private"
chmod 600 "$folder/private"

as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env -C / "$@" 2>&1; }

# A file system mounted nosuid would make the test say nothing.
plain=$(as_nobody "$folder/program")
case $plain in
    "secure 1 library 1") ;;
    "secure 0 library 1") echo "skipped: setuid has no effect in $folder"; exit 77 ;;
    *) echo "wrong: $plain"; exit 1 ;;
esac
hostile=$(as_nobody env NUMALLOC_BINDING=file NUMALLOC_BINDING_FILE="$folder/private" NUMALLOC_THP=nonsense NUMALLOC_VERBOSE=1 \
    LD_PRELOAD="$folder/$name" "$folder/program")
if [ "$hostile" != "secure 1 library 1" ]; then
    echo "options of an untrusted caller were taken: $hostile"
    exit 1
fi
echo "setuid program works: $plain"
