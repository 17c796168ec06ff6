/* What perfkit top knows of a capture: totals since its start and the last minute by second, fed
 * with what is new since the last look. No view reads the file; no name of the capture is borrowed,
 * so that the file can be closed between two looks. One thread at a time. */
#ifndef PERFKIT_TUI_MODEL_H
#define PERFKIT_TUI_MODEL_H

#include <sys/types.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/include/prof.h"
#include "libprof/include/prof_events.h"

/* ---- what is kept between looks -------------------------------------------------------------- */

/* What views show beside the model and is read from the end of the capture now and then: what
 * bounds each kernel, which lines hold memory. Kept between looks, so that reading costs little. */

struct tui_bound {
    enum prof_bound bound;
    double roof_share; /* of the nearest roof; NaN */
};

struct tui_kept {
    int64_t start_mono_ns; /* of the capture that all this is of */
    bool of_finished;
    struct prof_names kernels; /* name -> number in bounds */
    PROF_ARRAY(struct tui_bound) bounds;
    bool has_bounds;
    struct prof_map stacks;                /* stack.id -> number in places */
    PROF_ARRAY(char *) places;             /* owned */
    PROF_ARRAY(int64_t) wanted;            /* stacks that views want and that are not known */
    uint64_t bounds_due_ns, places_due_ns; /* when to read again */
};

void tui_kept_free(struct tui_kept *kept);
/* Forget what is of another capture, or of this one before its end named its stacks. */
void tui_kept_check(struct tui_kept *kept, int64_t start_mono_ns, bool finished);

/* NULL: not known. */
const struct tui_bound *tui_kept_bound(const struct tui_kept *kept, const char *kernel);
/* "step (train.c:36)"; NULL: not known, perhaps next time. */
const char *tui_kept_place(struct tui_kept *kept, int64_t stack);

/* Read. `tail` as in struct tui_view_input. */
void tui_kept_read_bounds(struct tui_kept *kept, struct prof_capture *tail,
                          const struct prof_filter *filter);
/* Move what `from` knows of kernels. */
void tui_kept_take_bounds(struct tui_kept *kept, struct tui_kept *from);
void tui_kept_read_places(struct tui_kept *kept, struct prof_capture *tail);

/* ---- the model ------------------------------------------------------------------------------- */

#define TUI_MOST_SECONDS (INT64_MAX / 4000000000) /* a damaged capture may say any number */
#define TUI_RING_SECONDS 64                       /* what windows and sparklines are made from */
#define TUI_SPARK 60                              /* seconds of a sparkline */

struct tui_histogram {
    uint64_t counts[PROF_LIVE_BUCKETS];
};

/* Durations of many kernels. */
struct tui_sum {
    int64_t count, sum_ns, min_ns, max_ns; /* min and max only where count > 0 */
    struct tui_histogram histogram;
};

/* From a log histogram: by the rank within what min and max leave of the bucket, as if its values
 * were spread evenly by their logarithm (off by a factor of 2 at most). NaN without values. */
double tui_quantile(const struct tui_sum *sum, double share);

struct tui_kernel {
    char *name;                   /* owned; "" = unknown */
    int64_t config;               /* launch_config.id of the first */
    int64_t configs;              /* how many of them were seen */
    struct tui_sum total;         /* since the start */
    struct tui_sum window;        /* of the chosen window */
    uint32_t spark_us[TUI_SPARK]; /* kernel time per second, the newest last */
};

/* One launch configuration on one stream. */
struct tui_cell {
    int64_t config, stream;
    uint32_t kernel;
    uint32_t row; /* its youngest in the ring, for captures without rollup */
    struct tui_sum total, window;
};

/* Operations, or allocations. */
struct tui_work {
    int64_t count, ns, bytes;
    int64_t rated_bytes, rated_ns; /* of memcpys and memsets with bytes and a duration */
};

/* Sums do not overflow. */
void tui_work_add(struct tui_work *to, const struct tui_work *what);

struct tui_stream {
    struct prof_stream values;       /* api static, name owned */
    struct tui_work kernels, copies; /* since the start; copies: memsets too */
    struct tui_work window_kernels, window_copies;
    int64_t last_second;          /* of its last kernel, memcpy or memset; PROF_UNKNOWN */
    uint32_t spark_us[TUI_SPARK]; /* kernels, memcpys and memsets */
};

struct tui_process {
    struct prof_process values;      /* command, end_reason owned; host static */
    struct tui_work kernels, copies; /* since the start; copies: memcpys alone */
    struct tui_work window_kernels, window_copies;
    int64_t live_bytes;
};

#define TUI_SIZE_CLASSES 6 /* < 4 KiB, < 64 KiB, < 1 MiB, < 16 MiB, < 256 MiB, more */

/* Copies of one direction and pair of memory kinds. */
struct tui_copies {
    int kind, source_kind, target_kind;
    struct tui_work all, window; /* since the start: those that ended, but the bytes of all */
    int64_t unfinished;
    int64_t classes[TUI_SIZE_CLASSES];
    double ceiling; /* bytes/s; NaN = not known */
};

/* Live memory of one process, device and kind. */
struct tui_memory {
    int64_t process;
    int64_t device; /* id, not physical; 0 = the host's, or not known */
    int kind;
    int64_t live_bytes, live_count;
    int64_t peak_bytes, peak_ns;
    struct tui_work all, window; /* allocations */
    int64_t freed;
};

struct tui_allocation {
    int64_t id, process, start_ns, bytes;
    int64_t stack; /* 0 = not known */
    int kind;
    uint32_t group;
};

/* The known end of an allocation, until the time of the walk has come to it. */
struct tui_end {
    int64_t end_ns, bytes;
    uint32_t group;
};

enum tui_phase {
    TUI_OPENING,   /* nothing read yet */
    TUI_WATCHING,  /* being recorded */
    TUI_LET_GO,    /* the writer closes it: nothing is open */
    TUI_FINISHED,  /* complete, recovered or merged */
    TUI_GONE,      /* the file was deleted; what was read stays */
    TUI_ABANDONED, /* says it is being recorded, and no process writes to it */
};

struct tui_second; /* a row of the ring */

/* What a group (of copies or memory) did in a second, of a stream where it is of one. */
struct tui_event_second {
    int64_t second, stream;
    uint32_t group;
    struct tui_work work;
};

struct tui_event_seconds { /* PROF_ARRAY */
    struct tui_event_second *data;
    size_t count, capacity;
};

struct tui_model {
    char *path;
    char *final;                  /* where it will be moved to; owned; NULL = it stays */
    struct prof_capture *capture; /* open only between looks of a capture that is not closing */
    dev_t device_number;
    ino_t inode;
    enum tui_phase phase;
    enum prof_state state;
    struct prof_error error; /* of the last look; message "" = none */
    bool ever_read;
    bool replaced; /* another file replaced it: everything began again */
    bool (*is_served)(void *context,
                      const char *spool); /* does a perfkit write? NULL = not checked */
    void *served_context;

    /* About the capture; texts owned. */
    struct prof_info info;
    bool own_info;
    int64_t wall_ns;    /* recorded, what shares refer to; PROF_UNKNOWN before the first look */
    int64_t now_ns;     /* time of the capture that the last look showed */
    uint64_t looked_ns; /* CLOCK_MONOTONIC of the last look; 0 = none */
    int64_t look_cost_ns, worst_look_ns;
    uint64_t let_go_ns;
    bool caught_up;  /* everything that the file has was read */
    double progress; /* 0..1 while it was not */
    bool from_rollup;
    struct prof_live_marks marks; /* read */
    struct prof_live_marks there; /* to be read */
    struct prof_live_marks before;
    double events_per_s;

    PROF_ARRAY(struct tui_kernel) kernels;
    PROF_ARRAY(struct tui_cell) cells;
    PROF_ARRAY(struct prof_config) configs; /* by id; as launched: name and full_name NULL */
    PROF_ARRAY(struct tui_stream) streams;  /* by id */
    PROF_ARRAY(struct tui_process) processes;
    PROF_ARRAY(struct prof_device) devices; /* texts owned */
    PROF_ARRAY(struct tui_copies) copies;
    PROF_ARRAY(struct tui_memory) memory;
    PROF_ARRAY(struct tui_allocation) live; /* not freed yet */
    PROF_ARRAY(struct tui_end) ends;        /* heap, the earliest first */
    size_t next_live;                       /* the first that the next look looks at again */
    struct prof_unrecorded_list unrecorded; /* read again at unrecorded_due_ns */
    uint64_t unrecorded_due_ns;
    int64_t live_bytes, peak_bytes, peak_ns;
    struct prof_names kernel_names;
    struct prof_names cell_keys;
    struct prof_map seen_configs; /* by id */
    struct prof_map memory_keys;

    PROF_ARRAY(struct tui_second)
    seconds;               /* by id when from_rollup: the young ones are read again */
    int64_t settled;       /* rollup.id up to which rows are final */
    int64_t newest_second; /* -TUI_MOST_SECONDS = none yet */
    struct tui_event_seconds copy_seconds, memory_seconds;

    /* Sums over all kernels. */
    struct tui_sum total, window;
    struct prof_memory_operations moved; /* all memcpys and memsets */
    unsigned window_s;                   /* 1, 10, 60; 0 = since the start */
    size_t most_cells;  /* set by who wants nothing but sums since the start: what comes later is of
                           PROF_OTHER_CONFIGS; 0 = any number */
    bool window_chosen; /* else a capture that was finished when it was opened is shown whole */
    double window_length_s; /* of it what was recorded; NAN = nothing was */
};

struct tui_second {
    int64_t id, second;
    uint32_t cell;
    uint32_t counts[PROF_LIVE_BUCKETS];
    int64_t count, sum_ns, min_ns, max_ns;
};

/* `path` is copied. Reads nothing yet. NULL: out of memory. */
struct tui_model *tui_model_new(const char *path);
void tui_model_free(struct tui_model *model);

/* Read what is new, at most about `budget_ns` long (0 = all there is). PROF_OK also when there is
 * nothing to read at present: `phase` and `error` say why. Anything else (a file that is no
 * capture, damage, no memory) ends the watching. No transaction is open afterwards. */
enum prof_status tui_model_look(struct tui_model *model, int64_t budget_ns, struct prof_error *err);

/* Between two looks, at least twice a second: closes the file once its writer wants to end it. True
 * when a look is due at once (it was closed, or can be opened again). */
bool tui_model_tick(struct tui_model *model);

/* Close the file until the next look or tick, before anything else of this process opens it. */
void tui_model_rest(struct tui_model *model);

/* How much of [begin_ns, end_ns) was recorded. */
int64_t tui_recorded_ns(const struct tui_model *model, int64_t begin_ns, int64_t end_ns);

/* Compute the sums of the last `seconds` (0 = since the start). */
void tui_model_window(struct tui_model *model, unsigned seconds);

/* Lookups by id; NULL when unknown. */
const struct tui_stream *tui_model_stream(const struct tui_model *model, int64_t id);
const struct tui_process *tui_model_process(const struct tui_model *model, int64_t id);
const struct prof_config *tui_model_config(const struct tui_model *model, int64_t id);
/* The device's row by id (not physical). */
const struct prof_device *tui_model_device(const struct tui_model *model, int64_t id);

/* Is it, or was it, being recorded by a process that still lives? */
bool tui_model_is_live(const struct tui_model *model);

/* ---- parts of the model, for its own files  */
bool tui_kernels_feed(struct tui_model *model, int64_t deadline_ns, enum prof_status *status,
                      struct prof_error *err);
bool tui_copies_feed(struct tui_model *model, int64_t deadline_ns, enum prof_status *status,
                     struct prof_error *err);
bool tui_memory_feed(struct tui_model *model, int64_t deadline_ns, enum prof_status *status,
                     struct prof_error *err);
void tui_copies_window(struct tui_model *model);
void tui_memory_window(struct tui_model *model);
/* What a stream did: it, and its process (NULL = not known). */
struct tui_stream *tui_stream_of(const struct tui_model *model, int64_t id,
                                 struct tui_process **process);
/* Microseconds of a second in the last minute, into its sparkline. */
void tui_spark_add(const struct tui_model *model, uint32_t spark_us[TUI_SPARK], int64_t second,
                   int64_t ns);
/* The second that windows end with, and the first one of the chosen window. */
int64_t tui_last_second(const struct tui_model *model);
int64_t tui_first_second(const struct tui_model *model);

#endif
