/* Captures of several ranks for tests: their answers are known by how they are made. Times are in
 * us; rank r has process, thread and device `r + 1`, stream 2r + 1 to compute and 2r + 2 to
 * communicate. */
#ifndef PERFKIT_TESTS_ANALYSIS_RANK_FIXTURE_H
#define PERFKIT_TESTS_ANALYSIS_RANK_FIXTURE_H

#include "libprof/include/prof_ranks.h"
#include "tests/analysis/fixture.h"

#define US 1000
#define MEBI (1 << 20)
#define COMMUNICATOR 0x7fedcba987654321
#define STEPS 5

enum { /* string ids */
       GEMM = 1,
       ALL_REDUCE_KERNEL,
       SEND_RECV_KERNEL,
       NCCL,
       NCCL_ALL_REDUCE,
       GROUP_START,
       GROUP_END,
       SEND,
       RECV,
       INIT,
       STEP,
       OWN,
       OWN_ALL_REDUCE,
       MPI_BARRIER,
       F_COMMUNICATOR,
       F_BYTES,
       F_PEER,
       F_RANKS,
       F_RANK,
       F_REDUCTION,
       F_DEVICE,
       EXTRA_KERNEL
};
enum { GEMM_CONFIG = 1, ALL_REDUCE_CONFIG, SEND_RECV_CONFIG, EXTRA_CONFIG };

void scene_begin(void);
/* One statement of SQL. */
void scene_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct prof_capture *scene_made(void);

/* `rank` as SQL: a number, or NULL; with one, the launcher said that there are 4. */
void scene_process(int r, const char *rank);
/* A process whose rank is `r`. */
void scene_rank(int r);
/* The launch takes 1 us and begins at `call`. Collective kernels run on the stream to communicate.
 */
void scene_kernel(int r, int config, long call, long start, long end);
/* Its id. domain: string id, 0 = default. */
int scene_range(int r, int name, int domain, long start, long end);
void scene_field(int range, int name, long long value);
/* communicator 0 = not told. */
void scene_all_reduce(int r, long at, long long communicator, long long bytes);
void scene_comm_init(int r, long long communicator, int ranks);

/* STEPS steps of 1000 us: rank r computes work[r] us from 10 us on, then an all-reduce of 8 MiB
 * takes 100 us once all have come. idle[r]: its kernel begins so much later. */
void scene_training(int count, const long *work, const long *idle, long long communicator);

/* Three pairs of ranks, each with a communicator, 1000 and up, and four all-reduces of 8 MiB that
 * take 100 us; those of the second pair take `slow_us`. */
void scene_pairs(long slow_us);

/* Its ranks, which must be had; valid until ranks_done, which closes the capture too. One at a
 * time. */
const struct prof_ranks *ranks_of(struct prof_capture *capture);
void ranks_done(struct prof_capture *capture, const struct prof_ranks *ranks);

#endif
