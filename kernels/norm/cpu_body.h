/* The CPU kernels for one storage: ELEMENT, NAME, LOAD and STORE are defined by the includer and
 * undefined at the end. Included several times, so without a guard. */

static void NAME(norm_partial)(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t plane = number(launch, 2), chunks = number(launch, 3);
    float *partial = launch->arg[1];

    for (uint32_t group = first; group < last; group++) {
        uint32_t chunk = group % chunks, n = chunk_elements(chunk, plane);
        const ELEMENT *in = (const ELEMENT *)launch->arg[0] + (size_t)(group / chunks) * plane +
                            (size_t)chunk * NORM_CHUNK;
        float sum[LANES] = {0}, squares[LANES] = {0}, mean;
        uint32_t whole = n / LANES * LANES;

        for (uint32_t i = 0; i < whole; i += LANES)
            for (uint32_t lane = 0; lane < LANES; lane++)
                sum[lane] += LOAD(in[i + lane]);
        for (uint32_t i = whole; i < n; i++)
            sum[i - whole] += LOAD(in[i]);
        mean = lane_sum(sum) / (float)n;
        for (uint32_t i = 0; i < whole; i += LANES) {
            for (uint32_t lane = 0; lane < LANES; lane++) {
                float d = LOAD(in[i + lane]) - mean;

                squares[lane] += d * d;
            }
        }
        for (uint32_t i = whole; i < n; i++) {
            float d = LOAD(in[i]) - mean;

            squares[i - whole] += d * d;
        }
        partial[2 * group] = mean;
        partial[2 * group + 1] = lane_sum(squares);
    }
}

static void NAME(norm_apply)(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *scale = launch->arg[2], *shift = launch->arg[3];
    uint32_t plane = number(launch, 5), chunks = number(launch, 6), channels = number(launch, 7);

    for (uint32_t group = first; group < last; group++) {
        uint32_t index = group / chunks, chunk = group % chunks;
        size_t from = (size_t)index * plane + (size_t)chunk * NORM_CHUNK;
        const ELEMENT *in = (const ELEMENT *)launch->arg[0] + from;
        ELEMENT *out = (ELEMENT *)launch->arg[4] + from;
        uint32_t n = chunk_elements(chunk, plane);
        float mean, a, b;

        group_moments(launch->arg[1], index, plane, chunks, number(launch, 8),
                      *(const float *)launch->arg[9], &mean, &a);
        a *= scale[index % channels];
        b = shift[index % channels] - mean * a;
        for (uint32_t i = 0; i < n; i++)
            out[i] = STORE(LOAD(in[i]) * a + b);
    }
}

#undef ELEMENT
#undef NAME
#undef LOAD
#undef STORE
