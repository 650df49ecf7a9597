#!/bin/sh
# make -j: a build of forty files by many processes at once, and the program that comes out.
. "$(dirname "$0")/common.sh"
need make gcc
cd "$folder" || exit 1
i=0
while [ $i -lt 40 ]; do
    echo "int f$i(int n) { int s = 0; for (int i = 0; i < n; i++) s += i % ($i + 1); return s; }" > "f$i.c"
    i=$((i + 1))
done
{
    echo '#include <stdio.h>'
    seq 0 39 | sed 's/.*/int f&(int);/'
    echo 'int main(void) { long s = 0;'
    seq 0 39 | sed 's/.*/s += f&(1000);/'
    echo 'printf("%ld", s); puts(""); }'
} > main.c
cat > Makefile <<'END'
objects = $(patsubst %.c,%.o,$(wildcard *.c))
program: $(objects) ; $(CC) -o $@ $^
%.o: %.c ; $(CC) -O2 -c -o $@ $<
END
watched make -s -j8 > got 2> errors || { cat got errors; fail "make"; }
silent errors
[ "$(./program)" = "$(awk 'BEGIN { for (k = 1; k <= 40; k++) for (i = 0; i < 1000; i++) s += i % k; print s }')" ] || fail "wrong result: $(./program)"
# make, and for each file the driver, the compiler and the assembler.
require_processes 121
