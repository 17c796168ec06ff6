/* The parts of perfkit serve: what it knows of a capture and how it says that to Prometheus
 * (serve_metrics.c, serve_page.c), and HTTP (serve_http.c). One thread. */
#ifndef PERFKIT_CLI_SERVE_H
#define PERFKIT_CLI_SERVE_H

#include "cli/top.h"
#include "libprof/gpu/nvml.h"

/* ---- the metrics ----------------------------------------------------------------------------- */

#define SERVE_BUCKETS 19 /* of the histogram of iterations, without +Inf */
extern const struct serve_bound {
    const char *text; /* in seconds */
    int64_t ns;
} serve_bounds[SERVE_BUCKETS];

/* By enum tui_phase; the last is without a capture. */
#define SERVE_STATES (TUI_ABANDONED + 2)
extern const char *const serve_states[SERVE_STATES];

struct serve_sum {
    int64_t count, ns;
};

/* A kernel on a device. What it did before it got a series of its own stays in `other`: neither
 * ever decreases. */
struct serve_series {
    int64_t device;  /* physical, 0 = unknown */
    uint32_t kernel; /* of the model */
    struct serve_sum now, last, in_other;
};

#define SERVE_DEVICES 64
struct serve_device {
    int64_t id;  /* physical, 0 = unknown */
    double busy; /* share of the last moments; NaN */
    struct prof_nvml_reading driver;
    struct serve_sum kernels, copies, other;
};

struct serve_metrics {
    struct tui_model *model; /* NULL = none yet */
    struct tui_health health;
    struct top_measure measure;
    struct prof_nvml *nvml;
    struct prof_filter filter; /* what an iteration is */
    unsigned top;
    int64_t most_dropped;
    double kernels_per_s; /* between the last two looks */

    /* Of one capture: */
    int64_t start_mono_ns;
    PROF_ARRAY(struct serve_series) series;
    /* What was counted: what is new goes to the device that the stream has by now, and what was
     * counted before stays where it is, so that no sum decreases when the device of a stream
     * becomes known late. */
    PROF_ARRAY(struct serve_sum) counted_cells;  /* kernels, as model->cells */
    PROF_ARRAY(struct serve_sum) counted_copies; /* as model->streams */
    struct prof_map series_keys;
    PROF_ARRAY(int32_t) label_of_kernel; /* as model->kernels */
    PROF_ARRAY(char *) labels;           /* of kernels that have series, owned */
    PROF_ARRAY(int64_t) processes;       /* ids of those that have series */
    struct serve_device devices[SERVE_DEVICES];
    size_t device_count;
    bool has_range, whole; /* whole: all of a finished capture was read */
    struct prof_iteration_range range;
    int64_t after; /* row of `range` up to which iterations were counted */
    int64_t iterations, iteration_ns, buckets[SERVE_BUCKETS];
    uint64_t details_due_ns, range_due_ns;
};

/* Watch this capture from now on; false: out of memory. */
bool serve_metrics_watch(struct serve_metrics *metrics, const struct top_capture *capture);
void serve_metrics_free(struct serve_metrics *metrics);
/* Read what is new. As tui_model_look. */
enum prof_status serve_metrics_look(struct serve_metrics *metrics, int64_t budget_ns,
                                    struct prof_error *err);
/* The state of the capture, of serve_states. */
const char *serve_metrics_state(const struct serve_metrics *metrics);
/* OpenMetrics 1.0, or Prometheus' text format 0.0.4. */
void serve_metrics_write(struct serve_metrics *metrics, FILE *out, bool open_metrics);

/* ---- HTTP ------------------------------------------------------------------------------------ */

struct serve_http;

/* Load libmicrohttpd, before all that follows. PROF_UNSUPPORTED: it is not there. */
enum prof_status serve_http_load(struct prof_error *err);
/* Serve by `socket` (which becomes the server's). `token`: what each request must have, NULL =
 * nothing. `numeric`: only requests to localhost or to a numeric address are answered. */
enum prof_status serve_http_start(int socket, const char *token, bool numeric,
                                  struct serve_metrics *metrics, struct serve_http **http,
                                  struct prof_error *err);
/* Serve for about `wait_ms`. */
void serve_http_run(struct serve_http *http, int wait_ms);
/* What was looked at is new. */
void serve_http_refresh(struct serve_http *http);
void serve_http_stop(struct serve_http *http);

#endif
