/* One shape of the sweep: the kernels that apply to it, measured against each other. */
#ifndef WORKLOADS_HASH_EMBEDDING_SWEEP_POINT_H
#define WORKLOADS_HASH_EMBEDDING_SWEEP_POINT_H

#include "workloads/common/json.h"
#include "workloads/common/table.h"
#include "workloads/hash_embedding/workload.h"

#define ALLOWED_LOSS 1.10    /* a choice may be this much slower than the best */
#define POINT_MOST_ROUNDS 10 /* times the iterations that were asked for */

struct contender {
    enum hash_variant variant;
    const struct variant *row;
    void *state; /* of the variant */
    struct session *session;
    struct dev_graph *graph; /* `repetitions` steps, where the device has graphs; else NULL */
    uint32_t repetitions;    /* of the step in a sample; 1 without a graph */
    struct stats ns;         /* of one step */
    struct check check;
};

struct point {
    struct hash_shape shape;
    struct contender contenders[HASH_AUTO];
    size_t count;
    size_t best, chosen; /* contenders; HASH_AUTO is the chosen one's kernel and plan, no other */
    uint32_t rounds;     /* samples of each contender */
};

/* Fills the rest of a point from its shape. -1 with dev_error_text. */
int point_measure(const struct hash_options *options, struct session *session, struct point *point);

/* The chosen kernel's time over the best one's; and whether that is allowed and the outputs agree.
 */
double point_loss(const struct point *point);
bool point_passed(const struct point *point);

void point_row(struct table *table, const struct point *point);
/* Columns shape, order, and each kernel's median and spread. */
void point_spread_row(struct table *table, const struct point *point);
void point_json(struct json *json, const struct point *point);

/* "65536 sorted rows of 64 plots, basic 12.1 us +- 0.2, chunked 8.4 us +- 0.1" */
void point_text(const struct point *point, char *text, size_t bytes);

#endif
