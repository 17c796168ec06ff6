/* What else happened while a device waited for the host: code that was compiled or loaded, unified
 * memory that moved, and what samples of the processors say of the thread. */
#include <stdio.h>
#include <stdlib.h>

#include "libprof/analysis/iterations/iterations.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stack.h"
#include "libprof/wire/activity.h"
#include "libprof/wire/sampler.h"

/* Stretches of one kind and name on one thread (0 = all). Of kinds that overlap, the first in the
 * order below says what the time is. */
struct overlay {
    enum prof_part_kind kind;
    int code;
    uint32_t thread;
    struct prof_intervals set;
};

struct overlay_sample {
    int64_t begin, end, weight, stack;
    uint32_t thread;
    int kind;
};

struct prof_overlays {
    const struct prof_intervals *within;
    PROF_ARRAY(struct overlay) list;
    PROF_ARRAY(struct overlay_sample) samples; /* by begin */
};

static int overlay_precedence(enum prof_part_kind kind)
{
    return kind == PROF_PART_OF_JIT         ? 0
           : kind == PROF_PART_OF_LOAD      ? 1
           : kind == PROF_PART_OF_GC        ? 2
           : kind == PROF_PART_OF_MIGRATION ? 3
           : kind == PROF_PART_OF_PREEMPTED ? 4
                                            : 5;
}

static bool overlaps_any(const struct prof_intervals *within, int64_t begin, int64_t end)
{
    size_t begun = prof_intervals_begun(within, end - 1);
    return end > begin && begun && within->data[begun - 1].end > begin;
}

static bool add_overlay(struct prof_overlays *o, enum prof_part_kind kind, int code,
                        uint32_t thread, int64_t begin, int64_t end)
{
    if (!overlaps_any(o->within, begin, end))
        return true;
    size_t at = 0;
    while (at < o->list.count && (o->list.data[at].kind != kind || o->list.data[at].code != code ||
                                  o->list.data[at].thread != thread))
        at++;
    struct overlay *slot = at < o->list.count ? &o->list.data[at] : prof_array_add(&o->list);
    if (!slot)
        return false;
    slot->kind = kind;
    slot->code = code;
    slot->thread = thread;
    return prof_intervals_add(&slot->set, begin, end);
}

static bool add_activity_overlay(void *user, const struct prof_event_row *row)
{
    int64_t end = prof_add(row->start_ns, row->duration_ns);
    bool loads = row->what == WIRE_OVERHEAD_COMPILER || row->what == WIRE_OVERHEAD_MODULE_LOAD ||
                 row->what == WIRE_OVERHEAD_LAZY_LOAD || row->what == WIRE_OVERHEAD_MANAGED_START;
    if (row->start_ns == PROF_UNKNOWN || row->duration_ns <= 0 ||
        (row->kind == PROF_OP_OVERHEAD && !loads))
        return true;
    enum prof_part_kind kind = row->kind == PROF_OP_JIT        ? PROF_PART_OF_JIT
                               : row->kind == PROF_OP_OVERHEAD ? PROF_PART_OF_LOAD
                                                               : PROF_PART_OF_MIGRATION;
    return add_overlay(user, kind, row->what,
                       row->kind == PROF_OP_MIGRATION ? 0 : (uint32_t)row->thread, row->start_ns,
                       end);
}

/* Ranges that `perfkit run --pytorch` makes of Python's garbage collections; traces lack the
 * domain. */
static bool add_collection(void *user, sqlite3_stmt *row)
{
    int64_t begin = prof_column_int(row, 0), duration = prof_column_size(row, 2);
    return begin < 0 || duration <= 0 ||
           add_overlay(user, PROF_PART_OF_GC, prof_column_code(row, 3),
                       (uint32_t)prof_column_id(row, 1), begin, prof_add(begin, duration));
}

/* A thread that was off the processors says exactly from when to when. */
static bool add_thread_sample(void *user, sqlite3_stmt *row)
{
    struct prof_overlays *o = user;
    int64_t duration = prof_column_size(row, 3);
    struct overlay_sample sample = {.begin = prof_column_int(row, 0),
                                    .thread = (uint32_t)prof_column_id(row, 1),
                                    .kind = prof_column_code(row, 2),
                                    .weight = prof_column_size(row, 4),
                                    .stack = prof_column_id(row, 5)};
    bool off = sample.kind == WIRE_CPU_BLOCKED || sample.kind == WIRE_CPU_PREEMPTED;
    sample.end = prof_add(sample.begin, off && duration > 0 ? duration : 1);
    if (sample.begin < 0 || !overlaps_any(o->within, sample.begin, sample.end))
        return true;
    if (off && !add_overlay(o,
                            sample.kind == WIRE_CPU_BLOCKED ? PROF_PART_OF_BLOCKED
                                                            : PROF_PART_OF_PREEMPTED,
                            0, sample.thread, sample.begin, sample.end))
        return false;
    return prof_array_push(&o->samples, sample);
}

PROF_ORDER(by_sample_begin, struct overlay_sample, PROF_ASCENDING(begin))

PROF_ORDER(by_overlay_rank, struct overlay,
           PROF_COMPARE(overlay_precedence(x->kind), overlay_precedence(y->kind)),
           PROF_ASCENDING(code))

enum prof_status prof_overlays_read(struct prof_overlays **overlays, struct prof_capture *capture,
                                    const struct prof_intervals *within, struct prof_error *err)
{
    static const struct prof_event_query query = {
        .tables = PROF_OPS(JIT) | PROF_OPS(OVERHEAD) | PROF_OPS(MIGRATION),
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(THREAD) | PROF_FIELD(KIND),
        .started = true};
    struct prof_overlays *o = *overlays = calloc(1, sizeof *o);
    if (!o)
        return prof_out_of_memory(err);
    o->within = within;
    enum prof_status status = prof_event_rows(capture, &query, add_activity_overlay, o, err);
    if (!status)
        status = prof_scan(capture,
                           "SELECT r.start, r.thread, r.duration, CAST(substr(s.value, 32) AS "
                           "INTEGER) FROM string s CROSS JOIN range r ON r.name = s.id LEFT JOIN "
                           "string d ON d.id = r.domain WHERE s.value GLOB 'garbage collection, "
                           "generation [0-2]' AND (r.domain IS NULL OR d.value = 'Python')",
                           add_collection, o, err);
    if (!status)
        status = prof_scan(capture,
                           "SELECT start, thread, kind, duration, weight, stack FROM cpu_sample",
                           add_thread_sample, o, err);
    for (size_t i = 0; i < o->list.count; i++)
        prof_intervals_normalise(&o->list.data[i].set);
    prof_array_sort(&o->list, by_overlay_rank);
    prof_array_sort(&o->samples, by_sample_begin);
    return status;
}

void prof_overlays_free(struct prof_overlays *o)
{
    for (size_t i = 0; o && i < o->list.count; i++)
        prof_array_free(&o->list.data[i].set);
    if (o) {
        prof_array_free(&o->list);
        prof_array_free(&o->samples);
    }
    free(o);
}

static const char *overlay_name(const struct overlay *overlay)
{
    static const char *const generations[] = {"generation 0", "generation 1", "generation 2"};
    return overlay->kind == PROF_PART_OF_GC          ? generations[overlay->code]
           : overlay->kind == PROF_PART_OF_JIT       ? prof_jit_operation_text(overlay->code)
           : overlay->kind == PROF_PART_OF_LOAD      ? prof_overhead_kind_text(overlay->code)
           : overlay->kind == PROF_PART_OF_MIGRATION ? prof_migration_kind_text(overlay->code)
                                                     : NULL;
}

static bool applies(enum prof_part_kind kind, enum prof_slice slice)
{
    if (kind == PROF_PART_OF_BLOCKED)
        return slice == PROF_SLICE_HOST;
    if (kind == PROF_PART_OF_PREEMPTED || kind == PROF_PART_OF_GC)
        return slice == PROF_SLICE_HOST || slice == PROF_SLICE_LAUNCH;
    return kind == PROF_PART_OF_MIGRATION || slice >= PROF_SLICE_FIRST_IDLE;
}

bool prof_overlay_at(const struct prof_overlays *o, uint32_t thread, enum prof_slice slice,
                     int64_t time, int64_t *end, enum prof_part_kind *kind, const char **name)
{
    for (size_t i = 0; i < o->list.count; i++) {
        const struct overlay *one = &o->list.data[i];
        if (!applies(one->kind, slice) || (one->thread && one->thread != thread))
            continue;
        size_t begun = prof_intervals_begun(&one->set, time);
        if (begun < one->set.count && one->set.data[begun].begin < *end)
            *end = one->set.data[begun].begin;
        if (!begun || one->set.data[begun - 1].end <= time)
            continue;
        int64_t last = one->set.data[begun - 1].end;
        *end = last < *end ? last : *end;
        *kind = one->kind;
        *name = overlay_name(one);
        return true;
    }
    return false;
}

bool prof_overlays_place(const struct prof_overlays *o, struct prof_capture *capture,
                         uint32_t thread, int64_t begin, int64_t end, char *out, size_t size)
{
    static const char *const words[] = {[WIRE_CPU_USER] = "computing",
                                        [WIRE_CPU_KERNEL] = "inside the operating system",
                                        [WIRE_CPU_BLOCKED] = "blocked",
                                        [WIRE_CPU_PREEMPTED] = "waiting for a processor"};
    struct prof_stacks *stacks = NULL;
    struct prof_map weights = {0}; /* place, kind -> ns */
    const struct prof_frame *best = NULL;
    int64_t most = 0;
    int kind = 0;
    if (prof_capture_stacks(capture, &stacks, NULL) || !stacks)
        return false;
    for (size_t i = 0; i < o->samples.count && o->samples.data[i].begin < end; i++) {
        const struct overlay_sample *sample = &o->samples.data[i];
        if (sample->thread != thread || sample->end <= begin || sample->kind < WIRE_CPU_USER ||
            sample->kind > WIRE_CPU_KERNEL)
            continue;
        const struct prof_frame *place = prof_stack_place(stacks, sample->stack);
        uint64_t key = place ? (uint64_t)place->number << 3 | (uint64_t)sample->kind : 0;
        uint64_t *known = place ? prof_map_get(&weights, key) : NULL;
        int64_t weight = sample->end - sample->begin > 1
                             ? (sample->end < end ? sample->end : end) -
                                   (sample->begin > begin ? sample->begin : begin)
                             : sample->weight;
        int64_t sum = prof_add(known ? (int64_t)*known : 0, weight > 0 ? weight : 0);
        if (!place || sum <= 0 || !prof_map_put(&weights, key, (uint64_t)sum) || sum <= most)
            continue;
        const struct prof_frame *places;
        most = sum;
        best = prof_stacks_places(stacks, &places) > place->number ? &places[place->number] : NULL;
        kind = sample->kind;
    }
    prof_map_free(&weights);
    if (!best)
        return false;
    char name[96];
    struct prof_frame place = *best;
    snprintf(name, sizeof name, "%s", prof_short_name(place.function).text);
    place.function = name;
    prof_frame_text(&place, out, size);
    prof_append(out, size, ", %s", words[kind]);
    return true;
}
