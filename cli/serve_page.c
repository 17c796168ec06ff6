/* The page that Prometheus reads: families, units and escapes of OpenMetrics 1.0, or of the text
 * format 0.0.4 for requests that do not accept it. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/serve.h"
#include "libprof/base/clock.h"
#include "libprof/base/saturate.h"
#include "report/writers.h"

/* ---- the page -------------------------------------------------------------------------------- */

struct page {
    FILE *out;
    bool open; /* OpenMetrics */
    struct prof_report_family family;
};

/* A family that `perfkit report --prometheus` writes too. */
static void begin_known(struct page *page, enum prof_report_family_id family)
{
    page->family = prof_report_families[family];
    prof_report_prometheus_head(page->out, &page->family, page->open);
}

/* `unit`: the end of the name, NULL = none. */
static void begin_family(struct page *page, const char *name, const char *type, const char *unit,
                         const char *help)
{
    page->family = (struct prof_report_family){name, type, unit, help, 0};
    prof_report_prometheus_head(page->out, &page->family, page->open);
}

static void begin_sample(const struct page *page)
{
    fprintf(page->out, "%s%s", page->family.name, prof_report_prometheus_suffix(&page->family));
}

/* `labels`: without brackets. */
static void put_sample(const struct page *page, const char *labels, bool time, int64_t value)
{
    begin_sample(page);
    fprintf(page->out, "{%s} ", labels);
    prof_report_prometheus_value(page->out, time, value);
}

/* "" = no labels. */
static void put_sample_real(const struct page *page, const char *labels, double value)
{
    if (isnan(value))
        return;
    begin_sample(page);
    fprintf(page->out, *labels ? "{%s} %.15g\n" : "%s %.15g\n", labels, value);
}

static void put_one(struct page *page, const char *name, const char *type, const char *unit,
                    const char *help, double value)
{
    begin_family(page, name, type, unit, help);
    put_sample_real(page, "", value);
}

static double known_scaled(int64_t value, double scale)
{
    return value == PROF_UNKNOWN ? NAN : (double)value / scale;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* The labels of a device, in turn with the others; two may have all in common: those of two hosts,
 * or without a UUID. */
struct labels {
    char list[SERVE_DEVICES][1200];
};

static void write_device_labels(const struct serve_metrics *m, struct labels *labels, size_t at)
{
    const struct prof_device *its = tui_model_device(m->model, m->devices[at].id);
    char *text = NULL, *own = labels->list[at];
    const size_t room = sizeof labels->list[at];
    size_t size;
    FILE *out = prof_open_memory(&text, &size);
    if (out)
        prof_report_prometheus_device(out, its, m->model->info.host);
    bool whole = out && prof_close_stream(out) && size + 40 < room;
    int length = snprintf(own, room, "%s", whole ? text : "gpu=\"n/a\"");
    bool same = false;
    for (size_t i = 0; i < at; i++)
        same |= !strcmp(labels->list[i], own);
    if (same)
        snprintf(own + length, room - (size_t)length, ",device_id=\"%" PRId64 "\"",
                 m->devices[at].id);
    free(text);
}

static void put_device_gauges(struct page *page, const struct serve_metrics *m,
                              const struct labels *labels)
{
#define DRIVER(member) offsetof(struct prof_nvml_reading, member)
    static const struct {
        const char *name, *unit, *help;
        size_t at;
        double scale; /* 0: a double of `activity` */
    } gauges[] = {
        {"perfkit_gpu_utilization_ratio", "ratio", "Time with a kernel, by the driver (NVML).",
         DRIVER(gpu_percent), 100},
        {"perfkit_gpu_memory_used_bytes", "bytes", "Memory in use, of all processes (NVML).",
         DRIVER(used_bytes), 1},
        {"perfkit_gpu_memory_bytes", "bytes", "Memory of the device (NVML).", DRIVER(total_bytes),
         1},
        {"perfkit_gpu_power_watts", "watts", "Power (NVML).", DRIVER(power_mw), 1e3},
        {"perfkit_gpu_sm_clock_hertz", "hertz", "Clock of the multiprocessors (NVML).",
         DRIVER(sm_mhz), 1e-6},
        {"perfkit_gpu_memory_clock_hertz", "hertz", "Clock of the memory (NVML).",
         DRIVER(memory_mhz), 1e-6},
        {"perfkit_gpu_temperature_celsius", "celsius", "Temperature (NVML).", DRIVER(temperature_c),
         1},
        {"perfkit_gpu_sm_active_ratio", "ratio", "Multiprocessors that are busy (GPM).",
         DRIVER(activity.units), 0},
        {"perfkit_gpu_tensor_active_ratio", "ratio", "Tensor cores at work (GPM).",
         DRIVER(activity.tensor), 0},
        {"perfkit_gpu_dram_active_ratio", "ratio",
         "Bandwidth of the device's memory, of the most that is possible (GPM).",
         DRIVER(activity.dram), 0},
    };
#undef DRIVER
    begin_family(page, "perfkit_gpu_busy_ratio", "gauge", "ratio",
                 "Part of the last moments that were recorded in which kernels, memcpys or memsets "
                 "ran, 0 to 1.");
    for (size_t d = 0; d < m->device_count; d++)
        put_sample_real(page, labels->list[d], m->devices[d].busy);
    for (size_t g = 0; g < sizeof gauges / sizeof *gauges; g++) {
        begin_family(page, gauges[g].name, "gauge", gauges[g].unit, gauges[g].help);
        for (size_t d = 0; d < m->device_count; d++) {
            const struct serve_device *its = &m->devices[d];
            const void *at = (const char *)&its->driver + gauges[g].at;
            double value = gauges[g].scale > 0 ? known_scaled(*(const int64_t *)at, gauges[g].scale)
                           : its->driver.has_activity ? *(const double *)at
                                                      : NAN;
            put_sample_real(page, labels->list[d], value);
        }
    }
}

static void put_device_counters(struct page *page, const struct serve_metrics *m,
                                const struct labels *of)
{
    static const char *const families[][3] = {
        {"perfkit_gpu_operations", NULL,
         "Kernels, and memcpys and memsets, that ended on the device."},
        {"perfkit_gpu_operation_time_seconds", "seconds",
         "Their device time, added up: what ran side by side counts twice."}};
    char labels[1300];
    for (int f = 0; f < 2; f++) {
        begin_family(page, families[f][0], "counter", families[f][1], families[f][2]);
        for (size_t d = 0; d < 2 * m->device_count; d++) {
            const struct serve_device *its = &m->devices[d / 2];
            const struct serve_sum *sum = d % 2 ? &its->copies : &its->kernels;
            snprintf(labels, sizeof labels, "%s,operation=\"%s\"", of->list[d / 2],
                     d % 2 ? "memcpy_memset" : "kernel");
            put_sample(page, labels, f, f ? sum->ns : sum->count);
        }
    }
}

static void put_kernel(const struct page *page, const char *device, const char *kernel, bool time,
                       int64_t count, int64_t ns)
{
    begin_sample(page);
    fprintf(page->out, "{%s,%s} ", device, kernel);
    prof_report_prometheus_value(page->out, time, time ? ns : count);
}

static void put_kernel_counters(struct page *page, const struct serve_metrics *m,
                                const struct labels *labels)
{
    for (int time = 0; time < 2; time++) {
        begin_known(page, time ? PROF_FAMILY_KERNEL_TIME : PROF_FAMILY_KERNELS);
        for (size_t d = 0; d < m->device_count; d++) {
            const struct serve_device *its = &m->devices[d];
            for (size_t i = 0; i < m->series.count; i++) {
                const struct serve_series *s = &m->series.data[i];
                int32_t label = m->label_of_kernel.data[s->kernel];
                if (s->device == its->id && label >= 0)
                    put_kernel(page, labels->list[d], m->labels.data[label], time,
                               s->now.count - s->in_other.count, s->now.ns - s->in_other.ns);
            }
            put_kernel(page, labels->list[d], "kernel=\"other\"", time, its->other.count,
                       its->other.ns);
        }
    }
}

/* ---- what is not of a device ----------------------------------------------------------------- */

/* Sums by a set of labels: what has the same words is the same. */
struct line {
    char labels[160];
    int64_t values[3];
};
#define MOST_LINES 100

struct lines {
    struct line list[MOST_LINES];
    size_t count;
};

static struct line *find_line(struct lines *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* NULL: there are too many. */
static struct line *find_line(struct lines *lines, const char *format, ...)
{
    char labels[sizeof lines->list->labels];
    va_list words;
    va_start(words, format);
    vsnprintf(labels, sizeof labels, format, words);
    va_end(words);
    for (size_t i = 0; i < lines->count; i++)
        if (!strcmp(lines->list[i].labels, labels))
            return &lines->list[i];
    if (lines->count == MOST_LINES)
        return NULL;
    struct line *line = &lines->list[lines->count++];
    *line = (struct line){0};
    memcpy(line->labels, labels, sizeof labels);
    return line;
}

static void add_line_values(struct line *line, const int64_t values[3])
{
    for (int k = 0; line && k < 3; k++)
        line->values[k] = prof_add(line->values[k], values[k]);
}

static void put_line_values(struct page *page, const struct lines *lines, int value)
{
    bool time = strstr(page->family.name, "_seconds");
    for (size_t i = 0; i < lines->count; i++)
        put_sample(page, lines->list[i].labels, time, lines->list[i].values[value]);
}

/* Memcpys, or memsets, by the labels that `perfkit report --prometheus` gives them. */
static void put_copies(struct page *page, const struct tui_model *model, bool memsets)
{
    struct lines lines = {.count = 0};
    for (size_t i = 0; i < model->copies.count; i++) {
        const struct tui_copies *c = &model->copies.data[i];
        const char *to = prof_memory_kind_text(c->target_kind);
        if (memsets != (c->kind == PROF_COPY_MEMSET))
            continue;
        struct line *line = memsets ? find_line(&lines, "memory=\"%s\"", to)
                                    : find_line(&lines, "kind=\"%s\",from=\"%s\",to=\"%s\"",
                                                prof_copy_kind_text(c->kind),
                                                prof_memory_kind_text(c->source_kind), to);
        add_line_values(line, (const int64_t[]){c->all.count, c->all.ns, c->all.bytes});
    }
    for (int k = 0; k < 3; k++) {
        begin_known(page, (memsets ? PROF_FAMILY_MEMSETS : PROF_FAMILY_MEMCPYS) +
                              (enum prof_report_family_id)k);
        put_line_values(page, &lines, k);
    }
}

static void put_memory(struct page *page, const struct tui_model *model)
{
    struct lines lines = {.count = 0};
    for (size_t i = 0; i < model->memory.count; i++) {
        const struct tui_memory *of = &model->memory.data[i];
        struct line *line = find_line(&lines, "memory=\"%s\"", prof_memory_kind_text(of->kind));
        add_line_values(line, (const int64_t[]){of->live_bytes, of->all.count, of->all.bytes});
    }
    begin_family(page, "perfkit_memory_live_bytes", "gauge", "bytes",
                 "Memory that the program has allocated and not freed.");
    put_line_values(page, &lines, 0);
    begin_family(page, "perfkit_memory_allocations", "counter", NULL, "Allocations.");
    put_line_values(page, &lines, 1);
    begin_family(page, "perfkit_memory_allocated_bytes", "counter", "bytes",
                 "Bytes of all allocations.");
    put_line_values(page, &lines, 2);
}

static void put_process_metrics(struct page *page, const struct serve_metrics *m)
{
    static const char *const families[][4] = {
        {"perfkit_process_kernels", "counter", NULL, "Kernels that a process launched."},
        {"perfkit_process_kernel_time_seconds", "counter", "seconds",
         "Device time of a process's kernels, added up."},
        {"perfkit_process_memcpy_bytes", "counter", "bytes",
         "Bytes that a process's memcpys moved."},
        {"perfkit_process_memory_live_bytes", "gauge", "bytes",
         "Memory that a process has allocated and not freed."}};
    for (int f = 0; f < 4; f++) {
        begin_family(page, families[f][0], families[f][1], families[f][2], families[f][3]);
        for (size_t i = 0; i < m->processes.count; i++) {
            const struct tui_process *p = tui_model_process(m->model, m->processes.data[i]);
            if (!p)
                continue;
            begin_sample(page);
            fprintf(page->out, "{process=\"%" PRId64 "\",pid=\"%" PRId64 "\"", p->values.id,
                    p->values.pid);
            if (p->values.command)
                prof_report_prometheus_label(page->out, false, "command", p->values.command);
            fputs("} ", page->out);
            const int64_t values[] = {p->kernels.count, p->kernels.ns, p->copies.bytes,
                                      p->live_bytes};
            prof_report_prometheus_value(page->out, f == 1, values[f]);
        }
    }
}

static void put_iteration_histogram(struct page *page, const struct serve_metrics *m)
{
    static const char name[] = "perfkit_iteration_seconds";
    begin_family(page, name, "histogram", "seconds",
                 "Duration of the NVTX range that is an iteration, on its thread.");
    for (int i = 0; m->has_range && i < SERVE_BUCKETS + 3; i++) {
        bool bucket = i <= SERVE_BUCKETS;
        fprintf(page->out, "%s%s{", name,
                bucket                  ? "_bucket"
                : i > SERVE_BUCKETS + 1 ? "_count"
                                        : "_sum");
        prof_report_prometheus_label(page->out, true, "range", m->range.name);
        if (bucket)
            fprintf(page->out, ",le=\"%s\"", i < SERVE_BUCKETS ? serve_bounds[i].text : "+Inf");
        fputs("} ", page->out);
        bool time = i == SERVE_BUCKETS + 1;
        prof_report_prometheus_value(page->out, time,
                                     time                ? m->iteration_ns
                                     : i < SERVE_BUCKETS ? m->buckets[i]
                                                         : m->iterations);
    }
}

static void put_capture_metrics(struct page *page, const struct serve_metrics *m)
{
    const struct tui_model *model = m->model;
    const char *now = serve_metrics_state(m);
    char label[40];
    begin_family(page, "perfkit_capture_state", "gauge", NULL,
                 "1 for the state that the capture is in.");
    for (size_t i = 0; i < SERVE_STATES; i++) {
        snprintf(label, sizeof label, "state=\"%s\"", serve_states[i]);
        put_sample(page, label, false, serve_states[i] == now);
    }
    if (!model)
        return;
    begin_known(page, PROF_FAMILY_CAPTURE);
    fputs("perfkit_capture_info{", page->out);
    prof_report_prometheus_label(page->out, true, "capture", model->path);
    if (model->info.command)
        prof_report_prometheus_label(page->out, false, "command", model->info.command);
    if (model->info.host)
        prof_report_prometheus_label(page->out, false, "hostname", model->info.host);
    fputs("} 1\n", page->out);
    if (model->info.start_realtime_ns > 0) {
        begin_known(page, PROF_FAMILY_START);
        begin_sample(page);
        fputc(' ', page->out);
        prof_report_prometheus_value(page->out, true, model->info.start_realtime_ns);
    }
    put_one(page, "perfkit_capture_age_seconds", "gauge", "seconds",
            "Since these figures of a recording were read.",
            tui_model_is_live(model) && model->looked_ns
                ? (double)(prof_now_ns() - model->looked_ns) / 1e9
                : NAN);
    put_one(page, "perfkit_dropped_records", "counter", NULL, "Records that found no room.",
            (double)m->most_dropped);
    put_one(page, "perfkit_spool_bytes", "gauge", "bytes",
            "Memory that holds records that were not read yet.",
            known_scaled(m->health.spool_bytes, 1));
    put_one(page, "perfkit_recorder_memory_bytes", "gauge", "bytes",
            "Resident memory of perfkit run.", known_scaled(m->health.recorder_bytes, 1));
    put_one(page, "perfkit_recorder_cpu_ratio", "gauge", "ratio",
            "Share of a processor core that perfkit run takes.", m->health.recorder_cpu);
}

void serve_metrics_write(struct serve_metrics *m, FILE *out, bool open_metrics)
{
    struct page page = {.out = out, .open = open_metrics};
    PROF_FREED struct labels *labels = malloc(sizeof *labels);
    struct rusage used;
    put_capture_metrics(&page, m);
    if (m->model && labels) {
        for (size_t i = 0; i < m->device_count; i++)
            write_device_labels(m, labels, i);
        put_device_gauges(&page, m, labels);
        put_device_counters(&page, m, labels);
        put_kernel_counters(&page, m, labels);
        put_copies(&page, m->model, false);
        put_copies(&page, m->model, true);
        put_memory(&page, m->model);
        put_process_metrics(&page, m);
        put_iteration_histogram(&page, m);
    }
    put_one(&page, "process_resident_memory_bytes", "gauge", "bytes",
            "Resident memory of perfkit serve.", known_scaled(m->health.own_bytes, 1));
    if (!getrusage(RUSAGE_SELF, &used))
        put_one(&page, "process_cpu_seconds", "counter", "seconds",
                "Processor time of perfkit serve.",
                (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
    if (open_metrics)
        fputs("# EOF\n", out);
}
