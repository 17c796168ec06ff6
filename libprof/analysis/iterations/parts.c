/* Single iterations taken apart: each nanosecond of their time is in one part, named more closely
 * than the waterfall's states: by the kernel, the kind of memcpy, the API call or the NVTX range,
 * and by what else happened to the thread that the device waited for. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/analysis/iterations/iterations.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"

#define NO_PART UINT32_MAX

/* ---- parts by key ---------------------------------------------------------------------------- */

static uint32_t part_of(struct prof_dissection *d, enum prof_part_kind kind, const char *name,
                        bool counts)
{
    char key[512];
    bool fresh;
    size_t length = name ? strnlen(name, sizeof key - 1) : 0;
    key[0] = (char)kind;
    memcpy(key + 1, name ? name : "", length);
    uint32_t part = prof_names_number(&d->by_key, key, 1 + length, &fresh);
    if (part == UINT32_MAX ||
        (fresh && !prof_array_push(&d->parts, (struct prof_part_key){kind, name, counts}))) {
        d->failed = true;
        return NO_PART;
    }
    return part;
}

static struct prof_part_cell *part_cell_of(struct prof_dissection *d, struct prof_dissected *one,
                                           uint32_t part)
{
    while (part != NO_PART && one->cells.count <= part)
        if (!prof_array_add(&one->cells)) {
            d->failed = true;
            return NULL;
        }
    return part == NO_PART ? NULL : &one->cells.data[part];
}

static const char *const memory_names[][3] = {
    /* by the host's memory: unknown, pageable, page-locked */
    {"HtoD", "HtoD, pageable", "HtoD, page-locked"},
    {"DtoH", "DtoH, pageable", "DtoH, page-locked"},
};

static uint32_t part_of_operation(struct prof_dissection *d, const struct prof_shape *shape)
{
    if (prof_is_kernel(shape))
        return part_of(d, shape->collective ? PROF_PART_OF_COLLECTIVE : PROF_PART_OF_KERNEL,
                       prof_shape_name(shape), true);
    if (shape->kind == PROF_OP_MEMSET)
        return part_of(d, PROF_PART_OF_MEMSET, NULL, true);
    enum prof_slice slice = prof_copy_slice(shape);
    size_t memory = slice == PROF_SLICE_COPY_PAGEABLE ? 1 : slice == PROF_SLICE_COPY_PINNED ? 2 : 0;
    const char *name = shape->copy_kind == WIRE_COPY_HTOD   ? memory_names[0][memory]
                       : shape->copy_kind == WIRE_COPY_DTOH ? memory_names[1][memory]
                                                            : prof_copy_kind_text(shape->copy_kind);
    return part_of(d, PROF_PART_OF_MEMCPY, name, true);
}

static enum prof_part_kind idle_kind(enum prof_slice slice)
{
    static const enum prof_part_kind kinds[PROF_SLICES] = {
        [PROF_SLICE_DEPENDENCY] = PROF_PART_OF_DEPENDENCY,
        [PROF_SLICE_DISPATCH] = PROF_PART_OF_QUEUED,
        [PROF_SLICE_SYNC] = PROF_PART_OF_SYNC,
        [PROF_SLICE_ALLOC] = PROF_PART_OF_ALLOC,
        [PROF_SLICE_BUILD] = PROF_PART_OF_BUILD,
        [PROF_SLICE_COPY_CALL] = PROF_PART_OF_MEMCPY_CALL,
        [PROF_SLICE_LAUNCH] = PROF_PART_OF_LAUNCH,
        [PROF_SLICE_HOST] = PROF_PART_OF_HOST,
    };
    return kinds[slice];
}

/* ---- ranges around the host's own work ------------------------------------------------------- */

/* The innermost range of a thread that is around a moment and not around the whole iteration; *end:
 * up to when that holds. */
static const char *range_at(struct prof_dissection *d, const struct prof_dissected *one,
                            uint32_t thread, int64_t time, int64_t *end)
{
    struct prof_range_index *index = &d->facts->ranges;
    struct prof_range_thread *lanes = prof_range_thread(index, thread);
    const struct prof_range_node *inner = NULL;
    for (size_t l = 0; lanes && l < lanes->lanes.count; l++) {
        struct prof_range_lane *lane = &lanes->lanes.data[l];
        if (prof_lane_declares_work(d->facts, lane))
            continue;
        size_t next;
        PROF_FIND_FIRST(next, at, lane->count, index->nodes.data[lane->nodes[at]].begin > time);
        if (next < lane->count && index->nodes.data[lane->nodes[next]].begin < *end)
            *end = index->nodes.data[lane->nodes[next]].begin;
        uint32_t at = prof_range_at(index, lane, time);
        if (at == PROF_NO_RANGE)
            continue;
        const struct prof_range_node *node = &index->nodes.data[at];
        *end = node->end < *end ? node->end : *end;
        if (!inner || node->begin >= inner->begin)
            inner = node;
    }
    bool whole = inner && (inner->group == one->group ||
                           (inner->begin <= one->row->start_ns &&
                            inner->end >= prof_add(one->row->start_ns, one->row->duration_ns)));
    return inner && !whole ? d->facts->range_texts.list.data[inner->group] : NULL;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void add_part_piece(struct prof_dissection *d, struct prof_dissected *one, uint32_t part,
                           const struct prof_piece *piece, int64_t begin, int64_t end)
{
    struct prof_part_cell *cell = part_cell_of(d, one, part);
    if (!cell)
        return;
    cell->ns += end - begin;
    if (!one->with_pieces)
        return;
    struct prof_part_piece *last =
        one->pieces.count ? &one->pieces.data[one->pieces.count - 1] : NULL;
    if (last && last->part == part && last->end == begin && last->shape == piece->shape &&
        last->call == piece->call)
        last->end = end;
    else if (!prof_array_push(&one->pieces, (struct prof_part_piece){.part = part,
                                                                     .shape = piece->shape,
                                                                     .stream = piece->stream,
                                                                     .thread = piece->thread,
                                                                     .call = piece->call,
                                                                     .begin = begin,
                                                                     .end = end}))
        d->failed = true;
}

static void split_piece(struct prof_dissection *d, struct prof_dissected *one,
                        const struct prof_piece *piece, int64_t begin, int64_t end)
{
    bool busy = piece->slice < PROF_SLICE_FIRST_IDLE;
    uint32_t part = NO_PART;
    if (busy)
        part = part_of_operation(d, &d->facts->shapes.data[piece->shape]);
    while (begin < end && !d->failed) {
        int64_t until = end;
        enum prof_part_kind kind = busy ? PROF_PART_OF_KERNEL : idle_kind(piece->slice);
        const char *name = NULL;
        bool other =
            prof_overlay_at(d->overlays, piece->thread, piece->slice, begin, &until, &kind, &name);
        bool call = piece->slice == PROF_SLICE_SYNC || piece->slice == PROF_SLICE_ALLOC ||
                    piece->slice == PROF_SLICE_BUILD || piece->slice == PROF_SLICE_COPY_CALL;
        if (!other && piece->slice == PROF_SLICE_HOST)
            name = range_at(d, one, piece->thread, begin, &until);
        else if (!other && call)
            name = prof_string(d->facts->capture, piece->call, NULL);
        if (other || !busy)
            part = part_of(d, kind, name, other ? kind == PROF_PART_OF_FAULTS : call);
        add_part_piece(d, one, part, piece, begin, until);
        begin = until;
    }
}

/* The first of the iterations that may still run at a moment. */
static size_t first_dissected(const struct prof_dissection *d, int64_t time)
{
    size_t low;
    PROF_FIND_FIRST(low, at, d->list.count, d->list.data[at].row->start_ns > time - d->longest_ns);
    return low ? low - 1 : 0;
}

static void dissect_piece(void *user, const struct prof_piece *piece)
{
    struct prof_dissection *d = user;
    int64_t device = d->facts->devices.data[piece->device].id;
    for (size_t i = first_dissected(d, piece->begin);
         i < d->list.count && d->list.data[i].row->start_ns < piece->end && !d->failed; i++) {
        struct prof_dissected *one = &d->list.data[i];
        int64_t first = one->row->start_ns, last = prof_add(first, one->row->duration_ns);
        int64_t begin = first > piece->begin ? first : piece->begin;
        int64_t end = last < piece->end ? last : piece->end;
        if (one->row->device == device && begin < end)
            split_piece(d, one, piece, begin, end);
    }
}

/* ---- operations and calls -------------------------------------------------------------------- */

static void count_in_part(struct prof_dissection *d, struct prof_dissected *one, uint32_t part,
                          int64_t duration)
{
    struct prof_part_cell *cell = part_cell_of(d, one, part);
    if (cell) {
        cell->count++;
        cell->work_ns = prof_add(cell->work_ns, duration);
    }
}

static void count_dissected_operations(struct prof_dissection *d)
{
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    if (!d->list.count)
        return;
    int64_t last = prof_add(d->list.data[d->list.count - 1].row->start_ns, d->longest_ns);
    prof_facts_seek(d->facts, &walk, d->list.data[0].row->start_ns);
    while (!d->failed && (op = prof_facts_next(d->facts, &walk, &kind)) && op->start < last) {
        const struct prof_shape *shape = &d->facts->shapes.data[op->shape];
        for (size_t i = first_dissected(d, op->start);
             i < d->list.count && d->list.data[i].row->start_ns <= op->start; i++) {
            struct prof_dissected *one = &d->list.data[i];
            int64_t end = prof_add(one->row->start_ns, one->row->duration_ns);
            if (op->start >= end || d->facts->devices.data[shape->device].id != one->row->device)
                continue;
            count_in_part(d, one, part_of_operation(d, shape), op->duration);
        }
    }
}

static void count_dissected_calls(struct prof_dissection *d)
{
    for (size_t i = 0; i < d->list.count; i++) {
        struct prof_dissected *one = &d->list.data[i];
        size_t count, low;
        const struct prof_call *calls =
            prof_facts_calls(d->facts, (uint32_t)one->row->thread, &count);
        PROF_FIND_FIRST(low, at, count, calls[at].start >= one->row->start_ns);
        for (;
             low < count && calls[low].start < prof_add(one->row->start_ns, one->row->duration_ns);
             low++) {
            enum prof_part_kind kind = idle_kind(prof_call_slice(calls[low].class_));
            if (kind == PROF_PART_OF_HOST || kind == PROF_PART_OF_LAUNCH)
                continue;
            const char *name = prof_string(d->facts->capture, calls[low].name, NULL);
            count_in_part(d, one, part_of(d, kind, name, true), calls[low].duration);
        }
    }
}

/* What of `count` belongs to `part` of `whole` ns. */
static int64_t faults_inside(int64_t count, int64_t part, int64_t whole)
{
    return part >= whole ? count : (int64_t)((double)count * (double)part / (double)whole + 0.5);
}

/* Of the iteration's own thread. They are counted between samples: what lies across the iteration's
 * begin or end counts by its part. */
static void count_dissected_faults(struct prof_dissection *d)
{
    size_t rows;
    const struct prof_fault_row *row = prof_overlays_faults(d->overlays, &rows);
    for (; rows--; row++) {
        for (size_t i = first_dissected(d, row->begin);
             i < d->list.count && d->list.data[i].row->start_ns < row->end; i++) {
            struct prof_dissected *one = &d->list.data[i];
            int64_t end = prof_add(one->row->start_ns, one->row->duration_ns);
            int64_t inside = prof_min(end, row->end) - prof_max(one->row->start_ns, row->begin);
            if (inside <= 0 || one->row->thread != row->thread)
                continue;
            struct prof_part_cell *cell =
                part_cell_of(d, one, part_of(d, PROF_PART_OF_FAULTS, NULL, true));
            if (!cell)
                return;
            int64_t whole = row->end - row->begin;
            cell->count = prof_add(cell->count, faults_inside(row->count, inside, whole));
            cell->major = prof_add(cell->major, faults_inside(row->major, inside, whole));
        }
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

PROF_ORDER(by_piece_begin, struct prof_part_piece, PROF_ASCENDING(begin))

PROF_ORDER(by_dissected_start, struct prof_dissected, PROF_ASCENDING(row->start_ns),
           PROF_ASCENDING(row->number))

enum prof_status prof_dissect(struct prof_dissection *d, struct prof_error *err)
{
    struct prof_intervals all = {0};
    bool ok = true;
    prof_array_sort(&d->list, by_dissected_start);
    for (size_t i = 0; ok && i < d->list.count; i++) {
        const struct prof_iteration_row *row = d->list.data[i].row;
        d->longest_ns = row->duration_ns > d->longest_ns ? row->duration_ns : d->longest_ns;
        ok = prof_intervals_add(&all, row->start_ns, prof_add(row->start_ns, row->duration_ns));
    }
    prof_intervals_normalise(&all);
    enum prof_status status =
        ok ? prof_overlays_read(&d->overlays, d->facts->capture, &all, err) : PROF_NOMEM;
    if (!status && prof_facts_pieces(d->facts, &all, dissect_piece, d)) {
        count_dissected_operations(d);
        count_dissected_calls(d);
        count_dissected_faults(d);
        for (size_t i = 0; i < d->list.count; i++)
            prof_array_sort(&d->list.data[i].pieces, by_piece_begin);
    } else {
        d->failed |= !status;
    }
    prof_array_free(&all);
    return !ok || d->failed ? prof_out_of_memory(err) : status;
}

void prof_dissection_free(struct prof_dissection *d)
{
    for (size_t i = 0; i < d->list.count; i++) {
        prof_array_free(&d->list.data[i].cells);
        prof_array_free(&d->list.data[i].pieces);
    }
    prof_array_free(&d->list);
    prof_array_free(&d->parts);
    prof_names_free(&d->by_key);
    prof_overlays_free(d->overlays);
}
