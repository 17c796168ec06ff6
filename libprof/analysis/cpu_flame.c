/* Samples of the processors as a flame graph: process, thread, frames. */
#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/cpu_sample_rows.h"
#include "libprof/analysis/scope.h"
#include "libprof/include/prof_cpu.h"
#include "libprof/wire/sampler.h"

static const char *flame_thread_name(const struct prof_thread *thread,
                                     const struct prof_process *process)
{
    if (thread->name)
        return thread->name;
    return process && thread->tid == process->pid ? "main thread" : "thread";
}

/* PROF_NO_GROUP: out of memory. */
static uint32_t cpu_flame_node(struct prof_call_tree *tree, int64_t id, int64_t stack)
{
    const struct prof_thread *thread = prof_thread(tree->capture, id);
    if (!thread)
        return 0;
    struct prof_call_site site = {.process = thread->process, .call_ns = PROF_UNKNOWN};
    uint32_t node = prof_call_tree_call(tree, &site);
    if (node != PROF_NO_GROUP)
        node = prof_call_tree_child(
            tree, node, PROF_FLAME_THREAD, (uint64_t)id,
            flame_thread_name(thread, prof_process(tree->capture, thread->process)));
    return node == PROF_NO_GROUP || !stack || !tree->stacks
               ? node
               : prof_call_tree_frames(tree, node, stack);
}

static bool weight_includes_kind(enum prof_flame_weight weight, int64_t kind)
{
    return weight == PROF_FLAME_BLOCKED ? kind == WIRE_CPU_BLOCKED
                                        : kind == WIRE_CPU_USER || kind == WIRE_CPU_KERNEL;
}

struct work {
    struct prof_call_tree tree;
    enum prof_flame_weight weight;
};

static bool add_flame_sample(void *user, const struct prof_cpu_sample *sample)
{
    struct work *w = user;
    if (!weight_includes_kind(w->weight, sample->kind))
        return true;
    uint32_t node = cpu_flame_node(&w->tree, sample->thread, sample->stack);
    if (node == PROF_NO_GROUP)
        return false;
    struct prof_flame_node *leaf = &w->tree.nodes.data[node];
    leaf->self = prof_add(leaf->self, sample->weight);
    leaf->count++;
    return true;
}

enum prof_status prof_cpu_flame(struct prof_capture *capture, const struct prof_filter *filter,
                                enum prof_flame_weight weight, struct prof_flame *result,
                                struct prof_error *err)
{
    struct work w = {.weight = weight};
    struct prof_scope scope = {0};
    struct prof_filter samples = filter ? *filter : (struct prof_filter){0};
    samples.device = samples.stream = 0; /* the host has none */
    samples.streams = NULL;
    samples.stream_count = 0;
    *result = (struct prof_flame){0};
    enum prof_status status = prof_call_tree_open(&w.tree, capture, NULL, NULL, err);
    if (!status)
        status = prof_scope_open(&scope, capture, &samples, err);
    if (!status)
        status = prof_cpu_sample_rows(capture, &scope, add_flame_sample, &w, err);
    if (!status)
        prof_call_tree_take(&w.tree, result);
    prof_call_tree_close(&w.tree);
    prof_scope_close(&scope);
    return status;
}
