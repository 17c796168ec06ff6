/* Fixture captures; see fixture.h. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libprof/store/store.h"
#include "tests/analysis/fixture.h"

static char kept[64];

static const char base[] =
    "INSERT INTO capture(state, command, host, duration) "
    "VALUES('complete', './a.out', 'box', 1000000);"
    "INSERT INTO process(pid, command, birth, start, \"end\", end_reason, exit_status, spool) "
    "VALUES(100, './a.out', 'start', 0, 1000000, 'exit', 0, '100-1');"
    "INSERT INTO thread(process, tid, name) VALUES(1, 100, 'main'), (1, 101, NULL);"
    "INSERT INTO device(process, api, ordinal, name, uuid, kind, units) "
    "VALUES(1, 'cuda', 0, 'GPU', 'GPU-1', 'gpu', 132);"
    "INSERT INTO context(process, device, api, native) VALUES(1, 1, 'cuda', 1);"
    "INSERT INTO stream(process, device, context, api, native) "
    "VALUES(1, 1, 1, 'cuda', 7), (1, 1, 1, 'cuda', 13);"
    "INSERT INTO string(value) VALUES('alpha'), ('beta'), ('gamma'), ('delta'), ('epsilon'), "
    "('zeta'), ('eta'), ('theta'), ('iota');"
    "INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z) "
    "VALUES(1, 4, 1, 1, 256, 1, 1), (1, 8, 1, 1, 256, 1, 1), (2, 1, 1, 1, NULL, NULL, NULL);";

static void run(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sql && sqlite3_exec(db, sql, NULL, NULL, &message))
        ck_abort_msg("%s", message);
}

static struct prof_capture *make(const char *first, const char *second, bool keep)
{
    struct prof_store *store;
    struct prof_capture *capture;
    struct prof_error err = {0};
    snprintf(kept, sizeof kept, "/tmp/check_analysis.%ld.sqlite", (long)getpid());
    ck_assert_msg(!prof_store_create(kept, true, &store, &err), "%s", err.message);
    /* Calls are classed by their names, as those of earlier captures. */
    run(prof_store_db(store), "ALTER TABLE api_call DROP COLUMN class");
    run(prof_store_db(store), "BEGIN");
    run(prof_store_db(store), first);
    run(prof_store_db(store), second);
    run(prof_store_db(store), "COMMIT");
    if (!keep)
        ck_assert_msg(!prof_store_publish(store, &err), "%s", err.message);
    ck_assert_msg(!prof_open(kept, &capture, &err), "%s", err.message);
    prof_store_close(store);
    if (!keep)
        unlink(kept);
    return capture;
}

struct prof_capture *fixture(const char *sql)
{
    return make(sql, NULL, false);
}

struct prof_capture *fixture_with_base(const char *sql)
{
    return make(base, sql, false);
}

struct prof_capture *fixture_kept(const char *sql)
{
    return make(base, sql, true);
}

void fixture_write(const char *sql)
{
    struct prof_store *store;
    struct prof_error err = {0};
    ck_assert_msg(!prof_store_reopen(kept, &store, &err), "%s", err.message);
    run(prof_store_db(store), sql);
    prof_store_close(store);
}

void fixture_remove(struct prof_capture *capture)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    prof_close(capture);
    for (int i = 0; i < 3; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s", kept, suffixes[i]);
        unlink(name);
    }
}
