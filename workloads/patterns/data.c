/* Random inputs, poisoned outputs, and reading results back. */
#include <stdlib.h>

#include "kernels/device/parallel.h"
#include "workloads/common/random.h"
#include "workloads/patterns/workload.h"

struct filling {
    uint64_t state;
    float *floats;
};

static void fill(void *context, uint64_t first, uint64_t end)
{
    const struct filling *filling = context;
    struct random random = {filling->state};

    random_skip(&random, first);
    for (uint64_t i = first; i < end; i++)
        filling->floats[i] = random_unit(&random);
}

float *random_floats(const struct run *run, uint64_t salt, size_t count)
{
    struct filling filling = {run->options->common.seed * 1000003u + salt,
                              calloc(count, sizeof(float))};

    if (filling.floats)
        parallel_for(0, count, fill, &filling);
    return filling.floats;
}

int check_buffer(struct session *session, struct dev_buffer *buffer, const double *reference,
                 size_t count, struct check *check)
{
    float *out = malloc(count * sizeof out[0]);
    int result = -1;

    if (out && reference &&
        dev_read(session->queue, buffer, 0, out, count * sizeof out[0], DEV_BLOCKING, NULL) == 0) {
        check_note(check, relative_error(out, reference, count));
        result = 0;
    }
    free(out);
    return result;
}
