/* Flame graphs by every weight; those of allocations are made here, of the memory profile: call
 * paths, then the kind of memory. What a path holds of several kinds stands side by side: their
 * peaks are at different moments. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/call_tree.h"
#include "libprof/include/prof_memory.h"

/* The path's nodes come first and weigh nothing themselves; each site is a leaf behind them. */
static bool hang_sites(const struct prof_memory_profile *profile, enum prof_flame_weight weight,
                       struct prof_flame *result)
{
    size_t paths = profile->tree.count;
    result->nodes = calloc(paths + profile->site_count + 1, sizeof *result->nodes);
    if (!result->nodes)
        return false;
    for (size_t i = 0; i < paths; i++) {
        result->nodes[i] = profile->tree.nodes[i];
        result->nodes[i].self = result->nodes[i].total = 0;
        result->nodes[i].bytes = result->nodes[i].count = 0;
    }
    result->count = paths;
    for (size_t i = 0; i < profile->site_count; i++) {
        const struct prof_memory_site *site = &profile->sites[i];
        bool held = weight == PROF_FLAME_HELD;
        result->nodes[result->count++] = (struct prof_flame_node){
            .parent = site->node,
            .kind = PROF_FLAME_MEMORY,
            .name = site->kind_text,
            .self = held ? site->use.held_bytes : site->use.bytes,
            .count = held ? site->use.held_count : site->use.count,
            .bytes = site->use.bytes,
        };
    }
    return true;
}

static enum prof_status memory_flame(struct prof_capture *capture, const struct prof_filter *filter,
                                     enum prof_flame_weight weight, struct prof_flame *result,
                                     struct prof_error *err)
{
    struct prof_memory_profile profile;
    *result = (struct prof_flame){0};
    enum prof_status status = prof_memory_profile(capture, filter, &profile, err);
    if (!status && !profile.why_none && !hang_sites(&profile, weight, result))
        status = prof_out_of_memory(err);
    if (!status)
        prof_flame_sum(result);
    prof_memory_profile_free(&profile);
    return status;
}

enum prof_status prof_flame(struct prof_capture *capture, const struct prof_filter *filter,
                            enum prof_flame_weight weight, struct prof_flame *result,
                            struct prof_error *err)
{
    if (weight == PROF_FLAME_HELD || weight == PROF_FLAME_ALLOCATED)
        return memory_flame(capture, filter, weight, result, err);
    if (weight == PROF_FLAME_CPU || weight == PROF_FLAME_BLOCKED)
        return prof_cpu_flame(capture, filter, weight, result, err);
    return prof_flame_of_work(capture, filter, weight, true, result, err);
}
