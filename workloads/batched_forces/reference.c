/* Energies and forces in double precision, one molecule at a time, on the pairs i < j; and the
 * proof of the forces: central differences of the energy.
 *
 * Nothing here follows the kernels' way of summing, so that a mistake in it cannot be made twice.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/rbf/rbf.h"
#include "workloads/batched_forces/workload.h"
#include "workloads/common/random.h"

#define STEP 1e-4           /* of the differences, angstrom */
#define DIFFERENCED 2       /* molecules whose forces are proved */
#define DIFFERENCES_EACH 36 /* coordinates of each */

struct pair {
    uint32_t i, j;
    double direction[3]; /* from i to j */
    double gradient;     /* dE / d distance */
};

/* What one evaluation needs, in one piece of memory. */
struct scratch {
    struct pair *pairs;
    uint32_t pair_count;
    double *rbf, *slope; /* [pair][functions] */
    double *filter;      /* [layer][pair][width] */
    double *h;           /* [layer + 1][atom][width] */
    double *z;           /* [layer][atom][width] */
    double *a, *g;       /* [atom][width] */
    double *row;         /* [width] */
    double *memory;
};

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double silu_slope(double x)
{
    double s = 1 / (1 + exp(-x));

    return s * (1 + x * (1 - s));
}

static int scratch_make(const struct network *n, uint32_t atoms, struct scratch *s)
{
    size_t pairs = (size_t)atoms * (atoms - 1) / 2, features = (size_t)atoms * n->width;
    size_t filters = n->layers * pairs * n->width, basis = pairs * n->functions;
    double *at;

    *s = (struct scratch){0};
    s->pairs = calloc(pairs ? pairs : 1, sizeof s->pairs[0]);
    s->memory = calloc(2 * basis + filters + (2 * n->layers + 3) * features + n->width,
                       sizeof s->memory[0]);
    if (!s->pairs || !s->memory) {
        free(s->pairs);
        free(s->memory);
        return -1;
    }
    at = s->memory;
    s->rbf = at;
    s->slope = s->rbf + basis;
    s->filter = s->slope + basis;
    s->h = s->filter + filters;
    s->z = s->h + (n->layers + 1) * features;
    s->a = s->z + n->layers * features;
    s->g = s->a + features;
    s->row = s->g + features;
    return 0;
}

static void find_pairs(const struct network *n, const double *positions, uint32_t atoms,
                       struct scratch *s)
{
    for (uint32_t i = 0; i < atoms; i++) {
        for (uint32_t j = i + 1; j < atoms; j++) {
            struct pair *pair = &s->pairs[s->pair_count];
            double squared = 0, distance;

            for (int c = 0; c < 3; c++) {
                pair->direction[c] =
                    positions[3 * j + (uint32_t)c] - positions[3 * i + (uint32_t)c];
                squared += pair->direction[c] * pair->direction[c];
            }
            distance = sqrt(squared);
            if (distance >= (double)CUTOFF)
                continue;
            pair->i = i;
            pair->j = j;
            for (int c = 0; c < 3; c++)
                pair->direction[c] /= distance;
            for (uint32_t k = 0; k < n->functions; k++) {
                size_t at = (size_t)s->pair_count * n->functions + k;

                s->rbf[at] = rbf_reference(distance, (double)n->spacing * k, (double)n->gamma,
                                           (double)CUTOFF, &s->slope[at]);
            }
            s->pair_count++;
        }
    }
}

/* out = in W + bias, W [width][width] */
static void transform(uint32_t width, const double *in, const float *weight, const float *bias,
                      double *out)
{
    for (uint32_t c = 0; c < width; c++)
        out[c] = bias ? (double)bias[c] : 0;
    for (uint32_t k = 0; k < width; k++)
        for (uint32_t c = 0; c < width; c++)
            out[c] += in[k] * (double)weight[(size_t)k * width + c];
}

/* out = in W^T */
static void transform_back(uint32_t width, const double *in, const float *weight, double *out)
{
    for (uint32_t k = 0; k < width; k++) {
        out[k] = 0;
        for (uint32_t c = 0; c < width; c++)
            out[k] += in[c] * (double)weight[(size_t)k * width + c];
    }
}

static double *pair_filter(const struct network *n, const struct scratch *s, uint32_t layer,
                           uint32_t pair)
{
    return s->filter + ((size_t)layer * s->pair_count + pair) * n->width;
}

static void layer_forward(const struct network *n, uint32_t l, uint32_t atoms, struct scratch *s)
{
    uint32_t width = n->width;
    size_t features = (size_t)atoms * width;
    const double *h = s->h + l * features;
    double *next_h = s->h + (l + 1) * features, *z = s->z + l * features;

    memset(s->a, 0, features * sizeof s->a[0]);
    for (uint32_t p = 0; p < s->pair_count; p++) {
        double *filter = pair_filter(n, s, l, p);
        const double *rbf = s->rbf + (size_t)p * n->functions;
        const struct pair *pair = &s->pairs[p];

        memset(filter, 0, width * sizeof filter[0]);
        for (uint32_t k = 0; k < n->functions; k++)
            for (uint32_t c = 0; c < width; c++)
                filter[c] += rbf[k] * (double)n->layer[l].filter[(size_t)k * width + c];
        for (uint32_t c = 0; c < width; c++) {
            s->a[(size_t)pair->i * width + c] += h[(size_t)pair->j * width + c] * filter[c];
            s->a[(size_t)pair->j * width + c] += h[(size_t)pair->i * width + c] * filter[c];
        }
    }
    for (uint32_t i = 0; i < atoms; i++) {
        size_t at = (size_t)i * width;

        transform(width, s->a + at, n->layer[l].update, n->layer[l].bias, z + at);
        for (uint32_t c = 0; c < width; c++)
            next_h[at + c] = h[at + c] + silu(z[at + c]);
    }
}

/* g = dE/dh of the layer's output becomes that of its input; adds to the pairs' gradients. */
static void layer_backward(const struct network *n, uint32_t l, uint32_t atoms, struct scratch *s)
{
    uint32_t width = n->width;
    size_t features = (size_t)atoms * width;
    const double *h = s->h + l * features, *z = s->z + l * features;

    for (uint32_t i = 0; i < atoms; i++) { /* s->a becomes dE/da */
        size_t at = (size_t)i * width;

        for (uint32_t c = 0; c < width; c++)
            s->row[c] = s->g[at + c] * silu_slope(z[at + c]);
        transform_back(width, s->row, n->layer[l].update, s->a + at);
    }
    for (uint32_t p = 0; p < s->pair_count; p++) {
        struct pair *pair = &s->pairs[p];
        const double *filter = pair_filter(n, s, l, p);
        const double *slope = s->slope + (size_t)p * n->functions;
        size_t i = (size_t)pair->i * width, j = (size_t)pair->j * width;

        for (uint32_t c = 0; c < width; c++) {
            s->row[c] = s->a[i + c] * h[j + c] + s->a[j + c] * h[i + c];
            s->g[i + c] += s->a[j + c] * filter[c];
            s->g[j + c] += s->a[i + c] * filter[c];
        }
        for (uint32_t k = 0; k < n->functions; k++) {
            double sum = 0;

            for (uint32_t c = 0; c < width; c++)
                sum += s->row[c] * (double)n->layer[l].filter[(size_t)k * width + c];
            pair->gradient += slope[k] * sum;
        }
    }
}

/* The energy from the last features; g becomes dE/dh of them. */
static double readout(const struct network *n, uint32_t atoms, struct scratch *s)
{
    const double *h = s->h + (size_t)n->layers * atoms * n->width;
    double energy = 0;

    for (uint32_t i = 0; i < atoms; i++) {
        size_t at = (size_t)i * n->width;

        transform(n->width, h + at, n->readout, n->readout_bias, s->row);
        for (uint32_t c = 0; c < n->width; c++) {
            double v = (double)n->energy[c];

            energy += silu(s->row[c]) * v;
            s->row[c] = v * silu_slope(s->row[c]);
        }
        transform_back(n->width, s->row, n->readout, s->g + at);
    }
    return energy;
}

/* The energy of one molecule in double precision, and the forces on its atoms ([atom][3], NULL is
 * allowed). Works on unordered pairs, unlike the kernels. NaN when memory ran out. */
static double reference_energy(const struct network *n, const uint32_t *species,
                               const double *positions, uint32_t atoms, double *forces)
{
    struct scratch s;
    double energy;

    if (scratch_make(n, atoms, &s) != 0)
        return NAN;
    find_pairs(n, positions, atoms, &s);
    for (uint32_t i = 0; i < atoms; i++)
        for (uint32_t c = 0; c < n->width; c++)
            s.h[(size_t)i * n->width + c] = (double)n->embedding[species[i] * n->width + c];
    for (uint32_t l = 0; l < n->layers; l++)
        layer_forward(n, l, atoms, &s);
    energy = readout(n, atoms, &s);
    if (forces) {
        for (uint32_t l = n->layers; l > 0; l--)
            layer_backward(n, l - 1, atoms, &s);
        memset(forces, 0, 3 * (size_t)atoms * sizeof forces[0]);
        for (uint32_t p = 0; p < s.pair_count; p++) {
            for (uint32_t c = 0; c < 3; c++) {
                double pull = s.pairs[p].gradient * s.pairs[p].direction[c];

                forces[3 * s.pairs[p].i + c] += pull;
                forces[3 * s.pairs[p].j + c] -= pull;
            }
        }
    }
    free(s.pairs);
    free(s.memory);
    return energy;
}

/* ||forces + dE/dx|| / ||forces|| over some coordinates of one molecule, all of a small one. */
static double difference_error(const struct network *network, const uint32_t *species,
                               double *positions, uint32_t atoms, const double *forces,
                               struct random *random)
{
    double difference = 0, norm = 0;
    uint32_t coordinates = 3 * atoms;

    for (uint32_t n = 0; n < coordinates && n < DIFFERENCES_EACH; n++) {
        uint32_t at = coordinates > DIFFERENCES_EACH ? random_below(random, coordinates) : n;
        double here = positions[at], above, below, d;

        positions[at] = here + STEP;
        above = reference_energy(network, species, positions, atoms, NULL);
        positions[at] = here - STEP;
        below = reference_energy(network, species, positions, atoms, NULL);
        positions[at] = here;
        d = forces[at] + (above - below) / (2 * STEP);
        difference += d * d;
        norm += forces[at] * forces[at];
    }
    return norm > 0 ? sqrt(difference / norm) : NAN;
}

int reference_make(const struct network *network, const struct molecules *set, uint64_t seed,
                   struct reference *reference)
{
    struct random random = {.state = seed};
    double *positions = calloc(3 * (size_t)set->atoms, sizeof positions[0]);
    bool whole = true;

    *reference = (struct reference){0};
    reference->energies = calloc(set->count, sizeof reference->energies[0]);
    reference->forces = calloc(3 * (size_t)set->atoms, sizeof reference->forces[0]);
    if (!positions || !reference->energies || !reference->forces) {
        free(positions);
        reference_free(reference);
        return -1;
    }
    for (size_t i = 0; i < 3 * (size_t)set->atoms; i++)
        positions[i] = (double)set->positions[i];
    for (uint32_t m = 0; m < set->count && whole; m++) {
        uint32_t at = set->first[m], atoms = set->first[m + 1] - at;
        const uint32_t *species = set->species + at;
        double *forces = reference->forces + 3 * (size_t)at, error = 0;

        reference->energies[m] =
            reference_energy(network, species, positions + 3 * (size_t)at, atoms, forces);
        whole = !isnan(reference->energies[m]);
        if (m < DIFFERENCED)
            error = difference_error(network, species, positions + 3 * (size_t)at, atoms, forces,
                                     &random);
        if (!(error <= reference->difference_error)) /* NaN stays */
            reference->difference_error = error;
    }
    free(positions);
    if (!whole)
        reference_free(reference);
    return whole ? 0 : -1;
}

void reference_free(struct reference *reference)
{
    free(reference->energies);
    free(reference->forces);
    *reference = (struct reference){0};
}
