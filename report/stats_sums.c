/* Statistics of calls, kernels, copies and fills by name, and of unified memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/saturate.h"
#include "report/stats_columns.h"

/* ---- API calls ------------------------------------------------------------------------------- */

struct api_line {
    struct prof_api_row row;
};

const struct prof_report_column prof_stat_api_sum_columns[] = {
    STAT_TIMES("Num Calls", api_line, row), STAT_TEXT("Name", api_line, row.name), {0}};

enum prof_status prof_stat_api_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_api_summary calls;
    enum prof_status status = prof_api_summary(walk->capture, walk->filter, &calls, err);
    walk->listed_ns = calls.listed_ns;
    walk->wall_ns = calls.wall_ns;
    for (size_t i = 0; i < calls.count; i++) {
        struct api_line line = {calls.rows[i]};
        if (line.row.duration_ns.count && !walk->row(walk->user, &line))
            break;
    }
    prof_api_summary_free(&calls);
    return status;
}

/* ---- kernels --------------------------------------------------------------------------------- */

struct kernel_line {
    struct prof_kernel_row row;
    const char *grid, *block;
};

const struct prof_report_column prof_stat_kern_sum_columns[] = {
    STAT_TIMES("Instances", kernel_line, row), STAT_TEXT("Name", kernel_line, row.name), {0}};

const struct prof_report_column prof_stat_kern_gb_sum_columns[] = {
    STAT_TIMES("Instances", kernel_line, row),
    STAT_WORD("GridXYZ", kernel_line, grid),
    STAT_WORD("BlockXYZ", kernel_line, block),
    STAT_TEXT("Name", kernel_line, row.name),
    {0}};

static enum prof_status walk_kernels(struct prof_report_row_walk *walk, enum prof_group group,
                                     struct prof_error *err)
{
    struct prof_kernel_summary kernels;
    enum prof_status status =
        prof_kernel_summary(walk->capture, walk->filter, group, &kernels, err);
    walk->listed_ns = kernels.listed_ns;
    walk->wall_ns = kernels.wall_ns;
    for (size_t i = 0; i < kernels.count; i++) {
        struct kernel_line line = {.row = kernels.rows[i]};
        char grid[80], block[80];
        if (line.row.config) {
            line.grid = prof_stat_xyz(line.row.config->grid, grid, sizeof grid);
            line.block = prof_stat_xyz(line.row.config->block, block, sizeof block);
        }
        if (line.row.duration_ns.count && !walk->row(walk->user, &line))
            break;
    }
    prof_kernel_summary_free(&kernels);
    return status;
}

STAT_WALK(kern_sum, walk_kernels(walk, PROF_BY_NAME, err))
STAT_WALK(kern_gb_sum, walk_kernels(walk, PROF_BY_SHAPE, err))

/* ---- copies and fills ------------------------------------------------------------------------ */

struct operation_line {
    struct prof_operation_row row;
    const char *operation;
};

const struct prof_report_column prof_stat_mem_time_sum_columns[] = {
    STAT_TIMES("Count", operation_line, row),
    STAT_TEXT("Operation", operation_line, operation),
    {0}};

const struct prof_report_column prof_stat_mem_size_sum_columns[] = {
    STAT_INT("Total (MB)", BYTES, operation_line, row.bytes.sum),
    STAT_INT("Count", COUNT, operation_line, row.bytes.count),
    STAT_SPREAD("", BYTES, "MB", operation_line, row.bytes),
    STAT_TEXT("Operation", operation_line, operation),
    {0}};

static void pass_operations(struct prof_report_row_walk *walk,
                            const struct prof_operation_summary *all, bool by_size)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct prof_operation_row *row = &all->rows[i];
        struct operation_line line = {*row, prof_stat_operation(row->api, row->kind)};
        bool any = by_size ? row->bytes.count : row->duration_ns.count;
        if (any && !walk->row(walk->user, &line))
            break;
    }
}

enum prof_status prof_stat_mem_time_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_operation_summary all;
    enum prof_status status = prof_operation_summary(walk->capture, walk->filter, &all, err);
    walk->listed_ns = all.listed_ns;
    walk->wall_ns = all.wall_ns;
    pass_operations(walk, &all, false);
    prof_operation_summary_free(&all);
    return status;
}

PROF_ORDER(by_bytes, struct prof_operation_row, PROF_DESCENDING(bytes.sum), PROF_ASCENDING(kind))

enum prof_status prof_stat_mem_size_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_operation_summary all;
    enum prof_status status = prof_operation_summary(walk->capture, walk->filter, &all, err);
    if (all.count)
        qsort(all.rows, all.count, sizeof *all.rows, by_bytes);
    pass_operations(walk, &all, true);
    prof_operation_summary_free(&all);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct work_row {
    double share;
    struct prof_spread duration_ns;
};

struct work_line {
    struct work_row row;
    const char *category;
    const char *operation;
    char graph[48];
};

struct work_lines {
    struct work_line *list;
    size_t count;
};

const struct prof_report_column prof_stat_gpu_sum_columns[] = {
    STAT_TIMES("Instances", work_line, row),
    STAT_WORD("Category", work_line, category),
    STAT_TEXT("Operation", work_line, operation),
    {0}};

const struct prof_report_column prof_stat_api_gpu_sum_columns[] = {
    STAT_TIMES("Instances", work_line, row),
    STAT_WORD("Category", work_line, category),
    STAT_TEXT("Operation", work_line, operation),
    {0}};

PROF_ORDER(by_work_time, struct work_line, PROF_DESCENDING(row.duration_ns.sum),
           strcmp(x->category, y->category), prof_compare_texts(x->operation, y->operation))

static struct work_line *add_work_line(struct work_lines *lines, const char *category,
                                       const char *operation, const struct prof_spread *duration_ns)
{
    if (!duration_ns->count)
        return NULL;
    struct work_line *line = &lines->list[lines->count++];
    *line = (struct work_line){
        .row.duration_ns = *duration_ns, .category = category, .operation = operation};
    return line;
}

static const char *kernel_category(const char *api)
{
    return api && !strcmp(api, "cuda")     ? "CUDA_KERNEL"
           : api && !strcmp(api, "opencl") ? "OPENCL_KERNEL"
                                           : "KERNEL";
}

/* OpenCL's functions are called clSomething. */
static const char *call_category(const char *name)
{
    return name && name[0] == 'c' && name[1] == 'l' && name[2] >= 'A' && name[2] <= 'Z'
               ? "OPENCL_API"
               : "CUDA_API";
}

struct work_tables {
    struct prof_kernel_summary kernels;
    struct prof_operation_summary operations;
    struct prof_activity_summary graphs;
    struct prof_api_summary calls; /* empty unless requested */
};

static enum prof_status load_work(struct prof_report_row_walk *walk, bool with_calls,
                                  struct work_tables *t, struct prof_error *err)
{
    PROF_TRY(prof_kernel_summary(walk->capture, walk->filter, PROF_BY_NAME, &t->kernels, err));
    PROF_TRY(prof_operation_summary(walk->capture, walk->filter, &t->operations, err));
    PROF_TRY(
        prof_activity_summary(walk->capture, walk->filter, PROF_ACTIVITY_GRAPHS, &t->graphs, err));
    if (with_calls)
        PROF_TRY(prof_api_summary(walk->capture, walk->filter, &t->calls, err));
    return PROF_OK;
}

static void list_work(const struct work_tables *t, struct work_lines *lines)
{
    for (size_t i = 0; i < t->kernels.count; i++) {
        const struct prof_kernel_row *row = &t->kernels.rows[i];
        add_work_line(lines, kernel_category(row->api), row->name, &row->duration_ns);
    }
    for (size_t i = 0; i < t->operations.count; i++) {
        const struct prof_operation_row *row = &t->operations.rows[i];
        add_work_line(lines, "MEMORY_OPER", prof_stat_operation(row->api, row->kind),
                      &row->duration_ns);
    }
    for (size_t i = 0; i < t->graphs.count; i++) {
        const struct prof_activity_row *row = &t->graphs.rows[i];
        struct work_line *line = add_work_line(lines, "CUDA_GRAPH", NULL, &row->duration_ns);
        if (line)
            snprintf(line->graph, sizeof line->graph, "[CUDA graph %lld]", (long long)row->kind);
    }
    for (size_t i = 0; i < t->calls.count; i++) {
        const struct prof_api_row *row = &t->calls.rows[i];
        add_work_line(lines, call_category(row->name), row->name, &row->duration_ns);
    }
}

static void pass_work(struct prof_report_row_walk *walk, struct work_lines *lines)
{
    walk->listed_ns = 0;
    for (size_t i = 0; i < lines->count; i++)
        walk->listed_ns = prof_add(walk->listed_ns, lines->list[i].row.duration_ns.sum);
    for (size_t i = 0; i < lines->count; i++) {
        struct work_line line = lines->list[i];
        line.row.share = (double)line.row.duration_ns.sum / (double)walk->listed_ns;
        if (line.graph[0])
            line.operation = line.graph;
        if (!walk->row(walk->user, &line))
            break;
    }
}

static enum prof_status walk_work(struct prof_report_row_walk *walk, bool with_calls,
                                  struct prof_error *err)
{
    struct work_tables t = {0};
    struct work_lines lines = {0};
    enum prof_status status = load_work(walk, with_calls, &t, err);
    if (!status) {
        lines.list =
            calloc(t.kernels.count + t.operations.count + t.graphs.count + t.calls.count + 1,
                   sizeof *lines.list);
        if (!lines.list)
            status = prof_out_of_memory(err);
    }
    if (!status) {
        list_work(&t, &lines);
        if (lines.count)
            qsort(lines.list, lines.count, sizeof *lines.list, by_work_time);
        walk->wall_ns = t.kernels.wall_ns;
        pass_work(walk, &lines);
    }
    free(lines.list);
    prof_kernel_summary_free(&t.kernels);
    prof_operation_summary_free(&t.operations);
    prof_activity_summary_free(&t.graphs);
    prof_api_summary_free(&t.calls);
    return status;
}

STAT_WALK(gpu_sum, walk_work(walk, false, err))
STAT_WALK(api_gpu_sum, walk_work(walk, true, err))

/* ---- unified memory -------------------------------------------------------------------------- */

struct migration_line {
    struct prof_migration_row row;
    char lowest[24], highest[24];
};

static int64_t known_sum(int64_t a, int64_t b)
{
    return a == PROF_UNKNOWN ? b : b == PROF_UNKNOWN ? a : prof_add(a, b);
}

static struct prof_report_value throughput(const struct prof_report_data *data, const void *row)
{
    (void)data;
    const struct prof_migration_row *its = &((const struct migration_line *)row)->row;
    int64_t bytes = known_sum(its->htod_bytes, its->dtoh_bytes);
    int64_t ns = known_sum(its->htod_ns, its->dtoh_ns);
    return prof_stat_rate(bytes, ns);
}

const struct prof_report_column prof_stat_um_sum_columns[] = {
    STAT_CHARS("Virtual Address", WORD, migration_line, lowest),
    STAT_INT("HtoD Migration Size (MB)", BYTES, migration_line, row.htod_bytes),
    STAT_INT("DtoH Migration Size (MB)", BYTES, migration_line, row.dtoh_bytes),
    STAT_INT("CPU Page Faults", COUNT, migration_line, row.cpu_faults),
    STAT_INT("GPU Page Faults", COUNT, migration_line, row.gpu_faults),
    STAT_OF("Migration Throughput (MB/s)", RATE, throughput),
    {0}};

const struct prof_report_column prof_stat_um_total_sum_columns[] = {
    STAT_INT("Total HtoD Migration Size (MB)", BYTES, migration_line, row.htod_bytes),
    STAT_INT("Total DtoH Migration Size (MB)", BYTES, migration_line, row.dtoh_bytes),
    STAT_INT("Total CPU Page Faults", COUNT, migration_line, row.cpu_faults),
    STAT_INT("Total GPU PageFaults", COUNT, migration_line, row.gpu_faults),
    STAT_CHARS("Minimum Virtual Address", WORD, migration_line, lowest),
    STAT_CHARS("Maximum Virtual Address", WORD, migration_line, highest),
    {0}};

static void print_address(char out[24], int64_t address)
{
    out[0] = 0;
    if (address != PROF_UNKNOWN)
        snprintf(out, 24, "0x%llx", (unsigned long long)address);
}

enum prof_status prof_stat_um_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_migration_summary all;
    enum prof_status status = prof_migration_summary(walk->capture, walk->filter, &all, err);
    for (size_t i = 0; i < all.count; i++) {
        struct migration_line line = {.row = all.rows[i]};
        print_address(line.lowest, line.row.address);
        if (!walk->row(walk->user, &line))
            break;
    }
    prof_migration_summary_free(&all);
    return status;
}

static bool has_migration(const struct prof_migration_row *row)
{
    return row->htod_bytes != PROF_UNKNOWN || row->dtoh_bytes != PROF_UNKNOWN ||
           row->cpu_faults != PROF_UNKNOWN || row->gpu_faults != PROF_UNKNOWN;
}

enum prof_status prof_stat_um_total_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_migration_summary all;
    enum prof_status status = prof_migration_summary(walk->capture, walk->filter, &all, err);
    struct migration_line line = {.row = all.total};
    print_address(line.lowest, all.lowest);
    print_address(line.highest, all.highest);
    if (!status && has_migration(&all.total))
        walk->row(walk->user, &line);
    prof_migration_summary_free(&all);
    return status;
}
