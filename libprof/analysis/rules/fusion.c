/* The rule about chains of kernels that only pass data on: one kernel could keep it in registers.
 */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"

#define CHAIN 3 /* kernels that follow each other */
#define STREAMING                                                                                  \
    4.0                /* FLOP per byte; below, memory and not arithmetic takes the time anywhere  \
                        */
#define SHORT_NS 20000 /* without declared work: kernels whose own work cannot be much */

enum fusible { NOT_FUSIBLE, BY_WORK, BY_LENGTH };

/* FLOP per byte of a launch configuration; NaN when nobody told. */
static double intensity_of(const struct prof_judge *judge, const struct prof_shape *shape)
{
    const struct prof_roofline_point *point = prof_roof_of(judge, shape);
    return point ? point->roofs[PROF_ROOF_DRAM].intensity : NAN;
}

static unsigned char *classify(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    unsigned char *classes = calloc(f->shapes.count + 1, 1);
    const struct prof_shape *shape;
    for (size_t at = 0; classes && (shape = prof_next_shape(judge, &at));) {
        if (shape->kind != PROF_OP_KERNEL)
            continue;
        double intensity = intensity_of(judge, shape);
        bool low = isfinite(intensity) && intensity < STREAMING;
        bool brief = isnan(intensity) && shape->sum_ns / shape->count < SHORT_NS;
        classes[shape - f->shapes.data] = low ? BY_WORK : brief ? BY_LENGTH : NOT_FUSIBLE;
    }
    return classes;
}

struct chain {
    uint32_t stream;
    const char *first_name, *last_name;
    int64_t length, sum_ns, longest_ns, gap_ns;
    int64_t host_ns, last_call; /* from call to call */
    int64_t begin, end;
    uint32_t thread, shape;
    bool declared;
};

struct chains {
    int64_t count, kernels, sum_ns, saved_ns, gap_ns, host_ns, longest;
    bool declared;
    struct prof_spots spots;
};

static void close_chain(struct chain *chain, struct chains *all)
{
    if (chain->length >= CHAIN) {
        all->count++;
        all->kernels += chain->length;
        all->sum_ns += chain->sum_ns;
        all->saved_ns += chain->sum_ns - chain->longest_ns;
        all->gap_ns += chain->gap_ns;
        all->host_ns += chain->host_ns;
        all->declared |= chain->declared;
        all->longest = chain->length > all->longest ? chain->length : all->longest;
        prof_spots_add(&all->spots, (struct prof_spot){chain->begin, chain->end - chain->begin,
                                                       chain->stream, chain->thread, chain->shape});
    }
    *chain = (struct chain){0};
}

/* Names, not configurations, tell neighbours apart: a kernel repeated over pieces is another
 * rule's. A chain that comes back to its first kernel has begun anew. */
static void extend(const struct prof_facts *f, struct chain *chain, struct chains *all,
                   const struct prof_op *op, bool declared)
{
    const char *name = prof_shape_name(&f->shapes.data[op->shape]);
    bool follows = chain->length && chain->stream == op->stream && chain->last_name != name &&
                   chain->first_name != name && op->start >= chain->end;
    int64_t gap = follows ? op->start - chain->end : 0;
    if (!follows || gap > SHORT_NS)
        close_chain(chain, all);
    if (!chain->length)
        *chain = (struct chain){.stream = op->stream,
                                .begin = op->start,
                                .thread = op->thread,
                                .shape = op->shape,
                                .first_name = name};
    else
        chain->gap_ns += gap;
    int64_t apart = op->call - chain->last_call;
    if (chain->length && op->call != PROF_UNKNOWN && op->thread == chain->thread && apart > 0 &&
        apart < SHORT_NS)
        chain->host_ns += apart;
    chain->last_call = op->call == PROF_UNKNOWN ? chain->last_call : op->call;
    chain->length++;
    chain->last_name = name;
    chain->sum_ns += op->duration;
    chain->longest_ns = op->duration > chain->longest_ns ? op->duration : chain->longest_ns;
    chain->end = op->start + op->duration;
    chain->declared |= declared;
}

static bool find_chains(struct prof_judge *judge, struct chains *all)
{
    const struct prof_facts *f = judge->facts;
    unsigned char *classes = classify(judge);
    struct prof_op_walk walk = {0};
    struct chain chain = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    *all = (struct chains){0};
    while (classes && (op = prof_facts_next(f, &walk, &kind))) {
        if (f->shapes.data[op->shape].device != judge->device_index || op->start < f->begin ||
            op->start >= f->end)
            continue;
        if (kind == PROF_OP_KERNEL && classes[op->shape])
            extend(f, &chain, all, op, classes[op->shape] == BY_WORK);
        else
            close_chain(&chain, all);
    }
    close_chain(&chain, all);
    free(classes);
    return classes != NULL;
}

static void fusion_candidate(struct prof_judge *judge)
{
    struct chains all;
    if (!find_chains(judge, &all)) {
        judge->failed = true;
        return;
    }
    int64_t dispatch = judge->device->slice_ns[PROF_SLICE_DISPATCH];
    dispatch = all.gap_ns < dispatch ? all.gap_ns : dispatch;
    if (all.count < 3 || prof_of_window(judge, all.saved_ns + all.gap_ns) < 0.02)
        return;
    struct prof_draft *draft = prof_found(
        judge, all.declared ? 0.7 : 0.3,
        "%s chains of up to %s different kernels that %s follow each other in one stream: %s in "
        "all, %s of the time, and %s between them. One kernel could keep what they pass on in "
        "registers.",
        prof_count(all.count).text, prof_count(all.longest).text,
        all.declared ? "move memory rather than compute" : "are short",
        prof_duration_ns(all.sum_ns).text, prof_percent(prof_of_window(judge, all.sum_ns)).text,
        prof_duration_ns(all.gap_ns).text);
    prof_number(draft, "chains", (double)all.count, PROF_NUMBER_COUNT);
    prof_number(draft, "kernels", (double)all.kernels, PROF_NUMBER_COUNT);
    prof_number(draft, "kernel_ns", (double)all.sum_ns, PROF_NUMBER_NS);
    prof_number(draft, "share", prof_of_window(judge, all.sum_ns), PROF_NUMBER_SHARE);
    prof_claim(draft, PROF_SLICE_KERNEL, all.saved_ns);
    if (all.declared) { /* else what is between them is the launch rules' */
        int64_t launch = all.gap_ns - dispatch;
        prof_claim(draft, PROF_SLICE_DISPATCH, dispatch);
        prof_claim(draft, PROF_SLICE_LAUNCH, launch > all.host_ns ? launch : all.host_ns);
    }
    prof_places(judge, draft, &all.spots);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_fusion[] = {
    {.page = {.id = "fusion-candidate",
              .title = "Neighbouring kernels that could be one",
              .fires =
                  "At least three chains of three or more different kernels that follow each "
                  "other in one stream within 20 us, each with declared or counted work below "
                  "4 FLOP per byte, or, where nobody told, shorter than 20 us; together 2 % of "
                  "the time.",
              .why =
                  "Each kernel writes its result to memory and the next one reads it back; kernels "
                  "that do little else spend their time on that and on starting.",
              .fix = "Compute the chain in one kernel, element by element.",
              .cuda = "One kernel; CUTLASS epilogues; NVRTC where the chain is not known before.",
              .opencl = "One kernel.",
              .pytorch = "torch.compile; fused operators (torch.nn.functional.*, Triton, Apex).",
              .bound = "For each chain, the sum of its kernels without the longest one, and, where "
                       "work was declared, the idle time between them or, if longer, the host's "
                       "from launch to launch.",
              .limits = "That one kernel reads what the one before wrote is not seen.",
              .needs = "kernels; declared work or counters make it certain"},
     .judge = fusion_candidate},
    {.judge = NULL},
};
