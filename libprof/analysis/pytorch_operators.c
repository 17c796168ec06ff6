/* Ranges of PyTorch's operators, and the way from one of the backward pass home to the forward
 * operator that asked for it.
 *
 * Autograd runs backward operators on threads of its own, where no Python frame says whose they
 * are. But the forward operator and the backward one carry the same sequence number, counted by
 * each thread of the program for itself. So: index all ranges, look up the range around each
 * operation's call, and for one inside of the engine's evaluation find the forward operator by
 * number. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/pytorch_operators.h"

#define ENGINE "autograd::engine::evaluate_function: "

static bool add_sequence(void *user, sqlite3_stmt *row)
{
    struct prof_torch *t = user;
    return prof_map_put(&t->sequences, (uint64_t)sqlite3_column_int64(row, 0),
                        (uint64_t)sqlite3_column_int64(row, 1));
}

static uint32_t take_range(void *user, const struct prof_event_row *row)
{
    struct prof_torch *t = user;
    const struct prof_thread *thread = prof_thread(t->capture, row->thread);
    const uint64_t *sequence = prof_map_get(&t->sequences, (uint64_t)row->id);
    struct prof_torch_operator *made = prof_array_add(&t->operators);
    uint32_t text = prof_texts_number(&t->texts, t->capture, row->name);
    if (!made || text == PROF_NO_GROUP)
        return PROF_NO_GROUP;
    const char *name = t->texts.list.data[text];
    *made = (struct prof_torch_operator){
        .sequence = sequence ? (int64_t)*sequence : PROF_UNKNOWN,
        .thread = row->thread,
        .process = thread ? thread->process : 0,
        .text = text,
        .engine = name && strncmp(name, ENGINE, sizeof ENGINE - 1) == 0,
    };
    return (uint32_t)(t->operators.count - 1);
}

/* qsort has no place for it. */
static _Thread_local const struct prof_torch *ordered;

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct prof_torch_operator *p = &ordered->operators.data[x],
                                     *q = &ordered->operators.data[y];
    if (p->process != q->process)
        return p->process < q->process ? -1 : 1;
    if (p->sequence != q->sequence)
        return p->sequence < q->sequence ? -1 : 1;
    return x < y ? -1 : x > y; /* ranges are read in order of start */
}

/* What the engine does around a counted operator (adding up the gradient of a broadcast bias) is
 * that operator's too: the engine's range takes its number where it has none. */
static void number_engine(struct prof_torch *t, uint32_t parent, int64_t sequence)
{
    struct prof_torch_operator *outer = parent == PROF_NO_RANGE ? NULL : &t->operators.data[parent];
    if (outer && outer->engine && outer->sequence == PROF_UNKNOWN)
        outer->sequence = sequence;
}

/* Which ranges are of the backward pass, and the others in order of their numbers. */
static bool sort_out(struct prof_torch *t)
{
    for (uint32_t i = 0; i < t->operators.count; i++) {
        struct prof_torch_operator *op = &t->operators.data[i];
        uint32_t parent = t->index.nodes.data[i].parent;
        op->backward =
            op->engine || (parent != PROF_NO_RANGE && t->operators.data[parent].backward);
        if (op->sequence == PROF_UNKNOWN)
            continue;
        if (op->backward) {
            number_engine(t, parent, op->sequence);
            continue;
        }
        uint32_t *slot = prof_array_add(&t->forward);
        if (!slot)
            return false;
        *slot = i;
    }
    ordered = t;
    if (t->forward.count)
        qsort(t->forward.data, t->forward.count, sizeof *t->forward.data, by_number);
    return true;
}

enum prof_status prof_torch_open(struct prof_torch *t, struct prof_capture *capture,
                                 const struct prof_scope *scope, struct prof_error *err)
{
    *t = (struct prof_torch){.capture = capture};
    enum prof_status status =
        prof_scan(capture,
                  "SELECT f.range, f.value FROM range_field f JOIN string s ON s.id = f.name "
                  "WHERE s.value = 'seq' AND typeof(f.value) = 'integer'",
                  add_sequence, t, err);
    if (status || !t->sequences.count)
        return status;
    struct prof_scope places = prof_scope_of_ranges(scope);
    status = prof_range_index_open(&t->index, capture, &places, take_range, t, err);
    if (!status && !sort_out(t))
        status = prof_out_of_memory(err);
    return status;
}

static bool is_operator(const struct prof_torch_operator *range)
{
    return range->sequence != PROF_UNKNOWN || range->engine;
}

/* The innermost operator around a call, or PROF_NO_RANGE. */
static uint32_t operator_at(struct prof_torch *t, int64_t thread, int64_t time)
{
    struct prof_range_thread *lanes = prof_range_thread(&t->index, thread);
    for (size_t i = 0; lanes && i < lanes->lanes.count; i++) {
        uint32_t at = prof_range_at(&t->index, &lanes->lanes.data[i], time);
        while (at != PROF_NO_RANGE && !is_operator(&t->operators.data[at]))
            at = t->index.nodes.data[at].parent;
        if (at != PROF_NO_RANGE)
            return at;
    }
    return PROF_NO_RANGE;
}

/* The outermost counted operator within the engine's range around `at`: the engine's own range has
 * the number in some versions of PyTorch, the operator inside of it in all. */
static uint32_t backward_operator(const struct prof_torch *t, uint32_t at)
{
    uint32_t counted = PROF_NO_RANGE;
    for (bool inside = true; inside && at != PROF_NO_RANGE; at = t->index.nodes.data[at].parent) {
        if (t->operators.data[at].sequence != PROF_UNKNOWN)
            counted = at;
        inside = !t->operators.data[at].engine;
    }
    return counted;
}

/* The last forward operator of that number that began before the backward one; PROF_NO_RANGE when
 * there is none, or those of two threads have the number. */
static uint32_t forward_of(const struct prof_torch *t, uint32_t backward)
{
    const struct prof_torch_operator *wanted = &t->operators.data[backward];
    size_t low = 0, high = t->forward.count;
    while (low < high) { /* the first one that is later, greater, or of a later process */
        size_t middle = low + (high - low) / 2;
        const struct prof_torch_operator *op = &t->operators.data[t->forward.data[middle]];
        bool before = op->process != wanted->process     ? op->process < wanted->process
                      : op->sequence != wanted->sequence ? op->sequence < wanted->sequence
                                                         : t->forward.data[middle] < backward;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    uint32_t found = PROF_NO_RANGE;
    for (size_t i = low; i-- > 0;) {
        const struct prof_torch_operator *op = &t->operators.data[t->forward.data[i]];
        if (op->process != wanted->process || op->sequence != wanted->sequence)
            break;
        if (found == PROF_NO_RANGE)
            found = t->forward.data[i];
        else if (op->thread != t->operators.data[found].thread)
            return PROF_NO_RANGE;
    }
    return found;
}

enum prof_torch_part prof_torch_find(struct prof_torch *t, int64_t thread, int64_t call_ns,
                                     uint32_t *found)
{
    *found = t->sequences.count ? operator_at(t, thread, call_ns) : PROF_NO_RANGE;
    if (*found == PROF_NO_RANGE)
        return PROF_TORCH_OUTSIDE;
    if (!t->operators.data[*found].backward)
        return PROF_TORCH_FORWARD;
    uint32_t counted = backward_operator(t, *found);
    *found = counted == PROF_NO_RANGE ? counted : forward_of(t, counted);
    return PROF_TORCH_BACKWARD;
}

void prof_torch_close(struct prof_torch *t)
{
    prof_map_free(&t->sequences);
    prof_texts_free(&t->texts);
    prof_range_index_close(&t->index);
    prof_array_free(&t->operators);
    prof_array_free(&t->forward);
}
