answers() { [ "$(redis-cli -s socket ping)" = PONG ]; }
measured redis-server --port 0 --unixsocket $folder/socket --save "" --appendonly no --io-threads "$THREADS" --logfile log
await answers
redis-benchmark -s socket -n "$AMOUNT" -c 50 -P 16 -d 128 -r $((AMOUNT / 2)) \
    -t set,get,incr,lpush,lpop,sadd,hset,zadd,mset --csv >rates
[ "$(grep -c '^"' rates)" -ge 10 ] || fail "redis-benchmark measured nothing"
value=$(seq 100 | tr '\n' ' ')
redis-cli -s socket set check "$value" >set
[ "$(redis-cli -s socket get check)" = "$value" ] || fail "redis gave back another value than it was given"
redis-cli -s socket shutdown nosave
ended
