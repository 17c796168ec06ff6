/* The generated data: species records with a skewed choice of genus (few common, many rare), a
 * family that follows from the genus, abundances in (0, 1], and plots with about records/plots
 * records each. Everything comes from the seed.
 */
#include <stdlib.h>
#include <string.h>

#include "workloads/common/random.h"
#include "workloads/hash_embedding/workload.h"

static void make_records(struct dataset *data, struct random *random)
{
    uint32_t records = data->shape.records, plots = data->shape.plots;

    for (uint32_t i = 0; i < records; i++) {
        float u = random_unit(random);
        uint32_t genus = (uint32_t)((float)data->genera * u * u);

        data->plot[i] = random_below(random, plots);
        data->genus[i] = genus < data->genera ? genus : data->genera - 1;
        data->family[i] = hash_mix(data->genus[i], 0) % data->families;
        data->abundance[i] = random_unit(random);
    }
}

/* Sorting moves only the plot numbers: the other fields do not depend on them. */
static void sort_records(struct dataset *data)
{
    uint32_t *first = data->first_record;
    uint32_t plots = data->shape.plots;

    memset(first, 0, (plots + 1) * sizeof first[0]);
    for (uint32_t i = 0; i < data->shape.records; i++)
        first[data->plot[i] + 1]++;
    for (uint32_t p = 0; p < plots; p++) {
        first[p + 1] += first[p];
        for (uint32_t i = first[p]; i < first[p + 1]; i++)
            data->plot[i] = p;
    }
}

int dataset_make(const struct hash_options *options, const struct hash_shape *shape,
                 struct dataset *data)
{
    struct random random = {.state = options->common.seed};
    size_t records = shape->records, ids = (size_t)shape->plots * options->top_k;

    *data = (struct dataset){.shape = *shape,
                             .top_k = options->top_k,
                             .embed = options->embed,
                             .genera = options->genera,
                             .families = options->families};
    data->table_floats =
        (size_t)options->top_k * (options->genera + options->families) * options->embed;
    data->plot = calloc(records, sizeof data->plot[0]);
    data->genus = calloc(records, sizeof data->genus[0]);
    data->family = calloc(records, sizeof data->family[0]);
    data->abundance = calloc(records, sizeof data->abundance[0]);
    data->pred = calloc(records, sizeof data->pred[0]);
    data->target = calloc(records, sizeof data->target[0]);
    data->genus_ids = calloc(ids, sizeof data->genus_ids[0]);
    data->family_ids = calloc(ids, sizeof data->family_ids[0]);
    data->tables = calloc(data->table_floats, sizeof data->tables[0]);
    if (shape->sorted)
        data->first_record = calloc((size_t)shape->plots + 1, sizeof data->first_record[0]);
    if (!data->plot || !data->genus || !data->family || !data->abundance || !data->pred ||
        !data->target || !data->genus_ids || !data->family_ids || !data->tables ||
        (shape->sorted && !data->first_record)) {
        dataset_free(data);
        return -1;
    }
    make_records(data, &random);
    if (shape->sorted)
        sort_records(data);
    for (size_t i = 0; i < ids; i++) {
        data->genus_ids[i] = random_below(&random, options->genera);
        data->family_ids[i] = random_below(&random, options->families);
    }
    for (size_t i = 0; i < data->table_floats; i++)
        data->tables[i] = random_unit(&random) - 0.5f;
    for (size_t i = 0; i < records; i++) {
        data->target[i] = 100 * random_unit(&random);
        data->pred[i] = data->target[i] * (0.5f + random_unit(&random));
    }
    return 0;
}

void dataset_free(struct dataset *data)
{
    free(data->plot);
    free(data->genus);
    free(data->family);
    free(data->abundance);
    free(data->pred);
    free(data->target);
    free(data->genus_ids);
    free(data->family_ids);
    free(data->tables);
    free(data->first_record);
    *data = (struct dataset){0};
}

size_t table_first_row(const struct dataset *data, uint32_t lookup)
{
    if (lookup < data->top_k)
        return (size_t)lookup * data->genera;
    return (size_t)data->top_k * data->genera + (size_t)(lookup - data->top_k) * data->families;
}
