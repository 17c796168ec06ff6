/* PyTorch's operators with their device work, that of the backward pass credited to the forward
 * operator that caused it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/call_tree.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "libprof/gpu/names.h"
#include "libprof/include/prof_stack.h"

#define NO_PLACE UINT32_MAX

/* Work of a forward operator; index as in prof_torch.operators. */
struct torch_work {
    uint32_t place; /* of the first of its operations that has one, or NO_PLACE */
    int64_t forward_ns, backward_ns, forward_operations, backward_operations;
    int64_t within;  /* as in prof_event_row, of both */
    double flop;     /* of the counted operators whose work is its */
    int64_t flop_ns; /* device time of those; 0 = none is counted */
    bool credited;   /* its own FLOP */
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_torch torch;
    struct torch_work *operators;
    struct prof_stacks *stacks; /* the capture's; NULL = it has none */
    struct prof_map places;     /* stack.id -> place */
    struct prof_groups rows;    /* of the result, by struct key */
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
    for (size_t i = 0; i < count; i++) /* outermost first */
        if (frames[i].kind == PROF_FRAME_PYTHON &&
            (place == NO_PLACE || !of_pytorch(frames[i].file)))
            place = frames[i].number;
    prof_map_put(&w->places, (uint64_t)stack, place);
    return place;
}

/* FLOP of the counted operator around an operation: with its first. */
static void credit_flop(struct work *w, const struct prof_event_row *op, struct torch_work *found)
{
    uint32_t product = prof_torch_product(&w->torch, op->thread, op->call_ns);
    if (product == PROF_NO_RANGE || !w->torch.operators.data[product].counted)
        return;
    found->flop_ns = prof_add(found->flop_ns, op->duration_ns);
    if (!w->operators[product].credited)
        found->flop += prof_torch_work(&w->torch, product)->flop;
    w->operators[product].credited = true;
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
    found->within = prof_add(found->within, op->within_ns);
    (*(backward ? &found->backward_operations : &found->forward_operations))++;
    if (!backward && found->place == NO_PLACE)
        found->place = python_location(w, op->stack);
    credit_flop(w, op, found);
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

/* ---- rows ------------------------------------------------------------------------------------ */

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
    bool fresh;
    const struct prof_frame *places = NULL;
    size_t count = w->stacks ? prof_stacks_places(w->stacks, &places) : 0;
    const struct prof_frame *place = key->place < count ? &places[key->place] : NULL;
    struct prof_pytorch_row *row = prof_group_of_bytes(&w->rows, key, sizeof *key, &fresh);
    if (row && fresh)
        *row = (struct prof_pytorch_row){
            .op = w->torch.texts.list.data[key->op],
            .module = key->module == NO_MODULE ? NULL : w->torch.texts.list.data[key->module],
            .function = place ? place->function : NULL,
            .file = place ? place->file : NULL,
            .line = place ? place->line : PROF_UNKNOWN,
            .flop = NAN,
            .flop_rate = NAN,
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
        row->wall_share += (double)op->within; /* divided by the wall time at the end */
        row->forward_operations += op->forward_operations;
        row->backward_operations += op->backward_operations;
        if (op->flop_ns > 0) {
            row->flop = isnan(row->flop) ? op->flop : row->flop + op->flop;
            row->flop_ns = prof_add(row->flop_ns, op->flop_ns);
            row->flop_rate = row->flop / ((double)row->flop_ns / 1e9);
        }
    }
    return true;
}

static int64_t total_of(const struct prof_pytorch_row *row)
{
    return prof_add(row->forward_ns, row->backward_ns);
}

PROF_ORDER(by_operator_total, struct prof_pytorch_row,
           prof_order(total_of(x), total_of(y), x->op, y->op),
           prof_compare_texts(x->module, y->module), PROF_ASCENDING(line))

static void finish_pytorch(struct work *w, const struct prof_filter *filter,
                           struct prof_pytorch_summary *result)
{
    result->count = w->rows.count;
    result->rows = prof_groups_take(&w->rows);
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, by_operator_total);
    for (size_t i = 0; i < result->count; i++)
        result->listed_ns = prof_add(result->listed_ns, total_of(&result->rows[i]));
    result->wall_ns = prof_wall_ns(w->capture, filter);
    for (size_t i = 0; i < result->count; i++) {
        result->rows[i].share = prof_share(total_of(&result->rows[i]), result->listed_ns);
        result->rows[i].wall_share =
            prof_share((int64_t)result->rows[i].wall_share, result->wall_ns);
    }
}

static void close_pytorch_work(struct work *w)
{
    prof_torch_close(&w->torch);
    free(w->operators);
    prof_map_free(&w->places);
    prof_groups_free(&w->rows);
    prof_scope_close(&w->scope);
}

enum prof_status prof_pytorch_summary(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_pytorch_summary *result, struct prof_error *err)
{
    struct work w = {
        .rows = PROF_GROUPS(struct prof_pytorch_row, 0), .capture = capture, .result = result};
    *result = (struct prof_pytorch_summary){0};
    enum prof_status status = prof_capture_stacks(capture, &w.stacks, err);
    status = status ?: prof_scope_open(&w.scope, capture, filter, err);
    status = status ?: prof_torch_open(&w.torch, capture, &w.scope, err);
    if (!status && w.torch.sequences.count)
        status = read_work(&w, err);
    if (!status && !add_rows(&w))
        status = prof_out_of_memory(err);
    if (!status)
        finish_pytorch(&w, filter, result);
    close_pytorch_work(&w);
    return status;
}

PROF_FREE_ROWS(prof_pytorch_summary)

/* ---- parts ----------------------------------------------------------------------------------- */

/* Ranges whose names begin so, the longer name first. Without `which`: the rest of the name up to
 * `end`. Sources: torch/utils/data/dataloader.py, torch/optim/optimizer.py, native_functions.yaml
 * of PyTorch 2.11, torch/_dynamo, ProcessGroupNCCL; the last is perfkit's own. */
static const struct part_name {
    const char *range, *what, *which;
    char end;
} part_names[] = {
    {"enumerate(DataLoader)#_SingleProcess", "data loading", "without workers", 0},
    {"enumerate(DataLoader)#_MultiProcess", "data loading", "waiting for workers", 0},
    {"Optimizer.step#", "optimizer", NULL, '.'},
#define ATTENTION(range, which)                                                                    \
    {"aten::_scaled_dot_product_" range "_backward", "attention, backward", which, 0},             \
    {                                                                                              \
        "aten::_scaled_dot_product_" range, "attention", which, 0                                  \
    }
    ATTENTION("flash_attention", "FlashAttention"),
    ATTENTION("efficient_attention", "memory-efficient"),
    ATTENTION("cudnn_attention", "cuDNN"),
    ATTENTION("fused_attention_overrideable", "of the device's library"),
    ATTENTION("attention_math", "not fused (math)"),
#undef ATTENTION
    {"Torch-Compiled Region", "compiled code", "", 0},
    {"nccl:", "collective", NULL, 0},
    {"garbage collection, ", "garbage collection", NULL, 0},
};

static const struct part_name *part_named(const char *range)
{
    for (size_t i = 0; range && i < sizeof part_names / sizeof part_names[0]; i++) {
        if (strncmp(range, part_names[i].range, strlen(part_names[i].range)) == 0)
            return &part_names[i];
    }
    return NULL;
}

enum prof_status prof_pytorch_parts(const struct prof_range_summary *ranges,
                                    struct prof_pytorch_part **parts, size_t *count,
                                    struct prof_error *err)
{
    PROF_ARRAY(struct prof_pytorch_part) made = {0};
    *parts = NULL;
    *count = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        const struct prof_range_row *row = &ranges->rows[i];
        const struct part_name *name = row->domain ? NULL : part_named(row->name);
        struct prof_pytorch_part *part = name ? prof_array_add(&made) : NULL;
        if (name && !part) {
            prof_array_free(&made);
            return prof_out_of_memory(err);
        }
        if (!part)
            continue;
        const char *rest = row->name + strlen(name->range);
        const char *end = name->end ? strchr(rest, name->end) : NULL;
        size_t length = end ? (size_t)(end - rest) : strlen(rest);
        *part = (struct prof_pytorch_part){.what = name->what, .range = row};
        if (!name->which)
            snprintf(part->which, sizeof part->which, "%.*s",
                     length < sizeof part->which ? (int)length
                                                 : prof_report_head(rest, sizeof part->which - 1),
                     rest);
        else
            snprintf(part->which, sizeof part->which, "%s", name->which);
    }
    *parts = made.data;
    *count = made.count;
    return PROF_OK;
}

/* ---- operators ------------------------------------------------------------------------------- */

#define ENGINE "autograd::engine::evaluate_function: "

static bool add_sequence(void *user, sqlite3_stmt *row)
{
    struct prof_torch *t = user;
    return prof_map_put(&t->sequences, (uint64_t)sqlite3_column_int64(row, 0),
                        (uint64_t)sqlite3_column_int64(row, 1));
}

static bool add_inputs(void *user, sqlite3_stmt *row)
{
    struct prof_torch *t = user;
    return prof_map_put(&t->inputs, (uint64_t)sqlite3_column_int64(row, 0),
                        (uint64_t)sqlite3_column_int64(row, 1));
}

/* What the operator computed, worked out once for all calls of that name with those inputs. */
static uint32_t operator_work(struct prof_torch *t, const struct prof_event_row *row,
                              const char *name)
{
    const uint64_t *known = prof_map_get(&t->inputs, (uint64_t)row->id);
    uint64_t inputs = known ? *known : 0;
    bool fresh;
    uint32_t at =
        prof_group_number(&t->by_call, (uint64_t)row->name << 32 | (uint32_t)inputs, &fresh);
    if (at == PROF_NO_GROUP || !fresh)
        return at;
    const char *text = inputs ? prof_string(t->capture, (int64_t)inputs, NULL) : NULL;
    struct prof_operator_flop *slot = prof_array_add(&t->works);
    if (!slot)
        return PROF_NO_GROUP;
    *slot = prof_operator_flop(name, text);
    return at;
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
    uint32_t work = operator_work(t, row, name);
    if (work == PROF_NO_GROUP)
        return PROF_NO_GROUP;
    *made = (struct prof_torch_operator){
        .sequence = sequence ? (int64_t)*sequence : PROF_UNKNOWN,
        .thread = row->thread,
        .process = thread ? thread->process : 0,
        .text = text,
        .engine = name && strncmp(name, ENGINE, sizeof ENGINE - 1) == 0,
        .work = work,
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
    return PROF_COMPARE(p->process, q->process) ?: PROF_COMPARE(p->sequence, q->sequence)
           ?: PROF_COMPARE(x, y); /* ranges are read in order of start */
}

/* What the engine does around a counted operator (adding up the gradient of a broadcast bias) is
 * that operator's too: the engine's range takes its number where it has none. */
static void number_engine(struct prof_torch *t, uint32_t parent, int64_t sequence)
{
    struct prof_torch_operator *outer = parent == PROF_NO_RANGE ? NULL : &t->operators.data[parent];
    if (outer && outer->engine && outer->sequence == PROF_UNKNOWN)
        outer->sequence = sequence;
}

/* Of operators within each other the innermost counts whose FLOP are known: linear calls addmm,
 * with the types that autocast chose. Outer ranges have lower numbers. */
static void count_operators(struct prof_torch *t)
{
    for (size_t i = t->operators.count; i-- > 0;) {
        struct prof_torch_operator *op = &t->operators.data[i];
        uint32_t parent = t->index.nodes.data[i].parent;
        op->counted = !op->inner && !isnan(t->works.data[op->work].flop);
        if (parent != PROF_NO_RANGE)
            t->operators.data[parent].inner |= op->counted || op->inner;
    }
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
    prof_array_sort(&t->forward, by_number);
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
    if (!status)
        status = prof_scan(capture, "SELECT range, inputs FROM range_inputs WHERE inputs NOT NULL",
                           add_inputs, t, err);
    if (status || (!t->sequences.count && !t->inputs.count))
        return status;
    struct prof_scope places = prof_scope_of_ranges(scope);
    status = prof_range_index_open(&t->index, capture, &places, take_range, t, err);
    if (!status && !sort_out(t))
        status = prof_out_of_memory(err);
    if (!status)
        count_operators(t);
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

uint32_t prof_torch_product(struct prof_torch *t, int64_t thread, int64_t call_ns)
{
    struct prof_range_thread *lanes = t->inputs.count ? prof_range_thread(&t->index, thread) : NULL;
    uint32_t innermost = PROF_NO_RANGE;
    for (size_t i = 0; lanes && i < lanes->lanes.count; i++) {
        uint32_t at = prof_range_at(&t->index, &lanes->lanes.data[i], call_ns);
        for (; at != PROF_NO_RANGE; at = t->index.nodes.data[at].parent) {
            if (t->operators.data[at].counted)
                return at;
            if (innermost == PROF_NO_RANGE && prof_torch_work(t, at)->formula)
                innermost = at;
        }
    }
    return innermost;
}

void prof_torch_close(struct prof_torch *t)
{
    prof_map_free(&t->sequences);
    prof_map_free(&t->inputs);
    prof_map_free(&t->by_call);
    prof_array_free(&t->works);
    prof_texts_free(&t->texts);
    prof_range_index_close(&t->index);
    prof_array_free(&t->operators);
    prof_array_free(&t->forward);
}

bool prof_pytorch_is_operator(const struct prof_event *range)
{
    if (range->domain || !range->name)
        return false;
    bool annotation = !strncmp(range->name, "nccl:", 5) || !strncmp(range->name, "gloo:", 5);
    return (prof_range_name_is_operator(range->name) && !annotation) ||
           (range->category_name && !strcmp(range->category_name, "cpu_op"));
}
