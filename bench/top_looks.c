/* How long perfkit top takes to open a finished capture and for each refresh, screen and all, as it
 * would be shown in a terminal of 200x50; and its memory.
 *
 *     bench_top_looks FILE     prints JSON, one line */
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "libprof/base/clock.h"
#include "tui/app.h"

#define BUDGET_NS 15000000 /* as cli/top.c */
#define REFRESHES 50

/* CPU milliseconds since the last call: others may have the processor meanwhile. */
static double cpu_ms(void)
{
    static double before;
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    double all = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6, passed = all - before;
    before = all;
    return passed;
}

static double look(struct tui_app *app, struct tui_grid *grid)
{
    struct prof_error err = {0};
    uint64_t start = prof_now_ns();
    if (tui_app_refresh(app, BUDGET_NS, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    tui_app_draw(app, grid);
    return (double)(prof_now_ns() - start) / 1e6;
}

/* What Enter on the first row of a view takes, until its page is drawn. */
static double open_row(struct tui_app *app, struct tui_grid *grid, int view)
{
    tui_app_show(app, view);
    look(app, grid);
    uint64_t start = prof_now_ns();
    cpu_ms();
    tui_app_key(app, TUI_KEY_ENTER);
    tui_app_draw(app, grid);
    return (double)(prof_now_ns() - start) / 1e6;
}

int main(int argc, char **argv)
{
    struct tui_app app;
    struct tui_grid grid;
    struct rusage usage;
    double worst = 0, worst_cpu = 0, first = -1, shown = 0, cpu = 0;
    unsigned looks = 0;
    if (argc != 2 || !tui_app_make(&app, argv[1], false) || !tui_grid_make(&grid, 200, 50, false))
        return 2;
    cpu_ms();
    do {
        double ms = look(&app, &grid), used = cpu_ms();
        if (ms < 0)
            return 1;
        worst_cpu = used > worst_cpu ? used : worst_cpu;
        cpu += used;
        first = looks++ ? first : ms;
        worst = ms > worst ? ms : worst;
        shown += ms;
    } while (!app.model->caught_up);
    double worst_view[TUI_VIEWS] = {0}, worst_view_cpu[TUI_VIEWS] = {0};
    for (int i = 0; i < REFRESHES * TUI_VIEWS; i++) {
        if (i % REFRESHES == 0)
            tui_app_show(&app, i / REFRESHES);
        double ms = look(&app, &grid), used = cpu_ms();
        double *most = &worst_view[i / REFRESHES], *most_cpu = &worst_view_cpu[i / REFRESHES];
        *most = ms > *most ? ms : *most;
        *most_cpu = used > *most_cpu ? used : *most_cpu;
    }
    double opened[TUI_VIEWS] = {0}, opened_cpu[TUI_VIEWS] = {0};
    for (int i = 0; i < TUI_VIEWS; i++) {
        if (tui_views[i].drill) {
            opened[i] = open_row(&app, &grid, i);
            opened_cpu[i] = cpu_ms();
        }
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"kernels\": %lld, \"first_screen_ms\": %.1f, \"looks_until_whole\": %u, "
           "\"whole_after_ms\": %.0f, \"whole_cpu_ms\": %.0f, \"worst_look_ms\": %.1f, "
           "\"worst_look_cpu_ms\": %.1f, \"worst_by_view\": {",
           (long long)app.model->total.count, first, looks, shown, cpu, worst, worst_cpu);
    for (int i = 0; i < TUI_VIEWS; i++)
        printf("%s\"%s\": {\"ms\": %.1f, \"cpu_ms\": %.1f}", i ? ", " : "", tui_views[i].key,
               worst_view[i], worst_view_cpu[i]);
    printf("}, \"opening_a_row\": {");
    for (int i = 0, count = 0; i < TUI_VIEWS; i++) {
        if (tui_views[i].drill)
            printf("%s\"%s\": {\"ms\": %.1f, \"cpu_ms\": %.1f}", count++ ? ", " : "",
                   tui_views[i].key, opened[i], opened_cpu[i]);
    }
    printf("}, \"peak_mib\": %.1f}\n", (double)usage.ru_maxrss / 1024);
    tui_grid_free(&grid);
    tui_app_free(&app);
    return 0;
}
