/* Neighbour search: which atoms of a molecule are nearer to each other than a cutoff.
 *
 * Molecules stand one after the other: the atoms of molecule m are first[m] .. first[m+1]-1, and
 * molecule_of[i] is the molecule of atom i. Positions are [atom][3]. The result is a list of
 * directed edges in compressed rows: the edges of atom i are row[i] .. row[i+1]-1, ordered by
 * their sender; edge e says that receiver[e] hears sender[e]. With every edge its reverse is in
 * the list, since the distance is the same in both directions to the last bit.
 *
 * How many edges there are is known on the device only, as row[atoms]. Kernels over edges are
 * launched for `capacity` edges and read the number; nothing is copied to the host in between.
 *
 * Kernels, in this order:
 *   neighbour_count  positions, molecule_of, first, count, atoms, cutoff_squared
 *   neighbour_scan   count, row, atoms, local NEIGHBOUR_SCAN_ITEMS * 4 bytes: running sums, one
 *                    group of NEIGHBOUR_SCAN_ITEMS
 *   neighbour_fill   positions, molecule_of, first, row, receiver, sender, atoms, capacity,
 *                    cutoff_squared: edges beyond the capacity are not written
 * One item per atom in the first and the last.
 */
#ifndef KERNELS_NEIGHBOUR_H
#define KERNELS_NEIGHBOUR_H

#include "kernels/device/device.h"

#define NEIGHBOUR_SCAN_ITEMS 256

/* Operations for one candidate pair: three differences, their squares' sum, the comparison. */
#define NEIGHBOUR_PAIR_FLOP 9

extern const struct dev_module neighbour_module;

#endif
