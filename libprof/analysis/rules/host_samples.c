/* What the host did while a device waited for it, by samples of the processors: the function that a
 * finding names. */
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/cpu_samples.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/include/prof_stack.h"

/* Below it no function stands out. */
#define WORTH_NAMING 0.05

static const char *const state_words[PROF_CPU_STATES] = {
    [PROF_CPU_USER] = "computing",
    [PROF_CPU_KERNEL] = "inside the operating system",
    [PROF_CPU_BLOCKED] = "blocked",
    [PROF_CPU_PREEMPTED] = "waiting for a processor",
};

/* When the judge's device works within the window. */
static bool device_time(const struct prof_judge *judge, struct prof_cpu_device_time *time)
{
    const struct prof_facts *f = judge->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    time->window = (struct prof_interval){f->begin, f->end};
    while ((op = prof_facts_next(f, &walk, &kind)))
        if (f->shapes.data[op->shape].device == judge->device_index &&
            !prof_cpu_device_works(time, op->start, prof_add(op->start, op->duration), op->thread))
            return false;
    return true;
}

static enum prof_cpu_state main_state(const int64_t ns[PROF_CPU_STATES])
{
    enum prof_cpu_state most = PROF_CPU_USER;
    for (int i = 0; i < PROF_CPU_STATES; i++)
        if (ns[i] > ns[most])
            most = (enum prof_cpu_state)i;
    return most;
}

static void place_text(const struct prof_cpu_function *function, char *out, size_t size)
{
    char name[96];
    struct prof_frame frame = {.named = true,
                               .function = name,
                               .file = function->file,
                               .line = function->line,
                               .module = function->module};
    snprintf(name, sizeof name, "%s", prof_short_name(function->function).text);
    prof_frame_text(&frame, out, size);
}

/* Who worked meanwhile, when those that launch did not. */
static void tell_others(struct prof_draft *draft, const struct prof_cpu *cpu)
{
    const struct prof_cpu_function *most = NULL;
    for (size_t i = 0; i < cpu->function_count; i++) {
        const struct prof_cpu_function *f = &cpu->functions[i];
        if (!f->launches &&
            f->times.idle_ns[PROF_CPU_USER] > (most ? most->times.idle_ns[PROF_CPU_USER] : 0))
            most = f;
    }
    if (!most || (double)most->times.idle_ns[PROF_CPU_USER] < WORTH_NAMING * (double)cpu->idle_ns)
        return;
    char place[160];
    place_text(most, place, sizeof place);
    prof_numbers(draft, {"others_in_function_ns", (double)most->times.idle_ns[PROF_CPU_USER]});
    prof_say(draft, " The other threads computed most in %s: {others_in_function_ns}.", place);
}

static void draft_host_samples(struct prof_draft *draft, const struct prof_cpu *cpu)
{
    int64_t all = prof_cpu_total(cpu->launching.idle_ns);
    const struct prof_cpu_function *first = cpu->function_count ? cpu->functions : NULL;
    int64_t in_first = first && first->launches ? prof_cpu_total(first->times.idle_ns) : 0;
    if (all <= 0 || (double)in_first < WORTH_NAMING * (double)all)
        return;
    draft->finding.names_no_cause = false;
    char place[160];
    place_text(first, place, sizeof place);
    prof_numbers(draft, {"host_in_function_ns", (double)in_first}, {"host_sampled_ns", (double)all},
                 {"host_in_function_share", (double)in_first / (double)all});
    prof_say(draft, " The host was in %s for {host_in_function_share} of that time, mostly %s.",
             place, state_words[main_state(first->times.idle_ns)]);
    if (main_state(cpu->launching.idle_ns) == PROF_CPU_BLOCKED)
        tell_others(draft, cpu);
}

void prof_tell_host(struct prof_judge *judge, struct prof_draft *draft)
{
    const struct prof_facts *f = judge->facts;
    struct prof_filter filter = {.begin_ns = f->begin, .end_ns = f->end};
    struct prof_cpu_device_time time = {0};
    struct prof_scope scope;
    struct prof_cpu cpu;
    if (!prof_cpu_sampled(f->capture)) {
        prof_say(draft, " perfkit run --cpu-sample shows in which function.");
        return;
    }
    if (!device_time(judge, &time)) {
        judge->failed = true;
    } else if (!prof_scope_open(&scope, f->capture, &filter, NULL)) {
        if (!prof_cpu_of(f->capture, &scope, &time, &cpu, NULL)) {
            draft_host_samples(draft, &cpu);
            prof_cpu_free(&cpu);
        }
        prof_scope_close(&scope);
    }
    prof_cpu_device_time_free(&time);
}
