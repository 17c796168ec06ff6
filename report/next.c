/* The last lines of a report: where to look next. Plain facts with their numbers, not a diagnosis;
 * each rule speaks only when its inputs are there. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/data.h"
#include "report/table.h"
#include "libprof/base/utf8.h"

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
    add(steps, "perfkit run --stacks would name the lines of the program behind %s.",
        fault->rule->id);
}

static void about_idle_time(const struct prof_report_data *data, struct steps *steps)
{
    const struct prof_utilisation_row *row = busiest(data);
    if (!row || row->window_ns <= 0 || row->busy_ns <= 0 || data->info->kernel_filter)
        return;
    bool windows = data->trust.recorded_ns != PROF_UNKNOWN; /* before the first nothing is idle */
    double busy = (double)row->busy_ns / (double)row->window_ns;
    const char *label = prof_report_device_label(prof_device(data->capture, row->device));
    int64_t lead = row->first_ns == PROF_UNKNOWN ? 0 : row->first_ns - data->utilisation.begin_ns;
    int64_t longest = row->gaps_listed ? row->gaps[0].duration_ns : 0;
    if (busy < 0.5 && lead > longest && !windows)
        add(steps,
            "%s was idle %s of the time, %s of it before its first work: the timeline shows what "
            "the host did then.",
            label, prof_percent(1 - busy).text, prof_duration_ns(lead).text);
    else if (busy < 0.5 && longest)
        add(steps,
            "%s was idle %s of the time, the longest for %s from %s on: the timeline shows what "
            "the host did then.",
            label, prof_percent(1 - busy).text, prof_duration_ns(longest).text,
            prof_duration_ns(row->gaps[0].start_ns).text);
    if (row->kernel_ns > 0 && row->memcpy_memset_ns > row->kernel_ns)
        add(steps,
            "%s spent more time on memcpy and memset (%s) than on kernels (%s), %s of it while "
            "kernels "
            "ran.",
            label, prof_duration_ns(row->memcpy_memset_ns).text,
            prof_duration_ns(row->kernel_ns).text, prof_duration_ns(row->overlap_ns).text);
}

static void about_kernels(const struct prof_report_data *data, struct steps *steps)
{
    if (!data->kernels.count)
        return;
    const struct prof_kernel_row *top = &data->kernels.rows[0];
    const struct prof_finding *fault = first_fault(data);
    char *name = prof_report_fit(top->name, 60);
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
    free(name);
}

/* Why there is nothing: the narrowest limit that was asked for is the likeliest. */
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
    if (data->memory.total.leaks > 0 && !prof_report_is_live(data->info))
        add(&steps, "%s allocation%s (%s) never freed: the table of leaks names the largest.",
            prof_count(data->memory.total.leaks).text, data->memory.total.leaks == 1 ? "" : "s",
            prof_bytes_of(data->memory.total.leaked_bytes).text);
    return steps.count;
}
