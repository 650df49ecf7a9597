answers() { [ "$(redis-cli -s socket ping)" = PONG ]; }
serve
await answers
benchmark >rates
[ "$(grep -c '^"' rates)" -ge 10 ] || fail "redis-benchmark measured nothing"
value=$(seq 100 | tr '\n' ' ')
redis-cli -s socket set check "$value" >set
[ "$(redis-cli -s socket get check)" = "$value" ] || fail "redis returned a wrong value"
redis-cli -s socket shutdown nosave
ended
