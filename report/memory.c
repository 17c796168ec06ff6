/* The memory profile in lists as people read them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"
#include "report/columns.h"
#include "report/data.h"

/* Lifetimes in steps of eight, from a microsecond: 1.02 us, 8.19 us, 65.5 us, ... 17.2 s. Powers of
 * two are edges of the histogram too. */
#define LIFETIMES 10
#define SHORTEST 10 /* 2^10 ns */

PROF_ORDER(by_leak, struct prof_memory_site,
           PROF_COMPARE(y->verdict == PROF_MEMORY_LEAK, x->verdict == PROF_MEMORY_LEAK),
           x->verdict == PROF_MEMORY_LEAK ? PROF_DESCENDING(growth_bytes) : 0,
           PROF_DESCENDING(use.kept_bytes), strcmp(x->path, y->path))

PROF_ORDER(by_churn, struct prof_memory_site, PROF_DESCENDING(use.brief_call_ns),
           PROF_DESCENDING(use.brief_count), strcmp(x->path, y->path))

static bool list_sites(struct prof_report_memory *m)
{
    const struct prof_memory_profile *p = &m->profile;
    size_t room = p->site_count + 1;
    m->held = calloc(room, sizeof *m->held);
    m->kept = calloc(room, sizeof *m->kept);
    m->brief = calloc(room, sizeof *m->brief);
    if (!m->held || !m->kept || !m->brief)
        return false;
    for (size_t i = 0; i < p->site_count; i++) {
        const struct prof_memory_site *site = &p->sites[i];
        if (site->use.held_bytes) /* blocks take all of some segments */
            m->held[m->held_count++] = *site;
        if (site->use.kept_count)
            m->kept[m->kept_count++] = *site;
        if (site->use.brief_count)
            m->brief[m->brief_count++] = *site;
    }
    if (m->kept_count)
        qsort(m->kept, m->kept_count, sizeof *m->kept, by_leak);
    if (m->brief_count)
        qsort(m->brief, m->brief_count, sizeof *m->brief, by_churn);
    return true;
}

static int lifetime_class(int power)
{
    int at = power < SHORTEST ? 0 : (power - SHORTEST) / 3 + 1;
    return at < LIFETIMES ? at : LIFETIMES - 1;
}

static void list_lifetimes(struct prof_report_memory *m, const struct prof_memory_place *place)
{
    const struct prof_histogram *h = &place->lifetimes;
    int64_t counts[LIFETIMES] = {0};
    struct prof_memory_longest longest[LIFETIMES] = {0};
    for (uint32_t i = 0; i < h->count; i++) {
        double low = prof_histogram_low(h->first + i);
        int power = low < 1 ? 0 : (int)floor(log2(low));
        counts[lifetime_class(power)] += h->counts[i];
    }
    for (int i = 0; i < PROF_MEMORY_POWERS; i++)
        if (place->longest[i].start_ns || place->longest[i].lived_ns)
            longest[lifetime_class(i)] = place->longest[i];
    for (int i = 0; i < LIFETIMES; i++) {
        if (!counts[i])
            continue;
        m->lifetimes[m->lifetime_count++] = (struct prof_report_lifetime){
            .place = place,
            .from_ns = i ? ldexp(1, SHORTEST + 3 * (i - 1)) : 0,
            .to_ns = i + 1 < LIFETIMES ? ldexp(1, SHORTEST + 3 * i) : (double)INFINITY,
            .count = counts[i],
            .share = (double)counts[i] / (double)place->lifetime_ns.count,
            .longest = longest[i],
        };
    }
}

static bool same_holders(const struct prof_memory_failure *a, const struct prof_memory_failure *b)
{
    if (a->holder_count != b->holder_count)
        return false;
    for (size_t i = 0; i < a->holder_count; i++) {
        if (a->holders[i].site != b->holders[i].site || a->holders[i].bytes != b->holders[i].bytes)
            return false;
    }
    return true;
}

static bool list_lifetimes_and_holders(struct prof_report_memory *m)
{
    const struct prof_memory_profile *p = &m->profile;
    m->lifetimes = calloc(p->place_count * LIFETIMES + 1, sizeof *m->lifetimes);
    m->holders = calloc(p->failure_count * PROF_MEMORY_HOLDERS + 1, sizeof *m->holders);
    if (!m->lifetimes || !m->holders)
        return false;
    for (size_t i = 0; i < p->place_count; i++) {
        if (p->places[i].kind < 0)
            list_lifetimes(m, &p->places[i]);
    }
    for (size_t i = 0; i < p->failure_count; i++) {
        if (i && same_holders(&p->failures[i - 1], &p->failures[i]))
            continue;
        for (size_t k = 0; k < p->failures[i].holder_count; k++)
            m->holders[m->holder_count++] = (struct prof_report_holder){
                &p->failures[i], &p->sites[p->failures[i].holders[k].site],
                p->failures[i].holders[k].bytes};
    }
    return true;
}

enum prof_status prof_report_load_memory(struct prof_report_data *data, struct prof_error *err)
{
    struct prof_report_memory *m = calloc(1, sizeof *m);
    data->usage = m;
    if (!m)
        return prof_out_of_memory(err);
    PROF_TRY(prof_memory_profile(data->capture, data->filter, &m->profile, err));
    if (!list_sites(m) || !list_lifetimes_and_holders(m))
        return prof_out_of_memory(err);
    return PROF_OK;
}

void prof_report_unload_memory(struct prof_report_data *data)
{
    struct prof_report_memory *m = data->usage;
    if (!m)
        return;
    prof_memory_profile_free(&m->profile);
    free(m->held);
    free(m->kept);
    free(m->brief);
    free(m->lifetimes);
    free(m->holders);
    free(m);
    data->usage = NULL;
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void note_steps(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_memory_profile *p = &data->usage->profile;
    PROF_FREED char *name = prof_report_cut(p->phase_count == 1 ? p->phases->name : NULL, 60);
    if (!p->steps)
        snprintf(out, size,
                 "Nothing repeats, so leaks and state look alike: put a range around an iteration "
                 "of the program (nvtxRangePush(\"step\"), torch.cuda.nvtx.range(\"step\")).");
    else if (p->phase_count > 1)
        snprintf(out, size,
                 "%s repeat, each analysed by its own iterations, %s after warm-up in all: growth "
                 "is that of the phase where it is largest.",
                 prof_counted((int64_t)p->phase_count, "phase", "phases").text,
                 prof_count(p->steps).text);
    else if (name)
        snprintf(out, size, "An iteration is one NVTX range \"%s\": %s after warm-up.", name,
                 prof_count(p->steps).text);
    else
        snprintf(out, size, "An iteration is a period of the launches: %s after warm-up.",
                 prof_count(p->steps).text);
}

static bool note_growth(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_memory_profile *p = &data->usage->profile;
    out[0] = 0;
    for (size_t i = 0; i < p->place_count; i++) {
        const struct prof_memory_place *place = &p->places[i];
        if (place->kind >= 0 || isnan(place->growth_bytes) || place->growth_bytes < 1)
            continue;
        const char *where =
            place->host ? "host"
                        : prof_report_device_label(prof_device(data->capture, place->device));
        PROF_FREED char *phase =
            prof_report_cut(p->phase_count > 1 ? place->growth_phase : NULL, 60);
        prof_append(out, size, "%s%s of %s%s%s%s", *out ? ", " : "",
                    prof_bytes(place->growth_bytes).text, where, phase ? " in \"" : "",
                    phase ? phase : "", phase ? "\"" : "");
    }
    if (!*out)
        return false;
    prof_append(out, size, " are live more after each iteration than after the one before.");
    return true;
}

static bool note_stacks(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_memory_profile *p = &data->usage->profile;
    for (size_t i = 0; i < p->tree.count; i++) {
        if (p->tree.nodes[i].kind == PROF_FLAME_FRAME)
            return false;
    }
    if (!p->site_count)
        return false;
    snprintf(out, size,
             "Recorded without call stacks: `perfkit run --stacks=alloc` adds the source lines.");
    return true;
}

/* What must be said with the tables: what an iteration is, how much grows, what was not recorded.
 */
static void describe_memory(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    const struct prof_memory_profile *p = &data->usage->profile;
    size_t size = sizeof notes->text[0];
    notes->count = 0;
    if (p->why_none) {
        snprintf(notes->text[notes->count++], size, "Not available: %s.", p->why_none);
        return;
    }
    if (p->site_count)
        note_steps(data, notes->text[notes->count++], size);
    notes->count += note_growth(data, notes->text[notes->count], size);
    if (p->failed > (int64_t)p->failure_count)
        snprintf(notes->text[notes->count++], size,
                 "%s allocations found no room; the first %zu are listed.",
                 prof_count(p->failed).text, p->failure_count);
    notes->count += note_stacks(data, notes->text[notes->count], size);
}

/* ---- the report about memory alone ----------------------------------------------------------- */

static void memory_json_members(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_memory_profile *profile = &data->usage->profile;
    prof_json_object(json, "steps");
    prof_json_known(json, "count", profile->steps);
    prof_json_string(json, "name", profile->step_name);
    prof_json_end(json);
    prof_json_string(json, "why_none", profile->why_none);
    prof_json_known(json, "failed", profile->failed);
}

static bool why_no_memory(const struct prof_report_data *data)
{
    return data->usage->profile.why_none != NULL;
}

static enum prof_status load_memory_data(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         struct prof_report_data *data, struct prof_error *err)
{
    PROF_TRY(prof_report_load_trust(capture, options, data, err));
    PROF_TRY(prof_pool_summary(capture, data->filter, &data->pools, err));
    return prof_report_load_memory(data, err);
}

const struct prof_report_document prof_report_memory_document = {
    .key = "perfkit_memory",
    .shape = 1,
    .tables = prof_report_memory_tables,
    .load = load_memory_data,
    .has_nothing = why_no_memory,
    .part = "Memory of ",
    .describe = describe_memory,
    .json_members = memory_json_members,
};
