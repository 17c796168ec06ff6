/* Signed feature hashing in double precision: what every backend is compared with. Threads own
 * plots, not records, so a cell is always summed in the order of the records and the result is
 * the same for any number of threads.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/hash_embedding/hash_embedding.h"

struct share {
    const struct hash_shape *shape;
    const struct hash_records *records;
    double *out;
    uint32_t first_plot, last_plot;
    pthread_t thread;
};

static void *compute(void *argument)
{
    struct share *share = argument;
    uint32_t dim = share->shape->dim;
    const struct hash_records *r = share->records;

    memset(share->out + (size_t)share->first_plot * dim, 0,
           (size_t)(share->last_plot - share->first_plot) * dim * sizeof share->out[0]);
    for (uint32_t i = 0; i < share->shape->records; i++) {
        double *row = share->out + (size_t)r->plot[i] * dim;
        uint32_t g, f;

        if (r->plot[i] < share->first_plot || r->plot[i] >= share->last_plot)
            continue;
        g = hash_mix(r->genus[i], HASH_SALT_GENUS);
        f = hash_mix(r->family[i], HASH_SALT_FAMILY);
        row[hash_column(g, dim)] += hash_signed(g, r->abundance[i]);
        row[hash_column(f, dim)] += hash_signed(f, r->abundance[i]);
    }
    return NULL;
}

int hash_reference(const struct hash_shape *shape, const struct hash_records *records,
                   uint32_t threads, double *out)
{
    struct share *shares;
    uint32_t started = 0;

    if (threads == 0)
        threads = 1;
    shares = calloc(threads, sizeof shares[0]);
    if (!shares)
        return -1;
    for (uint32_t i = 0; i < threads; i++)
        shares[i] = (struct share){
            .shape = shape,
            .records = records,
            .out = out,
            .first_plot = (uint32_t)((uint64_t)shape->plots * i / threads),
            .last_plot = (uint32_t)((uint64_t)shape->plots * (i + 1) / threads),
        };
    while (started + 1 < threads &&
           pthread_create(&shares[started].thread, NULL, compute, &shares[started]) == 0)
        started++;
    for (uint32_t i = started; i < threads; i++) /* the last share, and what got no thread */
        compute(&shares[i]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(shares[i].thread, NULL);
    free(shares);
    return 0;
}
