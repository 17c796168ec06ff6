/* Embedding lookups on OpenCL 1.2; gather.h describes the layout and the arguments. */

__kernel void gather_one(__global const float *tables, __global const uint *ids,
                         __global float *out, uint plots, uint embed_log2, uint top_k, uint rank,
                         uint first_row)
{
    uint i = (uint)get_global_id(0);
    uint plot = i >> embed_log2;
    uint row;

    if (plot >= plots)
        return;
    row = first_row + ids[plot * top_k + rank];
    out[i] = tables[((size_t)row << embed_log2) + (i - (plot << embed_log2))];
}

__kernel void gather_fused(__global const float *tables, __global const uint *genus_ids,
                           __global const uint *family_ids, __global float *out, uint plots,
                           uint embed_log2, uint top_k, uint genus_rows, uint family_rows,
                           uint slab_groups)
{
    uint lookup = (uint)get_group_id(0) / slab_groups;
    uint slab_group = (uint)get_group_id(0) - lookup * slab_groups;
    uint i = slab_group * (uint)get_local_size(0) + (uint)get_local_id(0);
    uint plot = i >> embed_log2;
    uint index = plot * top_k + lookup;
    uint row;

    if (plot >= plots)
        return;
    if (lookup < top_k)
        row = lookup * genus_rows + genus_ids[index];
    else
        row = top_k * genus_rows + (lookup - top_k) * family_rows + family_ids[index - top_k];
    out[(((size_t)lookup * plots) << embed_log2) + i] =
        tables[((size_t)row << embed_log2) + (i - (plot << embed_log2))];
}
