/* Radial basis: each edge's distance d spread over `functions` Gaussians, and cut off smoothly.
 *
 *   rbf[e][k] = exp(-gamma (d - k * spacing)^2) * c(d),  c(d) = (cos(pi d / cutoff) + 1) / 2 below
 *   the cutoff and 0 from it on
 *
 * `row` is there for the number of edges, row[atoms] (kernels/neighbour); the launch covers the
 * capacity. The number of functions is a multiple of 4, at most RBF_MAX_FUNCTIONS.
 *
 * Separate, one launch for each operation of the formula, as a framework runs it that does not
 * fuse; t is [edge][functions] and becomes the result, c is [edge]:
 *   rbf_subtract  distance, row, t, atoms, functions, spacing     t = d - k * spacing
 *   rbf_square    t, row, atoms, functions                        t = t * t
 *   rbf_scale     t, row, atoms, functions, factor                t = t * factor (-gamma)
 *   rbf_exp       t, row, atoms, functions                        t = exp(t)
 *   rbf_angle     distance, row, c, atoms, factor                 c = d * factor (pi / cutoff)
 *   rbf_cosine    c, row, atoms                                   c = cos(c)
 *   rbf_shift     c, row, atoms                                   c = (c + 1) / 2
 *   rbf_mask      distance, row, c, atoms, cutoff                 c = 0 beyond the cutoff
 *   rbf_multiply  c, row, t, atoms, functions                     t = t * c
 * One item per element of what is written. Fused, over rbf_fused_grid, a group for each
 * RBF_TILE_EDGES edges:
 *   rbf_fused     distance, row, rbf, atoms, functions, gamma, spacing, cutoff, local
 *                 RBF_TILE_LOCAL_BYTES
 * Back, one item per edge:
 *   rbf_backward  gradient, distance, row, pair_gradient, atoms, functions, gamma, spacing, cutoff
 *                 pair_gradient[e] = sum over k of gradient[e][k] * d rbf[e][k] / d d
 */
#ifndef KERNELS_RBF_H
#define KERNELS_RBF_H

#include "kernels/device/device.h"

#define RBF_MAX_FUNCTIONS 128
#define RBF_GROUP_ITEMS 256
#define RBF_TILE_EDGES 64
#define RBF_TILE_LOCAL_BYTES (2 * RBF_TILE_EDGES * sizeof(float))

/* Operations per function (an exponential as one) and per edge, of the fused kernel. */
#define RBF_FUNCTION_FLOP 6
#define RBF_CUTOFF_FLOP 4
#define RBF_BACKWARD_FLOP 13 /* per function */

extern const struct dev_module rbf_module;

/* Groups of half as many items as a tile has values, in fours: all are busy to the end. */
static inline struct dev_grid rbf_fused_grid(size_t edges, uint32_t functions)
{
    struct dev_grid grid = dev_grid_for(edges, RBF_TILE_EDGES);

    grid.group_items = RBF_TILE_EDGES * functions / 8;
    if (grid.group_items > RBF_GROUP_ITEMS)
        grid.group_items = RBF_GROUP_ITEMS;
    return grid;
}

/* One value in double precision, and its derivative by the distance (NULL is allowed). */
double rbf_reference(double distance, double center, double gamma, double cutoff,
                     double *derivative);

#endif
