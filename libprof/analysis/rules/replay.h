/* What would have happened after a change: the host's calls and the devices' operations run again,
 * each as soon as what it waited for is done, with the edits that make the change.
 *
 * Nodes are calls and operations. An operation begins when its call has reached the device, the
 * operation before it in its stream is done, and, where it was seen to begin within 20 us of the
 * end of another stream's operation that it was queued behind, that one is done too. A wait ends
 * when everything ends that had ended when it did; a launch that was blocked by a full queue
 * returns when the operation ends that made room. What a thread does between its calls takes as
 * long as it took, counted from the last call of its process where the thread itself was idle (one
 * thread hands work to another). What ranks do together ends as long after the last of them came as
 * it did. After Daydream (Zhu et al., USENIX ATC 2020); kernels do not slow each other down here,
 * so a result is optimistic. */
#ifndef PERFKIT_ANALYSIS_RULES_REPLAY_H
#define PERFKIT_ANALYSIS_RULES_REPLAY_H

#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/ranks/ranks.h"
#include "libprof/include/prof_what_if.h"

/* What is changed of an operation; {0}: nothing. */
struct prof_op_edit {
    double cut;      /* share of its duration that is gone; at 1 its call goes too */
    int64_t each_ns; /* its duration instead; 0 = not this */
    bool async;      /* its call returns at once */
    bool beside;     /* that too, and it has a stream of its own */
    uint8_t fused;   /* operations of one number in a row are one; 0 = they are not */
    uint32_t most;   /* at most so many of them; 0 = all of a row */
    bool batched;    /* instead: so many of one shape are one, whatever is between them */
    bool together;   /* and take each_ns, not their sum */
};

/* What is changed; {0} changes nothing. */
struct prof_edit {
    unsigned drop_classes;          /* bits of enum wire_class: these calls take no time */
    double cut_calls[WIRE_CLASSES]; /* share of the time of calls of a class that is gone */
    const struct prof_op_edit *ops; /* by shape; NULL: what the next three say */
    bool (*shapes)(const struct prof_shape *shape); /* operations that the next two are about */
    double keep;          /* part of their duration that stays; at 0 their calls go too */
    bool no_wait;         /* instead: prof_op_edit.beside */
    bool one_wait_a_step; /* only the last wait of each step waits */
    bool free_launch;     /* launching takes as long as a graph's node */
    bool no_host_gaps;    /* the host is never busy with anything else */
    int64_t launching_ns; /* with either: longest pause that belongs to launching; 0 = 20 us */
    double cut_launch;    /* share of the time of calls that launch which is gone */
    int64_t launch_ns;    /* or what each takes; 0 = not this */
    double cut_host;      /* share of the time between calls that is gone */
    double recording_ns;  /* what recording took for each call and range, which is gone: out of the
                             pause before the call, and out of the call where that is too short */
};

enum prof_replay_kind {
    PROF_REPLAY_BEGIN, /* of an iteration */
    PROF_REPLAY_OP,    /* with its call */
    PROF_REPLAY_CALL,
    PROF_REPLAY_END,
};

#define PROF_NO_ITEM UINT32_MAX
#define PROF_NEAR_NS 20000 /* an operation so soon after another's end may have waited for it */

struct prof_replay_item {
    int64_t start, duration;       /* of the call */
    int64_t op_start, op_duration; /* of a call of ranks: it */
    uint32_t shape;
    uint32_t thread, stream; /* dense numbers */
    uint32_t iteration;      /* index into prof_replay.iterations; UINT32_MAX = of none */
    uint32_t released_by;    /* item whose end let a blocked launch return; PROF_NO_ITEM = none */
    uint32_t process;        /* dense number */
    uint32_t ranges;         /* that its thread began since its last call */
    uint32_t meeting; /* 1 + index into prof_replay.meetings of what it does with other ranks; 0 */
    uint8_t class_, kind; /* enum wire_class, enum prof_replay_kind */
    bool known_call;      /* of the operation */
    bool last_wait;       /* of its step */
};

/* Iteration times as recorded and as replayed, ns. */
struct prof_replay_iteration {
    int64_t begin, end; /* end: of it and of the operations launched in it */
    bool steady;        /* not warm-up */
};

/* Of one operation of several ranks. */
struct prof_replay_meeting {
    int64_t last_start; /* of the last to come */
    uint32_t count;     /* items */
    uint32_t process;   /* of the last item; while they are counted */
    bool several;       /* items of one process: it is none */
};

struct prof_replay {
    const struct prof_facts *facts;
    PROF_ARRAY(struct prof_replay_item) items; /* by process, then start */
    PROF_ARRAY(struct prof_replay_meeting) meetings;
    size_t met;                                          /* items that have one */
    PROF_ARRAY(struct prof_replay_iteration) iterations; /* that are whole among the items */
    struct prof_map threads, streams, processes;         /* id -> dense number */
    PROF_ARRAY(uint32_t) process_of;                     /* by thread */
    int64_t typical_ns; /* from a call to the start on an idle device */
    int64_t begin_ns;   /* where the replay begins */
    int64_t span_ns;    /* what the items took; the window, or its head where it has too many */
};

/* What a replay shows. */
struct prof_replayed {
    int64_t span_ns;                /* from the begin to the end of everything */
    int64_t path[PROF_LIMITS];      /* it, by what it waited for: the critical path */
    int64_t *iterations;            /* by iteration, how long it takes; NULL = not wanted */
    int64_t *begins;                /* likewise when it begins */
    int64_t in_steady[PROF_LIMITS]; /* critical path within the iterations that are no warm-up */
};

/* Collect the items: of the phase that the facts are about, in its analysed time; or, with a phase
 * given, all from its first to its last iteration. parts: what ranks did together; NULL = none.
 * False: out of memory. Close it in any case. */
bool prof_replay_open(struct prof_replay *replay, const struct prof_facts *facts,
                      const struct prof_phase *phase, const struct prof_rank_parts *parts);

/* Run them with the edit; `result->iterations` is the caller's. False: out of memory. */
bool prof_replay_run(const struct prof_replay *replay, const struct prof_edit *edit,
                     struct prof_replayed *result);

/* How long the iteration took, from the ends of those before it: `done`, INT64_MIN before the
 * first. */
int64_t prof_replay_iteration_time(const struct prof_replay_iteration *iteration, int64_t *done);

void prof_replay_close(struct prof_replay *replay);

/* ---- changes as people write them (changes.c) ------------------------------------------------ */

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
