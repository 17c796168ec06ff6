/* Phases by NVTX ranges; see iterations.h. Ranges are taken by their path ("train/step"), over all
 * threads. A path is a candidate when it repeats on a thread and at least half of its instances
 * launch device work. Of candidates inside each other the outermost wins, but for names that
 * programs give to iterations ("step"), which win wherever they hold half of the work, also inside
 * each other where the outer one holds set-up ("batch 256/warmup"). Ranges of other names that come
 * in turn (forward, backward) are parts of one iteration.
 *
 * Everything is decided by counts, so that two runs of a program decide alike; but where the device
 * does nothing, time stands for its work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_findings.h"

#define MAX_SIBLINGS 256 /* candidates without a name for iterations */
#define LONG_RUN 3       /* instances in a row, on average: a phase of its own; fewer: in turn */

struct candidate {
    uint32_t path;
    PROF_ARRAY(struct prof_iteration) list, paused;
    int64_t begin, end;
    uint32_t cluster; /* index of the candidate that leads it */
    bool dropped;
    bool other; /* not selected */
};

struct search {
    struct prof_range_paths *paths;
    bool asked_path; /* a path was selected, not a name */
    PROF_ARRAY(struct candidate) candidates;
};

/* ---- which of them --------------------------------------------------------------------------- */

/* Where the device does nothing at all, device work chooses nothing. */
static bool is_candidate(const struct search *s, const struct prof_range_path *path, bool set_up)
{
    bool works = path->launching > 0 && 2 * path->launching >= path->count;
    return path->group != PROF_NO_GROUP && (set_up || !path->set_up) && path->count &&
           path->most >= PROF_LEAST_REPEATED && (works || !s->paths->ops);
}

static void choose_paths(struct search *s, bool set_up)
{
    for (size_t p = 0; p < s->paths->list.count; p++)
        s->paths->list.data[p].preferred_ops = 0;
    for (size_t p = s->paths->list.count; p--;) {
        struct prof_range_path *path = &s->paths->list.data[p];
        bool inside = path->preferred_ops > 0; /* another one of a preferred name */
        path->chosen = is_candidate(s, path, set_up) &&
                       (!inside || (path->preferred && !path->set_up_ops) ||
                        2 * path->preferred_ops < path->ops - path->set_up_ops);
        int64_t preferred = !path->chosen ? path->preferred_ops : path->preferred ? path->ops : 0;
        if (path->parent != PROF_NO_RANGE_PATH)
            s->paths->list.data[path->parent].preferred_ops += preferred;
    }
    for (size_t p = 0; p < s->paths->list.count; p++) {
        struct prof_range_path *path = &s->paths->list.data[p];
        const struct prof_range_path *around =
            path->parent == PROF_NO_RANGE_PATH ? NULL : &s->paths->list.data[path->parent];
        path->inside = around && (around->chosen || around->inside);
    }
    for (size_t p = 0; p < s->paths->list.count; p++)
        s->paths->list.data[p].chosen &= !s->paths->list.data[p].inside;
}

/* Of ranges without such a name, those with next to no work are no phase. Where the device does
 * nothing, they may be a part of one: is_long_enough decides. */
static bool is_worth_it(const struct search *s, const struct prof_range_path *path)
{
    return path->preferred || 50 * (double)path->ops >= (double)s->paths->ops ||
           10 * (double)path->ns >= (double)s->paths->ns;
}

/* Where the device does nothing: a phase takes a tenth of the time in ranges. */
static bool is_long_enough(const struct search *s, const struct candidate *leader,
                           int64_t cluster_ns)
{
    return s->paths->ops || s->paths->list.data[leader->path].preferred ||
           10 * (double)cluster_ns >= (double)s->paths->host_ns;
}

/* Parts of an iteration are heavy; what comes beside them now and then is light. */
static int64_t candidate_weight(const struct search *s, const struct candidate *c)
{
    const struct prof_range_path *path = &s->paths->list.data[c->path];
    return s->paths->ops ? path->ops : path->host_ns;
}

static const char *domain_of(const struct search *s, const struct prof_range_path *path)
{
    const char *domain = prof_string(s->paths->facts->capture, path->domain, NULL);
    return domain ? domain : "";
}

/* What a name is compared with: the range's; with slashes, its name and those of ranges around it,
 * as in labels; either, and with its domain, as reports print it. */
enum called { BY_NAME, BY_PATH, AS_PRINTED };

static bool is_printed(const char *label, const char *domain, const char *name)
{
    PROF_FREED char *whole = NULL;
    if (!label || (domain && asprintf(&whole, "%s@%s", label, domain) < 0))
        return false;
    PROF_FREED char *printed = prof_report_fit(whole ? whole : label, PROF_PHASE_CELLS);
    bool same = printed && !strcmp(printed, name);
    return same;
}

static bool is_called(const struct search *s, uint32_t path, const char *name, size_t length,
                      enum called by)
{
    uint32_t group = s->paths->list.data[path].group;
    const char *text =
        group == PROF_NO_GROUP ? NULL : s->paths->facts->range_texts.list.data[group];
    if (!text || by == BY_NAME)
        return text && strlen(text) == length && !strncmp(text, name, length);
    char *label = prof_range_path_label(s->paths, path);
    if (by == AS_PRINTED) {
        const char *domain = domain_of(s, &s->paths->list.data[path]);
        bool same = is_printed(text, NULL, name) || is_printed(text, domain, name) ||
                    is_printed(label, NULL, name) || is_printed(label, domain, name);
        free(label);
        return same;
    }
    size_t all = label ? strlen(label) : 0;
    bool ends = all >= length && !strncmp(label + all - length, name, length) &&
                (all == length || label[all - length - 1] == '/');
    free(label);
    return ends;
}

static bool choose_called(struct search *s, const char *name, size_t length, const char *domain,
                          enum called by)
{
    bool any = false, beside_set_up = false;
    for (uint32_t p = 0; p < s->paths->list.count; p++) {
        struct prof_range_path *path = &s->paths->list.data[p];
        const struct prof_range_path *around =
            path->parent == PROF_NO_RANGE_PATH ? NULL : &s->paths->list.data[path->parent];
        path->inside = around && (around->chosen || around->inside);
        path->chosen = !path->inside && path->count &&
                       (!domain || !strcmp(domain, domain_of(s, path))) &&
                       is_called(s, p, name, length, by);
        any |= path->chosen;
        beside_set_up |= path->chosen && !path->set_up;
    }
    for (size_t p = 0; p < s->paths->list.count && beside_set_up; p++)
        s->paths->list.data[p].chosen &= !s->paths->list.data[p].set_up;
    return any;
}

/* RANGE or RANGE@DOMAIN, where names may hold both signs; then the same with RANGE as in labels;
 * then what a report printed, with long names cut. */
static void choose_asked(struct search *s, const char *asked)
{
    const char *at = strrchr(asked, '@'), *slash = strchr(asked, '/');
    for (enum called by = BY_NAME; by <= (slash ? BY_PATH : BY_NAME); by++) {
        s->asked_path = by == BY_PATH;
        if (choose_called(s, asked, strlen(asked), NULL, by) ||
            (at && choose_called(s, asked, (size_t)(at - asked), at + 1, by)))
            return;
    }
    s->asked_path = slash != NULL;
    choose_called(s, asked, strlen(asked), NULL, AS_PRINTED);
}

PROF_POINTER_ORDER(by_path_work, struct prof_range_path, PROF_DESCENDING(preferred),
                   PROF_DESCENDING(ops), PROF_DESCENDING(host_ns), PROF_COMPARE(x, y))

static bool list_candidates(struct search *s, bool all)
{
    const struct prof_range_path **sorted = malloc((s->paths->list.count + 1) * sizeof *sorted);
    size_t count = 0, others = 0;
    for (size_t p = 0; sorted && p < s->paths->list.count; p++) {
        const struct prof_range_path *path = &s->paths->list.data[p];
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
        *slot = (struct candidate){.path = (uint32_t)(sorted[i] - s->paths->list.data),
                                   .begin = INT64_MAX,
                                   .cluster = (uint32_t)(s->candidates.count - 1)};
    }
    bool ok = sorted && (s->candidates.count == count || others == MAX_SIBLINGS);
    free(sorted);
    return ok;
}

/* ---- their instances ------------------------------------------------------------------------- */

/* Ranges of the name in two lanes of a thread may cross: the one that begins later goes. */
static void drop_crossing(struct candidate *c)
{
    size_t kept = 0;
    prof_array_sort(&c->list, prof_by_thread_and_begin);
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

/* What was selected may come in turn with iterations of other ranges ("a/step", "b/step"): what
 * lies in those is not its own. Ranges around it are, and those inside of it. */
static bool list_others(struct search *s)
{
    struct prof_range_path *paths = s->paths->list.data;
    size_t count = s->paths->list.count;
    PROF_FREED bool *around = calloc(count + 1, sizeof *around);
    bool ok = around != NULL;
    for (uint32_t p = 0; ok && p < count; p++)
        for (uint32_t up = paths[p].parent; paths[p].chosen && up != PROF_NO_RANGE_PATH;
             up = paths[up].parent)
            around[up] = true;
    for (uint32_t p = 0; ok && p < count; p++) {
        if (paths[p].chosen || paths[p].inside || around[p] || !paths[p].preferred ||
            !is_candidate(s, &paths[p], false))
            continue;
        struct candidate *slot = prof_array_add(&s->candidates);
        ok = slot != NULL;
        if (ok)
            *slot = (struct candidate){.path = p,
                                       .begin = INT64_MAX,
                                       .cluster = (uint32_t)(s->candidates.count - 1),
                                       .other = true};
    }
    return ok;
}

static bool note_others(const struct search *s, struct prof_phases *phases)
{
    bool ok = true;
    for (size_t c = 0; c < s->candidates.count; c++) {
        const struct candidate *one = &s->candidates.data[c];
        for (size_t i = 0; ok && one->other && i < one->list.count; i++)
            ok = prof_array_push(&phases->others, one->list.data[i].begin);
    }
    return ok;
}

static bool read_candidate_instances(struct search *s, struct prof_intervals *set_up)
{
    const struct prof_facts *f = s->paths->facts;
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
                uint32_t at = s->paths->of_node[lane->nodes[i]];
                const struct prof_range_path *path =
                    at == PROF_NO_RANGE_PATH ? NULL : &s->paths->list.data[at];
                /* too many paths: a node may stand for another's */
                if (!path || s->paths->names[node->group].canonical != path->name)
                    continue;
                const uint64_t *own = prof_map_get(&slot, at);
                if (own && node->end != INT64_MAX) {
                    struct candidate *c = &s->candidates.data[*own];
                    struct prof_iteration one = {.begin = node->begin,
                                                 .end = node->end,
                                                 .thread = (uint32_t)thread->thread,
                                                 .covered = INT64_MIN};
                    ok = prof_range_is_instance(f, thread->thread, node)
                             ? prof_array_push(&c->list, one)
                             : prof_array_push(&c->paused, one);
                } else if (!own && path->set_up && s->paths->names[node->group].set_up) {
                    ok = prof_intervals_add(set_up, node->begin, node->end);
                }
            }
        }
    }
    prof_map_free(&slot);
    for (size_t i = 0; ok && i < s->candidates.count; i++)
        drop_crossing(&s->candidates.data[i]);
    return ok;
}

/* ---- which of them are one phase ------------------------------------------------------------- */

/* Do the instances of the two come in turn? Of the one that comes less often, the number of those
 * in a row shows it. Threads follow each other in the lists: order by thread is good enough. */
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
    return s->paths->list.data[c->path].preferred;
}

/* Candidates stand with preferred names first, then by work: one that comes in turn with one of
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
 * for a few with next to no work (logging, checkpoints); of several, the first. NULL: none. */
static const struct candidate *leader_of(const struct search *s, uint32_t cluster, size_t *members)
{
    const struct candidate *all = s->candidates.data, *best = NULL;
    int64_t weight = 0;
    *members = 0;
    for (size_t i = 0; i < s->candidates.count; i++) {
        if (all[i].cluster == cluster && !all[i].dropped) {
            weight += candidate_weight(s, &all[i]);
            ++*members;
        }
    }
    for (size_t i = 0; i < s->candidates.count; i++) {
        const struct candidate *c = &all[i];
        if (c->cluster != cluster || c->dropped)
            continue;
        int64_t rarer = 0; /* work in those that come less often, and in this one */
        for (size_t k = 0; k < s->candidates.count; k++)
            if (all[k].cluster == cluster && !all[k].dropped && all[k].list.count <= c->list.count)
                rarer += candidate_weight(s, &all[k]);
        bool enough = 20 * (double)rarer >= (double)weight;
        if (enough && (!best || c->list.count < best->list.count ||
                       (c->list.count == best->list.count && c->begin < best->begin)))
            best = c;
    }
    return best && is_long_enough(s, best, weight) ? best : NULL;
}

/* ---- result ---------------------------------------------------------------------------------- */

/* As far as it keeps the phases apart; each label may be selected (choose_asked). */
static char *label_of(const struct search *s, const struct candidate *const *leaders, size_t count,
                      const struct candidate *own)
{
    const struct prof_range_path *path = &s->paths->list.data[own->path];
    bool whole = s->asked_path, with_domain = false;
    for (size_t i = 0; i < count; i++) {
        const struct prof_range_path *other = &s->paths->list.data[leaders[i]->path];
        if (other == path || other->name != path->name)
            continue;
        whole = true;
        with_domain |= other->domain != path->domain;
    }
    char *text = whole ? prof_range_path_label(s->paths, own->path)
                       : strdup(s->paths->facts->range_texts.list.data[path->group]);
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
    const struct prof_range_path *path = &s->paths->list.data[c->path];
    struct prof_phase *phase = prof_array_add(&phases->list);
    if (!phase)
        return false;
    *phase = (struct prof_phase){
        .iterations = {.source = asked             ? PROF_ITERATION_ASKED
                                 : path->preferred ? PROF_ITERATION_STEP
                                                   : PROF_ITERATION_REPEATING,
                       .group = path->group,
                       .name = s->paths->facts->range_texts.list.data[path->group],
                       .domain = prof_string(s->paths->facts->capture, path->domain, NULL)},
        .label = label_of(s, leaders, count, c),
        .tiled = tiled,
        .ops = path->ops,
    };
    phase->iterations.list.data = c->list.data;
    phase->iterations.list.count = c->list.count;
    phase->iterations.list.capacity = c->list.capacity;
    memset(&c->list, 0, sizeof c->list);
    phase->paused.data = c->paused.data;
    phase->paused.count = c->paused.count;
    phase->paused.capacity = c->paused.capacity;
    memset(&c->paused, 0, sizeof c->paused);
    return phase->label != NULL;
}

static bool add_phases(struct search *s, struct prof_phases *phases, bool asked)
{
    size_t room = s->candidates.count + 1, count = 0;
    const struct candidate **leaders = malloc(room * sizeof *leaders);
    PROF_FREED bool *tiled = calloc(room, sizeof *tiled);
    bool ok = leaders && tiled;
    for (uint32_t i = 0; ok && i < s->candidates.count; i++) {
        size_t members;
        const struct candidate *one = &s->candidates.data[i];
        if (one->cluster != i || one->dropped || one->other)
            continue;
        leaders[count] = leader_of(s, i, &members);
        tiled[count] = members > 1;
        count += leaders[count] != NULL && leaders[count]->list.count > 0;
    }
    for (size_t i = 0; ok && i < count; i++)
        ok = add_range_phase(s, phases, leaders, count, i, tiled[i], asked);
    free(leaders);
    return ok;
}

/* Most of the work in ranges that are named as set-up, and none elsewhere: then those repeat. */
static bool is_all_set_up(const struct search *s)
{
    int64_t ops = 0;
    for (size_t p = 0; p < s->paths->list.count; p++) {
        const struct prof_range_path *path = &s->paths->list.data[p];
        if (path->chosen)
            return false;
        if (path->set_up &&
            (path->parent == PROF_NO_RANGE_PATH || !s->paths->list.data[path->parent].set_up))
            ops += path->ops;
    }
    return 2 * ops >= s->paths->ops;
}

bool prof_phases_by_ranges(struct prof_phases *phases, struct prof_range_paths *paths,
                           const char *filter, struct prof_intervals *set_up)
{
    struct search s = {.paths = paths};
    if (filter)
        choose_asked(&s, filter);
    else
        choose_paths(&s, false);
    if (!filter && is_all_set_up(&s))
        choose_paths(&s, true);
    bool ok = list_candidates(&s, filter != NULL) && (!filter || list_others(&s)) &&
              read_candidate_instances(&s, set_up) && note_others(&s, phases);
    if (ok && !filter)
        form_clusters(&s);
    ok = ok && add_phases(&s, phases, filter != NULL);
    prof_array_sort(set_up, prof_by_interval_begin);
    for (size_t i = 0; i < s.candidates.count; i++) {
        prof_array_free(&s.candidates.data[i].list);
        prof_array_free(&s.candidates.data[i].paused);
    }
    prof_array_free(&s.candidates);
    return ok;
}
