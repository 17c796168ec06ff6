/* prof_stack_sums.h: what lines of the program and callers of kernels cost on the device. Part of
 * prof.h's interface; its conventions hold. For captures whose host stacks were taken (perfkit run
 * --stacks). */
#ifndef PERFKIT_PROF_STACK_SUMS_H
#define PERFKIT_PROF_STACK_SUMS_H

#include "libprof/include/prof_stack.h"

/* What work of a device came from a place. */
struct prof_stack_cost {
    int64_t count;     /* kernels, copies and fills */
    int64_t device_ns; /* their durations */
    int64_t bytes;     /* copied and filled */
    int64_t idle_ns;   /* how long the device had idled before them: time that they came too late */
};

struct prof_line_row {
    const struct prof_frame *place; /* function, file and line */
    struct prof_stack_cost total;   /* of all work asked for through this line, each operation once
                                       also   where the line is on the stack several times */
    struct prof_stack_cost self;    /* of the work that this line asked for itself */
};

struct prof_line_sums {
    struct prof_line_row *rows; /* by total.device_ns, largest first */
    size_t count;
    struct prof_stack_cost all, without; /* of all work; of that whose stack is not known */
};

/* Top-down by line: a row for each place that is on a stack. */
enum prof_status prof_line_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                struct prof_line_sums *result, struct prof_error *err);
void prof_line_sums_free(struct prof_line_sums *result);

struct prof_caller_row {
    const char *work;          /* kernel, kind of copy, "memset" */
    enum prof_flame_kind kind; /* PROF_FLAME_KERNEL, _TRANSFER or _MEMSET */
    struct prof_stack_cost cost;
    int64_t work_ns; /* of all rows of this work: they stand together */
    uint32_t *path;  /* numbers of prof_stacks_places, innermost first */
    size_t depth;    /* 0 = its stack is not known */
    size_t told;     /* in path: the frame that tells callers apart, as prof_stack_callers */
};

struct prof_caller_sums {
    struct prof_caller_row *rows; /* by work_ns, then device_ns, largest first */
    size_t count;
    const struct prof_frame *places;
    struct prof_stack_cost all;
};

/* Bottom-up by kernel: a row for each kernel (or kind of copy) and stack that asked for it. */
enum prof_status prof_caller_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                  struct prof_caller_sums *result, struct prof_error *err);
/* The same off a flame graph by PROF_FLAME_COUNT that the caller has already. */
enum prof_status prof_caller_sums_of(struct prof_capture *capture, const struct prof_flame *flame,
                                     struct prof_caller_sums *result, struct prof_error *err);
void prof_caller_sums_free(struct prof_caller_sums *result);

struct prof_call_row {
    const char *name;                /* API function */
    int64_t count, total_ns, max_ns; /* calls with a known duration: time on the host */
    uint32_t *path;                  /* as in struct prof_caller_row */
    size_t depth, told;
};

struct prof_call_sums {
    struct prof_call_row *rows; /* by total_ns, largest first */
    size_t count;
    const struct prof_frame *places;
    int64_t total_ns;
};

/* API calls by name and the stack that made them: where the host launches, allocates and waits.
 * Calls inside other calls count for themselves, as they were recorded. */
enum prof_status prof_call_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                struct prof_call_sums *result, struct prof_error *err);
void prof_call_sums_free(struct prof_call_sums *result);

#endif
