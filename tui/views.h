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

#endif
