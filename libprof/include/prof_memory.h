/* prof_memory.h: live bytes over time and at one moment, peaks, leaks, pools; and who allocates: by
 * call path, with what is never freed, what lives briefly, and what grows. Conventions as in
 * prof.h. */
#ifndef PERFKIT_PROF_MEMORY_H
#define PERFKIT_PROF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_stack.h"
#include "libprof/include/prof_summaries.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- all memory ------------------------------------------------------------------------------ */

struct prof_allocation {
    int64_t id, process, thread, device, context;
    int64_t start_ns, end_ns; /* end: PROF_UNKNOWN = never freed */
    int64_t bytes;
    int64_t address; /* PROF_UNKNOWN = not known */
    int kind;
};

struct prof_memory_row {
    int kind; /* memory kind; -1 in prof_memory_summary.total */
    const char *kind_text;
    struct prof_spread bytes; /* sizes of the allocations */
    int64_t freed;
    int64_t peak_bytes; /* most bytes live at one moment */
    int64_t peak_ns;    /* first moment of it; PROF_UNKNOWN without allocations */
    int64_t leaks;      /* not freed when their process ended (or when the capture stops);
                         * static variables of modules are never leaks */
    int64_t leaked_bytes;
};

struct prof_memory_summary {
    struct prof_memory_row *rows; /* per memory kind, by peak, largest first */
    size_t count;
    struct prof_memory_row total;  /* all kinds at once: its peak is a true simultaneous peak */
    struct prof_allocation *leaks; /* the largest, by bytes; at most leak_limit */
    size_t leak_count;
};

/* Allocations per memory kind, peaks and what was never freed. filter->begin_ns/end_ns choose
 * allocations by their start. Memory grows with the number of allocations alive at once. */
enum prof_status prof_memory_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     size_t leak_limit, struct prof_memory_summary *result,
                                     struct prof_error *err);
void prof_memory_summary_free(struct prof_memory_summary *result);

/* From time_ns on, `bytes` are live, until the next point. In a thinned timeline changes that are
 * close together are joined: from the first of them to the last, which is the next point, `bytes`
 * is the mean and peak_bytes the highest level. A peak so lasts no longer than the joined changes.
 */
struct prof_memory_point {
    int64_t time_ns;
    int64_t bytes;
    int64_t peak_bytes; /* the same as bytes when not thinned */
};

struct prof_memory_timeline {
    struct prof_memory_point *points; /* times strictly rising; the first is 0 bytes at the window's
                                         begin unless something lives there */
    size_t count;
    bool thinned;
    int64_t peak_bytes, peak_ns;
};

/* The step function of live bytes of one memory kind (-1 = all). With max_points > 0 at most that
 * many points (at least 16), of equal spans of time; memory is bounded by it. */
enum prof_status prof_memory_timeline(struct prof_capture *capture,
                                      const struct prof_filter *filter, int kind, size_t max_points,
                                      struct prof_memory_timeline *result, struct prof_error *err);
void prof_memory_timeline_free(struct prof_memory_timeline *result);

/* One memory pool. An address used again after its pool was destroyed is another pool. */
struct prof_pool {
    int64_t process, device; /* ids, 0 = unknown */
    int64_t address;
    int64_t made_ns, destroyed_ns; /* PROF_UNKNOWN = not seen */
    int64_t trims;
    int64_t peak_bytes,
        peak_used_bytes;     /* the maximum of its records; PROF_UNKNOWN = none has any */
    int64_t unused_bytes;    /* the most of peak_bytes that was not used; PROF_UNKNOWN */
    int64_t threshold_bytes; /* release threshold, the last known; INT64_MAX: keeps all */
};

struct prof_pool_summary {
    struct prof_pool *rows; /* by peak, largest first */
    size_t count;
};

/* The memory pools. filter: process, device, and the time of their records. */
enum prof_status prof_pool_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_pool_summary *result, struct prof_error *err);
void prof_pool_summary_free(struct prof_pool_summary *result);

/* ---- by where it was allocated --------------------------------------------------------------- */

struct prof_alive {
    struct prof_allocation *rows; /* by bytes, largest first; at most `limit` */
    size_t count;
    int64_t total, total_bytes; /* all that were alive, listed or not */
};

/* The allocations of one memory kind (-1 = all) that were alive just after `at_ns`: made until then
 * and not freed yet. filter: process, device, thread, NVTX range of the allocating call; its times
 * play no part; one that chooses kernels or streams leaves nothing. One scan; memory grows with the
 * number alive. */
enum prof_status prof_memory_alive(struct prof_capture *capture, const struct prof_filter *filter,
                                   int kind, int64_t at_ns, size_t limit, struct prof_alive *result,
                                   struct prof_error *err);
void prof_alive_free(struct prof_alive *result);

/* ---- memory by where it was allocated -------------------------------------------------------- */

enum prof_memory_verdict {
    PROF_MEMORY_FREED, /* all of it was freed */
    PROF_MEMORY_KEPT,  /* some never was; the program does not repeat itself enough to say more */
    PROF_MEMORY_STATE, /* some never was, but steps do not go on keeping more */
    PROF_MEMORY_LEAK,  /* steps after warm-up go on keeping more, until the last one is over */
};

/* What is said of the allocations of a place and of a call path alike. Static variables of modules
 * are never kept or leaked: no call can free them. */
struct prof_memory_use {
    int64_t count, bytes;           /* allocations, and their sizes together */
    int64_t held_count, held_bytes; /* live at the peak of the device */
    int64_t kept_count, kept_bytes; /* never freed; of a call path that leaks, also what was freed
                                       only when the last step was over */
    /* Churn: freed in the step that made it or within PROF_MEMORY_BRIEF_NS, and the host's time in
     * the calls that did both (PROF_UNKNOWN = none of the calls is known). */
    int64_t brief_count, brief_bytes, brief_call_ns;
};
#define PROF_MEMORY_BRIEF_NS 1000000

/* One of many that lived about as long: the one that lived longest. */
struct prof_memory_longest {
    int64_t start_ns, lived_ns; /* both 0: there is none */
};
#define PROF_MEMORY_POWERS 63

/* The memory of a device, or page-locked memory of the host; all of it, or one kind. */
struct prof_memory_place {
    int64_t device; /* prof_device.physical; 0 = not known, or the host */
    bool host;
    int kind; /* memory kind; -1 = all kinds of the device, whose rows follow */
    const char *kind_text;
    struct prof_memory_use use;
    int64_t peak_bytes, peak_ns;     /* of this row alone; PROF_UNKNOWN without a peak */
    int64_t capacity_bytes;          /* of the device; PROF_UNKNOWN for the host */
    struct prof_spread lifetime_ns;  /* of what was freed */
    struct prof_histogram lifetimes; /* the same, ns */
    struct prof_memory_longest longest[PROF_MEMORY_POWERS]; /* [i]: of 2^i ns to below 2^(i+1) */
    /* Bytes by which what a phase allocated and did not free yet grows from one of its iterations
     * to the next after warm-up, as the median over pairs of iterations half the phase apart
     * (Theil's incomplete method, Proc. Kon. Ned. Akad. A 53 (1950)); NaN without iterations. Of
     * the phase where it grows most. Only for all kinds. */
    double growth_bytes;
    const char *growth_phase; /* as prof_phase_row.name of prof_memory_profile.phases */
};

/* What one call path allocates in one kind of memory. */
struct prof_memory_site {
    uint32_t node; /* of prof_memory_profile.tree */
    int64_t device;
    bool host;
    int kind;
    const char *kind_text;
    /* Texts, owned by the profile. path: outermost first, "main (a.c:9) > train > step >
     * cudaMalloc". name: the innermost source line, else the API call. brief: for people, who look
     * at the inner end first: "grow (a.c:30) < main (a.c:9) in train > step"; without a stack as
     * path. */
    const char *name, *path, *brief;
    struct prof_memory_use use;
    double held_share;         /* of the device's peak; NaN without one */
    double lifetime_median_ns; /* of what was freed; NaN = nothing was */
    /* Of the phase that keeps most, one that leaks before others: */
    const char *phase;     /* as prof_phase_row.name of prof_memory_profile.phases; NULL = none */
    int64_t steps;         /* its iterations after warm-up */
    int64_t steps_keeping; /* of those, how many kept some */
    double growth_bytes;   /* kept per iteration after warm-up; NaN without iterations */
    enum prof_memory_verdict verdict;
};

/* An allocation that found no room, and who held the memory then. */
#define PROF_MEMORY_HOLDERS 5
struct prof_memory_failure {
    int64_t time_ns, process, thread; /* ids, 0 = unknown */
    int64_t device;                   /* as in a place */
    bool host;
    int kind; /* memory kind; 0 = unknown */
    const char *kind_text;
    int64_t bytes;  /* requested; PROF_UNKNOWN */
    int64_t tries;  /* the same again within a second: an allocator that freed what it kept */
    int64_t result; /* the API's code */
    const char *result_text;  /* "out of memory", "CL_INVALID_BUFFER_SIZE"; NULL = another */
    const char *path, *brief; /* of the call; as those of a site */
    int64_t live_bytes;       /* allocated there at that moment */
    int64_t free_bytes;       /* by the driver's last sample before it; PROF_UNKNOWN */
    int64_t capacity_bytes;   /* PROF_UNKNOWN for the host */
    struct {
        size_t site; /* of prof_memory_profile.sites */
        int64_t bytes;
    } holders[PROF_MEMORY_HOLDERS]; /* by bytes, largest first */
    size_t holder_count;
};

/* A device's memory by its driver's count, at the sample when most was in use, beside what was
 * seen: used = other + tracked + granularity + context + rest. PROF_UNKNOWN without samples of use.
 */
struct prof_memory_driver {
    int64_t device;
    int64_t samples; /* all of them; those within a millisecond of a change are not compared */
    int64_t compared;
    int64_t time_ns;
    int64_t total_bytes, used_bytes;
    int64_t other_bytes; /* other processes and the driver itself: as the driver reports, else what
                            was in use before the program had the device */
    int64_t tracked_bytes;     /* allocations that are alive, and what pools reserve */
    int64_t granularity_bytes; /* CUDA hands memory out in 2 MiB: what that adds to them */
    int64_t context_bytes; /* contexts, modules, the libraries' own: what is over in every sample */
    int64_t rest_bytes;    /* over at this sample above that */
    double worst_share;    /* the greatest rest of a sample, of what was in use then */
};

struct prof_memory_profile {
    struct prof_memory_place *places; /* by peak, largest first; kinds after their device */
    size_t place_count;
    struct prof_memory_site *sites; /* by bytes live at the peak, then by bytes */
    size_t site_count;
    struct prof_memory_failure *failures; /* the first ones, in order of time */
    size_t failure_count;
    int64_t failed;                     /* all of them, tries of one as one */
    struct prof_memory_driver *drivers; /* a row a device that was sampled */
    size_t driver_count;
    struct prof_pool *pools; /* as prof_pool_summary */
    size_t pool_count;
    struct prof_flame tree;        /* self: bytes live at the peak; bytes, count: all allocations */
    struct prof_phase_row *phases; /* as those of findings */
    size_t phase_count;
    int64_t steps;         /* iterations after warm-up, of all phases; 0 = nothing repeats */
    int64_t warm_up;       /* those left out */
    const char *step_name; /* range of the main phase; NULL = found by the operations alone */
    const char *why_none;  /* why nothing is reported; static; NULL = it is */
    char *texts;           /* owned: of the paths */
};

/* Who allocates what, in one pass over allocations and the calls that made them. Steps are
 * iterations (prof_findings.h); each phase is looked at by its own. filter: process, device,
 * thread, NVTX range of the allocating call; with a time range what lives in it. One that chooses
 * kernels or streams leaves nothing. Memory: what the rules take, and about 100 bytes an
 * allocation. */
enum prof_status prof_memory_profile(struct prof_capture *capture, const struct prof_filter *filter,
                                     struct prof_memory_profile *result, struct prof_error *err);
void prof_memory_profile_free(struct prof_memory_profile *result);

/* Bytes that an iteration of one phase keeps more, by the sites here that leak: of the phase that
 * keeps most. device: in the memory of this one alone; PROF_UNKNOWN = all. *phase: its name; NULL =
 * it has none. 0 = nothing leaks. */
double prof_memory_leak_growth(const struct prof_memory_profile *profile,
                               const struct prof_memory_site *sites, size_t count, int64_t device,
                               const char **phase);

/* "freed", "kept", "state", "leak" */
const char *prof_memory_verdict_text(enum prof_memory_verdict verdict);

#ifdef __cplusplus
}
#endif

#endif
