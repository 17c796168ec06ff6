/* Declared work (table `work`): which declaration a launch belongs to, and what its launches took.
 *
 * A declaration belongs to the launches that its thread made inside it. Declarations of a thread do
 * not nest (perfkit/annotate.h). */
#ifndef PERFKIT_ANALYSIS_DECLARED_H
#define PERFKIT_ANALYSIS_DECLARED_H

#include "libprof/analysis/capture.h"

struct prof_declaration {
    int64_t range;              /* range.id */
    int64_t thread, begin, end; /* end: INT64_MAX while open */
    double flop, bytes;         /* NaN = not declared, or not wholly */
    /* Filled by prof_declared_launch: */
    int64_t launches, duration_ns;
    uint32_t point;  /* that all launches are of */
    bool mixed;      /* of several points */
    bool incomplete; /* some launch is not in view, or was not seen to end */
};

struct prof_declared {
    PROF_ARRAY(struct prof_declaration) list; /* by thread, begin */
};

/* The caller keeps a transaction. */
enum prof_status prof_declared_open(struct prof_declared *declared, struct prof_capture *capture,
                                    struct prof_error *err);
void prof_declared_close(struct prof_declared *declared);

/* The declaration that a call of this thread at this time is inside; NULL = none. */
struct prof_declaration *prof_declared_at(struct prof_declared *declared, int64_t thread,
                                          int64_t call_ns);

/* A launch of `point` inside the declaration. `counted` is false when it is not to be looked at:
 * the declaration can then not be shared out. */
void prof_declared_launch(struct prof_declaration *declaration, uint32_t point, bool counted,
                          int64_t duration_ns);

/* Is its work that of one point alone? */
static inline bool prof_declared_whole(const struct prof_declaration *d)
{
    return d->launches > 0 && !d->mixed && !d->incomplete;
}

#endif
