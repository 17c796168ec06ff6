/* How a rule reports what it found. A rule looks at the facts of one device (or of the capture) and
 * adds drafts: a sentence, its figures, the places, and claims on states of the waterfall. Claims
 * are what makes prices add up: an instant is paid for once, to the rule that stands first in the
 * registry. */
#ifndef PERFKIT_ANALYSIS_RULES_JUDGE_H
#define PERFKIT_ANALYSIS_RULES_JUDGE_H

#include "libprof/analysis/rules/replay.h"
#include "libprof/include/prof_findings.h"
#include "libprof/include/prof_memory.h"
#include "libprof/base/format.h"
#include "libprof/include/prof_ranks.h"
#include "libprof/include/prof_stalls.h"

/* What is left of a kernel's time alone when a fault is fixed. */
struct prof_least {
    uint32_t shape; /* index into facts.shapes */
    int64_t ns;
};

struct prof_draft {
    struct prof_finding finding;
    int64_t claims[PROF_SLICES]; /* ns of each state that fixing it would save; no more than the
                                    device has of it */
    PROF_ARRAY(struct prof_least) least; /* likewise of kernels, each once */
    uint32_t device;                     /* index into facts.devices */
    enum prof_severity most;             /* never shown as more than this */
    bool about_memory;                   /* not about time: no claims */
    int64_t slowed_ns, slowed_in_all_ns; /* see prof_claim_slowed */
    struct prof_edit edit;               /* for the replay */
    bool has_edit;
};

struct prof_judge {
    const struct prof_facts *facts;
    const struct prof_device_facts *device; /* NULL for rules about the capture */
    uint32_t device_index;
    const struct prof_roofline *roofs; /* by launch configuration */
    struct prof_map roof_index;        /* of prof_roof_of */
    const struct prof_ceilings *ceilings;
    const struct prof_ranks *ranks;           /* empty where the program has none */
    const struct prof_memory_profile *memory; /* who allocates */
    const struct prof_stalls *stalls;         /* empty without --stalls */
    bool has_stacks;                          /* they were recorded */
    /* By number of a range's text, for all phases: 1 + its remedy (framework.c; no array: none has
     * one), and its role (needless.c). */
    unsigned char *remedies, *roles;
    bool knows_remedies;
    bool names_needless; /* some roles are those of operators that may be needless */
    struct prof_cpu_device_time *device_times; /* by device, for all phases; NULL = not read yet */
    double *slowed; /* by shape, of prof_claim_slowed; NULL = not read yet in this phase */
    const struct prof_rule *rule;
    PROF_ARRAY(struct prof_draft) drafts;
    PROF_ARRAY(struct prof_abstention) abstentions;
    bool failed; /* out of memory */
};

/* What of a finding a framework's operators are looked up for (framework.c). */
enum prof_advice {
    PROF_ADVICE_NONE,
    PROF_ADVICE_LAUNCHES, /* who launches kernels */
    PROF_ADVICE_WAITS,    /* who reads small values back */
    PROF_ADVICE_HOST,     /* in what the host is busy */
};

struct prof_rule {
    struct prof_rule_page page;
    bool per_capture;   /* judged once, not per device */
    bool slows_kernels; /* it is about the host or memory, which the kernels of processors share */
    enum prof_advice advice;
    void (*judge)(struct prof_judge *judge);
};

/* Families of rules, each ended by one without an id. */
extern const struct prof_rule prof_rules_round_trip[], prof_rules_transfer[], prof_rules_wait[],
    prof_rules_fusion[], prof_rules_launch[], prof_rules_host[], prof_rules_kernel[],
    prof_rules_ranks[], prof_rules_roof[], prof_rules_stalls[], prof_rules_precision[],
    prof_rules_hot[], prof_rules_memory[], prof_rules_library[], prof_rules_needless[];

/* FLOP per byte: below, memory and not arithmetic takes the time anywhere. */
#define PROF_STREAMING 4.0

/* A new draft; never NULL (without memory: one that is thrown away). Valid until the next call. */
struct prof_draft *prof_found(struct prof_judge *judge, double confidence);
/* A figure; one of that name is replaced. */
void prof_number(struct prof_draft *draft, const char *name, double value,
                 enum prof_number_unit unit);
/* Several, {"name", value} each; the names end in the units: ns, bytes, rate, share, factor; all
 * else are counts. */
struct prof_figure {
    const char *name;
    double value;
};
#define prof_numbers(draft, ...)                                                                   \
    prof_add_figures(draft, (const struct prof_figure[]){__VA_ARGS__, {NULL, 0}})
void prof_add_figures(struct prof_draft *draft, const struct prof_figure *figures);
/* Add to the draft's sentence. "{launches}" is the number of that name,
 * "{launches|launch|launches}" that number with its noun, and %s a text of the program (const char
 * *), never a figure. What does not fit behind an earlier part is left out whole. */
void prof_say(struct prof_draft *draft, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Add ", 320 per iteration" where there are iterations: of a number, as the number `name`. */
void prof_say_per_iteration(struct prof_judge *judge, struct prof_draft *draft, const char *name,
                            const char *of);
/* Make `ns` more a term of the bound, of that name: sign +1 or -1. */
void prof_term(struct prof_draft *draft, const char *name, int64_t ns, int sign);
/* Claim `ns` of a state, or what is left of the state to claim, as part of the number `term`;
 * negative counts as 0. */
void prof_claim(struct prof_judge *judge, struct prof_draft *draft, const char *term,
                enum prof_slice slice, int64_t ns);
/* Claim this part, 0..1, of a kernel's time alone; once for each kernel. Rules that blame the same
 * kernel are paid for what they leave less of it than those before. All of them are the number
 * "saved_kernel_ns". */
void prof_claim_kernel(struct prof_judge *judge, struct prof_draft *draft,
                       const struct prof_shape *shape, double part);
/* Where the host's processors are the device, kernels are slower beside what the host does and
 * behind what it leaves in their caches: claim the time by which they exceed the fastest tenth of
 * their kind, no more than the draft claims of states in which no kernel runs. */
void prof_claim_slowed(struct prof_judge *judge, struct prof_draft *draft);
/* Set same_cause of a draft: the one before it that claims most of the same time. False: out of
 * memory. */
bool prof_find_same_cause(const struct prof_judge *judge, size_t at);
/* What the fix means for the replay. */
void prof_mend(struct prof_draft *draft, struct prof_edit edit);
void prof_place(struct prof_judge *judge, struct prof_draft *draft, const struct prof_spot *spot);
void prof_places(struct prof_judge *judge, struct prof_draft *draft,
                 const struct prof_spots *spots);
/* The longest operation of a shape, as a place. */
struct prof_spot prof_longest_spot(const struct prof_judge *judge, const struct prof_shape *shape);
void prof_abstain(struct prof_judge *judge, const char *why);

/* Repetitions that the judge's device takes part in; of the capture where it judges no device. */
int64_t prof_steps(const struct prof_judge *judge);

/* Does something that happens `count` times happen in the loop? It does in at least half of the
 * iterations, `distinct` of them; where nothing repeats, at least for every second launch of the
 * most frequent kernel. */
bool prof_in_loop(const struct prof_judge *judge, int64_t count, int64_t distinct);
/* In how many of the iterations calls of these classes (bits of enum wire_class) are made. */
int64_t prof_iterations_with(struct prof_judge *judge, unsigned classes);

/* Abstain, and say so, where work of the device is missing in the capture: what looks idle may have
 * been work. */
bool prof_misses_work(struct prof_judge *judge);

/* A share of the window, 0 without one. */
double prof_of_window(const struct prof_judge *judge, int64_t ns);

bool prof_is_cuda(const struct prof_judge *judge);

/* What a kernel takes that does nothing: what the shortest one of the judge's device takes, but no
 * more than `most_ns`. Rules that make kernels shorter leave PROF_LEAST_START_NS of it; rules that
 * make them fewer save up to PROF_MOST_START_NS of each. */
int64_t prof_kernel_start_ns(const struct prof_judge *judge, int64_t most_ns);
#define PROF_LEAST_START_NS 1000
#define PROF_MOST_START_NS 2000

/* Is it Python that launches on the judge's device? */
bool prof_is_python(const struct prof_judge *judge);

/* Are the host's processors the device? */
bool prof_is_host(const struct prof_judge *judge);

/* Is the device's memory the host's, so that copies need no bus? */
bool prof_shares_memory(const struct prof_judge *judge);

/* A name of the program, cut for a sentence. */
struct prof_short {
    char text[64];
};
struct prof_short prof_short_name(const char *name);

/* The judge's shapes: of its device, that occur in the window; not those of collectives, which are
 * no work that a launch, a grid or a roof could hold back. False at the end. */
struct prof_shape *prof_next_shape(const struct prof_judge *judge, size_t *at);
/* What those that it leaves out took, summed. */
int64_t prof_collective_ns(const struct prof_judge *judge);

/* The point of the roofline where a shape of the judge's device stands; NULL where there is none.
 * prof_index_roofs must have been called; false = out of memory. */
const struct prof_roofline_point *prof_roof_of(const struct prof_judge *judge,
                                               const struct prof_shape *shape);
bool prof_index_roofs(struct prof_judge *judge);

/* Is the shape a kernel that rule unbatched-kernels reports where its grids are small? */
bool prof_is_unbatched(const struct prof_judge *judge, const struct prof_shape *shape);

/* The host's own time between kernels, which rules about launching blame on an interpreter; 0 where
 * none of them speaks or nothing is interpreted. */
int64_t prof_interpreting_ns(struct prof_judge *judge);

/* Say which operator of the framework is behind most of it, and what its user calls instead; false
 * where none of those that a remedy is known for is. */
bool prof_advise(struct prof_judge *judge, struct prof_draft *draft, enum prof_advice what);

/* By how much recording may have lengthened the time in which a device waits for the host, within
 * the phase: measured or estimated (prof_overhead), else by counted events. */
struct prof_recording_delay {
    double least_ns, likely_ns, most_ns;
    bool counted;   /* neither measured nor estimated */
    double host_ns; /* what the host takes for those events without recording; 0 = not counted */
    double events;  /* calls and ranges, likewise */
    bool operators; /* PyTorch named its operators, among the ranges that were counted */
};
/* What recording the counted calls and ranges of the threads that launch on a device takes, were
 * nothing of it hidden. `stacks`: they were recorded. */
void prof_recorded_events(const struct prof_facts *facts, uint32_t device, bool stacks,
                          struct prof_recording_delay *sum);
/* The middle of what recording may add to one call, ns. */
double prof_recorded_call_ns(const struct prof_judge *judge);
void prof_recorded_on(const struct prof_judge *judge, uint32_t device,
                      struct prof_recording_delay *sum);

/* The part of a device's waiting for the host that recording made at least and at most, 0..1. */
struct prof_made {
    double least, likely, most;
    double in_calls; /* likely, of time in calls that wait, copy, allocate or build: few events */
    double between;  /* likely, of time in which the host launches or does something else */
    double all_ns;   /* that waiting */
    bool all;        /* it may have made all of it */
};
/* Of the slices in which the device waits for the host: those of such calls. */
bool prof_slice_has_few_events(int slice);
struct prof_made prof_made_by_recording(const struct prof_device_facts *device,
                                        const struct prof_recording_delay *recorded);
/* What the recording overhead leaves of a bound, of which `paid` is the draft's pay and `waiting`
 * the part in which the device waits for the host; see prof_finding.net_min_ns. */
void prof_set_net_bound(struct prof_finding *finding, int64_t paid, int64_t waiting,
                        const struct prof_made *made);
/* `in_calls`: what of the waiting is in slices that have few events. */
void prof_leave_recording_out(struct prof_draft *draft, int64_t waiting, int64_t in_calls,
                              const struct prof_made *made);

/* Were stacks recorded? */
enum prof_status prof_look_for_stacks(struct prof_capture *capture, bool *any,
                                      struct prof_error *err);

/* Words for a shape: kernel name, or kind of copy. */
const char *prof_shape_name(const struct prof_shape *shape);

/* All rules over facts that are not impossible. Fills the rows and the abstentions of *result,
 * which was empty. */
enum prof_status prof_judge_facts(struct prof_capture *capture, const struct prof_filter *filter,
                                  const struct prof_facts *facts, struct prof_findings *result,
                                  struct prof_error *err);

/* Why nothing is judged with this filter, static; NULL = it is. */
const char *prof_why_not_judged(const struct prof_capture *capture,
                                const struct prof_filter *filter);

/* What prof_findings reports, from facts; *result was empty but for why_none. */
enum prof_status prof_findings_of_facts(struct prof_capture *capture,
                                        const struct prof_filter *filter,
                                        const struct prof_facts *facts,
                                        struct prof_findings *result, struct prof_error *err);

/* Of rules that report kernels one by one: the same one? As strcmp. */
int prof_compare_subjects(const struct prof_finding *a, const struct prof_finding *b);

/* Set the severities of all rows, leave out those that are too little of `window_ns`, and put the
 * rest in the order of a report. */
void prof_order_findings(struct prof_findings *result, int64_t window_ns);

/* The ranges around a moment on a thread, outermost first, "a/b/c". */
void prof_range_path_text(const struct prof_facts *facts, uint32_t thread, int64_t time, char *out,
                          size_t size);

/* ---- copies (transfer.c) --------------------------------------------------------------------- */

/* What the rules about copies share: which copy is of which kind, and the time that a set of them
 * takes with the idle time around. */

bool prof_is_upload(const struct prof_shape *shape);
bool prof_is_download(const struct prof_shape *shape);
bool prof_is_scalar_readback(const struct prof_shape *shape);

struct prof_copies {
    int64_t count, bytes, sum_ns, alone_ns, call_ns;
    int64_t packable, awaited; /* of count: see prof_shape */
    bool by_library;           /* some are a library's, on a thread that only copies */
    int64_t catch_up_ns;       /* likewise; part of after[PROF_SLICE_LAUNCH] */
    int64_t python_ns;         /* see prof_shape.woken_brief_ns; 0 where it is not Python */
    int64_t alone[PROF_SLICES], before[PROF_SLICES], after[PROF_SLICES];
    struct prof_spots spots;
};

void prof_copies_add(const struct prof_judge *judge, struct prof_copies *sums,
                     const struct prof_shape *shape);

/* What scalar-readback is about; none where there are too few. */
struct prof_copies prof_scalar_readbacks(const struct prof_judge *judge);

/* Claim a part of the copies' exposed time, as the term "exposed_memcpy_ns"; of the idle time
 * around them, before and after, as `term`; after them also what Python takes to go on, which the
 * device hides where the host need not wait. */
void prof_copies_claim(struct prof_judge *judge, struct prof_draft *draft,
                       const struct prof_copies *sums, double part);
/* That idle time, and the part of it, 0..1, that is as long as the copies take at most. A rule
 * about what copies take claims no more, so that it claims little where they take little. */
double prof_copies_part_around(const struct prof_copies *sums, int64_t copies_ns);
void prof_copies_claim_around(struct prof_judge *judge, struct prof_draft *draft, const char *term,
                              const struct prof_copies *sums, bool after, double part);

/* ---- lines of the program (order.c) ---------------------------------------------------- */

/* Fill in `line` and `line_ends_it` of all places, where the capture has stacks. */
enum prof_status prof_place_lines(struct prof_capture *capture, struct prof_findings *findings,
                                  struct prof_error *err);

#endif
