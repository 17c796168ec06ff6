/* See scene.h. The rollup is kept as ingest keeps it: a row of a second is written again while the
 * second is young. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tui/scene.h"

static const char base[] =
    "INSERT INTO capture(state, command, host, start_mono_ns, spool) "
    "VALUES('recording', './train --steps 7', 'box', 1000, '/nowhere');"
    "INSERT INTO process(pid, command, birth, start, spool, rank, world_size) "
    "VALUES(100, './train', 'start', 0, '100-1', 0, 2), "
    "(101, './train', 'fork', 0, '101-1', 1, 2);"
    "INSERT INTO thread(process, tid, name) VALUES(1, 100, 'main'), (2, 101, NULL);"
    "INSERT INTO device(process, api, ordinal, name, uuid, kind, units, warp, compute_major, "
    "compute_minor, registers_per_unit, max_threads_per_unit, shared_per_unit_bytes) VALUES"
    "(1, 'cuda', 0, 'GPU', 'GPU-1', 'gpu', 132, 32, 9, 0, 65536, 2048, 233472),"
    "(2, 'cuda', 0, 'GPU', 'GPU-1', 'gpu', 132, 32, 9, 0, 65536, 2048, 233472);"
    "INSERT INTO context(process, device, api, native) VALUES(1, 1, 'cuda', 1), (2, 2, 'cuda', 1);"
    "INSERT INTO stream(process, device, context, api, native, name) "
    "VALUES(1, 1, 1, 'cuda', 7, 'compute'), (1, 1, 1, 'cuda', 13, NULL), (2, 2, 2, 'cuda', 7, "
    "NULL);"
    "INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
    "shared_static, shared_dynamic) "
    "VALUES(1, 4, 1, 1, 256, 1, 1, 32, 0, 0), (1, 8, 2, 1, 256, 1, 1, 32, 0, 0), "
    "(2, 1000, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL), (3, 1, 1, 1, 32, 1, 1, 255, 0, 0);";

void scene_sql(struct scene *scene, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(prof_store_db(scene->store), sql, NULL, NULL, &message))
        ck_abort_msg("%s", message);
}

static sqlite3_stmt *prepare(struct scene *scene, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    ck_assert_msg(!sqlite3_prepare_v2(prof_store_db(scene->store), sql, -1, &statement, NULL), "%s",
                  sqlite3_errmsg(prof_store_db(scene->store)));
    return statement;
}

void scene_make(struct scene *scene, const char *name)
{
    struct prof_error err = {0};
    snprintf(scene->path, sizeof scene->path, "/tmp/perfkit_tui_%s.%ld.sqlite", name,
             (long)getpid());
    ck_assert_msg(!prof_store_create(scene->path, true, &scene->store, &err), "%s", err.message);
    sqlite3_stmt *text = prepare(scene, "INSERT INTO string(value) VALUES(?1)");
    static const char *const texts[] = {"alpha", "beta", SCENE_HOSTILE, "step"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sqlite3_bind_text(text, 1, texts[i], -1, SQLITE_STATIC);
        sqlite3_step(text);
        sqlite3_reset(text);
    }
    sqlite3_finalize(text);
    scene_sql(scene, base);
}

static void roll_up(struct scene *scene, int64_t second, int64_t duration, int stream, int config)
{
    uint32_t histogram[48] = {0};
    int64_t id = 0;
    sqlite3_stmt *row = prepare(scene, "SELECT id, histogram FROM rollup WHERE second = ?1 AND "
                                       "stream = ?2 AND config = ?3");
    sqlite3_bind_int64(row, 1, second);
    sqlite3_bind_int(row, 2, stream);
    sqlite3_bind_int(row, 3, config);
    if (sqlite3_step(row) == SQLITE_ROW) {
        id = sqlite3_column_int64(row, 0);
        memcpy(histogram, sqlite3_column_blob(row, 1), (size_t)sqlite3_column_bytes(row, 1));
    }
    sqlite3_finalize(row);
    histogram[duration ? 63 - __builtin_clzll((uint64_t)duration) : 0]++;
    row =
        prepare(scene, id ? "UPDATE rollup SET count = count + 1, sum = sum + ?4, min = min(min, "
                            "?4), max = max(max, ?4), histogram = ?5 WHERE second = ?1 AND stream "
                            "= ?2 AND config = ?3"
                          : "INSERT INTO rollup(second, stream, config, count, sum, min, max, "
                            "histogram) VALUES(?1, ?2, ?3, 1, ?4, ?4, ?4, ?5)");
    sqlite3_bind_int64(row, 1, second);
    sqlite3_bind_int(row, 2, stream);
    sqlite3_bind_int(row, 3, config);
    sqlite3_bind_int64(row, 4, duration);
    sqlite3_bind_blob(row, 5, histogram, sizeof histogram, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_DONE);
    sqlite3_finalize(row);
}

void scene_kernel(struct scene *scene, int64_t start, int64_t duration, int stream, int config,
                  bool rollup)
{
    sqlite3_stmt *row =
        prepare(scene, "INSERT INTO kernel(start, duration, stream, config, thread, "
                       "api_lead, api_duration) VALUES(?1, ?2, ?3, ?4, ?5, 5000, 3000)");
    sqlite3_bind_int64(row, 1, start);
    sqlite3_bind_int64(row, 2, duration);
    sqlite3_bind_int(row, 3, stream);
    sqlite3_bind_int(row, 4, config);
    sqlite3_bind_int(row, 5, stream == 3 ? 2 : 1);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_DONE);
    sqlite3_finalize(row);
    if (rollup)
        roll_up(scene, start / 1000000000, duration, stream, config);
}

void scene_second(struct scene *scene, int second, bool rollup)
{
    int64_t at = (int64_t)second * 1000000000;
    char sql[1200];
    scene_sql(scene, "BEGIN");
    for (int i = 0; i < 20 + second; i++)
        scene_kernel(scene, at + (int64_t)i * 8000000, 100000 + 1000 * ((i * 7 + second) % 50),
                     1 + i % 3, i == 3 ? 4 : 1 + i % 3, rollup);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO range(start, duration, thread, name, depth) VALUES(%lld, 900000000, 1, 4, 0);"
        "INSERT INTO transfer(start, duration, stream, bytes, kind, source_kind, target_kind, "
        "thread, api_lead) VALUES"
        "(%lld, 50000, 1, %d, 1, 1, 3, 1, 100), (%lld, 80000, 2, 1048576, 2, 3, 2, 1, 100), "
        "(%lld, %s, 2, 4096, 2, 3, 2, 1, 100);" /* the first is never seen to end */
        "INSERT INTO memset(start, duration, stream, bytes, memory_kind) "
        "VALUES(%lld, 2000, 3, 65536, 3);"
        "INSERT INTO allocation(process, start, bytes, kind, thread) VALUES"
        "(1, %lld, %d, 3, 1), (2, %lld, 5000, 2, 2);"
        "UPDATE allocation SET \"end\" = %lld WHERE id = %d;"
        "COMMIT",
        (long long)at, (long long)at + 1000, 2048 * (second + 1), (long long)at + 2000,
        (long long)at + 3000, second ? "3000" : "NULL", (long long)at + 4000, (long long)at + 10,
        1000000 * (second + 1), (long long)at + 20, (long long)at + 500000000,
        second > 2 ? 2 * second - 3 : 0);
    scene_sql(scene, sql);
}

void scene_state(struct scene *scene, const char *state, int64_t duration)
{
    char sql[256];
    if (duration)
        snprintf(sql, sizeof sql,
                 "UPDATE capture SET state = '%s', duration = %lld, spool = NULL; "
                 "UPDATE process SET \"end\" = %lld, end_reason = 'exit', exit_status = 0",
                 state, (long long)duration, (long long)duration);
    else
        snprintf(sql, sizeof sql, "UPDATE capture SET state = '%s'", state);
    scene_sql(scene, sql);
}

void scene_publish(struct scene *scene)
{
    struct prof_error err = {0};
    ck_assert_msg(!prof_store_publish(scene->store, &err), "%s", err.message);
    prof_store_close(scene->store);
    scene->store = NULL;
}

void scene_remove(struct scene *scene)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    prof_store_close(scene->store);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[200];
        snprintf(name, sizeof name, "%s%s", scene->path, suffixes[i]);
        unlink(name);
    }
}
