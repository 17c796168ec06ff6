/* What PyTorch's own ranges around launches, copies and waits say of a finding: which operator
 * makes them, and what its user calls instead (perfkit run --pytorch records the ranges). */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"

/* Ranges whose names begin so; what they are as a sentence goes on, and the remedy. */
static const struct remedy {
    const char *range;
    enum prof_advice what;
    const char *is, *call;
} remedies[] = {
    {"Optimizer.step#", PROF_ADVICE_LAUNCHES, "the optimizer's step",
     "pass fused=True or foreach=True to the optimizer"},
    {"aten::lstm_cell", PROF_ADVICE_LAUNCHES, "an LSTMCell, called for each time step",
     "nn.LSTM computes the whole sequence in one call"},
    {"aten::gru_cell", PROF_ADVICE_LAUNCHES, "a GRUCell, called for each time step",
     "nn.GRU computes the whole sequence in one call"},
    {"aten::rnn_tanh_cell", PROF_ADVICE_LAUNCHES, "an RNNCell, called for each time step",
     "nn.RNN computes the whole sequence in one call"},
    {"aten::rnn_relu_cell", PROF_ADVICE_LAUNCHES, "an RNNCell, called for each time step",
     "nn.RNN computes the whole sequence in one call"},
    {"aten::nonzero", PROF_ADVICE_WAITS,
     "nonzero (also of x[mask]), whose result has a size to wait for",
     "torch.where(mask, a, b), a product with the mask, or topk have a size that is known"},
    {"aten::masked_select", PROF_ADVICE_WAITS, "masked_select, whose result has a size to wait for",
     "torch.where(mask, a, b) or a product with the mask has a size that is known"},
    {"aten::_local_scalar_dense", PROF_ADVICE_WAITS, ".item(), float(tensor) or `if tensor:`",
     "keep the tensor (.detach()), and read it every k steps"},
    {"enumerate(DataLoader)#_SingleProcess", PROF_ADVICE_HOST, "a DataLoader without workers",
     "DataLoader(num_workers=N, pin_memory=True) prepares batches ahead"},
    {"enumerate(DataLoader)#_MultiProcess", PROF_ADVICE_HOST,
     "waiting for the DataLoader's workers",
     "more num_workers, a larger prefetch_factor, or less work for each sample"},
};
#define REMEDIES (sizeof remedies / sizeof remedies[0])
#define MAIN_PART 0.3 /* of what a finding counts, that one remedy must be about */

/* What a remedy is about, within the phase. */
struct use {
    int64_t operations, ranges, host_ns;
    uint32_t thread; /* of the last operation */
};

/* By number of a text of the ranges, 1 + the remedy; NULL = there is none for any of them. */
static unsigned char *find_remedies(const struct prof_facts *f)
{
    unsigned char *of_text = NULL;
    for (size_t i = 0; i < f->range_texts.list.count; i++) {
        const char *text = f->range_texts.list.data[i];
        for (size_t k = 0; text && k < REMEDIES; k++) {
            if (strncmp(text, remedies[k].range, strlen(remedies[k].range)) != 0)
                continue;
            of_text = of_text ? of_text : calloc(f->range_texts.list.count, 1);
            if (!of_text)
                return NULL;
            of_text[i] = (unsigned char)(k + 1);
        }
    }
    return of_text;
}

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

static void add_range(struct use *use, const struct prof_range_node *node)
{
    use->ranges++;
    use->host_ns = prof_add(use->host_ns, prof_subtract(node->end, node->begin));
}

/* The innermost range with a remedy of that kind around a call. */
static const struct prof_range_node *find_remedy_range(struct prof_range_index *ranges,
                                                       const unsigned char *of_text,
                                                       enum prof_advice what, uint32_t thread,
                                                       int64_t time)
{
    struct prof_range_thread *lanes = prof_range_thread(ranges, thread);
    for (size_t l = 0; lanes && l < lanes->lanes.count; l++) {
        uint32_t at = prof_range_at(ranges, &lanes->lanes.data[l], time);
        for (; at != PROF_NO_RANGE; at = ranges->nodes.data[at].parent) {
            unsigned char number = of_text[ranges->nodes.data[at].group];
            if (number && remedies[number - 1].what == what)
                return &ranges->nodes.data[at];
        }
    }
    return NULL;
}

/* Of the operations that findings of this kind count, who makes them. `all`: their number by
 * thread: what autograd launches for them on its own thread is in no range of theirs. */
static void sum_operations(struct prof_judge *judge, const unsigned char *of_text,
                           enum prof_advice what, struct use *uses, struct prof_map *all)
{
    const struct prof_facts *f = judge->facts;
    /* Searching moves a lane's hint only: the index stays what it is. */
    struct prof_range_index *ranges = (struct prof_range_index *)(uintptr_t)&f->ranges;
    const struct prof_range_node *last = NULL;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    while ((op = prof_facts_next(f, &walk, &kind))) {
        const struct prof_shape *shape = &f->shapes.data[op->shape];
        bool counts =
            what == PROF_ADVICE_LAUNCHES ? kind == PROF_OP_KERNEL : prof_is_scalar_readback(shape);
        if (!counts || shape->device != judge->device_index || op->call == PROF_UNKNOWN ||
            !prof_facts_called(f, op->call))
            continue;
        const uint64_t *before = prof_map_get(all, op->thread);
        judge->failed |= !prof_map_put(all, op->thread, before ? *before + 1 : 1);
        const struct prof_range_node *node =
            find_remedy_range(ranges, of_text, what, op->thread, op->call);
        if (!node)
            continue;
        struct use *use = &uses[of_text[node->group] - 1];
        use->operations++;
        use->thread = op->thread;
        if (node != last)
            add_range(use, with_indexing(f, node));
        last = node;
    }
}

static void sum_host(const struct prof_facts *f, const unsigned char *of_text, struct use *uses)
{
    for (size_t i = 0; i < f->ranges.nodes.count; i++) {
        const struct prof_range_node *node = &f->ranges.nodes.data[i];
        unsigned char number = of_text[node->group];
        if (number && remedies[number - 1].what == PROF_ADVICE_HOST &&
            prof_facts_called(f, node->begin))
            add_range(&uses[number - 1], node);
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

static void advise(struct prof_judge *judge, struct prof_draft *draft, const struct remedy *remedy,
                   const struct use *use, int64_t all)
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
    prof_say(draft, " {operator_share} of %s of %s: %s.",
             remedy->what == PROF_ADVICE_LAUNCHES ? "the launches are"
             : remedy->what == PROF_ADVICE_WAITS  ? "these reads are"
                                                  : "that time is",
             remedy->is, remedy->call);
    if (remedy->what == PROF_ADVICE_WAITS)
        claim_operator(judge, draft, use->host_ns);
}

bool prof_advise(struct prof_judge *judge, struct prof_draft *draft, enum prof_advice what)
{
    const struct prof_facts *f = judge->facts;
    struct use uses[REMEDIES] = {0};
    unsigned char *of_text = find_remedies(f);
    size_t best = REMEDIES;
    struct prof_map all = {0};
    if (!of_text)
        return false;
    if (what == PROF_ADVICE_HOST)
        sum_host(f, of_text, uses);
    else
        sum_operations(judge, of_text, what, uses, &all);
    for (size_t k = 0; k < REMEDIES; k++)
        if (uses[k].ranges && (best == REMEDIES || uses[k].host_ns > uses[best].host_ns))
            best = k;
    if (best < REMEDIES) {
        const uint64_t *count = prof_map_get(&all, uses[best].thread);
        advise(judge, draft, &remedies[best], &uses[best], count ? (int64_t)*count : 0);
    }
    prof_map_free(&all);
    free(of_text);
    return best < REMEDIES;
}
