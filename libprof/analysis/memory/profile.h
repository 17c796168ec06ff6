/* What the parts of the memory profile share: profile.c loads and puts together, sweep.c walks
 * through time, steps.c separates leaks from state, paths.c writes the words. */
#ifndef PERFKIT_ANALYSIS_MEMORY_PROFILE_H
#define PERFKIT_ANALYSIS_MEMORY_PROFILE_H

#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/launch_wrappers.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/group.h"
#include "libprof/include/prof_memory.h"

#define MEMORY_NONE UINT32_MAX

struct memory_item {
    int64_t start, until; /* until: freed, or its process ended; INT64_MAX = neither is known */
    int64_t bytes;
    int64_t in_blocks; /* of it, at the peak: what blocks hold */
    uint32_t site;
    uint32_t thread;
    uint32_t lifetime; /* of facts.lifetimes; nothing for blocks */
    uint32_t inside;   /* blocks: the item that they lie in, MEMORY_NONE = not found */
    bool kept, fixed;  /* never freed; a static variable */
    bool segment;      /* blocks lie in it, which show more */
    bool block;        /* of a framework's allocator: its bytes are those of another item */
};

/* What a site is gathered with, beside its row. */
struct memory_site {
    struct prof_memory_site row;
    uint32_t place, kind_place; /* the device's row and its kind's */
    struct prof_gather lifetime;
};

/* What the steps of a phase keep at a site. */
struct memory_kept {
    uint32_t site, phase;
    int64_t steps;       /* after warm-up, that kept some */
    int64_t early, late; /* of them, those of either half of the phase */
    int64_t bytes;       /* kept by steps after warm-up */
    /* Made in a step and freed only when the last one was over. */
    int64_t outlived_count, outlived_bytes;
};

struct memory_place {
    struct prof_memory_place row;
    uint32_t all; /* index of the device's row; its own for that */
    int64_t live;
    struct prof_gather lifetime;
};

struct memory_work {
    struct prof_capture *capture;
    const struct prof_facts *facts;
    const struct prof_scope *scope;
    struct prof_iterations iterations; /* of all phases */
    const struct prof_phase_row *phases;
    struct prof_call_tree tree;
    struct prof_spread_budget budget;
    PROF_ARRAY(struct memory_item) items; /* by start */
    PROF_ARRAY(struct memory_site) sites;
    struct prof_map site_index;
    PROF_ARRAY(struct memory_place) places;
    struct prof_map place_index;
    uint32_t *site_order;               /* index of a site -> its place in the result */
    PROF_ARRAY(uint32_t) failure_nodes; /* of the tree, for the failures' paths */
};

/* Does anything repeat? */
static inline bool memory_has_steps(const struct memory_work *work)
{
    return work->iterations.list.count > 0;
}

/* The blocks of PyTorch's allocator as items behind the others. */
enum prof_status memory_blocks(struct memory_work *work, struct prof_error *err);

/* The site of a node in a kind of memory, made when new. PROF_NO_GROUP: out of memory. */
uint32_t memory_site_of(struct memory_work *work, uint32_t node, int64_t device, int kind);

/* Count an item, whose site is known. until: INT64_MAX where it was not freed; the calls: NULL
 * where they are not known. */
void memory_gather(struct memory_work *work, const struct memory_item *item, bool brief,
                   const struct prof_call *made, const struct prof_call *freed);

/* Was it freed in the step that made it? */
bool memory_in_one_step(const struct memory_work *work, uint32_t thread, int64_t made,
                        int64_t freed);

/* Live bytes through time: peaks of all places, and growth from step to step. False: out of memory.
 */
bool memory_sweep(struct memory_work *work);

/* Into the sites' rows: what was live at the peak of their device. */
void memory_hold(struct memory_work *work);

/* Which sites leak. False: out of memory. */
bool memory_judge(struct memory_work *work);

/* Allocations that were refused, and the driver's samples, into the result, whose sites are in
 * order. */
enum prof_status memory_failures(struct memory_work *work, struct prof_memory_profile *result,
                                 struct prof_error *err);
enum prof_status memory_drivers(struct memory_work *work, struct prof_memory_profile *result,
                                struct prof_error *err);

/* The call of a thread that a moment lies in; NULL when it is not known. */
const struct prof_call *memory_call_around(const struct prof_facts *facts, uint32_t thread,
                                           int64_t time);

/* The call of a thread that was the last to begin until then; NULL when there is none. */
const struct prof_call *memory_call_before(const struct prof_facts *facts, uint32_t thread,
                                           int64_t time);

/* The host's memory, not a device's. */
bool memory_on_host(int kind);

/* Names and paths of the sites and failures, into result->texts. `nodes`: of the failures;
 * `wrappers`: of allocations. False: out of memory. */
bool memory_write_paths(struct prof_memory_profile *result, const uint32_t *nodes,
                        const struct prof_launch_wrappers *wrappers);

/* The same from facts that are loaded already. */
enum prof_status prof_memory_profile_of(const struct prof_facts *facts,
                                        const struct prof_filter *filter,
                                        struct prof_memory_profile *result, struct prof_error *err);

#endif
