/* The rule about chains of kernels that only pass data on: one kernel could keep it in registers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"
#include "libprof/wire/command.h"

#define CHAIN 3        /* different kernels that follow each other */
#define SHORT_NS 20000 /* without declared work: kernels whose own work cannot be much */

/* BY_NAME: neither declared nor short, but a framework's kernel that streams through its data.
 * BY_THREADS: nothing of that, but its threads share nothing and live for a short time. */
enum fusible { NOT_FUSIBLE, BY_WORK, BY_LENGTH, BY_NAME, BY_THREADS };

struct kernel_class {
    enum fusible fusible;
    enum prof_library compiler; /* left in two kernels what comes in a row; NONE = no compiler */
};

#define LIFE_NS 10000 /* of a thread that cannot do much */
#define REGISTERS 32  /* with no more, all threads that a unit holds have theirs */

/* FLOP per byte of a launch configuration; NaN when not available. */
static double intensity_of(const struct prof_judge *judge, const struct prof_shape *shape)
{
    const struct prof_roofline_point *point = prof_roof_of(judge, shape);
    return point ? point->roofs[PROF_ROOF_DRAM].intensity : NAN;
}

/* A program's own kernel without shared memory and with few registers, that starts its blocks in
 * many rounds of a short time each: a thread reads some elements, computes little and writes. */
static bool has_brief_threads(const struct prof_judge *judge, const struct prof_shape *shape)
{
    const struct prof_config *config = shape->config;
    const struct prof_device *device = judge->device->device;
    struct prof_occupancy occupancy;
    if (!device || device->units <= 0 || !prof_occupancy_of(device, config, &occupancy) ||
        config->registers > REGISTERS || config->shared_static > 0 || config->shared_dynamic > 0 ||
        prof_name_is_library(config->name))
        return false;
    double rounds = (double)prof_config_blocks(config) / (double)(device->units * occupancy.blocks);
    return rounds > 1 && (double)shape->sum_ns / (double)shape->count < rounds * LIFE_NS;
}

/* The same of a processor's kernel, whose items are loops of its own: an item takes a processor so
 * short a time that moving what it reads and writes is most of it. */
#define ITEM_NS 2.5

static bool has_brief_items(const struct prof_judge *judge, const struct prof_shape *shape)
{
    const struct prof_device *device = judge->device->device;
    const struct prof_config *config = shape->config;
    if (!prof_is_host(judge) || device->units <= 0 || config->shared_static > 0 ||
        config->shared_dynamic > 0 || prof_name_is_library(config->name))
        return false;
    double items = (double)prof_config_items(config);
    return (double)shape->sum_ns * (double)device->units < (double)shape->count * items * ITEM_NS;
}

/* PyTorch's and XLA's compilers fuse what they can. XLA also compiles functions that are called one
 * after the other; its graphs are of one. */
static enum prof_library compiler_of(const struct prof_shape *shape)
{
    enum prof_library library = prof_name_library(prof_shape_name(shape));
    bool whole =
        library == PROF_LIBRARY_INDUCTOR || (library == PROF_LIBRARY_XLA && shape->in_graph);
    return whole ? library : PROF_LIBRARY_NONE;
}

static struct kernel_class *classify(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    struct kernel_class *classes = calloc(f->shapes.count + 1, sizeof *classes);
    const struct prof_shape *shape;
    for (size_t at = 0; classes && (shape = prof_next_shape(judge, &at));) {
        if (shape->kind != PROF_OP_KERNEL || prof_is_unbatched(judge, shape))
            continue; /* a kernel repeated over pieces is that rule's */
        double intensity = intensity_of(judge, shape);
        bool low = isfinite(intensity) && intensity < PROF_STREAMING;
        const char *name = prof_shape_name(shape);
        bool product = prof_name_is_matmul(name) || prof_name_is_convolution(name);
        bool brief = isnan(intensity) && !product && shape->sum_ns / shape->count < SHORT_NS;
        bool named = isnan(intensity) && prof_name_is_streaming(name);
        bool light = isnan(intensity) && !product &&
                     (has_brief_threads(judge, shape) || has_brief_items(judge, shape));
        classes[shape - f->shapes.data] = (struct kernel_class){.fusible = low     ? BY_WORK
                                                                           : brief ? BY_LENGTH
                                                                           : named ? BY_NAME
                                                                           : light ? BY_THREADS
                                                                                   : NOT_FUSIBLE,
                                                                .compiler = compiler_of(shape)};
    }
    return classes;
}

struct link {
    uint32_t shape;
    int64_t duration;
    bool streams; /* by its name or its threads */
};

struct chain {
    uint32_t stream;
    const char *first_name, *last_name;
    PROF_ARRAY(struct link) links;
    size_t different; /* neighbours that are: a kernel may come several times in a row */
    int64_t sum_ns, gap_ns, copy_ns;
    int64_t host_ns, last_call; /* from call to call */
    int64_t begin, end;
    uint32_t thread, shape, last_shape;
    size_t iteration;
    int64_t threads; /* of each of its kernels; 0 = no matter */
    bool declared, streams;
    enum prof_library compiler; /* of its last kernel */
    bool softmax, loss;         /* has a softmax; a loss */
    struct prof_op product;     /* of matrices, right before it; duration 0 = none */
};

struct chains {
    int64_t count, kernels, sum_ns, saved_ns, gap_ns, host_ns, longest;
    int64_t *saved;                   /* by shape */
    int64_t copy_ns;                  /* memcpys within the device between its kernels */
    int64_t attention_ns, attentions; /* of softmaxes between two products, with those */
    bool declared, named, light, failed;
    struct prof_spots spots;
};

/* All but the longest kernel of a chain are saved; of kernels that are known to stream, all but the
 * shortest: one that reads what the chain reads and writes what it writes may take no longer. Of a
 * chain within attention all: nothing of it is written. */
static void save_links(const struct chain *chain, struct chains *all, bool attention)
{
    size_t kept = 0;
    for (size_t i = 1; i < chain->links.count; i++) {
        const struct link *link = &chain->links.data[i], *best = &chain->links.data[kept];
        if (chain->streams ? link->streams && (!best->streams || link->duration < best->duration)
                           : link->duration > best->duration)
            kept = i;
    }
    for (size_t i = 0; i < chain->links.count; i++) {
        const struct link *link = &chain->links.data[i];
        all->saved_ns += i == kept && !attention ? 0 : link->duration;
        all->saved[link->shape] += i == kept && !attention ? 0 : link->duration;
    }
}

/* Products of matrices that keep their numbers on the chip take this part of their time less: the
 * scores are written by one and read by the other. */
#define PRODUCT_PART 0.75

static void save_product(struct chains *all, const struct prof_op *product)
{
    int64_t ns = (int64_t)((double)product->duration * PRODUCT_PART);
    all->kernels++;
    all->sum_ns += product->duration;
    all->attention_ns += product->duration;
    all->saved_ns += ns;
    all->saved[product->shape] += ns;
}

/* `next`: the operation that ends it; NULL = another chain. */
static void close_chain(const struct prof_facts *f, struct chain *chain, struct chains *all,
                        const struct prof_op *next)
{
    int64_t different = (int64_t)chain->different;
    bool attention =
        chain->links.count && chain->softmax && !chain->loss && chain->product.duration && next &&
        prof_name_is_matmul(prof_shape_name(&f->shapes.data[next->shape])) &&
        prof_iteration_since(&f->phase->iterations, next->thread, next->call) == chain->iteration;
    if (attention) {
        save_product(all, &chain->product);
        save_product(all, next);
        all->attention_ns += chain->sum_ns;
        all->attentions++;
    }
    if (chain->links.count && (different >= CHAIN || attention)) {
        all->count++;
        all->kernels += (int64_t)chain->links.count;
        all->sum_ns += chain->sum_ns;
        save_links(chain, all, attention);
        all->gap_ns += chain->gap_ns;
        all->copy_ns += chain->streams ? chain->copy_ns : 0;
        all->host_ns += chain->host_ns;
        all->declared |= chain->declared;
        all->named |= chain->streams && !chain->threads;
        all->light |= chain->threads > 0;
        all->longest = different > all->longest ? different : all->longest;
        prof_spots_add(&all->spots, (struct prof_spot){chain->begin, chain->end - chain->begin,
                                                       chain->stream, chain->thread, chain->shape});
    }
    bool product = next && prof_name_is_matmul(prof_shape_name(&f->shapes.data[next->shape]));
    if (next || chain->links.count)
        chain->product = product ? *next : (struct prof_op){0};
    chain->links.count = chain->different = 0;
}

static void begin_chain(const struct prof_facts *f, struct chain *chain, const struct prof_op *op,
                        const char *name)
{
    struct chain fresh = {.stream = op->stream,
                          .begin = op->start,
                          .thread = op->thread,
                          .shape = op->shape,
                          .iteration =
                              prof_iteration_since(&f->phase->iterations, op->thread, op->call),
                          .product = chain->product,
                          .first_name = name};
    memcpy(&fresh.links, &chain->links, sizeof fresh.links);
    *chain = fresh;
}

/* Memcpys within the device pass on what they read, and memsets prepare what a library adds up in:
 * neither ends a chain of a framework's kernels. */
static bool passes(const struct prof_facts *f, const struct prof_op *op, enum prof_op_kind kind)
{
    const struct prof_shape *shape = &f->shapes.data[op->shape];
    return kind == PROF_OP_MEMSET || (prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_DTOD);
}

/* Of each kernel that follows another in a stream, how often it does, and how often it was queued
 * by then or comes within SHORT_NS: by both shapes. What most do decides, so that one that is late
 * breaks no chain. */
static bool read_neighbours(const struct prof_judge *judge, const struct kernel_class *classes,
                            struct prof_map *neighbours)
{
    const struct prof_facts *f = judge->facts;
    struct prof_op_walk walk = {0};
    struct prof_op last = {0}; /* duration 0: none */
    const struct prof_op *op;
    enum prof_op_kind kind;
    bool ok = true;
    while (ok && (op = prof_facts_next_in_phase(f, &walk, &kind))) {
        if (f->shapes.data[op->shape].device != judge->device_index || !prof_facts_launched(f, op))
            continue;
        if (passes(f, op, kind))
            continue;
        bool fusible = kind == PROF_OP_KERNEL && classes[op->shape].fusible;
        if (fusible && last.duration && last.stream == op->stream) {
            uint64_t key = (uint64_t)last.shape << 32 | op->shape;
            const uint64_t *known = prof_map_get(neighbours, key);
            int64_t end = last.start + last.duration;
            bool near = prof_subtract(op->start, end) <= SHORT_NS ||
                        (op->call != PROF_UNKNOWN && op->call <= end);
            ok = prof_map_put(neighbours, key, (known ? *known : 0) + ((uint64_t)near << 32) + 1);
        }
        last = fusible ? *op : (struct prof_op){0};
    }
    return ok;
}

/* Names, not configurations, distinguish neighbours. A chain that comes back to its first kernel
 * has begun anew. */
static void extend(const struct prof_facts *f, struct chain *chain, struct chains *all,
                   const struct prof_map *neighbours, const struct prof_op *op,
                   struct kernel_class class)
{
    const struct prof_shape *shape = &f->shapes.data[op->shape];
    const char *name = prof_shape_name(shape);
    bool named = class.fusible == BY_NAME, light = class.fusible == BY_THREADS;
    int64_t threads = light ? prof_config_items(shape->config) : 0;
    bool anew = chain->first_name == name && chain->last_name != name;
    if (named || light ||
        chain->streams) /* expressions come back to an operation, iterations end */
        anew =
            prof_iteration_since(&f->phase->iterations, op->thread, op->call) != chain->iteration;
    bool follows =
        chain->links.count && chain->stream == op->stream && !anew && op->start >= chain->end;
    int64_t gap = follows ? prof_subtract(op->start, chain->end) : 0;
    const uint64_t *times =
        follows ? prof_map_get(neighbours, (uint64_t)chain->last_shape << 32 | op->shape) : NULL;
    if (!times || 2 * (*times >> 32) < (uint32_t)*times || chain->threads != threads ||
        (class.compiler && chain->compiler == class.compiler))
        close_chain(f, chain, all, NULL);
    if (!chain->links.count)
        begin_chain(f, chain, op, name);
    else
        chain->gap_ns += gap < SHORT_NS ? gap : SHORT_NS;
    chain->different += chain->last_name != name;
    int64_t apart = prof_subtract(op->call, chain->last_call); /* of a call that may be unknown */
    if (chain->links.count && op->call != PROF_UNKNOWN && op->thread == chain->thread &&
        apart > 0 && apart < SHORT_NS)
        chain->host_ns += apart;
    chain->last_call = op->call == PROF_UNKNOWN ? chain->last_call : op->call;
    struct link *slot = prof_array_add(&chain->links);
    if (slot)
        *slot = (struct link){op->shape, op->duration, named || light};
    all->failed |= !slot;
    chain->last_name = name;
    chain->last_shape = op->shape;
    chain->sum_ns += op->duration;
    chain->end = op->start + op->duration;
    chain->threads = threads;
    chain->compiler = class.compiler;
    chain->declared |= class.fusible == BY_WORK;
    chain->streams |= named || light;
    chain->softmax |= named && prof_name_is_softmax(name);
    chain->loss |= strstr(name, "nll_loss") != NULL;
}

static bool find_chains(struct prof_judge *judge, struct chains *all)
{
    const struct prof_facts *f = judge->facts;
    struct kernel_class *classes = classify(judge);
    struct prof_map neighbours = {0}; /* times near << 32 | times */
    struct prof_op_walk walk = {0};
    struct chain chain = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    *all = (struct chains){.saved = calloc(f->shapes.count + 1, sizeof *all->saved),
                           .failed = !classes || !read_neighbours(judge, classes, &neighbours)};
    while (classes && all->saved && !all->failed &&
           (op = prof_facts_next_in_phase(f, &walk, &kind))) {
        if (f->shapes.data[op->shape].device != judge->device_index || !prof_facts_launched(f, op))
            continue;
        if (chain.links.count && chain.streams && passes(f, op, kind))
            chain.copy_ns += kind == PROF_OP_TRANSFER ? op->duration : 0;
        else if (kind == PROF_OP_KERNEL && classes[op->shape].fusible)
            extend(f, &chain, all, &neighbours, op, classes[op->shape]);
        else
            close_chain(f, &chain, all, op);
    }
    close_chain(f, &chain, all, NULL);
    bool ok = classes && all->saved && !all->failed;
    prof_array_free(&chain.links);
    prof_map_free(&neighbours);
    free(classes);
    return ok;
}

static void claim_links(struct prof_judge *judge, struct prof_draft *draft,
                        const struct chains *all)
{
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        int64_t saved = all->saved[shape - judge->facts->shapes.data];
        if (shape->sum_ns > 0)
            prof_claim_kernel(judge, draft, shape, (double)saved / (double)shape->sum_ns);
    }
}

/* By what the chains and the whole become faster where each chain is its longest kernel. The host's
 * time from launch to launch runs beside the kernels: together no longer than what is judged. */
struct speed_up {
    double chains, whole;
    double share; /* of the time that is analysed */
};

static struct speed_up speed_up_of(const struct prof_judge *judge, const struct chains *all,
                                   int64_t between_ns)
{
    struct speed_up text;
    double window = (double)prof_facts_window_ns(judge->facts);
    double took = fmin((double)(all->sum_ns + between_ns), window);
    double left = (double)(all->sum_ns - all->saved_ns), rest = window - took + left;
    text.share = took / window;
    text.chains = took / fmax(left, 1);
    text.whole = window / fmax(rest, 1);
    return text;
}

static void tell_chains(struct prof_judge *judge, const struct chains *all)
{
    int64_t dispatch = judge->device->slice_ns[PROF_SLICE_DISPATCH];
    dispatch = all->gap_ns < dispatch ? all->gap_ns : dispatch;
    /* Where no work was declared, what is between them is the launch rules'. */
    int64_t between = all->declared && all->host_ns > all->gap_ns ? all->host_ns : all->gap_ns;
    int64_t launch = between - dispatch;
    struct speed_up gain = speed_up_of(judge, all, between);
    bool attention = 2 * all->attention_ns > all->sum_ns;
    bool streams = all->declared || all->named;
    struct prof_draft *draft = prof_found(judge, streams || attention ? 0.7
                                                 : all->light         ? 0.5
                                                                      : 0.3);
    prof_numbers(draft, {"chains", (double)all->count}, {"longest", (double)all->longest},
                 {"kernels", (double)all->kernels}, {"kernel_ns", (double)all->sum_ns},
                 {"between_ns", (double)between}, {"share", gain.share},
                 {"chains_factor", gain.chains}, {"whole_factor", gain.whole});
    claim_links(judge, draft, all);
    if (all->copy_ns)
        prof_claim(judge, draft, "memcpy_ns", PROF_SLICE_COPY_DEVICE, all->copy_ns);
    if (streams || all->light)
        prof_claim(judge, draft, "idle_queued_ns", PROF_SLICE_DISPATCH, dispatch);
    if (all->declared) {
        prof_claim(judge, draft, "idle_launch_ns", PROF_SLICE_LAUNCH, launch);
    }
    if (attention) {
        prof_numbers(draft, {"attentions", (double)all->attentions});
        prof_say(draft,
                 "{attentions|time|times} a softmax between two products of matrices writes the "
                 "scores of attention to memory: {kernel_ns} in all. One kernel keeps them on the "
                 "chip (scaled_dot_product_attention, FlashAttention, cuDNN): at most "
                 "{chains_factor}x faster on {share} of the time, {whole_factor}x in all.");
    } else {
        prof_say(draft,
                 "{chains|chain|chains} of up to {longest|different kernel|different kernels} that "
                 "%s follow each other in one stream: {kernel_ns} in all and {between_ns} between "
                 "them. One kernel could keep what they pass on in registers: at most "
                 "{chains_factor}x faster on {share} of the time, {whole_factor}x in all.",
                 streams      ? "move memory rather than compute"
                 : all->light ? "start equally many short-lived threads"
                              : "are short");
    }
    prof_places(judge, draft, &all->spots);
}

static void fusion_candidate(struct prof_judge *judge)
{
    struct chains all;
    if (!find_chains(judge, &all))
        judge->failed = true;
    else if (all.count >= 3)
        tell_chains(judge, &all);
    free(all.saved);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_fusion[] = {
    {.page =
         {.id = "fusion-candidate",
          .title = "Neighbouring kernels that could be one",
          .fires =
              "At least three chains of three or more different kernels that follow each "
              "other in one stream, mostly queued or within 20 us, each with declared or "
              "counted work below "
              "4 FLOP per byte, or, where neither is known, shorter than 20 us or one of "
              "a framework's kernels for elementwise work, reductions, norms, softmax and "
              "copies; or the program's own, with equally many threads that share no memory, "
              "have 32 registers at most and live for less than 10 us; on the host's processors "
              "with equally many work-items that share no memory and each take a processor less "
              "than 2.5 ns. Not products of "
              "matrices, "
              "nor what PyTorch's compiler, or XLA in a graph, left in several kernels. "
              "Also a softmax of 20 us or more between two "
              "products of matrices.",
          .why = "Each kernel writes its result to memory and the next one reads it back; "
                 "kernels that do little else spend their time on that and on starting.",
          .fix = "Fuse the chain into one kernel that keeps intermediate values in "
                 "registers.",
          .cuda = "Put the kernels' bodies into one __global__ function, or into the "
                  "epilogue of the matrix product (cublasLtMatmul with "
                  "CUBLASLT_MATMUL_DESC_EPILOGUE, CUTLASS); NVRTC where the chain is "
                  "known at run time only.",
          .opencl = "Put the kernels' bodies into one __kernel function.",
          .pytorch = "torch.compile(module); or fused operators: torch.nn.functional.* "
                     "(gelu, layer_norm, scaled_dot_product_attention), a Triton kernel.",
          .jax = "jax.jit around the function that makes the chain, not around its parts; for "
                 "attention jax.nn.dot_product_attention(..., implementation=\"cudnn\").",
          .bound =
              "For each chain, the sum of its kernels without the longest one (where names or "
              "threads show that they move memory, without the shortest; of attention all, "
              "and three quarters of both products), and, where work was declared, the idle time "
              "between them or, if longer, the host's "
              "from launch to launch.",
          .limits = "That one kernel reads what the one before wrote is not seen, nor whether "
                    "another thread of it did.",
          .needs = "kernels; declared work or counters make it certain"},
     .advice = PROF_ADVICE_LAUNCHES,
     .judge = fusion_candidate},
    {.judge = NULL},
};
