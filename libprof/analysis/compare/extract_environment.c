/* Where and how a run was made, as far as a capture shows, and whether its times may be compared at
 * all. Nothing that is different each time belongs here: a fingerprint of live clocks or load would
 * make every run incomparable. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/extract.h"

#define MOST 24

struct list {
    struct prof_extract *x;
    struct prof_environment *rows;
    size_t count;
};

static void add_environment(struct list *list, enum prof_environment_level level, const char *name,
                            const char *value)
{
    if (list->count < MOST)
        list->rows[list->count++] = (struct prof_environment){
            name, value && *value ? prof_extract_text(list->x, value) : NULL, level};
}

static void add_number(struct list *list, enum prof_environment_level level, const char *name,
                       int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add_environment(list, level, name, value == PROF_UNKNOWN ? NULL : text);
}

/* How the program ended. What crashed or gave up did other work than what went through. */
static void add_end(struct list *list, const struct prof_info *info)
{
    char text[32] = "";
    if (info->exit_signal > 0)
        snprintf(text, sizeof text, "signal %lld", (long long)info->exit_signal);
    else if (info->exit_status != PROF_UNKNOWN)
        snprintf(text, sizeof text, "%lld", (long long)info->exit_status);
    add_environment(list, PROF_ENVIRONMENT_HARD, "exit status", text);
}

/* ---- devices --------------------------------------------------------------------------------- */

enum part { NAME, UUID, DRIVER, API, UNITS, MEMORY };

static void print_part(const struct prof_device *d, enum part part, char *out, size_t size)
{
    const char *texts[] = {
        [NAME] = d->name, [UUID] = d->uuid, [DRIVER] = d->driver, [API] = d->api};
    int64_t number = part == UNITS ? d->units : d->memory_bytes;
    if (part < UNITS)
        snprintf(out, size, "%s", texts[part] ? texts[part] : "");
    else if (number == PROF_UNKNOWN)
        *out = 0;
    else
        snprintf(out, size, "%lld", (long long)number);
}

/* The devices that worked, each hardware once, in the order of their ordinals. */
static void add_devices(struct list *list, enum prof_environment_level level, const char *name,
                        enum part part)
{
    char all[512] = "";
    const struct prof_facts *f = &list->x->facts;
    for (size_t i = 0; i < f->devices.count; i++) {
        char one[256];
        if (!f->devices.data[i].device)
            continue;
        /* what a CPU device has is the host's, and some report what is free of it at the moment */
        if (part == MEMORY &&
            (!f->devices.data[i].device->kind || strcmp(f->devices.data[i].device->kind, "gpu")))
            continue;
        print_part(f->devices.data[i].device, part, one, sizeof one);
        prof_append(all, sizeof all, "%s%s", *all ? "; " : "", one);
    }
    add_environment(list, level, name, all);
}

/* ---- clock ----------------------------------------------------------------------------------- */

/* Mean cycles a second of the multiprocessors while kernels ran, where counters were sampled. */
static enum prof_status find_clock(struct prof_extract *x, struct prof_error *err)
{
    struct prof_counter_summary counters;
    enum prof_status status = prof_counter_summary(x->capture, NULL, PROF_BY_NAME, &counters, err);
    int clock = status ? -1 : prof_counter_find(&counters, "sm_cycles");
    double cycles = 0, seconds = 0;
    for (size_t i = 0; clock >= 0 && i < counters.count; i++) {
        const struct prof_counter_row *row = &counters.rows[i];
        double rate = row->known ? row->values[clock].rate : NAN;
        if (!isfinite(rate))
            continue;
        cycles += rate * (double)row->covered_ns;
        seconds += (double)row->covered_ns;
    }
    x->run->clock_hz = seconds > 0 ? cycles / seconds : NAN;
    if (!status)
        prof_counter_summary_free(&counters);
    return status;
}

/* ---- trust ----------------------------------------------------------------------------------- */

static enum prof_status take_trust(struct prof_extract *x, struct list *list,
                                   struct prof_error *err)
{
    struct prof_trust trust;
    PROF_TRY(prof_trust(x->capture, &trust, err));
    enum prof_state state = x->capture->info.state;
    /* What may be missing at the end of a process that died leaves the rest comparable; what is
     * known to be missing does not. */
    bool at_risk = trust.status == PROF_TRUST_AT_RISK && trust.lacking == 0;
    x->run->complete =
        ((trust.complete && trust.lacking == 0) || at_risk) && state != PROF_STATE_RECORDING;
    add_environment(list, PROF_ENVIRONMENT_SOFT, "records of the end",
                    at_risk ? "may be missing" : "all there");
    if (state == PROF_STATE_RECORDING)
        x->run->why_incomplete = prof_extract_text(x, "it is still being recorded");
    else if (trust.complete && trust.lacking > 0)
        x->run->why_incomplete =
            prof_extract_text(x, prof_counted(trust.lacking, "call has no device record",
                                              "calls have no device record")
                                     .text);
    else if (!x->run->complete)
        x->run->why_incomplete = prof_extract_text(
            x, trust.statement_count ? trust.statements[0].text : "its trust block says so");
    prof_trust_free(&trust);
    return PROF_OK;
}

enum prof_status prof_extract_environment(struct prof_extract *x, struct prof_error *err)
{
    const struct prof_info *info = prof_info(x->capture);
    struct prof_run *run = x->run;
    run->environment = calloc(MOST, sizeof *run->environment);
    if (!run->environment)
        return prof_out_of_memory(err);
    struct list list = {.x = x, .rows = run->environment};
    add_devices(&list, PROF_ENVIRONMENT_HARD, "device", NAME);
    add_devices(&list, PROF_ENVIRONMENT_HARD, "device units", UNITS);
    add_devices(&list, PROF_ENVIRONMENT_HARD, "device memory", MEMORY);
    add_environment(&list, PROF_ENVIRONMENT_HARD, "trace", info->trace);
    add_environment(&list, PROF_ENVIRONMENT_HARD, "kernel filter", info->kernel_filter);
    add_devices(&list, PROF_ENVIRONMENT_HARD, "api", API);
    add_end(&list, info);
    add_devices(&list, PROF_ENVIRONMENT_SOFT, "device uuid", UUID);
    add_devices(&list, PROF_ENVIRONMENT_SOFT, "driver", DRIVER);
    add_environment(&list, PROF_ENVIRONMENT_SOFT, "cpu", info->cpu);
    add_number(&list, PROF_ENVIRONMENT_SOFT, "cpu count", info->cpu_count);
    add_environment(&list, PROF_ENVIRONMENT_SOFT, "system", info->kernel);
    add_environment(&list, PROF_ENVIRONMENT_SOFT, "perfkit", info->perfkit_version);
    if (x->facts.pauses.count)
        add_environment(&list, PROF_ENVIRONMENT_INFO, PROF_ENVIRONMENT_PAUSES,
                        x->facts.sampled.count ? PROF_ENVIRONMENT_SAMPLED : "yes");
    add_environment(&list, PROF_ENVIRONMENT_INFO, "host", info->host);
    add_environment(&list, PROF_ENVIRONMENT_INFO, "command", info->command);
    run->wall_ns = info->duration_ns;
    enum prof_status status = take_trust(x, &list, err);
    run->environment_count = list.count;
    return status ? status : find_clock(x, err);
}
