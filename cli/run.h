/* What `perfkit run` knows of the run it is in: the command (run.c), the target's environment, what
 * is recorded (run_scope.c, run_samplers.c), and the capture (run_output.c). */
#ifndef PERFKIT_CLI_RUN_H
#define PERFKIT_CLI_RUN_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/process.h"
#include "cli/spool_folder.h"
#include "libprof/base/array.h"
#include "libprof/base/error.h"
#include "libprof/gpu/network.h"
#include "libprof/gpu/nvml.h"
#include "libprof/include/prof.h"
#include "libprof/store/ingest.h"
#include "libprof/store/store.h"
#include "samplers/cpu/sampler.h"

/* ---- the target's executable ----------------------------------------------------------------- */

/* What the file of the target's command says about how it can be recorded. */

struct elf_facts {
    char path[PATH_MAX]; /* the file looked at: the command, or the interpreter of a script */
    bool found;          /* there is such a file */
    bool elf;            /* it is an ELF program of any kind */
    bool foreign;        /* of another word size, machine or C library than perfkit */
    bool dynamic;        /* has a program interpreter: LD_PRELOAD works */
    bool privileged;     /* set-user-id, set-group-id or file capabilities would take effect */
    char sanitizer[64];  /* the sanitizer library it needs first, "" = none */
};

/* `command` as execvp would find it; scripts are followed for one #! line. */
void elf_examine(const char *command, struct elf_facts *facts);

/* ---- its environment ------------------------------------------------------------------------- */

/* The target's environment: ours plus the variables that make the loaders bring the collector in.
 */

#define MOST_NOTES 12
#define COLLECTOR_OPTIONS 4000         /* bytes: the collector reads at most 4095 */
#define CUPTI_VARIABLE "PERFKIT_CUPTI" /* path of libcupti.so to use */

/* A sentence for the trust block. */
struct run_note {
    const char *item; /* "preload", "cuda", ... */
    char text[400];
};

struct run_environment {
    char **variables; /* NULL at the end: for execve */
    size_t count, room;
    struct run_note notes[MOST_NOTES];
    size_t note_count;
    bool preloaded;
    char injected[32];   /* domains by whose variables the collector gets in, "nvtx+opencl" */
    const char *watched; /* collector, while the command's variables are looked at */
    unsigned changed;    /* of them, those that were said to be changed */
};

struct run_injection {
    const char *collector; /* absolute path of the library */
    const char *spool;     /* folder */
    const char *trace;     /* domains, comma separated; NULL = all */
    uint64_t spool_limit;  /* bytes */
    bool preload;          /* allowed by the user */
    const struct elf_facts *target;
    const char *options; /* for the collector, each begun with a comma */
    bool pytorch;        /* its operators and modules are to be named */
};

/* False = out of memory. */
bool environment_build(struct run_environment *environment, const struct run_injection *injection);
void environment_free(struct run_environment *environment);

/* The command has started: free the variables. Without LD_PRELOAD nothing in the program can report
 * that the variables were set again, so environment_look does, as far as /proc shows it: the
 * collector that could not get in is a line of the trust block. */
void environment_watch(struct run_environment *environment, const char *collector);
void environment_look(struct run_environment *environment, pid_t pid, struct prof_ingest *ingest);

/* What --trace can name; ends with NULL. */
extern const char *const run_domains[];

/* Is `domain` within the list (NULL = all)? */
bool trace_names_domain(const char *trace, const char *domain);

/* ---- the capture ----------------------------------------------------------------------------- */

/* Where the capture of `perfkit run` goes: its name, the check that it can be written before the
 * program starts, and how it gets there from the spool folder when the folder is on a network. */

struct run_output {
    char final[PATH_MAX]; /* absolute */
    char live[PATH_MAX];  /* the file that is written to; differs from final on a network */
    char aside[PATH_MAX]; /* the file that --force replaces, until the program has started */
    bool network;
    bool made;    /* `final` exists because of us */
    int reserved; /* descriptor of `final`, locked while another file grows; 0 = none */
};

/* One perfkit run at a time makes its capture in a folder: what one has looked at stays so until
 * its own is there. A descriptor to close after that, -1: without a lock, after a second or where
 * the file system has none. */
int output_take_turn(const struct run_output *output);

/* What the capture of a command is named after: its script, else its program. */
void output_subject(char *const *command, char out[PATH_MAX]);

/* Choose the name: `wanted` (-o), or <program>.sqlite, <program>-2.sqlite ... in the current
 * folder. Only looks; output_create makes the file. */
enum prof_status output_choose(struct run_output *output, const char *wanted, const char *program,
                               bool force, struct prof_error *err);

/* Choose the name and make the capture, which appears there later (prof_store_begin). `spool` is
 * where it grows when the folder is on a network. */
enum prof_status output_create(struct run_output *output, const char *wanted, const char *program,
                               bool force, const char *spool, struct prof_store **store,
                               struct prof_error *err);
/* Its status; what could not be created or written gets the hint to choose another place. */
enum prof_status output_suggest_place(enum prof_status status, struct prof_error *err);

/* The program runs: what --force replaced is gone for good. */
void output_started(struct run_output *output);

/* The program did not start: leave the folder as it was found. */
void output_discard(struct run_output *output);

/* The same for a perfkit run of that pid that was killed: has it left a file that its --force had
 * set aside? That file gets its name back, where that is free (false: there is none), or is removed
 * once what replaces it is finished. The next run that wants the name does this, too. */
bool output_is_aside(const char *final, pid_t pid);
bool output_restore(const char *final, pid_t pid);
void output_forget_aside(const char *final, pid_t pid);

/* A capture file with what SQLite keeps beside it. */
void output_remove(const char *path);

/* Bring a closed and published live file to its final place. Also used by recover. */
enum prof_status output_move(const char *live, const char *final, struct prof_error *err);

/* ---- what is recorded ------------------------------------------------------------------------ */

/* What `perfkit run` records and when, besides --trace: the options, their checks, their way to the
 * collector, and the clock of --delay and --duration. */

#define SCOPE_ALWAYS UINT64_MAX /* --duration was not given: it cannot be reached by a time */

struct scope_options {
    uint64_t delay_ns;    /* 0 = none */
    uint64_t duration_ns; /* 0 = none; SCOPE_ALWAYS before scope_check */
    const char *range;    /* --capture-range */
    const char *kernel;
    const char *dump;
    unsigned cupti, graph, managed; /* indexes into scope_cupti and so on */
    bool dormant;
};
extern const char *const scope_cupti[], *const scope_graph[], *const scope_managed[];

struct scope {
    const struct scope_options *options;
    struct control control;
    char dump[PATH_MAX];  /* absolute */
    bool made_dump;       /* the folder was not there before */
    uint64_t opens_at_ns; /* CLOCK_MONOTONIC; 0 = nothing to do */
    uint64_t closes_at_ns;
};

/* Make the control page, and the folder of --cupti-dump. */
enum prof_status scope_prepare(struct scope *scope, const struct scope_options *options,
                               const char *folder, struct prof_error *err);

/* False, said on stderr, when a regular expression cannot be used; `option` as in "--kernel=". */
bool scope_check_pattern(const char *command, const char *option, const char *pattern);

/* Append text to an option of the collector: '%', ',' and what could end a variable as %XX. Returns
 * the bytes used then, more than fit in `size` when it did not fit. */
size_t scope_append_escaped(char *text, size_t used, size_t size, const char *from, size_t bytes);

/* Nothing was started: leave nothing behind. */
void scope_undo(struct scope *scope);

/* The capture begins: no process of the target is there yet. */
void scope_ready(struct scope *scope);

/* Do what is due; returns the milliseconds to the next thing to do, or -1. */
int scope_step(struct scope *scope);

/* Why a capture has no record, as far as the windows explain it; NULL = they do not. */
const char *scope_why_nothing(const struct scope *scope, char *text, size_t size);

/* ---- run_overhead.c -------------------------------------------------------------------------- */

enum overhead_choice { OVERHEAD_ESTIMATE, OVERHEAD_OFF, OVERHEAD_MEASURE, OVERHEAD_BUDGET };
extern const char *const overhead_words[]; /* but for the last, which is per cent */

struct run;

/* --overhead=measure: first looks for what an iteration is, then pauses now and then. */
struct overhead {
    enum overhead_choice choice;
    uint64_t due_ns;        /* CLOCK_MONOTONIC of the next thing to do; 0 = nothing */
    uint64_t look_every_ns; /* until the next look for iterations */
    uint64_t pause_ns;      /* length of a pause; 0 = no iteration is known yet */
    uint64_t random;
    bool paused, uses_cuda;
    uint64_t began_ns; /* CLOCK_MONOTONIC when the first events came; 0 = not yet */
    /* Once an iteration is known, a thread of its own pauses: reading the spools may take long. It
     * alone uses the fields above then. */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    void (*due)(struct run *run);
    bool threaded, ending; /* `ending` under the lock */
};

/* Do what is due; returns the milliseconds to the next thing to do, or -1. */
int overhead_step(struct run *run);

/* --overhead=PERCENT: looks for what an iteration is, then which part of them may be recorded. Of
 * the thread of `struct overhead`, but for `share` and `records`. */
struct budget {
    double share;             /* of the time; 0 = none */
    _Atomic uint64_t records; /* that the capture has by now */
    uint64_t seen;            /* at the last look for iterations */
    uint64_t opened_ns;       /* CLOCK_MONOTONIC of that look */
    uint64_t searched_ns;     /* recorded without knowing what an iteration is */
    uint64_t open_ns;         /* how long it is recorded between pauses of the search */
    bool found;
    uint64_t began_ns, every_ns;  /* of the first look at what recording costs, between two */
    struct prof_capture *capture; /* the same that is being written */
    struct prof_iteration_range range;
    int64_t after;              /* of prof_sampling_look */
    double recorded, looked_ns; /* share of the iterations by the plan; since then, the last look */
    double spent, over;         /* ns that recording took since the first look; share of the run */
};

/* ---- options and state of the features ------------------------------------------------------- */

#define STACKS_ALL "launch,alloc,sync"
#define STACKS_MOST_DEPTH 250u /* as the collector's */

struct stacks_options {
    const char *kinds; /* KIND[:N],...; NULL = none */
    unsigned depth;    /* 0 = the collector's own */
};

#define PYTORCH_ALL "ops,modules"
extern const char *const pytorch_words[]; /* what its list can name; ends with NULL */

#define COUNTERS_OWN_INTERVAL UINT64_MAX
#define COUNTERS_MOST_INTERVAL_NS 100000000u

#define COUNTERS_EXACT "exact:" /* --counters=exact:KERNEL: no sampler; the collector counts */

struct counters_options {
    const char *set;      /* --counters; NULL = none */
    uint64_t interval_ns; /* COUNTERS_OWN_INTERVAL = the sampler's choice */
    const char *duty;     /* per cent, as given; NULL = as the budget allows */
};

/* --stalls: what costs less than 1 % (docs/lab/performance.md) */
#define STALLS_PERIOD "1048576"
#define STALLS_MOST_PERIOD (1u << 31)

struct counters {
    pid_t pid; /* 0 = there is none */
    int stop;  /* its end makes the sampler stop */
};

struct cpu_options {
    unsigned hz;      /* 0 = not requested */
    unsigned stack;   /* index into cpu_stack_words */
    unsigned blocked; /* index into cpu_blocked_words */
};
extern const char *const cpu_stack_words[], *const cpu_blocked_words[];

struct cpu {
    struct cpu_sampler *sampler; /* NULL = none */
    char why_not[400];           /* "" = nothing is wrong */
};

/* --ring (run_ring.c) */
#define RING_DEFAULT_LIMIT (4ull << 30)
extern const char *const ring_words[]; /* of enum prof_ring_reason; ends with NULL */

#define RING_NOT_GIVEN UINT64_MAX /* it cannot be reached by a time */

struct ring_options {
    uint64_t ns; /* 0 = all is kept; RING_NOT_GIVEN before the options are checked */
    const char *keep, *slow, *iteration;
    uint64_t limit;
    bool rotate;
};

struct ring_window {
    char *path;
    uint64_t bytes;
};

struct ring_watch {
    struct prof_ingest_ring ring;
    PROF_ARRAY(struct ring_window) windows; /* kept by this run, the oldest first */
    uint64_t bytes;                         /* of them */
    uint32_t asked;                         /* control_page.keeps that were answered to */
    unsigned signals, unkept;
    char why[512]; /* the first one was not kept */
};

#define WATCHED_DEVICES 16

struct watched_device {
    char uuid[PROF_NVML_UUID];
    bool known;         /* the capture has it */
    int64_t used_bytes; /* of the last sample that was kept */
    uint64_t kept_ns;   /* when that was */
    uint64_t clocks_ns; /* when its clocks were read */
    uint64_t energy_ns; /* when its counter of energy was */
    /* As long as the device is not known, its first sample: how full it was before the program. */
    struct prof_ingest_memory before;
    bool has_before;
};

struct memory_watch {
    bool wanted, tried, pids_are_real;
    struct prof_nvml *nvml;
    struct watched_device devices[WATCHED_DEVICES];
    unsigned count;
    uint64_t next_ns;
};

struct network_watch {
    struct prof_network_port before[PROF_NETWORK_PORTS];
    size_t count;
    uint64_t begin_ns;
};

/* ---- the run --------------------------------------------------------------------------------- */

enum run_wait { WAIT_ALL, WAIT_PRIMARY };

struct run_options {
    const char *output, *trace, *pytorch, *spool_dir;
    uint64_t spool_limit;
    const char *overhead; /* as given; NULL = estimate */
    unsigned stalls;      /* cycles between two samples; 0 = none */
    unsigned wait;        /* index into its words */
    bool force, no_preload, quiet;
    struct scope_options scope;
    struct counters_options counters;
    struct stacks_options stacks;
    struct cpu_options cpu;
    struct ring_options ring;
};

struct run {
    const char *name; /* of the command, for messages */
    struct run_options options;
    char *const *argv; /* of the target */
    char collector[PATH_MAX];
    struct elf_facts target;
    struct inherited_fds inherited;
    struct spool_folder spool;
    char output_path[PATH_MAX]; /* options.output with its patterns replaced */
    struct run_output output;
    struct run_environment environment;
    struct scope scope;
    struct overhead overhead;
    struct budget budget;
    struct counters counters;
    struct memory_watch memory;
    struct network_watch network;
    struct cpu cpu;
    struct ring_watch ring;
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_progress progress;
    pid_t pid;
    int wait_status;
    bool end_ingested;
    enum prof_status trouble; /* of the last step, to say each kind once */
};

/* What can be recorded beside records of calls and device work. The run takes the features through
 * its stages one after the other; a stage in which one has nothing to do is NULL. */
struct run_feature {
    const char *name; /* of its note */
    /* The options, before anything is made. False, said on stderr: they are wrong. */
    bool (*check)(struct run *run);
    /* Options for the collector, each begun with a comma. False: they do not fit. */
    bool (*hand_over)(const struct run *run, char *text, size_t size);
    /* One sentence for the capture on what is recorded. False: none. */
    bool (*note)(const struct run *run, char *text, size_t size);
    void (*start)(struct run *run);   /* the capture is open, the program not yet started */
    void (*started)(struct run *run); /* the program runs */
    void (*step)(struct run *run);    /* now and then, until all of its processes have ended */
    /* Also of what was never started. `ran`: the program did, and the capture wants what there is;
     * false: run->ingest may be NULL. */
    void (*stop)(struct run *run, bool ran);
};
extern const struct run_feature run_scope, run_overhead, run_budget, run_stacks, run_pytorch,
    run_counters, run_stalls, run_cpu, run_memory, run_network, run_ring;
extern const struct run_feature *const run_features[]; /* ends with NULL */

/* Attach the sampler of --cpu-sample to the target, which waits to be replaced by its program.
 * `context` is the struct run. */
void cpu_attach(void *context, pid_t pid);

/* The folder of PyTorch's hook, beside the collector; false when it is not there. */
bool pytorch_folder(const char *collector, char folder[PATH_MAX]);

/* Ingests and samples beside the program until the command has ended; its status is in wait_status
 * then. */
void run_record(struct run *run);

/* Goes on while other processes of the program run. True when they are given up. */
bool run_wait_for_others(struct run *run);

/* Closes the sources and the capture, and says what became of it. `abandon`: some still run. */
void run_finish(struct run *run, bool abandon);

#endif
