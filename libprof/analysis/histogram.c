/* Steps of a log-linear histogram, eight to an octave: the three bits after the leading one. Coarse
 * enough to be drawn in a table's cell, fine enough to tell two modes apart. */
#include <math.h>
#include <stdlib.h>

#include "libprof/include/prof_histogram.h"

#define BITS 3
#define PER_OCTAVE (1u << BITS)

/* 0..7 one by one, then [8, 16) in eights of 1, [16, 32) of 2, ... */
uint32_t prof_histogram_step(int64_t value)
{
    uint64_t size = value < 0 ? 0 : (uint64_t)value;
    if (size < PER_OCTAVE)
        return (uint32_t)size;
    uint32_t top = 63 - (uint32_t)__builtin_clzll(size);
    return (top - BITS + 1) * PER_OCTAVE + (uint32_t)(size >> (top - BITS) & (PER_OCTAVE - 1));
}

double prof_histogram_low(uint32_t step)
{
    uint32_t octave = step / PER_OCTAVE;
    if (!octave)
        return step;
    return ldexp((double)(PER_OCTAVE + step % PER_OCTAVE), (int)octave - 1);
}

void prof_histogram_free(struct prof_histogram *histogram)
{
    free(histogram->counts);
    *histogram = (struct prof_histogram){0};
}
