# tpch_server.sh CLUSTER SOCKETS THREADS: becomes the newest PostgreSQL that is installed. Without its compiler, whose time would
# be a large part of what a small scale takes; with memory for hash tables and sorts, and as many parallel workers as threads.
set -eu
folder=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
exec "$folder/postgres" -D "$1" -k "$2" -c listen_addresses= -c fsync=off -c synchronous_commit=off -c autovacuum=off -c jit=off \
    -c shared_buffers=256MB -c work_mem=64MB -c max_worker_processes=$(($3 + 8)) -c max_parallel_workers="$3" \
    -c max_parallel_workers_per_gather="$3"
