/* What the rules look at, computed once per capture: operations of the devices, host calls that
 * stand in their way, the part of the run in which the program repeats itself, and a waterfall that
 * gives each instant of each device one state, so that no two findings are paid for the same
 * instant.
 *
 * Reading costs one pass over the device tables and the host calls, 24 bytes per operation.
 */
#ifndef PERFKIT_ANALYSIS_FACTS_FACTS_H
#define PERFKIT_ANALYSIS_FACTS_FACTS_H

#include "libprof/analysis/events.h"
#include "libprof/analysis/facts/iterations.h"
#include "libprof/analysis/intervals.h"
#include "libprof/analysis/range_index.h"
#include "libprof/include/prof.h"
#include "libprof/include/prof_findings.h"
#include "libprof/wire/command.h"

/* ---- runs with a budget (perfkit run --overhead=PERCENT; sampling.c) ------------------------- */

/* Iterations that were recorded, a few in a row, and between them others that were only timed:
 * [first, end) in a row of one thread that were all recorded, or all left out. */
struct prof_stretch {
    size_t first, end;
    bool left_out;
    double bare_ns;    /* of an iteration that was left out, here or beside; 0 = not known */
    double slowed_ns;  /* left out: what the row before added to the first of them, in all */
    double cost_ns;    /* recorded: what that adds to one of them; NaN = not known */
    double stands_for; /* recorded: for so many iterations, itself included */
};

struct prof_stretches {
    struct prof_stretch *data;
    size_t count, capacity;
    bool bare; /* the first was left out before CUPTI was switched on */
};

/* A process whose iterations were recorded in turn. */
struct prof_sampled_process {
    int64_t process;
    struct prof_intervals gaps; /* the times that were left out, a set */
    int64_t *begins;            /* of all iterations of the thread that has most */
    size_t count;
    int64_t last_end; /* of the last one */
    struct prof_stretches stretches;
};

struct prof_sampled {
    struct prof_iteration_range range;
    struct prof_sampled_process *list; /* by id; none: the capture is no sample */
    size_t count, capacity;
};

/* Free the result also after a failure. */
enum prof_status prof_sampled_read(struct prof_capture *capture, struct prof_sampled *sampled,
                                   struct prof_error *err);
void prof_sampled_free(struct prof_sampled *sampled);

/* NULL: the process was not sampled. */
const struct prof_sampled_process *prof_sampled_process(const struct prof_sampled *sampled,
                                                        int64_t process);

/* Of the process that has most iterations. */
void prof_sampled_overhead(const struct prof_sampled *sampled, struct prof_overhead *out);

struct prof_op {
    int64_t start, duration, call; /* call: start of the call, PROF_UNKNOWN = not known */
    uint32_t call_duration;        /* ns, stops at UINT32_MAX; 0 = not known */
    uint32_t shape;
    uint32_t stream, thread; /* ids */
    bool again;              /* a kernel with the arguments of a launch just before it */
};

/* How an operation is kept: what most of them have in common is in its place. */
struct prof_op_kept {
    int64_t start;
    uint32_t before; /* from the call to the start; PROF_NO_CALL = no call is known */
    uint32_t duration, call_duration;
    uint32_t place; /* index into facts.places; with PROF_LONG_OP, into facts.long_ops */
};
#define PROF_NO_CALL UINT32_MAX
#define PROF_LONG_OP (UINT32_C(1) << 31) /* some time of it is above 4.29 s */

struct prof_op_place {
    uint32_t shape, stream, thread;
    bool again;
};

struct prof_ops {
    struct prof_op_kept *data;
    size_t count, capacity;
};

struct prof_call {
    int64_t start;
    int64_t duration : 56; /* stops at PROF_LONGEST_CALL_NS */
    uint64_t class_ : 8;   /* enum wire_class; TRANSFER is a memcpy or memset whose call waits */
    uint32_t thread;
    uint32_t name; /* string id */
};
#define PROF_LONGEST_CALL_NS ((INT64_C(1) << 55) - 1)

static inline bool prof_call_builds(const struct prof_call *call)
{
    return call->class_ == WIRE_CLASS_BUILD || call->class_ == WIRE_CLASS_GRAPH_MAKE;
}

/* Operations that are alike: one launch configuration, or copies of one size, kind and call. */
struct prof_shape {
    enum prof_op_kind kind;
    const struct prof_config *config; /* kernels */
    int copy_kind, source_kind, target_kind;
    bool waits;      /* the call waits for it */
    bool in_graph;   /* runs as a node of a graph */
    bool same_bytes; /* uploads of what their destination was given before */
    bool collective; /* a kernel that moves data between ranks, or waits for them */
    int64_t bytes;
    int64_t api_name;                           /* string id, 0 = not known */
    uint32_t device;                            /* index into facts.devices */
    int64_t first_call_ns, last_call_ns, total; /* of all that are in the capture; how many */
    /* Within the window, from `count` on: */
    int64_t count, sum_ns, min_ns;
    int64_t alone_ns; /* device time that is this shape's: kernels: no other kernel began before;
                         copies: no kernel runs either */
    int64_t idle_ns[PROF_SLICES];  /* idle time that ended with one of these */
    int64_t after_ns[PROF_SLICES]; /* and that began after one of these */
    int64_t catch_up_ns;    /* likewise launching, later: until work is queued again, of those whose
                               calls wait */
    int64_t woken_brief_ns; /* of PROF_SLICE_HOST, in pauses below PROF_BRIEF_NS behind their calls
                               or waits: directly, and like catch_up_ns later */
    int64_t call_ns;        /* host time in their calls */
    uint32_t runs, longest_run; /* times that its kernel follows itself; most in a row */
    uint32_t turns;    /* that it comes in turn with another one; in a row they count as one */
    uint32_t awaited;  /* that the host waited next for the device, with nothing else launched */
    uint32_t packable; /* copies that follow one of the same direction, with no kernel in between */
    struct prof_op longest;
};

/* The worst places of a state. */
#define PROF_PLACES 3
struct prof_spot {
    int64_t start, duration;
    uint32_t stream, thread, shape;
};
struct prof_spots {
    struct prof_spot worst[PROF_PLACES]; /* longest first; duration 0 = none */
};
void prof_spots_add(struct prof_spots *spots, struct prof_spot spot);

/* What the driver reported of a device's clocks within the window. */
struct prof_clock_facts {
    int64_t samples, lowered; /* lowered: with a reason other than that nothing is to do */
    int64_t reasons;          /* bits of device_clock.reasons in any of those */
    int64_t working;          /* samples in which it did not idle, and their means */
    double mhz, max_mhz;      /* NaN = not reported */
};

struct prof_call_totals {
    int64_t count, sum_ns;
    int64_t long_count, long_ns; /* of those that take PROF_LONG_CALL_NS or more */
    struct prof_spots spots;
};
/* Calls of the driver that start something and go on are shorter. */
#define PROF_LONG_CALL_NS 20000

/* What an interpreter and a framework take from one operator to the next is less. */
#define PROF_BRIEF_NS 500000

struct prof_device_facts {
    int64_t id; /* prof_device.physical, 0 = unknown */
    const struct prof_device *device;
    int64_t slice_ns[PROF_SLICES]; /* sums to the window */
    int64_t
        typical_ns[PROF_SLICES]; /* of them, without what single iterations are out of line by */
    struct prof_spots spots[PROF_SLICES];
    int64_t kernel_sum_ns, copy_sum_ns; /* plain sums within the window */
    int64_t kernels, copies, gaps;
    int64_t awaited_gaps; /* of them, in which the host waited or was just woken */
    int64_t relaunch_ns;  /* of PROF_SLICE_LAUNCH, after a wait and until work was queued again */
    int64_t beside_alloc_ns[PROF_SLICES]; /* idle time of the gaps that have some of
                                             PROF_SLICE_ALLOC: without it they were none */
    int64_t beside_build_ns[PROF_SLICES]; /* likewise of PROF_SLICE_BUILD */
    int64_t launch_behind_host_ns;        /* of PROF_SLICE_LAUNCH, in the gaps that are mostly
                                             PROF_SLICE_HOST, for PROF_BRIEF_NS or longer */
    int64_t woken_ns; /* of PROF_SLICE_SYNC, after waits from which the host went to other work */
    /* Of the whole capture: what nine of ten launches on an idle device take from the end of the
     * call to the start of the kernel, and the tenth percentile of the gaps before kernels that had
     * come to the device before it was idle; 0 = too few had. */
    int64_t launch_way_ns, dispatch_floor_ns;
    size_t streams;   /* with kernels in the window */
    int64_t brief_ns; /* of PROF_SLICE_HOST, in pauses below PROF_BRIEF_NS between two kernels in
                         which the host made no call that takes its time */
    int64_t
        outside_ns; /* of PROF_SLICE_HOST, while the launching thread was in none of the steps */
    int64_t lead_ns,
        tail_ns; /* of PROF_SLICE_HOST, before its first operation and after its last */
    int64_t longest_pause_ns; /* likewise, the longest gap's between two of them */
    int64_t steps;            /* repetitions that it takes part in; 0 = it does not repeat */
    struct prof_call_totals calls[WIRE_CLASSES]; /* in the window, that may stand in its way */
    struct prof_clock_facts clocks;
};

struct prof_lifetime {
    int64_t start, end, bytes; /* end: INT64_MAX = never freed */
    uint32_t thread, device;   /* ids, 0 = unknown */
    uint32_t end_thread, process;
    int64_t id, stack; /* allocation.id; stack.id or 0 */
    int kind;
};

/* A stretch in which a library compiles, by its NVTX ranges (library.c). */
struct prof_compile {
    int64_t begin, end, process;
    uint32_t thread; /* that began it */
    bool xla;
};

/* A reading of a device's clocks, and time that CUPTI took from a thread. */
struct prof_clock_reading {
    int64_t start, mhz, most_mhz, reasons;
    uint32_t device; /* index into facts.devices */
};
struct prof_cupti_time {
    int64_t start, duration;
    uint32_t thread;
};

/* Things by phase: indexes into an array of the facts, in the order of a walk over all. A phase has
 * what happened in its analysed intervals or while its host launched; a thing may belong to several
 * phases. */
struct prof_phase_items {
    size_t *first; /* by phase, index into items; one more than there are phases; NULL = no index */
    uint32_t *items;
};

struct prof_facts {
    struct prof_capture *capture;
    int64_t begin_ns, end_ns;       /* of what was selected */
    struct prof_intervals recorded; /* stretches of it that were recorded */
    struct prof_intervals pauses;   /* of the run, in which it was timed without being recorded */
    struct prof_sampled sampled;    /* with a budget; none of the others */
    struct prof_range_index ranges;
    struct prof_texts range_texts; /* numbered by prof_range_node.group */

    struct prof_ops ops[PROF_OP_GRAPH + 1]; /* by kind, in order of start: see prof_facts_op */
    PROF_ARRAY(struct prof_op_place) places;
    struct prof_map place_index;
    PROF_ARRAY(struct prof_op) long_ops;
    PROF_ARRAY(struct prof_shape) shapes;
    struct prof_map shape_index;
    PROF_ARRAY(struct prof_device_facts) devices;
    struct prof_map device_index;
    PROF_ARRAY(struct prof_call) calls;         /* by thread, then start */
    PROF_ARRAY(struct prof_lifetime) lifetimes; /* by start */
    PROF_ARRAY(struct prof_compile) compiles; /* by process, thread, begin; a thread's are apart */
    PROF_ARRAY(struct prof_compile) process_compiles; /* a process's as one, thread 0 */
    struct prof_map launching; /* threads that launch kernels other than to compile, and processes
                                  that do so with XLA; see library.c */

    /* For who shares the pass: streams of operations that were not seen to end, and how many
     * operations with known times are not in `ops` although they touch the run. */
    PROF_ARRAY(uint32_t) unfinished;
    PROF_ARRAY(int64_t) untimed; /* when those were launched, where that is known */
    size_t left_out;

    int64_t other_calls;           /* API calls that are not in `calls` */
    int64_t total_ns, total_bytes; /* of operations, calls, compiling, allocations */
    struct prof_roofline roofs;    /* by launch configuration, of the same pass; see has_roofs */
    bool has_roofs, without_roofs;
    unsigned char *kept; /* prof_facts_load_few: by place in capture.configs, 1 = with a shape of
                            its own; NULL = all */
    bool impossible;     /* those are more than any run can have: damaged, nothing is judged */

    struct prof_phases phases; /* what repeats */
    /* Read once for all phases, with the first one: */
    bool *is_operator; /* of range_texts, by number: it is one of PyTorch's */
    bool has_operators;
    PROF_ARRAY(struct prof_clock_reading) clocks;
    PROF_ARRAY(struct prof_cupti_time) cupti;
    /* Of operations (kernels first, then those of the next kind) and what lies in the arrays; see
     * prof_facts_index_phases. */
    struct prof_phase_items phase_ops, phase_calls, phase_lifetimes, phase_ranges, phase_clocks,
        phase_cupti;
    /* The phase that the shapes, devices and what follows are about: see prof_facts_phase. */
    const struct prof_phase *phase;
    int64_t begin, end; /* of it */
    int64_t steps;      /* repetitions in it, of the device that has most; 0 = it does not repeat */
    const char *step_name;     /* NVTX range that repeats; NULL = found by the operations alone */
    double missing_share;      /* of the device's work, that was not recorded */
    struct prof_map launchers; /* in it: thread id << 32 | index of a device -> operations */
};

/* Programs that make kernels as they run have a million of them. */
#define PROF_FACTS_CONFIGS 16384

/* Free the result also after a failure. Few: where the capture has more than PROF_FACTS_CONFIGS
 * launch configurations, those launched least often that take no time either are one shape, without
 * one; there are no roofs then, and no rule can judge it. */
enum prof_status prof_facts_load_few(struct prof_facts *facts, struct prof_capture *capture,
                                     const struct prof_filter *filter, struct prof_error *err);
enum prof_status prof_facts_load(struct prof_facts *facts, struct prof_capture *capture,
                                 const struct prof_filter *filter, struct prof_error *err);
/* Likewise few, and what repeats without what the phases show: no phase is chosen, no roofs. */
enum prof_status prof_facts_load_phases(struct prof_facts *facts, struct prof_capture *capture,
                                        const struct prof_filter *filter, struct prof_error *err);
void prof_facts_free(struct prof_facts *facts);

/* Make the facts those of a phase: what shapes, devices, calls and clocks show within it. After
 * loading they are those of the main one. */
enum prof_status prof_facts_phase(struct prof_facts *facts, size_t phase, struct prof_error *err);

/* A stretch of time in which a device had one state. */
struct prof_piece {
    enum prof_slice slice;
    uint32_t device;         /* index into prof_facts.devices */
    uint32_t shape;          /* that ran; of idle time, that came next: PROF_NO_SHAPE = none */
    uint32_t call;           /* idle time: string id of the call that the host was in, 0 = none */
    uint32_t stream, thread; /* of what came next, ids */
    int64_t begin, end;
};
#define PROF_NO_SHAPE UINT32_MAX
typedef void prof_piece_seen(void *user, const struct prof_piece *piece);

/* The states of all devices within a set of intervals, as the waterfall of a phase has them: each
 * nanosecond of each device is in one piece. A piece may begin before its interval and end after
 * it. What the facts say of a phase does not hold afterwards. False: out of memory. */
bool prof_facts_pieces(struct prof_facts *facts, const struct prof_intervals *intervals,
                       prof_piece_seen *seen, void *user);

/* What a library does for itself (library.c): the stretch of compiling that a time lies in, or the
 * last that had begun by then; NULL = none. Of a thread that launches it is its own: it goes on
 * beside what others compile. Any other may work for a compilation on whatever thread of its
 * process. */
const struct prof_compile *prof_facts_compile_at(const struct prof_facts *facts, uint32_t thread,
                                                 int64_t time);
const struct prof_compile *prof_facts_compile_before(const struct prof_facts *facts,
                                                     uint32_t thread, int64_t time);
/* Does the thread launch no kernels, while others of its process do, in which XLA works? It is one
 * with which that library copies. */
bool prof_facts_only_copies(const struct prof_facts *facts, uint32_t thread);
/* A copy between host and device that small is a number, not data. */
#define PROF_SCALAR_BYTES 64
/* Is a copy of that shape, by that thread, a number that a library uploads for an operator? It is
 * an argument of it, and goes with its launch. */
bool prof_facts_is_argument(const struct prof_facts *facts, const struct prof_shape *shape,
                            uint32_t thread);

/* Parts of the loading. */
bool prof_facts_note_range(struct prof_facts *facts, const struct prof_event_row *row);
bool prof_facts_library(struct prof_facts *facts);           /* after operations and ranges */
bool prof_facts_ways(struct prof_facts *facts, bool floors); /* before any phase */
bool prof_facts_waterfall(struct prof_facts *facts);
bool prof_facts_devices(struct prof_facts *facts); /* after the waterfall */
enum prof_status prof_facts_missing(struct prof_facts *facts, struct prof_error *err);
enum prof_status prof_facts_read_clocks(struct prof_facts *facts, struct prof_error *err);
enum prof_status prof_facts_read_cupti(struct prof_facts *facts, struct prof_error *err);
void prof_facts_clocks(struct prof_facts *facts); /* of the phase */

/* The i-th operation of a kind, in order of start. */
static inline struct prof_op prof_facts_op(const struct prof_facts *facts, enum prof_op_kind kind,
                                           size_t i)
{
    const struct prof_op_kept *kept = &facts->ops[kind].data[i];
    if (kept->place & PROF_LONG_OP)
        return facts->long_ops.data[kept->place & ~PROF_LONG_OP];
    const struct prof_op_place *place = &facts->places.data[kept->place];
    return (struct prof_op){
        .start = kept->start,
        .duration = kept->duration,
        .call = kept->before == PROF_NO_CALL ? PROF_UNKNOWN : kept->start - kept->before,
        .call_duration = kept->call_duration,
        .shape = place->shape,
        .stream = place->stream,
        .thread = place->thread,
        .again = place->again,
    };
}

/* Walk all operations in order of start, whatever their kind. The result lives until the next
 * call. */
struct prof_op_walk {
    struct {
        size_t at;
        struct prof_op op; /* the one before it, which was returned */
    } of[PROF_OP_GRAPH + 1];
    size_t items;           /* of phase_ops, visited so far */
    enum prof_op_kind kind; /* of the next operation, if that starts before `until` */
    int64_t until;
};
/* Begin a walk some operations before a moment, so that those that last until then are seen. */
void prof_facts_seek(const struct prof_facts *facts, struct prof_op_walk *walk, int64_t time);
const struct prof_op *prof_facts_next(const struct prof_facts *facts, struct prof_op_walk *walk,
                                      enum prof_op_kind *kind);

/* ---- what belongs to a phase (phase_items.c) ------------------------------------------------- */

/* Index the operations, calls and other things by phase. After that the walks below visit only
 * what may belong to the phase of the facts, not the whole capture: for code that visits one phase
 * after the other. Does nothing where there are few phases. False: out of memory. */
bool prof_facts_index_phases(struct prof_facts *facts);
void prof_facts_free_index(struct prof_facts *facts);

/* The next thing that may belong to the phase of the facts: *item is an index below `count`, which
 * is how many there are in all. Start with *at = 0. False at the end. */
bool prof_facts_next_item(const struct prof_facts *facts, const struct prof_phase_items *of,
                          size_t count, size_t *at, size_t *item);
/* The next such operation, as prof_facts_next; NULL at the end. */
const struct prof_op *prof_facts_next_in_phase(const struct prof_facts *facts,
                                               struct prof_op_walk *walk, enum prof_op_kind *kind);

/* The calls of a thread; *count of them from the returned one on. */
const struct prof_call *prof_facts_calls(const struct prof_facts *facts, uint32_t thread,
                                         size_t *count);

/* Analysed time of the phase. */
static inline int64_t prof_facts_window_ns(const struct prof_facts *facts)
{
    return facts->phase->time_ns;
}

static inline bool prof_facts_has(const struct prof_facts *facts, int64_t time)
{
    return time >= facts->begin && time < facts->end &&
           prof_intervals_has(&facts->phase->intervals, time);
}

/* Do the counts of the phase include a call made at that time? What the host did decides, so that
 * they are the same in each run; what the device did when is a matter of time. */
static inline bool prof_facts_called(const struct prof_facts *facts, int64_t time)
{
    return prof_intervals_has(&facts->phase->host, time);
}

static inline bool prof_facts_launched(const struct prof_facts *facts, const struct prof_op *op)
{
    return op->call == PROF_UNKNOWN ? prof_facts_has(facts, op->start)
                                    : prof_facts_called(facts, op->call);
}

/* The state of a device while a memcpy or memset of this shape runs and no kernel does. */
enum prof_slice prof_copy_slice(const struct prof_shape *shape);
/* The state of an idle device while the host is in a call of this class (enum wire_class). */
enum prof_slice prof_call_slice(uint8_t class_);

static inline bool prof_is_copy(const struct prof_shape *shape)
{
    return shape->kind == PROF_OP_TRANSFER;
}

static inline bool prof_is_kernel(const struct prof_shape *shape)
{
    return shape->kind == PROF_OP_KERNEL || shape->kind == PROF_OP_GRAPH;
}

/* As prof_utilisation without a filter, from the facts of the whole capture. *known is false, and
 * the result empty, where they do not show all of it: then read the tables. */
enum prof_status prof_utilisation_of(struct prof_capture *capture, const struct prof_facts *facts,
                                     size_t gaps, size_t buckets, struct prof_utilisation *result,
                                     bool *known, struct prof_error *err);

/* ---- the typical iteration (typical_idle.c) -------------------------------------------------- */

/* Idle time of one device by iteration. NULL: too few or too many iterations for anything to be
 * typical, or out of memory (*failed). The others take NULL, too. */
struct prof_typical_idle;
struct prof_typical_idle *prof_typical_idle_new(const struct prof_facts *facts, bool *failed);
void prof_typical_idle_free(struct prof_typical_idle *idle);
/* Some of the idle time of an iteration, by state. */
void prof_typical_idle_add(struct prof_typical_idle *idle, size_t iteration,
                           const int64_t slice_ns[PROF_SLICES]);
/* Of all that `slice_ns` has, what typical iterations have. False: out of memory. */
bool prof_typical_idle_finish(const struct prof_typical_idle *idle,
                              const int64_t slice_ns[PROF_SLICES], int64_t typical_ns[PROF_SLICES]);

#endif
