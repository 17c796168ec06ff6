/* The dashboard above the table, where the screen has room for it: what each device did over time,
 * live memory, how long iterations take, and the findings that cost most. */
#ifndef PERFKIT_TUI_DASHBOARD_H
#define PERFKIT_TUI_DASHBOARD_H

#include "libprof/gpu/nvml.h"
#include "tui/model.h"
#include "tui/table.h"

#define TUI_DASHBOARD_HEIGHT 34 /* of a screen that has room for all of it */
#define TUI_DASHBOARD_CURVES 24 /* for the curves alone */
#define TUI_DASHBOARD_DEVICES 8
#define TUI_DASHBOARD_FINDINGS 3

struct tui_device_history {
    int64_t device; /* physical */
    uint32_t
        busy_us[TUI_SPARK]; /* of a second, or of its part of a finished run; the newest last */
    uint32_t power_w[TUI_SPARK];
    uint32_t memory_kib[TUI_SPARK]; /* live memory of the program there */
    int64_t power_now_mw;
    double energy_from_j, energy_j;  /* the counter at the first look, and used since; of a finished
                                        run, in it; NaN = not known */
    int64_t used_bytes, total_bytes; /* of the whole device, as the driver says */
};

struct tui_dashboard {
    struct tui_device_history devices[TUI_DASHBOARD_DEVICES];
    size_t device_count;
    uint32_t memory_kib[TUI_SPARK]; /* live, as sampled or over a finished run */
    int64_t next_second;            /* of which there is no sample; 0 = there is none at all */
    /* Of the end of the capture; of a finished one of all of it. */
    char iteration[120]; /* name; "" = none known */
    uint32_t iteration_us[TUI_SPARK];
    bool is_slow[TUI_SPARK];
    /* How many of these there are, of warm-up among them, and slow; of a whole run of all. */
    size_t iterations, warm_up, slow;
    double median_ns; /* of all that were read */
    char why[400];    /* the slowest was; "" = none is slow */
    struct {
        char text[400];
        enum tui_style style;
    } findings[TUI_DASHBOARD_FINDINGS];
    size_t finding_count;
    bool whole;      /* all of a finished capture has been read */
    uint64_t due_ns; /* when to read again */
    int64_t tail_rows;
};

/* What the model and the driver say now; `nvml` NULL: nothing. Once a second of the capture. */
void tui_dashboard_sample(struct tui_dashboard *dashboard, const struct tui_model *model,
                          struct prof_nvml *nvml);
/* What the end of the capture says; `whole`: it is all of a finished one. */
void tui_dashboard_read(struct tui_dashboard *dashboard, struct prof_capture *tail,
                        const struct prof_filter *filter, bool whole);

/* Lines that it takes of a screen of this size; 0 = there is no room. */
int tui_dashboard_lines(const struct tui_dashboard *dashboard, int width, int height);
void tui_dashboard_draw(const struct tui_dashboard *dashboard, const struct tui_model *model,
                        struct tui_grid *grid, int y, int lines);

#endif
