/* Message passing over the edges of kernels/neighbour, and its way back.
 *
 * Every atom has `width` features h[atom][width], at first those of its species. In each layer
 * an edge carries its sender's features, weighted one by one by a filter that comes from the
 * edge's radial basis; an atom sums what it hears and adds a transformation of the sum to itself:
 *
 *   filter[e] = rbf[e] W             W is [functions][width], without a bias: at the cutoff the
 *                                    filter fades out with the basis
 *   a[i] = sum over the edges e of i of h[sender[e]] * filter[e]
 *   z[i] = a[i] U + bias             U is [width][width]
 *   h'[i] = h[i] + silu(z[i])        silu(x) = x / (1 + exp(-x))
 *
 * Back, given g = dE/dh' of the layer (replaced by dE/dh) and with da = dE/da:
 *
 *   da[i] = (g[i] * silu'(z[i])) U^T
 *   g[i] += sum over the edges e of i of da[sender[e]] * filter[e]
 *   drbf[e] += (da[receiver] * h[sender] + da[sender] * h[receiver]) W^T
 *
 * An edge and its reverse have the same filter, so the sum over the edges that an atom sends is one
 * over those that it hears: no atomics, and the same result each time. For the same reason drbf
 * takes both directions at once: it is the derivative by the distance of the pair.
 *
 * width is a power of two; U^T and W^T are kept beside U and W, so that neighbouring items read
 * neighbouring weights. Group memory comes last.
 *   message_embed            species, table, h, atoms, width_log2
 *   message_gather           h, filter, row, sender, a, atoms, width_log2
 *   message_gather_backward  da, filter, row, sender, g, atoms, width_log2
 * with one item per feature of an atom; and with groups of `width` items, one for each tile of
 * MESSAGE_TILE_EDGES edges or MESSAGE_TILE_ATOMS atoms:
 *   message_filter           rbf, weight, row, filter, atoms, functions, width,
 *                            local TILE_EDGES * functions floats
 *   message_filter_backward  da, h, weight_transposed, row, receiver, sender, drbf, atoms,
 *                            functions, width, add (0: drbf = instead of +=),
 *                            local TILE_EDGES * width floats
 *   message_update           a, weight, bias, h, z, next_h, atoms, width,
 *                            local TILE_ATOMS * width floats
 *   message_update_backward  g, z, weight_transposed, da, atoms, width,
 *                            local TILE_ATOMS * width floats
 */
#ifndef KERNELS_MESSAGE_H
#define KERNELS_MESSAGE_H

#include "kernels/device/device.h"

#define MESSAGE_GROUP_ITEMS 256
#define MESSAGE_TILE_EDGES 8
#define MESSAGE_TILE_ATOMS 4

#define MESSAGE_SILU_FLOP 4       /* with the exponential as one */
#define MESSAGE_SILU_SLOPE_FLOP 8 /* of silu'(z) */

extern const struct dev_module message_module;

#endif
