/* The views of perfkit top: each fills a table from the model, or from a look at the end of the
 * capture (details). None of them knows of a screen. */
#ifndef PERFKIT_TUI_VIEWS_H
#define PERFKIT_TUI_VIEWS_H

#include "libprof/gpu/nvml.h"
#include "tui/model.h"
#include "tui/table.h"

/* What only the recorder's side can say; filled by the caller of the library, unknown otherwise. */
struct tui_health {
    int64_t dropped;        /* records that found no room, all processes */
    int64_t spools;         /* processes that have one */
    int64_t spool_bytes;    /* of memory that they take */
    int64_t recorder_pid;   /* perfkit run */
    double recorder_cpu;    /* its share of a core lately; NaN */
    int64_t recorder_bytes; /* resident */
    double own_cpu;         /* of this process, share of a core lately */
    int64_t own_bytes;
    double machine_cpu; /* busy share of all processors lately */
};

extern const struct tui_health tui_health_unknown;

struct tui_view_input {
    struct tui_model *model;
    const struct tui_health *health;
    struct prof_nvml *nvml;
    struct tui_kept *kept;
    /* Details: a capture that shows its last rows only (prof_live_tail), and the filter with the
     * time that it covers. NULL = none can be had now. */
    struct prof_capture *tail;
    struct prof_filter filter;
    int64_t target; /* what was drilled into: index of a kernel, identity of a finding */
    bool ascii;
};

struct tui_view {
    const char *key;   /* in --json, for --view */
    const char *title; /* on the tab */
    const char *about; /* one line of help */
    bool details;      /* needs input->tail */
    void (*fill)(struct tui_table *table, const struct tui_view_input *input);
    /* What Enter on a row shows; NULL = nothing. Always with details. */
    void (*drill)(struct tui_table *table, const struct tui_view_input *input);
};

enum {
    TUI_VIEW_KERNELS,
    TUI_VIEW_STREAMS,
    TUI_VIEW_TRANSFERS,
    TUI_VIEW_MEMORY,
    TUI_VIEW_RANGES,
    TUI_VIEW_PROCESSES,
    TUI_VIEW_FINDINGS,
    TUI_VIEW_DEVICES,
    TUI_VIEW_HEALTH,
    TUI_VIEW_HOST,
    TUI_VIEWS
};
extern const struct tui_view tui_views[TUI_VIEWS];

/* Share of the window's wall time; NaN without one. */
double tui_wall_share(const struct tui_model *model, int64_t ns);
/* A number a second of the window. */
double tui_per_second(const struct tui_model *model, int64_t count);
/* A command line from the program's name on, without its folder; within `command`. */
const char *tui_short_command(const char *command);
/* Can events be read? If not, a note says so. */
bool tui_has_events(struct tui_table *table, const struct tui_view_input *input);
/* A note that says how far back the events reach that a view of details is made of. */
void tui_note_extent(struct tui_table *table, const struct tui_view_input *input, const char *what);
/* Its number in the API and its name; a handle says nothing: the number of its row. */
void tui_stream_name(const struct tui_stream *stream, char *out, size_t size);
/* The label that the program gave it, or its name, after its number where there are several. */
void tui_device_name(const struct tui_model *model, int64_t device, char *out, size_t size);

void tui_fill_kernels(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_kernel(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_streams(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_transfers(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_memory(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_memory_paths(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_ranges(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_processes(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_findings(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_finding(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_devices(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_host(struct tui_table *table, const struct tui_view_input *input);
void tui_fill_health(struct tui_table *table, const struct tui_view_input *input);

/* The one column of a page of text. */
extern const struct tui_column tui_text_column[1];

/* ---- the dashboard above the table (dashboard.c) --------------------------------------------- */

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
    double busy; /* share of a finished run; NAN = not known */
    bool behind; /* of its host: it was busy for longer while recording was off */
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
/* Share of the window in which the device was busy, of as much of it as the curve reaches back; of
 * the whole run where the dashboard shows that. NAN before the first look. */
double tui_dashboard_busy(const struct tui_dashboard *dashboard, const struct tui_model *model,
                          const struct tui_device_history *device);

#endif
