/* prof_ranks.h: programs of several processes that work together, and what they send each other.
 *
 * A rank is a process that takes part, or one of its devices where several of them do. Ranks are
 * found by the launchers' variables (process.rank), by NCCL (what ncclCommInitRank was given), and
 * by collective operations. They may be of one capture (torchrun under one `perfkit run`) or of a
 * merged one (`perfkit merge`).
 *
 * An operation is seen from the ranges that NCCL, MPI wrappers or the program put around it, from
 * the kernels that do it, or from both: see docs/guide/distributed.md. Its time is that of its
 * kernel, or of its range where it has none. Conventions as in prof.h. */
#ifndef PERFKIT_PROF_RANKS_H
#define PERFKIT_PROF_RANKS_H

#include "libprof/gpu/collective_name.h"
#include "libprof/include/prof.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PROF_NO_RANK UINT32_MAX

/* What a rank did between two collectives, and why it came late to the second. */
enum prof_rank_cause {
    PROF_CAUSE_UNKNOWN,
    PROF_CAUSE_COMPUTE, /* its kernels took longer */
    PROF_CAUSE_COPY,    /* its copies and fills took longer */
    PROF_CAUSE_HOST,    /* its device waited longer for the host */
    PROF_CAUSES
};
/* "compute"; static, never NULL. */
const char *prof_rank_cause_text(enum prof_rank_cause cause);

/* Times are unions of intervals within the window: nothing is counted twice. */
struct prof_rank_row {
    int64_t process, device; /* ids; device 0 = none was used */
    int64_t rank;            /* PROF_UNKNOWN = not given */
    const char *host;
    int64_t pid;
    int64_t begin_ns,
        window_ns; /* what is analysed: its iterations, else first to last operation */
    int64_t iterations;
    double iteration_ns; /* median; NaN without iterations */
    int64_t busy_ns;     /* any device operation, or a collective */
    int64_t compute_ns;  /* kernels that are no collectives */
    int64_t copy_ns;     /* copies and fills while none of those ran */
    int64_t idle_ns;     /* the rest of the window */
    int64_t collective_ns;
    int64_t exposed_ns; /* collectives while no other kernel ran */
    int64_t wait_ns;    /* in collectives, until the last rank had come */
    int64_t kernels, collectives;
    int64_t analysed;   /* collectives of the window that were found on the other ranks too */
    int64_t last_count; /* of them, those to which it came last of all */
    int64_t last_ns;    /* summed: how long after the second last, which is what it alone costs */
    int64_t caused_ns;  /* summed: what all others waited for it */
    enum prof_rank_cause cause;     /* of most of that */
    int64_t excess_ns[PROF_CAUSES]; /* of those times, against the median of the other ranks */
    const char
        *slow_kernel; /* the kernel that took longest above the median of the others, or NULL */
    int64_t slow_kernel_ns; /* by so much, over the window */
    double collective_share, exposed_share, wait_share, idle_share; /* of window_ns */
};

/* What ranks did together: operations of one kind and size of a communicator, over all ranks. */
struct prof_collective_row {
    enum prof_collective operation;
    const char *name;      /* of the operation */
    const char *reduction; /* "Sum"; NULL = does not apply, or not known */
    bool has_communicator;
    uint64_t communicator;          /* the library's number of it */
    char communicator_text[20];     /* the same as "0x7fed..."; "" without */
    int64_t ranks;                  /* in the communicator; PROF_UNKNOWN */
    int64_t seen_ranks;             /* of them in this capture */
    int64_t bytes;                  /* of one message, as the call was given it; PROF_UNKNOWN */
    int64_t count;                  /* operations, over all ranks */
    int64_t calls;                  /* calls in them: more where calls were grouped; PROF_UNKNOWN */
    int64_t in_graphs;              /* of `count`, nodes of CUDA graphs */
    struct prof_spread duration_ns; /* as each rank saw it, waiting included */
    int64_t matched;    /* operations that were found on all ranks seen, or on both ends; the three
                           below    are of these, the skew of collectives only */
    double transfer_ns; /* median, from the moment the last rank had come: without waiting */
    double skew_ns;     /* median, first to last arrival */
    int64_t wait_ns;    /* sum over ranks */
    /* bytes/s, as nccl-tests define them, of transfer_ns (of the median duration where nothing was
     * matched: then waiting is in it); NaN = not known. */
    double algorithm_rate, bus_rate;
    /* The slowest of peer_copy (prof_roofline.h) of its ranks' devices; NaN where one was not
     * measured or a rank is not on the same host. */
    double link_rate, link_share; /* bytes/s; bus_rate of it */
};

/* A collective that began late because of one rank. */
struct prof_rank_late {
    uint32_t rank;     /* index into rows: who came last */
    int64_t start_ns;  /* when */
    int64_t iteration; /* from 0; PROF_UNKNOWN */
    enum prof_collective operation;
    int64_t bytes, sequence;
    int64_t late_ns;   /* after the second last */
    int64_t skew_ns;   /* after the first */
    int64_t caused_ns; /* what the others waited for it, summed */
    enum prof_rank_cause cause;
    int64_t excess_ns; /* of that cause */
};

struct prof_rank_iteration {
    uint32_t rank;     /* index into rows */
    int64_t iteration; /* from 0 */
    int64_t start_ns, duration_ns;
    int64_t compute_ns, copy_ns, exposed_ns, wait_ns, idle_ns;
    bool slowest; /* least waiting of all ranks of that iteration, where any waited */
};

enum prof_rank_difference_kind {
    PROF_DIFFERS_LAUNCHES,    /* launches of a kernel configuration */
    PROF_DIFFERS_COPIED,      /* bytes copied, by kind */
    PROF_DIFFERS_COLLECTIVES, /* operations, by kind and bytes */
};
/* Something exact that a rank did otherwise than most ranks. */
struct prof_rank_difference {
    uint32_t rank;
    enum prof_rank_difference_kind kind;
    const char *name;                 /* kernel, kind of copy, operation */
    const struct prof_config *config; /* LAUNCHES */
    struct prof_text shape;           /* its grid and block as prof_launch_shape; "" without */
    int64_t here, usual;              /* count or bytes: of this rank, of most */
    int64_t usual_ranks;              /* so many have the usual number */
};

/* A way between ranks: all operations of a communicator, or sends from one rank to another. */
struct prof_rank_link {
    bool has_communicator;
    uint64_t communicator;
    char communicator_text[20]; /* as above */
    int64_t from, to;           /* ranks of a pair; PROF_UNKNOWN = a communicator as a whole */
    int64_t ranks;
    int64_t count, bytes; /* of operations that have a rate */
    double bus_rate;      /* median over large ones (1 MiB and more) */
    double link_rate;     /* as in prof_collective_row */
    double usual_rate;    /* median of the other links of as many ranks; NaN = no other */
};

/* What a port of a host's network carried while perfkit recorded, of all users. */
struct prof_rank_port {
    int64_t process; /* one of the host's */
    const char *host, *name;
    const char *kind;               /* "ethernet", "virtual", "infiniband", "roce"; NULL */
    int64_t duration_ns;            /* that was recorded */
    int64_t received, sent;         /* bytes */
    double receive_rate, send_rate; /* bytes/s, over duration_ns */
    double link_rate, link_share;   /* of the larger of them; NaN = the port does not report it */
};

struct prof_ranks {
    struct prof_rank_row *rows; /* by rank, then process and device */
    size_t count;
    struct prof_collective_row *collectives; /* by summed duration, largest first */
    size_t collective_count;
    struct prof_rank_late *late; /* worst first; at most PROF_RANKS_LATE */
    size_t late_count;
    struct prof_rank_iteration *iterations; /* by iteration, then rank */
    size_t iteration_count;
    struct prof_rank_difference
        *differences; /* by rank, then kind; at most PROF_RANKS_DIFFERENCES */
    size_t difference_count;
    int64_t differences_left_out;
    struct prof_rank_link *links; /* slowest against the usual first */
    size_t link_count;

    struct prof_rank_port *ports; /* by bytes, most first */
    size_t port_count;

    const char *iteration_name;   /* NVTX range; NULL = none repeats on every rank */
    int64_t world_size;           /* PROF_UNKNOWN */
    int64_t missing;              /* ranks of it that are not here; PROF_UNKNOWN */
    int64_t operations, matched;  /* collectives on one rank; of them matched with all others */
    const char *why_unmatched;    /* static; NULL = all were, or there are none */
    int64_t calls_without_kernel; /* calls of NCCL whose kernel is not known (copy engines, ...) */
    int64_t clock_error_ns; /* of moments on different hosts, as merging found it; 0 = one host.
                               PROF_UNKNOWN = not known: then nothing is reported of lateness */
    double imbalance;       /* largest compute time over the mean, less 1; NaN */
};

#define PROF_RANKS_LATE 20
#define PROF_RANKS_DIFFERENCES 200

/* Everything about ranks. A capture without any gives an empty result (count 0). A filter may
 * choose time, process and device. Reads the ranges and the device tables once; memory: 16 bytes a
 * device operation and about 150 a collective. */
enum prof_status prof_ranks(struct prof_capture *capture, const struct prof_filter *filter,
                            struct prof_ranks *result, struct prof_error *err);
void prof_ranks_free(struct prof_ranks *result);

/* Are there several ranks, or collectives? Reads small tables and texts only. */
enum prof_status prof_ranks_present(struct prof_capture *capture, bool *present,
                                    struct prof_error *err);

#ifdef __cplusplus
}
#endif

#endif
