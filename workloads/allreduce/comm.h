/* Adding up the gradients of all ranks, piece by piece: by NCCL, or through memory that the ranks
 * of a machine share. */
#ifndef WORKLOADS_ALLREDUCE_COMM_H
#define WORKLOADS_ALLREDUCE_COMM_H

#include "workloads/allreduce/meet.h"
#include "workloads/common/measure.h"

struct comm;

struct comm_ops {
    const char *name;
    /* Enqueues what adds up floats first .. first + count - 1 of the gradient, behind what is in
     * the queue of the model. */
    int (*reduce)(struct comm *comm, size_t first, size_t count);
    /* What is enqueued from now on sees the sums. */
    int (*finish)(struct comm *comm);
    /* Device time, or the host's, that the operations of a finished step took, ns. */
    int (*take_time)(struct comm *comm, double *ns);
    void (*close)(struct comm *comm);
};

/* Each kind begins with this. */
struct comm {
    const struct comm_ops *ops;
    struct meet *meet;
    struct session *session;
    struct dev_buffer *gradient;
};

/* All ranks call these together; *out is NULL where one cannot, with the reason in `why`, the same
 * on all. `floats`: of the gradient. */
void comm_open_nccl(struct meet *meet, struct session *session, struct comm **out, char *why,
                    size_t why_bytes);
void comm_open_shared(struct meet *meet, struct session *session, size_t floats, struct comm **out,
                      char *why, size_t why_bytes);

static inline void comm_close(struct comm *comm)
{
    if (comm)
        comm->ops->close(comm);
}

#endif
