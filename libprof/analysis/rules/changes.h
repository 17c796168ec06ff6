/* Changes as people write them ("kernel:gemm*=0.5x") as edits of the replay. */
#ifndef PERFKIT_ANALYSIS_RULES_CHANGES_H
#define PERFKIT_ANALYSIS_RULES_CHANGES_H

#include "libprof/analysis/rules/replay.h"

struct prof_change {
    struct prof_edit edit; /* edit.ops is its own */
    bool shapes;           /* it is about operations */
    unsigned classes;      /* bits of enum wire_class: it is about these calls */
};

/* Add the change to `change`, which began as {0}; of two about the same operations the later one
 * holds. PROF_INVALID: it cannot be read, or fits nothing. Free it also after a failure. */
enum prof_status prof_change_add(struct prof_change *change, const struct prof_facts *facts,
                                 const char *text, struct prof_error *err);
void prof_change_free(struct prof_change *change);

#endif
