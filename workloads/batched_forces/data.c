/* The generated data: molecules and the network's weights, all from the seed.
 *
 * Benzene is the real one (C-C 1.39, C-H 1.09 angstrom), each atom moved by up to 0.05 so that no
 * two molecules are the same and forces are not zero by symmetry. Larger molecules grow atom by
 * atom, each 1.1 to 1.5 from one that is there and at least 1.0 from all others.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/batched_forces/workload.h"
#include "workloads/common/random.h"

#define BENZENE_ATOMS 12

static void make_benzene(struct random *random, uint32_t *species, float *positions)
{
    for (uint32_t i = 0; i < BENZENE_ATOMS; i++) {
        bool carbon = i < BENZENE_ATOMS / 2;
        float angle = (float)(i % 6) * 1.04719755f, radius = carbon ? 1.39f : 2.48f;

        species[i] = carbon;
        positions[3 * i] = radius * cosf(angle);
        positions[3 * i + 1] = radius * sinf(angle);
        positions[3 * i + 2] = 0;
        for (uint32_t c = 0; c < 3; c++)
            positions[3 * i + c] += 0.05f * random_signed(random);
    }
}

static float distance_squared(const float *a, const float *b)
{
    float x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];

    return x * x + y * y + z * z;
}

/* A place beside one of the first `atoms` atoms that is near to none of them. */
static void find_place(struct random *random, const float *positions, uint32_t atoms, float *place)
{
    for (;;) {
        const float *beside = positions + 3 * (size_t)random_below(random, atoms);
        float step[3], length, bond = 1.1f + 0.4f * random_unit(random);
        bool free = true;

        for (int c = 0; c < 3; c++)
            step[c] = random_signed(random);
        length = sqrtf(distance_squared(step, (const float[3]){0, 0, 0}));
        if (length > 1 || length < 0.1f)
            continue;
        for (int c = 0; c < 3; c++)
            place[c] = beside[c] + step[c] / length * bond;
        for (uint32_t i = 0; i < atoms && free; i++)
            free = distance_squared(place, positions + 3 * (size_t)i) >= 1.0f;
        if (free)
            return;
    }
}

static void make_molecule(struct random *random, uint32_t atoms, uint32_t *species,
                          float *positions)
{
    memset(positions, 0, 3 * sizeof positions[0]);
    for (uint32_t i = 0; i < atoms; i++) {
        species[i] = random_below(random, SPECIES);
        if (i > 0)
            find_place(random, positions, i, positions + 3 * (size_t)i);
    }
}

int molecules_make(const struct forces_options *options, struct molecules *set)
{
    struct random random = {.state = options->common.seed};
    uint32_t count = options->molecules;

    *set = (struct molecules){.count = count};
    set->first = calloc((size_t)count + 1, sizeof set->first[0]);
    if (!set->first)
        return -1;
    for (uint32_t m = 0; m < count; m++) { /* mixed: from half the largest size up */
        uint32_t atoms = BENZENE_ATOMS;

        if (options->set == SET_MIXED)
            atoms = options->atoms - random_below(&random, options->atoms / 2 + 1);
        set->first[m + 1] = set->first[m] + atoms;
    }
    set->atoms = set->first[count];
    set->species = calloc(set->atoms, sizeof set->species[0]);
    set->positions = calloc(3 * (size_t)set->atoms, sizeof set->positions[0]);
    if (!set->species || !set->positions) {
        molecules_free(set);
        return -1;
    }
    for (uint32_t m = 0; m < count; m++) {
        uint32_t at = set->first[m], atoms = set->first[m + 1] - at;

        if (options->set == SET_MIXED)
            make_molecule(&random, atoms, set->species + at, set->positions + 3 * (size_t)at);
        else
            make_benzene(&random, set->species + at, set->positions + 3 * (size_t)at);
    }
    return 0;
}

void molecules_free(struct molecules *set)
{
    free(set->first);
    free(set->species);
    free(set->positions);
    *set = (struct molecules){0};
}

uint32_t count_edges(const struct molecules *set, uint32_t first, uint32_t last, float cutoff)
{
    uint32_t edges = 0;

    for (uint32_t m = first; m < last; m++)
        for (uint32_t i = set->first[m]; i < set->first[m + 1]; i++)
            for (uint32_t j = set->first[m]; j < i; j++)
                if (distance_squared(set->positions + 3 * (size_t)i,
                                     set->positions + 3 * (size_t)j) < cutoff * cutoff)
                    edges += 2;
    return edges;
}

/* Uniform with the variance 1 / `inputs`: sums of so many terms stay near one. */
static float *random_weights(struct random *random, size_t count, float inputs)
{
    float *weights = malloc(count * sizeof weights[0]), scale = sqrtf(3 / inputs);

    for (size_t i = 0; weights && i < count; i++)
        weights[i] = scale * random_signed(random);
    return weights;
}

static float *transpose(const float *matrix, uint32_t rows, uint32_t columns)
{
    float *out = malloc((size_t)rows * columns * sizeof out[0]);

    for (uint32_t r = 0; out && matrix && r < rows; r++)
        for (uint32_t c = 0; c < columns; c++)
            out[(size_t)c * rows + r] = matrix[(size_t)r * columns + c];
    return out;
}

int network_make(const struct forces_options *options, struct network *network)
{
    struct random random = {.state = options->common.seed ^ 0x6e6574776f726bu};
    uint32_t width = options->width, functions = options->functions;
    size_t square = (size_t)width * width;
    bool whole = true;

    *network = (struct network){.width = width,
                                .width_log2 = (uint32_t)__builtin_ctz(width),
                                .functions = functions,
                                .layers = options->layers,
                                .spacing = CUTOFF / (float)(functions - 1)};
    network->gamma = 0.5f / (network->spacing * network->spacing);
    network->embedding = random_weights(&random, (size_t)SPECIES * width, 1);
    for (uint32_t l = 0; l < network->layers; l++) {
        struct layer *layer = &network->layer[l];

        /* A distance lights up about four functions. */
        layer->filter = random_weights(&random, (size_t)functions * width, 4);
        layer->filter_transposed = transpose(layer->filter, functions, width);
        layer->update = random_weights(&random, square, (float)width);
        layer->update_transposed = transpose(layer->update, width, width);
        layer->bias = random_weights(&random, width, 10);
        whole = whole && layer->filter && layer->filter_transposed && layer->update &&
                layer->update_transposed && layer->bias;
    }
    network->readout = random_weights(&random, square, (float)width);
    network->readout_transposed = transpose(network->readout, width, width);
    network->readout_bias = random_weights(&random, width, 10);
    network->energy = random_weights(&random, width, (float)width);
    if (whole && network->embedding && network->readout && network->readout_transposed &&
        network->readout_bias && network->energy)
        return 0;
    network_free(network);
    return -1;
}

void network_free(struct network *network)
{
    free(network->embedding);
    for (uint32_t l = 0; l < MAX_LAYERS; l++) {
        free(network->layer[l].filter);
        free(network->layer[l].filter_transposed);
        free(network->layer[l].update);
        free(network->layer[l].update_transposed);
        free(network->layer[l].bias);
    }
    free(network->readout);
    free(network->readout_transposed);
    free(network->readout_bias);
    free(network->energy);
    *network = (struct network){0};
}
