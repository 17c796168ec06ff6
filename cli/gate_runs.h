/* The two sides of a comparison: captures reduced to runs, and baselines read back. */
#ifndef PERFKIT_CLI_GATE_RUNS_H
#define PERFKIT_CLI_GATE_RUNS_H

#include "libprof/include/prof_compare.h"
#include "libprof/store/baseline.h"

struct gate_runs {
    struct prof_run *data;
    char **names; /* the file of each; for runs of a baseline the path that was saved, or NULL */
    char **identities;
    int64_t *recorded_s;
    size_t count, room, name_room, identity_room, time_room;
};

/* Reduce the capture and append it, as a run of `session` (0 = one of its own). A file that is not
 * a capture, or has nothing in it to compare, is an error. */
enum prof_status gate_runs_add_capture(struct gate_runs *runs, const char *path,
                                       const struct prof_run_options *iterations, int64_t session,
                                       struct prof_error *err);

/* Append the runs of a baseline, each in the session it was saved in. */
enum prof_status gate_runs_add_baseline(struct gate_runs *runs,
                                        const struct prof_baseline *baseline,
                                        struct prof_error *err);

/* The runs as a session to save, the environment and the project's commit with it. Free it with
 * prof_baseline_session_free. */
enum prof_status gate_runs_session(const struct gate_runs *runs, const char *label,
                                   struct prof_baseline_session *session, struct prof_error *err);

/* The first run of `cand` that is in `base` too: its index, or SIZE_MAX. */
size_t gate_runs_shared(const struct gate_runs *base, const struct gate_runs *cand);

/* Index of a run that is an earlier one once more, by its identity; SIZE_MAX when there is none. */
size_t gate_runs_repeated(const struct gate_runs *runs);

void gate_runs_free(struct gate_runs *runs);

#endif
