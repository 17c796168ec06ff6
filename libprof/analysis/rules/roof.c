/* Rules that need to know what kernels do: how many bytes, at which clock. They speak where work
 * was declared or counted, and say what is missing where it was not. */
#include <math.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/gpu/nvml.h"

/* ---- under the roofline ---------------------------------------------------------------------- */

struct placed {
    int64_t time_ns, points;
    const struct prof_roofline_point *worst;
    struct prof_spots spots;
};

static void add_roof_point(struct prof_judge *judge, struct placed *placed,
                           const struct prof_roofline_point *point, const struct prof_shape *shape)
{
    placed->points++;
    placed->time_ns += shape->alone_ns;
    if (!placed->worst || point->time_ns > placed->worst->time_ns)
        placed->worst = point;
    prof_spots_add(&placed->spots, prof_longest_spot(judge, shape));
}

/* What a roof of memory leaves of a kernel's time; 0 where it stands under none. */
static double below_memory_roof(const struct prof_roofline_point *point)
{
    bool bound = point && (point->bound == PROF_BOUND_DRAM || point->bound == PROF_BOUND_L2);
    return bound ? 1 - fmin(point->roof_share, 1) : 0;
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
            add_roof_point(judge, &placed, point, shape);
    }
    if (!any) {
        prof_abstain(judge, "needs declared work or counters, and the device's ceilings");
        return;
    }
    if (!placed.worst)
        return;
    enum prof_roof_level level =
        placed.worst->bound == PROF_BOUND_L2 ? PROF_ROOF_L2 : PROF_ROOF_DRAM;
    struct prof_draft *draft = prof_found(judge, 0.8);
    prof_numbers(draft, {"kernels", (double)placed.points}, {"kernel_ns", (double)placed.time_ns},
                 {"kernel_share", prof_of_window(judge, placed.time_ns)},
                 {"roof_share", placed.worst->roof_share},
                 {"rate", placed.worst->roofs[level].rate});
    prof_say(draft,
             "Memory bandwidth limits {kernels|kernel|kernels}, {kernel_share} of the time, the "
             "costliest %s: at {roof_share} of the roof of %s, {rate}. Above the roof only fewer "
             "bytes help.",
             prof_short_name(placed.worst->name).text, prof_roof_level_text(level));
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        prof_claim_kernel(judge, draft, shape, below_memory_roof(prof_roof_of(judge, shape)));
    draft->most = PROF_SEVERITY_INFO;
    prof_places(judge, draft, &placed.spots);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

#define CLOCK_SAMPLES 3
#define CLOCK_LOSS 0.05
#define POWER_CAP 4 /* bit of the reasons */

/* What a kernel gains by the full clock: nothing where memory holds it back. */
static double part_of_clock(const struct prof_roofline_point *point, double loss)
{
    return point && point->bound == PROF_BOUND_DRAM ? 0 : loss;
}

static void clock_throttling(struct prof_judge *judge)
{
    const struct prof_clock_facts *clocks = &judge->device->clocks;
    double loss = 1 - clocks->mhz / clocks->max_mhz;
    double lowered = clocks->samples ? (double)clocks->lowered / (double)clocks->samples : 0;
    char reasons[160];
    if (clocks->working < CLOCK_SAMPLES) {
        prof_abstain(judge, "needs samples of the clocks in the iterations (NVML, ten a second)");
        return;
    }
    if (!(loss >= CLOCK_LOSS) && lowered < CLOCK_LOSS)
        return;
    prof_nvml_throttle_text(clocks->reasons, reasons, sizeof reasons);
    struct prof_draft *draft = prof_found(judge, 0.6);
    prof_numbers(draft, {"mhz", clocks->mhz}, {"max_mhz", clocks->max_mhz},
                 {"samples", (double)clocks->samples}, {"lowered", (double)clocks->lowered},
                 {"lowered_share", lowered});
    prof_say(
        draft,
        "The multiprocessors run at {mhz} MHz in the mean while they work, and can do {max_mhz} "
        "MHz; {lowered} of {samples|sample|samples} show that something lowered the clock (%s).",
        reasons);
    if (clocks->reasons == POWER_CAP)
        draft->most =
            PROF_SEVERITY_INFO; /* so a device runs that is fully loaded: nothing to fix */
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (prof_is_kernel(shape))
            prof_claim_kernel(judge, draft, shape, part_of_clock(prof_roof_of(judge, shape), loss));
}

/* ---- what is not recorded yet ---------------------------------------------------------------- */

static void host_cache_misses(struct prof_judge *judge)
{
    prof_abstain(judge, "needs the host's performance counters, which are not recorded");
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_roof[] = {
    {.page =
         {.id = "memory-bound",
          .title = "Kernels at the memory roof",
          .fires = "Kernels that the roofline places under DRAM or L2 bandwidth.",
          .why = "They move bytes as fast as the memory lets them: faster arithmetic, more threads "
                 "or a better compiler bring nothing.",
          .fix = "Move fewer bytes: fuse kernels, use narrower types, reuse data on "
                 "the chip.",
          .cuda = "float4 loads by neighbouring threads from neighbouring addresses "
                  "until the roof is reached; then fuse kernels, and keep tiles in "
                  "__shared__ memory.",
          .opencl = "vload4 by neighbouring work-items from neighbouring addresses "
                    "until the roof is reached; then fuse kernels, and keep tiles in "
                    "__local memory.",
          .pytorch = "torch.compile fuses elementwise operators; "
                     "torch.autocast(\"cuda\", torch.bfloat16); "
                     "memory_format=torch.channels_last for convolutions.",
          .jax = "jax.jit around the whole function fuses elementwise operators; arrays as "
                 "jnp.bfloat16.",
          .bound = "Time alone x (1 - share of the roof reached): what better access patterns can "
                   "bring.",
          .limits = "Declared bytes may leave out what caches save or waste.",
          .needs = "declared work or counters, and ceilings"},
     .judge = memory_bound},
    {.page = {.id = "clock-throttling",
              .title = "The device runs below its maximum clock",
              .fires =
                  "The multiprocessors' clock is 5 % or more below the most they can do, or 5 % of "
                  "the samples show a power cap, heat or another limit; by ten samples a second of "
                  "the driver (NVML), those in which the device idles left out. Not above a "
                  "warning where power alone is the limit: that is normal at full load.",
              .why = "Power and heat limits slow everything down that computes.",
              .fix = "Cool the device or raise its power limit; lock its clocks for "
                     "measurements.",
              .cuda = "nvidia-smi -q -d PERFORMANCE names the reason; nvidia-smi -pl "
                      "WATTS; for measurements nvidia-smi -lgc MHZ, undone by -rgc.",
              .opencl = NULL,
              .pytorch = NULL,
              .bound = "Time alone of kernels that DRAM does not hold back x (1 - clock / most).",
              .limits = "Whether the host or the cooling allows more is not seen. Parts that "
                        "repeat for less than 0.3 s have too few samples.",
              .needs = "three samples of the device's clocks in the iterations"},
     .judge = clock_throttling},
    {.page = {.id = "host-cache-misses",
              .title = "The host's work misses its caches",
              .fires = "Abstains: the host's performance counters are not recorded yet.",
              .why = "A working set larger than the cache runs at the speed of memory.",
              .fix = "Loop over smaller tiles, in the order of memory, with narrower "
                     "types.",
              .cuda = NULL,
              .opencl = NULL,
              .pytorch = NULL,
              .bound = "Host time x share of cycles that wait for memory.",
              .limits = "Needs permission (perf_event_paranoid).",
              .needs = "the host's performance counters"},
     .judge = host_cache_misses},
    {.judge = NULL},
};
