/* Edge features on OpenCL 1.2; edge.h describes the layout and the arguments. */

__kernel void edge_gather(__global const float *positions, __global const uint *index,
                          __global const uint *row, __global float *out, uint atoms)
{
    uint i = (uint)get_global_id(0), e = i / 3;

    if (e < row[atoms])
        out[i] = positions[3 * index[e] + (i - 3 * e)];
}

__kernel void edge_subtract(__global const float *sender_position,
                            __global const float *receiver_position, __global const uint *row,
                            __global float *vector, uint atoms)
{
    uint i = (uint)get_global_id(0);

    if (i < 3 * row[atoms])
        vector[i] = sender_position[i] - receiver_position[i];
}

__kernel void edge_length(__global const float *vector, __global const uint *row,
                          __global float *distance, uint atoms)
{
    uint e = (uint)get_global_id(0);
    float x, y, z;

    if (e >= row[atoms])
        return;
    x = vector[3 * e];
    y = vector[3 * e + 1];
    z = vector[3 * e + 2];
    distance[e] = sqrt(x * x + y * y + z * z);
}

__kernel void edge_normalise(__global const float *vector, __global const float *distance,
                             __global const uint *row, __global float *direction, uint atoms)
{
    uint i = (uint)get_global_id(0);

    if (i < 3 * row[atoms])
        direction[i] = vector[i] / distance[i / 3];
}

__kernel void edge_fused(__global const float *positions, __global const uint *receiver,
                         __global const uint *sender, __global const uint *row,
                         __global float *distance, __global float *direction, uint atoms)
{
    uint e = (uint)get_global_id(0), i, j;
    float x, y, z, d, scale;

    if (e >= row[atoms])
        return;
    i = 3 * receiver[e];
    j = 3 * sender[e];
    x = positions[j] - positions[i];
    y = positions[j + 1] - positions[i + 1];
    z = positions[j + 2] - positions[i + 2];
    d = sqrt(x * x + y * y + z * z);
    scale = 1.0f / d;
    distance[e] = d;
    direction[3 * e] = x * scale;
    direction[3 * e + 1] = y * scale;
    direction[3 * e + 2] = z * scale;
}

__kernel void edge_forces(__global const float *pair_gradient, __global const float *direction,
                          __global const uint *row, __global float *forces, uint atoms)
{
    uint i = (uint)get_global_id(0), e, end;
    float x = 0.0f, y = 0.0f, z = 0.0f;

    if (i >= atoms)
        return;
    end = row[i + 1];
    for (e = row[i]; e < end; e++) {
        float g = pair_gradient[e];

        x += g * direction[3 * e];
        y += g * direction[3 * e + 1];
        z += g * direction[3 * e + 2];
    }
    forces[3 * i] = x;
    forces[3 * i + 1] = y;
    forces[3 * i + 2] = z;
}
