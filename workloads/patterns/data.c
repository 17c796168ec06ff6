/* Random inputs, poisoned outputs, and reading results back. */
#include <stdlib.h>

#include "workloads/common/random.h"
#include "workloads/patterns/workload.h"

float *random_floats(const struct run *run, uint64_t salt, size_t count)
{
    struct random random = {run->options->common.seed * 1000003u + salt};
    float *floats = calloc(count, sizeof floats[0]);

    for (size_t i = 0; floats && i < count; i++)
        floats[i] = random_unit(&random);
    return floats;
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
