#!/bin/sh
# answers.sh FOLDER [concurrent]: each program there, small, with each data set or structure and several numbers of
# threads. They check their own answers. Then the study's sizes, and words that must be refused.
set -eu
cd "$1"
tables="partitioned ${2:-}"

well() {
    last=$("$@" | tail -n 1)
    case $last in
        '{"program": '*"$groups"*'"check": "ok"}') ;;
        *) echo "$*: ends with '$last'" >&2; exit 1 ;;
    esac
}

for threads in 1 2 3 8; do
    for data in moving-cluster sequential zipf uniform; do
        for table in $tables; do
            groups='"groups": 400.0000'  # 40 records of each: all are there
            well ./group-median --threads $threads --records 16000 --groups 400 --data $data --table "$table"
            well ./group-count --threads $threads --records 16000 --groups 400 --data $data --table "$table"
            well ./group-median --threads $threads --records 16000 --groups 400 --data $data --table "$table" --input threads
            well ./group-count --threads $threads --records 16000 --groups 400 --data $data --table "$table" --input threads
            groups=
            well ./group-median --threads $threads --records 7 --groups 5000 --data $data --table "$table"
        done
    done
    groups=
    for rows in 1 3000; do
        well ./hash-join --threads $threads --rows $rows
        for index in art btree skip-list trie; do
            well ./index-join --threads $threads --rows $rows --index $index
        done
    done
done

# says PROGRAM OPTION NUMBER: what its --paper means.
says() {
    "./$1" --paper --help | grep -q -- "^  --$2 .*($3)\$" || { echo "$1 --paper: --$2 is not $3" >&2; exit 1; }
}
for name in group-median group-count; do
    says $name records 100000000
    says $name groups 1000000
done
for name in hash-join index-join; do
    says $name rows 16000000
    "./$name" --help | grep -q 'the large one has 16 times as many' || { echo "$name: probes are not named" >&2; exit 1; }
done

# refused STATUS WORDS PROGRAM ARGUMENTS...
refused() {
    expected=$1
    words=$2
    shift 2
    status=0
    said=$("$@" 2>&1) || status=$?
    case $status:$said in
        "$expected":*"$words"*) ;;
        *) echo "$*: status $status, said '$said'" >&2; exit 1 ;;
    esac
}
refused 2 "--data: 'zip' is unknown; accepted: moving-cluster|sequential|zipf|uniform" ./group-count --data zip
refused 2 "--index: '' is unknown" ./index-join --index ''
[ $# = 2 ] || refused 1 'libtbb-dev' ./group-count --table concurrent
