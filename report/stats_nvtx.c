/* Statistics of NVTX ranges. */
#include <stdlib.h>

#include "libprof/base/saturate.h"
#include "report/stats_columns.h"

/* ---- on the host, by name -------------------------------------------------------------------- */

struct range_line {
    struct prof_range_row row;
    const char *range, *style;
};

const struct prof_report_column prof_stat_nvtx_sum_columns[] = {
    STAT_TIMES("Instances", range_line, row),
    STAT_WORD("Style", range_line, style),
    STAT_TEXT("Range", range_line, range),
    {0}};

#define BY_STYLE STAT_TIMES("Instances", range_line, row), STAT_TEXT("Range", range_line, range)
const struct prof_report_column prof_stat_nvtx_pushpop_sum_columns[] = {BY_STYLE, {0}};
const struct prof_report_column prof_stat_nvtx_startend_sum_columns[] = {BY_STYLE, {0}};

/* Bits of the styles that are listed. */
enum { PUSH_POP = 1u << PROF_RANGE_PUSH_POP, START_END = 1u << PROF_RANGE_START_END };

static bool range_is_listed(const struct prof_range_row *row, unsigned styles)
{
    return styles & 1u << row->style && row->duration_ns.count;
}

static enum prof_status walk_range_rows(struct prof_report_row_walk *walk, unsigned styles,
                                        struct prof_error *err)
{
    struct prof_range_summary ranges;
    struct prof_stat_text text = {0};
    enum prof_status status = prof_range_summary(walk->capture, walk->filter, &ranges, err);
    walk->wall_ns = ranges.wall_ns;
    walk->listed_ns = 0;
    for (size_t i = 0; i < ranges.count; i++) {
        if (range_is_listed(&ranges.rows[i], styles))
            walk->listed_ns = prof_add(walk->listed_ns, ranges.rows[i].duration_ns.sum);
    }
    bool more = true;
    for (size_t i = 0; more && !status && i < ranges.count; i++) {
        struct range_line line = {.row = ranges.rows[i],
                                  .style = prof_stat_style(ranges.rows[i].style)};
        if (!range_is_listed(&line.row, styles))
            continue;
        line.row.share = (double)line.row.duration_ns.sum / (double)walk->listed_ns;
        if (prof_stat_range_name(&text, line.row.domain, line.row.name, &line.range))
            more = walk->row(walk->user, &line);
        else
            status = prof_out_of_memory(err);
    }
    free(text.text);
    prof_range_summary_free(&ranges);
    return status;
}

STAT_WALK(nvtx_sum, walk_range_rows(walk, PUSH_POP | START_END, err))
STAT_WALK(nvtx_pushpop_sum, walk_range_rows(walk, PUSH_POP, err))
STAT_WALK(nvtx_startend_sum, walk_range_rows(walk, START_END, err))

/* ---- one by one ------------------------------------------------------------------------------ */

struct instance_line {
    struct prof_range_instance row;
    int64_t id, parent_id; /* from 1; parent: PROF_UNKNOWN = none */
    int64_t end_ns, own_ns;
    const char *name, *style, *stack, *tree;
};

const struct prof_report_column prof_stat_nvtx_pushpop_trace_columns[] = {
    STAT_INT("Start (ns)", MOMENT, instance_line, row.start_ns),
    STAT_INT("End (ns)", MOMENT, instance_line, end_ns),
    STAT_INT("Duration (ns)", NS, instance_line, row.duration_ns),
    STAT_INT("DurChild (ns)", NS, instance_line, row.child_ns),
    STAT_INT("DurNonChild (ns)", NS, instance_line, own_ns),
    STAT_TEXT("Name", instance_line, name),
    STAT_ID("PID", instance_line, row.process, process, pid),
    STAT_ID("TID", instance_line, row.thread, thread, tid),
    STAT_INT("Lvl", NUMBER, instance_line, row.level),
    STAT_INT("NumChild", COUNT, instance_line, row.children),
    STAT_INT("RangeId", NUMBER, instance_line, id),
    STAT_MAY_INT("ParentId", NUMBER, instance_line, parent_id),
    STAT_WORD("RangeStack", instance_line, stack),
    STAT_TEXT("NameTree", instance_line, tree),
    {0}};

const struct prof_report_column prof_stat_nvtx_gpu_proj_trace_columns[] = {
    STAT_TEXT("Name", instance_line, name),
    STAT_INT("Projected Start (ns)", MOMENT, instance_line, row.projected_start_ns),
    STAT_INT("Projected Duration (ns)", NS, instance_line, row.projected_ns),
    STAT_INT("Orig Start (ns)", MOMENT, instance_line, row.start_ns),
    STAT_INT("Orig Duration (ns)", NS, instance_line, row.duration_ns),
    STAT_WORD("Style", instance_line, style),
    STAT_ID("PID", instance_line, row.process, process, pid),
    STAT_ID("TID", instance_line, row.thread, thread, tid),
    STAT_INT("NumGPUOps", COUNT, instance_line, row.operations),
    STAT_INT("Lvl", NUMBER, instance_line, row.level),
    STAT_INT("NumChild", COUNT, instance_line, row.children),
    STAT_INT("RangeId", NUMBER, instance_line, id),
    STAT_MAY_INT("ParentId", NUMBER, instance_line, parent_id),
    STAT_WORD("RangeStack", instance_line, stack),
    {0}};

/* Ids from the outermost range to this one, ":1:4:9". Deeper than the list is long, the outermost
 * are left out: a stack of that depth is a mistake of the program, and its text would grow without
 * bound. */
static const char *print_stack(struct prof_stat_text *text, const struct prof_range_instances *all,
                               size_t row)
{
    size_t around[256], depth = 0;
    for (; row != SIZE_MAX && depth < sizeof around / sizeof around[0]; row = all->rows[row].parent)
        around[depth++] = row;
    char stack[sizeof around / sizeof around[0] * 21 + 1];
    size_t used = 0;
    while (depth--)
        used += (size_t)snprintf(stack + used, sizeof stack - used, ":%zu", around[depth] + 1);
    return prof_stat_print(text, "%s", stack);
}

struct instance_texts {
    struct prof_stat_text name, stack, tree;
};

static bool fill_instance_line(struct instance_line *line, const struct prof_range_instances *all,
                               size_t i, struct instance_texts *texts)
{
    const struct prof_range_instance *row = &all->rows[i];
    bool closed = row->duration_ns != PROF_UNKNOWN;
    int indent = row->level < 100 ? (int)row->level * 2 : 200;
    *line = (struct instance_line){
        .row = *row,
        .id = (int64_t)i + 1,
        .parent_id = row->parent == SIZE_MAX ? PROF_UNKNOWN : (int64_t)row->parent + 1,
        .end_ns = closed ? prof_add(row->start_ns, row->duration_ns) : PROF_UNKNOWN,
        .own_ns = closed ? prof_subtract(row->duration_ns, row->child_ns) : PROF_UNKNOWN,
        .style = prof_stat_style(row->style),
        .stack = print_stack(&texts->stack, all, i),
    };
    if (!line->stack || !prof_stat_range_name(&texts->name, row->domain, row->name, &line->name))
        return false;
    line->tree = line->name ? prof_stat_print(&texts->tree, "%*s%s", indent, "", line->name) : NULL;
    return !line->name || line->tree;
}

static int by_projected_start(const void *a, const void *b, void *rows)
{
    const struct prof_range_instance *all = rows;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    if (all[i].projected_start_ns != all[k].projected_start_ns)
        return all[i].projected_start_ns < all[k].projected_start_ns ? -1 : 1;
    return (i > k) - (i < k);
}

/* The rows to list: push/pop ranges by start, or projected ones by projected start. */
static size_t choose_instances(const struct prof_range_instances *all, bool projected,
                               size_t *order)
{
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct prof_range_instance *row = &all->rows[i];
        bool wanted = projected ? row->operations > 0 : row->style == PROF_RANGE_PUSH_POP;
        if (wanted && !row->outside)
            order[count++] = i;
    }
    if (projected && count)
        qsort_r(order, count, sizeof *order, by_projected_start, all->rows);
    return count;
}

static enum prof_status walk_instances(struct prof_report_row_walk *walk, bool projected,
                                       struct prof_error *err)
{
    struct prof_range_instances all;
    struct instance_texts texts = {0};
    enum prof_status status = prof_range_instances(walk->capture, walk->filter, &all, err);
    PROF_FREED size_t *order = status ? NULL : calloc(all.count + 1, sizeof *order);
    size_t count = order ? choose_instances(&all, projected, order) : 0;
    if (!status && !order)
        status = prof_out_of_memory(err);
    bool more = true;
    for (size_t i = 0; more && !status && i < count; i++) {
        struct instance_line line;
        if (fill_instance_line(&line, &all, order[i], &texts))
            more = walk->row(walk->user, &line);
        else
            status = prof_out_of_memory(err);
    }
    free(texts.name.text);
    free(texts.stack.text);
    free(texts.tree.text);
    prof_range_instances_free(&all);
    return status;
}

STAT_WALK(nvtx_pushpop_trace, walk_instances(walk, false, err))
STAT_WALK(nvtx_gpu_proj_trace, walk_instances(walk, true, err))

/* The rows of a summary by ranges, as lines that begin with a row and name its range and style. */
#define RANGE_WALK(function, summary, range_line_)                                                 \
    enum prof_status prof_stat_##function(struct prof_report_row_walk *walk,                       \
                                          struct prof_error *err)                                  \
    {                                                                                              \
        struct summary all;                                                                        \
        struct prof_stat_text text = {0};                                                          \
        enum prof_status status = summary(walk->capture, walk->filter, &all, err);                 \
        bool more = true;                                                                          \
        for (size_t i = 0; more && !status && i < all.count; i++) {                                \
            struct range_line_ line = {.row = all.rows[i],                                         \
                                       .style = prof_stat_style(all.rows[i].style)};               \
            if (prof_stat_range_name(&text, line.row.domain, line.row.name, &line.range))          \
                more = walk->row(walk->user, &line);                                               \
            else                                                                                   \
                status = prof_out_of_memory(err);                                                  \
        }                                                                                          \
        free(text.text);                                                                           \
        summary##_free(&all);                                                                      \
        return status;                                                                             \
    }

/* ---- projected, by name ---------------------------------------------------------------------- */

struct projection_line {
    struct prof_projection_row row;
    const char *range, *style;
};

const struct prof_report_column prof_stat_nvtx_gpu_proj_sum_columns[] = {
    STAT_TEXT("Range", projection_line, range),
    STAT_WORD("Style", projection_line, style),
    STAT_INT("Total Proj Time (ns)", NS, projection_line, row.projected_ns.sum),
    STAT_INT("Total Range Time (ns)", NS, projection_line, row.range_ns),
    STAT_INT("Range Instances", COUNT, projection_line, row.projected_ns.count),
    STAT_SPREAD("Proj ", NS, "ns", projection_line, row.projected_ns),
    STAT_INT("Total GPU Ops", COUNT, projection_line, row.operations),
    STAT_REAL("Avg GPU Ops", RATIO, projection_line, row.mean_operations),
    STAT_REAL("Avg Range Lvl", RATIO, projection_line, row.mean_level),
    STAT_REAL("Avg Num Child", RATIO, projection_line, row.mean_children),
    {0}};

RANGE_WALK(nvtx_gpu_proj_sum, prof_projection_summary, projection_line)

/* ---- kernels in ranges ----------------------------------------------------------------------- */

struct range_kernel_line {
    struct prof_range_kernel_row row;
    const char *range, *style;
};

const struct prof_report_column prof_stat_nvtx_kern_sum_columns[] = {
    STAT_TEXT("NVTX Range", range_kernel_line, range),
    STAT_WORD("Style", range_kernel_line, style),
    STAT_ID("PID", range_kernel_line, row.process, process, pid),
    STAT_ID("TID", range_kernel_line, row.thread, thread, tid),
    STAT_INT("NVTX Inst", COUNT, range_kernel_line, row.instances),
    STAT_INT("Kern Inst", COUNT, range_kernel_line, row.duration_ns.count),
    STAT_INT("Total Time (ns)", NS, range_kernel_line, row.duration_ns.sum),
    STAT_SPREAD("", NS, "ns", range_kernel_line, row.duration_ns),
    STAT_TEXT("Kernel Name", range_kernel_line, row.kernel),
    {0}};

RANGE_WALK(nvtx_kern_sum, prof_range_kernel_summary, range_kernel_line)
