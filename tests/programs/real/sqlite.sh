#!/bin/sh
# sqlite3: a database of 60,000 rows made, indexed, queried, changed and checked.
. "$(dirname "$0")/common.sh"
need sqlite3
cd "$folder" || exit 1
cat > work.sql <<'END'
PRAGMA journal_mode = WAL;
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, amount INT, body BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
    INSERT INTO t SELECT i, printf('name %d', (i * 7919) % 100003), (i * 31) % 1009, zeroblob(i % 200) FROM n;
CREATE INDEX by_name ON t(name);
CREATE INDEX by_amount ON t(amount, name);
SELECT count(*), sum(amount), sum(length(body)) FROM t;
UPDATE t SET name = name || name WHERE amount < 200;
DELETE FROM t WHERE amount BETWEEN 500 AND 600;
SELECT amount, count(*), max(name) FROM t GROUP BY amount ORDER BY 2 DESC, 1 LIMIT 20;
SELECT count(*) FROM t a JOIN t b ON a.name = b.name AND a.id <> b.id;
SELECT json_group_array(json_object('a', amount, 'n', name)) FROM (SELECT * FROM t ORDER BY id LIMIT 500);
VACUUM;
PRAGMA integrity_check;
END
sqlite3 expected.db < work.sql > expected || fail "sqlite3 without the library"
watched sqlite3 got.db < work.sql > got 2> errors || { cat errors; fail "sqlite3 ended badly"; }
silent errors
cmp got expected || fail "other results"
grep -qx ok got || fail "integrity"
require_processes 1
echo "sqlite3: $(wc -l < got) lines as without the library"
