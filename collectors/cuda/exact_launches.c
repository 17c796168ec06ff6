/* The launches that are counted: those whose kernel's name matches, and their counts until the
 * kernel's record arrives. A name is matched once, at the kernel's first launch; the C library
 * takes memory for that, as CUPTI does for the counting. */
#include <regex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/core/option_text.h"
#include "collectors/cuda/exact.h"
#include "collectors/cuda/exact_subjects.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define MAX_REGEX 1024 /* bytes of the option */

struct plain_launch { /* cuLaunchKernel, cuLaunchCooperativeKernel */
    const void *function;
    struct exact_shape shape;
};
struct extended_launch { /* cuLaunchKernelEx; CUlaunchConfig begins so */
    const struct exact_shape *config;
    const void *function;
};

static regex_t wanted_name;

bool exact_wanted_start(void)
{
    static char pattern[MAX_REGEX], why[MAX_REGEX + 128];
    if (!collector_option("exact", pattern, sizeof pattern))
        return false;
    option_decode(pattern);
    int failed = regcomp(&wanted_name, pattern, REG_EXTENDED | REG_NOSUB);
    if (failed == 0)
        return true;
    snprintf(why, sizeof why, "no launch was counted: '%s' is no regular expression", pattern);
    collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_DEGRADED, why, (uint32_t)failed);
    return false;
}

static bool symbol_starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool exact_wanted_shape(const char *name, const CUpti_CallbackData *call, struct exact_shape *out)
{
    if (!call->functionParams || !call->symbolName)
        return false;
    if (symbol_starts_with(name, "cuLaunchKernelEx")) {
        const struct extended_launch *from = call->functionParams;
        if (!from->config)
            return false;
        *out = *from->config;
        return true;
    }
    if ((!symbol_starts_with(name, "cuLaunchKernel") &&
         !symbol_starts_with(name, "cuLaunchCooperativeKernel")) ||
        strstr(name, "MultiDevice")) /* before CUDA 13: several, which wait for each other */
        return false;
    const struct plain_launch *from = call->functionParams;
    *out = from->shape;
    return true;
}

static bool kernel_is_wanted(const char *symbol)
{
    char name[512];
    if (strstr(symbol, "nccl"))
        return false;
    return regexec(&wanted_name, symbol, 0, NULL, 0) == 0 ||
           (cuda_kernel_plain_name(symbol, name, sizeof name) &&
            regexec(&wanted_name, name, 0, NULL, 0) == 0);
}

/* Kernels take one place each, whatever their configurations: that of no blocks at all. */
struct exact_subject *exact_wanted_subject(const char *symbol, const struct exact_shape *shape,
                                           struct exact_subject **kernel, bool *full)
{
    static const struct exact_shape any = {.shared = 0};
    bool fresh;
    uint32_t name = collector_text(symbol);
    *full = false;
    *kernel = exact_subject_of(name, &any, &fresh);
    if (fresh)
        (*kernel)->given_up = !kernel_is_wanted(symbol);
    if (*kernel && (*kernel)->given_up)
        return NULL;
    struct exact_subject *subject = *kernel ? exact_subject_of(name, shape, &fresh) : NULL;
    if (subject && fresh)
        subject->wanted = true;
    *full = !subject;
    return subject;
}

/* ---- Counts that wait for their records -------------------------------------------------------
 *
 * Written by the thread that has the turn of counting, read by the helper thread; a bit for each
 * launch saves the search for launches that were not counted. */

#define WAITING 8192u /* memory that is not used is not there */
#define MARKS 65536u

enum { FREE, FULL };
struct waiting {
    _Atomic uint32_t state; /* FREE, FULL */
    uint32_t name;          /* string id, 0 = the record's */
    struct exact_launch launch;
    double values[EXACT_MAX_COUNTS];
};

static struct waiting *waiting; /* [WAITING] */
static uint32_t next;           /* where a free one may be; of the thread that has the turn */
static _Atomic uint32_t kept;   /* of them are FULL */
static _Atomic uint32_t unmatched;
static _Atomic uint64_t marks[MARKS / 64]; /* bit: a counted launch has this id, modulo MARKS */

bool exact_results_start(void)
{
    return waiting || (waiting = cuda_reserve(sizeof *waiting * WAITING));
}

static void mark_exact_id(uint32_t id)
{
    atomic_fetch_or(&marks[id % MARKS / 64], 1ull << id % 64);
}

static bool is_marked(uint32_t id)
{
    return atomic_load(&marks[id % MARKS / 64]) >> id % 64 & 1;
}

void exact_results_keep(const struct exact_launch *launch, const double *values)
{
    for (size_t i = 0; i < WAITING; i++) {
        struct waiting *w = &waiting[next++ % WAITING];
        if (atomic_load_explicit(&w->state, memory_order_acquire) != FREE)
            continue;
        w->launch = *launch;
        w->name = cuda_correlation_find(CUDA_LAUNCH_NAME, launch->own);
        memcpy(w->values, values, launch->pass->count * sizeof *values);
        mark_exact_id(launch->own);
        if (launch->outer)
            mark_exact_id(launch->outer);
        atomic_store_explicit(&w->state, FULL, memory_order_release);
        atomic_fetch_add(&kept, 1);
        return;
    }
    atomic_fetch_add(&unmatched, 1);
}

uint32_t exact_results_lost(void)
{
    return atomic_exchange(&unmatched, 0) + atomic_load(&kept);
}

/* ---- the helper thread ----------------------------------------------------------------------- */

static struct waiting *find_waiting_result(uint32_t id)
{
    if (!atomic_load_explicit(&kept, memory_order_acquire) || !id || !is_marked(id))
        return NULL;
    for (size_t i = 0; i < WAITING; i++) {
        struct waiting *w = &waiting[i];
        if (atomic_load_explicit(&w->state, memory_order_acquire) == FULL &&
            (w->launch.own == id || w->launch.outer == id))
            return w;
    }
    return NULL;
}

uint32_t cuda_exact_outer(uint32_t id)
{
    const struct waiting *w = find_waiting_result(id);
    return w ? w->launch.outer : 0;
}

uint32_t cuda_exact_name(uint32_t id)
{
    const struct waiting *w = find_waiting_result(id);
    return w ? w->name : 0;
}

static void emit_exact_result(const struct waiting *w, uint32_t config, uint32_t stream,
                              uint64_t correlation)
{
    const struct exact_launch *launch = &w->launch;
    static const struct exact_counter complete = {EXACT_COMPLETE, "", ""};
    struct wire_exact_count out = {
        .head = {sizeof out, WIRE_EXACT_COUNT, 0, config},
        .correlation = correlation,
        .time = launch->time,
        .stream = stream,
    };
    for (size_t i = 0; i < launch->pass->count + launch->completes; i++) {
        bool counted = i < launch->pass->count;
        const struct exact_counter *counter = counted ? &launch->pass->counters[i] : &complete;
        out.value = counted ? w->values[i] : 1;
        out.name = collector_text(counter->name);
        out.unit = collector_text(counter->unit);
        out.metric = collector_text(counter->metric);
        collector_emit(&out);
    }
}

void cuda_exact_kernel(uint32_t id, uint32_t config, uint32_t stream, uint64_t correlation)
{
    struct waiting *w = find_waiting_result(id);
    if (!w)
        return;
    emit_exact_result(w, config, stream, correlation);
    atomic_store(&w->state, FREE);
    atomic_fetch_sub(&kept, 1);
}

void exact_results_forked(void)
{
    atomic_store(&kept, 0);
    atomic_store(&unmatched, 0);
    cuda_wipe(waiting, sizeof *waiting * WAITING);
}
