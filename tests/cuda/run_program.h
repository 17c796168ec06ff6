/* Run the fake CUDA program under the collector and read back what its spool holds. */
#ifndef PERFKIT_TESTS_CUDA_RUN_PROGRAM_H
#define PERFKIT_TESTS_CUDA_RUN_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/wire.h"

struct capture {
    int status;      /* as from waitpid */
    double seconds;
    unsigned spools;
    uint64_t counts[WIRE_COUNT_SLOTS];
    uint64_t dropped;
    struct wire_head **records; /* all, definitions first */
    size_t record_count;
};

struct how {
    const char *scenario;
    const char *end;     /* NULL = "settle" */
    const char *fake;    /* FAKE_CUPTI; NULL = none */
    const char *library_path; /* NULL = the fakes */
    const char *options; /* PERFKIT_OPTIONS; NULL = none */
    const char *preload; /* LD_PRELOAD; NULL = none */
};

struct capture run_program(const struct how *how);
void capture_free(struct capture *capture);

/* Number of records of a type. */
size_t capture_count(const struct capture *capture, enum wire_type type);

/* The n-th record of a type; NULL when there are fewer. */
const void *capture_record(const struct capture *capture, enum wire_type type, size_t n);

/* Text of a string id ("" when not defined); valid until the next call but three. */
const char *capture_text(const struct capture *capture, uint32_t id);

/* The health record in that state whose reason contains `part`; NULL when there is none. */
const struct wire_health *capture_health(const struct capture *capture, enum wire_health_state state,
                                         const char *part);

#endif
