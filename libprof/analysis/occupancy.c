/* Theoretical occupancy from a launch configuration; see occupancy.h for the source of the formula.
 */
#include "libprof/analysis/occupancy.h"
#include "libprof/base/saturate.h"

#define MOST (INT64_C(1) << 40) /* a damaged capture may hold any number */

static int64_t product(const int64_t side[3])
{
    int64_t all = 1;
    for (int i = 0; i < 3; i++) {
        int64_t one = side[i] > 0 ? side[i] : 1;
        if (one > MOST / all)
            return MOST;
        all *= one;
    }
    return all;
}

int64_t prof_config_blocks(const struct prof_config *config)
{
    return config && config->block[0] != PROF_UNKNOWN && config->grid[0] > 0 ? product(config->grid)
                                                                             : 0;
}

int64_t prof_config_threads(const struct prof_config *config)
{
    return config && config->block[0] > 0 ? product(config->block) : 0;
}

static int64_t blocks_per_unit(const struct prof_device *device)
{
    static const struct {
        int major, minor, blocks;
    } known[] = {{7, 5, 16}, {8, 6, 16}, {8, 7, 16}, {8, 9, 24}, {12, 0, 24}, {12, 1, 24}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (device->compute_major == known[i].major && device->compute_minor == known[i].minor)
            return known[i].blocks;
    }
    return 32;
}

static int64_t round_up(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

static void limit(struct prof_occupancy *result, int64_t blocks, enum prof_occupancy_limit by)
{
    if (blocks < result->blocks) {
        result->blocks = blocks;
        result->limit = by;
    }
}

bool prof_occupancy_of(const struct prof_device *device, const struct prof_config *config,
                       struct prof_occupancy *result)
{
    int64_t threads = prof_config_threads(config);
    if (!device || !threads || device->compute_major <= 0 || device->max_threads_per_unit <= 0 ||
        device->warp <= 0 || device->warp > 1024 || config->registers == PROF_UNKNOWN ||
        threads > 65536)
        return false;
    int64_t warps = (threads + device->warp - 1) / device->warp;
    int64_t unit_warps = device->max_threads_per_unit / device->warp;
    *result = (struct prof_occupancy){unit_warps / warps, 0, PROF_LIMIT_THREADS};
    limit(result, blocks_per_unit(device), PROF_LIMIT_BLOCKS);
    if (config->registers > 0 && config->registers < 4096 && device->registers_per_unit > 0) {
        int64_t per_warp = round_up(config->registers * device->warp, 256);
        limit(result, device->registers_per_unit / per_warp / warps, PROF_LIMIT_REGISTERS);
    }
    int64_t shared = prof_add(config->shared_static > 0 ? config->shared_static : 0,
                              config->shared_dynamic > 0 ? config->shared_dynamic : 0);
    if (shared > 0 && shared < MOST && device->shared_per_unit_bytes > 0) {
        shared = round_up(shared + (device->compute_major >= 8 ? 1024 : 0), 128);
        limit(result, device->shared_per_unit_bytes / shared, PROF_LIMIT_SHARED);
    }
    if (result->blocks <= 0)
        return false; /* it ran, so what the device told does not fit */
    result->share = (double)(result->blocks * warps) / (double)unit_warps;
    return true;
}

const char *prof_occupancy_limit_text(enum prof_occupancy_limit by)
{
    static const char *const words[] = {
        [PROF_LIMIT_THREADS] = "the block's size",
        [PROF_LIMIT_BLOCKS] = "the number of blocks on a unit",
        [PROF_LIMIT_REGISTERS] = "registers",
        [PROF_LIMIT_SHARED] = "shared memory",
    };
    return words[by];
}
