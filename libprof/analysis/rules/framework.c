/* What PyTorch's own ranges around launches, copies and waits say of a finding: which operator
 * makes them, and what its user calls instead (perfkit run --pytorch records the ranges). */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"

/* How anomaly detection looks through a gradient, in PyTorch's operators, one behind the other. */
#define FIRST_OF_CHECK "aten::isnan"
#define CHECK "aten::_is_any_true"
#define LAST_OF_CHECK "aten::item"

/* Ranges whose names begin so; what they are as a sentence goes on, and what to do about them. */
static const struct remedy {
    const char *range;
    enum prof_advice what;
    const char *is, *fix;
    enum {
        ANY,
        IN_ROWS, /* only of launches that come one after the other */
        GOES,    /* with its kernels */
        CHECKS,  /* ... and what isnan before it and item behind it do; slows the host all the time
                  */
    } kind;
} remedies[] = {
    {"Optimizer.step#", PROF_ADVICE_LAUNCHES, "the optimizer's step",
     "Pass fused=True or foreach=True to the optimizer.", ANY},
    {"aten::lstm_cell", PROF_ADVICE_LAUNCHES, "an LSTMCell, called for each time step",
     "Call nn.LSTM, once for the whole sequence.", ANY},
    {"aten::gru_cell", PROF_ADVICE_LAUNCHES, "a GRUCell, called for each time step",
     "Call nn.GRU, once for the whole sequence.", ANY},
    {"aten::rnn_tanh_cell", PROF_ADVICE_LAUNCHES, "an RNNCell, called for each time step",
     "Call nn.RNN, once for the whole sequence.", ANY},
    {"aten::rnn_relu_cell", PROF_ADVICE_LAUNCHES, "an RNNCell, called for each time step",
     "Call nn.RNN, once for the whole sequence.", ANY},
    {"aten::add_", PROF_ADVICE_LAUNCHES, "updates of one tensor after the other",
     "Update the list of tensors in one call: torch._foreach_add_, _foreach_mul_, "
     "_foreach_lerp_ and their like.",
     IN_ROWS},
    {"aten::nonzero", PROF_ADVICE_WAITS,
     "nonzero (also of x[mask]), whose result has a size to wait for",
     "Keep sizes known: torch.where(mask, a, b), a product with the mask, or topk.", GOES},
    {"aten::masked_select", PROF_ADVICE_WAITS, "masked_select, whose result has a size to wait for",
     "Keep sizes known: torch.where(mask, a, b), or a product with the mask.", GOES},
    {"aten::bincount", PROF_ADVICE_WAITS, "bincount, whose result has a size to wait for",
     "Count by index_add_ or scatter_add_ into zeros of a known size.", GOES},
    {"aten::_unique", PROF_ADVICE_WAITS, "unique, whose result has a size to wait for",
     "Call unique before the loop, or sort and compare neighbours.", GOES},
    {"aten::repeat_interleave", PROF_ADVICE_WAITS,
     "repeat_interleave, whose result has a size to wait for",
     "Pass output_size=N to repeat_interleave: the size is then known.", ANY},
    {CHECK, PROF_ADVICE_WAITS,
     "torch.autograd's anomaly detection, which looks through each gradient and keeps a traceback "
     "of "
     "each operator",
     "Turn detect_anomaly() and set_detect_anomaly(True) off: they help to find a NaN.", CHECKS},
    {"aten::_local_scalar_dense", PROF_ADVICE_WAITS, ".item(), float(tensor) or `if tensor:`",
     "Keep the tensor (.detach()), and read it every k steps.", ANY},
    {"enumerate(DataLoader)#_SingleProcess", PROF_ADVICE_HOST, "a DataLoader without workers",
     "Prepare batches ahead: DataLoader(num_workers=N, pin_memory=True).", ANY},
    {"enumerate(DataLoader)#_MultiProcess", PROF_ADVICE_HOST,
     "waiting for the DataLoader's workers",
     "Give the DataLoader more num_workers, a larger prefetch_factor, or less work a sample.", ANY},
};
#define REMEDIES (sizeof remedies / sizeof remedies[0])
#define BESIDE 255 /* in place of a remedy's number: a range that may be one of a check's */
#define MOST_PART (2.0 / 3) /* of what a finding counts, from which the remedy is its fix */
#define MAIN_PART 0.3       /* of what a finding counts, that one remedy must be about */

/* What a remedy is about, within the phase. */
struct use {
    int64_t operations, ranges, host_ns;
};

/* Operators in place that PyTorch has for lists of tensors too. */
static bool is_update(const char *name)
{
    static const char *const names[] = {"add_",  "sub_", "mul_",   "div_",        "lerp_",
                                        "sqrt_", "neg_", "pow_",   "reciprocal_", "addcmul_",
                                        "abs_",  "exp_", "clamp_", "clamp_min_",  "addcdiv_"};
    static const char space[] = "aten::";
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        found |=
            !strncmp(name, space, sizeof space - 1) && !strcmp(name + sizeof space - 1, names[i]);
    return found;
}

static bool is_about(const struct remedy *remedy, const char *name)
{
    return remedy->kind == IN_ROWS ? is_update(name)
                                   : !strncmp(name, remedy->range, strlen(remedy->range));
}

static void mark_what_may_be_of_checks(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    for (size_t i = 0; i < f->range_texts.list.count; i++) {
        const char *text = f->range_texts.list.data[i];
        if (text && (!strcmp(text, FIRST_OF_CHECK) || !strcmp(text, LAST_OF_CHECK)))
            judge->remedies[i] = BESIDE;
    }
}

/* Of the texts of ranges, once for all phases. */
static void find_remedies(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    bool checks = false;
    judge->knows_remedies = true;
    for (size_t i = 0; i < f->range_texts.list.count; i++) {
        const char *text = f->range_texts.list.data[i];
        for (size_t k = 0; text && k < REMEDIES; k++) {
            if (!is_about(&remedies[k], text))
                continue;
            if (!judge->remedies)
                judge->remedies = calloc(f->range_texts.list.count, 1);
            if (!judge->remedies) {
                judge->failed = true;
                return;
            }
            judge->remedies[i] = (unsigned char)(k + 1);
            checks |= remedies[k].kind == CHECKS;
        }
    }
    if (checks)
        mark_what_may_be_of_checks(judge);
}

#define NEAR 256 /* ranges of all threads, among which the next of one thread is looked for */

/* The range before (step -1) or behind (1) a range within the same one, if it has that name; NULL =
 * it has not, or is not near. */
static const struct prof_range_node *
sibling(const struct prof_facts *f, const struct prof_range_node *node, int step, const char *name)
{
    const struct prof_range_node *nodes = f->ranges.nodes.data;
    bool has_parent = node->parent != PROF_NO_RANGE;
    int64_t at = node - nodes, count = (int64_t)f->ranges.nodes.count;
    int64_t end = has_parent ? nodes[node->parent].end : INT64_MAX;
    for (int i = 0; i < NEAR; i++) {
        at += step;
        if (at < 0 || at >= count || (has_parent && at == (int64_t)node->parent) ||
            nodes[at].begin >= end)
            return NULL;
        if (nodes[at].thread != node->thread || nodes[at].parent != node->parent)
            continue;
        const char *text = f->range_texts.list.data[nodes[at].group];
        return text && !strcmp(text, name) ? &nodes[at] : NULL;
    }
    return NULL;
}

/* The range with a remedy that `node` is part of, itself if it has one; NULL = none. */
static const struct prof_range_node *remedy_of(const struct prof_facts *f,
                                               const unsigned char *of_text,
                                               const struct prof_range_node *node)
{
    if (of_text[node->group] != BESIDE)
        return of_text[node->group] ? node : NULL;
    bool last = !strcmp(f->range_texts.list.data[node->group], LAST_OF_CHECK);
    return sibling(f, node, last ? -1 : 1, CHECK);
}

/* When what a remedy is about begins and ends. */
struct span {
    int64_t begin, end;
};

/* `x[mask]` is an operator around the one that waits: both go. */
static const struct prof_range_node *with_indexing(const struct prof_facts *f,
                                                   const struct prof_range_node *node)
{
    static const char indexing[] = "aten::index";
    const struct prof_range_node *parent =
        node->parent == PROF_NO_RANGE ? NULL : &f->ranges.nodes.data[node->parent];
    const char *name = parent ? f->range_texts.list.data[parent->group] : NULL;
    return name && !strncmp(name, indexing, sizeof indexing - 1) ? parent : node;
}

static struct span whole_span(const struct prof_facts *f, const struct remedy *remedy,
                              const struct prof_range_node *node)
{
    if (remedy->kind == CHECKS) {
        const struct prof_range_node *first = sibling(f, node, -1, FIRST_OF_CHECK),
                                     *last = sibling(f, node, 1, LAST_OF_CHECK);
        return (struct span){first ? first->begin : node->begin, last ? last->end : node->end};
    }
    node = with_indexing(f, node);
    return (struct span){node->begin, node->end};
}

static void add_range(struct use *use, struct span span)
{
    use->ranges++;
    use->host_ns = prof_add(use->host_ns, prof_subtract(span.end, span.begin));
}

/* The outermost range with a remedy of that kind around a call: what an optimizer's step or a cell
 * launches is theirs. Not an operator that goes and has no end: all that comes later is in it. */
static const struct prof_range_node *find_remedy_range(const struct prof_facts *f,
                                                       const unsigned char *of_text,
                                                       enum prof_advice what, uint32_t thread,
                                                       int64_t time)
{
    /* Searching moves a lane's hint only: the index stays what it is. */
    struct prof_range_index *ranges = (struct prof_range_index *)(uintptr_t)&f->ranges;
    struct prof_range_thread *lanes = prof_range_thread(ranges, thread);
    const struct prof_range_node *found = NULL;
    for (size_t l = 0; lanes && l < lanes->lanes.count && !found; l++) {
        uint32_t at = prof_range_at(ranges, &lanes->lanes.data[l], time);
        for (; at != PROF_NO_RANGE; at = ranges->nodes.data[at].parent) {
            const struct prof_range_node *node = remedy_of(f, of_text, &ranges->nodes.data[at]);
            const struct remedy *remedy = node ? &remedies[of_text[node->group] - 1] : NULL;
            if (remedy && remedy->what == what &&
                (remedy->kind < GOES || whole_span(f, remedy, node).end != INT64_MAX))
                found = node;
        }
    }
    return found;
}

/* A few updates between others are how networks are written; so many in a row are a list. */
#define ROW 8

/* Who makes the operations that findings of one kind count. */
struct makers {
    struct prof_judge *judge;
    const unsigned char *of_text;
    enum prof_advice what;
    struct use uses[REMEDIES];
    struct prof_map all;                /* thread -> operations: what autograd launches for them on
                                           its own thread is in no range of theirs */
    struct prof_map made;               /* thread << 8 | remedy, where there are any */
    const struct prof_range_node *last; /* range of the operation before */
    struct span gone;                   /* the last operator that goes, with x[mask] around it */
    uint32_t gone_thread;
    size_t gone_remedy;
    int64_t row;        /* updates up to now with no other operation between */
    struct use pending; /* of them those that are not counted yet */
    uint32_t row_thread;
    int64_t *goes_ns; /* by remedy and shape: kernels that go with their operator; NULL = none */
};

static void add_use(struct use *use, const struct use *more)
{
    use->operations += more->operations;
    use->ranges += more->ranges;
    use->host_ns = prof_add(use->host_ns, more->host_ns);
}

static void add_operator_operation(struct makers *m, unsigned char number, const struct prof_op *op,
                                   const struct prof_range_node *node)
{
    const struct remedy *remedy = &remedies[number - 1];
    bool rows = remedy->kind == IN_ROWS;
    struct use one = {.operations = 1};
    if (node != m->last)
        add_range(&one, whole_span(m->judge->facts, remedy, node));
    m->last = node;
    m->row = rows && op->thread == m->row_thread ? m->row + 1 : rows;
    m->row_thread = op->thread;
    if (m->row <= 1)
        m->pending = (struct use){0};
    add_use(&m->pending, &one);
    if (rows && m->row < ROW)
        return;
    add_use(&m->uses[number - 1], &m->pending);
    m->pending = (struct use){0};
    m->judge->failed |= !prof_map_put(&m->made, (uint64_t)op->thread << 8 | number, 1);
}

static void sum_operation(struct makers *m, const struct prof_op *op, enum prof_op_kind kind)
{
    const struct prof_facts *f = m->judge->facts;
    bool kernel = kind == PROF_OP_KERNEL, launches = m->what == PROF_ADVICE_LAUNCHES;
    bool counts = launches ? kernel : prof_is_scalar_readback(&f->shapes.data[op->shape]);
    if (!counts && !(kernel && m->goes_ns))
        return;
    const struct prof_range_node *node =
        find_remedy_range(f, m->of_text, m->what, op->thread, op->call);
    unsigned char number = node ? m->of_text[node->group] : 0;
    if (number && remedies[number - 1].kind >= GOES) {
        m->gone = whole_span(f, &remedies[number - 1], node);
        m->gone_thread = op->thread;
        m->gone_remedy = number - 1u;
    }
    if (kernel && m->goes_ns && op->thread == m->gone_thread && op->call >= m->gone.begin &&
        op->call < m->gone.end) {
        int64_t *sum = &m->goes_ns[m->gone_remedy * f->shapes.count + op->shape];
        *sum = prof_add(*sum, op->duration);
    }
    if (!counts)
        return;
    const uint64_t *before = prof_map_get(&m->all, op->thread);
    m->judge->failed |= !prof_map_put(&m->all, op->thread, before ? *before + 1 : 1);
    if (number)
        add_operator_operation(m, number, op, node);
    else
        m->row = 0;
}

static void sum_operations(struct makers *m)
{
    const struct prof_facts *f = m->judge->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    while ((op = prof_facts_next_in_phase(f, &walk, &kind)))
        if (f->shapes.data[op->shape].device == m->judge->device_index &&
            op->call != PROF_UNKNOWN && prof_facts_called(f, op->call))
            sum_operation(m, op, kind);
}

/* Operations of the threads that make some of the remedy's. */
static int64_t operations_beside(const struct makers *m, size_t remedy)
{
    uint64_t thread, count;
    size_t at = 0;
    int64_t sum = 0;
    while (prof_map_next(&m->all, &at, &thread, &count))
        if (prof_map_get(&m->made, thread << 8 | (remedy + 1)))
            sum += (int64_t)count;
    return sum;
}

static void sum_host(const struct prof_facts *f, const unsigned char *of_text, struct use *uses)
{
    size_t count = f->ranges.nodes.count;
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_ranges, count, &at, &i);) {
        const struct prof_range_node *node = &f->ranges.nodes.data[i];
        unsigned char number = of_text[node->group];
        if (number && number != BESIDE && remedies[number - 1].what == PROF_ADVICE_HOST &&
            prof_facts_called(f, node->begin))
            add_range(&uses[number - 1], (struct span){node->begin, node->end});
    }
}

/* Where the host is what the device waits for, an operator that need not be costs all its time
 * there.
 */
static void claim_operator(struct prof_judge *judge, struct prof_draft *draft, int64_t host_ns)
{
    static const enum prof_slice waiting[] = {PROF_SLICE_SYNC, PROF_SLICE_COPY_CALL,
                                              PROF_SLICE_LAUNCH, PROF_SLICE_HOST};
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++)
        host_ns -= draft->claims[waiting[i]];
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0] && host_ns > 0; i++) {
        int64_t before = draft->claims[waiting[i]];
        prof_claim(judge, draft, "operator_host_ns", waiting[i], host_ns);
        host_ns -= draft->claims[waiting[i]] - before;
    }
}

/* Is the host known to do something else, too, for which the device may wait? */
static bool loads_data(const struct prof_judge *judge)
{
    for (size_t i = 0; i < judge->facts->range_texts.list.count; i++) {
        unsigned char number = judge->remedies[i];
        if (number && number != BESIDE && remedies[number - 1].what == PROF_ADVICE_HOST)
            return true;
    }
    return false;
}

static void advise(struct prof_judge *judge, struct prof_draft *draft, const struct remedy *remedy,
                   const struct use *use, int64_t all, const int64_t *goes_ns)
{
    double part = all > 0 ? (double)use->operations / (double)all : 1;
    if (remedy->what == PROF_ADVICE_HOST) {
        int64_t host = judge->device->slice_ns[PROF_SLICE_HOST];
        part = host > 0 ? (double)use->host_ns / (double)host : 0;
        part = part < 1 ? part : 1;
    }
    if (part < MAIN_PART)
        return;
    draft->finding.names_no_cause = false;
    prof_numbers(draft, {"operator_share", part});
    bool most = part >= MOST_PART;
    draft->finding.fix = most ? remedy->fix : draft->finding.fix;
    prof_say(draft, " {operator_share} of %s of %s.%s%s",
             remedy->what == PROF_ADVICE_LAUNCHES ? "the launches are"
             : remedy->what == PROF_ADVICE_WAITS  ? "these reads are"
                                                  : "that time is",
             remedy->is, most ? "" : " ", most ? "" : remedy->fix);
    if (remedy->what == PROF_ADVICE_WAITS)
        claim_operator(judge, draft,
                       remedy->kind == CHECKS && most && !loads_data(judge) ? INT64_MAX
                                                                            : use->host_ns);
    const struct prof_shape *shape;
    for (size_t at = 0; goes_ns && (shape = prof_next_shape(judge, &at));)
        if (shape->sum_ns > 0)
            prof_claim_kernel(judge, draft, shape,
                              (double)goes_ns[shape - judge->facts->shapes.data] /
                                  (double)shape->sum_ns);
}

bool prof_advise(struct prof_judge *judge, struct prof_draft *draft, enum prof_advice what)
{
    const struct prof_facts *f = judge->facts;
    if (!judge->knows_remedies)
        find_remedies(judge);
    struct makers m = {.judge = judge, .of_text = judge->remedies, .what = what};
    size_t best = REMEDIES;
    if (!judge->remedies)
        return false;
    if (what == PROF_ADVICE_WAITS) {
        m.goes_ns = calloc(f->shapes.count * REMEDIES + 1, sizeof *m.goes_ns);
        judge->failed |= !m.goes_ns;
    }
    if (what == PROF_ADVICE_HOST)
        sum_host(f, m.of_text, m.uses);
    else
        sum_operations(&m);
    for (size_t k = 0; k < REMEDIES; k++)
        if (m.uses[k].ranges && (best == REMEDIES || m.uses[k].host_ns > m.uses[best].host_ns))
            best = k;
    if (best < REMEDIES)
        advise(judge, draft, &remedies[best], &m.uses[best], operations_beside(&m, best),
               m.goes_ns ? m.goes_ns + best * f->shapes.count : NULL);
    prof_map_free(&m.all);
    prof_map_free(&m.made);
    free(m.goes_ns);
    return best < REMEDIES;
}
