/* Rules that need to know what kernels do: how many bytes and FLOP, at which precision, at which
 * clock. They speak where work was declared or counted, and say what is missing where it was not.
 */
#include <math.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"

/* ---- under the roofline ---------------------------------------------------------------------- */

struct placed {
    int64_t time_ns, points;
    double left_ns; /* what the roofs would leave */
    const struct prof_roofline_point *worst;
    struct prof_spots spots;
};

static void place(struct prof_judge *judge, struct placed *placed,
                  const struct prof_roofline_point *point, const struct prof_shape *shape,
                  double left)
{
    placed->points++;
    placed->time_ns += shape->alone_ns;
    placed->left_ns += left;
    if (!placed->worst || point->time_ns > placed->worst->time_ns)
        placed->worst = point;
    prof_spots_add(&placed->spots, prof_longest_spot(judge, shape));
}

static void memory_bound(struct prof_judge *judge)
{
    struct placed placed = {0};
    const struct prof_shape *shape;
    bool any = false;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        const struct prof_roofline_point *point = prof_roof_of(judge, shape);
        any |= point && point->bound != PROF_BOUND_NONE;
        if (point && (point->bound == PROF_BOUND_DRAM || point->bound == PROF_BOUND_L2))
            place(judge, &placed, point, shape,
                  (double)shape->alone_ns * (1 - fmin(point->roof_share, 1)));
    }
    if (!any) {
        prof_abstain(judge, "needs declared work or counters, and the device's ceilings");
        return;
    }
    if (!placed.worst || prof_of_window(judge, placed.time_ns) < 0.02)
        return;
    enum prof_roof_level level =
        placed.worst->bound == PROF_BOUND_L2 ? PROF_ROOF_L2 : PROF_ROOF_DRAM;
    struct prof_draft *draft = prof_found(
        judge, 0.8,
        "Memory bandwidth holds back %s, %s of the time, the costliest %s: at %s of the roof of "
        "%s, %s. "
        "Beyond the roof only fewer bytes help.",
        prof_counted(placed.points, "kernel", "kernels").text,
        prof_percent(prof_of_window(judge, placed.time_ns)).text,
        prof_short_name(placed.worst->name).text, prof_percent(placed.worst->roof_share).text,
        prof_roof_level_text(level), prof_rate(placed.worst->roofs[level].rate).text);
    prof_number(draft, "kernels", (double)placed.points, PROF_NUMBER_COUNT);
    prof_number(draft, "kernel_ns", (double)placed.time_ns, PROF_NUMBER_NS);
    prof_number(draft, "roof_share", placed.worst->roof_share, PROF_NUMBER_SHARE);
    prof_number(draft, "rate", placed.worst->roofs[level].rate, PROF_NUMBER_RATE);
    prof_claim(draft, PROF_SLICE_KERNEL, (int64_t)placed.left_ns);
    draft->most = PROF_SEVERITY_INFO;
    prof_places(judge, draft, &placed.spots);
}

/* ---- precision ------------------------------------------------------------------------------- */

/* Counters saw the pipe of wide floating point at its roof; else the kernel may hold anything. */
static bool computes_wide(const struct prof_roofline_point *point)
{
    return point->bound == PROF_BOUND_COMPUTE && !point->pipe_assumed;
}

struct narrowed {
    struct placed sure, maybe;
    bool any, moves_only;
};

static void find_wide(struct prof_judge *judge, struct narrowed *found)
{
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        const struct prof_roofline_point *point = prof_roof_of(judge, shape);
        if (!point || point->bound == PROF_BOUND_NONE)
            continue;
        found->any = true;
        if (point->bound != PROF_BOUND_DRAM && point->bound != PROF_BOUND_COMPUTE)
            continue;
        found->moves_only |= point->pipe == PROF_CEILINGS;
        if (point->pipe == PROF_CEILING_FP32 || point->pipe == PROF_CEILING_FP64)
            place(judge, computes_wide(point) ? &found->sure : &found->maybe, point, shape,
                  (double)shape->alone_ns / 2);
    }
}

static bool is_large(const struct prof_judge *judge, const struct placed *placed)
{
    return placed->worst && prof_of_window(judge, placed->time_ns) >= 0.1;
}

static void tell_precision(struct prof_judge *judge, struct prof_draft *draft,
                           const struct placed *placed)
{
    prof_number(draft, "kernels", (double)placed->points, PROF_NUMBER_COUNT);
    prof_number(draft, "kernel_ns", (double)placed->time_ns, PROF_NUMBER_NS);
    prof_claim(draft, PROF_SLICE_KERNEL, (int64_t)placed->left_ns);
    prof_places(judge, draft, &placed->spots);
}

static void low_precision(struct prof_judge *judge)
{
    const struct prof_device *device = judge->device->device;
    struct narrowed found = {0};
    const struct placed *sure = &found.sure, *maybe = &found.maybe;
    if (!device || device->compute_major < 7) {
        prof_abstain(judge, "needs a GPU with half-precision units (compute capability 7.0)");
        return;
    }
    find_wide(judge, &found);
    if (!found.any)
        prof_abstain(judge, "needs declared work or counters, and the device's ceilings");
    else if (found.moves_only && !sure->worst && !maybe->worst)
        prof_abstain(judge, "counters show next to no arithmetic where bytes take the time");
    if (is_large(judge, sure))
        tell_precision(
            judge,
            prof_found(judge, 0.4,
                       "Arithmetic in 32 bits or more holds back %s, %s of the time, the costliest "
                       "%s at %s of its pipe: 16 bits are at least twice as fast, where the result "
                       "allows.",
                       prof_counted(sure->points, "kernel", "kernels").text,
                       prof_percent(prof_of_window(judge, sure->time_ns)).text,
                       prof_short_name(sure->worst->name).text,
                       prof_percent(sure->worst->pipe_share).text),
            sure);
    if (!is_large(judge, maybe))
        return;
    struct prof_draft *draft = prof_found(
        judge, 0.2,
        "Bytes or arithmetic hold back %s, %s of the time, the costliest %s. If they are numbers "
        "of 32 bits, which nothing recorded tells, 16 bits halve both, where the result allows.",
        prof_counted(maybe->points, "kernel", "kernels").text,
        prof_percent(prof_of_window(judge, maybe->time_ns)).text,
        prof_short_name(maybe->worst->name).text);
    draft->most = PROF_SEVERITY_INFO;
    tell_precision(judge, draft, maybe);
}

/* ---- what is not recorded yet ---------------------------------------------------------------- */

static void clock_throttling(struct prof_judge *judge)
{
    prof_abstain(judge, "needs the device's clocks over time, which are not recorded");
}

static void host_cache_misses(struct prof_judge *judge)
{
    prof_abstain(judge, "needs the host's performance counters, which are not recorded");
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_roof[] = {
    {.page =
         {.id = "low-precision",
          .title = "32-bit arithmetic where 16 bits might do",
          .fires =
              "Kernels that memory or arithmetic holds back take 10 % of the time, on a GPU of "
              "compute capability 7.0 or newer. Above info only where counters saw the pipe of "
              "32 or 64 bits at 60 % or more of its peak. Kernels in which counters saw next to "
              "no arithmetic are left out.",
          .why = "Half the bytes and twice (tensor cores: many times) the arithmetic rate.",
          .fix = "Store in bfloat16 or half, add up in 32 bits, and compare results.",
          .cuda = "__half2, __nv_bfloat162; cublasGemmEx with CUDA_R_16BF; TF32 by "
                  "cublasSetMathMode.",
          .opencl = "cl_khr_fp16: half, vload_half.",
          .pytorch = "torch.autocast(\"cuda\", torch.bfloat16); "
                     "torch.set_float32_matmul_precision(\"high\").",
          .bound = "Half of those kernels' time alone.",
          .limits =
              "Whether the accuracy suffices only the program knows. Nothing recorded tells "
              "the type of what memory-bound kernels move, and integers are multiplied in the "
              "pipe of 32 bits too. Tensor cores may bring more than the bound.",
          .needs =
              "declared work or counters, and the device's ceilings; counters for more than info"},
     .judge = low_precision},
    {.page = {.id = "memory-bound",
              .title = "Kernels at the memory roof",
              .fires =
                  "Kernels that the roofline places under DRAM or L2 bandwidth take 2 % of the "
                  "time or more.",
              .why = "They move bytes as fast as the memory lets them: faster arithmetic, more "
                     "threads or a better compiler bring nothing.",
              .fix = "Fewer bytes: fuse with neighbours, narrower types, reuse in cache or shared "
                     "memory.",
              .cuda = "float4 loads and coalescing until the roof is reached; then fusion.",
              .opencl = "vload4 and coalescing until the roof is reached; then fusion.",
              .pytorch = "torch.compile; bfloat16; channels_last.",
              .bound =
                  "Time alone x (1 - share of the roof reached): what better access patterns can "
                  "bring.",
              .limits = "Declared bytes may leave out what caches save or waste.",
              .needs = "declared work or counters, and ceilings"},
     .judge = memory_bound},
    {.page = {.id = "clock-throttling",
              .title = "The device runs below its clock",
              .fires = "Abstains: clocks are not recorded yet.",
              .why = "Power and heat limits slow everything down that computes.",
              .fix = "Cooling, power limit, locked clocks for measurements.",
              .cuda = "nvidia-smi --query-gpu=clocks_throttle_reasons.active; nvidia-smi -lgc.",
              .opencl = NULL,
              .pytorch = NULL,
              .bound = "Compute-bound time x (1 - clock / reference clock).",
              .limits = "Memory-bound kernels do not follow the core clock.",
              .needs = "the device's clocks over time"},
     .judge = clock_throttling},
    {.page = {.id = "host-cache-misses",
              .title = "The host's work misses its caches",
              .fires = "Abstains: the host's performance counters are not recorded yet.",
              .why = "A working set larger than the cache runs at the speed of memory.",
              .fix = "Smaller tiles, narrower types, another order of loops.",
              .cuda = NULL,
              .opencl = NULL,
              .pytorch = NULL,
              .bound = "Host time x share of cycles that wait for memory.",
              .limits = "Needs permission (perf_event_paranoid).",
              .needs = "the host's performance counters"},
     .judge = host_cache_misses},
    {.judge = NULL},
};
