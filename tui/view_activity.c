/* Streams, memcpys and processes: what the model adds up beside the kernels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_memory.h"
#include "tui/views.h"

/* PROF_UNKNOWN for a process that is not known. */
static int64_t tui_pid_of(const struct tui_model *model, int64_t process)
{
    const struct tui_process *p = tui_model_process(model, process);
    return p ? p->values.pid : PROF_UNKNOWN;
}

/* ---- streams --------------------------------------------------------------------------------- */

#define STREAM_COLUMNS(COLUMN)                                                                     \
    COLUMN(S_NAME, "stream", "Stream", NAME, 0, 0)                                                 \
    COLUMN(S_PID, "pid", "pid", NUMBER, 8, 1)                                                      \
    COLUMN(S_DEVICE, "device", "device", WORD, 20, 3)                                              \
    COLUMN(S_SPARK, NULL, "last minute", WORD, 30, 2, .spark = true)                               \
    COLUMN(S_BUSY, "busy_share", "busy%", SHARE, 7, 0)                                             \
    COLUMN(S_KERNELS, "kernels_per_s", "kern/s", RATIO, 8, 0)                                      \
    COLUMN(S_COPIES, "memcpy_memset_per_s", "memcpy,set/s", RATIO, 12, 2)                          \
    COLUMN(S_IDLE, "idle_s", "idle s", COUNT, 7, 0)                                                \
    COLUMN(S_TIME, "all_ns", "all time", NS, 9, 4)                                                 \
    COLUMN(S_PRIORITY, "priority", "prio", NUMBER, 5, 6, .if_known = true)                         \
    COLUMN(S_API, "api", "api", WORD, 8, 5)
TUI_COLUMNS(stream_columns, STREAM_COLUMNS)

void tui_stream_name(const struct tui_stream *stream, char *out, size_t size)
{
    if (!stream) {
        snprintf(out, size, "n/a");
        return;
    }
    const struct prof_stream *s = &stream->values;
    bool number = s->native != PROF_UNKNOWN && s->native < 1000000; /* else a handle */
    snprintf(out, size, "%s%lld%s%s", number ? "" : "queue ",
             (long long)(number ? s->native : s->id), s->name || s->is_default ? " " : "",
             s->name         ? s->name
             : s->is_default ? "(default)"
                             : "");
}

static bool has_several_devices(const struct tui_model *model)
{
    bool several = false;
    for (size_t i = 1; i < model->devices.count; i++)
        several |= model->devices.data[i].physical != model->devices.data[0].physical;
    return several;
}

void tui_device_name(const struct tui_model *model, int64_t device, char *out, size_t size)
{
    const struct prof_device *d = tui_model_device(model, device);
    const char *name = !d ? NULL : d->label ? d->label : d->name;
    if (d && d->title && has_several_devices(model))
        snprintf(out, size, "%s %s", d->title, name ? name : "");
    else
        snprintf(out, size, "%s", name ? name : "n/a");
}

/* Devices by unions of intervals: side by side, idle. Out of the last events. */
static void note_concurrency(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_utilisation use;
    if (!input->tail || prof_utilisation(input->tail, &input->filter, 1, 0, &use, NULL))
        return;
    for (size_t i = 0; i < use.count && i < 4; i++) {
        const struct prof_utilisation_row *row = &use.rows[i];
        char device[120];
        tui_device_name(input->model, row->device, device, sizeof device);
        double window = row->window_ns > 0 ? (double)row->window_ns : NAN;
        tui_table_note(
            table,
            "%s, last %s of events: busy %s, idle %s, memcpy and memset under kernels %s, at most "
            "%s side by side, longest gap %s",
            device, prof_duration_ns(row->window_ns).text,
            prof_percent((double)row->busy_ns / window).text,
            prof_percent((double)row->idle_ns / window).text,
            prof_duration_ns(row->overlap_ns).text,
            prof_counted(row->max_concurrent_kernels, "kernel", "kernels").text,
            prof_duration_ns(row->gaps_listed ? row->gaps[0].duration_ns : PROF_UNKNOWN).text);
    }
    prof_utilisation_free(&use);
}

void tui_fill_streams(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    tui_table_begin(table, stream_columns, sizeof stream_columns / sizeof *stream_columns);
    table->sort = S_BUSY;
    for (size_t i = 0; i < model->streams.count; i++) {
        const struct tui_stream *s = &model->streams.data[i];
        char device[120];
        tui_device_name(model, s->values.device, device, sizeof device);
        int64_t ns = prof_add(s->window_kernels.ns, s->window_copies.ns);
        int64_t now = tui_last_second(model);
        char name[120];
        tui_table_row(table, s->values.id, 0, ns ? TUI_NORMAL : TUI_DIM);
        tui_stream_name(s, name, sizeof name);
        tui_table_text(table, S_NAME, name);
        tui_table_number(table, S_PID, tui_pid_of(model, s->values.process));
        tui_table_text(table, S_DEVICE, device);
        tui_table_spark(table, S_SPARK, s->spark_us, 1e6);
        tui_table_real(table, S_BUSY, tui_wall_share(model, ns));
        tui_table_real(table, S_KERNELS, tui_per_second(model, s->window_kernels.count));
        tui_table_real(table, S_COPIES, tui_per_second(model, s->window_copies.count));
        tui_table_number(table, S_IDLE,
                         s->last_second == PROF_UNKNOWN || now < s->last_second ||
                                 now - s->last_second > TUI_MOST_SECONDS
                             ? PROF_UNKNOWN
                             : now - s->last_second);
        tui_table_number(table, S_TIME, prof_add(s->kernels.ns, s->copies.ns));
        tui_table_number(table, S_PRIORITY, s->values.priority);
        tui_table_text(table, S_API, s->values.api);
    }
    note_concurrency(table, input);
}

/* ---- memcpys --------------------------------------------------------------------------------- */

#define COPY_COLUMNS(COLUMN)                                                                       \
    COLUMN(T_WAY, "name", "Kind", WORD, 9, 0)                                                      \
    COLUMN(T_KINDS, "memory", "memory", WORD, 19, 0)                                               \
    COLUMN(T_COUNT, "count_per_s", "count/s", RATIO, 8, 0)                                         \
    COLUMN(T_BYTES, "bytes", "bytes", BYTES, 9, 0)                                                 \
    COLUMN(T_BYTES_S, "bytes_per_s", "of wall", RATE, 10, 3)                                       \
    COLUMN(T_RATE, "rate_bytes_per_s", "while running", RATE, 13, 0)                               \
    COLUMN(T_CEILING, "ceiling_bytes_per_s", "ceiling", RATE, 10, 2, .if_known = true)             \
    COLUMN(T_OF, "ceiling_share", "of it", SHARE, 7, 1, .if_known = true)                          \
    COLUMN(T_TIME, "total_ns", "time", NS, 9, 2)                                                   \
    COLUMN(T_RUN, "all_count", "all", COUNT, 10, 4)                                                \
    COLUMN(T_RUN_BYTES, "all_bytes", "all bytes", BYTES, 10, 5)                                    \
    COLUMN(T_RUN_NS, "all_ns", "all time", NS, 9, 6)                                               \
    COLUMN(T_UNFINISHED, "unfinished", NULL, COUNT, 0, 0)                                          \
    COLUMN(T_SIZES, "sizes", "sizes <4K <64K <1M <16M <256M more", WORD, 36, 7)
TUI_COLUMNS(copy_columns, COPY_COLUMNS)

static double bytes_per_second_of(int64_t bytes, int64_t ns)
{
    return ns > 0 ? (double)bytes * 1e9 / (double)ns : NAN;
}

void tui_fill_transfers(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    tui_table_begin(table, copy_columns, sizeof copy_columns / sizeof *copy_columns);
    table->sort = T_TIME;
    bool has_ceiling = false;
    for (size_t i = 0; i < model->copies.count; i++) {
        const struct tui_copies *c = &model->copies.data[i];
        bool fill = c->kind == PROF_COPY_MEMSET;
        double rate = bytes_per_second_of(c->window.rated_bytes, c->window.rated_ns);
        has_ceiling |= !isnan(c->ceiling);
        tui_table_row(table, (int64_t)i, 0, c->window.count ? TUI_NORMAL : TUI_DIM);
        tui_table_text(table, T_WAY, prof_copy_kind_text(c->kind));
        tui_table_format(table, T_KINDS, fill ? "%.0s%s" : "%s > %s",
                         prof_memory_kind_text(c->source_kind),
                         prof_memory_kind_text(c->target_kind));
        tui_table_real(table, T_COUNT, tui_per_second(model, c->window.count));
        tui_table_number(table, T_BYTES, c->window.bytes);
        tui_table_real(table, T_BYTES_S, tui_per_second(model, c->window.bytes));
        tui_table_real(table, T_RATE, rate);
        tui_table_real(table, T_CEILING, c->ceiling);
        tui_table_real(table, T_OF, rate / c->ceiling);
        tui_table_number(table, T_TIME, c->window.ns);
        tui_table_number(table, T_RUN, c->all.count);
        tui_table_number(table, T_RUN_BYTES, c->all.bytes);
        tui_table_number(table, T_RUN_NS, c->all.ns);
        tui_table_number(table, T_UNFINISHED, c->unfinished);
        tui_table_format(table, T_SIZES, "%lld %lld %lld %lld %lld %lld", (long long)c->classes[0],
                         (long long)c->classes[1], (long long)c->classes[2],
                         (long long)c->classes[3], (long long)c->classes[4],
                         (long long)c->classes[5]);
    }
    if (!model->copies.count && model->ever_read)
        tui_table_note(table, "No memcpy or memset has ended so far.");
    else if (model->copies.count && !has_ceiling)
        tui_table_note(table, "How fast memcpys could be: not measured (perfkit device --measure)");
}

/* ---- processes ------------------------------------------------------------------------------- */

#define PROCESS_COLUMNS(COLUMN)                                                                    \
    COLUMN(P_COMMAND, "name", NULL, WORD, 0, 0)                                                    \
    COLUMN(P_SHORT, NULL, "Process", NAME, 0, 0)                                                   \
    COLUMN(P_PID, "pid", "pid", NUMBER, 8, 0)                                                      \
    COLUMN(P_RANK, "rank", "rank", NUMBER, 4, 0, .if_known = true)                                 \
    COLUMN(P_LOCAL, "local_rank", "local", NUMBER, 5, 6, .if_known = true)                         \
    COLUMN(P_WORLD, "world_size", "of", NUMBER, 4, 2, .if_known = true)                            \
    COLUMN(P_STATE, "state", "state", WORD, 11, 0)                                                 \
    COLUMN(P_TIME, "kernel_ns", "kernels", NS, 9, 0)                                               \
    COLUMN(P_SHARE, "wall_share", "wall%", SHARE, 7, 0)                                            \
    COLUMN(P_KERNELS, "kernels_per_s", "kern/s", RATIO, 8, 1)                                      \
    COLUMN(P_COPIED, "memcpy_bytes", "memcpy", BYTES, 10, 3)                                       \
    COLUMN(P_LIVE, "live_bytes", "memory", BYTES, 10, 1)                                           \
    COLUMN(P_HOST, "host", "host", WORD, 14, 5, .if_known = true)                                  \
    COLUMN(P_RUN_KERNELS, "all_kernels", "all kernels", COUNT, 12, 6)                              \
    COLUMN(P_RUN_NS, "all_kernel_ns", "all time", NS, 9, 7)
TUI_COLUMNS(process_columns, PROCESS_COLUMNS)

static void add_process_state(struct tui_table *table, const struct prof_process *p)
{
    if (p->exit_signal != PROF_UNKNOWN)
        tui_table_format(table, P_STATE, "signal %lld", (long long)p->exit_signal);
    else if (p->exit_status != PROF_UNKNOWN)
        tui_table_format(table, P_STATE, "exit %lld", (long long)p->exit_status);
    else
        tui_table_text(table, P_STATE,
                       p->end_ns != PROF_UNKNOWN && p->end_reason ? p->end_reason : "running");
}

const char *tui_short_command(const char *command)
{
    const char *end = command ? command + strcspn(command, " ") : NULL, *base = command;
    for (const char *c = command; c && c < end; c++) {
        if (*c == '/' && c + 1 < end)
            base = c + 1;
    }
    return base;
}

void tui_fill_processes(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    int64_t quiet = 0;
    tui_table_begin(table, process_columns, sizeof process_columns / sizeof *process_columns);
    table->sort = P_TIME;
    for (size_t i = 0; i < model->processes.count; i++) {
        const struct tui_process *p = &model->processes.data[i];
        if (!p->values.has_events && !p->kernels.count && model->processes.count > 1) {
            quiet++;
            continue;
        }
        bool ended = p->values.end_ns != PROF_UNKNOWN;
        tui_table_row(table, p->values.id, 0, ended ? TUI_DIM : TUI_NORMAL);
        tui_table_text(table, P_COMMAND, p->values.command);
        tui_table_text(table, P_SHORT, tui_short_command(p->values.command));
        tui_table_number(table, P_PID, p->values.pid);
        tui_table_number(table, P_RANK, p->values.rank);
        tui_table_number(table, P_LOCAL, p->values.local_rank);
        tui_table_number(table, P_WORLD, p->values.world_size);
        add_process_state(table, &p->values);
        tui_table_number(table, P_TIME, p->window_kernels.ns);
        tui_table_real(table, P_SHARE, tui_wall_share(model, p->window_kernels.ns));
        tui_table_real(table, P_KERNELS, tui_per_second(model, p->window_kernels.count));
        tui_table_number(table, P_COPIED, p->window_copies.bytes);
        tui_table_number(table, P_LIVE, p->live_bytes);
        tui_table_text(table, P_HOST, p->values.host);
        tui_table_number(table, P_RUN_KERNELS, p->kernels.count);
        tui_table_number(table, P_RUN_NS, p->kernels.ns);
    }
    if (quiet)
        tui_table_note(table, "and %s without any GPU or NVTX event",
                       prof_counted(quiet, "process", "processes").text);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Live memory by process, device and kind, with what holds most of it; and the code that allocates,
 * by call path, which Enter shows, of the end of the capture that a look can afford. */

#define MEMORY_COLUMNS(COLUMN)                                                                     \
    COLUMN(M_WHAT, "name", "Memory", NAME, 32, 0)                                                  \
    COLUMN(M_PID, "pid", "pid", NUMBER, 8, 0)                                                      \
    COLUMN(M_LIVE, "live_bytes", "live", BYTES, 10, 0)                                             \
    COLUMN(M_COUNT, "live_count", "number", COUNT, 8, 1)                                           \
    COLUMN(M_PEAK, "peak_bytes", "peak", BYTES, 10, 0)                                             \
    COLUMN(M_PEAK_AT, "peak_ns", "at", NS, 9, 3)                                                   \
    COLUMN(M_RATE, "count_per_s", "alloc/s", RATIO, 8, 0)                                          \
    COLUMN(M_BYTES_S, "bytes_per_s", "bytes/s", RATE, 10, 2)                                       \
    COLUMN(M_ALL, "count", "all", COUNT, 10, 4)                                                    \
    COLUMN(M_FREED, "freed", "freed", COUNT, 10, 5)                                                \
    COLUMN(M_WHERE, "where", NULL, WORD, 0, 0)
TUI_COLUMNS(memory_columns, MEMORY_COLUMNS)

/* Live memory by the line that allocated it, where there are stacks; else each allocation by
 * itself. */
struct holder {
    int64_t process, stack, bytes, count;
    int64_t since_ns; /* the oldest */
    int kind;
};

PROF_ORDER(by_holder_bytes, struct holder, PROF_DESCENDING(bytes), PROF_ASCENDING(since_ns))

#define LARGEST 20

/* All of them, largest first; NULL: out of memory. */
static struct holder *holders_of(const struct tui_model *model, size_t *count)
{
    struct prof_map known = {0};
    struct holder *list = calloc(model->live.count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; list && i < model->live.count; i++) {
        const struct tui_allocation *a = &model->live.data[i];
        uint64_t key = (uint64_t)a->stack << 6 | (uint64_t)(a->kind & 63);
        const uint64_t *at = a->stack ? prof_map_get(&known, key) : NULL;
        struct holder *holder = at ? &list[*at] : &list[*count];
        if (!at) {
            *holder = (struct holder){a->process, a->stack, 0, 0, a->start_ns, a->kind};
            if (a->stack && !prof_map_put(&known, key, *count))
                break;
            (*count)++;
        }
        holder->bytes = prof_add(holder->bytes, a->bytes);
        holder->count++;
        if (a->start_ns < holder->since_ns)
            holder->since_ns = a->start_ns;
    }
    prof_map_free(&known);
    if (*count)
        qsort(list, *count, sizeof *list, by_holder_bytes);
    return list;
}

static void add_holder_row(struct tui_table *table, const struct tui_view_input *input,
                           const struct holder *h, int64_t number)
{
    const char *place = tui_kept_place(input->kept, h->stack);
    tui_table_row(table, -number - 1, 1, TUI_DIM);
    tui_table_format(table, M_WHAT, "%s since %s", place ? place : prof_memory_kind_text(h->kind),
                     prof_duration_ns(h->since_ns).text);
    tui_table_text(table, M_WHERE, place);
    tui_table_number(table, M_PID, tui_pid_of(input->model, h->process));
    tui_table_number(table, M_LIVE, h->bytes);
    tui_table_number(table, M_COUNT, h->count);
    for (size_t column = M_PEAK; column <= M_FREED; column++)
        tui_table_blank(table, column);
}

void tui_fill_memory(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    tui_table_begin(table, memory_columns, sizeof memory_columns / sizeof *memory_columns);
    table->sort = M_LIVE;
    for (size_t i = 0; i < model->memory.count; i++) {
        const struct tui_memory *m = &model->memory.data[i];
        tui_table_row(table, (int64_t)i, 0, TUI_NORMAL);
        const struct prof_device *device = tui_model_device(model, m->device);
        bool named = device && device->title && has_several_devices(model);
        tui_table_format(table, M_WHAT, "%s%s%s", prof_memory_kind_text(m->kind), named ? ", " : "",
                         named ? device->title : "");
        tui_table_number(table, M_PID, tui_pid_of(model, m->process));
        tui_table_number(table, M_LIVE, m->live_bytes);
        tui_table_number(table, M_COUNT, m->live_count);
        tui_table_number(table, M_PEAK, m->peak_bytes);
        tui_table_number(table, M_PEAK_AT, m->peak_ns);
        tui_table_real(table, M_RATE, tui_per_second(model, m->window.count));
        tui_table_real(table, M_BYTES_S, tui_per_second(model, m->window.bytes));
        tui_table_number(table, M_ALL, m->all.count);
        tui_table_number(table, M_FREED, m->freed);
    }
    size_t count;
    PROF_FREED struct holder *holders = holders_of(model, &count);
    for (size_t i = 0; holders && i < count && i < LARGEST; i++)
        add_holder_row(table, input, &holders[i], (int64_t)i);
    tui_table_note(table,
                   "All processes: %s live now, most %s at %s. Set in: what holds most (by line "
                   "where call stacks were taken)",
                   prof_bytes_of(model->live_bytes).text, prof_bytes_of(model->peak_bytes).text,
                   prof_duration_ns(model->peak_bytes ? model->peak_ns : PROF_UNKNOWN).text);
}

/* ---- by call path ---------------------------------------------------------------------------- */

#define PATH_COLUMNS(COLUMN)                                                                       \
    COLUMN(A_PATH, "path", "allocated by", NAME, 0, 0)                                             \
    COLUMN(A_KIND, "kind", "memory", WORD, 14, 1)                                                  \
    COLUMN(A_HELD, "held_bytes", "at peak", BYTES, 9, 0)                                           \
    COLUMN(A_SHARE, "held_share", "share", SHARE, 7, 1)                                            \
    COLUMN(A_COUNT, "count", "allocations", COUNT, 11, 3)                                          \
    COLUMN(A_BYTES, "bytes", "bytes", BYTES, 9, 4)                                                 \
    COLUMN(A_KEPT, "kept_bytes", "alive", BYTES, 9, 1)                                             \
    COLUMN(A_GROWTH, "growth_bytes", "growth", BYTES, 9, 2)                                        \
    COLUMN(A_VERDICT, "verdict", "verdict", WORD, 7, 2)
TUI_COLUMNS(path_columns, PATH_COLUMNS)

#define MOST 200

static void add_site(struct tui_table *table, const struct prof_memory_site *site, int64_t number)
{
    bool leaks = site->verdict == PROF_MEMORY_LEAK;
    tui_table_row(table, number, 0, leaks ? TUI_WARN : TUI_NORMAL);
    tui_table_text(table, A_PATH, site->brief);
    tui_table_text(table, A_KIND, site->kind_text);
    tui_table_number(table, A_HELD, site->use.held_bytes);
    tui_table_real(table, A_SHARE, site->held_share);
    tui_table_number(table, A_COUNT, site->use.count);
    tui_table_number(table, A_BYTES, site->use.bytes);
    tui_table_number(table, A_KEPT, site->use.kept_bytes);
    tui_table_real(table, A_GROWTH, site->growth_bytes);
    tui_table_text(table, A_VERDICT, prof_memory_verdict_text(site->verdict));
}

void tui_fill_memory_paths(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_memory_profile profile;
    struct prof_error err = {0};
    tui_table_begin(table, path_columns, sizeof path_columns / sizeof *path_columns);
    table->sort = A_HELD;
    if (!tui_has_events(table, input))
        return;
    if (prof_memory_profile(input->tail, &input->filter, &profile, &err)) {
        tui_table_failure(table, &err);
        return;
    }
    for (size_t i = 0; i < profile.site_count && i < MOST; i++)
        add_site(table, &profile.sites[i], (int64_t)i);
    if (profile.why_none)
        tui_table_note(table, "Not available: %s", profile.why_none);
    if (profile.failed)
        tui_table_note(table, "%s found no room",
                       prof_counted(profile.failed, "allocation", "allocations").text);
    tui_table_note(table, "At peak: of what was allocated last%s. Alive: not freed so far",
                   profile.steps ? "; growth: what each iteration keeps" : "");
    prof_memory_profile_free(&profile);
}
