#!/bin/sh
# postgres_nodes.sh FOLDER BIN SECONDS: PostgreSQL on the cluster in FOLDER, loaded by eight clients, and a child of a backend.
# PostgreSQL refuses root, and the machine has no other user.
as_user="setpriv --reuid 65534 --regid 65534 --clear-groups"
chown -R 65534:65534 "$1"
$as_user "$2/postgres" -D "$1" -k "$1" -c listen_addresses= -c fsync=off -c max_parallel_workers=0 >"$1/log" 2>&1 &
server=$!
until "$2/pg_isready" -q -h "$1"; do
    kill -0 $server || { cat "$1/log"; exit 1; }
    sleep 0.3
done
"$2/pgbench" -h "$1" -U postgres -i -q postgres 2>/dev/null
echo "select count(abalance) from (select * from pgbench_accounts order by filler, aid desc limit 20000) sorted" >"$1/query"
echo begin clients
"$2/pgbench" -h "$1" -U postgres -n -f "$1/query" -c 8 -T "$3" postgres >"$1/pgbench" 2>&1 || cat "$1/pgbench"
echo end
"$2/psql" -h "$1" -U postgres -At postgres -c "create temp table masks (line text)" \
    -c "copy masks from program 'grep Cpus_allowed_list /proc/self/status' (delimiter ';')" -c "table masks"
kill -TERM $server
wait $server
