/* PyTorch's operators with their device work, that of the backward pass brought home to the forward
 * operator that asked for it. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/pytorch_operators.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_pytorch.h"
#include "libprof/include/prof_stack.h"

#define NO_PLACE UINT32_MAX

/* Work of a forward operator; index as in prof_torch.operators. */
struct torch_work {
    uint32_t place; /* of the first of its operations that has one, or NO_PLACE */
    int64_t forward_ns, backward_ns, forward_operations, backward_operations;
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_torch torch;
    struct torch_work *operators;
    struct prof_stacks *stacks; /* the capture's; NULL = it has none */
    struct prof_map places;     /* stack.id -> place */
    struct prof_names rows_by_key;
    PROF_ARRAY(struct prof_pytorch_row) rows;
    struct prof_pytorch_summary *result;
};

static bool of_pytorch(const char *file)
{
    return file && strstr(file, "/torch/");
}

/* The innermost Python frame that is the program's, else the innermost of PyTorch. */
static uint32_t python_location(struct work *w, int64_t stack)
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

static bool take_operation(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    uint32_t at;
    if (op->call_ns == PROF_UNKNOWN || op->duration_ns == PROF_UNKNOWN || op->duration_ns < 0)
        return true;
    enum prof_torch_part part = prof_torch_find(&w->torch, op->thread, op->call_ns, &at);
    if (part == PROF_TORCH_OUTSIDE)
        return true;
    if (at == PROF_NO_RANGE) {
        w->result->unmatched_operations++;
        w->result->unmatched_ns = prof_add(w->result->unmatched_ns, op->duration_ns);
        return true;
    }
    bool backward = part == PROF_TORCH_BACKWARD;
    struct torch_work *found = &w->operators[at];
    int64_t *sum = backward ? &found->backward_ns : &found->forward_ns;
    *sum = prof_add(*sum, op->duration_ns);
    (*(backward ? &found->backward_operations : &found->forward_operations))++;
    if (!backward && found->place == NO_PLACE)
        found->place = python_location(w, op->stack);
    return true;
}

static enum prof_status read_work(struct work *w, struct prof_error *err)
{
    size_t count = w->torch.operators.count;
    w->operators = calloc(count + 1, sizeof *w->operators);
    if (!w->operators)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < count; i++)
        w->operators[i].place = NO_PLACE;
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = PROF_FIELD(DURATION) | PROF_FIELD(THREAD) |
                                               PROF_FIELD(STACK) | PROF_FIELD(LAUNCH),
                                     .scope = &w->scope};
    return prof_event_rows(w->capture, &query, take_operation, w, err);
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
static struct key operator_key(const struct work *w, uint32_t at)
{
    const struct prof_torch *t = &w->torch;
    struct key key = {t->operators.data[at].text, NO_MODULE, w->operators[at].place};
    for (uint32_t up = t->index.nodes.data[at].parent; up != PROF_NO_RANGE;
         up = t->index.nodes.data[up].parent) {
        const struct prof_torch_operator *outer = &t->operators.data[up];
        if (outer->sequence == PROF_UNKNOWN) {
            key.module = outer->text;
            break;
        }
        key.op = outer->text;
        key.place = key.place == NO_PLACE ? w->operators[up].place : key.place;
    }
    return key;
}

static struct prof_pytorch_row *pytorch_row(struct work *w, const struct key *key)
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
        .op = w->torch.texts.list.data[key->op],
        .module = key->module == NO_MODULE ? NULL : w->torch.texts.list.data[key->module],
        .function = place ? place->function : NULL,
        .file = place ? place->file : NULL,
        .line = place ? place->line : PROF_UNKNOWN,
    };
    return row;
}

static bool add_rows(struct work *w)
{
    for (uint32_t i = 0; i < w->torch.operators.count; i++) {
        const struct torch_work *op = &w->operators[i];
        if (!op->forward_operations && !op->backward_operations)
            continue;
        struct key key = operator_key(w, i);
        struct prof_pytorch_row *row = pytorch_row(w, &key);
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

static int by_operator_total(const void *a, const void *b)
{
    const struct prof_pytorch_row *x = a, *y = b;
    int order = prof_order(total_of(x), total_of(y), x->op, y->op);
    if (order == 0)
        order = strcmp(x->module ? x->module : "", y->module ? y->module : "");
    return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static void finish_pytorch(struct work *w, const struct prof_filter *filter,
                           struct prof_pytorch_summary *result)
{
    result->rows = w->rows.data;
    result->count = w->rows.count;
    w->rows.data = NULL;
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, by_operator_total);
    for (size_t i = 0; i < result->count; i++)
        result->listed_ns = prof_add(result->listed_ns, total_of(&result->rows[i]));
    result->wall_ns = prof_wall_ns(w->capture, filter);
    for (size_t i = 0; i < result->count; i++) {
        result->rows[i].share = prof_share(total_of(&result->rows[i]), result->listed_ns);
        result->rows[i].wall_share = prof_share(total_of(&result->rows[i]), result->wall_ns);
    }
}

static void close_pytorch_work(struct work *w)
{
    prof_torch_close(&w->torch);
    free(w->operators);
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
        status = prof_torch_open(&w.torch, capture, &w.scope, err);
    if (!status && w.torch.sequences.count)
        status = read_work(&w, err);
    prof_end(capture);
    if (!status && !add_rows(&w))
        status = prof_out_of_memory(err);
    if (!status)
        finish_pytorch(&w, filter, result);
    close_pytorch_work(&w);
    return status;
}

void prof_pytorch_summary_free(struct prof_pytorch_summary *result)
{
    free(result->rows);
    *result = (struct prof_pytorch_summary){0};
}
