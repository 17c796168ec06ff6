/* The CPU kernels for one storage: ELEMENT, NAME, LOAD and STORE are defined by the includer and
 * undefined at the end. Included several times, so without a guard. */

static void NAME(conv2d_direct)(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const ELEMENT *in = launch->arg[0], *weight = launch->arg[1];
    ELEMENT *out = launch->arg[2];
    struct conv2d_shape s = shape_of(launch);
    uint32_t plane = s.height * s.width;
    uint64_t outputs = (uint64_t)s.images * s.out_channels * plane;
    uint64_t end = (uint64_t)last * launch->group_items;

    for (uint64_t at = (uint64_t)first * launch->group_items; at < end && at < outputs; at++) {
        uint32_t x = (uint32_t)at % s.width, y = (uint32_t)(at / s.width) % s.height;
        uint32_t o = (uint32_t)(at / plane) % s.out_channels;
        uint32_t image = (uint32_t)(at / plane / s.out_channels);
        float sum = 0;

        for (uint32_t i = 0; i < s.in_channels; i++) {
            const ELEMENT *from = in + ((size_t)image * s.in_channels + i) * plane;
            const ELEMENT *w = weight + ((size_t)o * s.in_channels + i) * CONV2D_TAPS;

            for (uint32_t tap = 0; tap < CONV2D_TAPS; tap++) {
                uint32_t row = y + tap / 3 - 1, column = x + tap % 3 - 1;

                if (row < s.height && column < s.width)
                    sum += LOAD(from[row * s.width + column]) * LOAD(w[tap]);
            }
        }
        out[at] = STORE(sum);
    }
}

/* One group: CPU_ROWS rows of CONV2D_BLOCK channels. `row` has width + 2 floats, the outer two
 * zero; `sum` CONV2D_BLOCK * CPU_ROWS rows. */
static void NAME(tile)(const struct dev_cpu_launch *launch, uint32_t group, float *row, float *sum)
{
    const ELEMENT *in = launch->arg[0], *weight = launch->arg[1];
    ELEMENT *out = launch->arg[2];
    struct conv2d_shape s = shape_of(launch);
    uint32_t y_groups = (s.height + CPU_ROWS - 1) / CPU_ROWS;
    uint32_t blocks = (s.out_channels + CONV2D_BLOCK - 1) / CONV2D_BLOCK;
    uint32_t y0 = group % y_groups * CPU_ROWS, block = group / y_groups % blocks;
    uint32_t image = group / y_groups / blocks;
    uint32_t rows = s.height - y0 < CPU_ROWS ? s.height - y0 : CPU_ROWS;
    size_t plane = (size_t)s.height * s.width, row_floats = (size_t)CONV2D_BLOCK * s.width;

    memset(sum, 0, CPU_ROWS * row_floats * sizeof sum[0]);
    for (uint32_t i = 0; i < s.in_channels; i++) {
        const ELEMENT *from = in + ((size_t)image * s.in_channels + i) * plane;
        const ELEMENT *packed =
            weight + ((size_t)block * s.in_channels + i) * CONV2D_TAPS * CONV2D_BLOCK;
        float w[CONV2D_TAPS * CONV2D_BLOCK];

        for (uint32_t k = 0; k < CONV2D_TAPS * CONV2D_BLOCK; k++)
            w[k] = LOAD(packed[k]);
        for (uint32_t r = 0; r < rows + 2; r++) {
            uint32_t y = y0 + r - 1;

            if (y >= s.height)
                continue;
            for (uint32_t x = 0; x < s.width; x++)
                row[x + 1] = LOAD(from[y * s.width + x]);
            for (uint32_t tap_row = 0; tap_row < 3; tap_row++)
                if (r >= tap_row && r - tap_row < rows)
                    add_row(sum + (r - tap_row) * row_floats, row, w + tap_row * 3 * CONV2D_BLOCK,
                            s.width);
        }
    }
    for (uint32_t c = 0; c < CONV2D_BLOCK && block * CONV2D_BLOCK + c < s.out_channels; c++) {
        ELEMENT *to = out + ((size_t)image * s.out_channels + block * CONV2D_BLOCK + c) * plane;

        for (uint32_t y = 0; y < rows; y++)
            for (uint32_t x = 0; x < s.width; x++)
                to[(y0 + y) * s.width + x] = STORE(sum[y * row_floats + c * s.width + x]);
    }
}

static void NAME(conv2d_tiled)(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    size_t width = number(launch, 7);
    float *scratch = malloc((width + 2 + CPU_ROWS * CONV2D_BLOCK * width) * sizeof scratch[0]);

    if (!scratch)
        return; /* the outputs stay as they were, which a verification sees */
    scratch[0] = scratch[width + 1] = 0;
    for (uint32_t group = first; group < last; group++)
        NAME(tile)(launch, group, scratch, scratch + width + 2);
    free(scratch);
}

#undef ELEMENT
#undef NAME
#undef LOAD
#undef STORE
