/* Live memory by process and kind, with what holds most of it; and who allocates, by call path,
 * which is what Enter shows, of the end of the capture that a look can afford. */
#include <stdlib.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_memory.h"
#include "tui/views.h"

enum {
    M_WHAT,
    M_PID,
    M_LIVE,
    M_COUNT,
    M_PEAK,
    M_PEAK_AT,
    M_RATE,
    M_BYTES_S,
    M_ALL,
    M_FREED,
    M_WHERE
};

static const struct tui_column memory_columns[] = {
    [M_WHAT] = {"what", "Memory", TUI_NAME, 32, 0},
    [M_PID] = {"pid", "pid", TUI_ID, 8, 0},
    [M_LIVE] = {"live_bytes", "live", TUI_BYTES, 10, 0},
    [M_COUNT] = {"live", "number", TUI_COUNT, 8, 1},
    [M_PEAK] = {"peak_bytes", "peak", TUI_BYTES, 10, 0},
    [M_PEAK_AT] = {"peak_ns", "at", TUI_NS, 9, 3},
    [M_RATE] = {"allocations_per_s", "alloc/s", TUI_REAL, 8, 0},
    [M_BYTES_S] = {"bytes_per_s", "bytes/s", TUI_RATE, 10, 2},
    [M_ALL] = {"allocations", "all", TUI_COUNT, 10, 4},
    [M_FREED] = {"freed", "freed", TUI_COUNT, 10, 5},
    [M_WHERE] = {"where", NULL, TUI_TEXT, 0, 0},
};

/* What lives by who allocated it, where stacks tell; else each allocation for itself. */
struct holder {
    int64_t process, stack, bytes, count;
    int64_t since_ns; /* the oldest */
    int kind;
};

static int by_holder_bytes(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->since_ns > y->since_ns) - (x->since_ns < y->since_ns);
}

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
        tui_table_text(table, M_WHAT, prof_memory_kind_text(m->kind));
        tui_table_number(table, M_PID, tui_pid_of(model, m->process));
        tui_table_number(table, M_LIVE, m->live_bytes);
        tui_table_number(table, M_COUNT, m->live_count);
        tui_table_number(table, M_PEAK, m->peak_bytes);
        tui_table_number(table, M_PEAK_AT, m->peak_ns);
        tui_table_real(table, M_RATE, tui_per_second(model, m->window_allocations));
        tui_table_real(table, M_BYTES_S, tui_per_second(model, m->window_bytes));
        tui_table_number(table, M_ALL, m->allocations);
        tui_table_number(table, M_FREED, m->freed);
    }
    size_t count;
    struct holder *holders = holders_of(model, &count);
    for (size_t i = 0; holders && i < count && i < LARGEST; i++)
        add_holder_row(table, input, &holders[i], (int64_t)i);
    free(holders);
    tui_table_note(table,
                   "All processes: %s live now, most %s at %s. Set in: what "
                   "holds most (by line where call stacks were taken)",
                   prof_bytes_of(model->live_bytes).text, prof_bytes_of(model->peak_bytes).text,
                   prof_duration_ns(model->peak_bytes ? model->peak_ns : PROF_UNKNOWN).text);
}

/* ---- by call path -------------------------------------------------------------------------- */

enum { A_PATH, A_KIND, A_HELD, A_SHARE, A_COUNT, A_BYTES, A_KEPT, A_GROWTH, A_VERDICT };

static const struct tui_column path_columns[] = {
    [A_PATH] = {"path", "allocated by", TUI_NAME, 0, 0},
    [A_KIND] = {"kind", "memory", TUI_TEXT, 14, 1},
    [A_HELD] = {"held_bytes", "at peak", TUI_BYTES, 9, 0},
    [A_SHARE] = {"held_share", "share", TUI_SHARE, 7, 1},
    [A_COUNT] = {"count", "allocations", TUI_COUNT, 11, 3},
    [A_BYTES] = {"bytes", "bytes", TUI_BYTES, 9, 4},
    [A_KEPT] = {"kept_bytes", "alive", TUI_BYTES, 9, 1},
    [A_GROWTH] = {"growth_bytes", "a step", TUI_BYTES, 9, 2},
    [A_VERDICT] = {"verdict", "verdict", TUI_TEXT, 7, 2},
};

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
                   profile.steps ? "; a step: what each keeps" : "");
    prof_memory_profile_free(&profile);
}
