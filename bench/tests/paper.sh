#!/bin/sh
# paper.sh FOLDER: the programs of FOLDER have the sizes of their sources with --paper: some are of a thread, some are
# shared out over the threads, and an option after it has its way.
set -eu
cd "$1"

# says PROGRAM WORDS OPTION NUMBER
says() {
    "./$1" $2 --help | grep -q -- "^  --$3 .*($4)\$" || { echo "$1 $2: --$3 is not $4" >&2; exit 1; }
}

says threadtest --paper objects 10000
says threadtest --paper rounds 1000
says threadtest --paper size 64
says larson --paper objects 1000
says larson --paper smallest 7
says larson --paper largest 8
says larson --paper replacements 1280000000
says larson --paper lifetime 10000000
for program in cache-scratch cache-thrash; do
    says $program --paper size 8
    says $program '--threads 8 --paper' rounds 800
    says $program '--threads 8 --paper' writes 125000
    says $program '--paper --threads 8' writes 125000
    says $program '--threads 8 --paper --writes 3' writes 3
    says $program '--threads 8 --writes 3 --paper' writes 125000
    says $program '--threads 8' writes 500
done
says allocator-study '--threads 128 --paper' operations 12800000000
says amd-numa '--threads 8 --paper' blocks 40000

# Not only shown: 4 threads do 10 of the 400 allocations.
last=$(./cache-scratch --threads 4 --paper --scale 0.025 --writes 1 | tail -n 1)
case $last in
    *'"operations": 10,'*) ;;
    *) echo "cache-scratch --paper: '$last'" >&2; exit 1 ;;
esac
