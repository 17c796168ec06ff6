/* The ceilings of a capture's devices: what was measured on its machine, and theoretical peaks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/include/prof.h"

typedef PROF_ARRAY(struct prof_ceiling) ceiling_list;

static struct prof_ceiling *known_row(const ceiling_list *list, int64_t device,
                                      enum prof_ceiling_kind kind)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->data[i].device == device && list->data[i].kind == kind)
            return &list->data[i];
    return NULL;
}

/* Its own ceiling stands before it in the table. */
static void take_sustained(const ceiling_list *list, const struct prof_device *device,
                           const char *name, double value)
{
    enum prof_ceiling_kind kind = prof_ceiling_sustained(name);
    struct prof_ceiling *ceiling =
        kind == PROF_CEILINGS ? NULL : known_row(list, device->physical, kind);
    if (ceiling && value > 0 && prof_ceiling_possible(value, prof_peak(device, kind).value))
        ceiling->sustained = value;
}

/* Names of later versions, and values that no device has or that this one cannot have, are left
 * out. */
static bool take_row(struct prof_capture *capture, sqlite3_stmt *row, ceiling_list *list)
{
    const struct prof_device *device = prof_device(capture, prof_column_id(row, 0));
    const char *name = (const char *)sqlite3_column_text(row, 1);
    enum prof_ceiling_kind kind = name ? prof_ceiling_named(name) : PROF_CEILINGS;
    double value = sqlite3_column_double(row, 2);
    if (device && name && kind == PROF_CEILINGS)
        take_sustained(list, device, name, value);
    if (!device || kind == PROF_CEILINGS || !(value > 0) || value > 1e30 ||
        !prof_ceiling_possible(value, prof_peak(device, kind).value) ||
        known_row(list, device->physical, kind))
        return true;
    struct prof_ceiling *ceiling = prof_array_add(list);
    if (!ceiling)
        return false;
    *ceiling = prof_ceiling_of(kind);
    ceiling->device = device->physical;
    ceiling->value = value;
    ceiling->measured = true;
    ceiling->date_s = prof_column_int(row, 3);
    const char *how = (const char *)sqlite3_column_text(row, 4);
    if (!how)
        return true;
    ceiling->how =
        prof_arena_copy(&capture->string_texts, how, (size_t)sqlite3_column_bytes(row, 4));
    return ceiling->how != NULL;
}

static enum prof_status read_measured(struct prof_capture *capture, ceiling_list *list,
                                      struct prof_error *err)
{
    sqlite3_stmt *row;
    PROF_TRY(prof_query(capture,
                        "SELECT device, name, value, measured_at, how FROM ceiling ORDER BY id",
                        &row, err));
    while (prof_row(row)) {
        if (!take_row(capture, row, list)) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
    }
    return prof_query_end(capture, row, err);
}

static bool add_peaks(const struct prof_capture *capture, ceiling_list *list)
{
    struct prof_ceiling peaks[PROF_CEILINGS];
    for (size_t d = 0; d < capture->devices.count; d++) {
        const struct prof_device *device = &capture->devices.data[d];
        if (device->physical != device->id)
            continue;
        size_t count = prof_peaks(device, peaks);
        for (size_t i = 0; i < count; i++) {
            struct prof_ceiling *slot = prof_array_add(list);
            if (!slot)
                return false;
            *slot = peaks[i];
        }
    }
    return true;
}

PROF_ORDER(by_device_and_kind, struct prof_ceiling, PROF_ASCENDING(device), PROF_ASCENDING(kind),
           PROF_DESCENDING(measured))

enum prof_status prof_ceilings(struct prof_capture *capture, struct prof_ceilings *result,
                               struct prof_error *err)
{
    ceiling_list list = {0};
    *result = (struct prof_ceilings){0};
    enum prof_status status = read_measured(capture, &list, err);
    if (!status && !add_peaks(capture, &list))
        status = prof_out_of_memory(err);
    if (status) {
        prof_array_free(&list);
        return status;
    }
    prof_array_sort(&list, by_device_and_kind);
    *result = (struct prof_ceilings){.rows = list.data, .count = list.count};
    return PROF_OK;
}

PROF_FREE_ROWS(prof_ceilings)

const struct prof_ceiling *prof_ceiling_find(const struct prof_ceilings *ceilings, int64_t device,
                                             enum prof_ceiling_kind kind)
{
    for (size_t i = 0; i < ceilings->count; i++)
        if (ceilings->rows[i].device == device && ceilings->rows[i].kind == kind)
            return &ceilings->rows[i]; /* measured ones stand first */
    return NULL;
}

/* Reads alone are faster than copies, so a roof is the best that the memory was seen to do; a
 * theoretical peak beside measured ones is no competition. */
double prof_roof_ceiling(const struct prof_ceilings *ceilings, int64_t device,
                         enum prof_roof_level level)
{
    static const enum prof_ceiling_kind kinds[PROF_ROOF_LEVELS][2] = {
        [PROF_ROOF_DRAM] = {PROF_CEILING_DRAM_COPY, PROF_CEILING_DRAM_TRIAD},
        [PROF_ROOF_L2] = {PROF_CEILING_L2_READ, PROF_CEILING_L2_READ},
        [PROF_ROOF_LINK] = {PROF_CEILING_HTOD_PINNED, PROF_CEILING_DTOH_PINNED},
    };
    double best[2] = {NAN, NAN}; /* theoretical, measured */
    for (size_t i = 0; i < ceilings->count; i++) {
        const struct prof_ceiling *c = &ceilings->rows[i];
        if (c->device == device && c->kind >= kinds[level][0] && c->kind <= kinds[level][1])
            best[c->measured] = fmax(best[c->measured], c->value);
    }
    return isnan(best[1]) ? best[0] : best[1];
}

/* ---- peaks ----------------------------------------------------------------------------------- */

struct prof_ceiling prof_ceiling_of(enum prof_ceiling_kind kind)
{
    static const struct {
        const char *name, *text;
        enum prof_ceiling_unit unit;
    } kinds[] = {
#define ROW(kind_, name_, unit_, text_) {name_, text_, PROF_CEILING_##unit_},
        PROF_CEILING_KINDS(ROW)
#undef ROW
    };
    return (struct prof_ceiling){.kind = kind,
                                 .name = kinds[kind].name,
                                 .text = kinds[kind].text,
                                 .unit = kinds[kind].unit,
                                 .value = NAN,
                                 .sustained = NAN,
                                 .date_s = PROF_UNKNOWN};
}

enum prof_ceiling_kind prof_ceiling_named(const char *name)
{
    enum prof_ceiling_kind kind = 0;
    while (kind < PROF_CEILINGS && strcmp(prof_ceiling_of(kind).name, name) != 0)
        kind++;
    return kind;
}

/* In the order of the matmul_* kinds. */
static const enum prof_ceiling_kind pipes_of_matmul[] = {
    PROF_CEILING_TENSOR_FP64, PROF_CEILING_FP32,        PROF_CEILING_TENSOR_TF32,
    PROF_CEILING_TENSOR_FP16, PROF_CEILING_TENSOR_BF16, PROF_CEILING_TENSOR_FP8,
};
_Static_assert(sizeof pipes_of_matmul / sizeof pipes_of_matmul[0] ==
                   PROF_CEILING_MATMUL_FP8 - PROF_CEILING_MATMUL_FP64 + 1,
               "one pipe for each kind of matrix product");

enum prof_ceiling_kind prof_pipe_of_matmul(enum prof_ceiling_kind matmul)
{
    return matmul >= PROF_CEILING_MATMUL_FP64 && matmul <= PROF_CEILING_MATMUL_FP8
               ? pipes_of_matmul[matmul - PROF_CEILING_MATMUL_FP64]
               : PROF_CEILINGS;
}

enum prof_ceiling_kind prof_matmul_of_pipe(enum prof_ceiling_kind pipe)
{
    for (enum prof_ceiling_kind kind = PROF_CEILING_MATMUL_FP64; kind <= PROF_CEILING_MATMUL_FP8;
         kind++)
        if (prof_pipe_of_matmul(kind) == pipe)
            return kind;
    return PROF_CEILINGS;
}

enum prof_ceiling_kind prof_ceiling_sustained(const char *name)
{
    char base[32];
    size_t length = strlen(name), suffix = strlen(PROF_CEILING_SUSTAINED);
    if (length <= suffix || length - suffix >= sizeof base ||
        strcmp(name + length - suffix, PROF_CEILING_SUSTAINED) != 0)
        return PROF_CEILINGS;
    memcpy(base, name, length - suffix);
    base[length - suffix] = '\0';
    return prof_ceiling_named(base);
}

/* Multiply-adds per clock and SM by compute capability: CUDA C++ programming guide, table of
 * arithmetic throughput; tensor rates (dense, the full rate of the silicon: GeForce boards do half
 * of it when they accumulate in FP32) from the architecture papers of the chips. 0 = has none. */
struct rates {
    int major, minor; /* this capability and later ones of the same major number */
    int fp64, fp32, fp16;
    int tensor_fp64, tensor_tf32, tensor_fp16, tensor_bf16, tensor_fp8;
};

static const struct rates all_rates[] = {
    {6, 0, 32, 64, 128, 0, 0, 0, 0, 0},
    {6, 1, 4, 128, 2, 0, 0, 0, 0, 0},
    {7, 0, 32, 64, 128, 0, 0, 512, 0, 0},
    {7, 5, 2, 64, 128, 0, 0, 512, 0, 0},
    {8, 0, 32, 64, 256, 64, 512, 1024, 1024, 0},
    {8, 6, 2, 128, 128, 0, 256, 512, 512, 0},
    {8, 9, 2, 128, 128, 0, 256, 512, 512, 1024},
    {9, 0, 64, 128, 256, 128, 1024, 2048, 2048, 4096},
    {10, 0, 64, 128, 256, 64, 2048, 4096, 4096, 8192},
    {10, 3, 2, 128, 256, 2, 2048, 4096, 4096, 8192},
    {12, 0, 2, 128, 128, 0, 256, 512, 512, 1024},
};

static const struct rates *rates_of(int64_t major, int64_t minor)
{
    const struct rates *found = NULL;
    for (size_t i = 0; i < sizeof all_rates / sizeof all_rates[0]; i++)
        if (all_rates[i].major == major && all_rates[i].minor <= minor)
            found = &all_rates[i];
    return found;
}

struct peaks {
    const struct prof_device *device;
    struct prof_ceiling *out;
    size_t count;
};

static void add_peak(struct peaks *peaks, enum prof_ceiling_kind kind, double value,
                     const char *how)
{
    struct prof_ceiling *ceiling = &peaks->out[peaks->count++];
    *ceiling = prof_ceiling_of(kind);
    ceiling->device = peaks->device->physical;
    ceiling->value = value;
    ceiling->how = how;
}

static void add_peak_rate(struct peaks *peaks, enum prof_ceiling_kind kind, int rate)
{
    double clock = 1e3 * (double)peaks->device->clock_khz;
    if (rate)
        add_peak(peaks, kind, 2.0 * rate * (double)peaks->device->units * clock,
                 "units x multiply-adds per clock x 2 x peak clock");
}

static bool known(int64_t value)
{
    return value != PROF_UNKNOWN && value > 0;
}

size_t prof_peaks(const struct prof_device *device, struct prof_ceiling out[PROF_CEILINGS])
{
    struct peaks peaks = {.device = device, .out = out};
    if (known(device->memory_bandwidth))
        for (enum prof_ceiling_kind kind = PROF_CEILING_DRAM_COPY; kind <= PROF_CEILING_DRAM_TRIAD;
             kind++)
            add_peak(&peaks, kind, (double)device->memory_bandwidth, "bus width x memory clock");
    const struct rates *r = rates_of(device->compute_major, device->compute_minor);
    if (!r || !known(device->units) || !known(device->clock_khz))
        return peaks.count;
    add_peak(&peaks, PROF_CEILING_SHARED,
             128.0 * (double)device->units * 1e3 * (double)device->clock_khz,
             "units x 128 bytes per clock x peak clock");
    const struct {
        enum prof_ceiling_kind kind;
        int rate;
    } rows[] = {
        {PROF_CEILING_FP64, r->fp64},
        {PROF_CEILING_FP32, r->fp32},
        {PROF_CEILING_FP16, r->fp16},
        {PROF_CEILING_TENSOR_FP64, r->tensor_fp64},
        {PROF_CEILING_TENSOR_TF32, r->tensor_tf32},
        {PROF_CEILING_TENSOR_FP16, r->tensor_fp16},
        {PROF_CEILING_TENSOR_BF16, r->tensor_bf16},
        {PROF_CEILING_TENSOR_FP8, r->tensor_fp8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        add_peak_rate(&peaks, rows[i].kind, rows[i].rate);
    return peaks.count;
}

static struct prof_ceiling peak_of_matmul(const struct prof_device *device,
                                          enum prof_ceiling_kind kind)
{
    struct prof_ceiling peak = prof_peak(device, prof_pipe_of_matmul(kind));
    if (isnan(peak.value) && kind == PROF_CEILING_MATMUL_FP64)
        peak = prof_peak(device, PROF_CEILING_FP64);
    struct prof_ceiling matmul = prof_ceiling_of(kind);
    matmul.device = peak.device;
    matmul.value = peak.value;
    matmul.how = peak.how;
    return matmul;
}

struct prof_ceiling prof_peak(const struct prof_device *device, enum prof_ceiling_kind kind)
{
    struct prof_ceiling peaks[PROF_CEILINGS];
    if (prof_pipe_of_matmul(kind) != PROF_CEILINGS)
        return peak_of_matmul(device, kind);
    size_t count = prof_peaks(device, peaks);
    for (size_t i = 0; i < count; i++)
        if (peaks[i].kind == kind)
            return peaks[i];
    return prof_ceiling_of(kind);
}

bool prof_ceiling_possible(double measured, double peak)
{
    return isnan(peak) || measured <= 1.05 * peak;
}
