/* Signed feature hashing in double precision: what every backend is compared with. Threads own
 * plots, not records, so a cell is always summed in the order of the records and the result is
 * the same for any number of threads.
 */
#include <string.h>

#include "kernels/device/parallel.h"
#include "kernels/hash_embedding/hash_embedding.h"

struct task {
    const struct hash_shape *shape;
    const struct hash_records *records;
    double *out;
};

static void hash_plots(void *context, uint64_t first_plot, uint64_t end_plot)
{
    const struct task *task = context;
    uint32_t dim = task->shape->dim;
    const struct hash_records *r = task->records;

    memset(task->out + first_plot * dim, 0, (end_plot - first_plot) * dim * sizeof task->out[0]);
    for (uint32_t i = 0; i < task->shape->records; i++) {
        double *row = task->out + (size_t)r->plot[i] * dim;
        uint32_t g, f;

        if (r->plot[i] < first_plot || r->plot[i] >= end_plot)
            continue;
        g = hash_mix(r->genus[i], HASH_SALT_GENUS);
        f = hash_mix(r->family[i], HASH_SALT_FAMILY);
        row[hash_column(g, dim)] += hash_signed(g, r->abundance[i]);
        row[hash_column(f, dim)] += hash_signed(f, r->abundance[i]);
    }
}

void hash_reference(const struct hash_shape *shape, const struct hash_records *records,
                    uint32_t threads, double *out)
{
    struct task task = {shape, records, out};

    parallel_for(threads, shape->plots, hash_plots, &task);
}
