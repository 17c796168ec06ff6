/* The random parts of a stochastic step, and the step itself.
 *
 *   noise: out = (dropped ? 0 : in * keep_scale) + sigma * normal
 *   advance: state = (1 - alpha) * state + alpha * update, copied into the field that the next
 *            step reads and into the trajectory
 *
 * A pair of normal numbers is radius * (cos, sin) of an angle, radius = sqrt(-2 log(u)); how a
 * backend computes the functions is its own affair.
 *
 * Random numbers are a function of (seed, step, layer, element) alone, so every backend, every
 * run and the reference draw the same ones. The step is read from a counter on the device, which
 * noise_count raises: a recorded graph of a step can be replayed and still draws new numbers.
 *
 * Kernels, once per storage but the last:
 *   noise         (in, out, counter, n, seed, layer, drop, keep_scale, sigma): elements come in
 *                 pairs with one Box-Muller transform each; drop is the probability in 1/65536
 *   noise_advance (state as float, update, field, trajectory, counter, n, slots, alpha): the
 *                 trajectory has `slots` states, step s goes to slot s modulo slots
 *   noise_count   (counter): one item
 */
#ifndef KERNELS_NOISE_H
#define KERNELS_NOISE_H

#include <math.h>

#include "kernels/device/device.h"
#include "kernels/storage/storage.h"

#define NOISE_ITEMS 256
#define NOISE_GROUP (NOISE_ITEMS * 8) /* elements of a group of noise and noise_advance */

/* Operations per element, as declared: the logarithm, root and sine count as one each; the hash
 * is integer work. */
#define NOISE_FLOP 6
#define NOISE_ADVANCE_FLOP 3

extern const struct dev_module noise_module;

static inline struct dev_grid noise_grid(uint32_t n)
{
    return (struct dev_grid){dev_grid_for(n, NOISE_GROUP).groups, NOISE_ITEMS};
}

/* A bijective mixer of 32 bits. */
static inline uint32_t noise_mix(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static inline uint32_t noise_key(uint32_t seed, uint32_t step, uint32_t layer)
{
    return noise_mix(noise_mix(noise_mix(seed) + step) + layer);
}

/* The three words that a pair of elements draws. */
static inline void noise_words(uint32_t key, uint32_t pair, uint32_t word[3])
{
    word[0] = noise_mix(key + pair);
    word[1] = noise_mix(word[0] ^ 0x9e3779b9u);
    word[2] = noise_mix(word[1] ^ 0x85ebca6bu);
}

/* Elements begin .. end-1 of the field in double precision and in place; begin is even. */
static inline void noise_reference(double *field, uint32_t begin, uint32_t end, uint32_t key,
                                   uint32_t drop, double keep_scale, double sigma)
{
    for (uint32_t pair = begin / 2; 2 * pair < end; pair++) {
        uint32_t word[3];
        double radius, angle;

        noise_words(key, pair, word);
        radius = sqrt(-2 * log(((word[0] >> 8) + 1) * 0x1p-24)) * sigma;
        angle = 6.283185307179586 * (word[1] >> 8) * 0x1p-24;
        for (uint32_t k = 0; k < 2 && 2 * pair + k < end; k++) {
            double *at = &field[2 * pair + k];
            bool dropped = (k ? word[2] >> 16 : word[2] & 0xffffu) < drop;

            *at = (dropped ? 0 : *at * keep_scale) + radius * (k ? sin(angle) : cos(angle));
        }
    }
}

#endif
