/* The tables of the roofline, and what their reader has to know: which roofs, from where, and what
 * is missing. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libprof/base/format.h"
#include "report/columns.h"
#include "report/figures.h"

/* ---- notes ----------------------------------------------------------------------------------- */

#define ADD_NOTE(note, ...) prof_append(note, PROF_REPORT_NOTE_BYTES, __VA_ARGS__)

bool prof_report_roof_source(const struct prof_ceilings *ceilings, int64_t device, char *out,
                             size_t size)
{
    bool measured = false, theoretical = false;
    int64_t newest = PROF_UNKNOWN;
    for (size_t i = 0; i < ceilings->count; i++) {
        const struct prof_ceiling *c = &ceilings->rows[i];
        if (c->device != device || prof_ceiling_find(ceilings, device, c->kind) != c)
            continue;
        measured |= c->measured;
        theoretical |= !c->measured;
        if (c->measured && c->date_s > newest)
            newest = c->date_s;
    }
    char date[32] = "";
    struct tm parts;
    time_t seconds = (time_t)newest;
    if (newest > 0 && gmtime_r(&seconds, &parts))
        strftime(date, sizeof date, " %Y-%m-%d", &parts);
    snprintf(out, size, "%s%s%s%s", measured ? "measured" : "", date,
             measured && theoretical ? ", some theoretical" : "",
             measured      ? ""
             : theoretical ? "theoretical: perfkit device --measure gives real ones"
                           : "");
    return measured || theoretical;
}

static void append_roof(char *note, const char *word, struct prof_text value, bool *first)
{
    if (value.text[0] == 'n') /* n/a */
        return;
    ADD_NOTE(note, "%s%s %s", *first ? ": " : ", ", word, value.text);
    *first = false;
}

#define SLOWED 0.97 /* of a burst: below, what is sustained is worth a word */

static void append_rate(char *note, const struct prof_ceiling *c)
{
    ADD_NOTE(note, " %s", prof_flop_rate(c->value).text);
    if (c->sustained < SLOWED * c->value)
        ADD_NOTE(note, " (%s sustained)", prof_flop_rate(c->sustained).text);
}

static void append_pipe(char *note, const struct prof_ceilings *ceilings, int64_t device,
                        enum prof_ceiling_kind kind, const char *word, bool *first)
{
    const struct prof_ceiling *c = prof_ceiling_find(ceilings, device, kind);
    if (!c)
        return;
    ADD_NOTE(note, "%s%s", *first ? ": " : ", ", word);
    append_rate(note, c);
    *first = false;
}

/* Devices of which the same is to be said. */
struct alike {
    char roofs[PROF_REPORT_NOTE_BYTES]; /* "measured: DRAM 3 TB/s, ..."; "" = none are known */
    int64_t devices[3];                 /* those that are named */
    size_t count;
};

/* The pipes that points of the device are held against; FP32 and, of what is faster, FP16 in any
 * case. */
static bool pipe_is_listed(const struct prof_roofline *roofline, int64_t device,
                           enum prof_ceiling_kind pipe)
{
    bool told = pipe == PROF_CEILING_FP32 || pipe == PROF_CEILING_TENSOR_FP16;
    for (size_t i = 0; !told && i < roofline->count; i++)
        told = roofline->points[i].device == device && roofline->points[i].pipe == pipe;
    return told;
}

/* "tensor FP16", "FP32": without what is done. */
static const char *pipe_word(enum prof_ceiling_kind pipe)
{
    return pipe == PROF_CEILING_FP64   ? "FP64"
           : pipe == PROF_CEILING_FP32 ? "FP32"
           : pipe == PROF_CEILING_FP16 ? "FP16"
                                       : prof_ceiling_of(pipe).text;
}

/* What the vendor's library makes of those pipes: "; matrix products reach FP32 51 TFLOP/s". */
static void append_products(char *note, const struct prof_roofline *roofline, int64_t device)
{
    bool first = true;
    for (enum prof_ceiling_kind k = PROF_CEILING_FP64; k <= PROF_CEILING_TENSOR_FP8; k++) {
        const struct prof_ceiling *c =
            pipe_is_listed(roofline, device, k)
                ? prof_ceiling_find(&roofline->ceilings, device, prof_matmul_of_pipe(k))
                : NULL;
        if (!c)
            continue;
        ADD_NOTE(note, "%s %s", first ? "; matrix products reach" : ",", pipe_word(k));
        append_rate(note, c);
        first = false;
    }
}

static void describe_roofs(const struct prof_roofline *roofline, int64_t id, char *note)
{
    const struct prof_ceilings *ceilings = &roofline->ceilings;
    char source[64];
    bool first = true;
    note[0] = 0;
    if (!prof_report_roof_source(ceilings, id, source, sizeof source))
        return;
    ADD_NOTE(note, "%s", source);
    for (enum prof_roof_level level = PROF_ROOF_DRAM; level <= PROF_ROOF_L2; level++)
        append_roof(note, prof_roof_level_text(level),
                    prof_rate(prof_roof_ceiling(ceilings, id, level)), &first);
    for (enum prof_ceiling_kind k = PROF_CEILING_FP64; k <= PROF_CEILING_TENSOR_FP8; k++)
        if (pipe_is_listed(roofline, id, k))
            append_pipe(note, ceilings, id, k, pipe_word(k), &first);
    append_products(note, roofline, id);
}

/* Puts the device with those of which the same is true, while there is room for another kind. */
static void group_device(const struct prof_report_data *data, int64_t id, struct alike *groups,
                         size_t *count, size_t most)
{
    char roofs[PROF_REPORT_NOTE_BYTES];
    size_t at = 0;
    describe_roofs(&data->roofline, id, roofs);
    while (at < *count && strcmp(groups[at].roofs, roofs) != 0)
        at++;
    if (at == most)
        return;
    if (at == *count) {
        groups[(*count)++] = (struct alike){.count = 0};
        memcpy(groups[at].roofs, roofs, sizeof roofs);
    }
    if (groups[at].count < sizeof groups[at].devices / sizeof groups[at].devices[0])
        groups[at].devices[groups[at].count] = id;
    groups[at].count++;
}

static void append_group(const struct prof_report_data *data, const struct alike *group, char *note)
{
    const size_t room = sizeof group->devices / sizeof group->devices[0];
    size_t named = group->count <= room ? group->count : room - 1;
    note[0] = 0;
    ADD_NOTE(note, group->roofs[0] ? "Roofs of " : "No roofs are known of ");
    for (size_t i = 0; i < named; i++)
        ADD_NOTE(note, "%s%s",
                 !i                      ? ""
                 : i + 1 == group->count ? " and "
                                         : ", ",
                 prof_report_device_label(prof_device(data->capture, group->devices[i])));
    if (named < group->count)
        ADD_NOTE(note, " and %zu more", group->count - named);
    if (group->roofs[0])
        ADD_NOTE(note, ", %s", group->roofs);
    else
        ADD_NOTE(note, ": perfkit device --measure, then record again");
}

#define REASONS 16 /* there are not so many */

/* The reason that most of the time without a place has, and how much of it. */
static bool describe_missing(const struct prof_roofline *roofline, const char *what, char *out)
{
    struct {
        const char *why;
        double ns;
    } reasons[REASONS] = {{0}};
    double all_ns = 0, sum_ns = 0;
    size_t most = 0;
    for (size_t i = 0; i < roofline->count; i++) {
        const struct prof_roofline_point *p = &roofline->points[i];
        size_t r = 0;
        sum_ns += p->busy_ns ? (double)p->time_ns : 0;
        while (p->why && r < REASONS - 1 && reasons[r].why && reasons[r].why != p->why)
            r++;
        if (!p->why || !p->busy_ns) /* a range without device work: no wonder */
            continue;
        reasons[r].why = p->why;
        reasons[r].ns += (double)p->time_ns;
        all_ns += (double)p->time_ns;
        if (reasons[r].ns > reasons[most].ns)
            most = r;
    }
    if (!reasons[most].why)
        return false;
    snprintf(out, PROF_REPORT_NOTE_BYTES, "Not placed: %s of the %s time%s: %s",
             prof_percent(all_ns / sum_ns).text, what,
             reasons[most].ns < all_ns ? ", most of it" : "", reasons[most].why);
    return true;
}

static bool device_is_listed(const struct prof_roofline *roofline, size_t before, int64_t device)
{
    for (size_t i = 0; i < before; i++)
        if (roofline->points[i].device == device)
            return true;
    return false;
}

/* The roofs of each device that kernels ran on, measured when or theoretical, and why points have
 * no place. */
static void describe_roofline(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    const struct prof_roofline *roofline = &data->roofline;
    struct alike groups[PROF_REPORT_NOTES - 3];
    size_t group_count = 0;
    bool assumed = false, latency = false;
    notes->count = 0;
    for (size_t i = 0; i < roofline->count; i++) {
        const struct prof_roofline_point *p = &roofline->points[i];
        assumed |= p->pipe_assumed && p->bound == PROF_BOUND_COMPUTE;
        latency |= p->bound == PROF_BOUND_LATENCY;
        if (!device_is_listed(roofline, i, p->device))
            group_device(data, p->device, groups, &group_count, PROF_REPORT_NOTES - 3);
    }
    for (size_t i = 0; i < group_count; i++)
        append_group(data, &groups[i], notes->text[notes->count++]);
    notes->count += describe_missing(roofline, "kernel", notes->text[notes->count]);
    if (latency)
        snprintf(notes->text[notes->count++], PROF_REPORT_NOTE_BYTES,
                 "Latency: near no roof; dependent work, too few threads, or imbalance");
    if (assumed)
        snprintf(notes->text[notes->count++], PROF_REPORT_NOTE_BYTES,
                 "The precision of declared FLOP is not known: they are held against FP32, or the "
                 "next roof above what was reached");
}

/* Why ranges have no place; none where all that called device work have one. */
static void describe_ranges(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    notes->count = describe_missing(&data->roofline_ranges, "ranges'", notes->text[0]);
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define POINT(row) ((const struct prof_roofline_point *)(row))

#define OF_POINT(name, ...) ROW_CELL(point_##name, prof_roofline_point, point, __VA_ARGS__)

/* "n/a" as a text would say less than no text: formats have their own word for it. */
OF_POINT(bound, prof_report_text(point->bound ? prof_bound_text(point->bound) : NULL))
OF_POINT(pipe,
         prof_report_text(point->pipe == PROF_CEILINGS ? NULL : prof_ceiling_of(point->pipe).name))
OF_POINT(assumed,
         prof_report_int(point->pipe == PROF_CEILINGS ? PROF_UNKNOWN : point->pipe_assumed))
OF_POINT(source, prof_report_text(point->flop_source ? prof_work_source_text(point->flop_source)
                                  : point->roofs[PROF_ROOF_DRAM].source
                                      ? prof_work_source_text(point->roofs[PROF_ROOF_DRAM].source)
                                  : point->roofs[PROF_ROOF_L2].source
                                      ? prof_work_source_text(point->roofs[PROF_ROOF_L2].source)
                                      : NULL))

#define OF_ROOF(level, LEVEL)                                                                      \
    OF_POINT(level##_source,                                                                       \
             prof_report_text(point->roofs[PROF_ROOF_##LEVEL].source                               \
                                  ? prof_work_source_text(point->roofs[PROF_ROOF_##LEVEL].source)  \
                                  : NULL))
OF_ROOF(dram, DRAM)
OF_ROOF(l2, L2)
OF_ROOF(link, LINK)

#define ROOF_REAL(key, title, unit, rank, LEVEL, member)                                           \
    REAL(key, title, unit, rank, prof_roofline_point, roofs[PROF_ROOF_##LEVEL].member)
#define ROOF(level, LEVEL, title, rate_rank, share_rank)                                           \
    ROOF_REAL(#level "_bytes", title " bytes", BYTES, 0, LEVEL, bytes),                            \
        ROOF_REAL(#level "_bytes_per_s", title, RATE, rate_rank, LEVEL, rate),                     \
        ROOF_REAL(#level "_share", "Of " title, SHARE, share_rank, LEVEL, share),                  \
        ROOF_REAL(#level "_ceiling_bytes_per_s", title " roof", RATE, 0, LEVEL, ceiling),          \
        COMPUTED(#level "_source", title " from", WORD, 0, point_##level##_source)

/* What kernels and launch configurations share. */
#define KERNEL_POINT                                                                               \
    INT64("time_ns", "Time", NS, 1, prof_roofline_point, time_ns),                                 \
        INT64("count", "Count", COUNT, 3, prof_roofline_point, count),                             \
        REAL("mean_ns", "Average", NS, 6, prof_roofline_point, mean_ns), WORKED,                   \
        COMPUTED("bound", "Bound by", WORD, 1, point_bound),                                       \
        REAL("roof_share", "Of roof", SHARE, 1, prof_roofline_point, roof_share),                  \
        REAL("bound_ns", "At the roof", NS, 0, prof_roofline_point, bound_ns),                     \
        ARITHMETIC(2, 4, 4), ROOF(dram, DRAM, "DRAM", 2, 0),                                       \
        ROOF_REAL("dram_flop_per_byte", "FLOP/B", RATIO, 3, DRAM, intensity),                      \
        ROOF(l2, L2, "L2", 5, 0),                                                                  \
        ROOF_REAL("l2_flop_per_byte", "FLOP/B of L2", RATIO, 0, L2, intensity),                    \
        COMPUTED("work", "Work", WORD, 7, point_source),                                           \
        STRING("why", "Why not", WORD, 0, prof_roofline_point, why),                               \
        INT64("device", "Device id", NUMBER, 0, prof_roofline_point, device),                      \
        OF_ID("device_name", "Device", NAME, 0, prof_roofline_point, device,                       \
              prof_report_device_name)
#define WORKED                                                                                     \
    INT64("worked", "With work", COUNT, 0, prof_roofline_point, worked),                           \
        INT64("worked_ns", "Time with work", NS, 0, prof_roofline_point, worked_ns)
#define ARITHMETIC(rate_rank, pipe_rank, matmul_rank)                                              \
    REAL("flop", "FLOP", RATIO, 0, prof_roofline_point, flop),                                     \
        REAL("flop_per_s", "FLOP/s", FLOPS, rate_rank, prof_roofline_point, flop_rate),            \
        COMPUTED("pipe", "Pipe", WORD, pipe_rank, point_pipe),                                     \
        COMPUTED("pipe_assumed", "Pipe assumed", NUMBER, 0, point_assumed),                        \
        REAL("pipe_share", "Of pipe", SHARE, 0, prof_roofline_point, pipe_share),                  \
        REAL("pipe_ceiling_flop_per_s", "Pipe roof", FLOPS, 0, prof_roofline_point, pipe_ceiling), \
        REAL("matmul_flop_per_s", "Matrix product", FLOPS, 0, prof_roofline_point,                 \
             matmul_ceiling),                                                                      \
        REAL("matmul_share", "Of matmul", SHARE, matmul_rank, prof_roofline_point, matmul_share),  \
        REAL("attainable_flop_per_s", "Attainable", FLOPS, 0, prof_roofline_point, attainable)

static const struct prof_report_column roofline_columns[] = {
    KERNEL_POINT,
    STRING("name", "Kernel", NAME, 1, prof_roofline_point, name),
    {0},
};

#define OF_CONFIG(key, title, rank, member)                                                        \
    INDIRECT(INT64, key, title, NUMBER, rank, prof_roofline_point, config, member)

static const struct prof_report_column roofline_config_columns[] = {
    KERNEL_POINT,
    OF_CONFIG("grid_x", "Grid", 1, grid[0]),
    OF_CONFIG("grid_y", "Grid y", 0, grid[1]),
    OF_CONFIG("grid_z", "Grid z", 0, grid[2]),
    OF_CONFIG("block_x", "Block", 1, block[0]),
    OF_CONFIG("block_y", "Block y", 0, block[1]),
    OF_CONFIG("block_z", "Block z", 0, block[2]),
    STRING("name", "Kernel", NAME, 1, prof_roofline_point, name),
    {0},
};

static const struct prof_report_column roofline_range_columns[] = {
    INT64("time_ns", "Time", NS, 1, prof_roofline_point, time_ns),
    INT64("count", "Count", COUNT, 3, prof_roofline_point, count),
    INT64("busy_ns", "Device busy", NS, 2, prof_roofline_point, busy_ns),
    WORKED,
    COMPUTED("bound", "Bound by", WORD, 1, point_bound),
    REAL("roof_share", "Of roof", SHARE, 1, prof_roofline_point, roof_share),
    ARITHMETIC(3, 0, 0),
    ROOF(dram, DRAM, "DRAM", 2, 0),
    ROOF_REAL("dram_flop_per_byte", "FLOP/B", RATIO, 5, DRAM, intensity),
    ROOF(l2, L2, "L2", 0, 0),
    ROOF(link, LINK, "Link", 4, 6),
    ROOF_REAL("link_flop_per_byte", "FLOP/B of link", RATIO, 0, LINK, intensity),
    COMPUTED("work", "Work", WORD, 0, point_source),
    STRING("why", "Why not", WORD, 0, prof_roofline_point, why),
    INT64("device", "Device id", NUMBER, 0, prof_roofline_point, device),
    OF_ID("device_name", "Device", NAME, 0, prof_roofline_point, device, prof_report_device_name),
    STRING("domain", "Domain", NAME, 0, prof_roofline_point, domain),
    STRING("name", "Range", NAME, 1, prof_roofline_point, name),
    {0},
};

/* ---- worth its lines? ------------------------------------------------------------------------ */

/* Without the work of any kernel there is nothing but n/a in most columns; what can be said all the
 * same (launches, an idle device) the findings say better. */
static bool point_worth(const void *row)
{
    return POINT(row)->worked > 0;
}

/* Only where it says more than the table by name. */
static bool roofline_config_worth(const struct prof_report_data *data)
{
    return data->roofline_configs.count > data->roofline.count;
}

static void totals(const struct prof_roofline *roofline, const char *what, char *out, size_t size)
{
    snprintf(out, size, "%s of %s %s%s placed", prof_count((int64_t)roofline->placed).text,
             prof_count((int64_t)roofline->count).text, what, roofline->count == 1 ? "" : "s");
}

static void roofline_totals(const struct prof_report_data *data, char *out, size_t size)
{
    totals(&data->roofline, "kernel", out, size);
}

static void roofline_range_totals(const struct prof_report_data *data, char *out, size_t size)
{
    totals(&data->roofline_ranges, "range", out, size);
}

const struct prof_report_table prof_report_roofline_table = {
    .name = "roofline",
    .part = PROF_PART_ROOFLINE,
    .notes = describe_roofline,
    .title = "Roofline",
    .none = "no kernels",
    .help = "How near each kernel is to the nearest roof of its device, and what holds it back; "
            "FLOP/B is of device memory. n/a: work or ceilings are not known, `why` says which.",
    .screen_rows = 8,
    .optional = true,
    .row_worth = point_worth,
    .totals = roofline_totals,
    ROWS(prof_roofline_point, roofline, roofline.points, roofline.count),
};

const struct prof_report_table prof_report_roofline_configs_table = {
    .name = "roofline_configs",
    .part = PROF_PART_ROOFLINE,
    .title = "Roofline by launch configuration",
    .none = "no kernels",
    .help = "The same for each grid and block that a kernel was launched with.",
    .screen_rows = 4,
    .optional = true,
    .worth = roofline_config_worth,
    .row_worth = point_worth,
    ROWS(prof_roofline_point, roofline_config, roofline_configs.points, roofline_configs.count),
};

const struct prof_report_table prof_report_roofline_ranges_table = {
    .name = "roofline_ranges",
    .part = PROF_PART_ROOFLINE,
    .notes = describe_ranges,
    .title = "Roofline of NVTX ranges",
    .none = "no NVTX ranges",
    .help = "What holds each range back: its device work is what was called inside; link is the "
            "memcpys between host and device.",
    .screen_rows = 6,
    .optional = true,
    .row_worth = point_worth,
    .totals = roofline_range_totals,
    ROWS(prof_roofline_point, roofline_range, roofline_ranges.points, roofline_ranges.count),
};

/* ---- ceilings -------------------------------------------------------------------------------- */

static struct prof_report_value ceiling_in(const void *row, enum prof_ceiling_unit unit)
{
    const struct prof_ceiling *ceiling = row;
    return prof_report_real(ceiling->unit == unit ? ceiling->value : NAN);
}

CELL(ceiling_rate, ceiling_in(row, PROF_CEILING_BYTES))
CELL(ceiling_flops, ceiling_in(row, PROF_CEILING_FLOP))
CELL(ceiling_ns, ceiling_in(row, PROF_CEILING_NS))
CELL(ceiling_source,
     prof_report_text(((const struct prof_ceiling *)row)->measured ? "measured" : "theoretical"))

static const struct prof_report_column ceiling_columns[] = {
    COMPUTED("bytes_per_s", "Bandwidth", RATE, 1, ceiling_rate),
    COMPUTED("flop_per_s", "Arithmetic", FLOPS, 1, ceiling_flops),
    REAL("sustained_flop_per_s", "Sustained", FLOPS, 2, prof_ceiling, sustained),
    COMPUTED("time_ns", "Time", NS, 1, ceiling_ns),
    COMPUTED("source", "Source", WORD, 1, ceiling_source),
    INT64("measured_at_s", "Measured", NUMBER, 0, prof_ceiling, date_s),
    STRING("how", "How", NAME, 0, prof_ceiling, how),
    INT64("device", "Device id", NUMBER, 0, prof_ceiling, device),
    OF_ID("device_name", "Device", NAME, 2, prof_ceiling, device, prof_report_device_name),
    STRING("name", "Ceiling", WORD, 1, prof_ceiling, name),
    {0},
};

const struct prof_report_table prof_report_ceilings_table = {
    .name = "ceilings",
    .part = PROF_PART_ROOFLINE,
    .title = "Ceilings",
    .none = "no ceilings are known",
    .help = "What the devices can do: measured by perfkit device --measure, or theoretical.",
    .optional = true,
    .for_programs = true,
    .not_in_text = true,
    ROWS(prof_ceiling, ceiling, roofline.ceilings.rows, roofline.ceilings.count),
};
