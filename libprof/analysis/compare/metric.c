/* The families of metrics, verdicts and reasons as tables, and a metric's name as people write it
 * in a configuration. One row of prof_compare.h is one family: its name, class and default policy
 * stand there and nowhere else. */
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/compare/metric.h"
#include "libprof/analysis/capture.h"

enum { NOISY, EXACT }; /* words of the table */

static const struct prof_metric_info infos[] = {
#define ROW(family, name_, class_, unit_, action_, text_)                                          \
    [PROF_METRIC_##family] = {.name = name_,                                                       \
                              .text = text_,                                                       \
                              .exact = class_ == EXACT,                                            \
                              .unit = PROF_METRIC_##unit_,                                         \
                              .action = PROF_ACTION_##action_},
    PROF_METRIC_FAMILIES(ROW)
#undef ROW
};

static const struct prof_words verdicts[] = {PROF_VERDICTS(PROF_WORDS)};
static const struct prof_words reasons[] = {PROF_REASONS(PROF_WORDS)};

const struct prof_metric_info *prof_metric_info(enum prof_metric_family family)
{
    return family < PROF_METRICS ? &infos[family] : NULL;
}

enum prof_metric_family prof_metric_named(const char *name)
{
    enum prof_metric_family family = 0;
    while (family < PROF_METRICS && strcmp(infos[family].name, name))
        family++;
    return family;
}

const char *prof_verdict_name(enum prof_verdict verdict)
{
    return verdict < PROF_VERDICT_COUNT ? verdicts[verdict].name : "";
}

const char *prof_verdict_text(enum prof_verdict verdict)
{
    return verdict < PROF_VERDICT_COUNT ? verdicts[verdict].text : "";
}

const char *prof_reason_code(enum prof_reason reason)
{
    return reason < PROF_REASON_COUNT ? reasons[reason].name : "";
}

const char *prof_reason_text(enum prof_reason reason)
{
    return reason < PROF_REASON_COUNT ? reasons[reason].text : "";
}

const char *prof_match_text(enum prof_match match)
{
    static const char *const texts[] = {
        [PROF_MATCH_EXACT] = "same",
        [PROF_MATCH_SHAPE] = "other shape",
        [PROF_MATCH_TEMPLATE] = "other template arguments",
        [PROF_MATCH_RENAMED] = "renamed",
        [PROF_MATCH_SPLIT] = "split",
        [PROF_MATCH_MERGED] = "merged",
        [PROF_MATCH_ADDED] = "added",
        [PROF_MATCH_REMOVED] = "removed",
    };
    return (size_t)match < sizeof texts / sizeof texts[0] ? texts[match] : "";
}

const char *prof_environment_level_text(enum prof_environment_level level)
{
    static const char *const texts[] = {"hard", "soft", "info"};
    return (size_t)level < sizeof texts / sizeof texts[0] ? texts[level] : "";
}

struct prof_policy prof_policy_default(enum prof_metric_family family)
{
    bool host = family == PROF_METRIC_RANGE;
    return (struct prof_policy){
        .action = family < PROF_METRICS ? infos[family].action : PROF_ACTION_INFO,
        .min_effect = family == PROF_METRIC_WALL ? 0.03 : 0.02,
        .target = 0.05,
        .min_share = host ? 0.01 : 0.005,
    };
}

/* ---- names and order ------------------------------------------------------------------------- */

bool prof_metric_has_shape(enum prof_metric_family family)
{
    return family == PROF_METRIC_KERNEL || family == PROF_METRIC_LAUNCHES ||
           family == PROF_METRIC_REGISTERS || family == PROF_METRIC_SHARED_BYTES ||
           family == PROF_METRIC_LOCAL_BYTES;
}

bool prof_metric_has_place(enum prof_metric_family family)
{
    return family == PROF_METRIC_RANGE_LAUNCHES || family == PROF_METRIC_COPIES ||
           family == PROF_METRIC_COPY_BYTES || family == PROF_METRIC_PAGEABLE_BYTES ||
           family == PROF_METRIC_ALLOCATIONS || family == PROF_METRIC_ALLOCATED_BYTES ||
           family == PROF_METRIC_SYNCS;
}

bool prof_metric_is_of_function(enum prof_metric_family family)
{
    return prof_metric_has_shape(family) || family == PROF_METRIC_API_CALLS;
}

/* "(264,1,1)x(256,1,1)"; without the block where the runtime chose it. */
struct shape_text {
    char text[144];
};

/* Of the dimensions those that are known: other tools' files may have one only. */
static int put_dimensions(char *out, size_t size, const char *before, const int64_t dimensions[3])
{
    int used = 0;
    for (int i = 0; i < 3 && dimensions[i] != PROF_UNKNOWN; i++)
        used += snprintf(out + used, size - (size_t)used, "%s%lld", i ? "," : before,
                         (long long)dimensions[i]);
    if (used)
        used += snprintf(out + used, size - (size_t)used, ")");
    return used;
}

static struct shape_text shape_text(const struct prof_metric *metric)
{
    struct shape_text out = {""};
    int used = put_dimensions(out.text, sizeof out.text, "(", metric->grid);
    put_dimensions(out.text + used, sizeof out.text - (size_t)used, "x(", metric->block);
    return out;
}

size_t prof_metric_text(const struct prof_metric *metric, char *out, size_t size)
{
    struct shape_text shape = {""};
    char device[24] = "";
    bool placed = prof_metric_has_place(metric->family) && *metric->place;
    if (prof_metric_has_shape(metric->family))
        shape = shape_text(metric);
    if (metric->device)
        snprintf(device, sizeof device, " #%lld", (long long)metric->device);
    int length = snprintf(out, size, "%s:%s%s%s%s%s%s", infos[metric->family].name, metric->name,
                          *shape.text ? " " : "", shape.text, placed ? " @" : "",
                          placed ? metric->place : "", device);
    return length < 0 ? 0 : (size_t)length;
}

int prof_metric_order(const void *a, const void *b)
{
    const struct prof_metric *x = a, *y = b;
    int order = PROF_ASCENDING(family) ?: strcmp(x->name, y->name);
    if (!order && prof_metric_has_place(x->family))
        order = strcmp(x->place, y->place);
    for (int i = 0; !order && i < 3; i++)
        order = PROF_ASCENDING(grid[i]);
    for (int i = 0; !order && i < 3; i++)
        order = PROF_ASCENDING(block[i]);
    return order ?: PROF_ASCENDING(device);
}
