/* Energies from features, and the way back.
 *
 *   z[i] = h[i] W + bias                  W is [width][width]
 *   energy[m] = sum over the atoms i of molecule m and over c of silu(z[i][c]) v[c]
 *   g[i] = dE/dh[i] = (v * silu'(z[i])) W^T
 *
 * Groups have `width` items, a power of two; local memory comes last.
 *   readout_hidden    h, weight, bias, z, atoms, width, local TILE_ATOMS * width floats: a group
 *                     for each READOUT_TILE_ATOMS atoms
 *   readout_energy    z, v, first, energy, width, local width floats: a group for each molecule
 *   readout_backward  z, v, weight_transposed, g, atoms, width, local TILE_ATOMS * width floats
 */
#ifndef KERNELS_READOUT_H
#define KERNELS_READOUT_H

#include "kernels/device/device.h"

#define READOUT_TILE_ATOMS 4

extern const struct dev_module readout_module;

#endif
