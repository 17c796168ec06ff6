/* See rank_fixture.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/analysis/rank_fixture.h"

static const char base[] =
    "INSERT INTO capture(state, command, host, duration) VALUES('merged', 'x', 'box', 100000000);"
    "INSERT INTO string(value) VALUES('gemm'), ('ncclDevKernel_AllReduce_Sum_f32_RING_LL'), "
    "('ncclDevKernel_SendRecv'), ('NCCL'), ('ncclAllReduce'), ('ncclGroupStart'), "
    "('ncclGroupEnd'), "
    "('ncclSend'), ('ncclRecv'), ('ncclCommInitRank'), ('step'), ('perfkit.collective'), "
    "('all_reduce'), ('MPI_Barrier'), ('NCCL communicator ID'), ('Message size [bytes]'), "
    "('Peer rank'), ('No. of ranks'), ('Rank'), ('Reduction operation'), ('CUDA device'), "
    "('extra');"
    "INSERT INTO launch_config(name, grid_x, block_x) VALUES(1, 1, 32), (2, 1, 32), (3, 1, 32), "
    "(22, 1, 32);";

static char *sql;
static size_t sql_bytes;
static FILE *sql_file;
static int ranges;

void scene_begin(void)
{
    sql_file = open_memstream(&sql, &sql_bytes);
    fputs(base, sql_file);
    ranges = 0;
}

void scene_add(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(sql_file, format, list);
    va_end(list);
    fputs(";\n", sql_file);
}

struct prof_capture *scene_made(void)
{
    fclose(sql_file);
    struct prof_capture *capture = fixture(sql);
    free(sql);
    return capture;
}

void scene_process(int r, const char *rank)
{
    scene_add(
        "INSERT INTO process(id, pid, rank, world_size, spool) VALUES(%d, %d, %s, 4 + 0 * %s, 's')",
        r + 1, 100 + r, rank, rank);
    scene_add("INSERT INTO thread(id, process, tid) VALUES(%d, %d, %d)", r + 1, r + 1, 100 + r);
    scene_add("INSERT INTO device(id, process, api, ordinal, name, uuid, kind) VALUES(%d, %d, "
              "'cuda', %d, "
              "'GPU', 'GPU-%d', 'gpu')",
              r + 1, r + 1, r, r);
    scene_add("INSERT INTO context(id, process, device, api) VALUES(%d, %d, %d, 'cuda')", r + 1,
              r + 1, r + 1);
    for (int s = 1; s <= 2; s++)
        scene_add(
            "INSERT INTO stream(id, process, device, context, api) VALUES(%d, %d, %d, %d, 'cuda')",
            2 * r + s, r + 1, r + 1, r + 1);
}

void scene_kernel(int r, int config, long call, long start, long end)
{
    scene_add("INSERT INTO kernel(start, duration, stream, config, api_lead, api_duration, thread) "
              "VALUES(%ld, %ld, %d, %d, %ld, 1000, %d)",
              start * US, (end - start) * US,
              2 * r + (config == GEMM_CONFIG || config == EXTRA_CONFIG ? 1 : 2), config,
              (start - call) * US, r + 1);
}

int scene_range(int r, int name, int domain, long start, long end)
{
    scene_add("INSERT INTO range(id, start, duration, thread, name, domain, depth) VALUES(%d, %ld, "
              "%ld, %d, "
              "%d, nullif(%d, 0), 0)",
              ++ranges, start * US, (end - start) * US, r + 1, name, domain);
    return ranges;
}

void scene_field(int of, int name, long long value)
{
    scene_add("INSERT INTO range_field(range, name, value) VALUES(%d, %d, %lld)", of, name, value);
}

void scene_all_reduce(int r, long at, long long communicator, long long bytes)
{
    int call = scene_range(r, NCCL_ALL_REDUCE, NCCL, at, at + 5);
    if (communicator)
        scene_field(call, F_COMMUNICATOR, communicator);
    scene_field(call, F_BYTES, bytes);
    scene_add("INSERT INTO range_field(range, name, value) VALUES(%d, %d, 'Sum')", call,
              F_REDUCTION);
}

void scene_rank(int r)
{
    char number[16];
    snprintf(number, sizeof number, "%d", r);
    scene_process(r, number);
}

void scene_comm_init(int r, long long communicator, int ranks)
{
    int call = scene_range(r, INIT, NCCL, 1, 2);
    if (communicator)
        scene_field(call, F_COMMUNICATOR, communicator);
    scene_field(call, F_RANKS, ranks);
    scene_field(call, F_RANK, r);
    scene_field(call, F_DEVICE, r);
}

void scene_training(int count, const long *work, const long *idle, long long communicator)
{
    long last = 0;
    scene_begin();
    for (int r = 0; r < count; r++)
        last = work[r] + idle[r] > last ? work[r] + idle[r] : last;
    for (int r = 0; r < count; r++) {
        scene_rank(r);
        scene_comm_init(r, communicator, count);
        for (long step = 0; step < STEPS; step++) {
            long at = 1000 * (step + 1), arrival = at + 10 + idle[r] + work[r];
            scene_range(r, STEP, 0, at, at + 1000);
            scene_kernel(r, GEMM_CONFIG, at + 1, at + 10 + idle[r], arrival);
            scene_all_reduce(r, at + 3, communicator, 8 * MEBI);
            scene_kernel(r, ALL_REDUCE_CONFIG, at + 4, arrival, at + 10 + last + 100);
        }
    }
}

void scene_pairs(long slow_us)
{
    scene_begin();
    for (int r = 0; r < 6; r++) {
        int pair = r / 2;
        scene_rank(r);
        scene_comm_init(r, 1000 + pair, 2);
        for (int i = 0; i < 4; i++) {
            long at = 1000 * i;
            scene_all_reduce(r, at + 100, 1000 + pair, 8 * MEBI);
            scene_kernel(r, ALL_REDUCE_CONFIG, at + 101, at + 110,
                         at + 110 + (pair == 1 ? slow_us : 100));
        }
    }
}

const struct prof_ranks *ranks_of(struct prof_capture *capture)
{
    static struct prof_ranks result;
    struct prof_filter all = {.skips = true}; /* the first iterations too */
    ck_ok(prof_ranks(capture, &all, &result, &err));
    return &result;
}

void ranks_done(struct prof_capture *capture, const struct prof_ranks *ranks)
{
    prof_ranks_free((struct prof_ranks *)(uintptr_t)ranks);
    prof_close(capture);
}
