/* What a seed document claims beside what was measured here, and the verdict: one form for all
 * workloads, in their tables and in --json, so that scripts/seed_tables.sh can join them.
 */
#ifndef WORKLOADS_COMMON_CLAIMS_H
#define WORKLOADS_COMMON_CLAIMS_H

#include <stddef.h>

#include "workloads/common/json.h"

enum claim_unit { CLAIM_NS, CLAIM_BYTES, CLAIM_COUNT, CLAIM_SHARE, CLAIM_RATIO };

/* What makes a claim hold. The gain of a share is after over before, of all else before over
 * after: above 1 it is better. */
enum claim_test { CLAIM_GAIN_AT_LEAST, CLAIM_GAIN_AT_MOST, CLAIM_AT_LEAST, CLAIM_AT_MOST };

enum claim_verdict {
    VERDICT_REACHED,
    VERDICT_MISSED,
    VERDICT_DIFFERS,  /* missed, and this device does something else: claim.excuse */
    VERDICT_UNSHOWN,  /* there is nothing to measure here: claim.unavailable */
    VERDICT_MEASURED, /* the seed document gives no number to compare with */
};

struct claim {
    const char *claim;
    const char *seed;           /* what the document says about it */
    char at[48];                /* where there are several: "batch 512"; or empty */
    char before[48], after[48]; /* what is compared; before is empty for a claim on one value */
    double before_value, after_value; /* NaN: not measured */
    enum claim_unit unit;
    enum claim_test test;
    double claimed;          /* the gain or the value of the test; 0: the seed has no number */
    const char *excuse;      /* what this device does instead, or NULL */
    const char *unavailable; /* why there is nothing to compare, or NULL */
    char figure[160];        /* what was measured beside it and explains it, or empty */
};

/* The gain of a claim that names none: better, beyond the noise. */
#define CLAIM_BETTER 1.02

struct claims {
    struct claim *rows;
    size_t count, capacity;
};

/* The part of the time that is saved, as a gain. */
#define CLAIM_SAVED(share) (1 / (1 - (share)))

/* A new claim with values that are not measured; NULL when memory ran out. */
struct claim *claims_add(struct claims *claims, const char *claim, const char *seed);
void claims_free(struct claims *claims);

/* NaN without two values, and for a test of one value. */
double claim_gain(const struct claim *claim);
enum claim_verdict claim_verdict(const struct claim *claim);

/* The table on stdout, with what is to be said about claims below it; nothing for no claims. */
void claims_print(const struct claims *claims);

/* The member "claims" of the object that is being written. */
void claims_json(struct json *json, const struct claims *claims);

#endif
