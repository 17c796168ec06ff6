/* What the test's injection library has seen, shared with the test through dlsym. */
#ifndef TESTS_WORKLOADS_INJECTION_H
#define TESTS_WORKLOADS_INJECTION_H

#include "perfkit/nvtx_abi.h"

struct injection_log {
    int attached; /* how many modules called us */
    int calls;    /* handler calls of any kind */
    int pushes, pops, marks, starts, ends, thread_names, domains, work_pushes, work_pops;
    int bad_tables; /* things an export table should have had and did not */
    unsigned int client_version;
    unsigned int named_tid;
    char last_push[64], last_mark[64], last_start[64], last_thread[64], domain_name[64];
    char last_work[64];
    struct perfkit_work work; /* of the last declaration that was well formed */
    int bad_work;
    const void *work_domain; /* what the client passed as the domain */
    int collectives;
    char last_collective[64];
    uint64_t collective_bytes;
};

typedef struct injection_log *(*injection_log_fn)(void);

#endif
