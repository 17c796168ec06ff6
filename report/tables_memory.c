/* The tables about memory: allocations as a whole and leaks; and those of the memory report: by
 * device and kind, by call path, what is never freed, what lives briefly, what did not fit, and the
 * driver's own count. */
#include <math.h>
#include <stdio.h>

#include "libprof/base/saturate.h"
#include "report/columns.h"
#include "report/data.h"

static const struct prof_report_column memory_columns[] = {
    INT64("peak_bytes", "Peak", BYTES, 1, prof_memory_row, peak_bytes),
    INT64("peak_ns", "At", MOMENT, 3, prof_memory_row, peak_ns),
    INT64("count", "Allocations", COUNT, 1, prof_memory_row, bytes.count),
    INT64("total_bytes", "Total", BYTES, 2, prof_memory_row, bytes.sum),
    REAL("average_bytes", "Average", BYTES, 5, prof_memory_row, bytes.mean),
    INT64("min_bytes", "Min", BYTES, 0, prof_memory_row, bytes.min),
    INT64("max_bytes", "Max", BYTES, 4, prof_memory_row, bytes.max),
    INT64("freed", "Freed", COUNT, 3, prof_memory_row, freed),
    INT64("leaks", "Leaks", COUNT, 1, prof_memory_row, leaks),
    INT64("leaked_bytes", "Leaked", BYTES, 1, prof_memory_row, leaked_bytes),
    STRING("name", "Memory", WORD, 1, prof_memory_row, kind_text),
    {0},
};

static const void *memory_total(const struct prof_report_data *data)
{
    return &data->memory.total;
}

static void memory_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_memory_row *all = &data->memory.total;
    snprintf(out, size, "peak %s at %s", prof_bytes_of(all->peak_bytes).text,
             prof_duration_ns(all->peak_ns).text);
    if (all->leaks > 0)
        prof_append(out, size, ", %s of %s allocations %s (%s)", prof_count(all->leaks).text,
                    prof_count(all->bytes.count).text,
                    prof_report_is_live(data->info) || prof_report_ran_on(data->info)
                        ? "not freed so far"
                        : "never freed",
                    prof_bytes_of(all->leaked_bytes).text);
    else
        prof_append(out, size, ", everything freed");
}

const struct prof_report_table prof_report_memory_table = {
    .name = "memory",
    .part = PROF_PART_MEMORY,
    .title = "Memory",
    .none = "no allocations",
    .help = "Peak is the most that was allocated at one moment; leaks were never freed.",
    .screen_rows = 6,
    .totals = memory_totals,
    .total_row = memory_total,
    .first_rows = PROF_HEADING_ONLY,
    ROWS(prof_memory_row, memory, memory.rows, memory.count),
};

CELL(leak_kind,
     prof_report_text(prof_memory_kind_text(((const struct prof_allocation *)row)->kind)))

static const struct prof_report_column leak_columns[] = {
    INT64("bytes", "Bytes", BYTES, 1, prof_allocation, bytes),
    INT64("start_ns", "Allocated at", MOMENT, 1, prof_allocation, start_ns),
    INT64("address", "Address", NUMBER, 0, prof_allocation, address),
    BY_ID(INT64, "pid", "Process", NUMBER, 2, prof_allocation, process, process, pid),
    COMPUTED("kind", "Memory", WORD, 1, leak_kind),
    OF_ID("name", "Device", NAME, 1, prof_allocation, device, prof_report_device_name),
    {0},
};

const struct prof_report_table prof_report_leaks_table = {
    .name = "leaks",
    .part = PROF_PART_MEMORY,
    .part_order = 2,
    .title = "Largest leaks",
    .none = "no leaks",
    .help = "Allocations that were not freed when their process ended.",
    .screen_rows = 3,
    .least_rows = 1,
    ROWS(prof_allocation, leak, memory.leaks, memory.leak_count),
};

/* ---- the memory report ----------------------------------------------------------------------- */

static struct prof_report_value where(const struct prof_report_data *data, int64_t device,
                                      bool host)
{
    return host ? prof_report_text("host") : prof_report_device_name(data, device);
}

#define USAGE_ROWS(type, name_, first, number)                                                     \
    .columns = name_##_columns, .row_bytes = sizeof(struct type),                                  \
    .rows_via = 1 + offsetof(struct prof_report_data, usage),                                      \
    .rows_at = POINTER_AT(prof_report_memory, first),                                              \
    .count_at = offsetof(struct prof_report_memory, number)

/* What every table of sites and places has at hand. */
#define USE(type, key, title, unit, rank, member) INT64(key, title, unit, rank, type, use.member)

/* ---- devices and kinds ----------------------------------------------------------------------- */

#define PLACE(row) ((const struct prof_memory_place *)(row))

CELL(memory_site_name, where(data, PLACE(row)->device, PLACE(row)->host))
CELL(memory_site_share,
     prof_report_real(PLACE(row)->capacity_bytes > 0 && PLACE(row)->peak_bytes != PROF_UNKNOWN
                          ? (double)PLACE(row)->peak_bytes / (double)PLACE(row)->capacity_bytes
                          : (double)NAN))

static const struct prof_report_column place_columns[] = {
    INT64("peak_bytes", "Peak", BYTES, 1, prof_memory_place, peak_bytes),
    COMPUTED("capacity_share", "Of device", SHARE, 4, memory_site_share),
    INT64("peak_ns", "At", MOMENT, 3, prof_memory_place, peak_ns),
    USE(prof_memory_place, "held_bytes", "At device's peak", BYTES, 6, held_bytes),
    USE(prof_memory_place, "held_count", "Live blocks", COUNT, 0, held_count),
    USE(prof_memory_place, "count", "Allocations", COUNT, 1, count),
    USE(prof_memory_place, "bytes", "Allocated", BYTES, 2, bytes),
    USE(prof_memory_place, "kept_count", "Blocks kept", COUNT, 0, kept_count),
    USE(prof_memory_place, "kept_bytes", "Never freed", BYTES, 1, kept_bytes),
    REAL("growth_bytes", "Growth per iteration", BYTES, 2, prof_memory_place, growth_bytes),
    STRING("growth_phase", "In phase", NAME, 7, prof_memory_place, growth_phase),
    USE(prof_memory_place, "brief_count", "Brief", COUNT, 5, brief_count),
    USE(prof_memory_place, "brief_bytes", "Brief bytes", BYTES, 0, brief_bytes),
    USE(prof_memory_place, "brief_call_ns", "Brief calls", NS, 0, brief_call_ns),
    REAL("lifetime_median_ns", "Median life", NS, 4, prof_memory_place, lifetime_ns.median),
    INT64("capacity_bytes", "Capacity", BYTES, 0, prof_memory_place, capacity_bytes),
    INT64("device", "Device id", NUMBER, 0, prof_memory_place, device),
    STRING("kind", "Memory", WORD, 1, prof_memory_place, kind_text),
    COMPUTED("name", "Where", NAME, 1, memory_site_name),
    {0},
};

/* ---- call paths ------------------------------------------------------------------------------ */

#define SITE(row) ((const struct prof_memory_site *)(row))

CELL(site_where, where(data, SITE(row)->device, SITE(row)->host))
CELL(site_verdict, prof_report_text(prof_memory_verdict_text(SITE(row)->verdict)))

/* The columns at the end of every row of a call path. */
#define SITE_PLACE                                                                                 \
    STRING("kind", "Memory", WORD, 2, prof_memory_site, kind_text),                                \
        INT64("device", "Device id", NUMBER, 0, prof_memory_site, device),                         \
        COMPUTED("device_name", "Where", NAME, 0, site_where),                                     \
        STRING("name", "Location", NAME, 0, prof_memory_site, name),                               \
        STRING("path", "Call path", NAME, 0, prof_memory_site, path),                              \
        STRING("brief", "By", NAME, 1, prof_memory_site, brief)

static const struct prof_report_column held_columns[] = {
    USE(prof_memory_site, "held_bytes", "At the peak", BYTES, 1, held_bytes),
    REAL("held_share", "Share", SHARE, 1, prof_memory_site, held_share),
    USE(prof_memory_site, "held_count", "Blocks", COUNT, 2, held_count),
    USE(prof_memory_site, "count", "Allocations", COUNT, 3, count),
    USE(prof_memory_site, "bytes", "Allocated", BYTES, 4, bytes),
    REAL("lifetime_median_ns", "Median life", NS, 5, prof_memory_site, lifetime_median_ns),
    SITE_PLACE,
    {0},
};

static const struct prof_report_column kept_columns[] = {
    COMPUTED("verdict", "Verdict", WORD, 1, site_verdict),
    REAL("growth_bytes", "Kept per iteration", BYTES, 1, prof_memory_site, growth_bytes),
    USE(prof_memory_site, "kept_bytes", "Kept", BYTES, 1, kept_bytes),
    USE(prof_memory_site, "kept_count", "Blocks", COUNT, 2, kept_count),
    INT64("steps_keeping", "Iterations", COUNT, 3, prof_memory_site, steps_keeping),
    STRING("phase", "In phase", NAME, 4, prof_memory_site, phase),
    USE(prof_memory_site, "count", "Allocations", COUNT, 5, count),
    SITE_PLACE,
    {0},
};

static void kept_totals(const struct prof_report_data *data, char *out, size_t size)
{
    int64_t leaks = 0, bytes = 0;
    const char *phase = NULL;
    double growth = prof_memory_leak_growth(&data->usage->profile, data->usage->kept,
                                            data->usage->kept_count, PROF_UNKNOWN, &phase);
    for (size_t i = 0; i < data->usage->kept_count; i++) {
        const struct prof_memory_site *site = &data->usage->kept[i];
        if (site->verdict != PROF_MEMORY_LEAK)
            continue;
        leaks++;
        bytes = prof_add(bytes, site->use.kept_bytes);
    }
    bool named = phase && data->usage->profile.phase_count > 1;
    if (leaks)
        snprintf(out, size, "%s of them %s: %s so far, %s per iteration%s%s",
                 prof_count(leaks).text, leaks == 1 ? "leaks" : "leak", prof_bytes_of(bytes).text,
                 prof_bytes(growth).text, named ? " of " : "", named ? phase : "");
    else
        snprintf(out, size, "%s",
                 data->usage->profile.steps ? "none of them grows with the iterations"
                                            : "whether they leak is not known");
}

static struct prof_report_value brief_a_step(const struct prof_report_data *data, const void *row)
{
    int64_t steps = data->usage->profile.steps + data->usage->profile.warm_up;
    return prof_report_real(steps > 0 ? (double)SITE(row)->use.brief_count / (double)steps
                                      : (double)NAN);
}

static const struct prof_report_column brief_columns[] = {
    USE(prof_memory_site, "brief_call_ns", "Time of calls", NS, 1, brief_call_ns),
    USE(prof_memory_site, "brief_count", "Allocations", COUNT, 1, brief_count),
    COMPUTED("brief_a_step", "Times per iteration", RATIO, 2, brief_a_step),
    USE(prof_memory_site, "brief_bytes", "Bytes", BYTES, 2, brief_bytes),
    REAL("lifetime_median_ns", "Median life", NS, 4, prof_memory_site, lifetime_median_ns),
    SITE_PLACE,
    {0},
};

/* ---- lifetimes ------------------------------------------------------------------------------- */

#define LIFE(row) ((const struct prof_report_lifetime *)(row))

CELL(life_where, where(data, LIFE(row)->place->device, LIFE(row)->place->host))

static const struct prof_report_column life_columns[] = {
    REAL("from_ns", "From", NS, 1, prof_report_lifetime, from_ns),
    REAL("to_ns", "To", NS, 1, prof_report_lifetime, to_ns),
    INT64("count", "Allocations", COUNT, 1, prof_report_lifetime, count),
    REAL("share", "Share", SHARE, 1, prof_report_lifetime, share),
    INT64("duration_ns", "Longest", NS, 1, prof_report_lifetime, longest.lived_ns),
    INT64("start_ns", "Allocated at", MOMENT, 1, prof_report_lifetime, longest.start_ns),
    COMPUTED("name", "Where", NAME, 1, life_where),
    {0},
};

/* ---- what did not fit ------------------------------------------------------------------------ */

#define FAILURE(row) ((const struct prof_memory_failure *)(row))

static struct prof_report_value failure_where(const struct prof_report_data *data, const void *row)
{
    const struct prof_memory_failure *f = FAILURE(row);
    return f->host || f->device ? where(data, f->device, f->host)
                                : (struct prof_report_value){.kind = PROF_VALUE_NONE};
}

static const struct prof_report_column failure_columns[] = {
    INT64("time_ns", "At", MOMENT, 1, prof_memory_failure, time_ns),
    INT64("bytes", "Requested", BYTES, 1, prof_memory_failure, bytes),
    INT64("tries", "Tries", COUNT, 4, prof_memory_failure, tries),
    INT64("live_bytes", "Allocated", BYTES, 1, prof_memory_failure, live_bytes),
    INT64("free_bytes", "Free by driver", BYTES, 2, prof_memory_failure, free_bytes),
    INT64("capacity_bytes", "Capacity", BYTES, 3, prof_memory_failure, capacity_bytes),
    INT64("result", "Code", NUMBER, 4, prof_memory_failure, result),
    STRING("result_text", "Result", WORD, 3, prof_memory_failure, result_text),
    STRING("kind", "Memory", WORD, 5, prof_memory_failure, kind_text),
    COMPUTED("device_name", "Where", NAME, 0, failure_where),
    STRING("path", "Call path", NAME, 0, prof_memory_failure, path),
    STRING("brief", "By", NAME, 1, prof_memory_failure, brief),
    {0},
};

#define HOLDER(row) ((const struct prof_report_holder *)(row))

static struct prof_report_value holder_share(const struct prof_report_data *data, const void *row)
{
    (void)data;
    int64_t live = HOLDER(row)->failure->live_bytes;
    return prof_report_real(live > 0 ? (double)HOLDER(row)->bytes / (double)live : (double)NAN);
}

static const struct prof_report_column holder_columns[] = {
    INDIRECT(INT64, "time_ns", "At", MOMENT, 1, prof_report_holder, failure, time_ns),
    INT64("bytes", "Live", BYTES, 1, prof_report_holder, bytes),
    COMPUTED("share", "Share", SHARE, 1, holder_share),
    INDIRECT(STRING, "kind", "Memory", WORD, 2, prof_report_holder, site, kind_text),
    INDIRECT(STRING, "path", "Call path", NAME, 0, prof_report_holder, site, path),
    INDIRECT(STRING, "brief", "By", NAME, 1, prof_report_holder, site, brief),
    {0},
};

/* ---- the driver's count ---------------------------------------------------------------------- */

#define DRIVER(row) ((const struct prof_memory_driver *)(row))

CELL(driver_where, where(data, DRIVER(row)->device, false))

static const struct prof_report_column driver_columns[] = {
    INT64("used_bytes", "In use", BYTES, 1, prof_memory_driver, used_bytes),
    INT64("tracked_bytes", "Allocations", BYTES, 1, prof_memory_driver, tracked_bytes),
    INT64("other_bytes", "Others", BYTES, 1, prof_memory_driver, other_bytes),
    INT64("context_bytes", "Context, code", BYTES, 1, prof_memory_driver, context_bytes),
    INT64("granularity_bytes", "Granularity", BYTES, 2, prof_memory_driver, granularity_bytes),
    INT64("rest_bytes", "Rest", BYTES, 1, prof_memory_driver, rest_bytes),
    REAL("worst_share", "Worst rest", SHARE, 1, prof_memory_driver, worst_share),
    INT64("time_ns", "At", MOMENT, 4, prof_memory_driver, time_ns),
    INT64("samples", "Samples", COUNT, 5, prof_memory_driver, samples),
    INT64("compared", "Compared", COUNT, 0, prof_memory_driver, compared),
    INT64("total_bytes", "There is", BYTES, 4, prof_memory_driver, total_bytes),
    INT64("device", "Device id", NUMBER, 0, prof_memory_driver, device),
    COMPUTED("name", "Device", NAME, 1, driver_where),
    {0},
};

#define PATHS 56 /* "grow (model.py:125) < main (train.py:30) in train > step" */

static const struct prof_report_table places_table = {
    .name = "places",
    .part = PROF_PART_NONE,
    .title = "Memory",
    .none = "no allocations",
    .help = "Peak is the most that was allocated at one moment; a row `all` of each device, then "
            "its kinds. Growth per iteration: by how much what a phase allocated and did not free "
            "yet grows from one of its iterations to the next, of the phase where that is most. "
            "Brief: freed in the iteration that made it, or within a millisecond.",
    .screen_rows = 12,
    USAGE_ROWS(prof_memory_place, place, profile.places, profile.place_count),
};

static const struct prof_report_table failures_table = {
    .name = "failures",
    .part = PROF_PART_MEMORY,
    .title = "Out of memory",
    .none = "no allocation failed for lack of memory",
    .help = "Allocations that failed for lack of memory: how much was requested, and what was "
            "allocated then.",
    .name_cells = PATHS,
    .screen_rows = 5,
    .optional = true,
    USAGE_ROWS(prof_memory_failure, failure, profile.failures, profile.failure_count),
};

static const struct prof_report_table holders_table = {
    .name = "holders",
    .part = PROF_PART_MEMORY,
    .title = "Live at that time",
    .none = "nothing",
    .help = "The call paths that held most when an allocation failed.",
    .name_cells = PATHS,
    .screen_rows = 10,
    .optional = true,
    USAGE_ROWS(prof_report_holder, holder, holders, holder_count),
};

static const struct prof_report_table held_table = {
    .name = "held",
    .part = PROF_PART_MEMORY,
    .title = "Live at peak",
    .none = "nothing",
    .help = "By call path: what was live when its device's memory was fullest.",
    .name_cells = PATHS,
    .screen_rows = 12,
    USAGE_ROWS(prof_memory_site, held, held, held_count),
};

static const struct prof_report_table kept_table = {
    .name = "kept",
    .part = PROF_PART_MEMORY,
    .title = "Kept",
    .none = "nothing",
    .help = "Leak: iterations after warm-up go on keeping more, until the last one is over. State: "
            "they do not. Both by the iterations of the phase that keeps most.",
    .name_cells = PATHS,
    .screen_rows = 10,
    .totals = kept_totals,
    USAGE_ROWS(prof_memory_site, kept, kept, kept_count),
};

static const struct prof_report_table brief_table = {
    .name = "brief",
    .part = PROF_PART_MEMORY,
    .title = "Freed at once",
    .none = "nothing lives briefly",
    .help = "Allocations freed in the iteration that made them, or within a millisecond, and the "
            "host's time in the calls that made and freed them.",
    .name_cells = PATHS,
    .screen_rows = 6,
    .optional = true,
    USAGE_ROWS(prof_memory_site, brief, brief, brief_count),
};

static const struct prof_report_table lifetimes_table = {
    .name = "lifetimes",
    .part = PROF_PART_MEMORY,
    .title = "Lifetimes",
    .none = "nothing was freed",
    .help = "How long freed memory had lived, and when the longest-lived allocation of each class "
            "was made.",
    .screen_rows = 12,
    .optional = true,
    USAGE_ROWS(prof_report_lifetime, life, lifetimes, lifetime_count),
};

static const struct prof_report_table driver_table = {
    .name = "driver",
    .part = PROF_PART_MEMORY,
    .part_order = 3,
    .title = "By the driver's count",
    .none = "the driver's count was not sampled",
    .help = "When most was in use: in use = allocations + others + context, code + granularity + "
            "rest. Worst rest: of all samples, as a share of what was in use.",
    .screen_rows = 8,
    .optional = true,
    USAGE_ROWS(prof_memory_driver, driver, profile.drivers, profile.driver_count),
};

const struct prof_report_table *const prof_report_memory_tables[] = {
    &places_table, &failures_table,  &holders_table,           &held_table,   &kept_table,
    &brief_table,  &lifetimes_table, &prof_report_pools_table, &driver_table, NULL,
};
