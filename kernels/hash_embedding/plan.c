/* Which kernel to launch for a shape, with which grid, and what it costs.
 *
 * The choice is a table of rules, first match wins. Each rule carries its reason. The numbers for
 * CPUs come from `workloads/hash_embedding --sweep` (two AVX-512 cores, PoCL 3.1 and our threads);
 * those for CUDA from the same sweep on an H200; those for OpenCL on GPUs are estimates from how
 * the kernels work. The sweep fails when a choice is more than 10 % slower than the best of the
 * three.
 */
#include "kernels/hash_embedding/hash_embedding.h"

#define GROUP_ITEMS 256
#define GROUP_CHUNK 1024 /* records per group of hash_chunked_group: 4 per item */

enum device_kind { GPU_CUDA = 1, GPU_OPENCL = 2, CPU_OPENCL = 4, CPU_THREADS = 8 };

struct rule {
    unsigned int kinds; /* of device, or-ed */
    bool sorted_only;
    uint64_t min_records;
    uint64_t max_records;          /* 0: any */
    uint64_t max_cells;            /* plots * dim, 0: any */
    uint32_t min_records_per_plot; /* 0: any */
    enum hash_variant variant;
    const char *reason;
};

static const struct rule rules[] = {
    {.kinds = CPU_THREADS,
     .sorted_only = true,
     .max_cells = 4096,
     .variant = HASH_SHARED,
     .reason = "the output fits in a core's first cache, and a private copy needs no atomics"},
    {.kinds = CPU_OPENCL | CPU_THREADS,
     .sorted_only = true,
     .variant = HASH_CHUNKED,
     .reason = "sorted records on cores: a chunk owns its plots, so hardly any addition is atomic"},
    {.kinds = CPU_OPENCL,
     .max_cells = 16384,
     .min_records_per_plot = 2048,
     .variant = HASH_SHARED,
     .reason = "thousands of unsorted records per row: two cores would fight for its cells"},
    {.kinds = CPU_THREADS,
     .max_cells = 16384,
     .variant = HASH_SHARED,
     .reason = "unsorted records: a private copy of the output needs no atomics"},
    {.kinds = GPU_OPENCL,
     .max_records = 2048,
     .max_cells = 4096,
     .variant = HASH_SHARED,
     .reason = "a tiny set: one group stores the output, which saves clearing it first"},
    {.kinds = GPU_CUDA,
     .sorted_only = true,
     .min_records_per_plot = 2048,
     .variant = HASH_CHUNKED,
     .reason =
         "thousands of sorted records per row: a group adds them up before it touches the row"},
    {.kinds = GPU_CUDA,
     .sorted_only = true,
     .min_records = 1 << 20,
     .variant = HASH_CHUNKED,
     .reason = "a million sorted records: the atomics on rows that are out of the cache cost more "
               "than collecting a row first"},
    {.kinds = GPU_CUDA,
     .max_cells = 16384,
     .min_records_per_plot = 2048,
     .variant = HASH_SHARED,
     .reason = "thousands of records per row: all items would fight for the same few cells"},
    {.kinds = GPU_OPENCL,
     .sorted_only = true,
     .min_records_per_plot = 8,
     .variant = HASH_CHUNKED,
     .reason = "global float atomics are compare-and-swap loops here; groups collect rows first"},
    {.kinds = GPU_CUDA | GPU_OPENCL | CPU_OPENCL | CPU_THREADS,
     .variant = HASH_BASIC,
     .reason = "one item per record fills the device, and atomics to many rows rarely collide"},
};

static enum device_kind kind_of(const struct dev_info *info)
{
    switch (info->backend) {
    case DEV_CUDA:
        return GPU_CUDA;
    case DEV_OPENCL:
        return info->is_cpu ? CPU_OPENCL : GPU_OPENCL;
    default:
        return CPU_THREADS;
    }
}

static uint64_t cells_of(const struct hash_shape *shape)
{
    return (uint64_t)shape->plots * shape->dim;
}

/* Half of the group memory at most, so that two groups fit on a compute unit; a CPU core runs
 * one group at a time and may use all of 64 KiB. */
static uint32_t local_cells(const struct dev_info *info)
{
    size_t bytes = info->is_cpu ? info->local_bytes : info->local_bytes / 2;
    size_t limit = 64 * 1024;

    return (uint32_t)((bytes < limit ? bytes : limit) / sizeof(float));
}

static bool matches(const struct rule *rule, const struct dev_info *info,
                    const struct hash_shape *shape)
{
    if (!(rule->kinds & (unsigned int)kind_of(info)))
        return false;
    if (rule->sorted_only && !shape->sorted)
        return false;
    if (shape->records < rule->min_records)
        return false;
    if (rule->max_records && shape->records > rule->max_records)
        return false;
    if (rule->max_cells && cells_of(shape) > rule->max_cells)
        return false;
    if (shape->records / (shape->plots ? shape->plots : 1) < rule->min_records_per_plot)
        return false;
    return hash_applies(info, shape, rule->variant);
}

const char *hash_variant_name(enum hash_variant variant)
{
    static const char *const names[HASH_VARIANTS] = {[HASH_BASIC] = "basic",
                                                     [HASH_SHARED] = "shared",
                                                     [HASH_CHUNKED] = "chunked",
                                                     [HASH_AUTO] = "auto"};

    return names[variant];
}

bool hash_applies(const struct dev_info *info, const struct hash_shape *shape,
                  enum hash_variant variant)
{
    switch (variant) {
    case HASH_SHARED:
        return cells_of(shape) <= local_cells(info);
    case HASH_CHUNKED:
        return shape->sorted && shape->records > 0;
    default:
        return true;
    }
}

enum hash_variant hash_choose(const struct dev_info *info, const struct hash_shape *shape,
                              const char **reason)
{
    size_t i = 0;

    while (!matches(&rules[i], info, shape)) /* the last rule matches everything */
        i++;
    if (reason)
        *reason = rules[i].reason;
    return rules[i].variant;
}

/* Enough chunks to keep every core busy to the end, each long enough that its two shared plots
 * are few among its own. */
static uint32_t item_chunk(const struct dev_info *info, uint32_t records)
{
    uint32_t chunk = records / (info->compute_units * 16 + 1);

    return chunk < 64 ? 64 : chunk;
}

static void plan_shared(const struct dev_info *info, const struct hash_shape *shape,
                        struct hash_plan *plan)
{
    /* A group has to amortise clearing and adding its copy of the output. */
    uint64_t per_group = 4096 > 2 * cells_of(shape) ? 4096 : 2 * cells_of(shape);
    uint64_t groups = shape->records / per_group;
    uint64_t limit = info->is_cpu ? info->compute_units : 2 * (uint64_t)info->compute_units;

    if (groups > limit)
        groups = limit;
    plan->kernel = "hash_shared";
    plan->grid.groups = groups ? (uint32_t)groups : 1;
    plan->local_cells = (uint32_t)cells_of(shape);
    plan->clear_first = plan->grid.groups > 1;
}

static void plan_chunked(const struct dev_info *info, const struct hash_shape *shape,
                         struct hash_plan *plan)
{
    plan->clear_first = true;
    if (info->is_cpu) {
        plan->kernel = "hash_chunked_item";
        plan->chunk_records = item_chunk(info, shape->records);
        plan->grid =
            dev_grid_for((shape->records + plan->chunk_records - 1) / plan->chunk_records, 1);
    } else {
        plan->kernel = "hash_chunked_group";
        plan->chunk_records = GROUP_CHUNK;
        plan->local_cells = local_cells(info);
        plan->grid.groups = (shape->records + GROUP_CHUNK - 1) / GROUP_CHUNK;
    }
}

void hash_make_plan(const struct dev_info *info, const struct hash_shape *shape,
                    enum hash_variant variant, struct hash_plan *plan)
{
    double records = shape->records, cells = (double)cells_of(shape);

    if (variant == HASH_AUTO)
        variant = hash_choose(info, shape, NULL);
    *plan = (struct hash_plan){.variant = variant, .grid.group_items = GROUP_ITEMS};
    switch (variant) {
    case HASH_SHARED:
        plan_shared(info, shape, plan);
        break;
    case HASH_CHUNKED:
        plan_chunked(info, shape, plan);
        break;
    default:
        plan->kernel = "hash_basic";
        plan->grid = dev_grid_for(shape->records, GROUP_ITEMS);
        plan->clear_first = true;
        break;
    }
    /* Per record: 16 bytes of record, and two cells updated (read 4, write 4, one addition).
     * `shared` touches the output once per cell and group instead. Signs are bit operations. */
    plan->flop = 2 * records;
    if (variant == HASH_SHARED) {
        bool stores = plan->grid.groups == 1;

        plan->bytes_read = 16 * records + (stores ? 0 : 4 * cells * plan->grid.groups);
        plan->bytes_written = 4 * cells * plan->grid.groups;
    } else {
        plan->bytes_read = (16 + 8) * records;
        plan->bytes_written = 8 * records;
    }
}

size_t hash_arguments(const struct hash_plan *plan, const struct hash_shape *shape,
                      const struct hash_buffers *buffers, struct dev_arg *args)
{
    size_t count = 0;

    args[count++] = dev_arg_buffer(buffers->plot);
    args[count++] = dev_arg_buffer(buffers->genus);
    args[count++] = dev_arg_buffer(buffers->family);
    args[count++] = dev_arg_buffer(buffers->abundance);
    args[count++] = dev_arg_buffer(buffers->out);
    args[count++] = dev_arg_u32(shape->records);
    args[count++] = dev_arg_u32(shape->dim);
    if (plan->chunk_records)
        args[count++] = dev_arg_u32(plan->chunk_records);
    if (plan->local_cells) {
        args[count++] = dev_arg_u32(plan->local_cells);
        args[count++] = dev_arg_local(plan->local_cells * sizeof(float));
    }
    return count;
}
