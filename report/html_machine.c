/* The machine as markup: what the program ran on, and what each device is. A fact that is not known
 * is left out. */
#include <stdio.h>

#include "libprof/base/format.h"
#include "report/html_markup.h"
#include "report/html_panels.h"

static void put_fact(FILE *out, const char *term, const char *text)
{
    if (!text || !text[0])
        return;
    fprintf(out, "<div><dt>%s</dt><dd>", term);
    prof_html_text(out, text);
    fputs("</dd></div>\n", out);
}

static void put_fact_number(FILE *out, const char *term, int64_t value, struct prof_text text)
{
    put_fact(out, term, value == PROF_UNKNOWN ? NULL : text.text);
}

static void put_machine(FILE *out, const struct prof_info *info)
{
    char when[32];
    prof_report_when(info->start_realtime_ns, when, sizeof when);
    fputs("<dl class=\"machine\">\n", out);
    put_fact(out, "Host", info->host);
    put_fact(out, "System", info->kernel);
    put_fact(out, "Processor", info->cpu);
    put_fact_number(out, "Processors", info->cpu_count, prof_count(info->cpu_count));
    put_fact(out, "Started", when);
    put_fact(out, "Recorded", info->trace);
    put_fact(out, "Only kernels", info->kernel_filter);
    fputs("</dl>\n", out);
}

static void put_compute(FILE *out, const struct prof_device *device)
{
    char text[64];
    if (device->compute_major == PROF_UNKNOWN || device->compute_minor == PROF_UNKNOWN)
        return;
    snprintf(text, sizeof text, "%lld.%lld", (long long)device->compute_major,
             (long long)device->compute_minor);
    put_fact(out, "Compute capability", text);
}

static void put_clock_rate(FILE *out, const char *term, int64_t khz)
{
    char text[64];
    if (khz == PROF_UNKNOWN)
        return;
    snprintf(text, sizeof text, "%lld MHz", (long long)(khz / 1000));
    put_fact(out, term, text);
}

static void put_device_facts(FILE *out, const struct prof_device *device)
{
    const char *label = prof_report_device_label(device);
    prof_html_element(out, "h3", NULL, label);
    fputs("\n<dl class=\"machine\">\n", out);
    put_fact(out, "Name", device->name);
    put_fact(out, "Called", device->label);
    put_fact(out, "API", device->api);
    put_fact(out, "Vendor", device->vendor);
    put_fact(out, "Driver", device->driver);
    put_compute(out, device);
    put_fact_number(out, "Units", device->units, prof_count(device->units));
    put_clock_rate(out, "Clock", device->clock_khz);
    put_fact_number(out, "Memory", device->memory_bytes, prof_bytes_of(device->memory_bytes));
    put_clock_rate(out, "Memory clock", device->memory_clock_khz);
    put_fact_number(out, "Memory bandwidth, theoretical", device->memory_bandwidth,
                    prof_rate((double)device->memory_bandwidth));
    put_fact_number(out, "L2 cache", device->l2_bytes, prof_bytes_of(device->l2_bytes));
    put_fact_number(out, "Shared memory of a unit", device->shared_per_unit_bytes,
                    prof_bytes_of(device->shared_per_unit_bytes));
    put_fact_number(out, "Registers of a unit", device->registers_per_unit,
                    prof_count(device->registers_per_unit));
    put_fact_number(out, "Threads of a unit, most", device->max_threads_per_unit,
                    prof_count(device->max_threads_per_unit));
    put_fact(out, "UUID", device->uuid);
    fputs("</dl>\n", out);
}

/* Each piece of hardware once, whatever number of processes saw it. */
void prof_html_put_machine(FILE *out, const struct prof_html_page *page)
{
    const struct prof_device *devices;
    size_t count = prof_devices(page->data->capture, &devices);
    put_machine(out, page->data->info);
    for (size_t i = 0; i < count; i++)
        if (devices[i].physical == devices[i].id)
            put_device_facts(out, &devices[i]);
}
