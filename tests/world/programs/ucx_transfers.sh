#!/bin/sh
# Runs ucx_perftest between two processes, over shared memory and over TCP on the loopback interface. Needs no RDMA device.
listening() { grep -qi ":$(printf %04x "$PORT") 00000000:0000 0A" /proc/net/tcp; }
failed() {
    cat server.log client.log >&2
    kill $server 2>/dev/null
    exit 1
}
export UCX_NET_DEVICES=lo
for transport in posix,self tcp,self; do
    export UCX_TLS=$transport
    for test in tag_bw stream_bw ucp_put_bw ucp_am_bw ucp_get; do
        ucx_perftest -p "$PORT" > server.log 2>&1 &
        server=$!
        until listening; do
            kill -0 $server 2>/dev/null || failed
            sleep 0.1
        done
        ucx_perftest 127.0.0.1 -p "$PORT" -t $test -s 300000 -n 150 -w 10 -f -v > client.log 2>&1 || failed
        wait $server || failed
        tail -1 client.log | grep -q '^ *150,' || failed
        echo "$transport, $test: done"
    done
done
