answers() { printf 'version\r\nquit\r\n' | nc 127.0.0.1 11211 | grep -q VERSION; }
measured memcached -l 127.0.0.1 -p 11211 -U 0 -t "$THREADS" -m 1024 -u root
await answers
for one in 1 2 3 4; do
    awk -v one=$one -v items="$AMOUNT" 'BEGIN {
        for (i = 0; i < items; i++) {
            bytes = 10 + i * 7919 % 1991
            value = sprintf("%" bytes "s", "")
            gsub(/ /, sprintf("%c", 97 + i % 26), value)
            printf "set %d-%d 0 0 %d\r\n%s\r\n", one, i, bytes, value > "set" one
            printf "get %d-%d\r\n", one, i > "get" one
            printf "VALUE %d-%d 0 %d\r\n%s\r\nEND\r\n", one, i, bytes, value > "wanted" one
        }
        printf "quit\r\n" > "set" one
        printf "quit\r\n" > "get" one
    }'
done
clients=
for one in 1 2 3 4; do
    (nc 127.0.0.1 11211 <set$one >stored$one && nc 127.0.0.1 11211 <get$one >got$one) &
    clients="$clients $!"
done
wait $clients
for one in 1 2 3 4; do
    [ "$(grep -c '^STORED' stored$one)" = "$AMOUNT" ] || fail "memcached did not store what it was sent"
    cmp got$one wanted$one || fail "memcached returned a wrong value"
done
kill $server
ended
