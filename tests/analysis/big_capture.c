/* Writes a large, regular capture for timing the analyses by hand:
 *     perfkit_big_capture FILE MILLIONS
 * About 80 % kernels, 10 % transfers, 5 % plain API calls, 4 % ranges, 1 % allocations; rows are
 * slightly out of order, as two streams and batched ingest leave them; `rollup` as ingest would
 * have written it. Not a test by itself. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/store/store.h"

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL)) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(db));
        exit(1);
    }
    return statement;
}

static void insert(sqlite3_stmt *statement, int count, const long long *values)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(statement, i + 1, values[i]);
    sqlite3_step(statement);
    sqlite3_reset(statement);
}

#define ROW(statement, ...)                                                                        \
    insert(statement, (int)(sizeof((long long[]){__VA_ARGS__}) / sizeof(long long)),               \
           (long long[]){__VA_ARGS__})

#define STREAMS 2
#define CONFIGS 100

struct sum {
    long long count, sum, min, max;
    uint32_t histogram[48];
};

static void roll_up(struct sum *s, long long duration)
{
    s->min = !s->count || duration < s->min ? duration : s->min;
    s->max = duration > s->max ? duration : s->max;
    s->count++;
    s->sum += duration;
    s->histogram[63 - __builtin_clzll((unsigned long long)duration | 1)]++;
}

static void write_rollup(sqlite3 *db, const struct sum *sums, size_t count)
{
    sqlite3_stmt *row =
        prepare(db, "INSERT INTO rollup(second, stream, config, count, sum, min, max, "
                    "histogram) VALUES(?,?,?,?,?,?,?,?)");
    for (size_t i = 0; i < count; i++) {
        if (!sums[i].count)
            continue;
        sqlite3_bind_blob(row, 8, sums[i].histogram, sizeof sums[i].histogram, SQLITE_STATIC);
        ROW(row, (long long)(i / (STREAMS * CONFIGS)), 1 + (long long)(i / CONFIGS % STREAMS),
            1 + (long long)(i % CONFIGS), sums[i].count, sums[i].sum, sums[i].min, sums[i].max);
    }
    sqlite3_finalize(row);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE MILLIONS\n", argv[0]);
        return 2;
    }
    struct prof_error err = {0};
    struct prof_store *store;
    if (prof_store_create(argv[1], true, &store, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    long long total = (long long)(atof(argv[2]) * 1e6), step = 2000;
    sqlite3 *db = prof_store_db(store);
    char *sql = sqlite3_mprintf(
        "INSERT INTO capture(state, command, duration) VALUES('complete', 'big', %lld);"
        "INSERT INTO process(pid, start, end_reason) VALUES(100, 0, 'exit');"
        "INSERT INTO thread(process, tid) VALUES(1, 100), (1, 101);"
        "INSERT INTO device(process, api, name) VALUES(1, 'cuda', 'gpu');"
        "INSERT INTO stream(process, device, api) VALUES(1, 1, 'cuda'), (1, 1, 'cuda');"
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
        "INSERT INTO string(value) SELECT 'name_' || i FROM n;"
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
        "INSERT INTO launch_config(name, grid_x, block_x) SELECT i, i, 256 FROM n; BEGIN",
        total * step + 1000000);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    sqlite3_stmt *kernel = prepare(db, "INSERT INTO kernel(start, duration, stream, config, "
                                       "api_name, api_lead, api_duration, thread, queue_delay) "
                                       "VALUES(?,?,?,?,?,?,?,?,?)");
    sqlite3_stmt *transfer = prepare(db, "INSERT INTO transfer(start, duration, stream, bytes, "
                                         "kind, api_name, api_lead, api_duration, thread) "
                                         "VALUES(?,?,?,?,?,?,?,?,?)");
    sqlite3_stmt *call = prepare(db, "INSERT INTO api_call(start, duration, thread, name, source) "
                                     "VALUES(?,?,?,?,1)");
    sqlite3_stmt *range = prepare(db, "INSERT INTO range(start, duration, thread, name, depth) "
                                      "VALUES(?,?,?,?,0)");
    sqlite3_stmt *allocation = prepare(db, "INSERT INTO allocation(process, start, end, bytes, "
                                           "kind, thread) VALUES(1,?,?,?,3,1)");
    size_t sum_count = (size_t)(total * step / 1000000000 + 2) * STREAMS * CONFIGS;
    struct sum *sums = calloc(sum_count, sizeof *sums);
    if (!sums)
        return 1;
    unsigned seed = 1;
    for (long long i = 0; i < total; i++) {
        seed = seed * 1664525u + 1013904223u;
        long long noise = seed >> 20, thread = 1 + (i & 1); /* 0..4095 */
        long long t = 100000 + i * step + noise * 2;
        switch (i % 100) {
        case 0 ... 79:
            ROW(kernel, t, 1000 + noise % 1500, 1 + (i & 1), 1 + i % 100, 150, 8000 + noise, 3000,
                thread, 5000 + noise);
            roll_up(&sums[((size_t)(t / 1000000000) * STREAMS + (size_t)(i & 1)) * CONFIGS +
                          (size_t)(i % 100)],
                    1000 + noise % 1500);
            break;
        case 80 ... 89:
            ROW(transfer, t, 1500 + noise, 1, 1 << (noise % 20), 1 + i % 2, 151, 9000, 4000,
                thread);
            break;
        case 90 ... 94:
            ROW(call, t, 700, thread, 160 + i % 7);
            break;
        case 95 ... 98:
            ROW(range, t - 180 * step, 150 * step, thread, 170 + i % 20);
            break;
        default:
            ROW(allocation, t, t + 5000000, 1 << (noise % 20));
        }
    }
    write_rollup(db, sums, sum_count);
    free(sums);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_finalize(kernel);
    sqlite3_finalize(transfer);
    sqlite3_finalize(call);
    sqlite3_finalize(range);
    sqlite3_finalize(allocation);
    enum prof_status status = prof_store_publish(store, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    prof_store_close(store);
    return status ? 1 : 0;
}
