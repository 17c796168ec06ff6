/* Exact counts of single launches: from instructions of each kind to FLOP a launch.
 *
 * A counter of instructions is of those that threads executed whose predicate was on, so each is
 * one operation, two for a multiply-add, and twice that for packed halves. CUPTI gives the tensor
 * pipe's work in operations. Counters are independent of each other (different launches), so the
 * variances of their means add up. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/group.h"
#include "libprof/include/prof_roofline.h"

/* What a counter is part of. */
static const struct part {
    const char *name;
    enum prof_ceiling_kind pipe; /* PROF_CEILINGS = no FLOP */
    double flop;                 /* of one */
    size_t bytes_at;             /* offset of the member that it fills, or 0 */
} parts[] = {
    {"fp64_add", PROF_CEILING_FP64, 1, 0},
    {"fp64_mul", PROF_CEILING_FP64, 1, 0},
    {"fp64_fma", PROF_CEILING_FP64, 2, 0},
    {"fp32_add", PROF_CEILING_FP32, 1, 0},
    {"fp32_mul", PROF_CEILING_FP32, 1, 0},
    {"fp32_fma", PROF_CEILING_FP32, 2, 0},
    {"fp16_add", PROF_CEILING_FP16, 2, 0},
    {"fp16_mul", PROF_CEILING_FP16, 2, 0},
    {"fp16_fma", PROF_CEILING_FP16, 4, 0},
    {"tensor_fp64", PROF_CEILING_TENSOR_FP64, 1, 0},
    {"tensor_tf32", PROF_CEILING_TENSOR_TF32, 1, 0},
    {"tensor_bf16", PROF_CEILING_TENSOR_BF16, 1, 0},
    {"tensor_fp16", PROF_CEILING_TENSOR_FP16, 1, 0},
    {"tensor_fp16_fp32", PROF_CEILING_TENSOR_FP16, 1, 0},
    {"tensor_fp16_wgmma", PROF_CEILING_TENSOR_FP16, 1, 0},
    {"tensor_fp8", PROF_CEILING_TENSOR_FP8, 1, 0},
    {"dram_read_bytes", PROF_CEILINGS, 0, offsetof(struct prof_exact_row, dram_read)},
    {"dram_write_bytes", PROF_CEILINGS, 0, offsetof(struct prof_exact_row, dram_write)},
    {"l2_bytes", PROF_CEILINGS, 0, offsetof(struct prof_exact_row, l2)},
};
#define PARTS (sizeof parts / sizeof parts[0])
#define COMPLETE "complete" /* sent when every pass of a configuration was counted */

struct tally {
    int64_t launches;
    double sum, squares;
};

struct work {
    struct prof_capture *capture;
    int64_t last; /* start of the launch whose counts were read last */
    PROF_ARRAY(struct prof_exact_row) rows;
    PROF_ARRAY(struct tally) tallies; /* PARTS of each row */
};

static bool add_exact_row(struct work *w, const struct prof_config *config, int64_t device)
{
    struct prof_exact_row *row = prof_array_add(&w->rows);
    if (row)
        *row = (struct prof_exact_row){.config = config,
                                       .device = device,
                                       .flop_error = NAN,
                                       .dram_read = NAN,
                                       .dram_write = NAN,
                                       .l2 = NAN};
    for (size_t i = 0; row && i < PARTS; i++) {
        struct tally *tally = prof_array_add(&w->tallies);
        if (!tally)
            return false;
        *tally = (struct tally){0};
    }
    return row != NULL;
}

/* Number of the row; SIZE_MAX without memory. Rows come by configuration. */
static size_t exact_row_number(struct work *w, const struct prof_config *config, int64_t device)
{
    for (size_t i = w->rows.count; i > 0 && w->rows.data[i - 1].config == config; i--)
        if (w->rows.data[i - 1].device == device)
            return i - 1;
    return add_exact_row(w, config, device) ? w->rows.count - 1 : SIZE_MAX;
}

/* config, stream, name, value, start. The counts of a launch come one after the other. */
static bool add_exact_count(void *user, sqlite3_stmt *sql)
{
    struct work *w = user;
    size_t config = prof_config_index(w->capture, prof_column_id(sql, 0));
    const struct prof_stream *stream = prof_stream(w->capture, prof_column_id(sql, 1));
    const struct prof_device *device = stream ? prof_device(w->capture, stream->device) : NULL;
    const char *name = (const char *)sqlite3_column_text(sql, 2);
    double value = sqlite3_column_double(sql, 3);
    if (config == SIZE_MAX || !name || sqlite3_column_type(sql, 3) == SQLITE_NULL ||
        !(value >= 0) || !isfinite(value))
        return true;
    size_t row =
        exact_row_number(w, &w->capture->configs.data[config], device ? device->physical : 0);
    if (row == SIZE_MAX)
        return false;
    int64_t start = prof_column_int(sql, 4);
    w->rows.data[row].launches += start != w->last;
    w->last = start;
    w->rows.data[row].complete |= strcmp(name, COMPLETE) == 0;
    for (size_t i = 0; i < PARTS; i++) {
        struct tally *tally = &w->tallies.data[row * PARTS + i];
        if (strcmp(parts[i].name, name) != 0)
            continue;
        tally->launches++;
        tally->sum += value;
        tally->squares += value * value;
    }
    return true;
}

/* The square of the standard error of the mean; NaN of a single launch, 0 where nothing counted. */
static double square_of_error(const struct tally *tally)
{
    double n = (double)tally->launches, mean = tally->sum / n;
    if (tally->sum <= 0)
        return 0;
    return n > 1 ? fmax(0, tally->squares / n - mean * mean) / (n - 1) : NAN;
}

static void finish_exact_row(struct prof_exact_row *row, const struct tally *tallies)
{
    double square = 0;
    for (size_t i = 0; i < PARTS; i++) {
        const struct tally *tally = &tallies[i];
        if (!tally->launches)
            continue;
        double mean = tally->sum / (double)tally->launches;
        if (parts[i].bytes_at) {
            memcpy((char *)row + parts[i].bytes_at, &mean, sizeof mean);
            continue;
        }
        row->pipe[parts[i].pipe] += parts[i].flop * mean;
        row->flop += parts[i].flop * mean;
        square += parts[i].flop * parts[i].flop * square_of_error(tally);
    }
    row->flop_error = sqrt(square);
    if (!row->complete)
        row->flop = row->flop_error = NAN;
}

enum prof_status prof_exact(struct prof_capture *capture, struct prof_exact *result,
                            struct prof_error *err)
{
    struct work w = {.capture = capture, .last = INT64_MIN};
    *result = (struct prof_exact){0};
    enum prof_status status = prof_scan(
        capture, "SELECT config, stream, name, value, start FROM exact_count ORDER BY config, id",
        add_exact_count, &w, err);
    for (size_t i = 0; !status && i < w.rows.count; i++)
        finish_exact_row(&w.rows.data[i], &w.tallies.data[i * PARTS]);
    if (status)
        prof_array_free(&w.rows);
    else
        *result = (struct prof_exact){w.rows.data, w.rows.count};
    prof_array_free(&w.tallies);
    return status;
}

PROF_FREE_ROWS(prof_exact)

PROF_ORDER(by_config, struct prof_exact_row, PROF_ASCENDING(config->id))

const struct prof_exact_row *prof_exact_find(const struct prof_exact *exact,
                                             const struct prof_config *config, int64_t device)
{
    struct prof_exact_row key = {.config = config};
    const struct prof_exact_row *found =
        config && exact->count
            ? bsearch(&key, exact->rows, exact->count, sizeof *exact->rows, by_config)
            : NULL;
    if (!found)
        return NULL;
    while (found > exact->rows && found[-1].config == config)
        found--;
    for (; found < exact->rows + exact->count && found->config == config; found++)
        if (found->device == device)
            return found;
    return NULL;
}
