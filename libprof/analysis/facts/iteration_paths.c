/* The paths of a capture's NVTX ranges ("train/step"), over all threads, and the device work that
 * is launched in them; see iteration_parts.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/gpu/collective_name.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"

#define DECLARED_DOMAIN "perfkit" /* of perfkit/annotate.h */
#define MAX_PATHS 65536           /* further ones count as what is around them */

/* Of what does not belong to what repeats; simplified as prof_simplify_range_name does. */
static const char *const set_up_names[] = {"init", "compile", "warm", "startup", "prepare"};
static const char *const set_up_prefixes[] = {"warmup", "setup",    "teardown", "initiali",
                                              "finali", "shutdown", "cleanup",  "warmingup"};

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, list[i]))
            return true;
    return false;
}

static bool is_set_up_name(const char *simple)
{
    for (size_t i = 0; i < sizeof set_up_prefixes / sizeof *set_up_prefixes; i++)
        if (!strncmp(simple, set_up_prefixes[i], strlen(set_up_prefixes[i])))
            return true;
    return is_one_of(simple, set_up_names, sizeof set_up_names / sizeof *set_up_names);
}

/* "step 1" and "step 2" are one name. */
static bool read_range_names(struct prof_range_paths *paths)
{
    size_t count = paths->facts->range_texts.list.count;
    paths->names = calloc(count + 1, sizeof *paths->names);
    for (uint32_t g = 0; paths->names && g < count; g++) {
        const char *text = paths->facts->range_texts.list.data[g];
        char simple[PROF_RANGE_NAME_ROOM];
        paths->names[g].canonical = g;
        if (!text || !prof_simplify_range_name(text, simple))
            continue;
        paths->names[g].preferred = prof_range_name_is_iteration(simple);
        paths->names[g].set_up = is_set_up_name(simple);
        if (!paths->names[g].preferred || !isdigit((unsigned char)text[strlen(text) - 1]))
            continue;
        const uint32_t *known = prof_names_get(&paths->canonical, simple, strlen(simple));
        paths->names[g].canonical = known ? *known : g;
        if (!known && !prof_names_put(&paths->canonical, simple, strlen(simple), g))
            return false;
    }
    return paths->names != NULL;
}

bool prof_lane_declares_work(const struct prof_facts *f, const struct prof_range_lane *lane)
{
    const char *domain = prof_string(f->capture, lane->domain, NULL);
    return domain && !strcmp(domain, DECLARED_DOMAIN);
}

/* Threads of PyTorch's autograd engine work for the thread that called backward(), which waits:
 * their ranges are the engine's only. */
static bool is_of_engine(const struct prof_facts *f, const struct prof_range_lane *lane)
{
    static const char engine[] = "autograd::engine::";
    const struct prof_range_node *first = &f->ranges.nodes.data[lane->nodes[0]];
    const char *name = f->range_texts.list.data[first->group];
    return name && !strncmp(name, engine, sizeof engine - 1);
}

/* What `perfkit run --pytorch` makes of Python's garbage collections. */
static bool is_collection(const char *name)
{
    static const char collection[] = "garbage collection, generation ";
    return name && !strncmp(name, collection, sizeof collection - 1);
}

static bool has_collections_only(const struct prof_facts *f, const struct prof_range_lane *lane)
{
    size_t i = 0;
    while (i < lane->count &&
           is_collection(f->range_texts.list.data[f->ranges.nodes.data[lane->nodes[i]].group]))
        i++;
    return i == lane->count;
}

/* Ranges that a library puts around its own calls are no iterations. */
static bool is_place(const struct prof_facts *f, const struct prof_range_lane *lane)
{
    static const char *const libraries[] = {DECLARED_DOMAIN, "perfkit.collective", "NCCL", "CCCL"};
    const char *domain = prof_string(f->capture, lane->domain, NULL);
    return (!domain || !is_one_of(domain, libraries, sizeof libraries / sizeof *libraries)) &&
           lane->count && !is_of_engine(f, lane) && !has_collections_only(f, lane);
}

static bool is_in_time(const struct prof_facts *f, const struct prof_range_node *node)
{
    return node->begin >= f->begin_ns && node->end <= f->end_ns;
}

/* PROF_NO_RANGE_PATH: out of memory, which *failed shows, or too many. */
static uint32_t find_range_path(struct prof_range_paths *paths, uint32_t parent, uint32_t group,
                                int64_t domain, bool *failed)
{
    const struct prof_range_name *name = &paths->names[group];
    uint64_t key = ((uint64_t)parent << 32 | name->canonical) * 0x9e3779b97f4a7c15u ^
                   (parent == PROF_NO_RANGE_PATH ? (uint64_t)domain * 0xff51afd7ed558ccdu : 0);
    const uint64_t *known = prof_map_get(&paths->index, key);
    if (known)
        return (uint32_t)*known;
    if (paths->list.count >= MAX_PATHS)
        return PROF_NO_RANGE_PATH;
    const struct prof_range_path *around =
        parent == PROF_NO_RANGE_PATH ? NULL : &paths->list.data[parent];
    bool set_up = name->set_up || (around && around->set_up);
    const char *text = paths->facts->range_texts.list.data[group];
    bool step = text && prof_collective_range(NULL, text) == PROF_COLLECTIVE_NONE &&
                !prof_range_name_is_operator(text) && !is_collection(text);
    struct prof_range_path *path = prof_array_add(&paths->list);
    if (!path || !prof_map_put(&paths->index, key, paths->list.count - 1)) {
        *failed = true;
        return PROF_NO_RANGE_PATH;
    }
    *path = (struct prof_range_path){.parent = parent,
                                     .name = name->canonical,
                                     .group = step ? group : PROF_NO_GROUP,
                                     .domain = domain,
                                     .preferred = name->preferred,
                                     .set_up = set_up,
                                     .thread = -1};
    return (uint32_t)(paths->list.count - 1);
}

/* What a library runs while it compiles, to find the fastest kernel, is no loop. */
static bool is_compiling(const struct prof_facts *f, int64_t thread,
                         const struct prof_range_node *node)
{
    const struct prof_compile *compile = prof_facts_compile_at(f, (uint32_t)thread, node->begin);
    return compile && node->end <= compile->end;
}

static bool count_lane(struct prof_range_paths *paths, const struct prof_range_lane *lane,
                       int64_t thread)
{
    const struct prof_range_node *nodes = paths->facts->ranges.nodes.data;
    bool failed = false;
    for (size_t i = 0; i < lane->count && !failed; i++) {
        const struct prof_range_node *node = &nodes[lane->nodes[i]];
        uint32_t around =
            node->parent == PROF_NO_RANGE ? PROF_NO_RANGE_PATH : paths->of_node[node->parent];
        uint32_t at = find_range_path(paths, around, node->group, lane->domain, &failed);
        paths->of_node[lane->nodes[i]] = at == PROF_NO_RANGE_PATH ? around : at;
        if (at == PROF_NO_RANGE_PATH || !prof_range_is_instance(paths->facts, thread, node) ||
            is_compiling(paths->facts, thread, node))
            continue;
        struct prof_range_path *path = &paths->list.data[at];
        if (path->thread != thread)
            path->on_thread = 0;
        path->thread = thread;
        path->on_thread++;
        if (is_in_time(paths->facts, node)) {
            path->count++;
            path->host_ns += node->end - node->begin;
            paths->host_ns += around == PROF_NO_RANGE_PATH ? node->end - node->begin : 0;
        }
        path->most = path->on_thread > path->most ? path->on_thread : path->most;
    }
    return !failed;
}

static bool read_range_paths(struct prof_range_paths *paths)
{
    const struct prof_facts *f = paths->facts;
    size_t processes = f->capture->processes.count;
    paths->of_node = malloc((f->ranges.nodes.count + 1) * sizeof *paths->of_node);
    paths->launches = calloc(f->ranges.nodes.count + 1, sizeof *paths->launches);
    paths->proxy = malloc((processes + 1) * sizeof *paths->proxy);
    PROF_FREED size_t *most = calloc(processes + 1, sizeof *most);
    bool ok = paths->of_node && paths->launches && paths->proxy && most;
    for (size_t i = 0; ok && i < f->ranges.nodes.count; i++)
        paths->of_node[i] = PROF_NO_RANGE_PATH;
    for (size_t i = 0; ok && i < processes; i++)
        paths->proxy[i] = SIZE_MAX;
    for (size_t t = 0; ok && t < f->ranges.threads.count; t++) {
        const struct prof_range_thread *thread = &f->ranges.threads.data[t];
        const struct prof_thread *row = prof_thread(f->capture, thread->thread);
        size_t process = row ? prof_index_of(&f->capture->processes, row->process) : SIZE_MAX;
        size_t ranges = 0;
        for (size_t l = 0; ok && l < thread->lanes.count; l++) {
            if (!is_place(f, &thread->lanes.data[l]))
                continue;
            ok = count_lane(paths, &thread->lanes.data[l], thread->thread);
            ranges += thread->lanes.data[l].count;
        }
        if (process != SIZE_MAX && ranges > most[process]) {
            most[process] = ranges;
            paths->proxy[process] = t;
        }
    }
    return ok;
}

/* The thread whose ranges stand for those of a thread: its own, else those of the thread of its
 * process that has most: who feeds a thread that only launches. */
static struct prof_range_thread *find_ranges_of(const struct prof_range_paths *paths,
                                                uint32_t thread)
{
    struct prof_range_index *index = (struct prof_range_index *)(uintptr_t)&paths->facts->ranges;
    struct prof_range_thread *own = prof_range_thread(index, thread);
    for (size_t l = 0; own && l < own->lanes.count; l++)
        if (is_place(paths->facts, &own->lanes.data[l]))
            return own;
    const struct prof_thread *row = prof_thread(paths->facts->capture, thread);
    size_t process =
        row ? prof_index_of(&paths->facts->capture->processes, row->process) : SIZE_MAX;
    size_t at = process == SIZE_MAX ? SIZE_MAX : paths->proxy[process];
    return at == SIZE_MAX ? NULL : &index->threads.data[at];
}

/* Threads take turns: the answers for the last few are kept. */
static struct prof_range_thread *ranges_of(struct prof_range_paths *paths, uint32_t thread)
{
    struct prof_range_cached *cached = &paths->cached[thread % PROF_RANGE_CACHED];
    if (!thread)
        return NULL;
    if (thread != cached->thread)
        *cached = (struct prof_range_cached){thread, find_ranges_of(paths, thread)};
    return cached->ranges;
}

/* The innermost range around an operation's call in a lane, with a path, or PROF_NO_RANGE. */
static uint32_t range_around(const struct prof_range_paths *paths, struct prof_range_lane *lane,
                             const struct prof_op *op)
{
    uint32_t node = prof_range_at(&paths->facts->ranges, lane, prof_op_asked_at(op));
    return node != PROF_NO_RANGE && paths->of_node[node] == PROF_NO_RANGE_PATH ? PROF_NO_RANGE
                                                                               : node;
}

/* Into the innermost paths; sum_paths passes them on. */
static void place_op(struct prof_range_paths *paths, const struct prof_op *op)
{
    struct prof_range_thread *thread = ranges_of(paths, op->thread);
    for (size_t l = 0; thread && l < thread->lanes.count; l++) {
        uint32_t node = range_around(paths, &thread->lanes.data[l], op);
        if (node == PROF_NO_RANGE)
            continue;
        struct prof_range_path *path = &paths->list.data[paths->of_node[node]];
        path->ops++;
        path->ns = prof_add(path->ns, op->duration);
        paths->launches[node] = true;
    }
}

uint32_t prof_range_path_at(struct prof_range_paths *paths, const struct prof_op *op)
{
    struct prof_range_thread *thread = ranges_of(paths, op->thread);
    for (size_t l = 0; thread && l < thread->lanes.count; l++) {
        uint32_t node = range_around(paths, &thread->lanes.data[l], op);
        if (node != PROF_NO_RANGE)
            return paths->of_node[node];
    }
    return PROF_NO_RANGE_PATH;
}

static void place_ops(struct prof_range_paths *paths)
{
    const struct prof_facts *f = paths->facts;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            paths->ops++;
            paths->ns = prof_add(paths->ns, op.duration);
            place_op(paths, &op);
        }
    }
}

/* Parents stand before what they contain. */
static void sum_paths(struct prof_range_paths *paths)
{
    const struct prof_range_node *nodes = paths->facts->ranges.nodes.data;
    for (size_t i = paths->facts->ranges.nodes.count; i--;)
        if (paths->launches[i] && nodes[i].parent != PROF_NO_RANGE)
            paths->launches[nodes[i].parent] = true;
    for (size_t i = 0; i < paths->facts->ranges.nodes.count; i++)
        if (paths->of_node[i] != PROF_NO_RANGE_PATH && is_in_time(paths->facts, &nodes[i]))
            paths->list.data[paths->of_node[i]].launching += paths->launches[i];
    for (size_t p = paths->list.count; p--;) {
        const struct prof_range_path *path = &paths->list.data[p];
        if (path->parent == PROF_NO_RANGE_PATH)
            continue;
        paths->list.data[path->parent].ops += path->ops;
        paths->list.data[path->parent].set_up_ops += path->set_up ? path->ops : path->set_up_ops;
        paths->list.data[path->parent].ns = prof_add(paths->list.data[path->parent].ns, path->ns);
    }
}

bool prof_range_paths_read(struct prof_range_paths *paths, const struct prof_facts *facts)
{
    *paths = (struct prof_range_paths){.facts = facts};
    if (!read_range_names(paths) || !read_range_paths(paths))
        return false;
    place_ops(paths);
    sum_paths(paths);
    return true;
}

void prof_range_paths_free(struct prof_range_paths *paths)
{
    prof_array_free(&paths->list);
    prof_map_free(&paths->index);
    prof_names_free(&paths->canonical);
    free(paths->names);
    free(paths->of_node);
    free(paths->launches);
    free(paths->proxy);
}

char *prof_range_path_label(const struct prof_range_paths *paths, uint32_t path)
{
    char *text = NULL;
    for (; path != PROF_NO_RANGE_PATH; path = paths->list.data[path].parent) {
        uint32_t group = paths->list.data[path].group;
        const char *name =
            group == PROF_NO_GROUP ? "?" : paths->facts->range_texts.list.data[group];
        char *longer = NULL;
        if (asprintf(&longer, "%s%s%s", name, text ? "/" : "", text ? text : "") < 0)
            longer = NULL;
        free(text);
        text = longer;
        if (!text)
            return NULL;
    }
    return text;
}
