#!/bin/sh
# redis-server under redis-benchmark, saving in a child meanwhile, and its data after a restart.
. "$(dirname "$0")/common.sh"
need redis-server redis-benchmark redis-cli
cd "$folder" || exit 1
server=
cleanup() { [ -z "$server" ] || cli shutdown nosave now force > /dev/null 2>&1 || kill -9 "$server" 2>/dev/null; }
cli() { redis-cli -s "$folder/socket" "$@"; }

start() {
    preloaded redis-server --port 0 --unixsocket "$folder/socket" --dir "$folder" --save '' --appendonly no --io-threads 2 \
        --daemonize no --enable-debug-command yes > server.log 2>&1 &
    server=$!
    tries=0
    until [ "$(cli ping 2>/dev/null)" = PONG ]; do
        tries=$((tries + 1))
        kill -0 "$server" 2>/dev/null && [ $tries -lt 100 ] || { cat server.log; fail "the server does not answer"; }
        sleep 0.1
    done
    # Our own child is the shell that started it.
    require_mapped "$(cli info server | tr -d '\r' | sed -n 's/^process_id://p')"
}

stop() {
    cli shutdown "$1"
    wait "$server"
    status=$?
    server=
    [ $status -eq 0 ] || { tail server.log; fail "the server ended with $status"; }
}

start
for i in 1 2 3 4 5; do cli set "key$i" "value$i" > /dev/null; done
preloaded redis-benchmark -s "$folder/socket" -q -n 6000 -c 30 -d 200 -r 20000 -t set,get,incr,lpush,lpop,sadd,hset,zadd,lrange_100,mset \
    > benchmark 2> errors || { cat benchmark errors; fail "redis-benchmark"; }
[ "$(tr '\r' '\n' < benchmark | grep -c 'requests per second, p50')" -ge 10 ] || { cat benchmark; fail "not all was measured"; }
cli bgsave > /dev/null
preloaded redis-benchmark -s "$folder/socket" -q -n 6000 -c 30 -d 1000 -r 20000 -t set > /dev/null || fail "while saving"
sleep 1
cli info persistence | grep -q 'rdb_last_bgsave_status:ok' || fail "the child that saves failed"
size=$(cli dbsize)
digest=$(cli debug digest)
[ ${#digest} -eq 40 ] || fail "no digest: $digest"
stop save
start
[ "$(cli dbsize)" = "$size" ] || fail "$(cli dbsize) keys after the restart, not $size"
[ "$(cli debug digest)" = "$digest" ] || fail "other data after the restart"
for i in 1 2 3 4 5; do [ "$(cli get "key$i")" = "value$i" ] || fail "key$i"; done
cli flushall > /dev/null
stop nosave
grep -qiE 'crash|bug report|assert' server.log && { cat server.log; fail "the log speaks of a crash"; }
tr '\r' '\n' < benchmark | grep 'requests per second, p50' | head -3
