/* The analysis of ranks; see prof_ranks.h for what it finds. The rules use prof_ranks_of; the rest
 * is shared by its files only.
 *
 *   calls.c        NVTX ranges of collective operations, with what their payloads say
 *   kernels.c      kernels of collective operations, and which calls each of them serves
 *   operations.c   what each rank's device did, as sets of intervals
 *   match.c        the same operation on all ranks: who came last, who waited; sends and receives
 *   causes.c       why a rank came last
 *   tables.c       sums of collectives and of ways between ranks, measured rates, network ports
 *   causes.c  what a rank did otherwise than most
 *   ranks.c        the iterations of each rank, and in which order */
#ifndef PERFKIT_ANALYSIS_RANKS_RANKS_H
#define PERFKIT_ANALYSIS_RANKS_RANKS_H

#include "libprof/analysis/group.h"
#include "libprof/analysis/intervals.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/include/prof_ranks.h"

/* One rank's part in an operation that was found on the others too, or on the other end. */
struct prof_rank_part {
    int64_t start, end;
    int64_t stream, thread; /* ids; stream: of its kernel, 0 = it has none, and is of the host */
    uint32_t operation;     /* the same for all parts of one */
};

struct prof_rank_parts {
    struct prof_rank_part *data; /* by start, then stream */
    size_t count, capacity;
    const char *why_unmatched; /* these as in prof_ranks */
    int64_t world_size, missing;
};

/* The parts of all operations that were matched; free the data, also after a failure. Nothing where
 * clocks could not be compared. */
enum prof_status prof_rank_parts_read(const struct prof_facts *facts,
                                      const struct prof_filter *filter,
                                      struct prof_rank_parts *parts, struct prof_error *err);

/* What a kernel that starts then in the stream is a part of; 0 = nothing that was matched. */
uint32_t prof_rank_operation(const struct prof_rank_parts *parts, int64_t start, int64_t stream);

/* prof_ranks from facts that are loaded already. */
enum prof_status prof_ranks_of(const struct prof_facts *facts, const struct prof_filter *filter,
                               struct prof_ranks *result, struct prof_error *err);

enum rank_call_kind {
    RANK_CALL_OPERATION,
    RANK_CALL_GROUP_START,
    RANK_CALL_GROUP_END,
    RANK_CALL_INIT
};

/* A range of interest. */
struct rank_call {
    int64_t range, start, end; /* end: INT64_MAX while open */
    int64_t thread, process;
    enum rank_call_kind kind;
    enum prof_collective operation;
    bool on_host; /* its time is the operation's: no kernel belongs to it */
    bool served;  /* a kernel was found for it */
    int64_t bytes, peer;
    int64_t ranks, rank, device; /* INIT */
    uint64_t communicator;       /* 0 = not known */
    const char *reduction;
};

/* What calls say of the kernel that serves them. */
struct rank_said {
    enum prof_collective operation;      /* NONE: nothing is known but the kernel's name */
    int64_t calls, bytes, message, peer; /* bytes: of all messages; message: of one, where all are
                                            of one size */
    uint64_t communicator;
    const char *reduction;
};

struct rank_kernel {
    int64_t id, start, end, stream, thread, call, process, device;
    enum prof_collective operation; /* by its name */
    int64_t node;                   /* PROF_UNKNOWN = of no graph */
    struct rank_said said;
};

/* One operation as one rank saw it. */
struct rank_event {
    uint32_t unit, communicator; /* indices */
    int64_t start, end, call;
    int64_t stream, thread; /* as in prof_rank_part */
    uint32_t joined;        /* number of what was matched; 0 = not matched */
    struct rank_said said;
    bool in_graph;
    int64_t sequence; /* in its communicator, PROF_UNKNOWN = not counted */
    int64_t wait;     /* PROF_UNKNOWN = not matched */
    int64_t transfer; /* of a send or receive that was: without waiting; else 0 */
};

struct rank_communicator {
    uint64_t number; /* 0 = not known */
    int64_t ranks;
    double link_rate; /* bytes/s that the links of its ranks were measured at; NaN */
};

/* A set of intervals with what lies before each of them. */
struct rank_cover {
    struct prof_intervals set;
    int64_t *before;
};
bool rank_cover_finish(struct rank_cover *cover);
/* Length of the set within [begin, end). */
int64_t rank_cover_length(const struct rank_cover *cover, int64_t begin, int64_t end);
void rank_cover_free(struct rank_cover *cover);

struct rank_unit {
    int64_t process, device, rank;
    int64_t begin, end;                                    /* window */
    struct rank_cover compute, copies, collectives, waits; /* copies: without those under kernels */
    struct rank_cover exposed, busy;
    const struct prof_intervals *iterations; /* of its process; apart, not a set */
    int64_t kernels;
    uint32_t number; /* while they are put in order */
    struct prof_rank_row row;
};

/* A count of something exact on one unit. */
struct rank_count {
    enum prof_rank_difference_kind kind;
    int64_t key, key2; /* configuration; kind of copy; operation and bytes */
    uint32_t unit;
    int64_t count, sum_ns;
};

/* Operations of one sequence number of a communicator, a row of which is in `members`. */
struct rank_set {
    size_t first, count; /* into work.members */
    uint32_t communicator;
    uint32_t last; /* index into events: who came last */
    int64_t late, skew, caused, transfer;
};

struct rank_work {
    struct prof_capture *capture;
    struct prof_scope scope;
    PROF_ARRAY(struct rank_call) calls; /* by thread, then start */
    PROF_ARRAY(struct rank_kernel) kernels;
    PROF_ARRAY(struct rank_event) events;
    PROF_ARRAY(struct rank_communicator) communicators;
    struct prof_map communicator_at;
    PROF_ARRAY(struct rank_unit) units;
    struct prof_map unit_at;           /* (process, device) -> index */
    bool *takes_part;                  /* by index of the process */
    struct prof_intervals *iterations; /* likewise */
    int64_t *collective_device; /* likewise: device.id of its collective kernels, 0 = none, or: */
#define PROF_SEVERAL (-1)       /* each of its devices is a rank */
    enum prof_collective *config_operation; /* by index of the configuration */
    PROF_ARRAY(struct rank_count) counts;
    struct prof_names count_at;   /* what is counted -> index */
    PROF_ARRAY(uint32_t) members; /* indices into events */
    PROF_ARRAY(struct rank_set) sets;
    uint32_t joined; /* operations that were matched so far */
    PROF_ARRAY(const char *) texts;
    const char *iteration_name;
    const char *why_unmatched;
    int64_t unserved;
    int64_t clock_error; /* moments of different ranks: less is no difference */
    bool clock_unknown;  /* how much it is is not known */
};

/* calls.c */
enum prof_status rank_calls_read(struct rank_work *w, struct prof_error *err);
enum prof_status rank_calls_exist(struct prof_capture *capture, bool *exist,
                                  struct prof_error *err);

/* kernels.c */
bool rank_configs(struct rank_work *w, bool *any);
enum prof_status rank_kernels_read(struct rank_work *w, struct prof_error *err);

/* ranks.c */
/* Number of the iteration of a unit that a moment lies in; PROF_UNKNOWN = in none. */
int64_t rank_iteration_at(const struct rank_unit *unit, int64_t time);

/* operations.c */
enum prof_status rank_operations_read(struct rank_work *w, struct prof_error *err);
bool rank_events_make(struct rank_work *w);
bool rank_windows(struct rank_work *w);

/* What belongs together is believed where this much of it fits, by clocks this good. */
#define RANK_FIT_SLACK_NS 20000 /* of devices of one machine, as CUPTI converts them */
#define RANK_LEAST_FITTING 0.9

/* match.c */
bool rank_match(struct rank_work *w);

/* causes.c */
bool rank_causes(struct rank_work *w, struct prof_ranks *result);

/* tables.c: the first fills link_rate of the communicators, when events are in their order. */
enum prof_status rank_link_rates(struct rank_work *w, struct prof_error *err);
enum prof_status rank_ports(struct rank_work *w, struct prof_ranks *result, struct prof_error *err);
bool rank_collectives(struct rank_work *w, struct prof_ranks *result);
bool rank_links(struct rank_work *w, struct prof_ranks *result);

/* causes.c */
bool rank_differences(struct rank_work *w, struct prof_ranks *result);

/* The median of values, which are put in order; NaN without any. */
double rank_median(int64_t *values, size_t count);

#endif
