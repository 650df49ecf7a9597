/* sqlite-threads: THREADS THINGS DATABASE
 *
 * What SQLite's own threadtest3 does: threads of one process, each with a connection of its own, write, read and
 * check a database in WAL mode at the same time. Every second thread inserts rows of random blobs in transactions;
 * the others read, sort and sum what is there. Prints the seconds, and "rows N good" once the sums agree. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IN_A_TRANSACTION = 50, PATIENCE_MS = 60000 };

static int each;
static const char *path;

static void must(sqlite3 *db, int got, const char *what) {
    if (got == SQLITE_OK || got == SQLITE_DONE || got == SQLITE_ROW) return;
    fprintf(stderr, "sqlite-threads: %s: %s\n", what, sqlite3_errmsg(db));
    exit(1);
}

static sqlite3 *opened(void) {
    sqlite3 *db = NULL;
    must(db, sqlite3_open(path, &db), "open");
    sqlite3_busy_timeout(db, PATIENCE_MS);
    must(db, sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF", NULL, NULL, NULL), "pragma");
    return db;
}

static void *write_rows(void *number) {
    const long me = (long)number;
    sqlite3 *db = opened();
    sqlite3_stmt *insert;
    must(db, sqlite3_prepare_v2(db, "INSERT INTO t(writer, k, blob) VALUES (?, ?, ?)", -1, &insert, NULL), "prepare");
    unsigned seed = (unsigned)me * 7919u + 1u;
    for (int i = 0; i < each; i++) {
        if (i % IN_A_TRANSACTION == 0) must(db, sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), "begin");
        const int bytes = 10 + rand_r(&seed) % 990;
        char *blob = malloc((size_t)bytes);
        if (blob == NULL) exit(1);
        memset(blob, bytes % 251, (size_t)bytes);
        sqlite3_bind_int64(insert, 1, me);
        sqlite3_bind_int(insert, 2, rand_r(&seed) % 5000);
        sqlite3_bind_blob(insert, 3, blob, bytes, free);
        must(db, sqlite3_step(insert), "insert");
        must(db, sqlite3_reset(insert), "reset");
        if (i % IN_A_TRANSACTION == IN_A_TRANSACTION - 1 || i == each - 1)
            must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), "commit");
    }
    sqlite3_finalize(insert);
    sqlite3_close(db);
    return NULL;
}

static void *read_rows(void *number) {
    sqlite3 *db = opened();
    unsigned seed = (unsigned)(long)number + 1u;
    for (int i = 0; i < each / 10; i++) {
        sqlite3_stmt *look;
        must(db,
             sqlite3_prepare_v2(db, "SELECT k, hex(blob) FROM t WHERE k BETWEEN ? AND ?1 + 20 ORDER BY k, length(blob)",
                                -1, &look, NULL),
             "prepare");
        sqlite3_bind_int(look, 1, rand_r(&seed) % 5000);
        int got, last = -1;
        while ((got = sqlite3_step(look)) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(look, 1);
            const int bytes = sqlite3_column_bytes(look, 1) / 2;
            char wanted[3];
            snprintf(wanted, sizeof wanted, "%02X", bytes % 251);
            if (sqlite3_column_int(look, 0) < last || strncmp(text, wanted, 2) != 0) {
                fputs("sqlite-threads: a row is not what was written\n", stderr);
                exit(1);
            }
            last = sqlite3_column_int(look, 0);
        }
        must(db, got, "read");
        sqlite3_finalize(look);
    }
    sqlite3_close(db);
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **words) {
    if (count != 4) {
        fputs("usage: sqlite-threads THREADS ROWS DATABASE\n", stderr);
        return 2;
    }
    const int threads = atoi(words[1]), writers = (threads + 1) / 2;
    each = (atoi(words[2]) + writers - 1) / writers;
    path = words[3];
    sqlite3 *db = opened();
    must(db,
         sqlite3_exec(db,
                      "CREATE TABLE t(id INTEGER PRIMARY KEY, writer INT, k INT, blob BLOB); CREATE INDEX by_k ON t(k)",
                      NULL, NULL, NULL),
         "create");
    pthread_t *team = malloc(sizeof *team * (size_t)threads);
    const double begun = now();
    for (long i = 0; i < threads; i++)
        if (pthread_create(&team[i], NULL, i % 2 == 0 ? write_rows : read_rows, (void *)i) != 0) return 1;
    for (int i = 0; i < threads; i++) pthread_join(team[i], NULL);
    const double seconds = now() - begun;
    free(team);
    sqlite3_stmt *sums;
    must(db,
         sqlite3_prepare_v2(
             db, "SELECT count(*), count(DISTINCT writer), (SELECT integrity_check FROM pragma_integrity_check) FROM t",
             -1, &sums, NULL),
         "sums");
    must(db, sqlite3_step(sums), "sums");
    const int rows = sqlite3_column_int(sums, 0);
    const int good = rows == each * writers && sqlite3_column_int(sums, 1) == writers &&
                     strcmp((const char *)sqlite3_column_text(sums, 2), "ok") == 0;
    sqlite3_finalize(sums);
    sqlite3_close(db);
    printf("seconds %.6f\nrows %d %s\n", seconds, rows, good ? "good" : "bad");
    return good ? 0 : 1;
}
