/* See launch_wrappers.h. */
#include <stdlib.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/launch_wrappers.h"
#include "libprof/base/saturate.h"

#define MOST_DEPTH 512
#define SEVERAL 3      /* callers, or names */
#define NEARLY_ALL 0.8 /* of something */

void prof_launch_wrappers_free(struct prof_launch_wrappers *w)
{
    prof_names_free(&w->names);
    prof_names_free(&w->calls);
    prof_array_free(&w->call_counts);
    prof_array_free(&w->places);
    *w = (struct prof_launch_wrappers){0};
}

/* ---- counting -------------------------------------------------------------------------------- */

static bool make_room(struct prof_launch_wrappers *w)
{
    const struct prof_frame *places;
    size_t count = prof_stacks_places(w->stacks, &places);
    while (w->places.count < count) {
        struct launch_place *place = prof_array_add(&w->places);
        if (!place)
            return false;
        *place = (struct launch_place){0};
    }
    return true;
}

static bool count_name(struct prof_launch_wrappers *w, uint32_t place, uint64_t name)
{
    uint64_t key[2] = {place, name};
    if (prof_names_get(&w->names, (const char *)key, sizeof key))
        return true;
    w->places.data[place].names++;
    return prof_names_put(&w->names, (const char *)key, sizeof key, 0);
}

static bool count_wrapper_call(struct prof_launch_wrappers *w, uint32_t place, uint32_t caller,
                               int64_t count)
{
    uint32_t key[2] = {place, caller};
    struct launch_place *of = &w->places.data[place];
    const uint32_t *known = prof_names_get(&w->calls, (const char *)key, sizeof key);
    int64_t *calls = known ? &w->call_counts.data[*known] : prof_array_add(&w->call_counts);
    if (!calls || (!known && !prof_names_put(&w->calls, (const char *)key, sizeof key,
                                             (uint32_t)(w->call_counts.count - 1))))
        return false;
    if (!known) {
        *calls = 0;
        of->callers++;
    }
    *calls = prof_add(*calls, count);
    if (*calls > of->most)
        of->most = *calls;
    return true;
}

/* A place that calls itself counts once, as the innermost. */
static bool add_wrapper_stack(struct prof_launch_wrappers *w, int64_t stack, uint64_t name,
                              int64_t count)
{
    const struct prof_frame *frames;
    size_t depth = prof_stack_near(w->stacks, stack, &frames);
    if (!make_room(w))
        return false;
    w->stacks_seen++;
    w->count = prof_add(w->count, depth ? count : 0);
    for (size_t i = 0; i < depth; i++) {
        struct launch_place *place = &w->places.data[frames[i].number];
        if (place->seen_in == w->stacks_seen)
            continue;
        place->seen_in = w->stacks_seen;
        place->count = prof_add(place->count, count);
        if (!count_name(w, frames[i].number, name) ||
            (i + 1 < depth &&
             !count_wrapper_call(w, frames[i].number, frames[i + 1].number, count)))
            return false;
    }
    return true;
}

struct reading {
    struct prof_capture *capture;
    struct prof_launch_wrappers *wrappers;
};

/* Kernels are kept apart by their names, whatever their launch configurations. */
static bool add_kernels(void *user, sqlite3_stmt *row)
{
    struct reading *r = user;
    const struct prof_config *config = prof_config(r->capture, prof_column_id(row, 1));
    return add_wrapper_stack(r->wrappers, prof_column_id(row, 0),
                             config ? (uint64_t)(uintptr_t)config->name : 0,
                             prof_column_id(row, 2));
}

/* What has no name by what it is, and by the power of two that its size is of. */
static bool add_sized(void *user, sqlite3_stmt *row)
{
    struct reading *r = user;
    int64_t bytes = prof_column_id(row, 3);
    unsigned size = bytes > 0 ? 64 - (unsigned)__builtin_clzll((unsigned long long)bytes) : 0;
    return add_wrapper_stack(r->wrappers, prof_column_id(row, 0),
                             (uint64_t)prof_column_id(row, 1) << 8 | size, prof_column_id(row, 2));
}

static const struct {
    enum prof_stack_use use;
    bool (*add)(void *user, sqlite3_stmt *row);
    const char *sql;
} sources[] = {
    {PROF_STACK_WORK, add_kernels,
     "SELECT stack, config, count(*) FROM kernel WHERE stack NOT NULL GROUP BY 1, 2"},
    {PROF_STACK_WORK, add_sized,
     "SELECT stack, -1 - coalesce(kind, 0), count(*), bytes FROM transfer WHERE stack NOT NULL "
     "GROUP BY 1, 2, 4"},
    {PROF_STACK_WORK, add_sized,
     "SELECT stack, -1000, count(*), bytes FROM memset WHERE stack NOT NULL GROUP BY 1, 4"},
    {PROF_STACK_WORK, add_sized,
     "SELECT stack, node, 1, 0 FROM graph_node WHERE stack NOT NULL GROUP BY 1, 2"},
    {PROF_STACK_MEMORY, add_sized,
     "SELECT stack, kind, count(*), bytes FROM allocation WHERE stack NOT NULL GROUP BY 1, 2, 4"},
    {PROF_STACK_WAITS, add_sized,
     "SELECT stack, api_name, count(*), 0 FROM sync WHERE stack NOT NULL GROUP BY 1, 2"},
    {PROF_STACK_CALLS, add_sized,
     "SELECT stack, name, count(*), 0 FROM api_call WHERE stack NOT NULL GROUP BY 1, 2"},
};

static enum prof_status read_use(struct prof_capture *capture, enum prof_stack_use use,
                                 struct prof_launch_wrappers *w, struct prof_error *err)
{
    struct reading reading = {capture, w};
    enum prof_status status = prof_begin(capture, err);
    if (status)
        return status;
    for (size_t i = 0; !status && i < sizeof sources / sizeof sources[0]; i++)
        if (sources[i].use == use)
            status = prof_scan(capture, sources[i].sql, sources[i].add, &reading, err);
    prof_end(capture);
    return status;
}

enum prof_status prof_capture_wrappers(struct prof_capture *capture, enum prof_stack_use use,
                                       const struct prof_launch_wrappers **wrappers,
                                       struct prof_error *err)
{
    struct prof_launch_wrappers **kept = &capture->wrappers[use];
    struct prof_stacks *stacks;
    *wrappers = *kept;
    if (*kept)
        return PROF_OK;
    enum prof_status status = prof_capture_stacks(capture, &stacks, err);
    struct prof_launch_wrappers *w = status ? NULL : calloc(1, sizeof *w);
    if (!status && !w)
        status = prof_out_of_memory(err);
    if (!status)
        w->stacks = stacks;
    if (!status && stacks)
        status = read_use(capture, use, w, err);
    if (status && w) {
        prof_launch_wrappers_free(w);
        free(w);
        return status;
    }
    *wrappers = *kept = w;
    return status;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static bool nearly_all(int64_t part, int64_t whole)
{
    return (double)part >= NEARLY_ALL * (double)whole;
}

static bool is_wrapper(const struct prof_launch_wrappers *w, const struct launch_place *place)
{
    return place->callers >= SEVERAL && !nearly_all(place->most, place->count) &&
           (place->names >= SEVERAL || nearly_all(place->count, w->count));
}

size_t prof_launch_wrappers_skip(const struct prof_launch_wrappers *w, const uint32_t *places,
                                 size_t count)
{
    size_t told = 0;
    for (size_t i = 0; i < count && places[i] < w->places.count; i++) {
        const struct launch_place *place = &w->places.data[places[i]];
        const struct launch_place *best = &w->places.data[places[told]];
        if (!place->count || place->names > best->names)
            break;
        if (place->names < best->names)
            told = i;
        if (i + 1 < count && is_wrapper(w, place))
            told = i + 1;
    }
    return told;
}

size_t prof_launch_wrappers_skip_path(const struct prof_launch_wrappers *w,
                                      const struct prof_frame *places, const uint32_t *path,
                                      size_t depth)
{
    uint32_t near[MOST_DEPTH], numbers[MOST_DEPTH];
    size_t count = prof_path_near(places, path, depth < MOST_DEPTH ? depth : MOST_DEPTH, near);
    for (size_t i = 0; i < count; i++)
        numbers[i] = path[near[i]];
    return count ? near[prof_launch_wrappers_skip(w, numbers, count)] : 0;
}

size_t prof_stack_callers(struct prof_capture *capture, enum prof_stack_use use, int64_t stack,
                          const struct prof_frame **frames, const struct prof_frame **via)
{
    const struct prof_launch_wrappers *w;
    uint32_t numbers[MOST_DEPTH];
    *frames = *via = NULL;
    struct prof_error lost;
    if (prof_capture_wrappers(capture, use, &w, &lost)) {
        prof_note_error(&lost);
        capture->lost_string = lost; /* the next query fails */
        return 0;
    }
    if (!w->stacks)
        return 0;
    size_t count = prof_stack_near(w->stacks, stack, frames), depth = 0;
    for (; depth < count && depth < MOST_DEPTH; depth++)
        numbers[depth] = (*frames)[depth].number;
    size_t told = prof_launch_wrappers_skip(w, numbers, depth);
    if (told)
        *via = *frames;
    *frames += told;
    return count - told;
}
