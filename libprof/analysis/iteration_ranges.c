/* Phases by NVTX ranges; see iterations.h. Ranges are taken by their path ("train/step"), over all
 * threads. A path is a candidate when it repeats on a thread and at least half of its instances
 * launch device work. Of candidates inside each other the outermost wins, but for names that
 * programs give to iterations ("step"), which win wherever they hold half of the work, also inside
 * each other where the outer one holds set-up ("batch 256/warmup"). Ranges of other names that come
 * in turn (forward, backward) are parts of one iteration.
 *
 * Everything is decided by counts, so that two runs of a program decide alike. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/iteration_parts.h"
#include "libprof/base/collective_name.h"
#include "libprof/base/saturate.h"

#define DECLARED_DOMAIN "perfkit" /* of perfkit/annotate.h */
#define MAX_PATHS 65536           /* further ones count as what is around them */
#define MAX_SIBLINGS 256          /* candidates without a name for iterations */
#define NO_PATH UINT32_MAX
#define LONG_RUN 3 /* instances in a row, on average: a phase of its own; fewer: in turn */

/* Names as programs give them to what repeats, and to what does not belong to it: in lower case,
 * without signs, and without a number at the end. */
static const char *const iteration_names[] = {
    "step",     "iteration",    "iter",      "batch",          "minibatch",    "trainstep",
    "timestep", "trainingstep", "trainiter", "trainiteration", "profilerstep",
};
static const char *const set_up_names[] = {"init", "compile", "warm", "startup", "prepare"};
static const char *const set_up_prefixes[] = {"warmup", "setup",    "teardown", "initiali",
                                              "finali", "shutdown", "cleanup",  "warmingup"};

struct path {
    uint32_t parent, name; /* index of the path around it; canonical number of the name */
    uint32_t group;        /* of its first instance */
    int64_t domain;        /* string id */
    bool preferred, set_up, chosen, inside; /* set_up: also by a range around it */
    int64_t count, launching;               /* instances in time; of those, with device work */
    int64_t most;                           /* instances on one thread */
    int64_t on_thread, thread;              /* while counting */
    int64_t ops, ns;                        /* device work launched inside */
    int64_t preferred_ops;                  /* of it, in chosen paths of preferred names */
    int64_t set_up_ops;                     /* of it, in set-up of its own */
};

struct name {
    uint32_t canonical;
    bool preferred, set_up;
};

struct candidate {
    uint32_t path;
    PROF_ARRAY(struct prof_iteration) list;
    int64_t begin, end;
    uint32_t cluster; /* index of the candidate that leads it */
    bool dropped;
};

struct search {
    const struct prof_facts *facts;
    struct name *names; /* by group of facts.range_texts */
    struct prof_names canonical;
    PROF_ARRAY(struct path) paths;
    struct prof_map path_index;
    uint32_t *path_of; /* by range node */
    bool *launches;    /* likewise */
    size_t *proxy;     /* by process: index of its thread that has most ranges, SIZE_MAX = none */
    bool asked_path;   /* a path was asked for, not a name */
    int64_t ops, ns;
    PROF_ARRAY(struct candidate) candidates;
};

/* ---- names ------------------------------------------------------------------------------------
 */

#define NAME_ROOM 48

/* In lower case, letters and digits only, no digits at the end. */
static void simplify(const char *text, char out[NAME_ROOM])
{
    size_t used = 0;
    for (; *text && used + 1 < NAME_ROOM; text++) {
        if (isalnum((unsigned char)*text))
            out[used++] = (char)tolower((unsigned char)*text);
    }
    while (used && isdigit((unsigned char)out[used - 1]))
        used--;
    out[used] = 0;
}

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(text, list[i]))
            return true;
    }
    return false;
}

static bool is_set_up(const char *simple)
{
    for (size_t i = 0; i < sizeof set_up_prefixes / sizeof *set_up_prefixes; i++) {
        if (!strncmp(simple, set_up_prefixes[i], strlen(set_up_prefixes[i])))
            return true;
    }
    return is_one_of(simple, set_up_names, sizeof set_up_names / sizeof *set_up_names);
}

/* "step 1" and "step 2" are one name. */
static bool read_names(struct search *s)
{
    size_t count = s->facts->range_texts.list.count;
    s->names = calloc(count + 1, sizeof *s->names);
    for (uint32_t g = 0; s->names && g < count; g++) {
        const char *text = s->facts->range_texts.list.data[g];
        char simple[NAME_ROOM];
        s->names[g].canonical = g;
        if (!text || strlen(text) >= NAME_ROOM)
            continue;
        simplify(text, simple);
        s->names[g].preferred =
            is_one_of(simple, iteration_names, sizeof iteration_names / sizeof *iteration_names);
        s->names[g].set_up = is_set_up(simple);
        if (!s->names[g].preferred || !isdigit((unsigned char)text[strlen(text) - 1]))
            continue;
        const uint32_t *known = prof_names_get(&s->canonical, simple, strlen(simple));
        s->names[g].canonical = known ? *known : g;
        if (!known && !prof_names_put(&s->canonical, simple, strlen(simple), g))
            return false;
    }
    return s->names != NULL;
}

/* ---- paths ------------------------------------------------------------------------------------
 */

bool prof_lane_declares_work(const struct prof_facts *f, const struct prof_range_lane *lane)
{
    const char *domain = prof_string(f->capture, lane->domain, NULL);
    return domain && !strcmp(domain, DECLARED_DOMAIN);
}

/* Ranges that a library puts around its own calls are no iterations. */
static bool is_place(const struct prof_facts *f, const struct prof_range_lane *lane)
{
    static const char *const libraries[] = {DECLARED_DOMAIN, "perfkit.collective", "NCCL"};
    const char *domain = prof_string(f->capture, lane->domain, NULL);
    return !domain || !is_one_of(domain, libraries, sizeof libraries / sizeof *libraries);
}

/* Ended: also outside of the time that was asked for, so that the choice does not depend on it. */
static bool is_instance(const struct prof_range_node *node)
{
    return node->end != INT64_MAX;
}

static bool is_in_time(const struct prof_facts *f, const struct prof_range_node *node)
{
    return node->begin >= f->begin_ns && node->end <= f->end_ns;
}

/* NO_PATH: out of memory, which *failed tells, or too many. */
static uint32_t find_range_path(struct search *s, uint32_t parent, uint32_t group, int64_t domain,
                                bool *failed)
{
    const struct name *name = &s->names[group];
    uint64_t key = ((uint64_t)parent << 32 | name->canonical) * 0x9e3779b97f4a7c15u ^
                   (parent == NO_PATH ? (uint64_t)domain * 0xff51afd7ed558ccdu : 0);
    const uint64_t *known = prof_map_get(&s->path_index, key);
    if (known)
        return (uint32_t)*known;
    if (s->paths.count >= MAX_PATHS)
        return NO_PATH;
    const struct path *around = parent == NO_PATH ? NULL : &s->paths.data[parent];
    bool set_up = name->set_up || (around && around->set_up);
    const char *text = s->facts->range_texts.list.data[group];
    bool step = text && prof_collective_range(NULL, text) == PROF_COLLECTIVE_NONE;
    struct path *path = prof_array_add(&s->paths);
    if (!path || !prof_map_put(&s->path_index, key, s->paths.count - 1)) {
        *failed = true;
        return NO_PATH;
    }
    *path = (struct path){.parent = parent,
                          .name = name->canonical,
                          .group = step ? group : PROF_NO_GROUP,
                          .domain = domain,
                          .preferred = name->preferred,
                          .set_up = set_up,
                          .thread = -1};
    return (uint32_t)(s->paths.count - 1);
}

static bool count_lane(struct search *s, const struct prof_range_lane *lane, int64_t thread)
{
    const struct prof_range_node *nodes = s->facts->ranges.nodes.data;
    bool failed = false;
    for (size_t i = 0; i < lane->count && !failed; i++) {
        const struct prof_range_node *node = &nodes[lane->nodes[i]];
        uint32_t around = node->parent == PROF_NO_RANGE ? NO_PATH : s->path_of[node->parent];
        uint32_t at = find_range_path(s, around, node->group, lane->domain, &failed);
        s->path_of[lane->nodes[i]] = at == NO_PATH ? around : at;
        if (at == NO_PATH || !is_instance(node))
            continue;
        struct path *path = &s->paths.data[at];
        if (path->thread != thread)
            path->on_thread = 0;
        path->thread = thread;
        path->on_thread++;
        path->count += is_in_time(s->facts, node);
        path->most = path->on_thread > path->most ? path->on_thread : path->most;
    }
    return !failed;
}

static bool read_paths(struct search *s)
{
    const struct prof_facts *f = s->facts;
    size_t processes = f->capture->processes.count;
    s->path_of = malloc((f->ranges.nodes.count + 1) * sizeof *s->path_of);
    s->launches = calloc(f->ranges.nodes.count + 1, sizeof *s->launches);
    s->proxy = malloc((processes + 1) * sizeof *s->proxy);
    size_t *most = calloc(processes + 1, sizeof *most);
    bool ok = s->path_of && s->launches && s->proxy && most;
    for (size_t i = 0; ok && i < f->ranges.nodes.count; i++)
        s->path_of[i] = NO_PATH;
    for (size_t i = 0; ok && i < processes; i++)
        s->proxy[i] = SIZE_MAX;
    for (size_t t = 0; ok && t < f->ranges.threads.count; t++) {
        const struct prof_range_thread *thread = &f->ranges.threads.data[t];
        const struct prof_thread *row = prof_thread(f->capture, thread->thread);
        size_t process = row ? prof_index_of(&f->capture->processes, row->process) : SIZE_MAX;
        size_t ranges = 0;
        for (size_t l = 0; ok && l < thread->lanes.count; l++) {
            if (!is_place(f, &thread->lanes.data[l]))
                continue;
            ok = count_lane(s, &thread->lanes.data[l], thread->thread);
            ranges += thread->lanes.data[l].count;
        }
        if (process != SIZE_MAX && ranges > most[process]) {
            most[process] = ranges;
            s->proxy[process] = t;
        }
    }
    free(most);
    return ok;
}

/* ---- device work in them ----------------------------------------------------------------------
 */

/* The thread whose ranges stand for those of a thread: its own, else those of the thread of its
 * process that has most: who feeds a thread that only launches. */
static struct prof_range_thread *ranges_of(const struct search *s, uint32_t thread)
{
    struct prof_range_index *index = (struct prof_range_index *)(uintptr_t)&s->facts->ranges;
    struct prof_range_thread *own = prof_range_thread(index, thread);
    for (size_t l = 0; own && l < own->lanes.count; l++) {
        if (is_place(s->facts, &own->lanes.data[l]))
            return own;
    }
    const struct prof_thread *row = prof_thread(s->facts->capture, thread);
    size_t process = row ? prof_index_of(&s->facts->capture->processes, row->process) : SIZE_MAX;
    size_t at = process == SIZE_MAX ? SIZE_MAX : s->proxy[process];
    return at == SIZE_MAX ? NULL : &index->threads.data[at];
}

/* Into the innermost path; sum_paths passes it on. */
static void place_op(struct search *s, struct prof_range_thread *thread, const struct prof_op *op)
{
    struct prof_range_index *index = (struct prof_range_index *)(uintptr_t)&s->facts->ranges;
    for (size_t l = 0; thread && l < thread->lanes.count; l++) {
        uint32_t node = prof_range_at(index, &thread->lanes.data[l], prof_op_asked_at(op));
        if (node == PROF_NO_RANGE || s->path_of[node] == NO_PATH)
            continue;
        struct path *path = &s->paths.data[s->path_of[node]];
        path->ops++;
        path->ns = prof_add(path->ns, op->duration);
        s->launches[node] = true;
    }
}

static void place_ops(struct search *s)
{
    const struct prof_facts *f = s->facts;
    struct {
        uint32_t thread;
        struct prof_range_thread *ranges;
    } known[8] = {0}; /* by thread id: threads take turns */
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            size_t slot = op.thread % (sizeof known / sizeof *known);
            s->ops++;
            s->ns = prof_add(s->ns, op.duration);
            if (!op.thread)
                continue;
            if (op.thread != known[slot].thread)
                known[slot].ranges = ranges_of(s, op.thread);
            known[slot].thread = op.thread;
            place_op(s, known[slot].ranges, &op);
        }
    }
}

/* Parents stand before what they contain. */
static void sum_paths(struct search *s)
{
    const struct prof_range_node *nodes = s->facts->ranges.nodes.data;
    for (size_t i = s->facts->ranges.nodes.count; i--;) {
        if (s->launches[i] && nodes[i].parent != PROF_NO_RANGE)
            s->launches[nodes[i].parent] = true;
    }
    for (size_t i = 0; i < s->facts->ranges.nodes.count; i++) {
        if (s->path_of[i] != NO_PATH && is_in_time(s->facts, &nodes[i]))
            s->paths.data[s->path_of[i]].launching += s->launches[i];
    }
    for (size_t p = s->paths.count; p--;) {
        const struct path *path = &s->paths.data[p];
        if (path->parent == NO_PATH)
            continue;
        s->paths.data[path->parent].ops += path->ops;
        s->paths.data[path->parent].set_up_ops += path->set_up ? path->ops : path->set_up_ops;
        s->paths.data[path->parent].ns = prof_add(s->paths.data[path->parent].ns, path->ns);
    }
}

/* ---- which of them ----------------------------------------------------------------------------
 */

/* Where the device does nothing at all, device work chooses nothing. */
static bool is_candidate(const struct search *s, const struct path *path, bool set_up)
{
    bool works = path->launching > 0 && 2 * path->launching >= path->count;
    return path->group != PROF_NO_GROUP && (set_up || !path->set_up) && path->count &&
           path->most >= PROF_LEAST_REPEATED && (works || !s->ops);
}

static void choose_paths(struct search *s, bool set_up)
{
    for (size_t p = 0; p < s->paths.count; p++)
        s->paths.data[p].preferred_ops = 0;
    for (size_t p = s->paths.count; p--;) {
        struct path *path = &s->paths.data[p];
        bool inside = path->preferred_ops > 0; /* another one of a preferred name */
        path->chosen = is_candidate(s, path, set_up) &&
                       (!inside || (path->preferred && !path->set_up_ops) ||
                        2 * path->preferred_ops < path->ops - path->set_up_ops);
        int64_t preferred = !path->chosen ? path->preferred_ops : path->preferred ? path->ops : 0;
        if (path->parent != NO_PATH)
            s->paths.data[path->parent].preferred_ops += preferred;
    }
    for (size_t p = 0; p < s->paths.count; p++) {
        struct path *path = &s->paths.data[p];
        const struct path *around = path->parent == NO_PATH ? NULL : &s->paths.data[path->parent];
        path->inside = around && (around->chosen || around->inside);
    }
    for (size_t p = 0; p < s->paths.count; p++)
        s->paths.data[p].chosen &= !s->paths.data[p].inside;
}

/* Of ranges that nobody names so, those with next to no work are no phase. */
static bool is_worth_it(const struct search *s, const struct path *path)
{
    return path->preferred || 50 * (double)path->ops >= (double)s->ops ||
           10 * (double)path->ns >= (double)s->ns;
}

/* "train/step", or NULL without memory. */
static char *full_label(const struct search *s, uint32_t path)
{
    char *text = NULL;
    for (; path != NO_PATH; path = s->paths.data[path].parent) {
        uint32_t group = s->paths.data[path].group;
        const char *name = group == PROF_NO_GROUP ? "?" : s->facts->range_texts.list.data[group];
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

static const char *domain_of(const struct search *s, const struct path *path)
{
    const char *domain = prof_string(s->facts->capture, path->domain, NULL);
    return domain ? domain : "";
}

/* The name of the range; or, with slashes, its name and those of ranges around it, as in labels. */
static bool is_called(const struct search *s, uint32_t path, const char *name, size_t length,
                      bool by_path)
{
    uint32_t group = s->paths.data[path].group;
    const char *text = group == PROF_NO_GROUP ? NULL : s->facts->range_texts.list.data[group];
    if (!text || !by_path)
        return text && strlen(text) == length && !strncmp(text, name, length);
    char *label = full_label(s, path);
    size_t all = label ? strlen(label) : 0;
    bool ends = all >= length && !strncmp(label + all - length, name, length) &&
                (all == length || label[all - length - 1] == '/');
    free(label);
    return ends;
}

static bool choose_called(struct search *s, const char *name, size_t length, const char *domain,
                          bool by_path)
{
    bool any = false, beside_set_up = false;
    for (uint32_t p = 0; p < s->paths.count; p++) {
        struct path *path = &s->paths.data[p];
        const struct path *around = path->parent == NO_PATH ? NULL : &s->paths.data[path->parent];
        path->inside = around && (around->chosen || around->inside);
        path->chosen = !path->inside && path->count &&
                       (!domain || !strcmp(domain, domain_of(s, path))) &&
                       is_called(s, p, name, length, by_path);
        any |= path->chosen;
        beside_set_up |= path->chosen && !path->set_up;
    }
    for (size_t p = 0; p < s->paths.count && beside_set_up; p++)
        s->paths.data[p].chosen &= !s->paths.data[p].set_up;
    return any;
}

/* RANGE or RANGE@DOMAIN, where names may hold both signs; then the same with RANGE as in labels. */
static void choose_asked(struct search *s, const char *asked)
{
    const char *at = strrchr(asked, '@');
    for (int by_path = 0; by_path < (strchr(asked, '/') ? 2 : 1); by_path++) {
        s->asked_path = by_path;
        if (choose_called(s, asked, strlen(asked), NULL, by_path) ||
            (at && choose_called(s, asked, (size_t)(at - asked), at + 1, by_path)))
            return;
    }
}

static int by_path_work(const void *a, const void *b)
{
    const struct path *const *x = a, *const *y = b;
    if ((*x)->preferred != (*y)->preferred)
        return (*x)->preferred ? -1 : 1;
    if ((*x)->ops != (*y)->ops)
        return (*x)->ops > (*y)->ops ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static bool list_candidates(struct search *s, bool all)
{
    const struct path **sorted = malloc((s->paths.count + 1) * sizeof *sorted);
    size_t count = 0, others = 0;
    for (size_t p = 0; sorted && p < s->paths.count; p++) {
        const struct path *path = &s->paths.data[p];
        if (path->chosen && (all || is_worth_it(s, path)))
            sorted[count++] = path;
    }
    if (count)
        qsort(sorted, count, sizeof *sorted, by_path_work);
    for (size_t i = 0; sorted && i < count && others < MAX_SIBLINGS; i++) {
        struct candidate *slot = prof_array_add(&s->candidates);
        if (!slot)
            break;
        others += !sorted[i]->preferred;
        *slot = (struct candidate){.path = (uint32_t)(sorted[i] - s->paths.data),
                                   .begin = INT64_MAX,
                                   .cluster = (uint32_t)(s->candidates.count - 1)};
    }
    bool ok = sorted && (s->candidates.count == count || others == MAX_SIBLINGS);
    free(sorted);
    return ok;
}

/* ---- their instances --------------------------------------------------------------------------
 */

/* Ranges of the name in two lanes of a thread may cross: the one that begins later goes. */
static void drop_crossing(struct candidate *c)
{
    size_t kept = 0;
    if (c->list.count)
        qsort(c->list.data, c->list.count, sizeof *c->list.data, prof_by_thread_and_begin);
    for (size_t i = 0; i < c->list.count; i++) {
        const struct prof_iteration one = c->list.data[i];
        const struct prof_iteration *last = kept ? &c->list.data[kept - 1] : NULL;
        if (last && last->thread == one.thread && one.begin < last->end)
            continue;
        c->list.data[kept++] = one;
        c->begin = one.begin < c->begin ? one.begin : c->begin;
        c->end = one.end > c->end ? one.end : c->end;
    }
    c->list.count = kept;
}

static bool read_candidate_instances(struct search *s, struct prof_set_up *set_up)
{
    const struct prof_facts *f = s->facts;
    struct prof_map slot = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < s->candidates.count; i++)
        ok = prof_map_put(&slot, s->candidates.data[i].path, i);
    for (size_t t = 0; ok && t < f->ranges.threads.count; t++) {
        const struct prof_range_thread *thread = &f->ranges.threads.data[t];
        for (size_t l = 0; l < thread->lanes.count; l++) {
            const struct prof_range_lane *lane = &thread->lanes.data[l];
            for (size_t i = 0; ok && i < lane->count; i++) {
                const struct prof_range_node *node = &f->ranges.nodes.data[lane->nodes[i]];
                uint32_t at = s->path_of[lane->nodes[i]];
                const struct path *path = at == NO_PATH ? NULL : &s->paths.data[at];
                /* too many paths: a node may stand for another's */
                if (!path || s->names[node->group].canonical != path->name)
                    continue;
                const uint64_t *own = prof_map_get(&slot, at);
                if (own && is_instance(node)) {
                    struct prof_iteration *one = prof_array_add(&s->candidates.data[*own].list);
                    ok = one != NULL;
                    if (one)
                        *one = (struct prof_iteration){.begin = node->begin,
                                                       .end = node->end,
                                                       .thread = (uint32_t)thread->thread,
                                                       .covered = INT64_MIN};
                } else if (!own && path->set_up && s->names[node->group].set_up) {
                    struct prof_interval *one = prof_array_add(&set_up->list);
                    ok = one != NULL;
                    if (one)
                        *one = (struct prof_interval){node->begin, node->end};
                }
            }
        }
    }
    prof_map_free(&slot);
    for (size_t i = 0; ok && i < s->candidates.count; i++)
        drop_crossing(&s->candidates.data[i]);
    return ok;
}

/* ---- which of them are one phase --------------------------------------------------------------
 */

/* Do the instances of the two come in turn? Of the one that comes less often, how many stand in a
 * row tells. Threads follow each other in the lists: order by thread is good enough. */
static bool come_in_turn(const struct candidate *a, const struct candidate *b)
{
    if (a->begin >= b->end || b->begin >= a->end)
        return false;
    const struct candidate *rare = a->list.count <= b->list.count ? a : b;
    const struct candidate *other = rare == a ? b : a;
    size_t runs = 1, at = 0;
    for (size_t i = 0; i < rare->list.count; i++) {
        const struct prof_iteration *one = &rare->list.data[i];
        bool interrupted = false;
        for (; at < other->list.count && (other->list.data[at].thread < one->thread ||
                                          (other->list.data[at].thread == one->thread &&
                                           other->list.data[at].begin < one->begin));
             at++)
            interrupted |= i && other->list.data[at].begin > one[-1].begin;
        runs += interrupted;
    }
    return rare->list.count < LONG_RUN * runs;
}

static bool is_preferred(const struct search *s, const struct candidate *c)
{
    return s->paths.data[c->path].preferred;
}

/* Candidates stand with preferred names first, then by work: whoever comes in turn with one of
 * those before it is a part of its iterations. */
static void form_clusters(struct search *s)
{
    struct candidate *all = s->candidates.data;
    for (uint32_t i = 0; i < s->candidates.count; i++) {
        for (uint32_t k = 0; k < i && !is_preferred(s, &all[i]); k++) {
            if (all[k].dropped || all[k].cluster != k || !come_in_turn(&all[i], &all[k]))
                continue;
            all[i].dropped = is_preferred(s, &all[k]);
            all[i].cluster = k;
            break;
        }
    }
}

/* Of a cluster, the one whose begin is that of an iteration: the one that comes least often, but
 * for a few with next to no work (logging, checkpoints); of several, the first. */
static const struct candidate *leader_of(const struct search *s, uint32_t cluster, size_t *members)
{
    const struct candidate *all = s->candidates.data, *best = NULL;
    int64_t ops = 0;
    *members = 0;
    for (size_t i = 0; i < s->candidates.count; i++) {
        if (all[i].cluster == cluster && !all[i].dropped) {
            ops += s->paths.data[all[i].path].ops;
            ++*members;
        }
    }
    for (size_t i = 0; i < s->candidates.count; i++) {
        const struct candidate *c = &all[i];
        if (c->cluster != cluster || c->dropped)
            continue;
        int64_t rarer = 0; /* work in those that come less often, and in this one */
        for (size_t k = 0; k < s->candidates.count; k++) {
            if (all[k].cluster == cluster && !all[k].dropped && all[k].list.count <= c->list.count)
                rarer += s->paths.data[all[k].path].ops;
        }
        bool enough = 20 * rarer >= ops;
        if (enough && (!best || c->list.count < best->list.count ||
                       (c->list.count == best->list.count && c->begin < best->begin)))
            best = c;
    }
    return best;
}

/* ---- result -----------------------------------------------------------------------------------
 */

/* As far as it tells the phases apart; each label may be asked for (choose_asked). */
static char *label_of(const struct search *s, const struct candidate *const *leaders, size_t count,
                      const struct candidate *own)
{
    const struct path *path = &s->paths.data[own->path];
    bool whole = s->asked_path, with_domain = false;
    for (size_t i = 0; i < count; i++) {
        const struct path *other = &s->paths.data[leaders[i]->path];
        if (other == path || other->name != path->name)
            continue;
        whole = true;
        with_domain |= other->domain != path->domain;
    }
    char *text =
        whole ? full_label(s, own->path) : strdup(s->facts->range_texts.list.data[path->group]);
    char *label = NULL;
    if (!text || !with_domain)
        return text;
    if (asprintf(&label, "%s@%s", text, domain_of(s, path)) < 0)
        label = NULL;
    free(text);
    return label;
}

static bool add_range_phase(struct search *s, struct prof_phases *phases,
                            const struct candidate *const *leaders, size_t count, size_t which,
                            bool tiled, bool asked)
{
    struct candidate *c = (struct candidate *)(uintptr_t)leaders[which];
    const struct path *path = &s->paths.data[c->path];
    struct prof_phase *phase = prof_array_add(&phases->list);
    if (!phase)
        return false;
    *phase = (struct prof_phase){
        .iterations = {.source = asked             ? PROF_ITERATION_ASKED
                                 : path->preferred ? PROF_ITERATION_STEP
                                                   : PROF_ITERATION_REPEATING,
                       .group = path->group,
                       .name = s->facts->range_texts.list.data[path->group],
                       .domain = prof_string(s->facts->capture, path->domain, NULL)},
        .label = label_of(s, leaders, count, c),
        .tiled = tiled,
        .ops = path->ops,
    };
    phase->iterations.list.data = c->list.data;
    phase->iterations.list.count = c->list.count;
    phase->iterations.list.capacity = c->list.capacity;
    memset(&c->list, 0, sizeof c->list);
    return phase->label != NULL;
}

static bool add_phases(struct search *s, struct prof_phases *phases, bool asked)
{
    size_t room = s->candidates.count + 1, count = 0;
    const struct candidate **leaders = malloc(room * sizeof *leaders);
    bool *tiled = calloc(room, sizeof *tiled), ok = leaders && tiled;
    for (uint32_t i = 0; ok && i < s->candidates.count; i++) {
        size_t members;
        if (s->candidates.data[i].cluster != i || s->candidates.data[i].dropped)
            continue;
        leaders[count] = leader_of(s, i, &members);
        tiled[count] = members > 1;
        count += leaders[count] != NULL && leaders[count]->list.count > 0;
    }
    for (size_t i = 0; ok && i < count; i++)
        ok = add_range_phase(s, phases, leaders, count, i, tiled[i], asked);
    free(leaders);
    free(tiled);
    return ok;
}

/* Most of the work in ranges that are named as set-up, and none elsewhere: then those repeat. */
static bool is_all_set_up(const struct search *s)
{
    int64_t ops = 0;
    for (size_t p = 0; p < s->paths.count; p++) {
        const struct path *path = &s->paths.data[p];
        if (path->chosen)
            return false;
        if (path->set_up && (path->parent == NO_PATH || !s->paths.data[path->parent].set_up))
            ops += path->ops;
    }
    return 2 * ops >= s->ops;
}

bool prof_phases_by_ranges(struct prof_phases *phases, const struct prof_facts *facts,
                           const char *asked, struct prof_set_up *set_up)
{
    struct search s = {.facts = facts};
    bool ok = read_names(&s) && read_paths(&s);
    if (ok) {
        place_ops(&s);
        sum_paths(&s);
        if (asked)
            choose_asked(&s, asked);
        else
            choose_paths(&s, false);
        if (!asked && is_all_set_up(&s))
            choose_paths(&s, true);
        ok = list_candidates(&s, asked != NULL) && read_candidate_instances(&s, set_up);
    }
    if (ok && !asked)
        form_clusters(&s);
    ok = ok && add_phases(&s, phases, asked != NULL);
    if (set_up->list.count)
        qsort(set_up->list.data, set_up->list.count, sizeof *set_up->list.data,
              prof_by_interval_begin);
    for (size_t i = 0; i < s.candidates.count; i++)
        prof_array_free(&s.candidates.data[i].list);
    prof_array_free(&s.candidates);
    prof_array_free(&s.paths);
    prof_map_free(&s.path_index);
    prof_names_free(&s.canonical);
    free(s.names);
    free(s.path_of);
    free(s.launches);
    free(s.proxy);
    return ok;
}
