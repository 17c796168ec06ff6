/* The metric sets: which counters `perfkit run --counters SET` samples, by chip. Data only. A
 * counter has a name of perfkit's own that means the same on every chip; the table says which
 * metric of CUPTI it is on each. Every set fits one pass of the hardware on every chip it lists
 * (tests/counters checks with CUPTI), so nothing is ever replayed. */
#ifndef PERFKIT_SAMPLERS_COUNTERS_SETS_H
#define PERFKIT_SAMPLERS_COUNTERS_SETS_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/sampler.h"

/* Chips of a family share their metrics. */
enum counter_family {
    COUNTER_GA100,
    COUNTER_AD102, /* also GA10x */
    COUNTER_GH100,
    COUNTER_GB100,
    COUNTER_FAMILIES
};

struct counter_row {
    const char *name; /* perfkit's: "dram_read_bytes" */
    const char *unit; /* "byte", "cycle", "instruction", "warp-cycle" */
    const char *what; /* one line for users */
    enum wire_counter_kind kind;
    /* The counter in whose cycles the peak rate counts (peak x its value = what could have been);
     * NULL: no peak is read. */
    const char *clock;
    const char *metric[COUNTER_FAMILIES]; /* CUPTI's; NULL: not there, or not in one pass */
};

struct counter_set {
    const char *name;
    const char *what;
    const struct counter_row *rows;
    size_t count;
};

#define COUNTER_SET_MAX WIRE_COUNTER_SLOTS /* rows of a set */

/* What a counter counts in each warp of a kernel because the kernel is traced, by CUPTI of that
 * version (cuptiGetVersion); 0 = nothing that is known. Users want their kernel's alone. */
uint32_t counter_traced(enum counter_family family, const char *name, uint32_t cupti_version);

extern const struct counter_set counter_sets[];
extern const size_t counter_set_count;

/* NULL when there is none of that name. */
const struct counter_set *counter_set_find(const char *name);

struct counter_chip_row {
    const char *name; /* as CUPTI calls it */
    enum counter_family family;
};
extern const struct counter_chip_row counter_chips[];
extern const size_t counter_chip_count;

/* The family of a chip by CUPTI's name of it ("GH100"); COUNTER_FAMILIES when no set knows it. */
enum counter_family counter_family_of(const char *chip);

#endif
