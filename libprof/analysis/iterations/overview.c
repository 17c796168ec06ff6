/* Iterations of a capture alone, or with findings and utilisation in one pass over the device
 * tables, which all read. */
#include "libprof/analysis/iterations/iterations.h"
#include "libprof/analysis/rules/judge.h"

enum prof_status prof_iteration_list(struct prof_capture *capture, const struct prof_filter *filter,
                                     const struct prof_iteration_choice *explain,
                                     struct prof_iteration_list *list, struct prof_error *err)
{
    struct prof_facts facts;
    *list = (struct prof_iteration_list){.why_none = prof_why_not_judged(capture, filter)};
    if (list->why_none)
        return PROF_OK;
    enum prof_status status = prof_facts_load_phases(&facts, capture, filter, err);
    if (!status)
        status = prof_iterations_of_facts(&facts, explain, list, err);
    prof_facts_free(&facts);
    if (status)
        prof_iteration_list_free(list);
    return status;
}

/* The iterations come last: their sweep takes the facts' phase. */
static enum prof_status overview_of_facts(struct prof_capture *capture,
                                          const struct prof_filter *filter,
                                          const struct prof_overview_parts *parts,
                                          struct prof_facts *facts, bool *has_utilisation,
                                          struct prof_error *err)
{
    enum prof_status status = prof_findings_of_facts(capture, filter, facts, parts->findings, err);
    if (!status && parts->utilisation && !filter && !facts->impossible)
        status = prof_utilisation_of(capture, facts, parts->gaps, parts->buckets,
                                     parts->utilisation, has_utilisation, err);
    if (!status && parts->iterations)
        status = prof_iterations_of_facts(facts, &parts->explain, parts->iterations, err);
    return status;
}

enum prof_status prof_overview(struct prof_capture *capture, const struct prof_filter *filter,
                               const struct prof_overview_parts *parts, struct prof_error *err)
{
    struct prof_facts facts;
    enum prof_status status = PROF_OK;
    bool has_utilisation = false;
    const char *why_none = prof_why_not_judged(capture, filter);
    *parts->findings = (struct prof_findings){.why_none = why_none};
    if (parts->utilisation)
        *parts->utilisation = (struct prof_utilisation){0};
    if (parts->iterations)
        *parts->iterations = (struct prof_iteration_list){.why_none = why_none};
    if (!why_none) {
        status = prof_facts_load(&facts, capture, filter, err);
        if (!status)
            status = overview_of_facts(capture, filter, parts, &facts, &has_utilisation, err);
        prof_facts_free(&facts);
    }
    if (!status && parts->utilisation && !has_utilisation)
        status =
            prof_utilisation(capture, filter, parts->gaps, parts->buckets, parts->utilisation, err);
    if (status)
        prof_findings_free(parts->findings);
    if (status && parts->iterations)
        prof_iteration_list_free(parts->iterations);
    return status;
}
