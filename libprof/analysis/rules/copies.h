/* What the rules about copies share: which copy is of which kind, and the time that a set of them
 * takes with the idle time around. */
#ifndef PERFKIT_ANALYSIS_RULES_COPIES_H
#define PERFKIT_ANALYSIS_RULES_COPIES_H

#include "libprof/analysis/rules/judge.h"

/* A copy to the host that small is a number, not data. */
#define PROF_SCALAR_BYTES 64

bool prof_is_upload(const struct prof_shape *shape);
bool prof_is_download(const struct prof_shape *shape);
bool prof_is_link_copy(const struct prof_shape *shape); /* one of the two */
bool prof_is_scalar_readback(const struct prof_shape *shape);
/* Does the host wait for it: by its call, or by a wait that follows it more often than not? */
bool prof_is_awaited(const struct prof_shape *shape);
int prof_host_memory(const struct prof_shape *shape); /* memory kind of the host's side */

/* What the calls took of their own: one that waits takes as long as what it waits for. */
int64_t prof_own_call_ns(const struct prof_shape *shape);

struct prof_copies {
    int64_t count, bytes, sum_ns, alone_ns, call_ns;
    int64_t packable, awaited; /* of count: see prof_shape */
    int64_t catch_up_ns;       /* likewise; part of after[PROF_SLICE_LAUNCH] */
    int64_t alone[PROF_SLICES], before[PROF_SLICES], after[PROF_SLICES];
    struct prof_spots spots;
};

void prof_copies_add(const struct prof_judge *judge, struct prof_copies *sums,
                     const struct prof_shape *shape);

/* What scalar-readback is about; none where there are too few. */
struct prof_copies prof_scalar_readbacks(const struct prof_judge *judge);

/* Claim a part of the copies' exposed time, as the term "exposed_memcpy_ns"; of the idle time
 * around them, before and after, as `term`. */
void prof_copies_claim(struct prof_judge *judge, struct prof_draft *draft,
                       const struct prof_copies *sums, double part);
/* That idle time, and the part of it, 0..1, that is as long as the copies take at most. A rule
 * about what copies take claims no more, so that it claims little where they take little. */
int64_t prof_copies_idle_around(const struct prof_copies *sums);
double prof_copies_part_around(const struct prof_copies *sums, int64_t copies_ns);
void prof_copies_claim_around(struct prof_judge *judge, struct prof_draft *draft, const char *term,
                              const struct prof_copies *sums, bool after, double part);

#endif
