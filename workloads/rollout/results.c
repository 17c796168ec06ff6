/* What follows from a row: how far a state is from another one, in the measures of the seed
 * document, times per step, rates, sums. */
#include <math.h>

#include "workloads/rollout/workload.h"

struct errors errors_between(const float *out, const double *reference, size_t count)
{
    struct errors errors = {.done = true};
    double squares = 0, difference = 0, floor_value;
    size_t relative = 0;

    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)out[i] - reference[i]);

        squares += reference[i] * reference[i];
        difference += error * error;
        errors.mean_absolute += error / (double)count;
        if (!(error <= errors.max_absolute)) /* NaN stays */
            errors.max_absolute = error;
    }
    floor_value = 1e-3 * sqrt(squares / (double)count);
    for (size_t i = 0; i < count; i++) {
        if (fabs(reference[i]) < floor_value || reference[i] == 0)
            continue;
        errors.mean_relative += fabs((double)out[i] - reference[i]) / fabs(reference[i]);
        relative++;
    }
    errors.mean_relative /= relative ? (double)relative : 1;
    errors.norm = squares > 0 ? sqrt(difference / squares) : difference > 0 ? INFINITY : 0;
    return errors;
}

bool result_passed(const struct result *result)
{
    return !result->reference.done || result->reference.norm <= result->tolerance;
}

double step_ns(const struct result *result)
{
    return result->wall.median / result->steps;
}

double image_step_ns(const struct result *result)
{
    return step_ns(result) / result->images;
}

double break_even_steps(const struct result *eager, const struct result *graph)
{
    double gain_ns = step_ns(eager) - step_ns(graph);

    return gain_ns > 0 ? ceil(graph->compile_ns / gain_ns) : NAN;
}

double part_bandwidth(const struct result *result, enum part part)
{
    const struct tally *tally = &result->tally[part];

    return (tally->bytes_read + tally->bytes_written) / result->part_ns[part] * 1e9;
}

double part_bandwidth_beside_launches(const struct result *result, enum part part)
{
    const struct tally *tally = &result->tally[part];
    double ns = result->part_ns[part] - tally->launches * result->empty_ns;

    return ns > 0 ? (tally->bytes_read + tally->bytes_written) / ns * 1e9 : INFINITY;
}

double field_bytes(const struct result *result)
{
    const struct tally *tally = &result->tally[PART_ACTIVATION];

    return tally->bytes_written / tally->launches;
}

uint64_t memory_sum(const uint64_t bytes[MEMORY_KINDS])
{
    uint64_t sum = 0;

    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        sum += bytes[kind];
    return sum;
}
