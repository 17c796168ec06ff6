/* Loads what the summary formats show. Each analysis is one scan of its table, so a report of a
 * large capture costs one pass whatever the number of formats. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libprof/base/array.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_findings.h"
#include "report/data.h"
#include "report/table.h"

/* How many gaps and leaks are kept: what a person reads, not a dump. */
#define GAPS_PER_DEVICE 5
#define LEAKS 20
/* Points of the busy-share strips in text and HTML. */
#define BUCKETS 240

PROF_ORDER(longest_gap_first, struct prof_report_gap, PROF_DESCENDING(gap.duration_ns),
           PROF_ASCENDING(gap.start_ns))

static enum prof_status flatten_gaps(struct prof_report_data *data, struct prof_error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < data->utilisation.count; i++)
        total += data->utilisation.rows[i].gaps_listed;
    if (!total)
        return PROF_OK;
    data->gaps = calloc(total, sizeof *data->gaps);
    if (!data->gaps)
        return prof_fail(err, PROF_NOMEM, "cannot list gaps: out of memory");
    for (size_t i = 0; i < data->utilisation.count; i++) {
        const struct prof_utilisation_row *row = &data->utilisation.rows[i];
        for (size_t k = 0; k < row->gaps_listed; k++)
            data->gaps[data->gap_count++] =
                (struct prof_report_gap){.device = row->device, .gap = row->gaps[k]};
    }
    qsort(data->gaps, data->gap_count, sizeof *data->gaps, longest_gap_first);
    return PROF_OK;
}

PROF_ORDER(most_time_first, struct prof_report_state, PROF_DESCENDING(ns), PROF_ASCENDING(slice))

static enum prof_status flatten_states(struct prof_report_data *data, struct prof_error *err)
{
    const struct prof_findings *findings = &data->findings;
    if (!findings->waterfall_count)
        return PROF_OK;
    data->states = calloc(findings->waterfall_count * PROF_SLICES, sizeof *data->states);
    if (!data->states)
        return prof_fail(err, PROF_NOMEM, "cannot list states: out of memory");
    for (size_t i = 0; i < findings->waterfall_count; i++) {
        const struct prof_waterfall *row = &findings->waterfalls[i];
        size_t first = data->state_count;
        for (enum prof_slice slice = 0; slice < PROF_SLICES; slice++) {
            if (row->ns[slice] > 0)
                data->states[data->state_count++] =
                    (struct prof_report_state){row->device, slice, row->ns[slice]};
        }
        qsort(data->states + first, data->state_count - first, sizeof *data->states,
              most_time_first);
    }
    return PROF_OK;
}

static enum prof_status list_streams(struct prof_report_data *data, struct prof_error *err)
{
    const struct prof_stream *all;
    size_t count = prof_streams(data->capture, &all);
    if (!count)
        return PROF_OK;
    data->streams = calloc(count, sizeof *data->streams);
    if (!data->streams)
        return prof_fail(err, PROF_NOMEM, "cannot list streams: out of memory");
    for (size_t i = 0; i < count; i++) {
        int64_t operations = data->utilisation.stream_operations[i];
        if (operations || all[i].name)
            data->streams[data->stream_count++] =
                (struct prof_report_stream){.stream = all[i], .operations = operations};
    }
    return PROF_OK;
}

static enum prof_status load_counters(struct prof_report_data *data, struct prof_error *err)
{
    struct prof_counter_summary *all = &data->counters;
    enum prof_status status =
        prof_counter_summary(data->capture, data->filter, PROF_BY_CONFIG, all, err);
    size_t count = all->count * all->counter_count;
    if (status || !count)
        return status;
    data->counter_values = calloc(count, sizeof *data->counter_values);
    if (!data->counter_values)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        const struct prof_counter_row *row = &all->rows[i / all->counter_count];
        size_t which = i % all->counter_count;
        data->counter_values[data->counter_value_count++] =
            (struct prof_report_counter_value){row, &all->counters[which], &row->values[which]};
    }
    return PROF_OK;
}

#define CODE_KERNELS 10 /* whose code is shown, so many instructions on each side */
#define CODE_AROUND 5

static enum prof_status load_stalls(struct prof_report_data *data, struct prof_error *err)
{
    struct prof_stalls *all = &data->stalls;
    enum prof_status status = prof_stalls(data->capture, data->filter, all, err);
    if (status || !all->count)
        return status;
    data->stall_code = calloc(CODE_KERNELS * (2 * CODE_AROUND + 1), sizeof *data->stall_code);
    if (!data->stall_code)
        return prof_out_of_memory(err);
    for (size_t kernel = 0; kernel < all->count && kernel < CODE_KERNELS; kernel++) {
        size_t hottest = SIZE_MAX;
        for (size_t i = 0; i < all->instruction_count; i++) {
            if (all->instructions[i].kernel == kernel &&
                (hottest == SIZE_MAX ||
                 all->instructions[i].sums.samples > all->instructions[hottest].sums.samples))
                hottest = i;
        }
        size_t first = hottest > CODE_AROUND ? hottest - CODE_AROUND : 0;
        for (size_t i = first; i <= hottest + CODE_AROUND && i < all->instruction_count; i++) {
            if (all->instructions[i].kernel == kernel)
                data->stall_code[data->stall_code_count++] = all->instructions[i];
        }
    }
    return PROF_OK;
}

static enum prof_status load_rooflines(struct prof_report_data *data, struct prof_error *err)
{
    PROF_TRY(
        prof_roofline(data->capture, data->filter, PROF_ROOFLINE_KERNELS, &data->roofline, err));
    bool worked = false;
    for (size_t i = 0; i < data->roofline.count; i++)
        worked |= data->roofline.points[i].worked > 0;
    if (worked)
        PROF_TRY(prof_roofline(data->capture, data->filter, PROF_ROOFLINE_CONFIGS,
                               &data->roofline_configs, err));
    return prof_roofline(data->capture, data->filter, PROF_ROOFLINE_RANGES, &data->roofline_ranges,
                         err);
}

enum prof_status prof_report_load_trust(struct prof_capture *capture,
                                        const struct prof_report_options *options,
                                        struct prof_report_data *data, struct prof_error *err)
{
    *data = (struct prof_report_data){
        .capture = capture, .filter = options ? options->filter : NULL, .info = prof_info(capture)};
    return prof_trust(capture, &data->trust, err);
}

enum prof_status prof_report_load_ranks(struct prof_capture *capture,
                                        const struct prof_report_options *options,
                                        struct prof_report_data *data, struct prof_error *err)
{
    enum prof_status status = prof_report_load_trust(capture, options, data, err);
    data->wall_ns = prof_wall_ns(capture, data->filter);
    data->process_count = prof_processes(capture, &data->processes);
    return status ? status : prof_ranks(capture, data->filter, &data->ranks, err);
}

static enum prof_status load_screen(struct prof_capture *capture,
                                    const struct prof_report_options *options, bool iterations,
                                    struct prof_report_data *data, struct prof_error *err)
{
    const struct prof_overview_parts parts = {.findings = &data->findings,
                                              .utilisation = &data->utilisation,
                                              .gaps = GAPS_PER_DEVICE,
                                              .buckets = BUCKETS,
                                              .iterations = iterations ? &data->iterations : NULL,
                                              .explain = {.slow = PROF_REPORT_EXPLAINED}};
    static const enum prof_activity few[] = {PROF_ACTIVITY_GRAPHS, PROF_ACTIVITY_OVERHEAD};
    const struct prof_filter *filter = options ? options->filter : NULL;
    PROF_TRY(prof_report_load_ranks(capture, options, data, err));
    PROF_TRY(prof_overview(capture, filter, &parts, err));
    PROF_TRY(flatten_states(data, err));
    PROF_TRY(prof_estimates(capture, &data->estimates, err));
    PROF_TRY(prof_kernel_summary(capture, filter, PROF_BY_NAME, &data->kernels, err));
    PROF_TRY(prof_transfer_summary(capture, filter, &data->transfers, err));
    PROF_TRY(prof_memory_summary(capture, filter, LEAKS, &data->memory, err));
    PROF_TRY(prof_launch_lines(capture, filter, &data->lines, err));
    PROF_TRY(prof_cpu(capture, filter, &data->cpu, err));
    PROF_TRY(load_stalls(data, err));
    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++)
        PROF_TRY(prof_activity_summary(capture, filter, few[i], &data->activities[few[i]], err));
    return PROF_OK;
}

enum prof_status prof_report_load_screen(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         struct prof_report_data *data, struct prof_error *err)
{
    return load_screen(capture, options, false, data, err);
}

/* The tables behind it, and those that no table for people shows. */
static enum prof_status load_details(struct prof_report_data *data, struct prof_error *err)
{
    struct prof_capture *capture = data->capture;
    const struct prof_filter *filter = data->filter;
    PROF_TRY(flatten_gaps(data, err));
    PROF_TRY(list_streams(data, err));
    PROF_TRY(prof_api_summary(capture, filter, &data->api, err));
    PROF_TRY(prof_sync_summary(capture, filter, &data->waits, err));
    PROF_TRY(prof_range_summary(capture, filter, &data->ranges, err));
    PROF_TRY(
        prof_pytorch_parts(&data->ranges, &data->pytorch_parts, &data->pytorch_part_count, err));
    PROF_TRY(prof_pytorch_flop(capture, filter, &data->iterations, &data->pytorch_flop, err));
    for (enum prof_activity i = 0; i < PROF_ACTIVITIES; i++) {
        if (i != PROF_ACTIVITY_GRAPHS && i != PROF_ACTIVITY_OVERHEAD)
            PROF_TRY(prof_activity_summary(capture, filter, i, &data->activities[i], err));
    }
    PROF_TRY(prof_pool_summary(capture, filter, &data->pools, err));
    PROF_TRY(load_rooflines(data, err));
    PROF_TRY(load_counters(data, err));
    return prof_exact(capture, &data->exact, err);
}

enum prof_status prof_report_load(struct prof_capture *capture,
                                  const struct prof_report_options *options,
                                  struct prof_report_data *data, struct prof_error *err)
{
    PROF_TRY(load_screen(capture, options, true, data, err));
    return load_details(data, err);
}

void prof_report_unload(struct prof_report_data *data)
{
    prof_trust_free(&data->trust);
    prof_findings_free(&data->findings);
    prof_utilisation_free(&data->utilisation);
    free(data->gaps);
    free(data->states);
    free(data->streams);
    prof_estimates_free(&data->estimates);
    prof_kernel_summary_free(&data->kernels);
    prof_transfer_summary_free(&data->transfers);
    prof_api_summary_free(&data->api);
    prof_sync_summary_free(&data->waits);
    free(data->pytorch_parts);
    prof_pytorch_flop_free(&data->pytorch_flop);
    prof_range_summary_free(&data->ranges);
    prof_memory_summary_free(&data->memory);
    for (enum prof_activity i = 0; i < PROF_ACTIVITIES; i++)
        prof_activity_summary_free(&data->activities[i]);
    prof_pool_summary_free(&data->pools);
    prof_report_unload_memory(data);
    prof_launch_lines_free(&data->lines);
    prof_cpu_free(&data->cpu);
    prof_roofline_free(&data->roofline);
    prof_roofline_free(&data->roofline_configs);
    prof_roofline_free(&data->roofline_ranges);
    prof_stalls_free(&data->stalls);
    free(data->stall_code);
    free(data->counter_values);
    prof_counter_summary_free(&data->counters);
    prof_exact_free(&data->exact);
    prof_ranks_free(&data->ranks);
    prof_iteration_list_free(&data->iterations);
    *data = (struct prof_report_data){0};
}

void prof_report_ending(const struct prof_info *info, char *out, size_t size)
{
    if (info->abandoned) {
        snprintf(out, size, "perfkit was killed");
    } else if (prof_report_is_live(info)) {
        snprintf(out, size, "still running");
    } else if (prof_report_ran_on(info)) {
        snprintf(out, size, "still running when this copy was kept (--ring)");
    } else if (info->exit_signal != PROF_UNKNOWN && info->exit_signal > 0) {
        snprintf(out, size, "killed by %s", prof_signal(info->exit_signal).text);
    } else if (info->exit_status != PROF_UNKNOWN) {
        snprintf(out, size, "exit status %lld", (long long)info->exit_status);
    } else {
        snprintf(out, size, "n/a");
    }
}

void prof_report_when(int64_t realtime_ns, char *out, size_t size)
{
    struct tm parts;
    time_t seconds = (time_t)(realtime_ns / 1000000000);
    if (realtime_ns == PROF_UNKNOWN || realtime_ns <= 0 || !gmtime_r(&seconds, &parts) ||
        !strftime(out, size, "%Y-%m-%d %H:%M:%S UTC", &parts))
        snprintf(out, size, "n/a");
}

/* ---- where to look next ---------------------------------------------------------------------- */

struct steps {
    char (*text)[PROF_REPORT_STEP_BYTES];
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void add(struct steps *steps, const char *format, ...)
{
    va_list arguments;
    if (steps->count >= PROF_REPORT_STEPS)
        return;
    va_start(arguments, format);
    vsnprintf(steps->text[steps->count++], PROF_REPORT_STEP_BYTES, format, arguments);
    va_end(arguments);
}

/* The device that did most: the others of a machine are often idle on purpose. */
static const struct prof_utilisation_row *busiest(const struct prof_report_data *data)
{
    const struct prof_utilisation_row *best = NULL;
    for (size_t i = 0; i < data->utilisation.count; i++) {
        const struct prof_utilisation_row *row = &data->utilisation.rows[i];
        if (!best || row->busy_ns > best->busy_ns)
            best = row;
    }
    return best;
}

/* The fault that costs most time, where one matters; NULL. */
static const struct prof_finding *first_fault(const struct prof_report_data *data)
{
    for (size_t i = 0; i < data->findings.count; i++) {
        const struct prof_finding *finding = &data->findings.rows[i];
        if (!finding->hint && finding->severity > PROF_SEVERITY_INFO &&
            finding->bound_ns != PROF_UNKNOWN)
            return finding;
    }
    return NULL;
}

/* A finding names the lines of the program only where stacks were taken. */
static void about_lines(const struct prof_report_data *data, struct steps *steps)
{
    const struct prof_finding *fault = first_fault(data);
    if (!fault || !fault->place_count || data->info->state == PROF_STATE_IMPORTED ||
        data->lines.count || data->lines.unknown_operations)
        return;
    for (size_t i = 0; i < fault->place_count; i++)
        if (*fault->places[i].line)
            return;
    add(steps, "perfkit run --stacks names the source lines behind %s.", fault->rule->id);
}

static void about_idle_time(const struct prof_report_data *data, struct steps *steps)
{
    const struct prof_utilisation_row *row = busiest(data);
    if (!row || row->window_ns <= 0 || row->busy_ns <= 0 || data->info->kernel_filter)
        return;
    bool windows = data->trust.recorded_ns != PROF_UNKNOWN; /* before the first nothing is idle */
    double busy = (double)row->busy_ns / (double)row->window_ns;
    const char *most = prof_is_behind(row) ? "at most " : "";
    const char *label = prof_report_device_label(prof_device(data->capture, row->device));
    int64_t lead = row->first_ns == PROF_UNKNOWN ? 0 : row->first_ns - data->utilisation.begin_ns;
    int64_t longest = row->gaps_listed ? row->gaps[0].duration_ns : 0;
    if (busy < 0.5 && lead > longest && !windows)
        add(steps, "%s was idle %s%s, %s before its first work: see the timeline.", label, most,
            prof_percent(1 - busy).text, prof_duration_ns(lead).text);
    else if (busy < 0.5 && longest)
        add(steps, "%s was idle %s%s, longest %s from %s on: see the timeline.", label, most,
            prof_percent(1 - busy).text, prof_duration_ns(longest).text,
            prof_duration_ns(row->gaps[0].start_ns).text);
    if (row->kernel_ns > 0 && row->memcpy_memset_ns > row->kernel_ns)
        add(steps, "%s: %s of memcpy and memset, %s of kernels, %s%s at once.", label,
            prof_duration_ns(row->memcpy_memset_ns).text, prof_duration_ns(row->kernel_ns).text,
            row->overlap_ns ? prof_duration_ns(row->overlap_ns).text : "never",
            row->overlap_ns ? " of both" : "");
}

static void about_kernels(const struct prof_report_data *data, struct steps *steps)
{
    if (!data->kernels.count)
        return;
    const struct prof_kernel_row *top = &data->kernels.rows[0];
    const struct prof_finding *fault = first_fault(data);
    PROF_FREED char *name = prof_report_fit(top->name, 60);
    if (name && top->share > 0.4 && top->wall_share > 1)
        add(steps, "%s takes %s of the kernel time: start with it.", name,
            prof_percent(top->share).text);
    else if (name && top->share > 0.4 && top->wall_share > 0.1 && fault &&
             fault->bound_ns > top->duration_ns.sum)
        add(steps,
            "Of the kernels %s comes first: %s of their time, %s of the wall time; %s can bring "
            "more.",
            name, prof_percent(top->share).text, prof_percent(top->wall_share).text,
            fault->rule->id);
    else if (name && top->share > 0.4 && top->wall_share > 0.1)
        add(steps, "%s takes %s of the kernel time and %s of the wall time: start with it.", name,
            prof_percent(top->share).text, prof_percent(top->wall_share).text);
}

/* Why there is nothing: the narrowest limit that was set is the likeliest. */
static void about_no_work(const struct prof_report_data *data, struct steps *steps)
{
    const struct prof_trust *trust = &data->trust;
    if (data->filter)
        add(steps, "No device work was recorded within the filter.");
    else if (trust->recorded_ns == 0 && !trust->marks_lost)
        add(steps,
            "Nothing was recorded: no window was open while the program ran (--dormant, --delay, "
            "or a capture range that %s).",
            prof_report_is_live(data->info) ? "has not begun yet" : "never began");
    else if (trust->recorded_ns != PROF_UNKNOWN)
        add(steps,
            "No device work was recorded in the %s (%s window%s) in which there was to be a "
            "record: the program may have done it at another time.",
            prof_duration_ns(trust->recorded_ns).text, prof_count(trust->windows).text,
            trust->windows == 1 ? "" : "s");
    else
        add(steps, "No device work was recorded: `perfkit doctor` says what can be recorded here "
                   "and what prevents it.");
}

static void about_overhead(const struct prof_report_data *data, struct steps *steps)
{
    const struct prof_activity_summary *all = &data->activities[PROF_ACTIVITY_OVERHEAD];
    for (size_t i = 0; i < all->count; i++) {
        const struct prof_activity_row *row = &all->rows[i];
        if (row->wall_share > 0.05)
            add(steps, "Overhead, %s: %s, %s of the wall time.", row->kind_text,
                prof_duration_ns(row->duration_ns.sum).text, prof_percent(row->wall_share).text);
    }
}

/* Findings about the host, where it is not known how much recording slowed it. */
static void about_calibration(const struct prof_report_data *data, struct steps *steps)
{
    const struct prof_findings *findings = &data->findings;
    bool host = false;
    for (size_t i = 0; i < findings->count && !host; i++)
        for (size_t n = 0; n < findings->rows[i].number_count && !host; n++)
            host = findings->rows[i].severity >= PROF_SEVERITY_WARNING &&
                   !strcmp(findings->rows[i].numbers[n].name, "idle_launch_ns");
    if (host && findings->overhead.source == PROF_OVERHEAD_UNKNOWN && !findings->overhead.pauses &&
        data->info->state != PROF_STATE_IMPORTED)
        add(steps, "How much recording slowed the host is not known: after `perfkit device "
                   "--measure` on this machine reports estimate it; perfkit run --overhead=measure "
                   "measures it.");
}

size_t prof_report_next_steps(const struct prof_report_data *data,
                              char text[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES])
{
    struct steps steps = {.text = text};
    if (!data->trust.complete)
        add(&steps, "Read what is missing under Trust first: the figures above may lack work.");
    if (!data->kernels.kernels && !data->transfers.count &&
        !data->activities[PROF_ACTIVITY_GRAPHS].events)
        about_no_work(data, &steps);
    about_lines(data, &steps);
    about_idle_time(data, &steps);
    about_kernels(data, &steps);
    about_overhead(data, &steps);
    if (data->memory.total.leaks > 0 && !prof_report_is_live(data->info) &&
        !prof_report_ran_on(data->info))
        add(&steps, "%s allocation%s (%s) never freed: the table of leaks names the largest.",
            prof_count(data->memory.total.leaks).text, data->memory.total.leaks == 1 ? "" : "s",
            prof_bytes_of(data->memory.total.leaked_bytes).text);
    about_calibration(data, &steps);
    return steps.count;
}

void prof_report_energy(const struct prof_utilisation_row *row, char *out, size_t size)
{
    snprintf(out, size, "%s, %s on average", prof_joules(row->energy.joules).text,
             prof_watts(row->energy.joules * 1e9 / (double)row->energy_ns).text);
}

int64_t prof_report_kernels_in_graphs(const struct prof_report_data *data)
{
    int64_t nodes = 0;
    for (size_t i = 0; i < data->kernels.count; i++)
        nodes += data->kernels.rows[i].graph_nodes;
    return nodes;
}
