/* What perfkit serve says to Prometheus of a capture that is being recorded: sums of tui/model.h,
 * the reader of perfkit top, as counters that never decrease, and what the driver says of devices.
 * The number of series is bounded: the kernels that took most time get their own and keep them,
 * `other` has the rest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/find_capture.h"
#include "cli/serve.h"
#include "libprof/base/clock.h"
#include "libprof/base/saturate.h"
#include "report/writers.h"

#define MOST_PROCESSES 64
#define MOST_CELLS 4000 /* launch configurations on streams, of 2 kB with their kernels */
#define LOOK_BACK_NS 10000000000ll /* to find what an iteration is */
#define TAIL_ROWS 8192             /* of each table, to see how busy devices are */
#define DETAIL_PAUSE 50            /* times as long until the next: 2 % of a core */
#define LEAST_PAUSE_NS 2000000000ull

static void add_sum(struct serve_sum *to, int64_t count, int64_t ns)
{
    to->count = prof_add(to->count, count);
    to->ns = prof_add(to->ns, ns);
}

/* What is new since `counted`, which catches up. Never less than nothing. */
static struct serve_sum take_new(struct serve_sum *counted, int64_t count, int64_t ns)
{
    const struct serve_sum old = *counted;
    if (count > old.count)
        counted->count = count;
    if (ns > old.ns)
        counted->ns = ns;
    return (struct serve_sum){counted->count - old.count, counted->ns - old.ns};
}

/* ---- kernels --------------------------------------------------------------------------------- */

enum { NO_LABEL = -1, SHARED_LABEL = -2 /* with other kernels: in `other` for good */ };

static void forget_capture(struct serve_metrics *m)
{
    for (size_t i = 0; i < m->labels.count; i++)
        free(m->labels.data[i]);
    prof_array_free(&m->labels);
    prof_array_free(&m->series);
    prof_array_free(&m->counted_cells);
    prof_array_free(&m->counted_copies);
    prof_array_free(&m->label_of_kernel);
    prof_array_free(&m->processes);
    prof_map_free(&m->series_keys);
    m->device_count = 0;
    m->has_range = m->whole = false;
    m->after = m->iterations = m->iteration_ns = m->most_dropped = 0;
    memset(m->buckets, 0, sizeof m->buckets);
    m->details_due_ns = m->range_due_ns = 0;
}

static int64_t physical_device(const struct tui_model *model, int64_t stream)
{
    const struct tui_stream *its = tui_model_stream(model, stream);
    const struct prof_device *device = its ? tui_model_device(model, its->values.device) : NULL;
    return device ? device->physical : 0;
}

/* NULL: out of memory. */
static struct serve_series *series_of_cell(struct serve_metrics *m, const struct tui_cell *cell)
{
    int64_t device = physical_device(m->model, cell->stream);
    uint64_t key = (uint64_t)device << 32 | cell->kernel;
    const uint64_t *known = prof_map_get(&m->series_keys, key);
    if (known)
        return &m->series.data[*known];
    if (!prof_array_push(&m->series,
                         (struct serve_series){.device = device, .kernel = cell->kernel}) ||
        !prof_map_put(&m->series_keys, key, m->series.count - 1))
        return NULL;
    return &m->series.data[m->series.count - 1];
}

static bool count_cell(struct serve_metrics *m, size_t at)
{
    const struct tui_cell *cell = &m->model->cells.data[at];
    struct serve_series *series = series_of_cell(m, cell);
    if (!series || (at == m->counted_cells.count &&
                    !prof_array_push(&m->counted_cells, (struct serve_sum){0})))
        return false;
    struct serve_sum fresh =
        take_new(&m->counted_cells.data[at], cell->total.count, cell->total.sum_ns);
    add_sum(&series->now, fresh.count, fresh.ns);
    return true;
}

static char *kernel_label(const char *name)
{
    char *text = NULL;
    size_t size;
    FILE *out = prof_open_memory(&text, &size);
    if (!out)
        return NULL;
    prof_report_prometheus_label(out, true, "kernel", *name ? name : "n/a");
    if (prof_close_stream(out))
        return text;
    free(text);
    return NULL;
}

/* Names that differ in what cannot be shown may have the same label. */
static bool publish_kernel(struct serve_metrics *m, uint32_t kernel)
{
    char *label = kernel_label(m->model->kernels.data[kernel].name);
    bool shared = label && !strcmp(label, "kernel=\"other\"");
    for (size_t i = 0; label && i < m->labels.count; i++)
        shared |= !strcmp(label, m->labels.data[i]);
    if (!label || shared || !prof_array_push(&m->labels, label)) {
        m->label_of_kernel.data[kernel] = SHARED_LABEL;
        free(label);
        return shared;
    }
    m->label_of_kernel.data[kernel] = (int32_t)m->labels.count - 1;
    for (size_t i = 0; i < m->series.count; i++)
        if (m->series.data[i].kernel == kernel)
            m->series.data[i].in_other = m->series.data[i].last;
    return true;
}

/* The kernel that took most of those without a series; NULL = there is none. */
static const struct tui_kernel *next_kernel(const struct serve_metrics *m)
{
    const struct tui_kernel *best = NULL;
    for (size_t i = 0; i < m->model->kernels.count; i++) {
        const struct tui_kernel *kernel = &m->model->kernels.data[i];
        if (m->label_of_kernel.data[i] == NO_LABEL && kernel->total.count > 0 &&
            (!best || kernel->total.sum_ns > best->total.sum_ns))
            best = kernel;
    }
    return best;
}

/* Those among the `top` by their time until now that have no series yet get one, while there is
 * room for twice as many. */
static bool publish_kernels(struct serve_metrics *m)
{
    const struct tui_kernel *all = m->model->kernels.data, *next;
    while (m->labels.count < 2 * (size_t)m->top && (next = next_kernel(m))) {
        unsigned larger = 0;
        for (size_t i = 0; i < m->model->kernels.count; i++)
            larger += m->label_of_kernel.data[i] >= 0 && all[i].total.sum_ns >= next->total.sum_ns;
        if (larger >= m->top)
            break;
        if (!publish_kernel(m, (uint32_t)(next - all)))
            return false;
    }
    return true;
}

static bool count_serve_kernels(struct serve_metrics *m)
{
    const struct tui_model *model = m->model;
    bool ok = true;
    for (size_t i = m->label_of_kernel.count; ok && i < model->kernels.count; i++) {
        bool others = model->kernels.data[i].config == PROF_OTHER_CONFIGS;
        ok = prof_array_push(&m->label_of_kernel, others ? SHARED_LABEL : NO_LABEL);
    }
    while (ok && m->counted_copies.count < model->streams.count)
        ok = prof_array_push(&m->counted_copies, (struct serve_sum){0});
    for (size_t i = 0; i < m->series.count; i++)
        m->series.data[i].last = m->series.data[i].now;
    for (size_t i = 0; ok && i < model->cells.count; i++)
        ok = count_cell(m, i);
    return ok && publish_kernels(m);
}

static bool count_processes(struct serve_metrics *m)
{
    const struct tui_model *model = m->model;
    for (size_t i = 0; i < model->processes.count && m->processes.count < MOST_PROCESSES; i++) {
        const struct tui_process *p = &model->processes.data[i];
        bool known = false;
        for (size_t k = 0; k < m->processes.count; k++)
            known |= m->processes.data[k] == p->values.id;
        if (!known && (p->kernels.count || p->copies.bytes || p->live_bytes) &&
            !prof_array_push(&m->processes, p->values.id))
            return false;
    }
    return true;
}

/* ---- iterations, and how busy devices are ---------------------------------------------------- */

const struct serve_bound serve_bounds[SERVE_BUCKETS] = {
    {"0.0001", 100000},    {"0.00025", 250000},   {"0.0005", 500000},     {"0.001", 1000000},
    {"0.0025", 2500000},   {"0.005", 5000000},    {"0.01", 10000000},     {"0.025", 25000000},
    {"0.05", 50000000},    {"0.1", 100000000},    {"0.25", 250000000},    {"0.5", 500000000},
    {"1.0", 1000000000},   {"2.5", 2500000000},   {"5.0", 5000000000},    {"10.0", 10000000000},
    {"25.0", 25000000000}, {"50.0", 50000000000}, {"100.0", 100000000000}};

static void count_iteration(void *context, int64_t duration_ns)
{
    struct serve_metrics *m = context;
    m->iterations++;
    m->iteration_ns = prof_add(m->iteration_ns, duration_ns > 0 ? duration_ns : 0);
    for (int i = SERVE_BUCKETS - 1; i >= 0 && duration_ns <= serve_bounds[i].ns; i--)
        m->buckets[i]++;
}

/* NULL: no room for more. `id`: physical, 0 = not known. */
static struct serve_device *find_serve_device(struct serve_metrics *m, int64_t id)
{
    for (size_t i = 0; i < m->device_count; i++)
        if (m->devices[i].id == id)
            return &m->devices[i];
    if (m->device_count == SERVE_DEVICES)
        return NULL;
    m->devices[m->device_count] = (struct serve_device){.id = id, .busy = NAN};
    return &m->devices[m->device_count++];
}

static void read_busy(struct serve_metrics *m, struct prof_capture *capture)
{
    struct prof_filter filter = {0};
    struct prof_utilisation use;
    if (prof_live_tail(capture, TAIL_ROWS, &filter.begin_ns, NULL) ||
        prof_utilisation(capture, &filter, 0, 0, &use, NULL))
        return;
    for (size_t i = 0; i < use.count; i++) {
        struct serve_device *d = find_serve_device(m, use.rows[i].device);
        if (d && use.rows[i].window_ns > 0)
            d->busy = (double)use.rows[i].busy_ns / (double)use.rows[i].window_ns;
    }
    prof_utilisation_free(&use);
}

/* What ran on each, and what its driver says. */
static void look_at_devices(struct serve_metrics *m)
{
    const struct tui_model *model = m->model;
    for (size_t i = 0; i < m->device_count; i++)
        m->devices[i].kernels = m->devices[i].other = (struct serve_sum){0};
    for (size_t i = 0; i < model->devices.count; i++) {
        const struct prof_device *values = &model->devices.data[i];
        struct serve_device *d =
            values->id == values->physical ? find_serve_device(m, values->id) : NULL;
        if (d)
            d->driver = prof_nvml_read(tui_model_is_live(model) ? m->nvml : NULL, values->uuid);
    }
    for (size_t i = 0; i < m->counted_copies.count; i++) {
        const struct tui_stream *s = &model->streams.data[i];
        struct serve_device *d =
            s->copies.count ? find_serve_device(m, physical_device(model, s->values.id)) : NULL;
        if (d) {
            struct serve_sum fresh =
                take_new(&m->counted_copies.data[i], s->copies.count, s->copies.ns);
            add_sum(&d->copies, fresh.count, fresh.ns);
        }
    }
    for (size_t i = 0; i < m->series.count; i++) {
        const struct serve_series *s = &m->series.data[i];
        struct serve_device *d = find_serve_device(m, s->device);
        bool own = m->label_of_kernel.data[s->kernel] >= 0;
        if (!d)
            continue;
        add_sum(&d->kernels, s->now.count, s->now.ns);
        add_sum(&d->other, own ? s->in_other.count : s->now.count,
                own ? s->in_other.ns : s->now.ns);
    }
}

/* On a connection of its own: the search reads a part of the capture only. */
static void look_for_range(struct serve_metrics *m)
{
    uint64_t now = prof_now_ns();
    struct prof_filter filter = m->filter;
    CLI_CLOSED struct prof_capture *capture = NULL;
    filter.begin_ns = m->model->now_ns > LOOK_BACK_NS ? m->model->now_ns - LOOK_BACK_NS : 0;
    if (prof_open(m->model->path, &capture, NULL))
        return;
    m->has_range = !prof_iteration_range(capture, &filter, &m->range, NULL);
    m->range_due_ns = prof_now_ns() + (prof_now_ns() - now) * DETAIL_PAUSE;
}

/* On a connection of its own, which is closed at once. */
static void read_details(struct serve_metrics *m)
{
    struct tui_model *model = m->model;
    bool finished = model->phase == TUI_FINISHED && model->caught_up;
    uint64_t now = prof_now_ns();
    CLI_CLOSED struct prof_capture *capture = NULL;
    if (!model->ever_read || m->whole || (!finished && now < m->details_due_ns) ||
        (!finished && model->phase != TUI_WATCHING))
        return;
    tui_model_rest(model);
    if (prof_open(model->path, &capture, NULL))
        return;
    if (prof_live_state(capture) != PROF_STATE_CLOSING) {
        if (!m->has_range && (finished || now >= m->range_due_ns))
            look_for_range(m);
        if (m->has_range)
            prof_live_iterations(capture, &m->range, &m->after, count_iteration, m, NULL);
        read_busy(m, capture);
        m->whole = finished;
    }
    uint64_t pause = (prof_now_ns() - now) * DETAIL_PAUSE;
    m->details_due_ns = now + (pause > LEAST_PAUSE_NS ? pause : LEAST_PAUSE_NS);
}

/* ---- looks ----------------------------------------------------------------------------------- */

bool serve_metrics_watch(struct serve_metrics *m, const struct top_capture *capture)
{
    tui_model_free(m->model);
    forget_capture(m);
    m->model = tui_model_new(capture->path);
    if (!m->model)
        return false;
    m->model->is_served = top_is_served;
    if (*capture->final)
        m->model->final = strdup(capture->final);
    m->model->most_cells = MOST_CELLS;
    m->model->window_chosen = true;
    m->model->window_s = 0;
    m->measure = (struct top_measure){.model = m->model};
    m->health = tui_health_unknown;
    if (!m->nvml)
        m->nvml = prof_nvml_open();
    return true;
}

void serve_metrics_free(struct serve_metrics *m)
{
    tui_model_free(m->model);
    forget_capture(m);
    prof_nvml_close(m->nvml);
}

enum prof_status serve_metrics_look(struct serve_metrics *m, int64_t budget_ns,
                                    struct prof_error *err)
{
    int64_t kernels = m->model->total.count;
    uint64_t looked_ns = m->model->looked_ns;
    PROF_TRY(tui_model_look(m->model, budget_ns, err));
    if (m->model->looked_ns > looked_ns && looked_ns)
        m->kernels_per_s = (double)(m->model->total.count - kernels) * 1e9 /
                           (double)(m->model->looked_ns - looked_ns);
    if (!tui_model_is_live(m->model))
        m->kernels_per_s = 0;
    if (m->model->info.start_mono_ns != m->start_mono_ns ||
        m->counted_cells.count > m->model->cells.count)
        forget_capture(m); /* another capture of that name */
    m->start_mono_ns = m->model->info.start_mono_ns;
    if (!count_serve_kernels(m) || !count_processes(m))
        return prof_out_of_memory(err);
    top_measure(&m->measure, &m->health);
    if (m->health.dropped != PROF_UNKNOWN && m->health.dropped > m->most_dropped)
        m->most_dropped = m->health.dropped; /* spools of processes that ended are gone */
    look_at_devices(m);
    read_details(m);
    return PROF_OK;
}

const char *const serve_states[SERVE_STATES] = {
    [TUI_OPENING] = "opening",     [TUI_WATCHING] = "recording", [TUI_LET_GO] = "closing",
    [TUI_FINISHED] = "finished",   [TUI_GONE] = "deleted",       [TUI_ABANDONED] = "interrupted",
    [SERVE_STATES - 1] = "waiting"};

const char *serve_metrics_state(const struct serve_metrics *m)
{
    return serve_states[m->model ? (int)m->model->phase : SERVE_STATES - 1];
}
