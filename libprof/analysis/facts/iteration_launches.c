/* Phases of a program without ranges: the period of the sequence of its launches, copies and
 * synchronizations, on the thread that launches most. Something that comes at even distances in
 * that sequence marks the iterations; how long anything took does not matter. Of several such marks
 * the one that comes least often is the outermost: one synchronization after 200 launches, not each
 * of them. Launch configurations may differ from iteration to iteration; then kernels are kept
 * apart by name only. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/base/saturate.h"

#define MIN_MARKS 5
#define MIN_PART 5 /* the fifth part of the sequence: less is no phase */
#define MAX_PHASES 8
#define FAR 4 /* distances between marks so many times the usual one end the phase */

struct token {
    int64_t time;
    uint32_t kind;
    bool works; /* a kernel or a graph: no copy, no wait */
};

struct sequence {
    const struct prof_facts *facts;
    const struct prof_intervals *known; /* iterations that ranges mark, and set-up */
    bool has_steps;                     /* some of them have a name for iterations */
    uint32_t thread;
    PROF_ARRAY(struct token) tokens; /* in order of time */
    uint32_t kinds;
    /* Where each kind stands: indices into tokens, those of kind k from first[k] on. */
    size_t *first, *places, *distances;
};

/* Marks first .. first + count - 1 of `places`, which cover the tokens [begin, end). */
struct period {
    size_t first, count, begin, end, usual;
};

/* ---- the sequence ---------------------------------------------------------------------------- */

struct launching {
    uint32_t thread;
    int64_t count, first, last;
};

static bool count_launches(const struct prof_facts *f, const struct prof_intervals *known,
                           struct prof_map *index, struct launching **list, size_t *count)
{
    PROF_ARRAY(struct launching) all = {0};
    bool ok = true, fresh;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; ok && kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; ok && i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            int64_t time = prof_op_asked_at(&op);
            if (prof_intervals_has(known, time))
                continue;
            uint32_t at = prof_group_number(index, op.thread, &fresh);
            ok = at != PROF_NO_GROUP && prof_array_reserve(&all, 1);
            if (ok && fresh)
                all.data[all.count++] = (struct launching){op.thread, 0, time, time};
            if (!ok)
                break;
            struct launching *one = &all.data[at];
            one->count++;
            one->first = time < one->first ? time : one->first;
            one->last = time > one->last ? time : one->last;
        }
    }
    *list = all.data;
    *count = all.count;
    return ok;
}

/* Of the threads that launch nearly as much as any, the one that launches longest: it may be of
 * another process or feed another device than those that are done before. */
static bool launching_thread(const struct prof_facts *f, const struct prof_intervals *known,
                             uint32_t *thread)
{
    struct prof_map index = {0};
    struct launching *list = NULL, *best = NULL;
    size_t count = 0;
    int64_t most = 0;
    bool ok = count_launches(f, known, &index, &list, &count);
    for (size_t i = 0; ok && i < count; i++)
        most = list[i].count > most ? list[i].count : most;
    for (size_t i = 0; ok && i < count; i++) {
        struct launching *one = &list[i];
        if (2 * one->count < most)
            continue;
        if (!best || (double)(one->last - one->first) > 1.5 * (double)(best->last - best->first))
            best = one;
    }
    *thread = best ? best->thread : 0;
    prof_map_free(&index);
    free(list);
    return ok;
}

static uint32_t token_kind(const struct prof_shape *shape, uint32_t number, bool by_name,
                           struct prof_map *kinds)
{
    bool fresh;
    uint64_t key = (uint64_t)number << 1;
    if (by_name && shape->kind == PROF_OP_KERNEL)
        key = (uint64_t)(uintptr_t)(shape->config ? shape->config->name : NULL) | 1;
    else if (by_name)
        key = ((uint64_t)shape->kind << 32 | (uint64_t)(uint32_t)shape->copy_kind << 8) | 2;
    return prof_group_number(kinds, key * 0x9e3779b97f4a7c15u, &fresh);
}

static bool add_token(struct sequence *s, int64_t time, uint32_t kind, bool works)
{
    struct token *slot = kind == PROF_NO_GROUP ? NULL : prof_array_add(&s->tokens);
    if (!slot)
        return false;
    *slot = (struct token){time, kind, works};
    s->kinds = kind >= s->kinds ? kind + 1 : s->kinds;
    return true;
}

PROF_ORDER(by_token_time, struct token, PROF_ASCENDING(time), PROF_ASCENDING(kind))

static bool read_sequence(struct sequence *s, bool by_name)
{
    const struct prof_facts *f = s->facts;
    const struct prof_intervals *known = s->known;
    struct prof_map kinds = {0};
    bool ok = true;
    s->tokens.count = 0;
    s->kinds = 0;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; ok && kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; ok && i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            int64_t time = prof_op_asked_at(&op);
            const struct prof_shape *shape = &f->shapes.data[op.shape];
            if (op.thread == s->thread && !shape->in_graph && !prof_intervals_has(known, time))
                ok = add_token(s, time, token_kind(shape, op.shape, by_name, &kinds),
                               kind == PROF_OP_KERNEL);
        }
    }
    size_t count;
    bool fresh;
    const struct prof_call *calls = prof_facts_calls(f, s->thread, &count);
    for (size_t i = 0; ok && i < count; i++) {
        bool counts =
            calls[i].class_ == WIRE_CLASS_SYNC || calls[i].class_ == WIRE_CLASS_GRAPH_LAUNCH;
        if (counts && !prof_intervals_has(known, calls[i].start))
            ok = add_token(s, calls[i].start,
                           prof_group_number(&kinds, UINT64_MAX - calls[i].name, &fresh),
                           calls[i].class_ == WIRE_CLASS_GRAPH_LAUNCH);
    }
    prof_map_free(&kinds);
    prof_array_sort(&s->tokens, by_token_time);
    return ok;
}

static bool index_kinds(struct sequence *s)
{
    free(s->first);
    free(s->places);
    free(s->distances);
    s->first = calloc(s->kinds + 2, sizeof *s->first);
    s->places = malloc((s->tokens.count + 1) * sizeof *s->places);
    s->distances = malloc((s->tokens.count + 1) * sizeof *s->distances);
    PROF_FREED size_t *next = malloc((s->kinds + 1) * sizeof *next);
    bool ok = s->first && s->places && s->distances && next;
    for (size_t i = 0; ok && i < s->tokens.count; i++)
        s->first[s->tokens.data[i].kind + 1]++;
    for (uint32_t k = 0; ok && k < s->kinds; k++)
        s->first[k + 1] += s->first[k];
    if (ok)
        memcpy(next, s->first, (s->kinds + 1) * sizeof *next);
    for (size_t i = 0; ok && i < s->tokens.count; i++)
        s->places[next[s->tokens.data[i].kind]++] = i;
    return ok;
}

/* ---- marks ----------------------------------------------------------------------------------- */

PROF_ORDER(by_distance, size_t, PROF_COMPARE(*x, *y))

static size_t usual_distance(struct sequence *s, size_t first, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++)
        s->distances[i] = s->places[first + i + 1] - s->places[first + i];
    qsort(s->distances, count - 1, sizeof *s->distances, by_distance);
    return s->distances[(count - 1) / 2];
}

/* The longest stretch of marks without a distance that is far above the usual one. */
static struct period longest_stretch(const struct sequence *s, size_t first, size_t count,
                                     size_t usual)
{
    struct period best = {0};
    for (size_t i = 0, from = 0; i < count; i++) {
        bool last = i + 1 == count;
        if (!last && s->places[first + i + 1] - s->places[first + i] <= FAR * usual + FAR)
            continue;
        if (i + 1 - from > best.count)
            best = (struct period){.first = first + from, .count = i + 1 - from, .usual = usual};
        from = i + 1;
    }
    return best;
}

/* Three of four distances within a quarter of the usual one. */
static bool is_even_period(const struct sequence *s, const struct period *p)
{
    size_t even = 0;
    for (size_t i = 0; i + 1 < p->count; i++) {
        size_t distance = s->places[p->first + i + 1] - s->places[p->first + i];
        even += 4 * distance >= 3 * p->usual && 4 * distance <= 5 * p->usual + 4;
    }
    return 4 * even >= 3 * (p->count - 1);
}

/* The marks of a kind between the tokens `from` and `to`; count 0 = it does not come evenly. */
static struct period find_marks(struct sequence *s, uint32_t kind, size_t from, size_t to)
{
    size_t first = s->first[kind], end = s->first[kind + 1];
    while (first < end && s->places[first] < from)
        first++;
    while (end > first && s->places[end - 1] >= to)
        end--;
    if (end - first < MIN_MARKS)
        return (struct period){0};
    struct period p = longest_stretch(s, first, end - first, usual_distance(s, first, end - first));
    if (p.count < MIN_MARKS)
        return (struct period){0};
    p.usual = usual_distance(s, p.first, p.count);
    if (!is_even_period(s, &p))
        return (struct period){0};
    size_t begin = s->places[p.first], last = s->places[p.first + p.count - 1];
    p.begin = begin - from >= p.usual ? begin - p.usual : from;
    p.end = to - last >= p.usual ? last + p.usual : to;
    return p;
}

/* What covers most of the tokens; of what covers nearly as many, what comes least often; of those,
 * the first. */
static struct period find_period(struct sequence *s, size_t from, size_t to)
{
    struct period best = {0};
    size_t most = 0;
    for (int round = 0; round < 2; round++) {
        for (uint32_t kind = 0; kind < s->kinds; kind++) {
            struct period p = find_marks(s, kind, from, to);
            if (!p.count)
                continue;
            size_t covers = p.end - p.begin;
            if (round == 0)
                most = covers > most ? covers : most;
            else if (10 * covers >= 9 * most &&
                     (!best.count || p.count < best.count ||
                      (p.count == best.count && s->places[p.first] < s->places[best.first])))
                best = p;
        }
    }
    return best;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static bool add_iteration(struct sequence *s, struct prof_iterations *it, size_t begin, size_t end)
{
    struct prof_iteration *slot = prof_array_add(&it->list);
    if (!slot)
        return false;
    /* The last one ends with its last launch, whose device work prof_phases_find adds. */
    int64_t until = end < s->tokens.count ? s->tokens.data[end].time
                                          : prof_add(s->tokens.data[s->tokens.count - 1].time, 1);
    *slot = (struct prof_iteration){.begin = s->tokens.data[begin].time,
                                    .end = until,
                                    .thread = s->thread,
                                    .covered = INT64_MIN};
    return true;
}

/* Do the tokens [begin, end) only do what the iteration between the first two marks does? */
static bool is_alike(const struct sequence *s, const struct period *p, size_t begin, size_t end)
{
    size_t from = s->places[p->first], to = s->places[p->first + 1];
    for (size_t i = begin; i < end; i++) {
        bool found = false;
        for (size_t k = from; k < to && !found; k++)
            found = s->tokens.data[k].kind == s->tokens.data[i].kind;
        if (!found)
            return false;
    }
    return true;
}

/* Ends the iterations that reach over some that ranges mark, as the last one before them does,
 * where those are not inside of most: then they are a part of each. */
static void end_before_known(const struct sequence *s, struct prof_iterations *it)
{
    size_t over = 0;
    for (int clip = 0; clip < 2 && 2 * over <= it->list.count; clip++) {
        for (size_t i = 0, at = 0; i < it->list.count; i++) {
            struct prof_iteration *one = &it->list.data[i];
            while (at < s->known->count && s->known->data[at].begin < one->begin)
                at++;
            bool reaches = at < s->known->count && s->known->data[at].begin < one->end;
            over += reaches && !clip;
            if (reaches && clip)
                one->end = s->known->data[at].begin;
        }
    }
}

#define MAX_COMPARED 4096 /* tokens of an iteration */

/* A mark may stand anywhere in its iteration: what lies before the first one, or behind the last
 * one, is an iteration where it is nearly as long as the others and does the same. */
static bool add_launch_phase(struct sequence *s, struct prof_phases *phases, const struct period *p)
{
    struct prof_phase *phase = prof_array_add(&phases->list);
    if (!phase)
        return false;
    *phase = (struct prof_phase){
        .iterations = {.source = PROF_ITERATION_LAUNCHES, .group = PROF_NO_GROUP},
        .tiled = true,
        .ops = (int64_t)(p->end - p->begin)};
    size_t head = s->places[p->first], tail = s->places[p->first + p->count - 1];
    bool ok = true;
    if (4 * (head - p->begin) >= 3 * p->usual &&
        (p->usual > MAX_COMPARED || is_alike(s, p, p->begin, head)))
        ok = add_iteration(s, &phase->iterations, p->begin, head);
    for (size_t i = 0; ok && i + 1 < p->count; i++)
        ok = add_iteration(s, &phase->iterations, s->places[p->first + i],
                           s->places[p->first + i + 1]);
    if (ok && 4 * (p->end - tail) >= 3 * p->usual &&
        (p->usual > MAX_COMPARED || is_alike(s, p, tail, p->end)))
        ok = add_iteration(s, &phase->iterations, tail, p->end);
    end_before_known(s, &phase->iterations);
    return ok;
}

/* Copies alone, one after the other, where ranges mark the iterations: a model goes to the device.
 */
static bool is_set_up_period(const struct sequence *s, const struct period *p)
{
    bool works = false;
    for (size_t i = p->begin; i < p->end && !works; i++)
        works = s->tokens.data[i].works;
    return s->has_steps && !works;
}

static bool add_between(struct sequence *s, struct prof_phases *phases, size_t from, size_t to)
{
    if (to <= from || MIN_PART * (to - from) < s->tokens.count || phases->list.count >= MAX_PHASES)
        return true;
    struct period p = find_period(s, from, to);
    return MIN_PART * (p.end - p.begin) < s->tokens.count || !p.count ||
           (add_between(s, phases, from, p.begin) &&
            (is_set_up_period(s, &p) || add_launch_phase(s, phases, &p)) &&
            add_between(s, phases, p.end, to));
}

bool prof_phases_by_launches(struct prof_phases *phases, const struct prof_facts *facts,
                             const struct prof_intervals *known)
{
    struct sequence s = {.facts = facts, .known = known};
    size_t before = phases->list.count;
    bool ok = launching_thread(facts, known, &s.thread);
    for (size_t i = 0; i < before; i++)
        s.has_steps |= phases->list.data[i].iterations.source == PROF_ITERATION_STEP;
    for (int by_name = 0; ok && by_name < 2 && phases->list.count == before; by_name++)
        ok = read_sequence(&s, by_name) && index_kinds(&s) &&
             add_between(&s, phases, 0, s.tokens.count);
    prof_array_free(&s.tokens);
    free(s.first);
    free(s.places);
    free(s.distances);
    return ok;
}
