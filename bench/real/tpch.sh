# tpch.sh FOLDER MEGABYTES [csv]: what the engines of TPC-H share, each made once: an environment with DuckDB and the
# generator; in FOLDER/MEGABYTES the tables (as csv too, for engines that read no Parquet) and DuckDB's answers, under no
# allocator.
set -eu
source=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
scale=$(awk "BEGIN { print $2 / 1000 }")
mkdir -p "$1" && cd "$1"
test -e venv/done || {
    rm -rf venv
    python3 -m venv venv
    venv/bin/pip install -q --disable-pip-version-check duckdb==1.5.6 tpchgen-cli==4.0.0
    touch venv/done
}
for format in parquet ${3:-}; do
    test -e "$2/$format.done" || {
        venv/bin/tpchgen-cli "$format" -s "$scale" --output-dir "$2" >made 2>&1 || { cat made; exit 1; }
        touch "$2/$format.done"
    }
done
answers=answers-$(cat "$source/tpch.sql" "$source/tpch_shared.py" | cksum | cut -d' ' -f1).json
test -e "$2/$answers" || venv/bin/python -s "$source/tpch.py" "$2" "$source/tpch.sql" 2 "$2/$answers" >made || { cat made; exit 1; }
ln -sfn "$answers" "$2/answers"
