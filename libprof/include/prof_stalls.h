/* prof_stalls.h: at which instructions the warps of kernels were when they were sampled, and what
 * they waited for (perfkit run --stalls). Conventions as in prof.h. */
#ifndef PERFKIT_PROF_STALLS_H
#define PERFKIT_PROF_STALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reasons, by NVIDIA's names for them (smsp__pcsamp_warps_issue_stalled_...). The first two are no
 * stalls: the warp's instruction was issued, or another warp's was. */
enum prof_stall_reason {
    PROF_STALL_SELECTED,
    PROF_STALL_NOT_SELECTED,
    PROF_STALL_LONG_SCOREBOARD,
    PROF_STALL_SHORT_SCOREBOARD,
    PROF_STALL_WAIT,
    PROF_STALL_BARRIER,
    PROF_STALL_MATH_PIPE,
    PROF_STALL_MIO,
    PROF_STALL_LG,
    PROF_STALL_TEX,
    PROF_STALL_NO_INSTRUCTION,
    PROF_STALL_DISPATCH,
    PROF_STALL_DRAIN,
    PROF_STALL_MEMBAR,
    PROF_STALL_BRANCH,
    PROF_STALL_IMC,
    PROF_STALL_SLEEPING,
    PROF_STALL_GMMA,
    PROF_STALL_WARPGROUP,
    PROF_STALL_MISC,
    PROF_STALL_OTHER,
    PROF_STALL_REASONS
};
const char *prof_stall_name(enum prof_stall_reason reason); /* "long_scoreboard" */
/* What the warp waited for, to end a sentence: "a result from global, local or texture memory". */
const char *prof_stall_text(enum prof_stall_reason reason);

struct prof_stall_sums {
    int64_t samples;    /* of all reasons */
    int64_t stalled;    /* of them, those that are stalls */
    int64_t not_issued; /* of them, in cycles in which the scheduler issued no instruction */
    int64_t of[PROF_STALL_REASONS];
    enum prof_stall_reason reason; /* that has most of `stalled` */
    double reason_share;           /* its share of `samples`; NaN without a stall */
};

/* A kernel, a line of its source, or one instruction of it. */
struct prof_stall_row {
    const char *name, *full_name;     /* of the kernel */
    const struct prof_config *config; /* one of the kernel's; NULL = it has no launch here */
    struct prof_stall_sums sums;
    double share;      /* a kernel: of all samples; a line or instruction: of its kernel's */
    const char *where; /* "kernel.cu:28", of the hottest instruction; "+0x1a0" without a line */
    const char *file;  /* NULL = unknown, as in all that follow */
    int64_t line;      /* PROF_UNKNOWN likewise */
    int64_t offset;    /* of the instruction, bytes; of a line or kernel that of its hottest one */
    const char *address;  /* the same in hexadecimal; of a kernel NULL */
    const char *sass;     /* the same instruction; of a kernel NULL */
    const char *no_lines; /* a kernel: why no line is known; NULL = lines are */
    int64_t instructions; /* that were sampled */
    int64_t spills;       /* of them, accesses to local memory, where their text is known */
    const char *subject;  /* a kernel with its reason: "gather: long_scoreboard"; else NULL */
    size_t kernel;        /* index in `rows` */
    size_t number;        /* an instruction: its place in the code, among all of them */
};

struct prof_stalls {
    struct prof_stall_row *rows; /* kernels, most samples first */
    size_t count;
    struct prof_stall_row *lines; /* most samples first; instructions without a line are one each */
    size_t line_count;
    struct prof_stall_row *instructions; /* kernel by kernel, in the order of the code */
    size_t instruction_count;
    int64_t samples; /* of all that passes the filter */
};

/* filter->begin_ns, ->end_ns, ->stream, ->thread and ->range exclude nothing: samples have no time.
 * Without samples the result is empty and PROF_OK. */
enum prof_status prof_stalls(struct prof_capture *capture, const struct prof_filter *filter,
                             struct prof_stalls *result, struct prof_error *err);
void prof_stalls_free(struct prof_stalls *result);

#ifdef __cplusplus
}
#endif

#endif
