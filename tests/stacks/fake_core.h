/* A core that keeps what it is told, for programs that test collectors/stacks without a spool. */
#ifndef PERFKIT_TESTS_STACKS_FAKE_CORE_H
#define PERFKIT_TESTS_STACKS_FAKE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/core/collector.h"

#define FAKE_DEFINED 4096u

struct fake_stack {
    uint32_t id, count;
    uint8_t flags;
    uint64_t entries[256];
};

extern struct fake_core {
    uint64_t counts[WIRE_COUNTS];
    struct wire_module modules[FAKE_DEFINED];
    unsigned module_count;
    struct fake_stack stacks[FAKE_DEFINED]; /* the last ones when there are more */
    unsigned stack_count;
    unsigned turned_away; /* calls of handlers that interrupted another one */
    bool refuse;          /* definitions */
    const char *options;  /* PERFKIT_OPTIONS */
    const struct collector_source *source;
} fake_core;

const char *fake_core_text(uint32_t id); /* of a string id */
const struct fake_stack *fake_core_stack(uint32_t id);

#endif
