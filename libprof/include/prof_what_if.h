/* prof_what_if.h: how long an iteration would take after a change, by a replay of the calls and
 * operations. Part of prof.h's interface; its conventions hold. */
#ifndef PERFKIT_PROF_WHAT_IF_H
#define PERFKIT_PROF_WHAT_IF_H

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the critical path of a replay is spent on: name in JSON, words for people. */
#define PROF_LIMIT_KINDS(X)                                                                        \
    X(HOST, "host", "host between API calls")                                                      \
    X(CALL, "api", "API calls")                                                                    \
    X(LAUNCH, "launch", "launch overhead")                                                         \
    X(KERNEL, "kernel", "kernels")                                                                 \
    X(COPY, "copy", "memcpys and memsets")

enum prof_limit {
#define PROF_LIMIT_KIND(kind, name, text) PROF_LIMIT_##kind,
    PROF_LIMIT_KINDS(PROF_LIMIT_KIND)
#undef PROF_LIMIT_KIND
        PROF_LIMITS
};

const char *prof_limit_name(enum prof_limit limit); /* never NULL */
const char *prof_limit_text(enum prof_limit limit);

/* One change, or all of them. */
struct prof_what_if_row {
    const char *change; /* as given; NULL: all of them at once */
    int64_t changed;    /* operations and calls that it is about, per iteration; PROF_UNKNOWN = the
                           change is about all launches, or the host */
    double predicted_ns, low_ns, high_ns; /* median iteration, with the 95 % interval by ranks */
    double host_free_ns; /* the median iteration if the host took no time between its API calls,
                            which the prediction takes as recorded */
    double saved_ns;     /* of the recorded median */
    double speedup;      /* recorded median / predicted */
    /* Without perfkit; NaN = not known. The interval has that of what recording takes, too. Where
     * nothing is predicted as the prediction depends on that, it is all that is possible. */
    double bare_ns, bare_low_ns, bare_high_ns;
    double bare_saved_ns, bare_speedup; /* of prof_what_if.bare_ns */
    const char *why_none; /* why this row has no prediction: predicted_ns, saved_ns and speedup are
                             NaN. Static; NULL = it has */
    double share[PROF_LIMITS]; /* of the critical path of the iterations */
    enum prof_limit limit;     /* the largest of these: what to change next */
};

struct prof_what_if {
    struct prof_what_if_row *rows; /* each change by itself, as given; then all at once where there
                                      are several */
    size_t count;
    const char *phase; /* NULL = a period of the launches */
    int64_t iterations;
    double median_ns, low_ns, high_ns; /* as recorded, of those after warm-up */
    double replayed_ns;                /* the median by the replay of what was recorded; NaN */
    double bare_ns, bare_low_ns, bare_high_ns; /* the median without perfkit: as recorded, by the
                                                  recording overhead; NaN = not known */
    double overhead;                           /* that: recorded / without perfkit; NaN */
    double recording_ns;       /* what recording a call or a range takes by it; NaN */
    bool estimated;            /* the overhead; else it was measured */
    char why_no_bare[240];     /* why the rows have no bare_ns; "" = they have */
    double share[PROF_LIMITS]; /* of its critical path */
    enum prof_limit limit;
    int64_t joined;     /* operations of the replay, on all ranks, that wait for the last rank */
    char ranks[320];    /* what is known of that; "" = ranks do nothing together */
    char why_none[200]; /* why nothing is predicted; "" = it is */
    char *texts;        /* owned */
};

/* Predict the median iteration of the main phase (filter->iteration: of that one) after changes,
 * each WHAT[=VALUE]; docs/guide/what-if.md lists them. Reads the operations once; 24 bytes for each
 * while it runs, and replays the first 400,000 of the phase. PROF_INVALID: a change that cannot be
 * read, or that fits nothing in the capture. */
enum prof_status prof_what_if(struct prof_capture *capture, const struct prof_filter *filter,
                              const char *const *changes, size_t count, struct prof_what_if *result,
                              struct prof_error *err);
void prof_what_if_free(struct prof_what_if *result);

#ifdef __cplusplus
}
#endif

#endif
