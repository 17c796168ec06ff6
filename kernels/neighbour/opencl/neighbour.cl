/* Neighbour search on OpenCL 1.2; neighbour.h describes the layout and the arguments. */

/* The same from both ends of a pair: only signs differ before the squares. */
bool near_enough(__global const float *positions, uint i, uint j, float cutoff_squared)
{
    float x = positions[3 * j] - positions[3 * i];
    float y = positions[3 * j + 1] - positions[3 * i + 1];
    float z = positions[3 * j + 2] - positions[3 * i + 2];

    return x * x + y * y + z * z < cutoff_squared;
}

__kernel void neighbour_count(__global const float *positions, __global const uint *molecule_of,
                              __global const uint *first, __global uint *count, uint atoms,
                              float cutoff_squared)
{
    uint i = (uint)get_global_id(0), found = 0, molecule, j, end;

    if (i >= atoms)
        return;
    molecule = molecule_of[i];
    end = first[molecule + 1];
    for (j = first[molecule]; j < end; j++)
        found += j != i && near_enough(positions, i, j, cutoff_squared);
    count[i] = found;
}

__kernel void neighbour_scan(__global const uint *count, __global uint *row, uint atoms,
                             __local uint *sums)
{
    uint lane = (uint)get_local_id(0), lanes = (uint)get_local_size(0);
    uint share = (atoms + lanes - 1) / lanes;
    uint begin = min(lane * share, atoms), end = min(begin + share, atoms);
    uint sum = 0, before = 0, i;

    for (i = begin; i < end; i++)
        sum += count[i];
    sums[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        for (i = 0; i < lanes; i++) {
            sum = sums[i];
            sums[i] = before;
            before += sum;
        }
        row[atoms] = before;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    before = sums[lane];
    for (i = begin; i < end; i++) {
        row[i] = before;
        before += count[i];
    }
}

__kernel void neighbour_fill(__global const float *positions, __global const uint *molecule_of,
                             __global const uint *first, __global const uint *row,
                             __global uint *receiver, __global uint *sender, uint atoms,
                             uint capacity, float cutoff_squared)
{
    uint i = (uint)get_global_id(0), molecule, e, j, end;

    if (i >= atoms)
        return;
    molecule = molecule_of[i];
    end = first[molecule + 1];
    e = row[i];
    for (j = first[molecule]; j < end; j++) {
        if (j != i && near_enough(positions, i, j, cutoff_squared)) {
            if (e < capacity) {
                receiver[e] = i;
                sender[e] = j;
            }
            e++;
        }
    }
}
