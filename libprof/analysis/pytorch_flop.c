/* What iterations compute by the inputs of PyTorch's operators, and how much of the device's peak
 * that is (MFU). Device work is read once; each operation is of the iteration in which it starts,
 * so that a host that runs ahead does not matter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/call_tree.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"
#include "libprof/include/prof_stack.h"

struct device_sum {
    size_t series;
    int64_t device;
    double flop[PROF_CEILINGS + 1]; /* by pipe; the last: it is not known */
    int64_t counted_ns, lacking_ns, other_ns;
    bool by_kernel, assumed; /* the type of some of it: by kernels' names; by nothing, FP32 */
};

struct window {
    int64_t begin, end, process, thread, device;
    size_t series;
};

struct flop_work {
    struct prof_capture *capture;
    const struct prof_iteration_list *iterations;
    struct prof_scope scope;
    struct prof_torch torch;
    bool *credited;                 /* by operator */
    PROF_ARRAY(struct window) list; /* iterations after warm-up, by begin */
    int64_t longest_ns;             /* of them */
    PROF_ARRAY(struct device_sum) sums;
};

/* ---- the pipe -------------------------------------------------------------------------------- */

static bool name_holds(const char *name, const char *const *words)
{
    for (; name && *words; words++)
        if (strcasestr(name, *words))
            return true;
    return false;
}

/* By the words in a kernel's name; PROF_CEILINGS where they say nothing. nvjet names types by
 * letters that are documented nowhere: what is narrow without more is held against FP16, whose peak
 * is that of BF16. */
static enum prof_ceiling_kind pipe_of_kernel(const char *name)
{
    static const char *const fp8[] = {"e4m3", "e5m2", "fp8", NULL};
    static const char *const tf32[] = {"tf32", "s1688gemm", "s1688_", NULL};
    static const char *const bf16[] = {"bf16", "bfloat16", NULL};
    static const char *const fp64[] = {"dgemm", "f64f64", "d884gemm", "double", NULL};
    if (name_holds(name, fp8))
        return PROF_CEILING_TENSOR_FP8;
    if (name_holds(name, bf16))
        return PROF_CEILING_TENSOR_BF16;
    if (name_holds(name, tf32))
        return PROF_CEILING_TENSOR_TF32;
    if (name_holds(name, fp64))
        return PROF_CEILING_TENSOR_FP64;
    enum prof_precision precision = prof_name_precision(name);
    return precision == PROF_PRECISION_NARROW ? PROF_CEILING_TENSOR_FP16
           : precision == PROF_PRECISION_WIDE ? PROF_CEILING_FP32
                                              : PROF_CEILINGS;
}

/* Of the operator's type; whether FP32 runs as TF32 only the kernel shows. */
static enum prof_ceiling_kind pipe_of(struct device_sum *sum, enum prof_element element,
                                      const char *kernel)
{
    enum prof_ceiling_kind named = pipe_of_kernel(kernel);
    switch (element) {
    case PROF_ELEMENT_FP64:
        return PROF_CEILING_TENSOR_FP64;
    case PROF_ELEMENT_FP16:
        return PROF_CEILING_TENSOR_FP16;
    case PROF_ELEMENT_BF16:
        return PROF_CEILING_TENSOR_BF16;
    case PROF_ELEMENT_FP8:
        return PROF_CEILING_TENSOR_FP8;
    case PROF_ELEMENT_FP32:
        sum->assumed |= named == PROF_CEILINGS;
        return named == PROF_CEILING_TENSOR_TF32 ? named : PROF_CEILING_FP32;
    default:
        sum->by_kernel |= named != PROF_CEILINGS;
        return named;
    }
}

/* Clocks of the data sheets' peaks, kHz: of tensor cores, of the rest and of tensor FP64. By them
 * an H100 SXM has 989 TFLOP/s in BF16 and 67 in FP32, without sparsity. */
static const struct sheet {
    const char *name; /* in the device's, the longer one first */
    int64_t tensor_khz, other_khz;
} sheets[] = {
    {"H100 PCIe", 1620000, 1755000}, {"H100", 1830000, 1980000}, {"H200", 1830000, 1980000},
    {"A100", 1410000, 1410000},      {"V100", 1530000, 1530000},
};

struct peak {
    double value;
    const char *source; /* in words */
};

static struct peak flop_peak_of(const struct prof_ceilings *ceilings, int64_t id,
                           const struct prof_device *device, enum prof_ceiling_kind pipe)
{
    if (!device || pipe >= PROF_CEILINGS)
        return (struct peak){NAN, NULL};
    struct prof_device by_sheet = *device;
    bool listed = false;
    for (size_t i = 0; !listed && i < sizeof sheets / sizeof sheets[0]; i++) {
        listed = device->name && strstr(device->name, sheets[i].name);
        bool tensor = pipe > PROF_CEILING_TENSOR_FP64 && pipe <= PROF_CEILING_TENSOR_FP8;
        if (listed)
            by_sheet.clock_khz = tensor ? sheets[i].tensor_khz : sheets[i].other_khz;
    }
    double value = prof_peak(&by_sheet, pipe).value;
    if (isnan(value) && pipe == PROF_CEILING_TENSOR_FP64)
        value = prof_peak(&by_sheet, PROF_CEILING_FP64).value;
    if (!isnan(value))
        return (struct peak){value, listed ? "data sheet" : "device attributes"};
    const struct prof_ceiling *measured = prof_ceiling_find(ceilings, id, pipe);
    return measured ? (struct peak){measured->value, "measured"} : (struct peak){NAN, NULL};
}

/* ---- sums ------------------------------------------------------------------------------------ */

PROF_ORDER(by_begin_of_window, struct window, PROF_ASCENDING(begin), PROF_ASCENDING(end))

/* The time that windows of this one's thread and device cover. */
static int64_t covered_by_thread(const struct flop_work *w, const struct window *one)
{
    int64_t covered = 0;
    for (size_t i = 0; i < w->list.count; i++) {
        const struct window *window = &w->list.data[i];
        if (window->thread == one->thread && window->device == one->device)
            covered = prof_add(covered, window->end - window->begin);
    }
    return covered;
}

/* Of the first two windows of different threads that overlap on one process and device, that of
 * the thread that covers less; NULL = none overlap. */
static const struct window *overlapping_thread(const struct flop_work *w)
{
    for (size_t i = 0; i < w->list.count; i++)
        for (size_t next = i + 1; next < w->list.count; next++) {
            const struct window *a = &w->list.data[i], *b = &w->list.data[next];
            if (b->begin >= a->end)
                break;
            if (a->thread != b->thread && a->process == b->process && a->device == b->device)
                return covered_by_thread(w, a) >= covered_by_thread(w, b) ? b : a;
        }
    return NULL;
}

/* Where threads of a process run their own iterations on a device at the same time, as those of
 * forward and backward do, all work is of the iterations of the thread that has most of the time:
 * else each would have a part of one step's FLOP. */
static void keep_one_thread(struct flop_work *w)
{
    for (const struct window *other; (other = overlapping_thread(w));) {
        struct window gone = *other;
        size_t kept = 0;
        for (size_t i = 0; i < w->list.count; i++) {
            const struct window *window = &w->list.data[i];
            if (window->thread != gone.thread || window->device != gone.device)
                w->list.data[kept++] = *window;
        }
        w->list.count = kept;
    }
}

static bool list_flop_windows(struct flop_work *w)
{
    for (size_t i = 0; i < w->iterations->count; i++) {
        const struct prof_iteration_row *row = &w->iterations->rows[i];
        const struct prof_thread *thread = prof_thread(w->capture, row->thread);
        if (row->warm_up || row->duration_ns <= 0)
            continue;
        if (!prof_array_push(&w->list, (struct window){.begin = row->start_ns,
                                                       .end = row->start_ns + row->duration_ns,
                                                       .process = thread ? thread->process : 0,
                                                       .thread = row->thread,
                                                       .device = row->device,
                                                       .series = row->series}))
            return false;
        if (row->duration_ns > w->longest_ns)
            w->longest_ns = row->duration_ns;
    }
    prof_array_sort(&w->list, by_begin_of_window);
    keep_one_thread(w);
    return true;
}

/* The iteration of this process and device in which a moment lies; NULL = it is in none. */
static const struct window *flop_window_at(const struct flop_work *w, int64_t time, int64_t process,
                                      int64_t device)
{
    size_t low;
    PROF_FIND_FIRST(low, at, w->list.count, w->list.data[at].begin > time);
    while (low-- > 0 && time - w->list.data[low].begin <= w->longest_ns) {
        const struct window *window = &w->list.data[low];
        if (time < window->end && window->process == process && window->device == device)
            return window;
    }
    return NULL;
}

static struct device_sum *flop_sum_of(struct flop_work *w, size_t series, int64_t device)
{
    for (size_t i = 0; i < w->sums.count; i++)
        if (w->sums.data[i].series == series && w->sums.data[i].device == device)
            return &w->sums.data[i];
    struct device_sum *sum = prof_array_add(&w->sums);
    if (sum)
        *sum = (struct device_sum){.series = series, .device = device};
    return sum;
}

static bool add_flop_operation(void *user, const struct prof_event_row *op)
{
    struct flop_work *w = user;
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    const struct prof_device *device = stream ? prof_device(w->capture, stream->device) : NULL;
    const struct prof_thread *thread = prof_thread(w->capture, op->thread);
    if (op->start_ns == PROF_UNKNOWN || op->duration_ns == PROF_UNKNOWN || op->duration_ns < 0)
        return true;
    int64_t process = thread ? thread->process : stream ? stream->process : 0;
    const struct window *window =
        device ? flop_window_at(w, op->start_ns, process, device->physical) : NULL;
    struct device_sum *sum = window ? flop_sum_of(w, window->series, window->device) : NULL;
    if (!sum)
        return !window;
    uint32_t at = op->call_ns == PROF_UNKNOWN || op->in_graph
                      ? PROF_NO_RANGE
                      : prof_torch_product(&w->torch, op->thread, op->call_ns);
    if (at == PROF_NO_RANGE) {
        sum->other_ns = prof_add(sum->other_ns, op->duration_ns);
    } else if (!w->torch.operators.data[at].counted) {
        sum->lacking_ns = prof_add(sum->lacking_ns, op->duration_ns);
    } else {
        const struct prof_operator_flop *work = prof_torch_work(&w->torch, at);
        const struct prof_config *config = prof_config(w->capture, op->config);
        sum->counted_ns = prof_add(sum->counted_ns, op->duration_ns);
        if (!w->credited[at] && op->kind == PROF_OP_KERNEL) {
            w->credited[at] = true;
            sum->flop[pipe_of(sum, work->element, config ? config->name : NULL)] += work->flop;
        }
    }
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void write_basis(struct prof_pytorch_flop_row *row, const struct device_sum *sum,
                        const struct peak *peak)
{
    if (isnan(row->utilisation)) {
        snprintf(row->basis, sizeof row->basis, "%s",
                 sum->flop[PROF_CEILINGS] > 0 ? "type of the elements not known"
                                              : "peak of the device not known");
        return;
    }
    char part[96] = "";
    if (row->pipe_share < 0.9995)
        snprintf(part, sizeof part, " for %s of the FLOP, the peaks of their types for the rest",
                 prof_percent(row->pipe_share).text);
    snprintf(row->basis, sizeof row->basis, "%s %s (%s)%s%s", prof_flop_rate(row->peak).text,
             prof_ceiling_of(row->pipe).text, peak->source, part,
             sum->assumed     ? "; FP32 assumed not to run as TF32"
             : sum->by_kernel ? "; types by kernel names"
                              : "");
}

static bool make_flop_row(struct flop_work *w, const struct prof_ceilings *ceilings,
                     const struct device_sum *sum, struct prof_pytorch_flop_row *row)
{
    const struct prof_device *device = prof_device(w->capture, sum->device);
    double all = 0, at_peak_s = 0, time_ns = 0;
    int64_t count = 0;
    *row = (struct prof_pytorch_flop_row){
        .series = sum->series, .device = sum->device, .pipe = PROF_CEILINGS};
    for (int pipe = 0; pipe <= PROF_CEILINGS; pipe++) {
        if (!(sum->flop[pipe] > 0))
            continue;
        all += sum->flop[pipe];
        at_peak_s +=
            sum->flop[pipe] / flop_peak_of(ceilings, sum->device, device, (enum prof_ceiling_kind)pipe).value;
        if (sum->flop[pipe] > sum->flop[row->pipe] || row->pipe == PROF_CEILINGS)
            row->pipe = (enum prof_ceiling_kind)pipe;
    }
    for (size_t i = 0; i < w->list.count; i++) {
        if (w->list.data[i].series != sum->series || w->list.data[i].device != sum->device)
            continue;
        time_ns += (double)(w->list.data[i].end - w->list.data[i].begin);
        count++;
    }
    if (!(all > 0) || !count)
        return false;
    double busy_ns =
        (double)sum->counted_ns + (double)sum->lacking_ns + (double)sum->other_ns;
    struct peak peak = flop_peak_of(ceilings, sum->device, device, row->pipe);
    row->iterations = count;
    row->flop = all / (double)count;
    row->iteration_ns = time_ns / (double)count;
    row->rate = all / (time_ns / 1e9);
    row->utilisation = at_peak_s / (time_ns / 1e9);
    row->peak = peak.value;
    row->pipe_share = sum->flop[row->pipe] / all;
    row->counted_share = (double)sum->counted_ns / busy_ns;
    row->lacking_share = (double)sum->lacking_ns / busy_ns;
    row->other_share = (double)sum->other_ns / busy_ns;
    row->counted_rate = sum->counted_ns ? all / ((double)sum->counted_ns / 1e9) : (double)NAN;
    write_basis(row, sum, &peak);
    return true;
}

PROF_ORDER(by_series_and_device, struct device_sum, PROF_ASCENDING(series),
           PROF_ASCENDING(device))

static enum prof_status make_flop_rows(struct flop_work *w, struct prof_pytorch_flop *result,
                                  struct prof_error *err)
{
    struct prof_ceilings ceilings;
    PROF_TRY(prof_ceilings(w->capture, &ceilings, err));
    prof_array_sort(&w->sums, by_series_and_device);
    result->rows = calloc(w->sums.count + 1, sizeof *result->rows);
    for (size_t i = 0; result->rows && i < w->sums.count; i++)
        result->count += make_flop_row(w, &ceilings, &w->sums.data[i], &result->rows[result->count]);
    for (size_t i = 0; i < w->torch.operators.count; i++)
        result->unreadable += prof_torch_work(&w->torch, (uint32_t)i)->unreadable;
    prof_ceilings_free(&ceilings);
    return result->rows ? PROF_OK : prof_out_of_memory(err);
}

static enum prof_status sum_flop_operations(struct flop_work *w, struct prof_error *err)
{
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) |
                                               PROF_FIELD(THREAD) | PROF_FIELD(STREAM) |
                                               PROF_FIELD(CALL) | PROF_FIELD(CONFIG) |
                                               PROF_FIELD(GRAPH_NODE),
                                     .scope = &w->scope};
    w->credited = calloc(w->torch.operators.count + 1, sizeof *w->credited);
    if (!w->credited || !list_flop_windows(w))
        return prof_out_of_memory(err);
    return prof_event_rows(w->capture, &query, add_flop_operation, w, err);
}

enum prof_status prof_pytorch_flop(struct prof_capture *capture, const struct prof_filter *filter,
                                   const struct prof_iteration_list *iterations,
                                   struct prof_pytorch_flop *result, struct prof_error *err)
{
    struct flop_work w = {.capture = capture, .iterations = iterations};
    *result = (struct prof_pytorch_flop){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    status = status ?: prof_torch_open(&w.torch, capture, &w.scope, err);
    if (!status && w.torch.inputs.count) {
        status = sum_flop_operations(&w, err);
        status = status ?: make_flop_rows(&w, result, err);
    }
    prof_torch_close(&w.torch);
    prof_scope_close(&w.scope);
    prof_array_free(&w.list);
    prof_array_free(&w.sums);
    free(w.credited);
    return status;
}

PROF_FREE_ROWS(prof_pytorch_flop)
