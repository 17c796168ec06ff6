/* Edge features: how far and in which direction the sender of each edge lies; and the way back,
 * forces on the atoms from the derivatives by the distances.
 *
 * Edges and rows are those of kernels/neighbour. `row` is there for the number of edges,
 * row[atoms]; the launch covers the capacity. Vectors are [edge][3] and point from the receiver
 * to the sender.
 *
 * Separate, one launch for each operation of the formula, with everything in between in memory,
 * as a framework runs it that does not fuse:
 *   edge_gather     positions, index, row, out, atoms: the position of index[e] (item: component)
 *   edge_subtract   sender_position, receiver_position, row, vector, atoms (item: component)
 *   edge_length     vector, row, distance, atoms (item: edge)
 *   edge_normalise  vector, distance, row, direction, atoms (item: component)
 * Fused:
 *   edge_fused      positions, receiver, sender, row, distance, direction, atoms (item: edge)
 * Back:
 *   edge_forces     pair_gradient, direction, row, forces, atoms (item: atom): the force on an atom
 *                   is the sum of its edges' directions times the derivative of the energy by the
 *                   distance of the pair, both directions of the edge together.
 */
#ifndef KERNELS_EDGE_H
#define KERNELS_EDGE_H

#include "kernels/device/device.h"

#define EDGE_GROUP_ITEMS 256

#define EDGE_LENGTH_FLOP 6 /* with the square root as one */
#define EDGE_FUSED_FLOP 12

extern const struct dev_module edge_module;

#endif
