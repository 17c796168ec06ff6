/* What would have happened without a fault: the host's calls and the devices' operations run again,
 * each as soon as what it waited for is done, with the edits that fix the fault.
 *
 * Nodes are calls and operations. An operation begins when its call has reached the device, the
 * operation before it in its stream is done, and, where it was seen to begin within 20 us of the
 * end of another stream's operation that it was queued behind, that one is done too. A wait ends
 * when everything ends that had ended when it did. What a thread does between its calls takes as
 * long as it took. After Daydream (Zhu et al., USENIX ATC 2020); kernels do not slow each other
 * down here, so a result is optimistic. */
#ifndef PERFKIT_ANALYSIS_RULES_REPLAY_H
#define PERFKIT_ANALYSIS_RULES_REPLAY_H

#include "libprof/analysis/facts/facts.h"

/* What is changed; {0} changes nothing. */
struct prof_edit {
    unsigned drop_classes; /* bits of enum wire_class: these calls take no time */
    bool (*shapes)(const struct prof_shape *shape); /* operations that the next two are about */
    double keep;          /* part of their duration that stays; at 0 their calls go too */
    bool no_wait;         /* instead: their calls return at once, and they have a stream of their
                             own */
    bool one_wait_a_step; /* only the last wait of each step waits */
    bool free_launch;     /* launching takes as long as a graph's node */
    bool no_host_gaps;    /* the host is never busy with anything else */
    int64_t launching_ns; /* with either: longest pause that belongs to launching; 0 = 20 us */
};

struct prof_replay_item {
    int64_t start, duration; /* of the call */
    int64_t op_start, op_duration;
    uint32_t shape;
    uint32_t thread, stream; /* dense numbers */
    uint8_t class_;
    bool has_op;     /* else a call alone */
    bool known_call; /* of the operation */
    bool last_wait;  /* of its step */
};

struct prof_replay {
    const struct prof_facts *facts;
    PROF_ARRAY(struct prof_replay_item) items; /* by start */
    struct prof_map threads, streams;          /* id -> dense number */
    int64_t typical_ns;                        /* from a call to the start on an idle device */
    int64_t span_ns; /* what the items took; the window, or its head where it has too many */
};

/* Collect the items. False: out of memory. Close it in any case. */
bool prof_replay_open(struct prof_replay *replay, const struct prof_facts *facts);

/* How long the items take with the edit, ns; PROF_UNKNOWN: out of memory. */
int64_t prof_replay_run(const struct prof_replay *replay, const struct prof_edit *edit);

void prof_replay_close(struct prof_replay *replay);

#endif
