/* Claims: verdicts, the table, and JSON; see claims.h. */
#include "workloads/common/claims.h"

#include <math.h>
#include <stdio.h>

#include "workloads/common/grow.h"
#include "workloads/common/table.h"

struct claim *claims_add(struct claims *claims, const char *claim, const char *seed)
{
    void *rows = claims->rows;
    struct claim *row = grow(&rows, &claims->count, &claims->capacity, 1, sizeof *row);

    claims->rows = rows;
    if (row)
        *row =
            (struct claim){.claim = claim, .seed = seed, .before_value = NAN, .after_value = NAN};
    return row;
}

void claims_free(struct claims *claims)
{
    free(claims->rows);
    *claims = (struct claims){0};
}

static bool tests_gain(const struct claim *c)
{
    return c->test == CLAIM_GAIN_AT_LEAST || c->test == CLAIM_GAIN_AT_MOST;
}

double claim_gain(const struct claim *c)
{
    if (!tests_gain(c))
        return NAN;
    return c->unit == CLAIM_SHARE ? c->after_value / c->before_value
                                  : c->before_value / c->after_value;
}

static double tested(const struct claim *c)
{
    return tests_gain(c) ? claim_gain(c) : c->after_value;
}

enum claim_verdict claim_verdict(const struct claim *c)
{
    double value = tested(c);
    bool at_most = c->test == CLAIM_AT_MOST || c->test == CLAIM_GAIN_AT_MOST;

    if (c->unavailable || isnan(value))
        return VERDICT_UNSHOWN;
    if (c->claimed == 0)
        return VERDICT_MEASURED;
    if (at_most ? value <= c->claimed : value >= c->claimed)
        return VERDICT_REACHED;
    return c->excuse ? VERDICT_DIFFERS : VERDICT_MISSED;
}

static const char *claim_verdict_name(enum claim_verdict verdict)
{
    static const char *const names[] = {
        [VERDICT_REACHED] = "reached",        [VERDICT_MISSED] = "missed",
        [VERDICT_DIFFERS] = "differs",        [VERDICT_UNSHOWN] = "cannot be shown",
        [VERDICT_MEASURED] = "measured only",
    };

    return names[verdict];
}

/* Why the verdict is what it is, or NULL. */
static const char *reason(const struct claim *c)
{
    switch (claim_verdict(c)) {
    case VERDICT_UNSHOWN:
        return c->unavailable ? c->unavailable : "not measured";
    case VERDICT_DIFFERS:
        return c->excuse;
    case VERDICT_REACHED:
    case VERDICT_MISSED:
    case VERDICT_MEASURED:
        break;
    }
    return NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void value_cell(struct table *table, enum claim_unit unit, double value)
{
    static const char *const units[] = {"B", "KB", "MB", "GB"};
    size_t u = 0;

    if (isnan(value)) {
        table_cell(table, "n/a");
        return;
    }
    switch (unit) {
    case CLAIM_NS:
        table_duration(table, value);
        break;
    case CLAIM_BYTES:
        for (; value >= 1e4 && u < 3; u++)
            value /= 1e3;
        table_cell(table, "%.*f %s", u ? 1 : 0, value, units[u]);
        break;
    case CLAIM_COUNT:
        table_cell(table, "%.0f", value);
        break;
    case CLAIM_SHARE:
        table_cell(table, "%.0f %%", 100 * value);
        break;
    case CLAIM_RATIO:
        table_cell(table, "%.2f", value);
        break;
    }
}

static void claimed_cell(struct table *table, const struct claim *c)
{
    bool at_most = c->test == CLAIM_AT_MOST || c->test == CLAIM_GAIN_AT_MOST;

    if (c->claimed == 0)
        table_cell(table, "-");
    else if (tests_gain(c))
        table_cell(table, "%s %.2fx", at_most ? "<=" : ">=", c->claimed);
    else if (c->unit == CLAIM_SHARE)
        table_cell(table, "%s %.0f %%", at_most ? "<=" : ">=", 100 * c->claimed);
    else
        table_cell(table, "%s %.*f", at_most ? "<=" : ">=", c->unit == CLAIM_RATIO ? 2 : 0,
                   c->claimed);
}

static void claim_row(struct table *table, const struct claim *c)
{
    table_row(table);
    table_cell(table, "%s", c->claim);
    table_cell(table, "%s", c->at);
    table_cell(table, "%s", c->before);
    if (c->before[0])
        value_cell(table, c->unit, c->before_value);
    else
        table_cell(table, "-");
    table_cell(table, "%s", c->after);
    value_cell(table, c->unit, c->after_value);
    if (!tests_gain(c))
        table_cell(table, "-");
    else if (isnan(claim_gain(c)))
        table_cell(table, "n/a");
    else if (isinf(claim_gain(c)))
        table_cell(table, "all gone");
    else
        table_cell(table, "%.2fx", claim_gain(c));
    claimed_cell(table, c);
    table_cell(table, "%s", claim_verdict_name(claim_verdict(c)));
    table_cell(table, "%s", c->seed);
}

/* Sentences stand below the table. */
static void print_reasons(const struct claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        const struct claim *c = &claims->rows[i];
        const char *why = reason(c);

        if (why || c->figure[0])
            printf("  %s%s%s%s: %s%s%s\n", c->claim, c->at[0] ? " (" : "", c->at,
                   c->at[0] ? ")" : "", why ? why : "", why && c->figure[0] ? "; " : "", c->figure);
    }
}

void claims_print(const struct claims *claims)
{
    static const char *const header[] = {"<claim", "<at",     "<before", "",           "<after", "",
                                         "gain",   "claimed", "<here",   "<stated as", NULL};
    struct table table;

    table_begin(&table, header);
    for (size_t i = 0; i < claims->count; i++)
        claim_row(&table, &claims->rows[i]);
    table_end(&table, "\n");
    print_reasons(claims);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void claim_json(struct json *json, const struct claim *c)
{
    static const char *const units[] = {[CLAIM_NS] = "ns",
                                        [CLAIM_BYTES] = "bytes",
                                        [CLAIM_COUNT] = "count",
                                        [CLAIM_SHARE] = "share",
                                        [CLAIM_RATIO] = "ratio"};
    static const char *const tests[] = {[CLAIM_GAIN_AT_LEAST] = "gain at least",
                                        [CLAIM_GAIN_AT_MOST] = "gain at most",
                                        [CLAIM_AT_LEAST] = "at least",
                                        [CLAIM_AT_MOST] = "at most"};

    json_object_begin(json, NULL);
    json_text(json, "claim", c->claim);
    json_text(json, "at", c->at[0] ? c->at : NULL);
    json_text(json, "before", c->before[0] ? c->before : NULL);
    json_text(json, "after", c->after);
    json_text(json, "unit", units[c->unit]);
    json_number(json, "before_value", c->before_value);
    json_number(json, "after_value", c->after_value);
    json_number(json, "gain", claim_gain(c));
    json_text(json, "seed", c->seed);
    json_text(json, "test", tests[c->test]);
    json_number(json, "claimed", c->claimed != 0 ? c->claimed : NAN);
    json_text(json, "verdict", claim_verdict_name(claim_verdict(c)));
    json_text(json, "because", reason(c));
    json_text(json, "figure", c->figure[0] ? c->figure : NULL);
    json_object_end(json);
}

void claims_json(struct json *json, const struct claims *claims)
{
    json_array_begin(json, "claims");
    for (size_t i = 0; i < claims->count; i++)
        claim_json(json, &claims->rows[i]);
    json_array_end(json);
}
