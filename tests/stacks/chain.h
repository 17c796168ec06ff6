/* Functions that call each other and write down, each for itself, where they will return to: the
 * answer that an unwinder must find. chain.c is compiled in many ways (CHAIN_NAME). */
#ifndef PERFKIT_TESTS_STACKS_CHAIN_H
#define PERFKIT_TESTS_STACKS_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#define CHAIN_MOST 8192u

struct chain {
    uint64_t returns[CHAIN_MOST]; /* outermost first */
    unsigned count;
    void (*innermost)(struct chain *chain);
    unsigned left; /* links still to come */
};

/* Calls chain->innermost below chain->left functions of different kinds. */
#ifdef __cplusplus
extern "C" void CHAIN_NAME(struct chain *chain);
#else
typedef void chain_run(struct chain *chain);
extern chain_run chain_plain, chain_unoptimised, chain_no_pointer, chain_pointer, chain_vectors,
    chain_cxx;
#endif

#endif
