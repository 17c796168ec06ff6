/* Signed feature hashing on OpenCL 1.2. The hash must give the cells of hash_embedding.h bit for
 * bit. OpenCL 1.2 has no atomic addition of floats: additions are compare-and-swap loops on the
 * bits. */

#define SALT_GENUS 0x9e3779b9u
#define SALT_FAMILY 0x7f4a7c15u

uint mix(uint id, uint salt)
{
    uint h = id ^ salt;

    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return h;
}

uint column(uint h, uint dim)
{
    return mul_hi(h & ~1u, dim);
}

float with_sign(uint h, float abundance)
{
    return h & 1u ? -abundance : abundance;
}

void add_global(volatile __global float *cell, float value)
{
    volatile __global uint *bits = (volatile __global uint *)cell;
    uint seen = *bits;
    uint before;

    do {
        before = seen;
        seen = atomic_cmpxchg(bits, before, as_uint(as_float(before) + value));
    } while (seen != before);
}

void add_local(volatile __local float *cell, float value)
{
    volatile __local uint *bits = (volatile __local uint *)cell;
    uint seen = *bits;
    uint before;

    do {
        before = seen;
        seen = atomic_cmpxchg(bits, before, as_uint(as_float(before) + value));
    } while (seen != before);
}

/* One item per record. `out` is zero before. */
__kernel void hash_basic(__global const uint *plot, __global const uint *genus,
                         __global const uint *family, __global const float *abundance,
                         __global float *out, uint records, uint dim)
{
    uint i = (uint)get_global_id(0);
    uint g, f;
    __global float *row;

    if (i >= records)
        return;
    g = mix(genus[i], SALT_GENUS);
    f = mix(family[i], SALT_FAMILY);
    row = out + (size_t)plot[i] * dim;
    add_global(row + column(g, dim), with_sign(g, abundance[i]));
    add_global(row + column(f, dim), with_sign(f, abundance[i]));
}

/* The whole output fits in `cells`. A single group stores it; several add it to `out`, which is
 * zero before. */
__kernel void hash_shared(__global const uint *plot, __global const uint *genus,
                          __global const uint *family, __global const float *abundance,
                          __global float *out, uint records, uint dim, uint cell_count,
                          __local float *cells)
{
    uint lane = (uint)get_local_id(0), lanes = (uint)get_local_size(0);
    uint i;

    for (i = lane; i < cell_count; i += lanes)
        cells[i] = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i = (uint)get_global_id(0); i < records; i += (uint)get_global_size(0)) {
        uint g = mix(genus[i], SALT_GENUS);
        uint f = mix(family[i], SALT_FAMILY);
        __local float *row = cells + plot[i] * dim;

        add_local(row + column(g, dim), with_sign(g, abundance[i]));
        add_local(row + column(f, dim), with_sign(f, abundance[i]));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i = lane; i < cell_count; i += lanes) {
        if (get_num_groups(0) == 1)
            out[i] = cells[i];
        else if (cells[i] != 0.0f)
            add_global(out + i, cells[i]);
    }
}

/* Sorted records, `chunk` consecutive ones per item: only the first and the last plot of a chunk
 * can be shared with a neighbour, all others are this item's own and need no atomics. */
__kernel void hash_chunked_item(__global const uint *plot, __global const uint *genus,
                                __global const uint *family, __global const float *abundance,
                                __global float *out, uint records, uint dim, uint chunk)
{
    uint begin = (uint)get_global_id(0) * chunk;
    uint end = min(records, begin + chunk);
    uint first, last, i;
    bool own_first, own_last;

    if (begin >= records)
        return;
    first = plot[begin];
    last = plot[end - 1];
    own_first = begin == 0 || plot[begin - 1] != first;
    own_last = end == records || plot[end] != last;
    for (i = begin; i < end; i++) {
        uint p = plot[i];
        uint g = mix(genus[i], SALT_GENUS);
        uint f = mix(family[i], SALT_FAMILY);
        __global float *row = out + (size_t)p * dim;

        if ((p != first || own_first) && (p != last || own_last)) {
            row[column(g, dim)] += with_sign(g, abundance[i]);
            row[column(f, dim)] += with_sign(f, abundance[i]);
        } else {
            add_global(row + column(g, dim), with_sign(g, abundance[i]));
            add_global(row + column(f, dim), with_sign(f, abundance[i]));
        }
    }
}

/* Sorted records, `chunk` consecutive ones per group: the rows from the chunk's first plot on are
 * collected in group memory as far as `cell_count` reaches, later rows go to global memory. */
__kernel void hash_chunked_group(__global const uint *plot, __global const uint *genus,
                                 __global const uint *family, __global const float *abundance,
                                 __global float *out, uint records, uint dim, uint chunk,
                                 uint cell_count, __local float *cells)
{
    uint lane = (uint)get_local_id(0), lanes = (uint)get_local_size(0);
    uint begin = (uint)get_group_id(0) * chunk;
    uint end = min(records, begin + chunk);
    uint first = plot[begin]; /* the plan starts no group beyond the records */
    uint last = plot[end - 1];
    uint rows = min(last - first + 1, cell_count / dim);
    uint used = rows * dim;
    uint i;

    for (i = lane; i < used; i += lanes)
        cells[i] = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i = begin + lane; i < end; i += lanes) {
        uint p = plot[i];
        uint g = mix(genus[i], SALT_GENUS);
        uint f = mix(family[i], SALT_FAMILY);

        if (p - first < rows) {
            __local float *row = cells + (p - first) * dim;

            add_local(row + column(g, dim), with_sign(g, abundance[i]));
            add_local(row + column(f, dim), with_sign(f, abundance[i]));
        } else {
            __global float *row = out + (size_t)p * dim;

            add_global(row + column(g, dim), with_sign(g, abundance[i]));
            add_global(row + column(f, dim), with_sign(f, abundance[i]));
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i = lane; i < used; i += lanes) {
        uint p = first + i / dim;

        if (p != first && p != last)
            out[(size_t)first * dim + i] = cells[i];
        else if (cells[i] != 0.0f)
            add_global(out + (size_t)first * dim + i, cells[i]);
    }
}
