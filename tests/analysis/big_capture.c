/* Writes a large, regular capture for timing the analyses by hand:
 *     perfkit_big_capture FILE MILLIONS [THREADS]
 * About 80 % kernels, 10 % transfers, 5 % plain API calls, 4 % ranges, 1 % allocations; rows are
 * slightly out of order, as two streams and batched ingest leave them; `rollup` as ingest would
 * have written it. With THREADS the events are those of as many threads one after the other, each
 * with a loop in a range of its own: as many phases. Not a test by itself. */
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

#define STEP 2000

struct statements {
    sqlite3_stmt *kernel, *transfer, *call, *range, *allocation;
};

static struct statements prepare_all(sqlite3 *db)
{
    return (struct statements){
        .kernel = prepare(db, "INSERT INTO kernel(start, duration, stream, config, api_name, "
                              "api_lead, api_duration, thread, queue_delay) "
                              "VALUES(?,?,?,?,?,?,?,?,?)"),
        .transfer = prepare(db, "INSERT INTO transfer(start, duration, stream, bytes, kind, "
                                "api_name, api_lead, api_duration, thread) "
                                "VALUES(?,?,?,?,?,?,?,?,?)"),
        .call = prepare(db, "INSERT INTO api_call(start, duration, thread, name, source) "
                            "VALUES(?,?,?,?,1)"),
        .range = prepare(db, "INSERT INTO range(start, duration, thread, name, depth) "
                             "VALUES(?,?,?,?,?)"),
        .allocation = prepare(db, "INSERT INTO allocation(process, start, end, bytes, kind, "
                                  "thread) VALUES(1,?,?,?,3,1)"),
    };
}

static void write_regular(sqlite3 *db, const struct statements *to, long long total)
{
    size_t sum_count = (size_t)(total * STEP / 1000000000 + 2) * STREAMS * CONFIGS;
    struct sum *sums = calloc(sum_count, sizeof *sums);
    if (!sums)
        exit(1);
    unsigned seed = 1;
    for (long long i = 0; i < total; i++) {
        seed = seed * 1664525u + 1013904223u;
        long long noise = seed >> 20, thread = 1 + (i & 1); /* 0..4095 */
        long long t = 100000 + i * STEP + noise * 2;
        switch (i % 100) {
        case 0 ... 79:
            ROW(to->kernel, t, 1000 + noise % 1500, 1 + (i & 1), 1 + i % 100, 150, 8000 + noise,
                3000, thread, 5000 + noise);
            roll_up(&sums[((size_t)(t / 1000000000) * STREAMS + (size_t)(i & 1)) * CONFIGS +
                          (size_t)(i % 100)],
                    1000 + noise % 1500);
            break;
        case 80 ... 89:
            ROW(to->transfer, t, 1500 + noise, 1, 1 << (noise % 20), 1 + i % 2, 151, 9000, 4000,
                thread);
            break;
        case 90 ... 94:
            ROW(to->call, t, 700, thread, 160 + i % 7);
            break;
        case 95 ... 98:
            ROW(to->range, t - 180 * STEP, 150 * STEP, thread, 170 + i % 20, 0);
            break;
        default:
            ROW(to->allocation, t, t + 5000000, 1 << (noise % 20));
        }
    }
    write_rollup(db, sums, sum_count);
    free(sums);
}

/* A range, two kernels and two memcpys with their calls, five API calls that return at once, and a
 * synchronization. */
#define ITERATION_EVENTS 15
#define ITERATION_NS 100000
#define FIRST_THREAD 3 /* behind those of every capture; likewise the first name */
#define FIRST_NAME 201

static void write_iteration(const struct statements *to, long long t, long long thread)
{
    ROW(to->range, t, 90000, thread, FIRST_NAME + 1, 1);
    for (int i = 0; i < 5; i++)
        ROW(to->call, t + 1000 + i * 2000, 1000, thread, 160 + i);
    for (int i = 0; i < 2; i++) {
        ROW(to->transfer, t + 15000 + i * 50000, 3000, 1, 4096, 1 + i, 151, 5000, 4000, thread);
        ROW(to->kernel, t + 20000 + i * 20000, 15000, 1, 1 + i, 150, 10000, 5000, thread, 0);
    }
    ROW(to->call, t + 72000, 15000, thread, FIRST_NAME);
}

/* 5 ms from the begin of one thread to that of the next, or as long as its loop takes. */
static void write_threads(sqlite3 *db, const struct statements *to, long long total,
                          long long threads)
{
    long long count = total / threads / ITERATION_EVENTS, length = count * ITERATION_NS;
    long long apart = length < 4900000 ? 5000000 : length + 100000;
    char *sql =
        sqlite3_mprintf("INSERT INTO string(value) VALUES('cudaStreamSynchronize'), ('step');"
                        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %lld) "
                        "INSERT INTO string(value) SELECT 'worker_' || i FROM n;"
                        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %lld) "
                        "INSERT INTO thread(process, tid) SELECT 1, 101 + i FROM n;"
                        "UPDATE capture SET duration = %lld",
                        threads, threads, threads * apart + 1000000);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    for (long long k = 0; k < threads; k++) {
        long long begin = 1000000 + k * apart, thread = FIRST_THREAD + k;
        ROW(to->range, begin - 1000, length + 2000, thread, FIRST_NAME + 2 + k, 0);
        for (long long i = 0; i < count; i++)
            write_iteration(to, begin + i * ITERATION_NS, thread);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s FILE MILLIONS [THREADS]\n", argv[0]);
        return 2;
    }
    struct prof_error err = {0};
    struct prof_store *store;
    if (prof_store_create(argv[1], true, &store, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    long long total = (long long)(atof(argv[2]) * 1e6);
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
        total * STEP + 1000000);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    struct statements to = prepare_all(db);
    if (argc == 4)
        write_threads(db, &to, total, atoll(argv[3]));
    else
        write_regular(db, &to, total);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_finalize(to.kernel);
    sqlite3_finalize(to.transfer);
    sqlite3_finalize(to.call);
    sqlite3_finalize(to.range);
    sqlite3_finalize(to.allocation);
    enum prof_status status = prof_store_publish(store, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    prof_store_close(store);
    return status ? 1 : 0;
}
