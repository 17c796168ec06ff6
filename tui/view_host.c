/* The host: where its threads are (samples of the processors), and which lines ask for the devices'
 * work (call stacks). Of the end of the capture that a look can afford. */
#include <math.h>

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

static void add_function(struct tui_table *table, const struct prof_cpu_function *f, int64_t all_ns)
{
    const int64_t *ns = f->times.ns, *idle = f->times.idle_ns;
    int64_t cpu = prof_add(ns[PROF_CPU_USER], ns[PROF_CPU_KERNEL]);
    const struct prof_frame frame = {.function = f->function,
                                     .file = f->file,
                                     .line = f->line,
                                     .module = f->module,
                                     .named = true};
    char where[400];
    prof_frame_text(&frame, where, sizeof where);
    tui_table_row(table, (int64_t)table->rows.count, 0, f->launches ? TUI_NORMAL : TUI_DIM);
    tui_table_text(table, H_WHERE, where);
    tui_table_number(table, H_CPU, cpu);
    tui_table_real(table, H_SHARE, all_ns > 0 ? (double)cpu / (double)all_ns : NAN);
    tui_table_number(table, H_IDLE, prof_cpu_total(idle));
    tui_table_number(table, H_BLOCKED, ns[PROF_CPU_BLOCKED]);
    tui_table_number(table, H_WAITING, ns[PROF_CPU_PREEMPTED]);
    tui_table_text(table, H_THREADS, f->launches ? "launching" : "others");
    for (size_t column = H_LAUNCHED; column <= H_WORK; column++)
        tui_table_blank(table, column);
}

/* Returns how many rows there are of it. */
static size_t add_samples(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_cpu cpu;
    struct prof_error err = {0};
    if (prof_cpu(input->tail, &input->filter, &cpu, &err)) {
        tui_table_note(table, "%s", err.message);
        return 0;
    }
    const int64_t *ours = cpu.launching.ns, *others = cpu.others.ns;
    int64_t all = prof_add(prof_add(ours[PROF_CPU_USER], ours[PROF_CPU_KERNEL]),
                           prof_add(others[PROF_CPU_USER], others[PROF_CPU_KERNEL]));
    size_t rows = cpu.function_count < MOST_ROWS ? cpu.function_count : MOST_ROWS;
    for (size_t i = 0; i < rows; i++)
        add_function(table, &cpu.functions[i], all);
    prof_cpu_free(&cpu);
    return rows;
}

static size_t add_launches(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_launch_lines lines;
    struct prof_error err = {0};
    if (prof_launch_lines(input->tail, &input->filter, &lines, &err)) {
        tui_table_note(table, "%s", err.message);
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
    if (!input->tail)
        return;
    size_t samples = add_samples(table, input), launches = add_launches(table, input);
    table->sort = samples ? H_CPU : H_LAUNCHED;
    if (samples)
        tui_table_note(table, "cpu: on a processor; blocked: waiting, GPU idle: of both, while no "
                              "device worked; queued: for a processor. By function");
    else
        tui_table_note(table, "Where threads are: n/a (samples: perfkit run --cpu-sample)");
    if (launches)
        tui_table_note(table, "launched: device time of the work that a line asked for");
    else
        tui_table_note(table, "Which lines launch: n/a (call stacks: perfkit run --stacks)");
    if ((samples || launches) && tui_model_is_live(input->model))
        tui_table_note(table, "Native functions get their names when the run has ended");
    tui_note_extent(table, input, "Of");
}
