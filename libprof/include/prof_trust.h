/* prof_trust.h: what a capture may be trusted with.
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_TRUST_H
#define PERFKIT_PROF_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One conservation equation:
 * called + uncalled = recorded + failed + captured + dropped + outstanding + filtered. Parts of
 * outstanding are unanswered and unreturned (0 in captures of earlier versions). */
struct prof_balance {
    int64_t process;     /* id; 0 in prof_trust.totals and for the capture as a whole */
    const char *subject; /* launch, transfer, memset, allocation, range */
    int64_t called, recorded, failed, captured, dropped, outstanding;
    int64_t remainder;  /* called and uncalled minus all the others; 0 = balanced, PROF_UNKNOWN = no
                           count */
    int64_t filtered;   /* recorded, and left out as prof_info.kernel_filter asks */
    int64_t uncalled;   /* recorded without the call: the process was cut off first */
    int64_t unanswered; /* the call is recorded, its device work is not */
    int64_t unreturned; /* the call had not returned when the process ended: not recorded */
};

/* RISK: a process ended without a last flush, and records of its end may be missing. */
enum prof_trust_level { PROF_TRUST_NOTE, PROF_TRUST_WARNING, PROF_TRUST_RISK, PROF_TRUST_LOSS };

/* What the worst statement makes of the capture. */
enum prof_trust_status {
    PROF_TRUST_COMPLETE,
    PROF_TRUST_COMPLETE_WITH_NOTES, /* warnings */
    PROF_TRUST_NO_LOSS_KNOWN,       /* and calls were not counted, or not all of them */
    PROF_TRUST_AT_RISK,
    PROF_TRUST_INCOMPLETE,
};

struct prof_statement {
    enum prof_trust_level level; /* LOSS: makes the capture incomplete; RISK: at risk */
    const char *code;            /* what it says, for programs: docs/reference/format.md; static */
    int64_t process;             /* id, 0 = the capture */
    char *text;                  /* one sentence, for people */
    bool contended;              /* CUPTI was wanted by the program too, or left to it as asked */
};

/* What CUDA graphs did: their work has no calls that it could be balanced against. All 0 where
 * there were none, and in captures of earlier versions. */
struct prof_graph_work {
    int64_t launched;                  /* calls */
    int64_t kernels, memcpys, memsets; /* their records */
    int64_t whole;                     /* executions recorded as a whole, without their nodes */
    int64_t filtered; /* kernels, left out as prof_info.kernel_filter asks; not in `kernels` */
};

struct prof_trust {
    enum prof_trust_status status;
    bool complete;   /* every balance is 0, nothing dropped, no statement of level RISK or LOSS */
    int64_t lacking; /* launches, memcpys and memsets that are known to have no device record:
                      * all of processes at risk, otherwise launches that are unanswered, and calls
                      * that had not returned */
    struct prof_balance *balances; /* by process, then subject */
    size_t balance_count;
    struct prof_balance *totals; /* per subject */
    size_t total_count;
    struct prof_graph_work graphs;     /* of all processes */
    struct prof_statement *statements; /* LOSS first; imbalances and drops included as sentences */
    size_t statement_count;
    int64_t clock_error_ns; /* the worst of clock_sync; PROF_UNKNOWN without conversion */
    /* When only part of the time was recorded (--delay, perfkit ctl, ...): */
    int64_t recorded_ns; /* how much of it; PROF_UNKNOWN = all the time, 0 = none of it (dormant) */
    int64_t windows;     /* in so many stretches; 0 also when all the time was recorded */
    bool marks_lost;     /* some of the marks of when found no room: both figures are not exact */
};

/* What the capture may be trusted with. Reads capture_health, clock_sync
 * and process. */
enum prof_status prof_trust(struct prof_capture *capture, struct prof_trust *result,
                            struct prof_error *err);
void prof_trust_free(struct prof_trust *result);

/* "complete", "complete with notes", "no loss known", "at risk", "incomplete". */
const char *prof_trust_status_name(enum prof_trust_status status);
/* The same for people: "AT RISK" and "INCOMPLETE" stand out. */
const char *prof_trust_status_words(enum prof_trust_status status);

#ifdef __cplusplus
}
#endif

#endif
