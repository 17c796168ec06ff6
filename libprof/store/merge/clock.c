/* Brings the times of all files to one clock: that of the kernel on which the first file was
 * recorded.
 *
 * Files of one boot have the same CLOCK_MONOTONIC: nothing is estimated. Between boots there is
 * first the wall clock, a pair of readings in every file, as good as the hosts' time service (and
 * hours off where there is none); then the ends of collectives, which beat it by orders of
 * magnitude. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/store/merge/parts.h"

#define MOST_FILES_LOOKED_AT 4 /* of a host, until one has collectives */
#define MOST_ERROR_NS 10000000 /* what fits no better were not the same operations */

struct group {
    size_t first;    /* index of a file */
    int64_t wall_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, PROF_MERGE_UNKNOWN */
    enum prof_merge_clock clock;
    struct merge_fit fit; /* to the reference's clock */
    struct merge_ends ends;
};
struct groups {
    PROF_ARRAY(struct group) list;
    size_t reference;
    struct prof_names by_boot;
};

static int64_t zero_of(const struct merge_input *in)
{
    return in->start_mono_ns == PROF_MERGE_UNKNOWN ? 0 : in->start_mono_ns;
}

static int64_t wall_of(const struct merge_input *in)
{
    return in->start_realtime_ns == PROF_MERGE_UNKNOWN
               ? PROF_MERGE_UNKNOWN
               : prof_subtract(in->start_realtime_ns, zero_of(in));
}

static bool add_clock_group(struct groups *groups, struct merge *m, size_t at)
{
    struct merge_input *in = &m->inputs[at];
    const char *boot = in->merged ? in->merged_boot_id : in->boot_id;
    bool shared = boot && in->start_mono_ns != PROF_MERGE_UNKNOWN;
    uint32_t *known = shared ? prof_names_get(&groups->by_boot, boot, strlen(boot)) : NULL;
    if (known) {
        in->group = (int)*known;
        return true;
    }
    struct group *g = prof_array_add(&groups->list);
    if (!g)
        return false;
    *g = (struct group){.first = at, .wall_ns = wall_of(in)};
    in->group = (int)groups->list.count - 1;
    return !shared || prof_names_put(&groups->by_boot, boot, strlen(boot), (uint32_t)in->group);
}

/* Of the group's first files the first that has collectives. */
static enum prof_status read_ends(struct merge *m, struct groups *groups, int number)
{
    struct group *g = &groups->list.data[number];
    int looked = 0;
    for (size_t i = g->first; i < m->count && looked < MOST_FILES_LOOKED_AT && !g->ends.of.count;
         i++) {
        struct merge_input *in = &m->inputs[i];
        if (in->gone || in->group != number)
            continue;
        looked++;
        if (merge_input_open(in, NULL))
            continue; /* reported when its rows are read */
        bool ok = merge_ends_read(in, &g->ends);
        merge_input_close(in);
        if (!ok)
            return prof_out_of_memory(m->err);
        PROF_TRY(merge_look_up(m));
    }
    return PROF_OK;
}

/* Operations of every kind are compared; those of a communicator within one host fit badly. */
static bool fit_ends(struct group *g, const struct group *reference, int64_t expected_ns)
{
    bool any = false;
    for (size_t i = 0; i < g->ends.of.count; i++) {
        const struct merge_ends_of *mine = &g->ends.of.data[i];
        for (size_t j = 0; j < reference->ends.of.count; j++) {
            const struct merge_ends_of *its = &reference->ends.of.data[j];
            struct merge_fit fit;
            if (mine->kind != its->kind ||
                !merge_fit(mine->ends.data, mine->ends.count, its->ends.data, its->ends.count,
                           expected_ns, &fit) ||
                fit.error_ns > MOST_ERROR_NS)
                continue;
            if (!any || fit.error_ns < g->fit.error_ns)
                g->fit = fit;
            any = true;
        }
    }
    return any;
}

static void align(struct merge *m, struct group *g, const struct group *reference)
{
    int64_t expected = g->wall_ns == PROF_MERGE_UNKNOWN || reference->wall_ns == PROF_MERGE_UNKNOWN
                           ? PROF_MERGE_UNKNOWN
                           : prof_subtract(g->wall_ns, reference->wall_ns);
    if (fit_ends(g, reference, expected)) {
        g->clock = PROF_MERGE_COLLECTIVES;
        return;
    }
    g->fit = (struct merge_fit){.error_ns = PROF_MERGE_UNKNOWN};
    g->clock = expected == PROF_MERGE_UNKNOWN ? PROF_MERGE_NONE : PROF_MERGE_REALTIME;
    g->fit.offset_ns =
        expected != PROF_MERGE_UNKNOWN
            ? expected
            : prof_subtract(zero_of(&m->inputs[reference->first]), zero_of(&m->inputs[g->first]));
}

/* A reading of the input's CLOCK_MONOTONIC on the reference's. */
static int64_t on_reference(const struct group *g, int64_t mono_ns)
{
    double drifted = g->fit.drift * (double)prof_subtract(mono_ns, g->fit.middle_ns);
    return prof_add(prof_add(mono_ns, g->fit.offset_ns), (int64_t)llrint(drifted));
}

static void set_clock(struct merge *m, struct merge_input *in, const struct group *g)
{
    int64_t zero = zero_of(in);
    in->shift_ns = prof_subtract(prof_add(zero, g->fit.offset_ns), m->zero_mono_ns);
    in->drift = g->fit.drift;
    in->middle_ns = prof_subtract(g->fit.middle_ns, zero);
    in->part->clock = g->clock;
    in->part->offset_ns = prof_subtract(on_reference(g, zero), zero);
    in->part->drift = g->fit.drift * 1e9;
    in->part->error_ns = g->clock == PROF_MERGE_SAME ? 0 : g->fit.error_ns;
    in->part->compared = g->fit.compared;
}

static void find_zero(struct merge *m, const struct groups *groups)
{
    m->zero_mono_ns = INT64_MAX;
    for (size_t i = 0; i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        if (in->gone)
            continue;
        int64_t begin = on_reference(&groups->list.data[in->group], zero_of(in));
        m->zero_mono_ns = begin < m->zero_mono_ns ? begin : m->zero_mono_ns;
    }
    int64_t wall = groups->list.data[groups->reference].wall_ns;
    m->zero_realtime_ns =
        wall == PROF_MERGE_UNKNOWN ? PROF_MERGE_UNKNOWN : prof_add(m->zero_mono_ns, wall);
}

static void find_end(struct merge *m)
{
    m->duration_ns = PROF_MERGE_UNKNOWN;
    for (size_t i = 0; i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        if (in->gone || in->duration_ns == PROF_MERGE_UNKNOWN)
            continue;
        int64_t end = merge_time(in, in->duration_ns);
        m->duration_ns = end > m->duration_ns ? end : m->duration_ns;
    }
}

/* One sentence for all hosts whose collectives are not those of the reference. */
static bool note_unlike_collectives(struct merge *m, const struct groups *groups)
{
    const struct group *example = NULL;
    size_t hosts = 0;
    for (size_t i = 0; i < groups->list.count; i++) {
        const struct group *g = &groups->list.data[i];
        bool unlike = g->fit.source_only || g->fit.reference_only;
        hosts += unlike;
        if (unlike && !example)
            example = g;
    }
    return !example ||
           merge_note(m, PROF_HEALTH_clock_collectives,
                      "ranks of %zu of %zu hosts do not have the same collectives as that of %s: "
                      "the one of %s has %" PRIu64 " that it lacks, and lacks %" PRIu64
                      "; clocks were aligned by the %" PRIu64 " of both",
                      hosts, groups->list.count,
                      m->inputs[groups->list.data[groups->reference].first].path,
                      m->inputs[example->first].path, example->fit.source_only,
                      example->fit.reference_only, example->fit.compared);
}

/* One sentence for all hosts of which only the wall clock is known. */
static bool note_assumed_clocks(struct merge *m, const struct groups *groups)
{
    size_t by_wall = 0, by_nothing = 0, example = SIZE_MAX;
    for (size_t i = 0; i < groups->list.count; i++) {
        const struct group *g = &groups->list.data[i];
        by_wall += g->clock == PROF_MERGE_REALTIME;
        by_nothing += g->clock == PROF_MERGE_NONE;
        if (g->clock != PROF_MERGE_SAME && g->clock != PROF_MERGE_COLLECTIVES &&
            example == SIZE_MAX)
            example = g->first;
    }
    const char *path = example == SIZE_MAX ? "" : m->inputs[example].path;
    return (!by_wall || merge_note(m, PROF_HEALTH_clock_assumed,
                                   "times of %zu of %zu hosts (as in %s) are only as near to the "
                                   "others' as their wall clocks: no collectives to compare",
                                   by_wall, groups->list.count, path)) &&
           (!by_nothing ||
            merge_note(m, PROF_HEALTH_clock_unknown,
                       "%zu of %zu files (as %s) have no wall clock: they begin with the first one",
                       by_nothing, groups->list.count, path));
}

static enum prof_status make_groups(struct merge *m, struct groups *groups)
{
    for (size_t i = 0; i < m->count; i++) {
        if (!m->inputs[i].gone && !add_clock_group(groups, m, i))
            return prof_out_of_memory(m->err);
    }
    return PROF_OK;
}

/* Hosts before the reference have been looked at: they have no collectives. */
static enum prof_status find_reference(struct merge *m, struct groups *groups)
{
    size_t count = groups->list.count;
    enum prof_status status = PROF_OK;
    for (size_t i = 0; count > 1 && i < count && !status; i++) {
        status = read_ends(m, groups, (int)i);
        if (groups->list.data[i].ends.of.count) {
            groups->reference = i;
            return status;
        }
    }
    return status;
}

static enum prof_status align_all(struct merge *m, struct groups *groups)
{
    const struct group *reference = &groups->list.data[groups->reference];
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < groups->list.count; i++) {
        struct group *g = &groups->list.data[i];
        if (g == reference)
            continue;
        if (i > groups->reference && reference->ends.of.count)
            status = read_ends(m, groups, (int)i);
        if (!status)
            align(m, g, reference);
        merge_ends_free(&g->ends);
    }
    return status;
}

enum prof_status merge_clocks(struct merge *m)
{
    struct groups groups = {0};
    enum prof_status status = make_groups(m, &groups);
    status = status ?: find_reference(m, &groups);
    status = status ?: align_all(m, &groups);
    if (!status) {
        find_zero(m, &groups);
        for (size_t i = 0; i < m->count; i++) {
            if (!m->inputs[i].gone)
                set_clock(m, &m->inputs[i], &groups.list.data[m->inputs[i].group]);
        }
        find_end(m);
        if (!note_assumed_clocks(m, &groups) || !note_unlike_collectives(m, &groups))
            status = prof_out_of_memory(m->err);
    }
    for (size_t i = 0; i < groups.list.count; i++)
        merge_ends_free(&groups.list.data[i].ends);
    prof_array_free(&groups.list);
    prof_names_free(&groups.by_boot);
    return status;
}
