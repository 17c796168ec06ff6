/* Rules about single kernels: grids that do not fill the device, occupancy, and the one that
 * decides. Each knows what part of a kernel's time its fault costs at most; the roof that a kernel
 * is known to stand under caps it, and what any kernel takes to start is never saved. */
#include <math.h>
#include <stdio.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/analysis/capture.h"
#include "libprof/base/format.h"
#include "libprof/gpu/names.h"

/* The part of a kernel's time, 0..1, that goes when the fault is fixed; 0 = it has none. */
typedef double part_of(const struct prof_judge *judge, const struct prof_shape *shape);

struct hits {
    part_of *part;
    int64_t start_ns; /* what is left of any kernel */
    double saved;
    int64_t time_ns, count;
    const struct prof_shape *worst;
    double worst_saved;
    struct prof_spots spots;
};

/* What a kernel's start takes of its time, 0..1. */
static double start_share(const struct prof_shape *shape, int64_t start_ns)
{
    return shape->sum_ns > 0
               ? fmin((double)start_ns * (double)shape->count / (double)shape->sum_ns, 1)
               : 1;
}

static double saved_part(const struct prof_judge *judge, const struct hits *hits,
                         const struct prof_shape *shape)
{
    return shape->kind == PROF_OP_KERNEL
               ? hits->part(judge, shape) * (1 - start_share(shape, hits->start_ns))
               : 0;
}

static struct hits find_hits(const struct prof_judge *judge, part_of *part)
{
    struct hits hits = {.part = part, .start_ns = prof_kernel_start_ns(judge, PROF_LEAST_START_NS)};
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        double gone = saved_part(judge, &hits, shape);
        if (!(gone > 0))
            continue;
        double saved = (double)shape->alone_ns * gone;
        hits.saved += saved;
        hits.time_ns += shape->sum_ns;
        hits.count += shape->count;
        prof_spots_add(&hits.spots, prof_longest_spot(judge, shape));
        if (!hits.worst || saved > hits.worst_saved) {
            hits.worst = shape;
            hits.worst_saved = saved;
        }
    }
    return hits;
}

/* The mean of what `weight` gives, by what each kernel saves. */
static double weigh_hits(const struct prof_judge *judge, const struct hits *hits, part_of *weight)
{
    const struct prof_shape *shape;
    double sum = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        double gone = saved_part(judge, hits, shape);
        sum += gone > 0 ? gone * (double)shape->alone_ns * weight(judge, shape) : 0;
    }
    return hits->saved > 0 ? sum / hits->saved : 0;
}

static void claim_hits(struct prof_judge *judge, struct prof_draft *draft, const struct hits *hits)
{
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        prof_claim_kernel(judge, draft, shape, saved_part(judge, hits, shape));
    prof_places(judge, draft, &hits->spots);
}

/* How near a kernel is to the best that could be in its place: its roof, and for a product of
 * matrices what the vendor's library reaches. */
static double reached_of(const struct prof_roofline_point *point)
{
    return fmax(point->roof_share, point->matmul_share);
}

/* What a kernel's roof leaves to be gained by doing the same work better; 1 where the roof is not
 * known for sure. */
static double below_roof(const struct prof_judge *judge, const struct prof_shape *shape)
{
    const struct prof_roofline_point *point = prof_roof_of(judge, shape);
    bool sure = point && (point->bound == PROF_BOUND_DRAM || point->bound == PROF_BOUND_L2 ||
                          (point->bound == PROF_BOUND_COMPUTE && !point->pipe_assumed));
    return sure ? 1 - fmin(reached_of(point), 1) : 1;
}

static int64_t device_units(const struct prof_judge *judge)
{
    const struct prof_device *device = judge->device->device;
    return device && device->units > 0 ? device->units : 0;
}

static bool occupancy_of(const struct prof_judge *judge, const struct prof_shape *shape,
                         struct prof_occupancy *occupancy)
{
    return prof_occupancy_of(judge->device->device, shape->config, occupancy);
}

/* ---- grids ----------------------------------------------------------------------------------- */

/* Where the runtime chooses the blocks there are no more than threads; those of several streams may
 * fill the device together. 0 = not known. */
static int64_t blocks_of(const struct prof_judge *judge, const struct prof_shape *shape)
{
    int64_t most = prof_config_most_blocks(shape->config);
    bool few = most < device_units(judge) && judge->device->streams < 2;
    return few ? most : prof_config_blocks(shape->config);
}

/* At most, a block alone on a unit works at the pace that it has beside as many as a unit holds. */
static double part_unused(const struct prof_judge *judge, const struct prof_shape *shape)
{
    int64_t units = device_units(judge), blocks = blocks_of(judge, shape);
    struct prof_occupancy occupancy;
    bool small =
        blocks && blocks < units && !prof_is_unbatched(judge, shape); /* one fault, reported once */
    if (!small)
        return 0;
    int64_t held = occupancy_of(judge, shape, &occupancy) ? occupancy.blocks : 1;
    return fmin(1 - (double)blocks / (double)(units * held), below_roof(judge, shape));
}

/* More blocks on units that have one are less sure to gain than those on units without. */
static double part_of_units(const struct prof_judge *judge, const struct prof_shape *shape)
{
    double blocks = (double)blocks_of(judge, shape);
    return fmin((1 - blocks / (double)device_units(judge)) / part_unused(judge, shape), 1);
}

static void small_grid(struct prof_judge *judge)
{
    int64_t units = device_units(judge);
    if (!units) {
        prof_abstain(judge, "needs the device's number of units");
        return;
    }
    struct hits hits = find_hits(judge, part_unused);
    if (!hits.worst)
        return;
    int64_t blocks = blocks_of(judge, hits.worst);
    /* What a library launches is as its user's sizes make it. */
    bool own = !prof_name_is_library(hits.worst->config->name);
    double sure = 0.4 * weigh_hits(judge, &hits, part_of_units);
    struct prof_draft *draft = prof_found(judge, own ? sure : fmin(sure, 0.2));
    prof_numbers(draft, {"launches", (double)hits.count}, {"units", (double)units},
                 {"blocks", (double)blocks}, {"kernel_ns", (double)hits.time_ns},
                 {"costliest_ns", (double)hits.worst->sum_ns});
    prof_say(draft,
             "{launches|launch|launches} with fewer blocks than the device has units ({units}), "
             "{kernel_ns} in all: %s has {blocks}, and takes {costliest_ns}.",
             prof_short_name(prof_shape_name(hits.worst)).text);
    claim_hits(judge, draft, &hits);
}

static bool knows_occupancy(const struct prof_judge *judge)
{
    struct prof_occupancy occupancy;
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (shape->kind == PROF_OP_KERNEL && occupancy_of(judge, shape, &occupancy))
            return true;
    return false;
}

/* Rounds of blocks; 0 = not known. */
static double rounds_of(const struct prof_judge *judge, const struct prof_shape *shape)
{
    struct prof_occupancy occupancy;
    if (!device_units(judge) || !occupancy_of(judge, shape, &occupancy))
        return 0;
    return (double)prof_config_blocks(shape->config) /
           (double)(device_units(judge) * occupancy.blocks);
}

#define LARGE_BLOCKS 2 /* so many fill a unit, and share it: each takes longer */

/* Rounds, where blocks are so large that a unit works on one of them at a time: also of those that
 * all start at once, as 144 blocks on 132 units. What a library launches it chose for that. */
static double rounds_of_work(const struct prof_judge *judge, const struct prof_shape *shape)
{
    struct prof_occupancy occupancy;
    double rounds = rounds_of(judge, shape);
    if (rounds <= 0 || rounds >= 1 || !occupancy_of(judge, shape, &occupancy) ||
        occupancy.blocks > LARGE_BLOCKS || prof_name_is_library(shape->config->name))
        return rounds;
    return rounds * (double)occupancy.blocks;
}

static double part_last_round(const struct prof_judge *judge, const struct prof_shape *shape)
{
    double rounds = rounds_of_work(judge, shape), full = floor(rounds);
    if (full < 1 || rounds == full || 1 / (full + 1) < 0.2)
        return 0;
    return fmin(1 - rounds / (full + 1), below_roof(judge, shape));
}

static void tail_effect(struct prof_judge *judge)
{
    if (!device_units(judge) || !knows_occupancy(judge)) {
        prof_abstain(judge, "needs registers and threads per unit: CUDA only");
        return;
    }
    struct hits hits = find_hits(judge, part_last_round);
    if (!hits.worst)
        return;
    struct prof_draft *draft = prof_found(judge, 0.3);
    prof_numbers(draft, {"launches", (double)hits.count});
    prof_number(draft, "rounds", rounds_of_work(judge, hits.worst), PROF_NUMBER_PLAIN);
    prof_numbers(draft, {"kernel_ns", (double)hits.time_ns});
    prof_say(
        draft,
        "The last round of blocks fills only a part of the device: {launches|launch|launches}, "
        "{kernel_ns} in all, the costliest %s with {rounds} rounds.",
        prof_short_name(prof_shape_name(hits.worst)).text);
    claim_hits(judge, draft, &hits);
}

/* ---- occupancy ------------------------------------------------------------------------------- */

#define LOW 0.8
#define EMPTY_ROUND 0.2
#define LATENCY_CONFIDENCE 0.4 /* x the threads that are missing */

/* What a unit takes to start and end a block: measured on an H200, blocks of 32 elements that do
 * next to nothing (bench/triton_faults.py, x_triton_tiny). */
#define START_BLOCK_NS 80
#define LARGEST_BLOCK 1024

/* How long a block takes where a unit holds no more of them for their number alone and there are
 * ten rounds or more; 0 = not so. */
static double tiny_block_ns(const struct prof_judge *judge, const struct prof_shape *shape)
{
    struct prof_occupancy occupancy;
    double rounds = rounds_of(judge, shape);
    return rounds >= 10 && occupancy_of(judge, shape, &occupancy) &&
                   occupancy.limit == PROF_LIMIT_BLOCKS
               ? (double)shape->sum_ns / (double)shape->count / rounds
               : 0;
}

/* The part of the kernel's time that starting blocks of a warp or two takes, where that is nearly
 * all, less what a block of all threads that there can be takes for as many of them; 0 otherwise.
 */
static double part_starting_blocks(const struct prof_judge *judge, const struct prof_shape *shape)
{
    struct prof_occupancy occupancy;
    double block_ns = tiny_block_ns(judge, shape);
    if (!(block_ns > 0) || !occupancy_of(judge, shape, &occupancy))
        return 0;
    double starts = START_BLOCK_NS * (double)occupancy.blocks / block_ns;
    return starts < 0.8
               ? 0
               : fmin(starts, 1) * (1 - (double)prof_config_threads(shape->config) / LARGEST_BLOCK);
}

static double part_latency(const struct prof_judge *judge, const struct prof_shape *shape)
{
    struct prof_occupancy occupancy;
    if (!occupancy_of(judge, shape, &occupancy) || occupancy.share >= LOW ||
        prof_name_is_library(shape->config->name))
        return 0;
    if (part_starting_blocks(judge, shape) > 0)
        return fmin(part_starting_blocks(judge, shape), below_roof(judge, shape));
    if (part_last_round(judge, shape) >= EMPTY_ROUND)
        return 0; /* more blocks a unit are fewer rounds: one fault, reported once */
    /* GPA: hiding latency gains a factor of 2 at most; n times the threads a factor of n */
    return fmin(fmin(0.5, 1 - occupancy.share), below_roof(judge, shape));
}

/* The more threads are missing, the more is to be expected. */
static double part_missing(const struct prof_judge *judge, const struct prof_shape *shape)
{
    struct prof_occupancy occupancy;
    if (part_starting_blocks(judge, shape) > 0)
        return 1;
    return occupancy_of(judge, shape, &occupancy) ? 1 - occupancy.share : 0;
}

static void low_occupancy(struct prof_judge *judge)
{
    struct prof_occupancy worst;
    if (!knows_occupancy(judge)) {
        prof_abstain(judge, "needs registers and threads per unit: CUDA only");
        return;
    }
    struct hits hits = find_hits(judge, part_latency);
    if (!hits.worst || !occupancy_of(judge, hits.worst, &worst))
        return;
    struct prof_draft *draft =
        prof_found(judge, LATENCY_CONFIDENCE * weigh_hits(judge, &hits, part_missing));
    prof_number(draft, "occupancy", worst.share, PROF_NUMBER_SHARE);
    prof_numbers(draft, {"registers", (double)hits.worst->config->registers},
                 {"blocks_per_unit", (double)worst.blocks},
                 {"threads_per_block", (double)prof_config_threads(hits.worst->config)},
                 {"kernel_ns", (double)hits.time_ns});
    prof_say(draft,
             "%s runs with at most {occupancy} of the threads that a unit can hold: limited by %s "
             "to {blocks_per_unit|block|blocks} of {threads_per_block|thread|threads} a unit "
             "({registers|register|registers} a thread); {kernel_ns} in such kernels.",
             prof_short_name(prof_shape_name(hits.worst)).text,
             prof_occupancy_limit_text(worst.limit));
    if (part_starting_blocks(judge, hits.worst) > 0) {
        prof_number(draft, "block_ns", tiny_block_ns(judge, hits.worst), PROF_NUMBER_NS);
        prof_say(draft,
                 " A block takes {block_ns}, most of it to start: make blocks larger, or give "
                 "each more to do.");
    }
    claim_hits(judge, draft, &hits);
}

/* ---- the kernel that dominates --------------------------------------------------------------- */

#define HOT 0.1
#define HOT_CONFIDENCE                                                                             \
    0.6 /* x the distance to the roof: near it each percent is harder to gain                      \
         */

/* Many kernels under one name are no place to begin. */
static bool is_the_rest(const struct prof_shape *shape)
{
    return shape->config && shape->config->id == PROF_OTHER_CONFIGS;
}

/* Bytes that move faster than DRAM can are L2's: without a ceiling of L2 their roof is not known,
 * and the arithmetic's is not the nearest. */
static bool knows_roof(const struct prof_roofline_point *point)
{
    const struct prof_roof *l2 = &point->roofs[PROF_ROOF_L2];
    return point->matmul_share >= 0 ||
           (point->roof_share >= 0 && !(l2->rate > 0 && isnan(l2->share)));
}

#define MAX_FACTOR 100 /* above, a speed-up says nothing but that there is nothing else */

static void hot_kernel(struct prof_judge *judge)
{
    const struct prof_shape *shape, *hot = NULL;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (shape->kind == PROF_OP_KERNEL && !is_the_rest(shape) &&
            (!hot || shape->alone_ns > hot->alone_ns))
            hot = shape;
    }
    if (!hot || prof_of_window(judge, hot->alone_ns) < HOT)
        return;
    const struct prof_roofline_point *point = prof_roof_of(judge, hot);
    if (point && (point->bound == PROF_BOUND_DRAM || point->bound == PROF_BOUND_L2))
        return; /* memory-bound reports it */
    double reached = point && knows_roof(point) ? reached_of(point) : NAN;
    bool product = point && point->matmul_share >= reached;
    double share = prof_of_window(judge, hot->alone_ns);
    double left = isfinite(reached) ? 1 - fmin(reached, 1) : 1;
    /* That it takes the time is no fault, and a library's kernel is as it is. */
    bool sure = isfinite(reached) && !prof_name_is_vendor(hot->config->name);
    struct prof_draft *draft = prof_found(judge, sure ? HOT_CONFIDENCE * left : 0.2);
    prof_numbers(draft, {"share", share}, {"launches", (double)hot->count},
                 {"kernel_ns", (double)hot->sum_ns}, {"roof_share", reached});
    prof_number(draft, "kernel_factor", 2, PROF_NUMBER_COUNT);
    prof_numbers(draft, {"whole_factor", 1 / (1 - share / 2)});
    bool limited = share < 1 - 1.0 / MAX_FACTOR;
    if (share < 1)
        prof_numbers(draft, {"limit_factor", 1 / (1 - share)});
    if (!limited)
        prof_number(draft, "least_limit_factor", MAX_FACTOR, PROF_NUMBER_COUNT);
    prof_say(draft, "%s takes {share} of the time ({launches|launch|launches})",
             prof_short_name(prof_shape_name(hot)).text);
    if (isfinite(reached))
        prof_say(draft, product ? ", at {roof_share} of what the vendor's library reaches"
                                : ", at {roof_share} of its roof");
    prof_say(
        draft,
        ". Making it {kernel_factor}x faster speeds up the whole {whole_factor}x; the limit is ");
    prof_say(draft, limited ? "{limit_factor}x." : "more than {least_limit_factor}x.");
    prof_claim_kernel(judge, draft, hot,
                      left *
                          (1 - start_share(hot, prof_kernel_start_ns(judge, PROF_LEAST_START_NS))));
    draft->finding.names_no_cause = true;
    draft->most = PROF_SEVERITY_WARNING; /* so that what names a cause comes first */
    struct prof_spot spot = prof_longest_spot(judge, hot);
    prof_place(judge, draft, &spot);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_kernel[] = {
    {.page =
         {.id = "small-grid",
          .title = "Fewer blocks than the device has units",
          .fires = "Launches with fewer blocks (work-groups) than multiprocessors (compute units), "
                   "but for those in rows of one kernel, which unbatched-kernels reports. Where "
                   "the runtime "
                   "chooses the blocks: with fewer threads than units, in one stream. Info where "
                   "the costliest is a library's kernel.",
          .why = "A block runs on one unit; the others have nothing to do.",
          .fix = "Launch more blocks: split the work finer, batch it, or run "
                 "kernels together.",
          .cuda = "Smaller blocks and more of them "
                  "(cudaOccupancyMaxPotentialBlockSize); sums split over blocks "
                  "(split-K, stream-K); independent kernels on several streams.",
          .opencl = "A smaller local_work_size, so more work-groups: "
                    "CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE is the least that "
                    "fills the hardware.",
          .pytorch = "A larger batch; torch.bmm instead of a loop; torch.cuda.Stream() "
                     "for independent branches.",
          .jax = "jax.vmap over a larger batch.",
          .bound = "Sum of time alone, less what kernels take to start, x (1 - blocks / (units x "
                   "blocks that one holds, after the occupancy formula)). Not more than a roof "
                   "leaves.",
          .limits = "The parts of a block's work may not be divisible further. Its confidence is "
                    "0.4 for blocks on units without one, and less for more on each.",
          .needs = "kernels with configuration, and the device's units"},
     .judge = small_grid},
    {.page =
         {.id = "tail-effect",
          .title = "The last round of blocks leaves the device half empty",
          .fires =
              "Kernels of one to four full rounds of blocks and a part of one: rounds = "
              "blocks / (units x blocks per unit), after the occupancy formula. Where all start "
              "at once and two fill a unit (not of libraries): blocks / units, as the two "
              "share it.",
          .why = "The last, partial round takes as long as a full one.",
          .fix = "Launch as many blocks as run at once, or a multiple of that "
                 "number.",
          .cuda = "A grid of multiprocessors x "
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor blocks with a "
                  "grid-stride loop; another block size; stream-K for matrix "
                  "products.",
          .opencl = "A loop over the work in as many work-groups as run at once; or "
                    "another local_work_size.",
          .pytorch = "A batch size that fills whole rounds of blocks; "
                     "torch.compile(mode=\"max-autotune\") tries other block sizes.",
          .bound =
              "Sum of time alone, less what kernels take to start, x (1 - rounds / rounds rounded "
              "up). Not more than a roof leaves that memory or counted arithmetic hits.",
          .limits = "Blocks of unequal work hide or worsen it.",
          .needs = "kernels with registers and shared memory, CUDA device attributes"},
     .judge = tail_effect},
    {.page = {.id = "low-occupancy",
              .title = "Registers, shared memory or block size limit occupancy",
              .fires =
                  "Theoretical occupancy below 80 %. Not where tail-effect reports a fifth of the "
                  "kernel or more: more blocks a unit make fewer rounds. Not kernels of libraries "
                  "and compilers, by their names: their registers are not the program's.",
              .why = "Few resident threads hide little latency. It does no harm where the kernel "
                     "is near a roof all the same.",
              .fix = "Lower what limits the kernel: registers or shared memory. Where it is the "
                     "number of blocks: larger blocks, or more to do for each.",
              .cuda = "__launch_bounds__(threads, blocks) at the kernel, or nvcc "
                      "-maxrregcount=N; smaller __shared__ arrays; cudaFuncSetAttribute "
                      "with cudaFuncAttributePreferredSharedMemoryCarveout.",
              .opencl = "__attribute__((reqd_work_group_size(x, y, z))) at the kernel; "
                        "smaller __local arrays.",
              .pytorch = "Triton kernels: num_warps, num_stages, another BLOCK; "
                         "torch.compile(mode=\"max-autotune\").",
              .bound = "The kernels' time alone, less what they take to start, x (1 - occupancy), "
                       "half of it at most: hiding latency gains a factor of two. Of ten rounds of "
                       "blocks or more, of which a unit holds no more for their number alone, and "
                       "begins one each 100 ns or faster (80 are what starting takes): x (1 - "
                       "threads of a block / 1,024) x the share of starting. Not more than a roof "
                       "leaves that memory or counted arithmetic hits.",
              .limits = "Theoretical occupancy only; its confidence is low: 0.4 x (1 - occupancy), "
                        "0.4 for such blocks.",
              .needs = "kernels with registers and shared memory, CUDA device attributes"},
     .judge = low_occupancy},
    {.judge = NULL},
};

/* Behind all others: it says where the time goes, and is given what no cause was. */
const struct prof_rule prof_rules_hot[] = {
    {.page = {.id = "hot-kernel",
              .title = "One kernel dominates",
              .fires = "A launch configuration has the device alone for 10 % of the time or more, "
                       "and longer than any other. A warning at most. Info where its roof is not "
                       "known, and of kernels that cuBLAS, cuDNN, cuFFT and cuSOLVER bring along. "
                       "Silent where memory bandwidth holds it back: memory-bound reports it.",
              .why = "What a faster kernel brings is limited by its share (Amdahl): the finding "
                     "says by how much, before you start.",
              .fix = "Optimize this kernel first: hardware counters say what limits it.",
              .cuda = "perfkit run --counters, then Nsight Compute on this kernel (ncu "
                      "-k NAME); or a library's version of it (cuBLAS, cuDNN, CUB).",
              .opencl = "perfkit report --roofline OUT.svg; or a library's version of it "
                        "(CLBlast).",
              .pytorch = "A library's operator in its place "
                         "(torch.nn.functional.scaled_dot_product_attention); "
                         "torch.compile(mode=\"max-autotune\").",
              .jax = "A library's operator in its place, as for attention "
                     "jax.nn.dot_product_attention(..., implementation=\"cudnn\").",
              .bound = "Its time alone, less what it takes to start, x (1 - share of the roof that "
                       "it reaches; of a product of matrices, share of what the vendor's library "
                       "reaches), all of it where neither is known.",
              .limits = "That a kernel takes the time is no fault by itself.",
              .needs = "kernels; declared work or counters for more than info"},
     .judge = hot_kernel},
    {.judge = NULL},
};
