/* Where one point of the roofline stands: its rates, the roofs above it, and what holds it back.
 * docs/guide/roofline.md has the formulas and the reasons for each rule. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "libprof/analysis/roofline.h"
#include "libprof/gpu/names.h"

/* ---- what libraries reach -------------------------------------------------------------------- */

/* Operands of 16 bits and fewer, and TF32, are multiplied by tensor cores, as far as there are any;
 * FP16 is what has no word of its own in the name. */
static enum prof_ceiling_kind tensor_pipe(const char *name)
{
    static const struct {
        const char *word;
        enum prof_ceiling_kind pipe;
    } words[] = {
        {"bf16", PROF_CEILING_TENSOR_BF16},   {"bfloat16", PROF_CEILING_TENSOR_BF16},
        {"tf32", PROF_CEILING_TENSOR_TF32},   {"e4m3", PROF_CEILING_TENSOR_FP8},
        {"e5m2", PROF_CEILING_TENSOR_FP8},    {"fp8", PROF_CEILING_TENSOR_FP8},
        {"_tst_", PROF_CEILING_TENSOR_BF16}, /* nvjet_tst_..., nvjet_sm90_tst_... */
        {"_qqtst_", PROF_CEILING_TENSOR_FP8},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(name, words[i].word))
            return words[i].pipe;
    return PROF_CEILING_TENSOR_FP16;
}

static enum prof_ceiling_kind matmul_pipe(const struct prof_roofline_point *point)
{
    return prof_name_is_matmul(point->name) &&
                   prof_name_precision(point->name) == PROF_PRECISION_NARROW
               ? tensor_pipe(point->name)
               : PROF_CEILINGS;
}

/* Put what a library reaches into the point, whose pipe and share are known. */
static void add_matmul_ceiling(struct prof_roofline_point *point,
                               const struct prof_ceilings *ceilings)
{
    enum prof_ceiling_kind kind = prof_matmul_of_pipe(point->pipe);
    const struct prof_ceiling *library = kind != PROF_CEILINGS && prof_name_is_matmul(point->name)
                                             ? prof_ceiling_find(ceilings, point->device, kind)
                                             : NULL;
    if (!library)
        return;
    point->matmul_ceiling = library->value;
    point->matmul_share = point->pipe_share * point->pipe_ceiling / library->value;
}

/* ---- place of a point ------------------------------------------------------------------------ */

#define NEAR 0.6    /* of a roof: bound by it (as ncu's speed of light has it) */
#define BEYOND 1.05 /* of a roof: the work cannot have been what was declared, or not there */
#define COVERED 0.5 /* of a point's time that must have known work */

const char *prof_roof_level_text(enum prof_roof_level level)
{
    static const char *const texts[PROF_ROOF_LEVELS] = {"DRAM", "L2", "link"};
    return texts[level];
}

const char *prof_work_source_text(enum prof_work_source source)
{
    static const char *const texts[] = {"none", "declared", "counters", "traced"};
    return texts[source];
}

const char *prof_bound_text(enum prof_bound bound)
{
    static const char *const texts[] = {"n/a",     "DRAM",   "L2",       "compute",
                                        "latency", "launch", "transfer", "host"};
    return texts[bound];
}

struct prof_roofline_point prof_roofline_blank(void)
{
    struct prof_roofline_point point = {.mean_ns = NAN,
                                        .flop = NAN,
                                        .flop_rate = NAN,
                                        .pipe = PROF_CEILINGS,
                                        .pipe_ceiling = NAN,
                                        .pipe_share = NAN,
                                        .matmul_ceiling = NAN,
                                        .matmul_share = NAN,
                                        .attainable = NAN,
                                        .roof_share = NAN,
                                        .bound_ns = NAN};
    for (int i = 0; i < PROF_ROOF_LEVELS; i++)
        point.roofs[i] = (struct prof_roof){PROF_WORK_NONE, NAN, NAN, NAN, NAN, NAN};
    return point;
}

void prof_roofline_declared(struct prof_roofline_point *point, const struct prof_roofline_sum *sum)
{
    if (!sum->worked)
        return;
    point->worked = sum->worked;
    point->worked_ns = sum->worked_ns;
    point->flop = sum->flop;
    if (!isnan(sum->flop))
        point->flop_source = PROF_WORK_DECLARED;
    point->roofs[PROF_ROOF_DRAM].bytes = sum->bytes;
    if (!isnan(sum->bytes))
        point->roofs[PROF_ROOF_DRAM].source = PROF_WORK_DECLARED;
}

/* ---- roofs ----------------------------------------------------------------------------------- */

struct place {
    struct prof_roofline_point *point;
    const struct prof_roofline_facts *facts;
    const struct prof_ceilings *ceilings;
    const struct prof_device *device;
    bool cached; /* declared bytes that cannot all have come from DRAM: they are L2's */
    bool narrow; /* the pipe is not known: 16 bits by the name, near the roof of 32 */
};

static double roof_ceiling(const struct place *p, enum prof_ceiling_kind kind)
{
    const struct prof_ceiling *found = prof_ceiling_find(p->ceilings, p->point->device, kind);
    return found ? found->value : NAN;
}

static double per_second(double amount, int64_t ns)
{
    return ns > 0 ? amount / ((double)ns * 1e-9) : NAN;
}

static void fill_roof(struct prof_roofline_point *point, enum prof_roof_level level, double ceiling,
                      int64_t ns)
{
    struct prof_roof *roof = &point->roofs[level];
    roof->ceiling = ceiling;
    roof->rate = per_second(roof->bytes, ns);
    roof->share = roof->rate / ceiling;
    if (point->flop > 0 && roof->bytes > 0)
        roof->intensity = point->flop / roof->bytes;
}

/* The FMA pipe also computes addresses: what moves bytes keeps it busy a little, and has no compute
 * roof for that. Each of its instructions counted as a multiply-add of 32 bits, a vector sum in
 * fp32 still makes 1/6 FLOP of a byte; a copy by 16 bytes was seen to make 1/15. */
#define MOVES_ONLY 0.125

static void forget_idle_pipe(struct prof_roofline_point *point)
{
    double rate = fmax(point->roofs[PROF_ROOF_DRAM].rate, point->roofs[PROF_ROOF_L2].rate);
    bool moves = point->pipe == PROF_CEILING_FP32 && !point->flop_source &&
                 point->pipe_share * point->pipe_ceiling < MOVES_ONLY * rate;
    if (!moves)
        return;
    point->pipe = PROF_CEILINGS;
    point->pipe_ceiling = point->pipe_share = NAN;
}

/* No declaration says in which precision the FLOP are: what the name of a matrix product says,
 * else FP32, or the next roof that is not below what was reached. */
static void choose_pipe(struct place *p)
{
    struct prof_roofline_point *point = p->point;
    const enum prof_ceiling_kind pipes[] = {p->facts->range ? PROF_CEILINGS : matmul_pipe(point),
                                            PROF_CEILING_FP32,
                                            PROF_CEILING_FP16,
                                            PROF_CEILING_TENSOR_TF32,
                                            PROF_CEILING_TENSOR_FP16,
                                            PROF_CEILING_TENSOR_FP8};
    for (size_t i = 0; i < sizeof pipes / sizeof pipes[0]; i++) {
        double value = roof_ceiling(p, pipes[i]);
        if (isnan(value))
            continue;
        point->pipe = pipes[i];
        point->pipe_ceiling = value;
        if (!(point->flop_rate > BEYOND * value))
            break;
    }
    point->pipe_assumed = point->pipe != PROF_CEILINGS;
    point->pipe_share = point->flop_rate / point->pipe_ceiling;
}

static bool point_is_narrow(const struct place *p)
{
    return p->facts->range ? p->facts->narrow
                           : prof_name_precision(p->point->name) == PROF_PRECISION_NARROW;
}

/* Numbers of 16 bits may be computed with in FP32 or in the tensor cores, whose roof is ten times
 * as high: what is near the one is far from the other. */
static void forget_doubtful_pipe(struct place *p)
{
    struct prof_roofline_point *point = p->point;
    bool plain = point->pipe == PROF_CEILING_FP32 || point->pipe == PROF_CEILING_FP16;
    p->narrow = plain && point->flop_rate >= NEAR * roof_ceiling(p, PROF_CEILING_FP32) &&
                point_is_narrow(p) && !isnan(roof_ceiling(p, PROF_CEILING_TENSOR_FP16));
    if (!p->narrow)
        return;
    point->pipe = PROF_CEILINGS;
    point->pipe_assumed = false;
    point->pipe_ceiling = point->pipe_share = NAN;
}

static double attainable(const struct prof_roofline_point *point)
{
    double least = point->pipe_ceiling;
    for (int level = 0; level <= PROF_ROOF_L2; level++)
        if (point->roofs[level].bytes > 0)
            least = fmin(least, point->roofs[level].ceiling * point->roofs[level].intensity);
    return point->flop > 0 ? least : NAN;
}

/* Declared bytes are those of the device's memory, but a declaration does not know what stays in
 * the cache from launch to launch. */
static void move_to_cache(struct place *p)
{
    struct prof_roof *dram = &p->point->roofs[PROF_ROOF_DRAM];
    struct prof_roof *l2 = &p->point->roofs[PROF_ROOF_L2];
    if (dram->source != PROF_WORK_DECLARED || !(dram->share > BEYOND))
        return;
    p->cached = true;
    if (l2->source == PROF_WORK_NONE) {
        l2->source = dram->source;
        l2->bytes = dram->bytes;
    }
    double ceiling_of_dram = dram->ceiling;
    *dram = (struct prof_roof){PROF_WORK_NONE, NAN, NAN, NAN, ceiling_of_dram, NAN};
}

static void fill_roofs(struct place *p)
{
    struct prof_roofline_point *point = p->point;
    point->flop_rate = per_second(point->flop, point->worked_ns);
    fill_roof(point, PROF_ROOF_DRAM, prof_roof_ceiling(p->ceilings, point->device, PROF_ROOF_DRAM),
              point->worked_ns);
    move_to_cache(p);
    fill_roof(point, PROF_ROOF_L2, prof_roof_ceiling(p->ceilings, point->device, PROF_ROOF_L2),
              point->worked_ns);
    fill_roof(point, PROF_ROOF_LINK, prof_roof_ceiling(p->ceilings, point->device, PROF_ROOF_LINK),
              point->busy_ns);
    if (p->facts->pipe_counted) {
        point->pipe_ceiling = roof_ceiling(p, point->pipe);
        forget_idle_pipe(point);
    } else if (point->flop > 0) {
        choose_pipe(p);
        forget_doubtful_pipe(p);
    }
    if (!p->facts->range)
        add_matmul_ceiling(point, p->ceilings);
    point->attainable = p->narrow ? NAN : attainable(point);
    point->roof_share = fmax(point->pipe_share, fmax(point->roofs[PROF_ROOF_DRAM].share,
                                                     point->roofs[PROF_ROOF_L2].share));
    if (p->narrow && !(point->roof_share >= NEAR))
        point->roof_share = NAN; /* how near the nearest one is, is not known */
    point->bound_ns = point->roof_share * (double)point->worked_ns;
}

/* ---- the bound ------------------------------------------------------------------------------- */

static void abstain(struct place *p, const char *why)
{
    p->point->bound = PROF_BOUND_NONE;
    p->point->why = why;
}

/* A launch costs what was measured without a profiler, else what the calls of this point took. NaN
 * where there were no calls: a graph's kernels. */
static double launch_ns(const struct place *p)
{
    double measured = roof_ceiling(p, PROF_CEILING_LAUNCH);
    return isnan(measured) || isnan(p->facts->launch_ns) ? p->facts->launch_ns : measured;
}

/* So few bytes a launch that the cache may have held them: their rate says nothing of DRAM. */
static bool may_be_cached(const struct place *p)
{
    const struct prof_roof *dram = &p->point->roofs[PROF_ROOF_DRAM];
    return dram->source == PROF_WORK_DECLARED && p->device && p->device->l2_bytes > 0 &&
           p->point->worked > 0 &&
           dram->bytes / (double)p->point->worked < (double)p->device->l2_bytes;
}

/* Near no roof. That is latency only if every roof is known. */
static void judge_far(struct place *p)
{
    struct prof_roofline_point *point = p->point;
    double fp64 = roof_ceiling(p, PROF_CEILING_FP64);
    bool bytes_known = point->roofs[PROF_ROOF_DRAM].source || point->roofs[PROF_ROOF_L2].source;
    if (p->cached && isnan(point->roofs[PROF_ROOF_L2].ceiling))
        abstain(p, "the declared bytes moved faster than DRAM can; no ceiling of L2 is known");
    else if (!bytes_known)
        abstain(p, "bytes are not declared");
    else if (!point->flop_source && !p->facts->pipe_counted)
        abstain(p, "FLOP are not declared");
    else if (p->narrow)
        abstain(p, "numbers of 16 bits by the names: near the roof of FP32, far from the tensor "
                   "cores'; counters would show it");
    else if (!p->facts->pipe_counted && (p->facts->range || !point_is_narrow(p)) &&
             point->flop_rate >= NEAR * fp64)
        abstain(p, "precision not known: in FP64 it would be at its roof");
    else if (point->roofs[PROF_ROOF_DRAM].source && isnan(point->roofs[PROF_ROOF_DRAM].ceiling))
        abstain(p, "no ceiling of this device's memory: perfkit device --measure");
    else if (point->flop > 0 && isnan(point->pipe_share))
        abstain(p, "no compute ceiling of this device: perfkit device --measure");
    else if (point->matmul_share >= NEAR)
        point->bound = PROF_BOUND_COMPUTE; /* what feeds the pipe takes its share of the roof */
    else
        point->bound = PROF_BOUND_LATENCY;
}

static void judge_roofs(struct place *p)
{
    struct prof_roofline_point *point = p->point;
    double dram = point->roofs[PROF_ROOF_DRAM].share, l2 = point->roofs[PROF_ROOF_L2].share;
    double nearest = point->roof_share;
    if (isnan(nearest) && !p->cached && !p->narrow)
        abstain(p, "no ceilings of this device");
    else if (nearest > BEYOND)
        abstain(p, "more than any roof allows: is the declared work right?");
    else if (!(nearest >= NEAR))
        judge_far(p);
    else if (nearest == dram && may_be_cached(p))
        abstain(p, "so few bytes a launch that L2 may hold them: counters would show it");
    else if (nearest == dram)
        point->bound = PROF_BOUND_DRAM;
    else if (nearest == l2)
        point->bound = PROF_BOUND_L2;
    else
        point->bound = PROF_BOUND_COMPUTE;
}

static void judge_work(struct place *p, int64_t time_ns)
{
    const struct prof_roofline_point *point = p->point;
    bool known = point->flop_source || p->facts->pipe_counted ||
                 point->roofs[PROF_ROOF_DRAM].source || point->roofs[PROF_ROOF_L2].source;
    if (!known)
        abstain(p, point->worked ? "declared without FLOP and bytes"
                                 : "no work declared (perfkit/annotate.h) and no counters");
    else if ((double)point->worked_ns < COVERED * (double)time_ns)
        abstain(p, "work is known for less than half of its time");
    else if (!p->facts->pipe_counted && !(point->flop > 0) &&
             !(point->roofs[PROF_ROOF_DRAM].bytes > 0) && !(point->roofs[PROF_ROOF_L2].bytes > 0))
        abstain(p, "the declared work is none");
    else
        judge_roofs(p);
}

/* Ranges: first what keeps the device from working at all. */
static void judge_range(struct place *p)
{
    struct prof_roofline_point *point = p->point;
    const struct prof_roofline_facts *f = p->facts;
    double half = 0.5 * (double)point->time_ns;
    if (f->several_devices)
        abstain(p, "its work ran on several devices");
    else if (!point->busy_ns)
        abstain(p, "no device work was called inside");
    else if ((double)point->busy_ns < half)
        point->bound =
            (double)f->launches * launch_ns(p) >= half ? PROF_BOUND_LAUNCH : PROF_BOUND_HOST;
    else if ((double)f->transfer_only_ns >= 0.5 * (double)point->busy_ns)
        point->bound = PROF_BOUND_TRANSFER;
    else
        judge_work(p, f->kernel_ns);
}

void prof_roofline_place(struct prof_roofline_point *point, const struct prof_roofline_facts *facts,
                         const struct prof_ceilings *ceilings, const struct prof_device *device)
{
    struct place p = {.point = point, .facts = facts, .ceilings = ceilings, .device = device};
    if (point->count)
        point->mean_ns = (double)point->time_ns / (double)point->count;
    fill_roofs(&p);
    if (facts->range)
        judge_range(&p);
    else if (point->mean_ns < launch_ns(&p))
        point->bound = PROF_BOUND_LAUNCH;
    else
        judge_work(&p, point->time_ns);
}

/* ---- exact counts ---------------------------------------------------------------------------- */

void prof_roofline_exact_add(struct prof_roofline_exact *sum, const struct prof_exact_row *row,
                             int64_t duration_ns)
{
    sum->flop += row->flop;
    sum->dram += row->dram_read + row->dram_write;
    sum->l2 += row->l2;
    for (int i = 0; i < PROF_CEILINGS; i++)
        sum->pipe[i] += row->pipe[i];
    sum->worked++;
    sum->worked_ns = prof_add(sum->worked_ns, duration_ns);
}

static void set_roof_bytes(struct prof_roof *roof, double bytes)
{
    roof->bytes = bytes;
    roof->source = isnan(bytes) ? PROF_WORK_NONE : PROF_WORK_COUNTERS;
}

/* The pipe that its FLOP would keep busy longest. */
static void put_pipe(struct prof_roofline_point *point, struct prof_roofline_facts *facts,
                     const struct prof_roofline_exact *sum, const struct prof_ceilings *ceilings)
{
    double busiest = 0;
    for (int i = 0; i < PROF_CEILINGS; i++) {
        const struct prof_ceiling *roof =
            sum->pipe[i] > 0 ? prof_ceiling_find(ceilings, point->device, (enum prof_ceiling_kind)i)
                             : NULL;
        if (!roof || !(sum->pipe[i] / roof->value > busiest))
            continue;
        busiest = sum->pipe[i] / roof->value;
        point->pipe = roof->kind;
        point->pipe_share = busiest / ((double)sum->worked_ns * 1e-9);
        facts->pipe_counted = true;
    }
}

void prof_roofline_exact_put(struct prof_roofline_point *point, struct prof_roofline_facts *facts,
                             const struct prof_roofline_exact *sum,
                             const struct prof_ceilings *ceilings)
{
    bool known = !isnan(sum->flop);
    if (!sum->worked || (!known && point->flop_source))
        return;
    point->worked = sum->worked;
    point->worked_ns = sum->worked_ns;
    set_roof_bytes(&point->roofs[PROF_ROOF_DRAM], sum->dram);
    set_roof_bytes(&point->roofs[PROF_ROOF_L2], sum->l2);
    point->flop = sum->flop;
    point->flop_source = known ? PROF_WORK_COUNTERS : PROF_WORK_NONE;
    if (known)
        put_pipe(point, facts, sum, ceilings);
}
