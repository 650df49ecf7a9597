# Goes before each script here. PRELOAD is for what is measured alone; it ends by itself and then says where its pages
# lay, in the file `pages`.
set -eu
folder=/tmp/real
[ ! -f $folder/pid ] || kill -9 "$(cat $folder/pid)" 2>/dev/null || true # one that was stopped for its time
rm -rf $folder
mkdir $folder
cd $folder

fail() {
    echo "$*" >&2
    exit 1
}
measured() { # COMMAND...
    LD_PRELOAD=$PRELOAD WATCH_PAGES_TO=$folder/pages "$@" &
    server=$!
    echo $server >pid
}
await() { # COMMAND...: until it succeeds
    until "$@" >/dev/null 2>&1; do
        kill -0 $server 2>/dev/null || fail "it did not stay"
        sleep 0.2
    done
}
ended() { # its status must be 0
    status=0
    wait $server || status=$?
    rm pid
    [ $status = 0 ] || fail "it ended with status $status"
    cat pages
}
