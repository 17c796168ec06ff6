/* The host: where its threads are (samples of the processors), and which lines ask for the devices'
 * work (call stacks). Of the end of the capture that a look can afford. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_cpu.h"
#include "libprof/include/prof_launch_lines.h"
#include "libprof/include/prof_stack.h"
#include "tui/views.h"

enum {
    H_WHERE,
    H_CPU,
    H_SHARE,
    H_IDLE,
    H_BLOCKED,
    H_WAITING,
    H_LAUNCHED,
    H_COUNT,
    H_WORK,
    H_THREADS
};

static const struct tui_column columns[] = {
    [H_WHERE] = {"where", "Host", TUI_NAME, 26, 0},
    [H_CPU] = {"cpu_ns", "cpu", TUI_NS, 8, 0, .if_known = true},
    [H_SHARE] = {"cpu_share", "cpu%", TUI_SHARE, 7, 1, .if_known = true},
    [H_IDLE] = {"idle_ns", "GPU idle", TUI_NS, 8, 0, .if_known = true},
    [H_BLOCKED] = {"blocked_ns", "blocked", TUI_NS, 8, 2, .if_known = true},
    [H_WAITING] = {"waiting_ns", "queued", TUI_NS, 8, 5, .if_known = true},
    [H_LAUNCHED] = {"launched_ns", "launched", TUI_NS, 8, 0, .if_known = true},
    [H_COUNT] = {"operations", "operations", TUI_COUNT, 10, 4, .if_known = true},
    [H_WORK] = {"work", "most of it", TUI_TEXT, 24, 3, .if_known = true},
    [H_THREADS] = {"threads", "threads", TUI_TEXT, 9, 6, .if_known = true},
};

#define MOST_ROWS 200

/* Functions of one text: those without a name yet are told by their module. */
struct place {
    char where[200];
    bool launches;
    int64_t cpu_ns, idle_ns, blocked_ns, waiting_ns;
};

struct places {
    struct prof_names known; /* text and whether the thread launches -> number */
    PROF_ARRAY(struct place) list;
};

static void name_place(const struct prof_cpu_function *f, char *out, size_t size)
{
    const char *slash = f->module ? strrchr(f->module, '/') : NULL;
    const char *module = slash ? slash + 1 : f->module;
    size_t length = module ? strlen(module) : 0;
    if (length && !strncmp(f->function, module, length) && !strncmp(f->function + length, "+0x", 3))
        snprintf(out, size, "%s", module);
    else
        snprintf(out, size, "%.*s", (int)size - 1, f->where);
}

static bool add_function(struct places *places, const struct prof_cpu_function *f)
{
    const int64_t *ns = f->times.ns;
    char key[201] = {f->launches ? 'l' : 'o'};
    name_place(f, key + 1, sizeof key - 1);
    uint32_t *known = prof_names_get(&places->known, key, strlen(key));
    struct place *place = known ? &places->list.data[*known] : prof_array_add(&places->list);
    if (!place)
        return false;
    if (!known) {
        *place = (struct place){.launches = f->launches};
        memcpy(place->where, key + 1, sizeof place->where);
        if (!prof_names_put(&places->known, key, strlen(key), (uint32_t)places->list.count - 1))
            return false;
    }
    place->cpu_ns = prof_add(place->cpu_ns, prof_add(ns[PROF_CPU_USER], ns[PROF_CPU_KERNEL]));
    place->idle_ns = prof_add(place->idle_ns, prof_cpu_total(f->times.idle_ns));
    place->blocked_ns = prof_add(place->blocked_ns, ns[PROF_CPU_BLOCKED]);
    place->waiting_ns = prof_add(place->waiting_ns, ns[PROF_CPU_PREEMPTED]);
    return true;
}

static void add_place(struct tui_table *table, const struct place *place, int64_t all_ns)
{
    tui_table_row(table, (int64_t)table->rows.count, 0, place->launches ? TUI_NORMAL : TUI_DIM);
    tui_table_text(table, H_WHERE, place->where);
    tui_table_number(table, H_CPU, place->cpu_ns);
    tui_table_real(table, H_SHARE, all_ns > 0 ? (double)place->cpu_ns / (double)all_ns : NAN);
    tui_table_number(table, H_IDLE, place->idle_ns);
    tui_table_number(table, H_BLOCKED, place->blocked_ns);
    tui_table_number(table, H_WAITING, place->waiting_ns);
    tui_table_text(table, H_THREADS, place->launches ? "launching" : "others");
    for (size_t column = H_LAUNCHED; column <= H_WORK; column++)
        tui_table_blank(table, column);
}

/* Returns how many rows there are of it. */
static size_t add_samples(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_cpu cpu;
    struct prof_error err = {0};
    struct places places = {0};
    int64_t all = 0;
    if (prof_cpu(input->tail, &input->filter, &cpu, &err)) {
        tui_table_failure(table, &err);
        return 0;
    }
    for (size_t i = 0; i < cpu.function_count && places.list.count < MOST_ROWS; i++)
        table->failed |= !add_function(&places, &cpu.functions[i]);
    for (size_t i = 0; i < places.list.count; i++)
        all = prof_add(all, places.list.data[i].cpu_ns);
    for (size_t i = 0; i < places.list.count; i++)
        add_place(table, &places.list.data[i], all);
    size_t rows = places.list.count;
    prof_names_free(&places.known);
    prof_array_free(&places.list);
    prof_cpu_free(&cpu);
    return rows;
}

static size_t add_launches(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_launch_lines lines;
    struct prof_error err = {0};
    if (prof_launch_lines(input->tail, &input->filter, &lines, &err)) {
        tui_table_failure(table, &err);
        return 0;
    }
    size_t rows = lines.count < MOST_ROWS ? lines.count : MOST_ROWS;
    for (size_t i = 0; i < rows; i++) {
        const struct prof_launch_line *line = &lines.rows[i];
        tui_table_row(table, (int64_t)table->rows.count, 0, TUI_NORMAL);
        tui_table_text(table, H_WHERE, line->where);
        tui_table_number(table, H_LAUNCHED, line->device_ns);
        tui_table_number(table, H_COUNT, line->count);
        tui_table_text(table, H_WORK, line->work);
        for (size_t column = H_CPU; column <= H_WAITING; column++)
            tui_table_blank(table, column);
        tui_table_blank(table, H_THREADS);
    }
    prof_launch_lines_free(&lines);
    return rows;
}

void tui_fill_host(struct tui_table *table, const struct tui_view_input *input)
{
    tui_table_begin(table, columns, sizeof columns / sizeof *columns);
    if (!tui_has_events(table, input))
        return;
    size_t samples = add_samples(table, input), launches = add_launches(table, input);
    table->sort = samples ? H_CPU : H_LAUNCHED;
    if (samples)
        tui_table_note(table, "cpu: on a processor; blocked: waiting, GPU idle: of both, while no "
                              "device worked; queued: for a processor. By function");
    else
        tui_table_note(table, "Where threads are: n/a (samples: perfkit run --cpu-sample)");
    if (launches)
        tui_table_note(table, "launched: device time of the work that a line launched");
    else
        tui_table_note(table, "Which lines launch: n/a (call stacks: perfkit run --stacks)");
    if ((samples || launches) && tui_model_is_live(input->model))
        tui_table_note(table, "Native functions get their names when the run has ended");
    tui_note_extent(table, input, "Of");
}
