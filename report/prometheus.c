/* Totals of a capture in Prometheus' text format 0.0.4, for node_exporter's textfile collector:
 * what each kernel took, what was moved, how busy the devices were. The labels gpu, UUID and
 * hostname are those of NVIDIA's DCGM exporter, so that the series join its own (its modelName is
 * no name that promtool takes). The number of series is bounded: the kernels that took most, and
 * `other` for the rest. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"

#define KERNELS 50      /* series of kernels for each device, but for `other` */
#define LABEL_CELLS 200 /* columns of a label: a kernel's name may have 10 kB */

enum { COUNT, TIME_NS, BYTES, VALUES };

/* A set of labels with its sums; no two of a list have the same labels. */
struct line {
    char *labels;
    int64_t values[VALUES];
};

struct lines {
    PROF_ARRAY(struct line) list;
};

/* A device, with all that was done on it. */
struct part {
    const struct prof_utilisation_row *busy;
    char *labels; /* gpu="0",UUID="...",... */
    struct lines kernels, memcpys, memsets, memory;
};

struct page {
    const struct prof_report_options *options;
    struct prof_capture *capture;
    struct prof_utilisation utilisation;
    PROF_ARRAY(struct part) parts;
};

/* ---- labels ---------------------------------------------------------------------------------- */

/* `name="text"`, with a comma unless it is the first; nothing when the text is not known. Texts of
 * a file go through prof_report_prometheus_label. */
static void put_prometheus_label(FILE *out, bool first, const char *name, const char *text)
{
    if (!text)
        return;
    fprintf(out, "%s%s=\"", first ? "" : ",", name);
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

void prof_report_prometheus_label(FILE *out, bool first, const char *label, const char *name)
{
    char *clean = prof_report_clean(name);
    size_t cells = clean ? prof_report_cells(clean) : 0;
    if (cells > LABEL_CELLS) {
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
        for (const char *c = name; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        char *cut = prof_report_fit(name, LABEL_CELLS), *text = NULL;
        if (cut && asprintf(&text, "%s #%08" PRIx32, cut, (uint32_t)(hash >> 32)) < 0) {
            text = NULL;
            prof_note(PROF_NOMEM);
        }
        put_prometheus_label(out, first, label, text);
        free(text);
        free(cut);
    } else {
        put_prometheus_label(out, first, label, clean);
    }
    free(clean);
}

/* Takes `labels` (NULL: out of memory). */
static bool add_sample_line(struct lines *lines, char *labels, const int64_t values[VALUES])
{
    struct line *line = NULL;
    for (size_t i = 0; labels && i < lines->list.count && !line; i++)
        line = strcmp(lines->list.data[i].labels, labels) ? NULL : &lines->list.data[i];
    if (labels && !line) {
        line = prof_array_add(&lines->list);
        if (line)
            *line = (struct line){.labels = labels};
    } else {
        free(labels);
    }
    for (int i = 0; line && i < VALUES; i++)
        line->values[i] = prof_add(line->values[i], values[i]);
    return line != NULL;
}

static void free_lines(struct lines *lines)
{
    for (size_t i = 0; i < lines->list.count; i++)
        free(lines->list.data[i].labels);
    prof_array_free(&lines->list);
}

/* ---- what each device did -------------------------------------------------------------------- */

/* `text` has its address when the stream is closed, not before. */
static char *closed_text(FILE *out, char **text)
{
    if (prof_close_stream(out))
        return *text;
    free(*text);
    return NULL;
}

void prof_report_prometheus_device(FILE *out, const struct prof_device *device, const char *host)
{
    char ordinal[24];
    snprintf(ordinal, sizeof ordinal, "%" PRId64, device ? device->ordinal : 0);
    put_prometheus_label(out, true, "gpu",
                         device && device->ordinal != PROF_UNKNOWN ? ordinal : "n/a");
    if (device && device->uuid)
        prof_report_prometheus_label(out, false, "UUID", device->uuid);
    if (device && device->name)
        prof_report_prometheus_label(out, false, "model", device->name);
    if (host)
        prof_report_prometheus_label(out, false, "hostname", host);
}

static char *device_labels(const struct page *page, const struct prof_device *device)
{
    char *text = NULL;
    size_t size;
    FILE *out = prof_open_memory(&text, &size);
    if (!out)
        return NULL;
    prof_report_prometheus_device(out, device, prof_info(page->capture)->host);
    return closed_text(out, &text);
}

/* The device's labels with some more behind them. */
struct label {
    const char *name, *text; /* no text: not known, left out */
};

static char *labels_with(const char *device, const struct label *more, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = device ? prof_open_memory(&text, &size) : NULL;
    if (!out)
        return NULL;
    fputs(device, out);
    for (size_t i = 0; i < count; i++) {
        if (more[i].text)
            prof_report_prometheus_label(out, false, more[i].name, more[i].text);
    }
    return closed_text(out, &text);
}

static enum prof_status load_kernels(const struct page *page, const struct prof_filter *filter,
                                     struct part *part, struct prof_error *err)
{
    struct prof_kernel_summary kernels;
    size_t top = page->options && page->options->top ? page->options->top : KERNELS;
    enum prof_status status =
        prof_kernel_summary(page->capture, filter, PROF_BY_NAME, &kernels, err);
    bool ok = true;
    for (size_t i = 0; !status && ok && i < kernels.count; i++) {
        const struct prof_kernel_row *row = &kernels.rows[i];
        struct label label = {"kernel", i >= top ? "other" : row->name ? row->name : "n/a"};
        ok = add_sample_line(
            &part->kernels, labels_with(part->labels, &label, 1),
            (int64_t[VALUES]){[COUNT] = row->duration_ns.count, [TIME_NS] = row->duration_ns.sum});
    }
    if (!status)
        prof_kernel_summary_free(&kernels);
    return ok ? status : prof_out_of_memory(err);
}

static enum prof_status load_transfers(const struct page *page, const struct prof_filter *filter,
                                       struct part *part, struct prof_error *err)
{
    struct prof_transfer_summary transfers;
    enum prof_status status = prof_transfer_summary(page->capture, filter, &transfers, err);
    bool ok = true;
    for (size_t i = 0; !status && ok && i < transfers.count; i++) {
        const struct prof_transfer_row *row = &transfers.rows[i];
        const struct label labels[] = {
            {"kind", row->kind_text}, {"from", row->source_text}, {"to", row->target_text}};
        bool memset_ = row->kind == PROF_COPY_MEMSET; /* its only label: the memory */
        ok = add_sample_line(memset_ ? &part->memsets : &part->memcpys,
                             labels_with(part->labels, labels + (memset_ ? 2 : 0), memset_ ? 1 : 3),
                             (int64_t[VALUES]){[COUNT] = row->duration_ns.count,
                                               [TIME_NS] = row->duration_ns.sum,
                                               [BYTES] = row->bytes.sum});
    }
    if (!status)
        prof_transfer_summary_free(&transfers);
    return ok ? status : prof_out_of_memory(err);
}

static enum prof_status load_memory_samples(const struct page *page,
                                            const struct prof_filter *filter, struct part *part,
                                            struct prof_error *err)
{
    struct prof_memory_summary memory;
    enum prof_status status = prof_memory_summary(page->capture, filter, 0, &memory, err);
    bool ok = true;
    for (size_t i = 0; !status && ok && i < memory.count; i++) {
        const struct prof_memory_row *row = &memory.rows[i];
        struct label label = {"memory", row->kind_text};
        ok = add_sample_line(&part->memory, labels_with(part->labels, &label, 1),
                             (int64_t[VALUES]){[BYTES] = row->peak_bytes});
    }
    if (!status)
        prof_memory_summary_free(&memory);
    return ok ? status : prof_out_of_memory(err);
}

/* Two devices may have all labels in common: of two hosts, or of drivers that report no UUID. */
static bool make_labels_unique(const struct page *page, struct part *part)
{
    char id[24];
    struct label label = {"device_id", id};
    snprintf(id, sizeof id, "%" PRId64, part->busy->device);
    for (const struct part *other = page->parts.data; other < part; other++) {
        if (strcmp(other->labels, part->labels) != 0)
            continue;
        char *labels = labels_with(part->labels, &label, 1);
        free(part->labels);
        part->labels = labels;
        return labels != NULL;
    }
    return true;
}

/* One device is all there is: nothing to distinguish, and no work is left out whose device is not
 * known. */
static enum prof_status load_part(struct page *page, const struct prof_utilisation_row *busy,
                                  struct prof_error *err)
{
    struct prof_filter filter = {0};
    if (page->options && page->options->filter)
        filter = *page->options->filter;
    if (page->utilisation.count > 1)
        filter.device = busy->device;
    struct part *part = prof_array_add(&page->parts);
    if (!part)
        return prof_out_of_memory(err);
    *part = (struct part){.busy = busy};
    part->labels = device_labels(page, prof_device(page->capture, busy->device));
    if (!part->labels || !make_labels_unique(page, part))
        return prof_out_of_memory(err);
    PROF_TRY(load_kernels(page, &filter, part, err));
    PROF_TRY(load_transfers(page, &filter, part, err));
    return load_memory_samples(page, &filter, part, err);
}

/* ---- families -------------------------------------------------------------------------------- */

const struct prof_report_family prof_report_families[] = {
    [PROF_FAMILY_CAPTURE] = {"perfkit_capture_info", "gauge", NULL,
                             "The capture that these figures are of."},
    [PROF_FAMILY_START] = {"perfkit_capture_start_time_seconds", "gauge", "seconds",
                           "When the program was started, in seconds since 1970."},
    [PROF_FAMILY_KERNELS] = {"perfkit_kernel_invocations", "counter", NULL,
                             "Executions of a kernel that ended."},
    [PROF_FAMILY_KERNEL_TIME] = {"perfkit_kernel_time_seconds", "counter", "seconds",
                                 "Device time of a kernel's executions, added up."},
    [PROF_FAMILY_MEMCPYS] = {"perfkit_memcpy_operations", "counter", NULL,
                             "Memcpys by direction and kinds of memory."},
    [PROF_FAMILY_MEMCPY_TIME] = {"perfkit_memcpy_time_seconds", "counter", "seconds",
                                 "Device time of memcpys, added up."},
    [PROF_FAMILY_MEMCPY_BYTES] = {"perfkit_memcpy_bytes", "counter", "bytes",
                                  "Bytes that memcpys moved."},
    [PROF_FAMILY_MEMSETS] = {"perfkit_memset_operations", "counter", NULL,
                             "Memsets by the kind of memory."},
    [PROF_FAMILY_MEMSET_TIME] = {"perfkit_memset_time_seconds", "counter", "seconds",
                                 "Device time of memsets, added up."},
    [PROF_FAMILY_MEMSET_BYTES] = {"perfkit_memset_bytes", "counter", "bytes",
                                  "Bytes that memsets wrote."},
};

const char *prof_report_prometheus_suffix(const struct prof_report_family *family)
{
    return strcmp(family->type, "counter") ? "" : "_total";
}

void prof_report_prometheus_head(FILE *out, const struct prof_report_family *family, bool open)
{
    const char *total = open ? "" : prof_report_prometheus_suffix(family);
    fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, total, family->help,
            family->name, total, family->type);
    if (open && family->unit)
        fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
}

static void put_family_header(FILE *out, const char *name, const char *type, const char *help)
{
    prof_report_prometheus_head(
        out, &(struct prof_report_family){.name = name, .type = type, .help = help}, false);
}

void prof_report_prometheus_value(FILE *out, bool time, int64_t value)
{
    int64_t ns = value < 0 ? 0 : value;
    if (time)
        fprintf(out, "%" PRId64 ".%09" PRId64 "\n", ns / 1000000000, ns % 1000000000);
    else
        fprintf(out, "%" PRId64 "\n", value);
}

static void put_lines(FILE *out, const struct page *page, size_t offset,
                      const struct prof_report_family *family, int value)
{
    prof_report_prometheus_head(out, family, false);
    for (size_t p = 0; p < page->parts.count; p++) {
        const struct lines *lines = (const void *)((const char *)&page->parts.data[p] + offset);
        for (size_t i = 0; i < lines->list.count; i++) {
            fprintf(out, "%s%s{%s} ", family->name, prof_report_prometheus_suffix(family),
                    lines->list.data[i].labels);
            if (value == TIME_NS)
                prof_report_prometheus_value(out, true, lines->list.data[i].values[value]);
            else
                fprintf(out, "%" PRId64 "\n", lines->list.data[i].values[value]);
        }
    }
}

static void put_busy_ratio(FILE *out, const struct page *page)
{
    put_family_header(
        out, "perfkit_gpu_busy_ratio", "gauge",
        "Part of the time in which kernels, memcpys or memsets ran on the device, 0 to 1.");
    for (size_t p = 0; p < page->parts.count; p++) {
        const struct part *part = &page->parts.data[p];
        if (part->busy->window_ns > 0)
            fprintf(out, "perfkit_gpu_busy_ratio{%s} %.9f\n", part->labels,
                    (double)part->busy->busy_ns / (double)part->busy->window_ns);
    }
    put_family_header(out, "perfkit_gpu_busy_seconds", "counter",
                      "Time in which kernels, memcpys or memsets ran on the device.");
    for (size_t p = 0; p < page->parts.count; p++) {
        fprintf(out, "perfkit_gpu_busy_seconds_total{%s} ", page->parts.data[p].labels);
        prof_report_prometheus_value(out, true, page->parts.data[p].busy->busy_ns);
    }
    put_family_header(out, "perfkit_gpu_energy_joules", "counter",
                      "Energy of the device's board while its counter was read.");
    for (size_t p = 0; p < page->parts.count; p++) {
        const struct part *part = &page->parts.data[p];
        if (isfinite(part->busy->energy.joules))
            fprintf(out, "perfkit_gpu_energy_joules_total{%s} %.3f\n", part->labels,
                    part->busy->energy.joules);
    }
}

static void put_capture(FILE *out, const struct page *page, const struct prof_trust *trust)
{
    const struct prof_info *info = prof_info(page->capture);
    prof_report_prometheus_head(out, &prof_report_families[PROF_FAMILY_CAPTURE], false);
    fputs("perfkit_capture_info{", out);
    prof_report_prometheus_label(out, true, "version",
                                 info->perfkit_version ? info->perfkit_version : "n/a");
    prof_report_prometheus_label(out, false, "command", info->command);
    prof_report_prometheus_label(out, false, "hostname", info->host);
    fputs("} 1\n", out);
    put_family_header(out, "perfkit_capture_complete", "gauge",
                      "1 when no event is known to be lost.");
    fprintf(out, "perfkit_capture_complete %d\n", trust->complete);
    if (info->start_realtime_ns > 0) {
        prof_report_prometheus_head(out, &prof_report_families[PROF_FAMILY_START], false);
        fputs("perfkit_capture_start_time_seconds ", out);
        prof_report_prometheus_value(out, true, info->start_realtime_ns);
    }
    if (info->duration_ns >= 0) {
        put_family_header(out, "perfkit_capture_duration_seconds", "gauge",
                          "How long the program ran.");
        fputs("perfkit_capture_duration_seconds ", out);
        prof_report_prometheus_value(out, true, info->duration_ns);
    }
}

static void put_families(FILE *out, const struct page *page)
{
    static const struct {
        enum prof_report_family_id family;
        int value;
        size_t lines;
    } rows[] = {
        {PROF_FAMILY_KERNELS, COUNT, offsetof(struct part, kernels)},
        {PROF_FAMILY_KERNEL_TIME, TIME_NS, offsetof(struct part, kernels)},
        {PROF_FAMILY_MEMCPYS, COUNT, offsetof(struct part, memcpys)},
        {PROF_FAMILY_MEMCPY_TIME, TIME_NS, offsetof(struct part, memcpys)},
        {PROF_FAMILY_MEMCPY_BYTES, BYTES, offsetof(struct part, memcpys)},
        {PROF_FAMILY_MEMSETS, COUNT, offsetof(struct part, memsets)},
        {PROF_FAMILY_MEMSET_TIME, TIME_NS, offsetof(struct part, memsets)},
        {PROF_FAMILY_MEMSET_BYTES, BYTES, offsetof(struct part, memsets)},
    };
    static const struct prof_report_family peak = {"perfkit_memory_peak_bytes", "gauge", "bytes",
                                                   "Most memory that was allocated at once."};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        put_lines(out, page, rows[i].lines, &prof_report_families[rows[i].family], rows[i].value);
    put_lines(out, page, offsetof(struct part, memory), &peak, BYTES);
}

enum prof_status prof_report_write_prometheus(struct prof_capture *capture,
                                              const struct prof_report_options *options, FILE *out,
                                              struct prof_error *err)
{
    struct page page = {.options = options, .capture = capture};
    struct prof_trust trust = {0};
    enum prof_status status = prof_trust(capture, &trust, err);
    if (!status)
        status = prof_utilisation(capture, options ? options->filter : NULL, 0, 0,
                                  &page.utilisation, err);
    for (size_t i = 0; !status && i < page.utilisation.count; i++)
        status = load_part(&page, &page.utilisation.rows[i], err);
    if (!status) {
        put_capture(out, &page, &trust);
        put_busy_ratio(out, &page);
        put_families(out, &page);
        status = prof_report_flush(out, err);
    }
    for (size_t i = 0; i < page.parts.count; i++) {
        free(page.parts.data[i].labels);
        free_lines(&page.parts.data[i].kernels);
        free_lines(&page.parts.data[i].memcpys);
        free_lines(&page.parts.data[i].memsets);
        free_lines(&page.parts.data[i].memory);
    }
    prof_array_free(&page.parts);
    prof_utilisation_free(&page.utilisation);
    prof_trust_free(&trust);
    return status;
}
