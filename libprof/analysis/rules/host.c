/* Rules about what the host does while the device waits: allocation, compilation, its own work. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/cpu_samples.h"
#include "libprof/analysis/intervals.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stack.h"
#include "libprof/wire/memory.h"

/* What the kernel of a host takes to give a page that is touched for the first time: a fault and
 * the zeroing of 4 KiB. */
#define PAGE_BYTES 4096
#define PAGE_FAULT_NS 250

/* ---- allocation in the loop ------------------------------------------------------------------ */

struct churn {
    int64_t allocations, bytes; /* freed again, where any are; else all */
    int64_t largest, larger;    /* the size of the largest, and how many were when they were made */
    bool kept;                  /* none is freed */
};

/* Memory of the judge's device that was made in the window. */
static struct churn find_churn(const struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    struct churn freed = {0}, kept = {.kept = true};
    const struct prof_intervals *host = &f->phase->host;
    int64_t end = host->count ? host->data[host->count - 1].end : 0;
    size_t count = f->lifetimes.count;
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_lifetimes, count, &at, &i);) {
        const struct prof_lifetime *l = &f->lifetimes.data[i];
        struct churn *churn = l->end > end ? &kept : &freed;
        if (!prof_facts_called(f, l->start) || l->kind == WIRE_MEMORY_PINNED ||
            (l->device && l->device != judge->device->id))
            continue;
        churn->allocations++;
        churn->bytes = prof_add(churn->bytes, l->bytes);
        churn->larger += l->bytes > churn->largest;
        churn->largest = l->bytes > churn->largest ? l->bytes : churn->largest;
    }
    return freed.allocations ? freed : kept;
}

static int64_t call_count(const struct prof_judge *judge, enum wire_class a, enum wire_class b)
{
    return judge->device->calls[a].count + judge->device->calls[b].count;
}

static int64_t call_time(const struct prof_judge *judge, enum wire_class a, enum wire_class b)
{
    return prof_add(judge->device->calls[a].sum_ns, judge->device->calls[b].sum_ns);
}

static void claim_first_touch(struct prof_judge *judge, struct prof_draft *draft, int64_t bytes)
{
    static const enum prof_slice touched[] = {PROF_SLICE_COPY_PAGEABLE, PROF_SLICE_COPY_PINNED,
                                              PROF_SLICE_COPY_OTHER, PROF_SLICE_KERNEL,
                                              PROF_SLICE_FILL};
    int64_t faults = bytes / PAGE_BYTES * PAGE_FAULT_NS;
    for (size_t i = 0; i < sizeof touched / sizeof touched[0] && faults > 0; i++) {
        int64_t most = judge->device->slice_ns[touched[i]];
        int64_t part = faults < most ? faults : most;
        prof_claim(judge, draft, "first_touch_ns", touched[i], part);
        faults -= part;
    }
}

/* Launching that allocating made: in its gaps, and where its calls held up the next launch (`late`,
 * at most). Without it the host is ahead, but for what its calls take longer than the kernels and
 * copies that it launches without waiting. */
static int64_t relaunching_ns(const struct prof_judge *judge, int64_t late)
{
    const struct prof_shape *shape;
    const int64_t *slices = judge->device->slice_ns;
    int64_t behind = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        behind += shape->waits ? 0 : shape->call_ns - shape->alone_ns;
    int64_t launching = judge->device->beside_alloc_ns[PROF_SLICE_LAUNCH] + (late > 0 ? late : 0);
    int64_t most = slices[PROF_SLICE_LAUNCH] - (behind > 0 ? behind : 0);
    return launching < most ? launching : most;
}

/* What allocating costs the device: idle time in those calls, and where a call waits for the device
 * (cudaFree, cudaMalloc) the wait itself shows as idle time of the next launch. */
static void alloc_in_loop(struct prof_judge *judge)
{
    struct churn churn = find_churn(judge);
    int64_t calls = call_count(judge, WIRE_CLASS_ALLOC, WIRE_CLASS_FREE);
    int64_t call_ns = call_time(judge, WIRE_CLASS_ALLOC, WIRE_CLASS_FREE);
    int64_t allocations = judge->device->calls[WIRE_CLASS_ALLOC].count;
    int64_t distinct = prof_iterations_with(judge, 1u << WIRE_CLASS_ALLOC);
    if (!churn.allocations || !prof_in_loop(judge, allocations, distinct))
        return;
    bool grows = churn.kept && churn.larger >= 3 && 2 * churn.larger >= distinct;
    struct prof_draft *draft = prof_found(judge, 0.9);
    prof_numbers(draft, {"allocations", (double)churn.allocations}, {"bytes", (double)churn.bytes},
                 {"calls", (double)calls}, {"call_ns", (double)call_ns});
    prof_claim(judge, draft, "idle_ns", PROF_SLICE_ALLOC,
               judge->device->slice_ns[PROF_SLICE_ALLOC]);
    if (prof_shares_memory(judge))
        claim_first_touch(judge, draft, churn.bytes);
    prof_claim(judge, draft, "idle_sync_beside_ns", PROF_SLICE_SYNC,
               judge->device->beside_alloc_ns[PROF_SLICE_SYNC]);
    prof_claim(judge, draft, "idle_launch_beside_ns", PROF_SLICE_LAUNCH,
               relaunching_ns(judge, call_ns - judge->device->slice_ns[PROF_SLICE_ALLOC]));
    prof_say(draft,
             "{allocations|allocation|allocations} of device memory ({bytes}) made and "
             "%s in the iterations",
             grows        ? "kept"
             : churn.kept ? "not freed"
                          : "freed");
    prof_say_per_iteration(judge, draft, "allocations_per_iteration", "allocations");
    prof_say(draft,
             "%s: {call_ns} in {calls|call|calls} to allocate and free, {idle_ns} of it "
             "while the device was idle.",
             grows ? ", as each needs more than those before" : "");
    if (!prof_shares_memory(judge)) /* there first touch costs more than the calls */
        prof_mend(draft, (struct prof_edit){.drop_classes =
                                                1u << WIRE_CLASS_ALLOC | 1u << WIRE_CLASS_FREE});
    prof_places(judge, draft, &judge->device->calls[WIRE_CLASS_ALLOC].spots);
}

static void host_alloc_in_loop(struct prof_judge *judge)
{
    int64_t count = judge->device->calls[WIRE_CLASS_ALLOC_HOST].count;
    int64_t ns = call_time(judge, WIRE_CLASS_ALLOC_HOST, WIRE_CLASS_FREE_HOST);
    if (!prof_in_loop(judge, count, prof_iterations_with(judge, 1u << WIRE_CLASS_ALLOC_HOST)))
        return;
    struct prof_draft *draft = prof_found(judge, 0.8);
    prof_numbers(draft, {"allocations", (double)count}, {"call_ns", (double)ns});
    prof_claim(judge, draft, "idle_ns", PROF_SLICE_ALLOC, ns);
    prof_say(draft,
             "Page-locked memory is allocated {allocations|time|times} in the iterations: "
             "{call_ns} in those calls and the frees, {idle_ns} of it while the device was idle.");
    prof_mend(draft, (struct prof_edit){.drop_classes = 1u << WIRE_CLASS_ALLOC_HOST |
                                                        1u << WIRE_CLASS_FREE_HOST});
    prof_places(judge, draft, &judge->device->calls[WIRE_CLASS_ALLOC_HOST].spots);
}

/* ---- compilation ----------------------------------------------------------------------------- */

/* What is compiled in some iterations only, as for a shape that was forgotten, but takes its part
 * of the time: in five of them, and a tenth. */
#define AGAIN 5
#define AGAIN_SHARE 0.05

static bool builds_now_and_then(const struct prof_judge *judge, int64_t distinct, int64_t idle_ns)
{
    return distinct >= AGAIN && 10 * distinct >= prof_steps(judge) &&
           prof_of_window(judge, idle_ns) >= AGAIN_SHARE;
}

static void compile_in_loop(struct prof_judge *judge)
{
    int64_t count = call_count(judge, WIRE_CLASS_BUILD, WIRE_CLASS_GRAPH_MAKE);
    int64_t ns = call_time(judge, WIRE_CLASS_BUILD, WIRE_CLASS_GRAPH_MAKE);
    int64_t idle = judge->device->slice_ns[PROF_SLICE_BUILD];
    int64_t distinct =
        prof_iterations_with(judge, 1u << WIRE_CLASS_BUILD | 1u << WIRE_CLASS_GRAPH_MAKE);
    if (!prof_in_loop(judge, count, distinct) && !builds_now_and_then(judge, distinct, idle))
        return;
    struct prof_draft *draft = prof_found(judge, 0.8);
    prof_numbers(draft, {"calls", (double)count}, {"call_ns", (double)ns});
    prof_claim(judge, draft, "idle_ns", PROF_SLICE_BUILD, idle);
    prof_claim(judge, draft, "idle_launch_beside_ns", PROF_SLICE_LAUNCH,
               prof_min(judge->device->beside_build_ns[PROF_SLICE_LAUNCH], idle));
    if (judge->facts->compiles.count) /* a framework traces in Python what it compiles */
        prof_claim(judge, draft, "idle_host_beside_ns", PROF_SLICE_HOST,
                   prof_min(judge->device->beside_build_ns[PROF_SLICE_HOST], idle));
    prof_say(draft, "{calls|call|calls} that compile, load code or make graphs in the iterations: "
                    "{call_ns}, {idle_ns} of it while the device was idle.");
    if (!judge->facts->compiles.count) /* else the calls are the least of it */
        prof_mend(draft, (struct prof_edit){.drop_classes = 1u << WIRE_CLASS_BUILD |
                                                            1u << WIRE_CLASS_GRAPH_MAKE});
    prof_places(judge, draft, &judge->device->calls[WIRE_CLASS_BUILD].spots);
    prof_places(judge, draft, &judge->device->calls[WIRE_CLASS_GRAPH_MAKE].spots);
}

/* One-off costs lie outside of the window: what they take, and after how many steps they matter no
 * more, so that no one optimises a loop of a run that is all start-up. */
#define AMORTISED 0.05

static bool is_analysed(const struct prof_facts *f, int64_t time)
{
    for (size_t p = 0; p < f->phases.list.count; p++)
        if (prof_intervals_has(&f->phases.list.data[p].intervals, time))
            return true;
    return false;
}

/* Time outside of the analysed intervals, in what was selected, in which any thread compiled or
 * loaded: ranks do so side by side, and a call may be made within another one. */
static int64_t building_ns(struct prof_judge *judge, struct prof_spots *spots)
{
    const struct prof_facts *f = judge->facts;
    struct prof_intervals building = {0};
    for (size_t i = 0; i < f->calls.count; i++) {
        const struct prof_call *call = &f->calls.data[i];
        int64_t begin = call->start > f->begin_ns ? call->start : f->begin_ns;
        int64_t end = prof_add(call->start, call->duration);
        end = end < f->end_ns ? end : f->end_ns;
        if (!prof_call_builds(call) || begin >= end || is_analysed(f, call->start))
            continue;
        judge->failed |= !prof_intervals_add(&building, begin, end);
        prof_spots_add(spots, (struct prof_spot){call->start, call->duration, 0, call->thread, 0});
    }
    for (size_t i = 0; i < f->compiles.count; i++) {
        const struct prof_compile *one = &f->compiles.data[i];
        int64_t begin = one->begin > f->begin_ns ? one->begin : f->begin_ns;
        int64_t end = one->end < f->end_ns ? one->end : f->end_ns;
        if (begin >= end || is_analysed(f, one->begin))
            continue;
        judge->failed |= !prof_intervals_add(&building, begin, end);
        prof_spots_add(spots, (struct prof_spot){begin, end - begin, 0, one->thread, 0});
    }
    prof_intervals_normalise(&building);
    int64_t ns = 0;
    for (size_t i = 0; i < building.count; i++)
        ns = prof_add(ns, building.data[i].end - building.data[i].begin);
    prof_array_free(&building);
    return ns;
}

static void one_off_cost(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    struct prof_spots spots = {0};
    int64_t ns = building_ns(judge, &spots), wall = f->end_ns - f->begin_ns;
    if (!f->steps || wall <= 0 || (double)ns < 0.05 * (double)wall)
        return;
    double step = (double)prof_facts_window_ns(f) / (double)f->steps;
    double even = (double)ns / (AMORTISED * step);
    struct prof_draft *draft = prof_found(judge, 0.9);
    prof_numbers(draft, {"one_off_ns", (double)ns}, {"one_off_share", (double)ns / (double)wall},
                 {"iteration_ns", step}, {"iterations", (double)f->steps},
                 {"amortised_share", AMORTISED},
                 {"break_even_iterations", even < 9e15 ? floor(even) + 1 : 9e15});
    prof_say(draft,
             "{one_off_ns} of compiling and loading outside the iterations, {one_off_share} of "
             "this run; an iteration takes {iteration_ns}, so it is below {amortised_share} of a "
             "run from {break_even_iterations|iteration|iterations} on.");
    draft->about_memory = true; /* outside of the window: no price in it */
    draft->most = PROF_SEVERITY_INFO;
    prof_places(judge, draft, &spots);
}

/* ---- what samples of threads add ------------------------------------------------------------- */

/* What the host did while a device waited for it, by samples of the processors: the function that a
 * finding names. */

/* Below it no function stands out. */
#define WORTH_NAMING 0.05

static const char *const state_words[PROF_CPU_STATES] = {
    [PROF_CPU_USER] = "computing",
    [PROF_CPU_KERNEL] = "inside the operating system",
    [PROF_CPU_BLOCKED] = "blocked",
    [PROF_CPU_PREEMPTED] = "waiting for a processor",
};

/* When each device works, once for all phases. */
static bool read_device_times(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    judge->device_times = calloc(f->devices.count + 1, sizeof *judge->device_times);
    while (judge->device_times && (op = prof_facts_next(f, &walk, &kind)))
        if (!prof_cpu_device_works(&judge->device_times[f->shapes.data[op->shape].device],
                                   op->start, prof_add(op->start, op->duration), op->thread))
            return false;
    return judge->device_times != NULL;
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

static void say_host_samples(struct prof_judge *judge, struct prof_draft *draft)
{
    const struct prof_facts *f = judge->facts;
    struct prof_filter filter = {.begin_ns = f->begin, .end_ns = f->end};
    struct prof_scope scope;
    struct prof_cpu cpu;
    if (!prof_cpu_sampled(f->capture)) {
        prof_say(draft, " perfkit run --cpu-sample shows in which function.");
        return;
    }
    if (!judge->device_times && !read_device_times(judge)) {
        judge->failed = true;
    } else if (!prof_scope_open(&scope, f->capture, &filter, NULL)) {
        struct prof_cpu_device_time *time = &judge->device_times[judge->device_index];
        time->window = (struct prof_interval){f->begin, f->end};
        if (!prof_cpu_of(f->capture, &scope, time, &cpu, NULL)) {
            draft_host_samples(draft, &cpu);
            prof_cpu_free(&cpu);
        }
        prof_scope_close(&scope);
    }
}

/* ---- the host's own work --------------------------------------------------------------------- */

/* Of the device's idle time what is before its first operation or after its last one, and longer
 * than any pause in between: it took no part in the repeating yet, or no more. */
static int64_t unused_ns(const struct prof_device_facts *d)
{
    int64_t pause = d->longest_pause_ns;
    return (d->lead_ns > pause ? d->lead_ns - pause : 0) +
           (d->tail_ns > pause ? d->tail_ns - pause : 0);
}

/* Does most of `host` lie between the iterations? */
static bool is_between_steps(const struct prof_judge *judge, int64_t host)
{
    return judge->facts->step_name && 2 * judge->device->outside_ns >= host;
}

static void host_starvation(struct prof_judge *judge)
{
    const struct prof_device_facts *d = judge->device;
    int64_t interpreting = prof_interpreting_ns(judge);
    int64_t host = d->slice_ns[PROF_SLICE_HOST] - unused_ns(d) - interpreting;
    int64_t woken = d->woken_ns < host ? d->woken_ns : host; /* a cause only where the host works */
    int64_t idle = host + woken;
    if (host <= 0 || d->gaps < 5 || prof_misses_work(judge))
        return;
    bool between = is_between_steps(judge, host);
    struct prof_draft *draft = prof_found(judge, between || prof_steps(judge) < 20 ? 0.4 : 0.7);
    prof_numbers(draft, {"idle_ns", (double)idle}, {"idle_share", prof_of_window(judge, idle)},
                 {"longest_ns", (double)d->longest_pause_ns}, {"gaps", (double)d->gaps});
    prof_claim(judge, draft, "idle_host_ns", PROF_SLICE_HOST, host);
    prof_claim(judge, draft, "idle_woken_ns", PROF_SLICE_SYNC, woken);
    if (d->launch_behind_host_ns)
        prof_claim(judge, draft, "idle_launch_ns", PROF_SLICE_LAUNCH, d->launch_behind_host_ns);
    prof_say(
        draft,
        "The device is idle for {idle_ns}, {idle_share} of the time, because the host does "
        "something other than launching or waiting for it; the longest time for {longest_ns}.");
    if (between)
        prof_say(draft,
                 " Most of it lies between the iterations (%s): by design where the program waits "
                 "for requests or for a user.",
                 prof_short_name(judge->facts->step_name).text);
    draft->finding.names_no_cause = prof_is_python(judge); /* until samples or ranges give one */
    say_host_samples(judge, draft);
    prof_mend(draft, (struct prof_edit){.no_host_gaps = true,
                                        .launching_ns = interpreting ? PROF_BRIEF_NS : 0});
    prof_places(judge, draft, &d->spots[PROF_SLICE_HOST]);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_host[] = {
    {.page =
         {.id = "alloc-in-loop",
          .title = "Device memory allocated in every step",
          .fires =
              "At least three allocations in the iterations, one in every second "
              "iteration or more: of memory that is freed there, or, where none is, "
              "of memory that is kept. Allocations from pools in stream order (cudaMallocAsync) do "
              "not count.",
          .why = "Allocating goes through the operating system, and freeing waits for the "
                 "device: the queue runs empty and the host starts it anew. New memory is also "
                 "slow at first touch where the host's pages are the device's.",
          .fix = "Allocate before the loop and reuse the buffers, or take them from "
                 "a pool.",
          .cuda = "Move cudaMalloc and cudaFree out of the loop; or cudaMallocAsync "
                  "and cudaFreeAsync, with cudaMemPoolAttrReleaseThreshold set to "
                  "UINT64_MAX by cudaMemPoolSetAttribute, so that the pool keeps its "
                  "memory.",
          .opencl = "Call clCreateBuffer once, before the loop; cut parts from one "
                    "large buffer with clCreateSubBuffer.",
          .pytorch = "Make outputs once and write them by out= or `copy_()`; no "
                     "torch.cuda.empty_cache() in the loop, which empties the caching "
                     "allocator. Where sizes grow, preallocate: run the longest batch once "
                     "before the loop, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
          .jax = "No XLA_PYTHON_CLIENT_ALLOCATOR=platform, which allocates by cudaMalloc "
                 "each time; jax.jit(step, donate_argnums=0) writes the new state into the "
                 "old one's memory.",
          .bound = "Idle time of the device in allocation calls, in the waits and launches of "
                   "the same gaps, the calls' own time as far as it delays other launches (but "
                   "for the time by which calls outlast the work they launch: that stays), and "
                   "on a CPU 250 ns for each new page of 4 KiB.",
          .limits = "Memory that a library allocates is counted as the program's.",
          .needs = "allocations"},
     .judge = alloc_in_loop},
    {.page = {.id = "host-alloc-in-loop",
              .title = "Page-locked host memory allocated in every step",
              .fires = "At least three allocations or registrations of page-locked memory in the "
                       "iterations, one in every second iteration or more.",
              .why = "Page-locking walks all pages and talks to the device: some 100 us per call, "
                     "and freeing waits for the device.",
              .fix = "Page-lock one host buffer before the loop and use it in every "
                     "iteration.",
              .cuda = "Move cudaHostAlloc, cudaMallocHost or cudaHostRegister, and what "
                      "frees it, out of the loop.",
              .opencl = "clCreateBuffer with CL_MEM_ALLOC_HOST_PTR and clEnqueueMapBuffer "
                        "once, before the loop; keep it mapped.",
              .pytorch = "DataLoader(pin_memory=True) instead of `.pin_memory()` per batch; "
                         "for buffers of your own torch.empty(..., pin_memory=True) once.",
              .bound = "Idle time of the device in those calls.",
              .limits = "None known.",
              .needs = "API calls"},
     .judge = host_alloc_in_loop},
    {.page =
         {.id = "compile-in-loop",
          .title = "Code compiled or loaded while the program runs in its loop",
          .fires = "Three calls or more that compile, load modules or instantiate graphs in the "
                   "iterations, one in every second iteration or more; or in five iterations and "
                   "a tenth of them, where the device is idle for 5 % of the time meanwhile. What "
                   "XLA does to compile a "
                   "function (its NVTX range XlaCompile) is one, with the kernels that it tries "
                   "meanwhile; so is what torch.compile does, recorded by --pytorch.",
          .why = "Compiling takes milliseconds to seconds; loading code waits for the device.",
          .fix = "Build before the loop, and ship device code instead of PTX or "
                 "source.",
          .cuda = "nvcc -gencode arch=compute_90,code=sm_90 (of your device); "
                  "CUDA_MODULE_LOADING=EAGER in the environment; cudaGraphExecUpdate "
                  "instead of cudaGraphInstantiate again.",
          .opencl = "clBuildProgram once, and keep the kernels; "
                    "clCreateProgramWithBinary from saved CL_PROGRAM_BINARIES.",
          .pytorch = "Run every shape once before the loop; pad, or "
                     "torch._dynamo.mark_dynamic(tensor, dim), so that torch.compile "
                     "does not compile again: TORCH_LOGS=recompiles says why it does.",
          .jax = "jax.jit outside the loop, of one function object; pad the arguments to one "
                 "shape, or to a few; static_argnums only for arguments of few values, as "
                 "each new value compiles again: JAX_LOG_COMPILES=1 says when it does, "
                 "JAX_EXPLAIN_CACHE_MISSES=1 why.",
          .bound =
              "Idle time of the device in those calls, and in launches in the same "
              "gaps, up to as much again: a runtime may compile or load only there. Where XLA or "
              "torch.compile compiles, also the host's own work in these gaps (tracing), up to as "
              "much again.",
          .limits = "Lazy loading inside a launch shows as a long launch, not here; what other "
                    "libraries compile without an API call or such a range, as the host's own "
                    "work.",
          .needs = "API calls; XLA's NVTX ranges; --pytorch"},
     .slows_kernels = true,
     .judge = compile_in_loop},
    {.page = {.id = "one-off-cost",
              .title = "Start-up dominates this run",
              .fires = "Compiling and loading before the iterations take 5 % of the run.",
              .why = "It is paid once: it does not matter in a long run and is all of a short one.",
              .fix = "Keep what is compiled at the start in a cache, or measure a "
                     "longer run.",
              .cuda = "nvcc -gencode arch=compute_90,code=sm_90 (of your device) leaves "
                      "nothing to compile; CUDA_CACHE_MAXSIZE=4294967296 keeps what is; "
                      "CUDA_MODULE_LOADING=LAZY loads only kernels that run.",
              .opencl = "clCreateProgramWithBinary from saved CL_PROGRAM_BINARIES.",
              .pytorch = "TORCHINDUCTOR_FX_GRAPH_CACHE=1 with TORCHINDUCTOR_CACHE_DIR on a "
                         "disk that stays; no torch.compile for runs of few steps.",
              .jax = "JAX_COMPILATION_CACHE_DIR on a disk that stays, with "
                     "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 for what compiles in less than "
                     "1 s; jax.lax.scan over equal layers instead of a Python loop, which is "
                     "unrolled.",
              .bound = "None: it lies outside the analysed interval. The number of iterations from "
                       "which on it is below 5 % is printed.",
              .limits = "None known.",
              .needs = "API calls, XLA's NVTX ranges, and iterations"},
     .per_capture = true,
     .judge = one_off_cost},
    {.page = {.id = "host-starvation",
              .title = "The device waits for the host",
              .fires = "In five gaps or more the device is idle while the launching thread neither "
                       "launches nor waits nor allocates.",
              .why = "The host prepares the next step only when the last one is done: reading "
                     "data, computing, waiting for others.",
              .fix = "Prepare ahead on another thread, or queue several iterations at "
                     "once. The places name the NVTX range and the thread that the "
                     "device waits for.",
              .cuda = "Load and prepare data on a second host thread; queue the next "
                      "iteration before cudaEventSynchronize on this one; "
                      "cudaLaunchHostFunc for callbacks.",
              .opencl = "Prepare data on a second host thread; clFlush right after "
                        "queueing; clWaitForEvents on the iteration before instead of "
                        "clFinish.",
              .pytorch = "DataLoader(num_workers=8, prefetch_factor=4, "
                         "persistent_workers=True); torch.compile or torch.cuda.graph() "
                         "where it is Python between small operators.",
              .jax = "jax.jit around the whole step, of one shape, as each new one compiles; "
                     "jax.vmap in place of a Python loop over pieces, jax.lax.scan or "
                     "jax.lax.fori_loop where each needs the one before; jax.device_put of the "
                     "next batch on a second thread.",
              .bound = "That idle time, with the 50 us after waits from which the host went to it, "
                       "at most as much again. In gaps that the host's work makes longer than "
                       "500 us and is most of, also the launch that ends them.",
              .limits = "A service that waits for requests is idle by design; where NVTX ranges "
                        "mark its requests, the finding says that the device is idle between them.",
              .needs = "kernels with their calls"},
     .slows_kernels = true,
     .advice = PROF_ADVICE_HOST,
     .judge = host_starvation},
    {.judge = NULL},
};
