/* What else happened while a device waited for the host: code that was compiled or loaded, unified
 * memory that moved, and what samples of the processors say of the thread: that it was off them, or
 * that the operating system handled its page faults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    PROF_ARRAY(struct prof_fault_row) faults;
};

static int overlay_precedence(enum prof_part_kind kind)
{
    return kind == PROF_PART_OF_JIT         ? 0
           : kind == PROF_PART_OF_LOAD      ? 1
           : kind == PROF_PART_OF_GC        ? 2
           : kind == PROF_PART_OF_MIGRATION ? 3
           : kind == PROF_PART_OF_PREEMPTED ? 4
           : kind == PROF_PART_OF_BLOCKED   ? 5
                                            : 6;
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

static bool add_fault_row(void *user, sqlite3_stmt *row)
{
    struct prof_overlays *o = user;
    struct prof_fault_row faults = {.begin = prof_column_int(row, 0),
                                    .thread = (uint32_t)prof_column_id(row, 2),
                                    .count = prof_column_size(row, 3),
                                    .major = prof_column_size(row, 4)};
    faults.end = prof_add(faults.begin, prof_column_size(row, 1));
    return faults.begin < 0 || faults.count <= 0 || faults.major < 0 ||
           !overlaps_any(o->within, faults.begin, faults.end) ||
           prof_array_push(&o->faults, faults);
}

/* A thread that was off the processors says exactly from when to when; a sample in a page fault
 * represents the time on a processor before it. */
static bool add_thread_sample(void *user, sqlite3_stmt *row)
{
    struct prof_overlays *o = user;
    int64_t duration = prof_column_size(row, 3);
    struct overlay_sample sample = {.begin = prof_column_int(row, 0),
                                    .thread = (uint32_t)prof_column_id(row, 1),
                                    .kind = prof_column_code(row, 2),
                                    .weight = prof_column_size(row, 4),
                                    .stack = prof_column_id(row, 5)};
    bool fault = sample.kind == WIRE_CPU_FAULT;
    bool off = sample.kind == WIRE_CPU_BLOCKED || sample.kind == WIRE_CPU_PREEMPTED || fault;
    sample.end = prof_add(sample.begin, off && duration > 0 ? duration : 1);
    int64_t begin = fault && duration <= 0 && sample.weight > 0
                        ? prof_subtract(sample.begin, sample.weight)
                        : sample.begin;
    if (sample.begin < 0 || !overlaps_any(o->within, begin, sample.end))
        return true;
    if (off && !add_overlay(o,
                            fault                             ? PROF_PART_OF_FAULTS
                            : sample.kind == WIRE_CPU_BLOCKED ? PROF_PART_OF_BLOCKED
                                                              : PROF_PART_OF_PREEMPTED,
                            0, sample.thread, begin, sample.end))
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
    if (!status)
        status = prof_scan(capture, "SELECT start, duration, thread, count, major FROM page_faults",
                           add_fault_row, o, err);
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
        prof_array_free(&o->faults);
    }
    free(o);
}

const struct prof_fault_row *prof_overlays_faults(const struct prof_overlays *o, size_t *count)
{
    *count = o->faults.count;
    return o->faults.data;
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
    if (kind == PROF_PART_OF_BLOCKED || kind == PROF_PART_OF_FAULTS)
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

/* Whose samples are looked at, and when. */
struct sampled {
    const struct prof_overlays *overlays;
    struct prof_stacks *stacks;
    uint32_t thread;
    int64_t begin, end;
    int64_t stack; /* set: of a sample where most of the time was spent */
};

/* For how much of that a sample stands. */
static int64_t sampled_ns(const struct sampled *of, const struct overlay_sample *sample)
{
    if (sample->thread != of->thread || sample->end <= of->begin || sample->begin >= of->end ||
        sample->kind < WIRE_CPU_USER || sample->kind > WIRE_CPU_FAULT)
        return 0;
    if (sample->end - sample->begin == 1)
        return sample->weight > 0 ? sample->weight : 0;
    return prof_min(sample->end, of->end) - prof_max(sample->begin, of->begin);
}

void prof_overlays_weigh(const struct prof_overlays *o, uint32_t thread, int64_t begin, int64_t end,
                         int64_t *faults, int64_t *others)
{
    size_t at;
    PROF_FIND_FIRST(at, i, o->samples.count, o->samples.data[i].begin >= begin);
    for (; at < o->samples.count && o->samples.data[at].begin < end; at++) {
        const struct overlay_sample *sample = &o->samples.data[at];
        bool fault = sample->kind == WIRE_CPU_FAULT;
        bool runs = sample->kind == WIRE_CPU_USER || sample->kind == WIRE_CPU_KERNEL;
        if (sample->thread == thread && sample->weight > 0 && (fault || runs))
            *(fault ? faults : others) = prof_add(*(fault ? faults : others), sample->weight);
    }
}

/* The path of the innermost library on a stack that is more than every program's; NULL = none.
 * Borrowed of the stacks. */
static const char *innermost_library(struct prof_stacks *stacks, int64_t stack)
{
    const struct prof_frame *frames;
    for (size_t i = prof_stack_frames(stacks, stack, &frames); i--;)
        if (frames[i].module && prof_frame_nearness(&frames[i]) != PROF_NEAR_RUNTIME)
            return frames[i].module;
    return NULL;
}

/* A place and what the thread did there, as a number; 0: not known. */
static uint64_t sampled_place(const struct sampled *of, const struct overlay_sample *sample)
{
    const struct prof_frame *place = prof_stack_place(of->stacks, sample->stack);
    return place ? ((uint64_t)place->number + 1) << 3 | (uint64_t)sample->kind : 0;
}

/* Where most of the time was spent, as sampled_place; if `at` is such a number, the path of the
 * library where most of the time there was spent, as an address. 0: not known. */
static uint64_t most_sampled(struct sampled *of, uint64_t at)
{
    struct prof_map sums = {0};
    uint64_t found = 0;
    int64_t most = 0;
    for (size_t i = 0; i < of->overlays->samples.count; i++) {
        const struct overlay_sample *sample = &of->overlays->samples.data[i];
        if (sample->begin >= of->end)
            break;
        int64_t ns = sampled_ns(of, sample);
        uint64_t key = ns ? sampled_place(of, sample) : 0;
        if (!key || (at && key != at))
            continue;
        if (at)
            key = (uint64_t)(uintptr_t)innermost_library(of->stacks, sample->stack);
        uint64_t *known = prof_map_get(&sums, key);
        int64_t sum = prof_add(known ? (int64_t)*known : 0, ns);
        if (prof_map_put(&sums, key, (uint64_t)sum) && sum > most) {
            most = sum;
            found = key;
            of->stack = sample->stack;
        }
    }
    prof_map_free(&sums);
    return found;
}

/* Does the interpreter run functions of Python there that nothing names? What `-X perf` names is in
 * no module and has a file. */
static bool hides_python(struct prof_stacks *stacks, int64_t stack)
{
    const struct prof_frame *frames;
    size_t count = prof_stack_frames(stacks, stack, &frames);
    bool interprets = false, named = false;
    for (size_t i = 0; i < count; i++) {
        interprets |= prof_frame_is_interpreter(&frames[i]);
        named |= !frames[i].module && frames[i].file;
    }
    return interprets && !named;
}

bool prof_overlays_place(const struct prof_overlays *o, struct prof_capture *capture,
                         uint32_t thread, int64_t begin, int64_t end, char *out, size_t size)
{
    static const char *const words[] = {[WIRE_CPU_USER] = "computing",
                                        [WIRE_CPU_KERNEL] = "inside the operating system",
                                        [WIRE_CPU_BLOCKED] = "blocked",
                                        [WIRE_CPU_PREEMPTED] = "waiting for a processor",
                                        [WIRE_CPU_FAULT] = "in a page fault"};
    struct sampled of = {.overlays = o, .thread = thread, .begin = begin, .end = end};
    const struct prof_frame *places;
    if (prof_capture_stacks(capture, &of.stacks, NULL) || !of.stacks)
        return false;
    uint64_t most = most_sampled(&of, 0);
    if (!most || prof_stacks_places(of.stacks, &places) < most >> 3)
        return false;
    char name[96];
    struct prof_frame place = places[(most >> 3) - 1];
    const char *library = (const char *)(uintptr_t)most_sampled(&of, most);
    snprintf(name, sizeof name, "%s", prof_short_name(place.function).text);
    place.function = name;
    prof_frame_text(&place, out, size);
    prof_append(out, size, ", %s", words[most & 7]);
    if (library && (!place.module || strcmp(library, place.module) != 0))
        prof_append(out, size, ", in %s",
                    strrchr(library, '/') ? strrchr(library, '/') + 1 : library);
    if (prof_frame_nearness(&place) > PROF_NEAR_OWN_NAME && hides_python(of.stacks, of.stack))
        prof_append(out, size, "; Python's function n/a (see the trust block)");
    return true;
}
