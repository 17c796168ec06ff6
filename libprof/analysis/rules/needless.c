/* The rule about operators of PyTorch that change nothing, by their ranges (perfkit run --pytorch):
 * who launches a kernel, and which node of the graph for the backward pass an operator makes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"

/* What a range of PyTorch's says of kernels launched in it. */
enum role {
    NO_ROLE,
    ADDS,      /* aten::add_ */
    CONVOLVES, /* aten::_convolution: adds the bias that cuDNN did not */
    CONVOLUTION_BACKWARD,
    SUMS,        /* aten::sum */
    NORMS,       /* aten::batch_norm */
    ZEROES,      /* Optimizer.zero_grad */
    ACCUMULATES, /* torch::autograd::AccumulateGrad */
    BACKWARD,    /* any node of a backward pass */
    MULTIPLIES,  /* what torch.autocast converts the arguments of */
    CASTS,       /* aten::_to_copy */
    LAYS_OUT,    /* aten::contiguous */
    ROLES,
};

static const struct {
    enum role role;
    const char *text;
    bool begins; /* the range's name does */
} role_texts[] = {
    {ADDS, "aten::add_", false},
    {CONVOLVES, "aten::_convolution", false},
    {CONVOLUTION_BACKWARD, "aten::convolution_backward", false},
    {SUMS, "aten::sum", false},
    {NORMS, "aten::batch_norm", false},
    {ZEROES, "Optimizer.zero_grad#", true},
    {ACCUMULATES, "torch::autograd::AccumulateGrad", false},
    {BACKWARD, "autograd::engine::evaluate_function: ", true},
    {MULTIPLIES, "aten::linear", false},
    {MULTIPLIES, "aten::matmul", false},
    {MULTIPLIES, "aten::conv", true},
    {CASTS, "aten::_to_copy", false},
    {LAYS_OUT, "aten::contiguous", false},
};

enum needless {
    BIAS,          /* of a convolution whose result batch norm makes free of it again */
    BIAS_GRADIENT, /* of any convolution */
    ZERO,
    ACCUMULATION,
    FIRST_ACCUMULATION, /* of those, by the first backward pass after a fill */
    CAST,               /* by torch.autocast, of what no backward pass needs */
    COPY,               /* by tensor.contiguous() */
    NEEDLESS,
};

/* What the last backward pass left of gradients that were filled. */
enum gradients { ADDED_TO, FILLED, FIRST_PASS };

struct operators {
    struct prof_judge *judge;
    const unsigned char *roles; /* by number of a range's text */
    int64_t *ns;                /* by kind and shape */
    int64_t count[NEEDLESS];
    int64_t biases; /* with those that no batch norm follows */
    bool at_once;   /* one kernel fills many gradients */
    bool backward;  /* kernels of a backward pass are there */
    enum gradients gradients;
    bool waits;          /* for a batch norm, nothing having come in between */
    struct prof_op bias; /* the last one */
    struct prof_spots spots[NEEDLESS];
};

/* Of the texts of ranges, once for all phases. */
static void find_roles(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    judge->roles = calloc(f->range_texts.list.count + 1, 1);
    for (size_t i = 0; judge->roles && i < f->range_texts.list.count; i++) {
        const char *text = f->range_texts.list.data[i];
        for (size_t r = 0; text && r < sizeof role_texts / sizeof *role_texts; r++) {
            const char *of = role_texts[r].text;
            enum role role = role_texts[r].role;
            if (role_texts[r].begins ? !strncmp(text, of, strlen(of)) : !strcmp(text, of))
                judge->roles[i] = judge->roles[i] ? judge->roles[i] : (unsigned char)role;
        }
        judge->names_needless |= judge->roles[i] == NORMS || judge->roles[i] == ZEROES ||
                                 judge->roles[i] == CASTS || judge->roles[i] == LAYS_OUT;
    }
    judge->failed |= !judge->roles;
}

/* The roles of the ranges around a call as bits, and of the two innermost ones. */
struct around {
    unsigned all;
    enum role inner, outer;
    enum role first; /* of the outermost operator, which the program calls itself */
};

static struct around ranges_around(const struct operators *o, const struct prof_op *op)
{
    const struct prof_facts *f = o->judge->facts;
    /* Searching moves a lane's hint only: the index stays what it is. */
    struct prof_range_index *ranges = (struct prof_range_index *)(uintptr_t)&f->ranges;
    struct prof_range_thread *lanes = prof_range_thread(ranges, op->thread);
    struct around around = {0};
    for (size_t l = 0; lanes && l < lanes->lanes.count && !around.all; l++) {
        uint32_t at = prof_range_at(ranges, &lanes->lanes.data[l], op->call);
        for (int depth = 0; at != PROF_NO_RANGE; at = ranges->nodes.data[at].parent, depth++) {
            uint32_t group = ranges->nodes.data[at].group;
            enum role role = o->roles[group];
            around.all |= 1u << role;
            around.first = f->is_operator[group] ? role : around.first;
            around.inner = depth == 0 ? role : around.inner;
            around.outer = depth == 1 ? role : around.outer;
        }
        around.all &= ~(1u << NO_ROLE);
    }
    return around;
}

static void add_needless(struct operators *o, enum needless kind, const struct prof_op *op)
{
    int64_t *sum = &o->ns[(size_t)kind * o->judge->facts->shapes.count + op->shape];
    *sum = prof_add(*sum, op->duration);
    o->count[kind]++;
    prof_spots_add(&o->spots[kind],
                   (struct prof_spot){op->start, op->duration, op->stream, op->thread, op->shape});
}

/* Between a bias and its batch norm that counts its batches. */
static void follow_bias(struct operators *o, const struct prof_op *op, const struct around *around)
{
    if (!o->waits || o->bias.thread != op->thread)
        return;
    if (around->all & 1u << NORMS)
        add_needless(o, BIAS, &o->bias);
    o->waits = around->inner == ADDS && !(around->all & 1u << NORMS);
}

/* A backward pass adds to each gradient once, and ends with the next kernel that is none of its
 * own: the next pass adds to what this one left. */
static void follow_gradients(struct operators *o, const struct prof_op *op,
                             const struct around *around)
{
    if (around->all & 1u << ZEROES)
        o->gradients = FILLED;
    else if (around->inner == ADDS && around->all & 1u << ACCUMULATES) {
        o->gradients = o->gradients == FILLED ? FIRST_PASS : o->gradients;
        if (o->gradients == FIRST_PASS)
            add_needless(o, FIRST_ACCUMULATION, op);
    } else if (o->gradients == FIRST_PASS && !(around->all & (1u << BACKWARD | 1u << ACCUMULATES)))
        o->gradients = ADDED_TO;
}

static void add_kernel(struct operators *o, const struct prof_op *op)
{
    struct around around = ranges_around(o, op);
    follow_bias(o, op, &around);
    follow_gradients(o, op, &around);
    if (around.inner == ADDS && around.outer == CONVOLVES) {
        o->biases++;
        o->bias = *op;
        o->waits = true;
    } else if (around.inner == SUMS && around.outer == CONVOLUTION_BACKWARD) {
        add_needless(o, BIAS_GRADIENT, op);
    } else if (around.all & 1u << ZEROES) {
        const char *name = prof_shape_name(&o->judge->facts->shapes.data[op->shape]);
        o->at_once |= name && strstr(name, "multi_tensor");
        add_needless(o, ZERO, op);
    } else if (around.inner == ADDS && around.all & 1u << ACCUMULATES) {
        add_needless(o, ACCUMULATION, op);
    } else if (around.all & 1u << CASTS && around.all & (1u << MULTIPLIES | 1u << CONVOLVES)) {
        add_needless(o, CAST, op);
    } else if (around.first == LAYS_OUT) {
        add_needless(o, COPY, op);
    }
    o->backward |= (around.all & 1u << BACKWARD) != 0;
}

static void sum_operators(struct operators *o)
{
    const struct prof_facts *f = o->judge->facts;
    o->ns = calloc(f->shapes.count * NEEDLESS + 1, sizeof *o->ns);
    o->judge->failed |= !o->ns;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    while (o->ns && (op = prof_facts_next_in_phase(f, &walk, &kind)))
        if (kind == PROF_OP_KERNEL && f->shapes.data[op->shape].device == o->judge->device_index &&
            op->call != PROF_UNKNOWN && prof_facts_called(f, op->call))
            add_kernel(o, op);
}

/* Claim that part of the kind's kernels, with the idle time in which the host gets to them; what
 * the kernels take. */
static int64_t claim_needless(const struct operators *o, struct prof_draft *draft, double *parts)
{
    const struct prof_facts *f = o->judge->facts;
    const struct prof_shape *shape;
    double all = 0;
    for (size_t at = 0; (shape = prof_next_shape(o->judge, &at));) {
        double ns = 0;
        for (int k = 0; k < NEEDLESS; k++)
            ns += parts[k] *
                  (double)o->ns[(size_t)k * f->shapes.count + (size_t)(shape - f->shapes.data)];
        if (!(ns > 0))
            continue;
        double part = fmin(ns / fmax((double)shape->sum_ns, ns), 1);
        all += ns;
        prof_claim_kernel(o->judge, draft, shape, part);
        prof_claim(o->judge, draft, "idle_launch_ns", PROF_SLICE_LAUNCH,
                   (int64_t)(part * (double)shape->idle_ns[PROF_SLICE_LAUNCH]));
        prof_claim(o->judge, draft, "idle_host_ns", PROF_SLICE_HOST,
                   (int64_t)(part * (double)shape->idle_ns[PROF_SLICE_HOST]));
    }
    return (int64_t)all;
}

/* An operator whose result can have a gradient makes a node of the graph for the backward pass, and
 * both have the node's number. Making one, recording it and freeing it takes no longer: 17 us on an
 * H200's host with a recording. */
#define NODE_NS 20000
#define NODES_PER_ITERATION 10 /* fewer are losses and scores of a training step */

struct graph {
    int64_t nodes, unused;
};

/* Of a node: its maker's thread, in the bits above. */
enum { MADE = 1, USED = 2, FLAGS = 3 };

/* `engines`: threads that run backward passes. */
static bool read_graph(struct prof_judge *judge, struct prof_map *nodes, struct prof_map *engines)
{
    const struct prof_facts *f = judge->facts;
    sqlite3_stmt *row = NULL;
    struct prof_error err = {0};
    bool ok = true;
    if (prof_query(f->capture,
                   "SELECT f.value, r.start, r.thread, t.process, s.value GLOB '*Backward*' OR "
                   "s.value GLOB '*autograd::*' FROM range_field f JOIN string n ON n.id = f.name "
                   "AND n.value = 'seq' JOIN range r ON r.id = f.range JOIN thread t ON t.id = "
                   "r.thread JOIN string s ON s.id = r.name WHERE typeof(f.value) = 'integer'",
                   &row, &err))
        return true; /* of an earlier version: without such fields */
    while (ok && prof_row(row)) {
        uint64_t thread = (uint64_t)sqlite3_column_int64(row, 2);
        bool used = sqlite3_column_int(row, 4);
        if (used)
            ok = prof_map_put(engines, thread, 1);
        else if (!prof_map_get(&f->launchers, thread << 32 | judge->device_index) ||
                 !prof_facts_called(f, sqlite3_column_int64(row, 1)))
            continue;
        uint64_t key =
            (uint64_t)sqlite3_column_int64(row, 3) << 40 ^ (uint64_t)sqlite3_column_int64(row, 0);
        const uint64_t *before = prof_map_get(nodes, key);
        uint64_t how = (before ? *before : 0) | (used ? USED : thread << 2 | MADE);
        ok = ok && prof_map_put(nodes, key, how);
    }
    return !prof_query_end(f->capture, row, &err) && ok;
}

/* Nodes that the iterations make, and those that no backward pass of the run gets to. What a
 * backward pass computes again (checkpoints) it needs, whatever becomes of its nodes. */
static struct graph find_graph(struct prof_judge *judge)
{
    struct graph graph = {0};
    struct prof_map nodes = {0}, engines = {0};
    uint64_t key, how;
    judge->failed |= !read_graph(judge, &nodes, &engines);
    for (size_t at = 0; prof_map_next(&nodes, &at, &key, &how);) {
        graph.nodes += (how & MADE) != 0;
        graph.unused += (how & FLAGS) == MADE && !prof_map_get(&engines, how >> 2);
    }
    prof_map_free(&nodes);
    prof_map_free(&engines);
    if (2 * graph.unused < graph.nodes || graph.unused < NODES_PER_ITERATION * prof_steps(judge) ||
        graph.unused < NODES_PER_ITERATION)
        graph.unused = 0;
    return graph;
}

static void say_needless(struct prof_judge *judge, struct prof_draft *draft,
                         const struct operators *o, const struct graph *graph)
{
    const char *colon = ":";
    prof_numbers(draft, {"biases", (double)o->count[BIAS]}, {"zeroes", (double)o->count[ZERO]},
                 {"sums", (double)o->count[ACCUMULATION]}, {"nodes", (double)graph->unused},
                 {"casts", (double)o->count[CAST]}, {"copies", (double)o->count[COPY]});
    prof_say(draft, "Some operators change nothing");
    if (o->count[BIAS]) {
        prof_say(draft, ": {biases|bias|biases} of convolutions are added that the batch norm "
                        "behind subtracts again with the mean (bias=False)");
        colon = ";";
    }
    if (o->count[ZERO]) {
        prof_say(draft,
                 "%s gradients are filled with zeros in {zeroes|launch|launches} and added "
                 "to in {sums} (zero_grad(set_to_none=True))",
                 colon);
        colon = ";";
    }
    if (o->count[CAST]) {
        prof_say(draft, "%s torch.autocast converts weights and inputs in {casts|launch|launches}",
                 colon);
        prof_say_per_iteration(judge, draft, "casts_per_iteration", "casts");
        prof_say(draft, ", though no backward pass needs them in FP32 (model.to(torch.bfloat16) "
                        "once)");
        colon = ";";
    }
    if (o->count[COPY]) {
        prof_say(draft, "%s tensors are copied to be laid out anew in {copies|launch|launches}",
                 colon);
        prof_say_per_iteration(judge, draft, "copies_per_iteration", "copies");
        prof_say(draft, " (no .contiguous() in front of an operator that takes any layout)");
        colon = ";";
    }
    if (graph->unused) {
        prof_say(draft, "%s {nodes|node|nodes} of a graph for a backward pass are made", colon);
        prof_say_per_iteration(judge, draft, "nodes_per_iteration", "nodes");
        prof_say(draft, ", and no backward pass comes (torch.inference_mode())");
    }
    prof_say(draft, ".");
}

/* A backward pass may have run while nothing was recorded, also behind a window that was chosen. */
static bool is_in_windows(struct prof_judge *judge)
{
    struct prof_recorded recorded;
    struct prof_error err = {0};
    judge->failed |= prof_recorded(judge->facts->capture, NULL, &recorded, &err) != PROF_OK;
    bool windows = recorded.spans.count > 1;
    prof_recorded_free(&recorded);
    return windows;
}

static bool launches_pytorch(const struct prof_judge *judge)
{
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (prof_name_library(prof_shape_name(shape)) == PROF_LIBRARY_ATEN)
            return true;
    return false;
}

static void needless_operators(struct prof_judge *judge)
{
    if (!judge->roles)
        find_roles(judge);
    struct operators o = {.judge = judge, .roles = judge->roles};
    struct graph graph = {0};
    if (judge->names_needless)
        sum_operators(&o);
    if (judge->facts->has_operators)
        graph = find_graph(judge);
    else if (launches_pytorch(judge))
        prof_abstain(judge, "needs ranges of PyTorch's operators (perfkit run --pytorch)");
    if ((graph.unused || o.count[CAST]) && is_in_windows(judge)) {
        graph.unused = o.count[CAST] = 0;
        prof_abstain(judge, "recorded in windows: a backward pass may lie between them");
    }
    if (!o.count[ACCUMULATION])
        o.count[ZERO] = 0; /* filled for something else */
    if (o.backward)
        o.count[CAST] = 0; /* of weights that are kept in FP32 */
    if (graph.unused <= o.count[CAST])
        graph.unused = 0; /* what casts make */
    if (!judge->failed &&
        (o.count[BIAS] || o.count[ZERO] || o.count[CAST] || o.count[COPY] || graph.unused)) {
        struct prof_draft *draft = prof_found(judge, graph.unused || o.count[COPY] ? 0.4 : 0.6);
        double biases = o.count[BIAS] ? (double)o.count[BIAS] / (double)o.biases : 0;
        double sums = (double)o.count[ZERO] / fmax((double)o.count[ACCUMULATION], 1);
        double parts[NEEDLESS] = {[BIAS] = 1,
                                  [BIAS_GRADIENT] = biases,
                                  [ZERO] = o.count[ZERO] > 0,
                                  [ACCUMULATION] = o.at_once ? 0 : fmin(sums, 1),
                                  [FIRST_ACCUMULATION] = o.at_once,
                                  [CAST] = o.count[CAST] > 0,
                                  [COPY] = 1};
        if (o.ns)
            prof_numbers(draft, {"needless_kernel_ns", (double)claim_needless(&o, draft, parts)});
        int64_t nodes_ns = graph.unused * NODE_NS;
        int64_t launching = prof_min(nodes_ns, judge->device->slice_ns[PROF_SLICE_LAUNCH]);
        if (graph.unused) {
            prof_claim(judge, draft, "idle_launch_ns", PROF_SLICE_LAUNCH, launching);
            prof_claim(judge, draft, "idle_host_ns", PROF_SLICE_HOST, nodes_ns - launching);
        }
        say_needless(judge, draft, &o, &graph);
        for (int kind = 0; kind < NEEDLESS; kind++)
            if (parts[kind] > 0)
                prof_places(judge, draft, &o.spots[kind]);
    }
    free(o.ns);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_needless[] = {
    {.page = {.id = "needless-operators",
              .title = "Operators of PyTorch that change nothing",
              .fires = "A convolution's bias is added in a kernel of its own (aten::add_ in "
                       "aten::_convolution), and aten::batch_norm comes next. Or gradients are "
                       "filled in Optimizer.zero_grad and then added to. Or operators, ten or more "
                       "in an iteration and half of those that can have a gradient, have sequence "
                       "numbers that no operator of a backward pass has. Or torch.autocast "
                       "converts what linear layers and convolutions take (aten::_to_copy in "
                       "them), and no backward pass comes. Or the program calls .contiguous() and "
                       "a kernel copies.",
              .why = "Batch norm subtracts the mean and with it the bias; a first gradient can "
                     "be stored instead of added to zeros; inference needs no graph, which "
                     "takes the host time and keeps intermediate results in memory, and no "
                     "weights in FP32; most operators take any layout.",
              .fix = "Leave out these operators: the results stay the same without them.",
              .pytorch = "nn.Conv2d(..., bias=False) in front of nn.BatchNorm2d (for inference "
                         "torch.nn.utils.fuse_conv_bn_eval); "
                         "optimizer.zero_grad(set_to_none=True), which is the default; "
                         "torch.inference_mode() or torch.no_grad() around what is not trained; "
                         "model.to(torch.bfloat16), or .half(), once instead of torch.autocast; no "
                         ".contiguous() that nothing needs.",
              .bound = "The kernels of those operators with the idle time that ends with them, of "
                       "the additions to gradients as many as were filled (where one kernel fills "
                       "many: those of the first backward pass behind it); for each node of an "
                       "unused graph 20 us in which the device waits for the host.",
              .limits =
                  "Without the ranges of operators (perfkit run --pytorch) nothing is seen. A "
                  "backward pass that was not recorded, or that compiled code makes, is not "
                  "known to use a graph; of a run recorded in windows, graphs are not checked.",
              .needs = "ranges of PyTorch's operators (--pytorch)"},
     .judge = needless_operators},
    {.judge = NULL},
};
