/* See programs.h. Each is a few lines of what a program does in a step, in its three versions; the
 * table at the end says which rule must speak on the first. */
#include "tests/diagnosis/programs.h"

#define MIB (INT64_C(1) << 20)
#define MS INT64_C(1000000)

#define PARTS 12
static int k[PARTS]; /* launch configurations, by the program's setup */
static int step;     /* the number of the one that runs */

static void big_kernel(struct scene *s, enum version which)
{
    (void)which;
    k[0] = scene_config(s, "work", 13200, 256, 32);
}

static void copy_pageable(struct scene *s, enum version which)
{
    bool pinned = which == FIXED;
    int64_t bytes = which == NEAR ? 1024 : 16 * MIB;
    int64_t ns = which == NEAR ? 1 * US : pinned ? 300 * US : 2700 * US;
    scene_copy(s, 0, SCENE_UP, pinned ? SCENE_PINNED : SCENE_PAGEABLE, bytes, ns, false);
    if (!pinned)
        scene_host(s, ns); /* the driver stages it */
    scene_kernel(s, 0, k[0], 400 * US);
    scene_sync(s);
}

static void copy_blocking(struct scene *s, enum version which)
{
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
static void copy_and_wait(struct scene *s, enum version which)
{
    for (int i = 0; i < 4; i++) {
        scene_copy(s, which == FIXED, SCENE_UP, SCENE_PINNED, 4 * MIB, 160 * US, false);
        if (which == BAD)
            scene_sync(s);
        scene_kernel(s, 0, k[0], 200 * US);
        if (which == NEAR)
            scene_sync(s);
    }
    scene_sync(s);
}

static void copy_serial(struct scene *s, enum version which)
{
    int64_t bytes = which == NEAR ? 65536 : 16 * MIB, ns = which == NEAR ? 4 * US : 600 * US;
    int copy_stream = which == FIXED;
    for (int i = 0; i < 4; i++) {
        scene_copy(s, copy_stream, SCENE_UP, SCENE_PINNED, bytes / 4, ns / 4, false);
        scene_kernel(s, 0, k[0], 200 * US);
    }
    if (step % 8 == 7)
        scene_sync(s);
}

/* The host prepares, copies, computes and waits; mended, it prepares and copies the next batch
 * meanwhile. `host_ns` of preparing are more or less than the copy. */
static void feed(struct scene *s, enum version which, int64_t host_ns)
{
    scene_host(s, host_ns);
    scene_copy(s, which == FIXED, SCENE_UP, SCENE_PINNED, which == NEAR ? 4096 : 16 * MIB,
               which == NEAR ? 1 * US : 300 * US, false);
    scene_kernel(s, 0, k[0], 200 * US);
    if (which != FIXED || step == STEPS - 1)
        scene_sync(s);
}

static void feed_from_disk(struct scene *s, enum version which)
{
    feed(s, which, 900 * US);
}

static void feed_from_memory(struct scene *s, enum version which)
{
    feed(s, which, 60 * US);
}

static void copy_small(struct scene *s, enum version which)
{
    int copies = which == BAD ? 100 : which == FIXED ? 1 : 2;
    for (int i = 0; i < copies; i++)
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, which == FIXED ? 102400 : 1024,
                   which == FIXED ? 6 * US : 2 * US, false);
    scene_kernel(s, 0, k[0], 300 * US);
    scene_sync(s);
}

/* Result down, and up again at once; the near miss is the input of the next step. */
static void upload_again(struct scene *s, enum version which)
{
    if (which == NEAR)
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 8 * MIB, 300 * US, true);
    scene_kernel(s, 0, k[0], 300 * US);
    scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 8 * MIB, 300 * US, true);
    if (which == BAD)
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 8 * MIB, 300 * US, true);
    scene_kernel(s, 0, k[0], 300 * US);
    scene_sync(s);
}

/* Twice up again what came down once. */
static void upload_twice(struct scene *s, enum version which)
{
    upload_again(s, which);
    if (which == BAD)
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 8 * MIB, 300 * US, true);
}

/* The near miss: part by part goes up and comes down, of one size. */
static void in_parts(struct scene *s, enum version which)
{
    if (which != NEAR)
        upload_again(s, which);
    for (int i = 0; i < 4 && which == NEAR; i++) {
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 8 * MIB, 300 * US, true);
        scene_kernel(s, 0, k[0], 300 * US);
        scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 8 * MIB, 300 * US, true);
    }
}

static void through_the_host(struct scene *s, enum version which)
{
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
}

/* Small data, little work: the waits for both copies are most of it. */
static void waits_on_the_way(struct scene *s, enum version which)
{
    for (int i = 0; i < 6; i++) {
        scene_kernel(s, 0, k[0], 20 * US);
        if (which == BAD) {
            scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 16 << 10, 2 * US, true);
            scene_host(s, 10 * US);
            scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 4 << 10, 2 * US, true);
        }
        scene_kernel(s, 0, k[0], 20 * US);
    }
    scene_sync(s);
}

static void read_back(struct scene *s, enum version which)
{
    for (int i = 0; i < 20; i++) {
        scene_kernel(s, 0, k[0], 20 * US);
        if (which == BAD)
            scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 4, 1 * US, true);
    }
    if (which != BAD)
        scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 4, 1 * US, true);
}

static void allocate(struct scene *s, enum version which)
{
    for (int i = 0; i < 8; i++) {
        bool churn = which == BAD || (which == NEAR && step == 0);
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
}

/* A copy ahead of the kernels: once nothing is allocated, the host launches them all meanwhile. */
static void allocate_behind_a_copy(struct scene *s, enum version which)
{
    scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 4 * MIB, 100 * US, false);
    for (int i = 0; i < 20; i++) {
        bool churn = which == BAD || (which == NEAR && step == 0);
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
}

/* Each step needs more memory than those before, as longer sentences do; nothing is freed. */
static void allocate_more(struct scene *s, enum version which)
{
    for (int i = 0; i < 4; i++) {
        if (which == BAD || (which == NEAR && step == 0)) {
            int64_t start = s->host;
            scene_call(s, "cudaMalloc", 90 * US);
            scene_lifetime(s, start, PROF_UNKNOWN, (step + 1) * 2048, 3);
        }
        scene_kernel(s, 0, k[0], 50 * US);
        scene_sync(s);
    }
}

static void allocate_host(struct scene *s, enum version which)
{
    if (which == BAD || (which == NEAR && step == 0))
        scene_call(s, "cudaHostAlloc", 300 * US);
    scene_kernel(s, 0, k[0], 200 * US);
    scene_sync(s);
    if (which == BAD || (which == NEAR && step == 0))
        scene_call(s, "cudaFreeHost", 200 * US);
}

static void instantiate(struct scene *s, enum version which)
{
    static const int64_t ns[2] = {100000, 100000};
    int nodes[2] = {k[0], k[0]};
    if (which == BAD || (which == NEAR && step == 0))
        scene_call(s, "cudaGraphInstantiate", 400 * US);
    scene_graph(s, 0, nodes, ns, 2);
    scene_sync(s);
}

static void host_works(struct scene *s, enum version which)
{
    scene_host(s, which == BAD ? 2 * MS : which == NEAR ? 20 * US : 0);
    scene_kernel(s, 0, k[0], 4 * MS);
    scene_kernel(s, 0, k[0], 1 * MS);
    scene_sync(s);
}

/* A graph, mended. An interpreter takes `host_ns` to find its way to each of them. */
static void twenty_kernels(struct scene *s, enum version which, int64_t host_ns)
{
    int64_t ns[20];
    int nodes[20];
    for (int i = 0; i < 20; i++) {
        nodes[i] = k[i % 4];
        ns[i] = which == NEAR ? 200 * US : 1500;
        scene_host(s, which == FIXED ? 0 : host_ns);
        if (which != FIXED)
            scene_kernel(s, 0, nodes[i], ns[i]);
    }
    if (which == FIXED)
        scene_graph(s, 0, nodes, ns, 20);
    scene_sync(s);
}

static void many_short(struct scene *s, enum version which)
{
    twenty_kernels(s, which, 0);
}

static void interpreted(struct scene *s, enum version which)
{
    twenty_kernels(s, which, 60 * US);
}

static void four_kernels(struct scene *s, enum version which)
{
    (void)which;
    static const char *const names[] = {"add", "scale", "shift", "gelu"};
    for (int i = 0; i < 4; i++)
        k[i] = scene_config(s, names[i], 264, 256, 32);
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

static void gemm_loop(struct scene *s, enum version which)
{
    scene_kernel(s, 0, k[1], 100 * US);
    if (which == FIXED)
        scene_kernel(s, 0, k[0], 40 * 20 * US * 16 / 132);
    for (int i = 0; which != FIXED && i < 40; i++)
        scene_kernel(s, 0, k[0], which == NEAR ? 200 * US : 20 * US);
    scene_sync(s);
}

/* The near miss: each launch works on what the one before has left. */
static void in_place(struct scene *s, enum version which)
{
    gemm_loop(s, which == FIXED ? FIXED : BAD);
    if (which == NEAR)
        scene_sql(s, "UPDATE kernel SET flags = 16 WHERE config = %d", k[0]);
}

static void wait_often(struct scene *s, enum version which)
{
    for (int i = 0; i < 10; i++) {
        scene_kernel(s, 0, k[i % 4], 30 * US);
        if (which == BAD)
            scene_sync(s);
    }
    if (which == FIXED || (which == NEAR && step == STEPS - 1))
        scene_sync(s);
}

static void streams_in_turn(struct scene *s, enum version which)
{
    for (int i = 0; i < 8; i++) {
        scene_kernel(s, i, k[0], 200 * US);
        if (which != FIXED)
            scene_sync(s);
    }
    scene_sync(s);
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

static void two_streams(struct scene *s, enum version which)
{
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

static void two_in_turn(struct scene *s, int64_t ns)
{
    scene_kernel(s, 0, k[0], ns);
    scene_kernel(s, 0, k[1], 100 * US);
    scene_sync(s);
}

static void one_kernel(struct scene *s, enum version which)
{
    two_in_turn(s, which == FIXED ? 20 * US : 300 * US);
}

/* 256 threads of 64 registers: 4 blocks on a unit, 528 on the device. */
static void partial_round(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "tile", which == BAD ? 540 : which == FIXED ? 528 : 10600, 256, 64);
    k[1] = scene_config(s, "work", 13200, 256, 32);
}

static void one_round(struct scene *s, enum version which)
{
    two_in_turn(s, which == FIXED ? 151 * US : 300 * US);
}

static void registers(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "body", 13200, 256, which == BAD ? 168 : which == FIXED ? 64 : 56);
}

static void held_back(struct scene *s, enum version which)
{
    scene_kernel(s, 0, k[0], which == FIXED ? 300 * US : 500 * US);
    scene_sync(s);
}

static void chain(struct scene *s, enum version which)
{
    int count = which == BAD ? 4 : which == FIXED ? 1 : 2;
    for (int i = 0; i < count; i++) {
        scene_push(s, "launch");
        scene_kernel(s, 0, k[i], which == FIXED ? 25 * US : 20 * US);
        scene_pop(s);
        scene_work(s, 1e6, 64e6);
    }
    scene_sync(s);
}

static void fill_first(struct scene *s, enum version which)
{
    if (which != FIXED)
        scene_fill(s, 0, 8 * MIB, 100 * US);
    if (which == NEAR)
        scene_kernel(s, 0, k[0], 10 * US);
    scene_copy(s, 0, SCENE_UP, SCENE_PINNED, which == NEAR ? 4 * MIB : 8 * MIB, 300 * US, false);
    scene_kernel(s, 0, k[0], 100 * US);
    scene_sync(s);
}

static void leak(struct scene *s, enum version which)
{
    scene_kernel(s, 0, k[0], 100 * US);
    scene_sync(s);
    if (which == BAD || (which == NEAR && step == STEPS / 2))
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

static void plain(struct scene *s, enum version which)
{
    (void)which;
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

static void hot(struct scene *s, enum version which)
{
    scene_kernel(s, 0, k[0], which == BAD ? 600 * US : 60 * US);
    for (int i = 1; i < PARTS; i++)
        scene_kernel(s, 0, k[i], 60 * US);
    scene_sync(s);
}

/* A kernel that moves bytes at nine tenths of 4.8 TB/s; mended it takes `fixed_ns`, and no work is
 * declared. */
static void stream_bytes(struct scene *s, enum version which, int64_t fixed_ns)
{
    int64_t ns = which == BAD ? 300 * US : which == FIXED ? fixed_ns : 5 * US;
    scene_push(s, "launch");
    scene_kernel(s, 0, k[0], ns);
    scene_pop(s);
    if (which != FIXED)
        scene_work(s, 1e6, 0.9 * 4.8e3 * (double)ns);
    scene_kernel(s, 0, k[1], 500 * US);
    scene_sync(s);
}

static void at_the_roof(struct scene *s, enum version which)
{
    stream_bytes(s, which, 270 * US);
}

static void in_half_the_bytes(struct scene *s, enum version which)
{
    stream_bytes(s, which, 150 * US);
}

static void two_kernels(struct scene *s, enum version which)
{
    (void)which;
    k[0] = scene_config(s, "axpy", 13200, 256, 32);
    k[1] = scene_config(s, "other", 13200, 256, 32);
}

/* A power cap; the near miss has low clocks only while nothing is to do. */
static void lowered_clock(struct scene *s, enum version which)
{
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

/* Warps that wait for memory; the fixed one, and the near miss, are issued nearly all the time. */
static void waiting_kernel(struct scene *s, enum version which)
{
    k[0] = scene_config(s, "gather", 13200, 256, 32);
    scene_sql(s,
              "INSERT INTO stall_function(id, context, name) SELECT 1, 1, name FROM "
              "launch_config WHERE id=%d",
              k[0]);
    if (which != BAD)
        scene_sql(s, "INSERT INTO stall(function, offset, selected, wait, not_issued) "
                     "VALUES(1, 64, 970, 30, 30)");
    else
        scene_sql(s, "INSERT INTO stall(function, offset, line, selected, long_scoreboard, "
                     "not_issued) VALUES(1, 64, 7, 50, 0, 0), (1, 80, 8, 50, 900, 880)");
}

static void gather(struct scene *s, enum version which)
{
    scene_kernel(s, 0, k[0], which == FIXED ? 80 * US : 500 * US);
    scene_sync(s);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* Products in 16 bits whose rows are aligned to 2 bytes, and to 16; the near miss is of TF32, where
 * that is 4 elements, and one without tensor cores. */
static void products(struct scene *s, enum version which)
{
    k[0] =
        scene_config(s,
                     which == BAD     ? "cutlass::Kernel<cutlass_75_tensorop_bf16_tn_align1_gemm>"
                     : which == FIXED ? "cutlass::Kernel<cutlass_80_tensorop_bf16_tn_align8_gemm>"
                                      : "cutlass::Kernel<cutlass_80_tensorop_s1688gemm_nn_align4>",
                     13200, 256, 32);
    k[1] = scene_config(s, "cutlass::Kernel<cutlass_80_simt_sgemm_nt_align1>", 13200, 256, 32);
}

static void multiply(struct scene *s, enum version which)
{
    scene_kernel(s, 0, k[0], which == BAD ? 800 * US : 100 * US);
    scene_kernel(s, 0, k[which == NEAR], 5 * US);
    scene_sync(s);
}

/* The near miss converts its weights once, and normalises with channels first all the same. */
static void convolutions(struct scene *s, enum version which)
{
    (void)which;
    k[0] = scene_config(s, "sm90_xmma_fprop_implicit_gemm_tf32f32_nhwckrsc_nhwc", 13200, 256, 32);
    k[1] = scene_config(s, "void cudnn::nchwToNhwcKernel<float>(float*)", 13200, 256, 32);
    k[2] = scene_config(s, "void cudnn::nhwcToNchwKernel<float>(float*)", 13200, 256, 32);
    k[3] = scene_config(s, "void at::native::batch_norm_backward_kernel<float>()", 13200, 256, 32);
    k[4] = scene_config(s, "void at::native::batch_norm_elemt_channels_last_kernel<float>()", 13200,
                        256, 32);
}

static void convolve(struct scene *s, enum version which)
{
    bool converts = which == BAD || (which == NEAR && step == 0);
    if (converts)
        scene_kernel(s, 0, k[1], 100 * US);
    scene_kernel(s, 0, k[0], 300 * US);
    if (converts)
        scene_kernel(s, 0, k[2], 100 * US);
    scene_kernel(s, 0, k[which == FIXED ? 4 : 3], which == FIXED ? 100 * US : 400 * US);
    scene_sync(s);
}

static void launch_in(struct scene *s, const char *range, int config, int64_t ns)
{
    scene_push(s, range);
    scene_kernel(s, 0, config, ns);
    scene_pop(s);
}

/* Between a bias and its batch norm only that counts its batches. */
static void convolve_and_normalise(struct scene *s, enum version which)
{
    scene_push(s, "aten::_convolution");
    launch_in(s, "aten::cudnn_convolution", k[0], 200 * US);
    if (which != FIXED)
        launch_in(s, "aten::add_", k[1], 100 * US);
    scene_pop(s);
    launch_in(s, which == NEAR ? "aten::relu" : "aten::add_", k[2], 2 * US);
    launch_in(s, "aten::batch_norm", k[3], 100 * US);
    scene_push(s, "aten::convolution_backward");
    scene_kernel(s, 0, k[0], 200 * US);
    if (which != FIXED)
        launch_in(s, "aten::sum", k[1], 100 * US);
    scene_pop(s);
    scene_sync(s);
}

/* The near miss adds up the gradients of several batches. */
static void fill_and_add(struct scene *s, enum version which)
{
    if (which == BAD)
        for (int i = 0; i < 4; i++)
            launch_in(s, "Optimizer.zero_grad#SGD.zero_grad", k[1], 50 * US);
    for (int i = 0; i < 4; i++) {
        scene_kernel(s, 0, k[0], 200 * US);
        if (which == FIXED)
            continue;
        scene_push(s, "torch::autograd::AccumulateGrad");
        launch_in(s, "aten::add_", k[2], 100 * US);
        scene_pop(s);
    }
    scene_sync(s);
}

/* The number of the graph's node, for the range just closed. */
static void number_node(struct scene *s, int node)
{
    scene_sql(s,
              "INSERT INTO range_field(range, name, value) SELECT (SELECT max(id) FROM range), id, "
              "%d FROM string WHERE value = 'seq'",
              node);
}

static void in_pytorch(struct scene *s, enum version which)
{
    in_python(s, which);
    scene_push(s, "seq");
    scene_pop(s);
}

/* Operators that can have a gradient take the host longer; the near miss has a backward pass. */
static void infer(struct scene *s, enum version which)
{
    for (int i = 0; i < 20; i++) {
        scene_push(s, "aten::relu");
        scene_host(s, which == FIXED ? 5 * US : 24 * US);
        scene_kernel(s, 0, k[i % 4], 2 * US);
        scene_pop(s);
        if (which != FIXED)
            number_node(s, 20 * step + i);
    }
    for (int i = 0; i < 20 && which == NEAR; i++) {
        launch_in(s, "ReluBackward0", k[0], 2 * US);
        number_node(s, 20 * step + i);
    }
    scene_sync(s);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct program programs[] = {
    {"pageable-copy", .step = copy_pageable},
    {"blocking-copy", .step = copy_blocking},
    {"blocking-copy", .step = copy_and_wait, .in_range = true},
    {"no-overlap", .step = copy_serial},
    {"no-overlap", .step = feed_from_disk},
    {"no-overlap", .step = feed_from_memory},
    {"small-transfers", .step = copy_small},
    {"repeated-upload", .step = upload_again, .in_range = true},
    {"repeated-upload", .step = upload_twice, .in_range = true},
    {"repeated-upload", .step = in_parts, .in_range = true},
    {"host-round-trip", .step = through_the_host, .in_range = true},
    {"host-round-trip", .step = waits_on_the_way, .in_range = true},
    {"scalar-readback", .step = read_back, .in_range = true},
    {"alloc-in-loop", .step = allocate, .in_range = true},
    {"alloc-in-loop", .step = allocate_behind_a_copy, .in_range = true},
    {"alloc-in-loop", .step = allocate_more, .in_range = true},
    {"host-alloc-in-loop", .step = allocate_host},
    {"compile-in-loop", .step = instantiate},
    {"host-starvation", .step = host_works},
    {"graph-candidate", .step = many_short, .setup = four_kernels, .in_range = true},
    {"graph-candidate", .step = interpreted, .setup = in_python, .in_range = true},
    {"launch-bound", .step = interpreted, .setup = in_python, .in_range = true, .api = "opencl"},
    {"launch-bound", .step = many_short, .setup = four_kernels, .in_range = true, .api = "opencl"},
    {"unbatched-kernels", .step = gemm_loop, .setup = small_gemms, .in_range = true},
    {"unbatched-kernels", .step = in_place, .setup = small_gemms, .in_range = true},
    {"sync-stall", .step = wait_often, .setup = four_kernels, .in_range = true},
    {"serial-streams", .step = streams_in_turn, .setup = eighth_grid, .in_range = true},
    {"implicit-sync", .step = two_streams, .setup = default_stream},
    {"small-grid", .step = one_kernel, .setup = grid_of_eight},
    {"tail-effect", .step = one_round, .setup = partial_round},
    {"low-occupancy", .step = held_back, .setup = registers},
    {"fusion-candidate", .step = chain, .setup = four_kernels, .in_range = true},
    {"memory-bound", .step = at_the_roof, .setup = two_kernels, .in_range = true},
    {"low-precision", .step = in_half_the_bytes, .setup = two_kernels, .in_range = true},
    {"unaligned-product", .step = multiply, .setup = products, .in_range = true},
    {"layout-conversion", .step = convolve, .setup = convolutions, .in_range = true},
    {"needless-operators", .step = convolve_and_normalise, .setup = four_kernels, .in_range = true},
    {"needless-operators", .step = fill_and_add, .setup = four_kernels, .in_range = true},
    {"needless-operators", .step = infer, .setup = in_pytorch, .in_range = true},
    {"stalled-kernel", .step = gather, .setup = waiting_kernel},
    {"hot-kernel", .step = hot, .setup = two_parts},
    {"clock-throttling", .step = lowered_clock},
    {"dead-memset", .step = fill_first},
    {"memory-leak", .step = leak, .no_price = true},
    {"out-of-memory", .step = plain, .setup = refuse, .no_price = true},
    {"idle-pool", .step = plain, .setup = keep_a_pool, .no_price = true},
    {"memory-pressure", .step = plain, .setup = hold, .no_price = true},
    {"memory-peak", .step = plain, .setup = hold_a_tenth, .no_price = true},
    {"one-off-cost", .step = plain, .setup = compile_first, .no_price = true},
};
const size_t program_count = sizeof programs / sizeof programs[0];

struct prof_capture *program_run(const struct program *program, enum version which,
                                 const char *damage, int64_t *wall_ns)
{
    struct scene s;
    scene_open(&s, program->api ? program->api : "cuda", "gpu");
    (program->setup ? program->setup : big_kernel)(&s, which);
    int64_t begin = s.host;
    for (step = 0; step < STEPS; step++) {
        if (program->in_range)
            scene_push(&s, "step");
        program->step(&s, which);
        if (program->in_range)
            scene_pop(&s);
    }
    if (damage)
        scene_sql(&s, "%s", damage);
    else
        scene_sync(&s);
    if (wall_ns)
        *wall_ns = s.host - begin;
    return scene_close(&s);
}
