/* PyTorch's operators with their device work, backward operators brought home to the forward
 * operator that asked for them.
 *
 * Autograd runs backward operators on threads of its own, where no Python frame says whose they
 * are. But the forward operator and the backward one carry the same sequence number, counted by
 * each thread of the program for itself. So: index all ranges, look up the range around each
 * operation's call, and for one inside of the engine's evaluation find the forward operator by
 * number. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/device_ops.h"
#include "libprof/analysis/range_index.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_pytorch.h"
#include "libprof/include/prof_stack.h"

#define ENGINE "autograd::engine::evaluate_function: "
#define NO_PLACE UINT32_MAX

/* Of a range; index as in the index of ranges. */
struct torch_range {
    int64_t sequence; /* PROF_UNKNOWN = it is no operator that autograd counts */
    int64_t thread, process;
    uint32_t text;  /* number of its name */
    uint32_t place; /* of the first of its operations that has one, or NO_PLACE */
    bool engine;    /* the engine's own range around a backward operator */
    bool backward;  /* inside of one */
    int64_t forward_ns, backward_ns, forward_operations, backward_operations;
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_map sequences; /* range.id -> sequence number */
    struct prof_texts texts;
    struct prof_range_index index;
    PROF_ARRAY(struct torch_range) operators;
    PROF_ARRAY(uint32_t) forward; /* operators by process, sequence, start */
    struct prof_stacks *stacks;   /* the capture's; NULL = it has none */
    struct prof_map places;       /* stack.id -> place */
    struct prof_names rows_by_key;
    PROF_ARRAY(struct prof_pytorch_row) rows;
    struct prof_pytorch_summary *result;
};

/* ---- reading ranges ----------------------------------------------------------------------------
 */

static bool add_sequence(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    return prof_map_put(&w->sequences, (uint64_t)sqlite3_column_int64(row, 0),
                        (uint64_t)sqlite3_column_int64(row, 1));
}

static uint32_t take_range(void *user, const struct prof_range_row_read *row)
{
    struct work *w = user;
    const struct prof_thread *thread = prof_thread(w->capture, row->thread);
    const uint64_t *sequence = prof_map_get(&w->sequences, (uint64_t)row->id);
    struct torch_range *made = prof_array_add(&w->operators);
    uint32_t text = prof_texts_number(&w->texts, w->capture, row->name);
    if (!made || text == PROF_NO_GROUP)
        return PROF_NO_GROUP;
    const char *name = w->texts.list.data[text];
    *made = (struct torch_range){
        .sequence = sequence ? (int64_t)*sequence : PROF_UNKNOWN,
        .thread = row->thread,
        .process = thread ? thread->process : 0,
        .text = text,
        .place = NO_PLACE,
        .engine = name && strncmp(name, ENGINE, sizeof ENGINE - 1) == 0,
    };
    return (uint32_t)(w->operators.count - 1);
}

/* qsort has no place for it. */
static _Thread_local const struct work *ordered;

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct torch_range *p = &ordered->operators.data[x], *q = &ordered->operators.data[y];
    if (p->process != q->process)
        return p->process < q->process ? -1 : 1;
    if (p->sequence != q->sequence)
        return p->sequence < q->sequence ? -1 : 1;
    return x < y ? -1 : x > y; /* ranges are read in order of start */
}

/* Which ranges are of the backward pass, and the others in order of their numbers. */
static bool sort_out(struct work *w)
{
    for (uint32_t i = 0; i < w->operators.count; i++) {
        struct torch_range *op = &w->operators.data[i];
        uint32_t parent = w->index.nodes.data[i].parent;
        op->backward =
            op->engine || (parent != PROF_NO_RANGE && w->operators.data[parent].backward);
        if (op->backward || op->sequence == PROF_UNKNOWN)
            continue;
        uint32_t *slot = prof_array_add(&w->forward);
        if (!slot)
            return false;
        *slot = i;
    }
    ordered = w;
    if (w->forward.count)
        qsort(w->forward.data, w->forward.count, sizeof *w->forward.data, by_number);
    return true;
}

static enum prof_status read_ranges(struct work *w, struct prof_error *err)
{
    enum prof_status status =
        prof_scan(w->capture,
                  "SELECT f.range, f.value FROM range_field f JOIN string s ON s.id = f.name "
                  "WHERE s.value = 'seq' AND typeof(f.value) = 'integer'",
                  add_sequence, w, err);
    struct prof_scope places = prof_scope_of_ranges(&w->scope);
    if (!status)
        status = prof_range_index_open(&w->index, w->capture, &places, take_range, w, err);
    if (!status && !sort_out(w))
        status = prof_out_of_memory(err);
    return status;
}

/* ---- operations --------------------------------------------------------------------------------
 */

/* The innermost operator around a call, or PROF_NO_RANGE. */
static uint32_t operator_at(struct work *w, int64_t thread, int64_t time)
{
    struct prof_range_thread *lanes = prof_range_thread(&w->index, thread);
    for (size_t i = 0; lanes && i < lanes->lanes.count; i++) {
        uint32_t at = prof_range_at(&w->index, &lanes->lanes.data[i], time);
        while (at != PROF_NO_RANGE && w->operators.data[at].sequence == PROF_UNKNOWN)
            at = w->index.nodes.data[at].parent;
        if (at != PROF_NO_RANGE)
            return at;
    }
    return PROF_NO_RANGE;
}

static uint32_t engine_around(const struct work *w, uint32_t at)
{
    while (at != PROF_NO_RANGE && !w->operators.data[at].engine)
        at = w->index.nodes.data[at].parent;
    return at;
}

/* The last forward operator of that number that began before the backward one; PROF_NO_RANGE when
 * there is none, or those of two threads have the number. */
static uint32_t forward_of(const struct work *w, uint32_t backward)
{
    const struct torch_range *wanted = &w->operators.data[backward];
    size_t low = 0, high = w->forward.count;
    while (low < high) { /* the first one that is later, greater, or of a later process */
        size_t middle = low + (high - low) / 2;
        const struct torch_range *op = &w->operators.data[w->forward.data[middle]];
        bool before = op->process != wanted->process     ? op->process < wanted->process
                      : op->sequence != wanted->sequence ? op->sequence < wanted->sequence
                                                         : w->forward.data[middle] < backward;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    uint32_t found = PROF_NO_RANGE;
    for (size_t i = low; i-- > 0;) {
        const struct torch_range *op = &w->operators.data[w->forward.data[i]];
        if (op->process != wanted->process || op->sequence != wanted->sequence)
            break;
        if (found == PROF_NO_RANGE)
            found = w->forward.data[i];
        else if (op->thread != w->operators.data[found].thread)
            return PROF_NO_RANGE;
    }
    return found;
}

static bool of_pytorch(const char *file)
{
    return file && strstr(file, "/torch/");
}

/* The innermost Python frame that is the program's, else the innermost of PyTorch. */
static uint32_t place_of(struct work *w, int64_t stack)
{
    const uint64_t *known = stack ? prof_map_get(&w->places, (uint64_t)stack) : NULL;
    if (known || !stack || !w->stacks)
        return known ? (uint32_t)*known : NO_PLACE;
    const struct prof_frame *frames;
    size_t count = prof_stack_frames(w->stacks, stack, &frames);
    uint32_t place = NO_PLACE;
    for (size_t i = 0; i < count; i++) { /* outermost first */
        if (frames[i].kind == PROF_FRAME_PYTHON &&
            (place == NO_PLACE || !of_pytorch(frames[i].file)))
            place = frames[i].number;
    }
    prof_map_put(&w->places, (uint64_t)stack, place);
    return place;
}

static bool take_operation(void *user, const struct prof_device_op *op)
{
    struct work *w = user;
    if (op->call_ns == PROF_UNKNOWN || op->duration_ns == PROF_UNKNOWN || op->duration_ns < 0)
        return true;
    uint32_t at = operator_at(w, op->thread, op->call_ns);
    if (at == PROF_NO_RANGE)
        return true;
    bool backward = w->operators.data[at].backward;
    if (backward) {
        uint32_t engine = engine_around(w, at);
        at = engine == PROF_NO_RANGE ? PROF_NO_RANGE : forward_of(w, engine);
    }
    if (at == PROF_NO_RANGE) {
        w->result->unmatched_operations++;
        w->result->unmatched_ns = prof_add(w->result->unmatched_ns, op->duration_ns);
        return true;
    }
    struct torch_range *found = &w->operators.data[at];
    int64_t *sum = backward ? &found->backward_ns : &found->forward_ns;
    *sum = prof_add(*sum, op->duration_ns);
    (*(backward ? &found->backward_operations : &found->forward_operations))++;
    if (!backward && found->place == NO_PLACE)
        found->place = place_of(w, op->stack);
    return true;
}

/* ---- rows --------------------------------------------------------------------------------------
 */

/* What makes two operators one row. */
struct key {
    uint32_t op, module, place;
};
#define NO_MODULE UINT32_MAX

/* Up from a counted operator: the outermost of those directly around it, then the range around
 * that; a place is taken from whichever has one. */
static struct key key_of(const struct work *w, uint32_t at)
{
    const struct torch_range *op = &w->operators.data[at];
    struct key key = {op->text, NO_MODULE, op->place};
    for (uint32_t up = w->index.nodes.data[at].parent; up != PROF_NO_RANGE;
         up = w->index.nodes.data[up].parent) {
        const struct torch_range *outer = &w->operators.data[up];
        if (outer->sequence == PROF_UNKNOWN) {
            key.module = outer->text;
            break;
        }
        key.op = outer->text;
        key.place = key.place == NO_PLACE ? outer->place : key.place;
    }
    return key;
}

static struct prof_pytorch_row *row_of(struct work *w, const struct key *key)
{
    const uint32_t *known = prof_names_get(&w->rows_by_key, (const char *)key, sizeof *key);
    if (known)
        return &w->rows.data[*known];
    const struct prof_frame *places = NULL;
    size_t count = w->stacks ? prof_stacks_places(w->stacks, &places) : 0;
    const struct prof_frame *place = key->place < count ? &places[key->place] : NULL;
    struct prof_pytorch_row *row = prof_array_add(&w->rows);
    if (!row || !prof_names_put(&w->rows_by_key, (const char *)key, sizeof *key,
                                (uint32_t)(w->rows.count - 1)))
        return NULL;
    *row = (struct prof_pytorch_row){
        .op = w->texts.list.data[key->op],
        .module = key->module == NO_MODULE ? NULL : w->texts.list.data[key->module],
        .function = place ? place->function : NULL,
        .file = place ? place->file : NULL,
        .line = place ? place->line : PROF_UNKNOWN,
    };
    return row;
}

static bool add_rows(struct work *w)
{
    for (uint32_t i = 0; i < w->operators.count; i++) {
        const struct torch_range *op = &w->operators.data[i];
        if (!op->forward_operations && !op->backward_operations)
            continue;
        struct key key = key_of(w, i);
        struct prof_pytorch_row *row = row_of(w, &key);
        if (!row)
            return false;
        row->calls++;
        row->forward_ns = prof_add(row->forward_ns, op->forward_ns);
        row->backward_ns = prof_add(row->backward_ns, op->backward_ns);
        row->forward_operations += op->forward_operations;
        row->backward_operations += op->backward_operations;
    }
    return true;
}

static int64_t total_of(const struct prof_pytorch_row *row)
{
    return prof_add(row->forward_ns, row->backward_ns);
}

static int by_total(const void *a, const void *b)
{
    const struct prof_pytorch_row *x = a, *y = b;
    int order = prof_order(total_of(x), total_of(y), x->op, y->op);
    if (order == 0)
        order = strcmp(x->module ? x->module : "", y->module ? y->module : "");
    return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static void finish(struct work *w, const struct prof_filter *filter,
                   struct prof_pytorch_summary *result)
{
    result->rows = w->rows.data;
    result->count = w->rows.count;
    w->rows.data = NULL;
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, by_total);
    for (size_t i = 0; i < result->count; i++)
        result->listed_ns = prof_add(result->listed_ns, total_of(&result->rows[i]));
    result->wall_ns = prof_wall_ns(w->capture, filter);
    for (size_t i = 0; i < result->count; i++) {
        result->rows[i].share = prof_share(total_of(&result->rows[i]), result->listed_ns);
        result->rows[i].wall_share = prof_share(total_of(&result->rows[i]), result->wall_ns);
    }
}

static void close_work(struct work *w)
{
    prof_map_free(&w->sequences);
    prof_texts_free(&w->texts);
    prof_range_index_close(&w->index);
    prof_array_free(&w->operators);
    prof_array_free(&w->forward);
    prof_map_free(&w->places);
    prof_names_free(&w->rows_by_key);
    prof_array_free(&w->rows);
    prof_scope_close(&w->scope);
}

enum prof_status prof_pytorch_summary(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_pytorch_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .result = result};
    *result = (struct prof_pytorch_summary){0};
    enum prof_status status = prof_capture_stacks(capture, &w.stacks, err);
    if (!status)
        status = prof_begin(capture, err);
    if (status)
        return status;
    status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status)
        status = read_ranges(&w, err);
    if (!status && w.sequences.count)
        status = prof_device_ops(capture, &w.scope, take_operation, &w, err);
    prof_end(capture);
    if (!status && !add_rows(&w))
        status = prof_out_of_memory(err);
    if (!status)
        finish(&w, filter, result);
    close_work(&w);
    return status;
}

void prof_pytorch_summary_free(struct prof_pytorch_summary *result)
{
    free(result->rows);
    *result = (struct prof_pytorch_summary){0};
}
