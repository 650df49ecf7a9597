# tpch_cluster.sh DATA LINK: a PostgreSQL cluster with the tables of DATA, loaded once for each size, version and schema, and
# stopped. LINK names it. PostgreSQL refuses to run as root, so there it is the user postgres who makes it.
set -eu
source=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
data=$(readlink -f "$1")
folder=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
sum=$(cat "$source"/tpch_tables.sql "$source"/tpch_indexes.sql | cksum | cut -d' ' -f1)
cluster=$(dirname "$2")/cluster-$(basename "$data")-$(basename "$(dirname "$folder")")-$sum
ln -sfn "$(basename "$cluster")" "$2"
test ! -d "$cluster" || exit 0

# That user cannot look into the home of root.
work=$(mktemp -d "${TMPDIR:-/tmp}/numalloc-tpch-XXXXXX")
as=
if [ "$(id -u)" = 0 ]; then
    chown postgres "$work"
    as="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi
server=
stop() { test -z "$server" || { kill -INT "$server" && wait "$server"; server=; }; }
trap 'stop || :; rm -rf "$work"' EXIT
on() { psql -q -X -h "$work" -U bench -d postgres -v ON_ERROR_STOP=1 "$@"; }

cd "$work"
$as "$folder/initdb" -D "$work/data" -A trust -U bench --no-sync --locale=C --encoding=UTF8 >/dev/null
# A child, not pg_ctl's daemon: it ends with this script, however that ends.
$as "$folder/postgres" -D "$work/data" -k "$work" -c listen_addresses= -c fsync=off -c max_wal_size=4GB \
    -c maintenance_work_mem=256MB >log 2>&1 &
server=$!
until "$folder/pg_isready" -q -h "$work"; do
    kill -0 "$server" 2>/dev/null || { tail -n 1 log; exit 1; }
    sleep 0.1
done
on -f "$source/tpch_tables.sql"
for table in region nation supplier customer part partsupp orders lineitem; do
    on -c "\\copy $table from stdin csv header" <"$data/$table.csv"
done
on -f "$source/tpch_indexes.sql"
stop
mv "$work/data" "$cluster.$$"
mv "$cluster.$$" "$cluster"
