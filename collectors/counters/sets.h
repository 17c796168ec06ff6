/* The metric sets: which counters `perfkit run --counters SET` samples, by chip. Data only. A counter
 * has a name of perfkit's own that means the same on every chip; the table says which metric of CUPTI
 * it is on each. Every set fits one pass of the hardware on every chip it lists (tests/counters asks
 * CUPTI), so nothing is ever replayed. */
#ifndef PERFKIT_COLLECTORS_COUNTERS_SETS_H
#define PERFKIT_COLLECTORS_COUNTERS_SETS_H

#include <stddef.h>
#include <stdint.h>

enum counter_chip { COUNTER_GA100, COUNTER_AD102, COUNTER_GH100, COUNTER_GB100, COUNTER_CHIPS };

struct counter_row {
    const char *name; /* perfkit's: "dram_read_bytes" */
    const char *unit; /* "byte", "cycle", "instruction", "warp-cycle" */
    const char *what; /* one line for users */
    /* The counter in whose cycles the peak rate counts (peak x its value = what could have been);
     * NULL: no peak is asked for. */
    const char *clock;
    const char *metric[COUNTER_CHIPS]; /* CUPTI's; NULL: this chip does not have it in one pass */
};

struct counter_set {
    const char *name;
    const char *what;
    const struct counter_row *rows;
    size_t count;
};

#define COUNTER_SET_MAX 32u /* rows of a set */

extern const struct counter_set counter_sets[];
extern const size_t counter_set_count;

/* NULL when there is none of that name. */
const struct counter_set *counter_set_find(const char *name);

/* The family of a chip by CUPTI's name of it ("GH100"); COUNTER_CHIPS when no set knows it. Chips of
 * one family share their metrics (AD102 to AD107). */
enum counter_chip counter_chip_find(const char *chip);

/* CUPTI's name of the family's first chip. */
const char *counter_chip_name(enum counter_chip chip);

#endif
