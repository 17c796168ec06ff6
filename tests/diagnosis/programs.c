/* See programs.h. Each is a few lines of what a program does in a step, in its three versions; the
 * table at the end says which rule must speak on the first. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

#define MIB (INT64_C(1) << 20)
#define MS INT64_C(1000000)

#define PARTS 12
static int k[PARTS]; /* launch configurations, by the program's setup */

static void big_kernel(struct scene *s, enum version which)
{
    (void)which;
    k[0] = scene_config(s, "work", 13200, 256, 32);
}

static void copy_pageable(struct scene *s, enum version which, int number)
{
    (void)number;
    bool pinned = which == FIXED;
    int64_t bytes = which == NEAR ? 1024 : 16 * MIB;
    int64_t ns = which == NEAR ? 1 * US : pinned ? 300 * US : 2700 * US;
    scene_copy(s, 0, SCENE_UP, pinned ? SCENE_PINNED : SCENE_PAGEABLE, bytes, ns, false);
    if (!pinned)
        scene_host(s, ns); /* the driver stages it */
    scene_kernel(s, 0, k[0], 400 * US);
    scene_sync(s);
}

static void copy_blocking(struct scene *s, enum version which, int number)
{
    (void)number;
    int64_t bytes = 4 * MIB;
    int copies = which == NEAR ? 1 : 4;
    for (int i = 0; i < copies; i++) {
        scene_copy(s, which == FIXED, SCENE_UP, SCENE_PINNED, bytes, 160 * US, which != FIXED);
        scene_kernel(s, 0, k[0], 200 * US);
    }
    if (which != NEAR)
        scene_sync(s);
}

/* Copies that return at once, each with a wait behind it; the near miss waits for its kernels. */
static void copy_and_wait(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    for (int i = 0; i < 4; i++) {
        scene_copy(s, which == FIXED, SCENE_UP, SCENE_PINNED, 4 * MIB, 160 * US, false);
        if (which == BAD)
            scene_sync(s);
        scene_kernel(s, 0, k[0], 200 * US);
        if (which == NEAR)
            scene_sync(s);
    }
    scene_sync(s);
    scene_pop(s);
}

static void copy_serial(struct scene *s, enum version which, int number)
{
    (void)number;
    int64_t bytes = which == NEAR ? 65536 : 16 * MIB, ns = which == NEAR ? 4 * US : 600 * US;
    int copy_stream = which == FIXED;
    for (int i = 0; i < 4; i++) {
        scene_copy(s, copy_stream, SCENE_UP, SCENE_PINNED, bytes / 4, ns / 4, false);
        scene_kernel(s, 0, k[0], 200 * US);
    }
    if (number % 8 == 7)
        scene_sync(s);
}

/* The host prepares, copies, computes and waits; mended, it prepares and copies the next batch
 * meanwhile. `host_ns` of preparing are more or less than the copy. */
static void feed(struct scene *s, enum version which, int number, int64_t host_ns)
{
    scene_host(s, host_ns);
    scene_copy(s, which == FIXED, SCENE_UP, SCENE_PINNED, which == NEAR ? 4096 : 16 * MIB,
               which == NEAR ? 1 * US : 300 * US, false);
    scene_kernel(s, 0, k[0], 200 * US);
    if (which != FIXED || number == STEPS - 1)
        scene_sync(s);
}

static void feed_from_disk(struct scene *s, enum version which, int number)
{
    feed(s, which, number, 900 * US);
}

static void feed_from_memory(struct scene *s, enum version which, int number)
{
    feed(s, which, number, 60 * US);
}

static void copy_small(struct scene *s, enum version which, int number)
{
    (void)number;
    int copies = which == BAD ? 100 : which == FIXED ? 1 : 2;
    for (int i = 0; i < copies; i++)
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, which == FIXED ? 102400 : 1024,
                   which == FIXED ? 6 * US : 2 * US, false);
    scene_kernel(s, 0, k[0], 300 * US);
    scene_sync(s);
}

/* Result down, and up again at once; the near miss is the input of the next step. */
static void upload_again(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    if (which == NEAR)
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 8 * MIB, 300 * US, true);
    scene_kernel(s, 0, k[0], 300 * US);
    scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 8 * MIB, 300 * US, true);
    if (which == BAD)
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 8 * MIB, 300 * US, true);
    scene_kernel(s, 0, k[0], 300 * US);
    scene_sync(s);
    scene_pop(s);
}

static void through_the_host(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    if (which == NEAR) {
        scene_host(s, 2 * MS);
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 2 * MIB, 100 * US, true);
    }
    scene_kernel(s, 0, k[0], 300 * US);
    if (which != FIXED)
        scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 8 * MIB, 300 * US, true);
    if (which == BAD) {
        scene_host(s, 2 * MS);
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 2 * MIB, 100 * US, true);
    }
    if (which != NEAR)
        scene_kernel(s, 0, k[0], 300 * US);
    scene_sync(s);
    scene_pop(s);
}

static void read_back(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    for (int i = 0; i < 20; i++) {
        scene_kernel(s, 0, k[0], 20 * US);
        if (which == BAD)
            scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 4, 1 * US, true);
    }
    if (which != BAD)
        scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 4, 1 * US, true);
    scene_pop(s);
}

static void allocate(struct scene *s, enum version which, int number)
{
    scene_push(s, "step");
    for (int i = 0; i < 8; i++) {
        bool churn = which == BAD || (which == NEAR && number == 0);
        int64_t start = s->host;
        if (churn) {
            scene_call(s, s->api[0] == 'c' && s->api[1] == 'u' ? "cudaMalloc" : "clCreateBuffer",
                       90 * US);
            scene_host(s, 100); /* that the call ends before the row */
        }
        scene_kernel(s, 0, k[0], 50 * US);
        if (churn) {
            scene_sync(s);
            scene_call(s, "cudaFree", 60 * US);
            scene_lifetime(s, start, s->host, MIB, 3);
        }
    }
    scene_sync(s);
    scene_pop(s);
}

/* A copy ahead of the kernels: once nothing is allocated, the host launches them all meanwhile. */
static void allocate_behind_a_copy(struct scene *s, enum version which, int number)
{
    scene_push(s, "step");
    scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 4 * MIB, 100 * US, false);
    for (int i = 0; i < 20; i++) {
        bool churn = which == BAD || (which == NEAR && number == 0);
        int64_t start = s->host;
        if (churn)
            scene_call(s, "cudaMalloc", 12 * US);
        scene_kernel(s, 0, k[0], 1 * US);
        if (churn) { /* freeing waits for the device */
            scene_call(s, "cudaFree", s->stream[0] - s->host + 8 * US);
            scene_lifetime(s, start, s->host, MIB, 3);
        }
    }
    scene_sync(s);
    scene_pop(s);
}

static void allocate_host(struct scene *s, enum version which, int number)
{
    if (which == BAD || (which == NEAR && number == 0))
        scene_call(s, "cudaHostAlloc", 300 * US);
    scene_kernel(s, 0, k[0], 200 * US);
    scene_sync(s);
    if (which == BAD || (which == NEAR && number == 0))
        scene_call(s, "cudaFreeHost", 200 * US);
}

static void instantiate(struct scene *s, enum version which, int number)
{
    static const int64_t ns[2] = {100000, 100000};
    int nodes[2] = {k[0], k[0]};
    if (which == BAD || (which == NEAR && number == 0))
        scene_call(s, "cudaGraphInstantiate", 400 * US);
    scene_graph(s, 0, nodes, ns, 2);
    scene_sync(s);
}

static void host_works(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_host(s, which == BAD ? 2 * MS : which == NEAR ? 20 * US : 0);
    scene_kernel(s, 0, k[0], 4 * MS);
    scene_kernel(s, 0, k[0], 1 * MS);
    scene_sync(s);
}

static void many_short(struct scene *s, enum version which, int number)
{
    (void)number;
    int64_t ns = which == NEAR ? 200 * US : 1500;
    int64_t all[20];
    int nodes[20];
    for (int i = 0; i < 20; i++) {
        nodes[i] = k[i % 4];
        all[i] = ns;
    }
    scene_push(s, "step");
    if (which == FIXED)
        scene_graph(s, 0, nodes, all, 20);
    for (int i = 0; which != FIXED && i < 20; i++)
        scene_kernel(s, 0, nodes[i], ns);
    scene_sync(s);
    scene_pop(s);
}

static void four_kernels(struct scene *s, enum version which)
{
    (void)which;
    static const char *const names[] = {"add", "scale", "shift", "gelu"};
    for (int i = 0; i < 4; i++)
        k[i] = scene_config(s, names[i], 264, 256, 32);
}

/* An interpreter finds its way to each of them. */
static void interpreted(struct scene *s, enum version which, int number)
{
    int64_t ns = which == NEAR ? 200 * US : 1500, all[20];
    int nodes[20];
    (void)number;
    scene_push(s, "step");
    for (int i = 0; i < 20; i++) {
        nodes[i] = k[i % 4];
        all[i] = ns;
        scene_host(s, which == FIXED ? 0 : 60 * US);
        if (which != FIXED)
            scene_kernel(s, 0, nodes[i], ns);
    }
    if (which == FIXED)
        scene_graph(s, 0, nodes, all, 20);
    scene_sync(s);
    scene_pop(s);
}

static void in_python(struct scene *s, enum version which)
{
    four_kernels(s, which);
    scene_sql(s, "UPDATE process SET command = '/usr/bin/python3 -u train.py'");
}

static void small_gemms(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "gemm", which == BAD ? 16 : which == FIXED ? 640 : 2640, 256, 64);
    k[1] = scene_config(s, "other", 13200, 256, 32);
}

static void gemm_loop(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    scene_kernel(s, 0, k[1], 100 * US);
    if (which == FIXED)
        scene_kernel(s, 0, k[0], 40 * 20 * US * 16 / 132);
    for (int i = 0; which != FIXED && i < 40; i++)
        scene_kernel(s, 0, k[0], which == NEAR ? 200 * US : 20 * US);
    scene_sync(s);
    scene_pop(s);
}

static void wait_often(struct scene *s, enum version which, int number)
{
    scene_push(s, "step");
    for (int i = 0; i < 10; i++) {
        scene_kernel(s, 0, k[i % 4], 30 * US);
        if (which == BAD)
            scene_sync(s);
    }
    if (which == FIXED || (which == NEAR && number == STEPS - 1))
        scene_sync(s);
    scene_pop(s);
}

static void streams_in_turn(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    for (int i = 0; i < 8; i++) {
        scene_kernel(s, i, k[0], 200 * US);
        if (which != FIXED)
            scene_sync(s);
    }
    scene_sync(s);
    scene_pop(s);
}

static void eighth_grid(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "branch", which == NEAR ? 1320 : 16, 256, 32);
}

static void default_stream(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "branch", 16, 256, 32);
    if (which == BAD)
        scene_sql(s, "UPDATE stream SET is_default = (id = 1), non_blocking = 0");
    if (which == NEAR)
        scene_sql(s, "UPDATE stream SET is_default = (id = 1)");
}

static void two_streams(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_kernel(s, 0, k[0], 100 * US);
    if (which == BAD) /* it waits for the default stream, and a moment longer */
        s->stream[1] = s->stream[0] + 30 * US;
    scene_kernel(s, 1, k[0], 100 * US);
    if (which == BAD)
        s->stream[0] = s->stream[1] + 30 * US;
}

static void grid_of_eight(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "reduce", which == BAD ? 8 : 1056, 256, 32);
    k[1] = scene_config(s, "work", 13200, 256, 32);
}

static void one_kernel(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_kernel(s, 0, k[0], which == FIXED ? 20 * US : 300 * US);
    scene_kernel(s, 0, k[1], 100 * US);
    scene_sync(s);
}

/* 256 threads of 64 registers: 4 blocks on a unit, 528 on the device. */
static void partial_round(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "tile", which == BAD ? 540 : which == FIXED ? 528 : 10600, 256, 64);
    k[1] = scene_config(s, "work", 13200, 256, 32);
}

static void one_round(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_kernel(s, 0, k[0], which == FIXED ? 151 * US : 300 * US);
    scene_kernel(s, 0, k[1], 100 * US);
    scene_sync(s);
}

static void registers(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "body", 13200, 256, which == BAD ? 168 : which == FIXED ? 64 : 56);
}

static void held_back(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_kernel(s, 0, k[0], which == FIXED ? 300 * US : 500 * US);
    scene_sync(s);
}

static void chain(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    int count = which == BAD ? 4 : which == FIXED ? 1 : 2;
    for (int i = 0; i < count; i++) {
        scene_push(s, "launch");
        scene_kernel(s, 0, k[i], which == FIXED ? 25 * US : 20 * US);
        scene_pop(s);
        scene_work(s, 1e6, 64e6);
    }
    scene_sync(s);
    scene_pop(s);
}

static void fill_first(struct scene *s, enum version which, int number)
{
    (void)number;
    if (which != FIXED)
        scene_fill(s, 0, 8 * MIB, 100 * US);
    if (which == NEAR)
        scene_kernel(s, 0, k[0], 10 * US);
    scene_copy(s, 0, SCENE_UP, SCENE_PINNED, which == NEAR ? 4 * MIB : 8 * MIB, 300 * US, false);
    scene_kernel(s, 0, k[0], 100 * US);
    scene_sync(s);
}

static void leak(struct scene *s, enum version which, int number)
{
    scene_kernel(s, 0, k[0], 100 * US);
    scene_sync(s);
    if (which == BAD || (which == NEAR && number == STEPS / 2))
        scene_lifetime(s, s->host, PROF_UNKNOWN, MIB, 3);
    if (which == FIXED)
        scene_lifetime(s, s->host, s->host + 1000, MIB, 3);
}

static void hold(struct scene *s, enum version which)
{
    big_kernel(s, which);
    /* of 1 GiB */
    scene_lifetime(s, s->host, PROF_UNKNOWN,
                   which == BAD     ? 900 * MIB
                   : which == FIXED ? 10 * MIB
                                    : 700 * MIB,
                   3);
}

static void hold_a_tenth(struct scene *s, enum version which)
{
    big_kernel(s, which);
    scene_lifetime(s, s->host, PROF_UNKNOWN, which == BAD ? 100 * MIB : 10 * MIB, 3);
}

/* A failed call that is for another reason is the near miss. */
static void refuse(struct scene *s, enum version which)
{
    big_kernel(s, which);
    int64_t start = s->host;
    scene_call(s, "cudaMalloc", 10 * US);
    if (which == NEAR)
        scene_sql(s, "UPDATE api_call SET result = 1");
    if (which == BAD)
        scene_sql(
            s,
            "INSERT INTO allocation_failure(process, start, thread, device, kind, bytes, result, "
            "source) VALUES(1, %lld, 1, 1, 3, 2147483648, 2, 1)",
            (long long)(start + 5));
}

/* Of 200 MiB that a pool holds; the device has 1 GiB. */
static void keep_a_pool(struct scene *s, enum version which)
{
    big_kernel(s, which);
    scene_sql(s,
              "INSERT INTO memory_pool(process, start, pool, operation, device, bytes, used_bytes) "
              "VALUES(1, 1000, 7, 4, 1, %lld, %lld)",
              (long long)(200 * MIB),
              (long long)(which == BAD     ? 100 * MIB
                          : which == FIXED ? 200 * MIB
                                           : 160 * MIB));
}

static void plain(struct scene *s, enum version which, int number)
{
    (void)which;
    (void)number;
    scene_kernel(s, 0, k[0], 500 * US);
    scene_sync(s);
}

static void compile_first(struct scene *s, enum version which)
{
    big_kernel(s, which);
    if (which != FIXED)
        scene_call(s, "cuModuleLoadData", which == BAD ? 80 * MS : 100 * US);
}

static void two_parts(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "hot", 13200, 256, 32);
    for (int i = 1; i < PARTS; i++)
        k[i] = scene_config(s, which == BAD ? "cold" : "even", 13200 + i, 256, 32);
}

static void hot(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_kernel(s, 0, k[0], which == BAD ? 600 * US : 60 * US);
    for (int i = 1; i < PARTS; i++)
        scene_kernel(s, 0, k[i], 60 * US);
    scene_sync(s);
}

/* A kernel that moves bytes at nine tenths of 4.8 TB/s; where it is mended nobody declared work. */
static void stream_bytes(struct scene *s, int64_t ns, bool declared)
{
    scene_push(s, "launch");
    scene_kernel(s, 0, k[0], ns);
    scene_pop(s);
    if (declared)
        scene_work(s, 1e6, 0.9 * 4.8e3 * (double)ns);
}

static void at_the_roof(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    stream_bytes(s, which == BAD ? 300 * US : which == FIXED ? 270 * US : 5 * US, which != FIXED);
    scene_kernel(s, 0, k[1], 500 * US);
    scene_sync(s);
    scene_pop(s);
}

static void in_half_the_bytes(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_push(s, "step");
    stream_bytes(s, which == BAD ? 300 * US : which == FIXED ? 150 * US : 5 * US, which != FIXED);
    scene_kernel(s, 0, k[1], 500 * US);
    scene_sync(s);
    scene_pop(s);
}

static void two_kernels(struct scene *s, enum version which)
{
    (void)which;
    k[0] = scene_config(s, "axpy", 13200, 256, 32);
    k[1] = scene_config(s, "other", 13200, 256, 32);
}

/* A power cap; the near miss has low clocks only while nothing is to do. */
static void lowered_clock(struct scene *s, enum version which, int number)
{
    (void)number;
    scene_sql(s,
              "INSERT INTO device_clock(device, start, sm_mhz, sm_max_mhz, reasons) "
              "VALUES(1, %lld, %d, 1980, %d)",
              (long long)s->host + 1, which == BAD ? 1200 : 1980, which == BAD ? 4 : 0);
    scene_kernel(s, 0, k[0], which == BAD ? 500 * US : 303 * US);
    scene_sync(s);
    if (which == NEAR)
        scene_sql(s,
                  "INSERT INTO device_clock(device, start, sm_mhz, sm_max_mhz, reasons) "
                  "VALUES(1, %lld, 345, 1980, 1)",
                  (long long)s->host);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* What bound / gain may be: the bound assumes that what is removed costs nothing instead, and that
 * everything it claims goes; 1 to 2 is what is asked of bounds on the whole. */
const struct program programs[] = {
    {"pageable-copy", "cuda", "gpu", copy_pageable, big_kernel, false, 2},
    {"blocking-copy", "cuda", "gpu", copy_blocking, big_kernel, false, 2},
    {"blocking-copy", "cuda", "gpu", copy_and_wait, big_kernel, false, 2},
    {"no-overlap", "cuda", "gpu", copy_serial, big_kernel, false, 2},
    {"no-overlap", "cuda", "gpu", feed_from_disk, big_kernel, false, 2},
    {"no-overlap", "cuda", "gpu", feed_from_memory, big_kernel, false, 2},
    {"small-transfers", "cuda", "gpu", copy_small, big_kernel, false, 2},
    {"repeated-upload", "cuda", "gpu", upload_again, big_kernel, false, 2},
    {"host-round-trip", "cuda", "gpu", through_the_host, big_kernel, false, 2},
    {"scalar-readback", "cuda", "gpu", read_back, big_kernel, false, 2},
    {"alloc-in-loop", "cuda", "gpu", allocate, big_kernel, false, 2},
    {"alloc-in-loop", "cuda", "gpu", allocate_behind_a_copy, big_kernel, false, 2},
    {"host-alloc-in-loop", "cuda", "gpu", allocate_host, big_kernel, false, 2},
    {"compile-in-loop", "cuda", "gpu", instantiate, big_kernel, false, 2},
    {"host-starvation", "cuda", "gpu", host_works, big_kernel, false, 2},
    {"graph-candidate", "cuda", "gpu", many_short, four_kernels, false, 2},
    {"graph-candidate", "cuda", "gpu", interpreted, in_python, false, 2},
    {"launch-bound", "opencl", "gpu", interpreted, in_python, false, 2},
    {"launch-bound", "opencl", "gpu", many_short, four_kernels, false, 2},
    {"unbatched-kernels", "cuda", "gpu", gemm_loop, small_gemms, false, 2},
    {"sync-stall", "cuda", "gpu", wait_often, four_kernels, false, 2},
    {"serial-streams", "cuda", "gpu", streams_in_turn, eighth_grid, false, 2},
    {"implicit-sync", "cuda", "gpu", two_streams, default_stream, false, 2},
    {"small-grid", "cuda", "gpu", one_kernel, grid_of_eight, false, 2},
    {"tail-effect", "cuda", "gpu", one_round, partial_round, false, 2},
    {"low-occupancy", "cuda", "gpu", held_back, registers, false, 2},
    {"fusion-candidate", "cuda", "gpu", chain, four_kernels, false, 2},
    {"memory-bound", "cuda", "gpu", at_the_roof, two_kernels, false, 2},
    {"low-precision", "cuda", "gpu", in_half_the_bytes, two_kernels, false, 2},
    {"hot-kernel", "cuda", "gpu", hot, two_parts, false, 2},
    {"clock-throttling", "cuda", "gpu", lowered_clock, big_kernel, false, 2},
    {"dead-memset", "cuda", "gpu", fill_first, big_kernel, false, 2},
    {"memory-leak", "cuda", "gpu", leak, big_kernel, true, 0},
    {"out-of-memory", "cuda", "gpu", plain, refuse, true, 0},
    {"idle-pool", "cuda", "gpu", plain, keep_a_pool, true, 0},
    {"memory-pressure", "cuda", "gpu", plain, hold, true, 0},
    {"memory-peak", "cuda", "gpu", plain, hold_a_tenth, true, 0},
    {"one-off-cost", "cuda", "gpu", plain, compile_first, true, 0},
};
const size_t program_count = sizeof programs / sizeof programs[0];

struct prof_capture *program_run(const struct program *program, enum version which,
                                 const char *damage, int64_t *wall_ns)
{
    struct scene s;
    scene_open(&s, program->api, program->device);
    program->setup(&s, which);
    int64_t begin = s.host;
    for (int i = 0; i < STEPS; i++)
        program->step(&s, which, i);
    if (damage)
        scene_sql(&s, "%s", damage);
    else
        scene_sync(&s);
    if (wall_ns)
        *wall_ns = s.host - begin;
    return scene_close(&s);
}

const struct prof_finding *finding_of(const struct prof_findings *findings, const char *rule)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (!strcmp(findings->rows[i].rule->id, rule))
            return &findings->rows[i];
    }
    return NULL;
}

void findings_list(const struct prof_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        fprintf(stderr, "    %s %.1f %%: %s\n", findings->rows[i].rule->id,
                100 * findings->rows[i].bound_share, findings->rows[i].seen);
}

/* Is what `seen` has at `at` the text of one of the finding's numbers? */
static bool is_a_number(const struct prof_finding *finding, const char *at)
{
    at -= at > finding->seen && strchr("<-", at[-1]) != NULL;
    for (size_t i = 0; i < finding->number_count; i++) {
        const char *text = prof_number_text(&finding->numbers[i]).text;
        size_t length = strlen(text);
        if (!strncmp(text, at, length) && !isdigit((unsigned char)at[length]))
            return true;
    }
    return false;
}

/* How much of the sentence from `at` on is the name of a kernel. */
static size_t name_length(const struct prof_finding *finding, const char *at)
{
    size_t length = 0;
    for (size_t i = 0; i < finding->place_count; i++) {
        const char *name = finding->places[i].name;
        if (name && !strncmp(name, at, strlen(name)))
            length = strlen(name);
    }
    return length;
}

/* Every figure of the sentence; digits within words are names ("FP32", "a.c:5"). */
static void sentence_check(const struct prof_finding *finding)
{
    const char *seen = finding->seen;
    ck_assert_msg(seen[0] && !strchr(seen, '{'), "%s: %s", finding->rule->id, seen);
    for (const char *at = seen; *at; at++) {
        at += name_length(finding, at);
        if (!isdigit((unsigned char)*at))
            continue;
        if (at == seen || !(isalnum((unsigned char)at[-1]) || strchr("_:/", at[-1])))
            ck_assert_msg(is_a_number(finding, at), "%s: %.12s... is none of the numbers: %s",
                          finding->rule->id, at, seen);
        while (isdigit((unsigned char)at[1]) ||
               (strchr(".,", at[1]) && isdigit((unsigned char)at[2])))
            at++;
    }
}

const struct prof_number *number_named(const struct prof_finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->number_count; i++) {
        if (!strcmp(finding->numbers[i].name, name))
            return &finding->numbers[i];
    }
    return NULL;
}

/* The bound, by its formula from the numbers; without what other findings have it is that of the
 * finding on its own. */
static void bound_check(const struct prof_finding *finding)
{
    char formula[600], *rest = formula, *word;
    double bound = 0, alone = 0, sign = 1;
    prof_finding_formula(finding, formula, sizeof formula);
    while ((word = strsep(&rest, " "))) {
        if (!strcmp(word, "+") || !strcmp(word, "-")) {
            sign = word[0] == '+' ? 1 : -1;
            continue;
        }
        const struct prof_number *number = number_named(finding, word);
        ck_assert_msg(number, "%s: the formula names %s", finding->rule->id, word);
        ck_assert_int_eq(number->unit, PROF_NUMBER_NS);
        bound += sign * number->value;
        alone += strcmp(word, PROF_NUMBER_ELSEWHERE) ? sign * number->value : 0;
    }
    ck_assert_msg((int64_t)bound == finding->bound_ns, "%s: %.0f of %lld ns", finding->rule->id,
                  bound, (long long)finding->bound_ns);
    ck_assert_int_eq((int64_t)alone, finding->alone_ns);
}

void findings_check(const struct prof_findings *findings)
{
    int64_t sum = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct prof_finding *finding = &findings->rows[i];
        sentence_check(finding);
        ck_assert_uint_le(finding->place_count, PROF_FINDING_PLACES);
        ck_assert_uint_lt(finding->number_count, PROF_FINDING_NUMBERS); /* none was left out */
        if (finding->bound_ns == PROF_UNKNOWN)
            continue;
        ck_assert_int_ge(finding->bound_ns, 0);
        bound_check(finding);
        sum += finding->bound_ns;
    }
    ck_assert_int_le(sum, findings->window_ns);
}
