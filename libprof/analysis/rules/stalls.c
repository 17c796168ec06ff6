/* What bounds single kernels, by samples of their instructions (--stalls): for each kernel that
 * takes a part of the device's time worth speaking of, for what most of its warps wait, at which
 * line, what helps, and how much at most.
 *
 * The bound is the smaller of two that are published. Without the stalls of the cause a kernel with
 * M such samples of T is T / (T - M) times as fast (GPA, CGO'21: stall elimination). And where a
 * fix leaves the instructions as they are, it is not faster than its schedulers issue them: T / (T
 * - N) with N samples in cycles without an issue (the rule on issue slots of Nsight Compute). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/gpu/names.h"

#define LEAST_SHARE 0.05 /* of the device's kernel time */
#define LEAST_SAMPLES 100
#define LEAST_FACTOR 1.05
#define OWN_CONFIDENCE 0.4
#define SCHEDULERS 4 /* of a multiprocessor, since Volta */

/* What the reasons of a cause have in common is the fix. */
enum cause { MEMORY, SPILLS, SHARED, PIPE, LATENCY, BARRIER, FENCE, CODE, BRANCH, TENSOR, CAUSES };

#define BIT(reason) (1u << PROF_STALL_##reason)
static const struct {
    unsigned reasons; /* whose samples are the cause's */
    unsigned also;    /* that go with it where it is the cause */
    bool same_instructions;
    const char *advice;
} causes[CAUSES] = {
    [MEMORY] = {BIT(LONG_SCOREBOARD) | BIT(LG) | BIT(TEX), 0, true,
                "Coalesced and wider accesses, data reused in shared memory or registers, loads "
                "issued earlier, or more warps help"},
    [SPILLS] = {0, BIT(LONG_SCOREBOARD) | BIT(LG), false,
                "Its registers spill to local memory: fewer live values, or more registers a "
                "thread by __launch_bounds__, help"},
    [SHARED] = {BIT(SHORT_SCOREBOARD) | BIT(MIO), 0, true,
                "Accesses to shared memory without bank conflicts (padding, another layout), wider "
                "ones, or fewer special functions help"},
    [PIPE] = {BIT(MATH_PIPE), BIT(NOT_SELECTED), false,
              "The arithmetic pipe is the limit: a narrower type, tensor cores or less arithmetic "
              "help"},
    [LATENCY] = {BIT(WAIT) | BIT(DISPATCH), 0, true,
                 "Each instruction waits for the one before: several independent chains (unrolling "
                 "with separate accumulators), or more warps, help"},
    [BARRIER] = {BIT(BARRIER), 0, true,
                 "Even work between barriers, smaller blocks, or fewer barriers help"},
    [FENCE] = {BIT(MEMBAR) | BIT(DRAIN), 0, false, "Fewer or narrower memory fences help"},
    [CODE] = {BIT(NO_INSTRUCTION) | BIT(IMC), 0, false,
              "Its code does not fit into the instruction cache: less unrolling and inlining "
              "help"},
    [BRANCH] = {BIT(BRANCH), BIT(WAIT) | BIT(NO_INSTRUCTION), false,
                "Branches that whole warps take alike help; what diverging warps lose beside these "
                "stalls is not counted"},
    [TENSOR] = {BIT(GMMA) | BIT(WARPGROUP), 0, true,
                "More tensor work in flight (a deeper pipeline of tiles) helps"},
};

static int64_t samples_of(const struct prof_stall_sums *sums, unsigned reasons)
{
    int64_t samples = 0;
    for (int i = 0; i < PROF_STALL_REASONS; i++)
        samples += reasons >> i & 1 ? sums->of[i] : 0;
    return samples;
}

static bool is_spilling(const struct prof_stall_row *kernel)
{
    return kernel->spills * 5 > kernel->instructions ||
           (kernel->config && kernel->config->local_bytes > 0);
}

/* CAUSES where nothing can be said: it sleeps, or the reason is not known. */
static enum cause stall_cause_of(const struct prof_stall_row *kernel)
{
    int64_t most = samples_of(&kernel->sums, BIT(SLEEPING) | BIT(MISC) | BIT(OTHER));
    enum cause cause = CAUSES;
    for (enum cause i = 0; i < CAUSES; i++) {
        int64_t samples = samples_of(&kernel->sums, causes[i].reasons);
        if (samples > most) {
            most = samples;
            cause = i;
        }
    }
    return cause == MEMORY && is_spilling(kernel) ? SPILLS : cause;
}

/* Warps of a launch for each scheduler of the device; 0 = not known. */
static double warps_per_scheduler(const struct prof_judge *judge, const struct prof_config *config)
{
    const struct prof_device *device = judge->device->device;
    if (!device || !(device->units > 0) || config->block[0] <= 0)
        return 0;
    int64_t threads = 1, blocks = 1;
    for (int i = 0; i < 3; i++) {
        threads *= config->block[i] > 0 ? config->block[i] : 1;
        blocks *= config->grid[i] > 0 ? config->grid[i] : 1;
    }
    return (double)blocks * ceil((double)threads / 32) / (double)(device->units * SCHEDULERS);
}

/* How many times as fast at most. */
static double stall_factor(const struct prof_stall_sums *sums, enum cause cause, double warps)
{
    double all = (double)sums->samples;
    double stalled = (double)samples_of(sums, causes[cause].reasons | causes[cause].also);
    double issued = fmax(all - (double)sums->not_issued, 1);
    double eliminated = all / fmax(all - stalled, 1);
    if (cause == FENCE)
        return fmax(eliminated, all / issued);
    if (warps > 0 && warps < 2 && causes[cause].same_instructions)
        return fmax(eliminated, all / issued * fmax(1, 1 / warps));
    return causes[cause].same_instructions ? fmin(eliminated, all / issued) : eliminated;
}

static bool is_of_shape(const struct prof_stall_row *kernel, const struct prof_shape *shape)
{
    return shape->config && shape->config->full_name && kernel->full_name &&
           strcmp(kernel->full_name, shape->config->full_name) == 0;
}

static void report_stalls(struct prof_judge *judge, const struct prof_stall_row *kernel,
                          const struct prof_shape *longest, int64_t time_ns, double share)
{
    enum cause cause = stall_cause_of(kernel);
    double warps = warps_per_scheduler(judge, longest->config);
    double factor = cause < CAUSES ? stall_factor(&kernel->sums, cause, warps) : 1;
    if (factor < LEAST_FACTOR)
        return;
    bool library = prof_name_is_library(kernel->name);
    const struct prof_stall_sums *sums = &kernel->sums;
    struct prof_draft *draft = prof_found(judge, library ? 0.2 : OWN_CONFIDENCE);
    draft->finding.subject = kernel->subject;
    prof_numbers(
        draft, {"kernel_ns", (double)time_ns}, {"kernel_share", share},
        {"samples", (double)sums->samples},
        {"stall_share", (double)samples_of(sums, causes[cause].reasons | causes[cause].also) /
                            (double)sums->samples},
        {"issue_share", 1 - (double)sums->not_issued / (double)sums->samples},
        {"bound_factor", factor});
    prof_say(draft,
             "%s takes {kernel_share} of the device's kernel time and waits for %s: stalls of this "
             "kind are {stall_share} of its {samples|sample|samples}",
             prof_short_name(kernel->name).text, prof_stall_text(sums->reason));
    if (kernel->file)
        prof_say(draft, ", most of all at %s.", prof_short_name(kernel->where).text);
    else
        prof_say(draft, ".");
    if (library)
        prof_say(draft, " It is a kernel of a library: another algorithm, shape or version of the "
                        "library, not an edit of the line, can help;");
    else
        prof_say(draft, " %s;", causes[cause].advice);
    if (warps > 0 && warps < 2) {
        prof_number(draft, "scheduler_warps", warps, PROF_NUMBER_PLAIN);
        prof_say(draft, " it has only {scheduler_warps} warps for each scheduler of the device;");
    }
    prof_say(draft, " at most {bound_factor}x as fast.");
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (is_of_shape(kernel, shape))
            prof_claim_kernel(judge, draft, shape, 1 - 1 / factor);
    }
    struct prof_spot spot = prof_longest_spot(judge, longest);
    prof_place(judge, draft, &spot);
}

static void stalled_kernel(struct prof_judge *judge)
{
    const struct prof_shape *shape;
    int64_t all_ns = 0;
    if (!judge->stalls->count) {
        prof_abstain(judge, "needs samples of instructions (--stalls)");
        return;
    }
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        all_ns += shape->config ? shape->sum_ns : 0;
    for (size_t i = 0; i < judge->stalls->count; i++) {
        const struct prof_stall_row *kernel = &judge->stalls->rows[i];
        const struct prof_shape *longest = NULL;
        int64_t time_ns = 0;
        for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
            if (!is_of_shape(kernel, shape))
                continue;
            time_ns += shape->sum_ns;
            if (!longest || shape->sum_ns > longest->sum_ns)
                longest = shape;
        }
        if (longest && kernel->sums.samples >= LEAST_SAMPLES && all_ns > 0 &&
            (double)time_ns >= LEAST_SHARE * (double)all_ns)
            report_stalls(judge, kernel, longest, time_ns, (double)time_ns / (double)all_ns);
    }
}

const struct prof_rule prof_rules_stalls[] = {
    {.page =
         {.id = "stalled-kernel",
          .title = "What a kernel waits for, and at which line",
          .fires = "Kernels with 5 % or more of the device's kernel time, of which at least 100 "
                   "samples were taken, where the stalls of one cause could make it 1.05 times as "
                   "fast. Info where it is a library's kernel.",
          .why = "Warps that wait issue nothing; where too few others can be issued meanwhile, the "
                 "schedulers are idle.",
          .fix = "Change the lines that wait: earlier loads, no bank conflicts, "
                 "fewer fences. Coalesced loads; several independent chains of "
                 "instructions; even work between barriers; smaller code; no "
                 "spilled registers.",
          .cuda = "perfkit report --kernel NAME shows the lines and the "
                  "instructions; compile with nvcc -lineinfo.",
          .opencl = NULL,
          .pytorch = "torch.compile or a fused operator in place of the kernel; Triton: "
                     "num_warps, num_stages, block sizes.",
          .bound =
              "Time alone x (1 - 1 / S), S the smaller of T / (T - M), M of its T samples being "
              "stalls of the cause (GPA: stall elimination), and, where the fix keeps the "
              "instructions, T / (T - N), N being in cycles without an issue. With less than "
              "two warps a scheduler, more of them help beyond that: S is T / (T - N) x "
              "schedulers / warps at most. For fences the larger of the two.",
          .limits = "An upper bound: what the warps wait for next is not known. Lanes that diverge "
                    "are not seen. The line is where the result is needed.",
          .needs = "samples of instructions (--stalls)"},
     .judge = stalled_kernel},
    {.judge = NULL},
};
