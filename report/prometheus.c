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

/* A line of the file; no two of a family have the same labels. */
struct sample {
    const struct prof_report_family *family;
    char *labels; /* "": none */
    int64_t value;
};

struct page {
    const struct prof_report_options *options;
    struct prof_capture *capture;
    PROF_ARRAY(struct sample) samples;
    PROF_ARRAY(char *) devices; /* their labels: gpu="0",UUID="...",... */
    bool no_memory;
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
    PROF_FREED char *clean = prof_report_clean(name);
    size_t cells = clean ? prof_report_cells(clean) : 0;
    if (cells > LABEL_CELLS) {
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
        for (const char *c = name; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        PROF_FREED char *cut = prof_report_fit(name, LABEL_CELLS), *text = NULL;
        if (cut && asprintf(&text, "%s #%08" PRIx32, cut, (uint32_t)(hash >> 32)) < 0) {
            text = NULL;
            prof_note(PROF_NOMEM);
        }
        put_prometheus_label(out, first, label, text);
    } else {
        put_prometheus_label(out, first, label, clean);
    }
}

/* ---- what each device did -------------------------------------------------------------------- */

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

struct label {
    const char *name, *text; /* no text: not known, left out */
};

/* malloc'ed: `device` (NULL: none of it), and more behind it. NULL: out of memory. */
static char *make_labels(const char *device, const struct label *more, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = prof_open_memory(&text, &size);
    if (!out)
        return NULL;
    bool first = !device;
    fputs(device ? device : "", out);
    for (size_t i = 0; i < count; i++) {
        if (more[i].text)
            prof_report_prometheus_label(out, first, more[i].name, more[i].text);
        first &= !more[i].text;
    }
    if (prof_close_stream(out))
        return text;
    free(text);
    return NULL;
}

/* Those of the device with its number where two have all else in common: of two hosts, or of
 * drivers that report no UUID. The page's. */
static const char *add_device(struct page *page, int64_t id)
{
    char *text = NULL, number[24];
    size_t size;
    FILE *out = prof_open_memory(&text, &size);
    if (out)
        prof_report_prometheus_device(out, prof_device(page->capture, id),
                                      prof_info(page->capture)->host);
    bool ok = out && prof_close_stream(out), taken = false;
    for (size_t i = 0; ok && i < page->devices.count; i++)
        taken |= !strcmp(page->devices.data[i], text);
    if (taken) {
        snprintf(number, sizeof number, "%" PRId64, id);
        char *labels = make_labels(text, &(struct label){"device_id", number}, 1);
        free(text);
        text = labels;
    }
    char **slot = ok && text ? prof_array_add(&page->devices) : NULL;
    if (slot)
        return *slot = text;
    free(text);
    page->no_memory = true;
    return NULL;
}

/* Takes `labels` (NULL: out of memory). Those that end alike follow each other. */
static void add_sample(struct page *page, enum prof_report_family_id family, char *labels,
                       int64_t value)
{
    const struct prof_report_family *its = &prof_report_families[family];
    struct sample *sample = NULL;
    for (size_t i = page->samples.count; labels && i-- > 0 && !sample;) {
        struct sample *known = &page->samples.data[i];
        if (known->family == its && !strcmp(known->labels, labels))
            sample = known;
    }
    if (sample) {
        sample->value = prof_add(sample->value, value);
        free(labels);
        return;
    }
    sample = labels ? prof_array_add(&page->samples) : NULL;
    if (sample)
        *sample = (struct sample){its, labels, value};
    else
        free(labels);
    page->no_memory |= !sample;
}

static void add_of_device(struct page *page, enum prof_report_family_id family, const char *device,
                          const struct label *more, size_t count, int64_t value)
{
    add_sample(page, family, make_labels(device, more, count), value);
}

static enum prof_status load_kernels(struct page *page, const struct prof_filter *filter,
                                     const char *device, struct prof_error *err)
{
    struct prof_kernel_summary kernels;
    size_t top = page->options && page->options->top ? page->options->top : KERNELS;
    PROF_TRY(prof_kernel_summary(page->capture, filter, PROF_BY_NAME, &kernels, err));
    for (size_t i = 0; i < kernels.count; i++) {
        const struct prof_kernel_row *row = &kernels.rows[i];
        struct label label = {"kernel", i >= top ? "other" : row->name ? row->name : "n/a"};
        add_of_device(page, PROF_FAMILY_KERNELS, device, &label, 1, row->duration_ns.count);
        add_of_device(page, PROF_FAMILY_KERNEL_TIME, device, &label, 1, row->duration_ns.sum);
    }
    prof_kernel_summary_free(&kernels);
    return PROF_OK;
}

static enum prof_status load_transfers(struct page *page, const struct prof_filter *filter,
                                       const char *device, struct prof_error *err)
{
    struct prof_transfer_summary transfers;
    PROF_TRY(prof_transfer_summary(page->capture, filter, &transfers, err));
    for (size_t i = 0; i < transfers.count; i++) {
        const struct prof_transfer_row *row = &transfers.rows[i];
        const struct label labels[] = {
            {"kind", row->kind_text}, {"from", row->source_text}, {"to", row->target_text}};
        bool memset_ = row->kind == PROF_COPY_MEMSET; /* its only label: the memory */
        enum prof_report_family_id first = memset_ ? PROF_FAMILY_MEMSETS : PROF_FAMILY_MEMCPYS;
        const int64_t values[] = {row->duration_ns.count, row->duration_ns.sum, row->bytes.sum};
        for (unsigned k = 0; k < 3; k++)
            add_of_device(page, first + k, device, labels + (memset_ ? 2 : 0), memset_ ? 1 : 3,
                          values[k]);
    }
    prof_transfer_summary_free(&transfers);
    return PROF_OK;
}

static enum prof_status load_memory_samples(struct page *page, const struct prof_filter *filter,
                                            const char *device, struct prof_error *err)
{
    struct prof_memory_summary memory;
    PROF_TRY(prof_memory_summary(page->capture, filter, 0, &memory, err));
    for (size_t i = 0; i < memory.count; i++)
        add_of_device(page, PROF_FAMILY_MEMORY_PEAK, device,
                      &(struct label){"memory", memory.rows[i].kind_text}, 1,
                      memory.rows[i].peak_bytes);
    prof_memory_summary_free(&memory);
    return PROF_OK;
}

static void load_utilisation(struct page *page, const struct prof_utilisation_row *row,
                             const char *device)
{
    if (row->window_ns > 0)
        add_of_device(page, PROF_FAMILY_BUSY_RATIO, device, NULL, 0,
                      llround((double)row->busy_ns / (double)row->window_ns * 1e9));
    add_of_device(page, PROF_FAMILY_BUSY_TIME, device, NULL, 0, row->busy_ns);
    if (isfinite(row->energy.joules))
        add_of_device(page, PROF_FAMILY_ENERGY, device, NULL, 0, llround(row->energy.joules * 1e3));
}

/* One device is all there is: nothing to distinguish, and no work is left out whose device is not
 * known. */
static enum prof_status load_device(struct page *page, const struct prof_utilisation_row *row,
                                    bool only, struct prof_error *err)
{
    struct prof_filter filter = {0};
    const char *device = add_device(page, row->device);
    if (page->options && page->options->filter)
        filter = *page->options->filter;
    if (!only)
        filter.device = row->device;
    load_utilisation(page, row, device);
    PROF_TRY(load_kernels(page, &filter, device, err));
    PROF_TRY(load_transfers(page, &filter, device, err));
    return load_memory_samples(page, &filter, device, err);
}

static void load_capture_samples(struct page *page, bool complete)
{
    const struct prof_info *info = prof_info(page->capture);
    const struct label labels[] = {
        {"version", info->perfkit_version ? info->perfkit_version : "n/a"},
        {"command", info->command ? info->command : "n/a"},
        {"hostname", info->host ? info->host : "n/a"}};
    add_of_device(page, PROF_FAMILY_CAPTURE, NULL, labels, 3, 1);
    add_of_device(page, PROF_FAMILY_COMPLETE, NULL, NULL, 0, complete);
    if (info->start_realtime_ns > 0)
        add_of_device(page, PROF_FAMILY_START, NULL, NULL, 0, info->start_realtime_ns);
    if (info->duration_ns >= 0)
        add_of_device(page, PROF_FAMILY_DURATION, NULL, NULL, 0, info->duration_ns);
}

/* ---- families -------------------------------------------------------------------------------- */

const struct prof_report_family prof_report_families[] = {
    [PROF_FAMILY_CAPTURE] = {"perfkit_capture_info", "gauge", NULL,
                             "The capture that these figures are of.", 0},
    [PROF_FAMILY_COMPLETE] = {"perfkit_capture_complete", "gauge", NULL,
                              "1 when no event is known to be lost.", 0},
    [PROF_FAMILY_START] = {"perfkit_capture_start_time_seconds", "gauge", "seconds",
                           "When the program was started, in seconds since 1970.", 9},
    [PROF_FAMILY_DURATION] = {"perfkit_capture_duration_seconds", "gauge", "seconds",
                              "How long the program ran.", 9},
    [PROF_FAMILY_BUSY_RATIO] =
        {"perfkit_gpu_busy_ratio", "gauge", NULL,
         "Part of the time in which kernels, memcpys or memsets ran on the device, 0 to 1.", 9},
    [PROF_FAMILY_BUSY_TIME] = {"perfkit_gpu_busy_seconds", "counter", "seconds",
                               "Time in which kernels, memcpys or memsets ran on the device.", 9},
    [PROF_FAMILY_ENERGY] = {"perfkit_gpu_energy_joules", "counter", "joules",
                            "Energy of the device's board while its counter was read.", 3},
    [PROF_FAMILY_KERNELS] = {"perfkit_kernel_invocations", "counter", NULL,
                             "Executions of a kernel that ended.", 0},
    [PROF_FAMILY_KERNEL_TIME] = {"perfkit_kernel_time_seconds", "counter", "seconds",
                                 "Device time of a kernel's executions, added up.", 9},
    [PROF_FAMILY_MEMCPYS] = {"perfkit_memcpy_operations", "counter", NULL,
                             "Memcpys by direction and kinds of memory.", 0},
    [PROF_FAMILY_MEMCPY_TIME] = {"perfkit_memcpy_time_seconds", "counter", "seconds",
                                 "Device time of memcpys, added up.", 9},
    [PROF_FAMILY_MEMCPY_BYTES] = {"perfkit_memcpy_bytes", "counter", "bytes",
                                  "Bytes that memcpys moved.", 0},
    [PROF_FAMILY_MEMSETS] = {"perfkit_memset_operations", "counter", NULL,
                             "Memsets by the kind of memory.", 0},
    [PROF_FAMILY_MEMSET_TIME] = {"perfkit_memset_time_seconds", "counter", "seconds",
                                 "Device time of memsets, added up.", 9},
    [PROF_FAMILY_MEMSET_BYTES] = {"perfkit_memset_bytes", "counter", "bytes",
                                  "Bytes that memsets wrote.", 0},
    [PROF_FAMILY_MEMORY_PEAK] = {"perfkit_memory_peak_bytes", "gauge", "bytes",
                                 "Most memory that was allocated at once.", 0},
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

void prof_report_prometheus_value(FILE *out, bool time, int64_t value)
{
    int64_t ns = value < 0 ? 0 : value;
    if (time)
        fprintf(out, "%" PRId64 ".%09" PRId64 "\n", ns / 1000000000, ns % 1000000000);
    else
        fprintf(out, "%" PRId64 "\n", value);
}

/* What is said of a capture at all has a head, also without samples; its times only where they are
 * known. */
static void put_prometheus_family(FILE *out, const struct page *page, enum prof_report_family_id id)
{
    const struct prof_report_family *family = &prof_report_families[id];
    bool begun = id != PROF_FAMILY_START && id != PROF_FAMILY_DURATION;
    if (begun)
        prof_report_prometheus_head(out, family, false);
    for (size_t i = 0; i < page->samples.count; i++) {
        const struct sample *sample = &page->samples.data[i];
        if (sample->family != family)
            continue;
        if (!begun)
            prof_report_prometheus_head(out, family, false);
        begun = true;
        fprintf(out, *sample->labels ? "%s%s{%s} " : "%s%s%s ", family->name,
                prof_report_prometheus_suffix(family), sample->labels);
        if (family->decimals == 3)
            fprintf(out, "%.3f\n", (double)sample->value / 1e3);
        else
            prof_report_prometheus_value(out, family->decimals == 9, sample->value);
    }
}

enum prof_status prof_report_write_prometheus(struct prof_capture *capture,
                                              const struct prof_report_options *options, FILE *out,
                                              struct prof_error *err)
{
    struct page page = {.options = options, .capture = capture};
    struct prof_utilisation busy = {0};
    struct prof_trust trust = {0};
    enum prof_status status = prof_trust(capture, &trust, err);
    if (!status)
        status = prof_utilisation(capture, options ? options->filter : NULL, 0, 0, &busy, err);
    load_capture_samples(&page, trust.complete);
    for (size_t i = 0; !status && i < busy.count; i++)
        status = load_device(&page, &busy.rows[i], busy.count == 1, err);
    if (!status && page.no_memory)
        status = prof_out_of_memory(err);
    for (enum prof_report_family_id id = 0; !status && id < PROF_FAMILIES; id++)
        put_prometheus_family(out, &page, id);
    status = status ?: prof_report_flush(out, err);
    for (size_t i = 0; i < page.samples.count; i++)
        free(page.samples.data[i].labels);
    for (size_t i = 0; i < page.devices.count; i++)
        free(page.devices.data[i]);
    prof_array_free(&page.samples);
    prof_array_free(&page.devices);
    prof_utilisation_free(&busy);
    prof_trust_free(&trust);
    return status;
}
