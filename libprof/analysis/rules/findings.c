/* From facts to findings: runs every rule, lets the waterfall's states be claimed once, and puts
 * what is worth reporting in order. The registry is the order of the families here and of the rules
 * in them: the more particular cause stands first and is paid first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/cpu_samples.h"
#include "libprof/analysis/memory/profile.h"
#include "libprof/analysis/ranks/ranks.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/include/prof_findings.h"

static const struct prof_rule *const families[] = {
    prof_rules_ranks,     prof_rules_round_trip, prof_rules_transfer, prof_rules_library,
    prof_rules_needless,  prof_rules_host,       prof_rules_fusion,   prof_rules_wait,
    prof_rules_launch,    prof_rules_roof,       prof_rules_stalls,   prof_rules_kernel,
    prof_rules_precision, prof_rules_hot,        prof_rules_memory,
};

/* Confidence up to which a finding is a hint. */
#define HINT 0.2

static const struct prof_rule *rule_at(size_t index)
{
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        for (const struct prof_rule *rule = families[f]; rule->page.id; rule++) {
            if (!index--)
                return rule;
        }
    }
    return NULL;
}

const struct prof_rule_page *prof_rule_page(size_t index)
{
    const struct prof_rule *rule = rule_at(index);
    return rule ? &rule->page : NULL;
}

const struct prof_rule_page *prof_rule_find(const char *id)
{
    const struct prof_rule_page *page = NULL;
    for (size_t i = 0; id && (page = prof_rule_page(i)) && strcmp(page->id, id) != 0; i++)
        ;
    return id ? page : NULL;
}

/* ---- prices ---------------------------------------------------------------------------------- */

/* What is left to be paid for. */
struct purse {
    int64_t (*slices)[PROF_SLICES]; /* by device */
    int64_t *kernels;               /* of the time alone, by shape */
    int64_t *slowed;                /* by device: paid for kernels that the host slows */
};

static bool open_purse(struct purse *purse, const struct prof_facts *f)
{
    purse->slices = calloc(f->devices.count + 1, sizeof *purse->slices);
    purse->kernels = calloc(f->shapes.count + 1, sizeof *purse->kernels);
    purse->slowed = calloc(f->devices.count + 1, sizeof *purse->slowed);
    if (!purse->slices || !purse->kernels || !purse->slowed)
        return false;
    for (size_t i = 0; i < f->devices.count; i++)
        memcpy(purse->slices[i], f->devices.data[i].slice_ns, sizeof purse->slices[i]);
    for (size_t i = 0; i < f->shapes.count; i++)
        purse->kernels[i] = f->shapes.data[i].alone_ns;
    return true;
}

static void close_purse(struct purse *purse)
{
    free(purse->slices);
    free(purse->kernels);
    free(purse->slowed);
}

/* What a draft is paid, and of it the time in which the device waits for the host; for kernels that
 * its time slows, beside that. */
struct payment {
    int64_t paid, waiting, in_calls, slowed;
};

/* Pay a draft's claims out of what is left of the device's states, and of each kernel. */
static struct payment pay(const struct prof_draft *draft, struct purse *purse)
{
    int64_t *left = purse->slices[draft->device], kernels = 0;
    struct payment payment = {0};
    for (size_t i = 0; i < draft->least.count; i++) {
        int64_t *kernel = &purse->kernels[draft->least.data[i].shape];
        if (*kernel <= draft->least.data[i].ns)
            continue;
        kernels += *kernel - draft->least.data[i].ns;
        *kernel = draft->least.data[i].ns;
    }
    for (int i = 0; i < PROF_SLICES; i++) {
        int64_t claim = draft->claims[i] + (i == PROF_SLICE_KERNEL ? kernels : 0);
        int64_t part = prof_min(claim, left[i]);
        left[i] -= part;
        payment.paid += part;
        payment.waiting += i >= PROF_SLICE_SYNC ? part : 0;
        payment.in_calls += i >= PROF_SLICE_SYNC && prof_slice_has_few_events(i) ? part : 0;
    }
    return payment;
}

/* What kernels are slowed by is paid once for a device, and to a draft no more than it was paid. */
static int64_t pay_slowed(const struct prof_draft *draft, struct purse *purse, int64_t paid)
{
    int64_t *left = &purse->slices[draft->device][PROF_SLICE_KERNEL];
    int64_t part =
        prof_min(draft->slowed_ns, draft->slowed_in_all_ns - purse->slowed[draft->device]);
    part = prof_max(prof_min(part, prof_min(*left, paid)), 0);
    *left -= part;
    purse->slowed[draft->device] += part;
    return part;
}

/* In the order of the registry; but what kernels are slowed by comes behind all that blames kernels
 * themselves, and only before hints. */
static void pay_all(const struct prof_judge *judge, struct purse *purse, struct payment *payments)
{
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < judge->drafts.count; i++) {
            const struct prof_draft *draft = &judge->drafts.data[i];
            bool last = judge->slowed && draft->finding.confidence <= HINT;
            if (draft->about_memory)
                continue;
            if (round == 1 && !last)
                payments[i].slowed = pay_slowed(draft, purse, payments[i].paid);
            else if (round == (last ? 2 : 0))
                payments[i] = pay(draft, purse);
        }
    }
}

/* What the draft would be paid if it was the only one: all of its claims and what it saves of
 * kernels, which becomes a term of its bound here. */
static int64_t worth(struct prof_draft *draft, const struct prof_facts *f)
{
    const int64_t *slices = f->devices.data[draft->device].slice_ns;
    int64_t sum = 0, kernels = 0;
    for (size_t i = 0; i < draft->least.count; i++)
        kernels += f->shapes.data[draft->least.data[i].shape].alone_ns - draft->least.data[i].ns;
    kernels = prof_min(kernels, slices[PROF_SLICE_KERNEL] - draft->claims[PROF_SLICE_KERNEL]);
    if (kernels > 0)
        prof_term(draft, "saved_kernel_ns", kernels, 1);
    for (int i = 0; i < PROF_SLICES; i++)
        sum += draft->claims[i];
    return sum + kernels;
}

/* A replay that does not come out at the time that was measured knows too little of the program. */
#define HONEST 0.02

/* A draft that saves less of the phase by its kernels is not replayed. */
#define WORTH_REPLAYING 0.01

/* What a draft leaves of its kernels, as an edit; false: that is nearly all. */
static bool edit_kernels(const struct prof_draft *draft, const struct prof_facts *f,
                         struct prof_op_edit *ops)
{
    int64_t saved = 0;
    memset(ops, 0, f->shapes.count * sizeof *ops);
    for (size_t i = 0; i < draft->least.count; i++) {
        const struct prof_least *least = &draft->least.data[i];
        int64_t alone = f->shapes.data[least->shape].alone_ns;
        double cut = alone > 0 ? (double)(alone - least->ns) / (double)alone : 0;
        ops[least->shape].cut = fmin(cut, 0.999); /* its launch stays */
        saved += alone - least->ns;
    }
    return (double)saved >= WORTH_REPLAYING * (double)prof_facts_window_ns(f);
}

static void keep_replayed(struct prof_finding *finding, const struct prof_replayed *out,
                          int64_t base, int64_t window)
{
    double saved = (double)(base - out->span_ns) / (double)base;
    int64_t path = 0;
    finding->whatif_ns = saved > 0 ? (int64_t)(saved * (double)window) : 0;
    finding->whatif_limit = 0;
    for (int i = 0; i < PROF_LIMITS; i++) {
        path += out->path[i];
        if (out->path[i] > out->path[finding->whatif_limit])
            finding->whatif_limit = (enum prof_limit)i;
    }
    finding->whatif_limit_share =
        path > 0 ? (double)out->path[finding->whatif_limit] / (double)path : NAN;
}

static bool replay_all(struct prof_judge *judge)
{
    struct prof_replay replay;
    static const struct prof_edit nothing = {0};
    struct prof_replayed out = {0};
    struct prof_op_edit *ops = calloc(judge->facts->shapes.count + 1, sizeof *ops);
    bool ok = prof_replay_open(&replay, judge->facts, NULL, NULL) && ops &&
              prof_replay_run(&replay, &nothing, &out);
    int64_t base = out.span_ns;
    double span = (double)replay.span_ns;
    bool honest = ok && span > 0 && fabs((double)base - span) <= HONEST * span;
    for (size_t i = 0; honest && ok && i < judge->drafts.count; i++) {
        struct prof_draft *draft = &judge->drafts.data[i];
        if (!draft->has_edit && !edit_kernels(draft, judge->facts, ops))
            continue;
        if (!draft->has_edit)
            draft->edit.ops = ops;
        ok = prof_replay_run(&replay, &draft->edit, &out);
        if (ok)
            keep_replayed(&draft->finding, &out, base, prof_facts_window_ns(judge->facts));
    }
    prof_replay_close(&replay);
    free(ops);
    return ok;
}

/* What the rule was seen to cost another device in the same phase; NULL = nothing yet. The rows of
 * a phase come one after the other. */
static struct prof_finding *told_of_another(const struct prof_findings *result,
                                            const struct prof_finding *finding)
{
    for (size_t i = result->count; finding->devices && i--;) {
        struct prof_finding *row = &result->rows[i];
        if (row->phase != finding->phase)
            break;
        if (row->rule == finding->rule && prof_compare_subjects(row, finding) == 0)
            return row;
    }
    return NULL;
}

static bool costs_more(const struct prof_finding *finding, const struct prof_finding *other)
{
    if (finding->bound_ns != other->bound_ns)
        return finding->bound_ns > other->bound_ns;
    return finding->bytes > other->bytes;
}

/* Several devices share the wall time: what one of them saves is not saved again by another. Where
 * a rule speaks of several, the one that it costs most stands for them. */
static void add_finding(struct prof_findings *result, const struct prof_finding *finding,
                        int64_t *wall)
{
    struct prof_finding *known = told_of_another(result, finding);
    size_t devices = known ? known->devices + 1 : finding->devices;
    if (!known)
        known = &result->rows[result->count++];
    else if (!costs_more(finding, known))
        finding = known;
    else if (known->bound_ns != PROF_UNKNOWN)
        *wall += known->bound_ns;
    if (finding != known && finding->bound_ns != PROF_UNKNOWN)
        *wall -= finding->bound_ns;
    *known = *finding;
    known->devices = devices;
}

/* Without what single iterations are out of line by. */
static int64_t typical_time(const struct prof_device_facts *device, int64_t window)
{
    for (int i = PROF_SLICE_FIRST_IDLE; i < PROF_SLICES; i++)
        window -= device->slice_ns[i] - device->typical_ns[i];
    return window > 0 ? window : 0;
}

/* The part of a draft's bound that typical iterations have. */
static int64_t typical_bound(const struct prof_draft *draft, const struct prof_device_facts *device)
{
    const struct prof_finding *finding = &draft->finding;
    double gone = 0;
    for (int i = PROF_SLICE_FIRST_IDLE; i < PROF_SLICES; i++) {
        if (device->slice_ns[i] > 0)
            gone += (double)(device->slice_ns[i] - device->typical_ns[i]) *
                    (double)draft->claims[i] / (double)device->slice_ns[i];
    }
    double left = finding->alone_ns > 0 ? 1 - gone / (double)finding->alone_ns : 0;
    return (int64_t)((double)finding->bound_ns * fmax(left, 0));
}

static void price(struct prof_draft *draft, int64_t paid, const struct prof_facts *f, int64_t most)
{
    int64_t window = f->phases.time_ns;
    struct prof_finding *finding = &draft->finding;
    const struct prof_device_facts *device = &f->devices.data[draft->device];
    finding->alone_ns = worth(draft, f);
    finding->alone_share = window > 0 ? (double)finding->alone_ns / (double)window : 0;
    finding->bound_ns = prof_min(paid, most);
    if (finding->alone_ns > finding->bound_ns)
        prof_term(draft, PROF_NUMBER_ELSEWHERE, finding->alone_ns - finding->bound_ns, -1);
    finding->bound_share = window > 0 ? (double)finding->bound_ns / (double)window : 0;
    finding->typical_ns = typical_bound(draft, device);
    finding->typical_phase_ns = typical_time(device, prof_facts_window_ns(f));
}

/* Kernels that the draft's time slows are in the bound, but nothing else goes by them: they are no
 * part of what the fix is likely to save. */
static void add_slowed(struct prof_draft *draft, int64_t slowed, const struct prof_facts *f)
{
    struct prof_finding *finding = &draft->finding;
    double window = (double)f->phases.time_ns, own = (double)finding->bound_ns;
    if (slowed <= 0 || own <= 0 || window <= 0)
        return;
    double more = (own + (double)slowed) / own;
    prof_term(draft, "slowed_kernel_ns", slowed, 1);
    finding->slowed_ns = slowed;
    finding->bound_ns += slowed;
    finding->alone_ns += slowed;
    finding->bound_share = (double)finding->bound_ns / window;
    finding->alone_share = (double)finding->alone_ns / window;
    if (finding->net_min_ns != PROF_UNKNOWN) {
        finding->net_min_ns = (int64_t)((double)finding->net_min_ns * more);
        finding->net_max_ns = (int64_t)((double)finding->net_max_ns * more);
    }
    finding->typical_ns = (int64_t)((double)finding->typical_ns * more);
    finding->confidence /= more;
}

/* What a phase has to do with a rule may be too little to be reported by itself: see choose_rows.
 */
static bool publish(struct prof_judge *judge, struct prof_findings *result)
{
    const struct prof_facts *f = judge->facts;
    int64_t wall = prof_facts_window_ns(f), typical = 0;
    struct purse purse;
    struct prof_recording_delay *recorded = calloc(f->devices.count + 1, sizeof *recorded);
    struct payment *payments = calloc(judge->drafts.count + 1, sizeof *payments);
    bool ok = open_purse(&purse, f) && recorded && payments;
    if (ok)
        pay_all(judge, &purse, payments);
    for (uint32_t d = 0; ok && d < f->devices.count; d++)
        prof_recorded_on(judge, d, &recorded[d]);
    struct prof_finding *rows =
        realloc(result->rows, (result->count + judge->drafts.count + 1) * sizeof *result->rows);
    result->rows = rows ? rows : result->rows;
    ok = ok && rows;
    for (size_t i = 0; ok && i < judge->drafts.count; i++) {
        struct prof_draft *draft = &judge->drafts.data[i];
        struct prof_finding *finding = &draft->finding;
        finding->phase = (size_t)(f->phase - f->phases.list.data);
        finding->net_min_ns = finding->net_max_ns = PROF_UNKNOWN;
        const struct prof_finding *other = told_of_another(result, finding);
        if (draft->about_memory && f->phase != &f->phases.list.data[f->phases.main])
            continue; /* reported once */
        if (draft->about_memory) {
            finding->bound_ns = finding->alone_ns = PROF_UNKNOWN;
            finding->typical_ns = finding->typical_phase_ns = PROF_UNKNOWN;
            finding->rule_bound_ns = PROF_UNKNOWN;
            finding->bound_share = finding->alone_share = NAN;
            finding->severity = draft->most;
            finding->hint = draft->most == PROF_SEVERITY_INFO;
            finding->phases = 1;
        } else {
            struct payment payment = payments[i];
            int64_t most = wall + (other ? other->bound_ns : 0);
            price(draft, payment.paid, f, most);
            struct prof_made made =
                prof_made_by_recording(&f->devices.data[draft->device], &recorded[draft->device]);
            if (f->phase->overhead.source != PROF_OVERHEAD_UNKNOWN && !f->phase->overhead.in_part)
                prof_set_net_bound(finding, payment.paid, payment.waiting, &made);
            prof_leave_recording_out(draft, payment.waiting, payment.in_calls, &made);
            if (finding->confidence <= HINT ||
                (finding->names_no_cause && finding->bound_ns < finding->alone_ns / 2))
                draft->most = PROF_SEVERITY_INFO;
            finding->hint = draft->most == PROF_SEVERITY_INFO;
            finding->severity = draft->most; /* until all phases are known */
            if (!finding->hint && finding->bound_ns < finding->alone_ns / 2)
                ok = prof_find_same_cause(judge, i);
            /* A hint explains, also where others were paid for the same time. */
            if ((finding->hint ? finding->alone_ns : finding->bound_ns) <= 0)
                continue;
            add_slowed(draft, prof_min(payment.slowed, most - finding->bound_ns), f);
        }
        add_finding(result, finding, &wall);
    }
    for (size_t i = 0; i < f->devices.count; i++) {
        int64_t one = typical_time(&f->devices.data[i], prof_facts_window_ns(f));
        if (f->devices.data[i].kernels + f->devices.data[i].copies > 0 && one > typical)
            typical = one;
    }
    result->typical_ns += typical;
    free(recorded);
    free(payments);
    close_purse(&purse);
    return ok;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Rules about the capture, and about memory, run with the main phase. */
static void ask_all(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    bool main = f->phase == &f->phases.list.data[f->phases.main];
    const struct prof_rule *rule;
    for (size_t i = 0; (rule = rule_at(i)); i++) {
        judge->rule = rule;
        if (rule->per_capture && !main)
            continue;
        size_t devices = rule->per_capture ? 1 : judge->facts->devices.count;
        for (uint32_t d = 0; d < devices; d++) {
            judge->device_index = d;
            judge->device = rule->per_capture ? NULL : &judge->facts->devices.data[d];
            size_t before = judge->drafts.count;
            if (rule->per_capture || judge->device->kernels || judge->device->copies)
                rule->judge(judge);
            for (size_t k = before; rule->slows_kernels && k < judge->drafts.count; k++)
                prof_claim_slowed(judge, &judge->drafts.data[k]);
            if (rule->advice && judge->drafts.count > before)
                prof_advise(judge, &judge->drafts.data[before], rule->advice);
        }
    }
}

static void free_drafts(struct prof_judge *judge)
{
    for (size_t i = 0; i < judge->drafts.count; i++)
        prof_array_free(&judge->drafts.data[i].least);
    prof_array_free(&judge->drafts);
    free(judge->slowed);
    judge->slowed = NULL;
}

/* The states of a device add up over the phases. Devices that did nothing are one long state that
 * says nothing. */
static bool add_waterfalls(const struct prof_facts *facts, struct prof_findings *result)
{
    if (!result->waterfalls)
        result->waterfalls = calloc(facts->devices.count + 1, sizeof *result->waterfalls);
    for (size_t i = 0; result->waterfalls && i < facts->devices.count; i++) {
        struct prof_waterfall *row = &result->waterfalls[i];
        row->device = facts->devices.data[i].id;
        for (int k = 0; k < PROF_SLICES; k++)
            row->ns[k] += facts->devices.data[i].slice_ns[k];
    }
    return result->waterfalls != NULL;
}

static void drop_idle_waterfalls(struct prof_findings *result, size_t count)
{
    for (size_t i = 0; result->waterfalls && i < count; i++) {
        int64_t busy = 0;
        for (int k = 0; k < PROF_SLICE_FIRST_IDLE; k++)
            busy += result->waterfalls[i].ns[k];
        if (busy)
            result->waterfalls[result->waterfall_count++] = result->waterfalls[i];
    }
}

/* The facts become those of the phase. */
static enum prof_status find_in_phase(struct prof_judge *judge, size_t phase,
                                      struct prof_findings *result, struct prof_error *err)
{
    struct prof_facts *facts = (struct prof_facts *)(uintptr_t)judge->facts;
    PROF_TRY(facts->phase == &facts->phases.list.data[phase] ? PROF_OK
                                                             : prof_facts_phase(facts, phase, err));
    ask_all(judge);
    bool ok = !judge->failed && replay_all(judge) && publish(judge, result) &&
              add_waterfalls(facts, result);
    free_drafts(judge);
    return ok ? PROF_OK : prof_out_of_memory(err);
}

/* The main phase first: what is reported once is reported of it. Afterwards the facts are its
 * again. */
static enum prof_status judge_phases(struct prof_judge *judge, struct prof_findings *result,
                                     struct prof_error *err)
{
    struct prof_facts *facts = (struct prof_facts *)(uintptr_t)judge->facts;
    const struct prof_phases *phases = &facts->phases;
    enum prof_status status = prof_facts_index_phases(facts) ? PROF_OK : prof_out_of_memory(err);
    if (!status)
        status = find_in_phase(judge, phases->main, result, err);
    for (size_t p = 0; !status && p < phases->list.count; p++) {
        if (p != phases->main)
            status = find_in_phase(judge, p, result, err);
    }
    drop_idle_waterfalls(result, facts->devices.count);
    if (!status && phases->list.count > 1)
        status = prof_facts_phase(facts, phases->main, err);
    return status;
}

enum prof_status prof_look_for_stacks(struct prof_capture *capture, bool *any,
                                      struct prof_error *err)
{
    sqlite3_stmt *row;
    PROF_TRY(prof_query(capture, "SELECT EXISTS(SELECT 1 FROM stack)", &row, err));
    *any = prof_row(row) && sqlite3_column_int(row, 0);
    return prof_query_end(capture, row, err);
}

enum prof_status prof_judge_facts(struct prof_capture *capture, const struct prof_filter *filter,
                                  const struct prof_facts *facts, struct prof_findings *result,
                                  struct prof_error *err)
{
    struct prof_ceilings ceilings = {0};
    struct prof_roofline roofs = {0};
    struct prof_ranks ranks = {0};
    struct prof_memory_profile memory = {0};
    struct prof_stalls stalls = {0};
    struct prof_judge judge = {.facts = facts,
                               .ceilings = &ceilings,
                               .ranks = &ranks,
                               .memory = &memory,
                               .stalls = &stalls,
                               .roofs = facts->has_roofs ? &facts->roofs : &roofs};
    enum prof_status status = prof_ceilings(capture, &ceilings, err);
    if (!status && !facts->has_roofs)
        status = prof_roofline(capture, filter, PROF_ROOFLINE_CONFIGS, &roofs, err);
    if (!status)
        status = prof_ranks_of(facts, filter, &ranks, err);
    if (!status)
        status = prof_memory_profile_of(facts, filter, &memory, err);
    if (!status)
        status = prof_stalls(capture, filter, &stalls, err);
    if (!status)
        status = prof_look_for_stacks(capture, &judge.has_stacks, err);
    if (!status && !prof_index_roofs(&judge))
        status = prof_out_of_memory(err);
    if (!status)
        status = judge_phases(&judge, result, err);
    prof_order_findings(result, facts->phases.time_ns);
    result->abstentions = judge.abstentions.data;
    result->abstention_count = judge.abstentions.count;
    free_drafts(&judge);
    for (size_t i = 0; judge.device_times && i < facts->devices.count; i++)
        prof_cpu_device_time_free(&judge.device_times[i]);
    free(judge.device_times);
    free(judge.remedies);
    free(judge.roles);
    prof_map_free(&judge.roof_index);
    prof_roofline_free(&roofs);
    prof_ranks_free(&ranks);
    prof_ceilings_free(&ceilings);
    prof_memory_profile_free(&memory);
    prof_stalls_free(&stalls);
    return status;
}

const char *prof_why_not_judged(const struct prof_capture *capture,
                                const struct prof_filter *filter)
{
    if (filter && (filter->kernel || filter->kernel_pattern || filter->stream ||
                   filter->stream_count || filter->thread || filter->range))
        return "only a part of the device's work was chosen";
    if (capture->info.summary)
        return "a summary (perfkit merge --summary) has no single events";
    return capture->info.kernel_filter ? "only some kernels were recorded" : NULL;
}

/* ---- where the time went --------------------------------------------------------------------- */

static const char *const slices[][2] = {
#define PROF_WATERFALL_STATE(state, name, text) [PROF_SLICE_##state] = {name, text},
    PROF_WATERFALL_STATES(PROF_WATERFALL_STATE)
#undef PROF_WATERFALL_STATE
};

const char *prof_slice_name(enum prof_slice slice)
{
    return slices[slice][0];
}

const char *prof_slice_text(enum prof_slice slice)
{
    return slices[slice][1];
}

/* Less than a thousandth is no prediction. Nor is what a finding's bound contradicts: the replay
 * then takes away more than the finding is about. */
#define WORTH_PREDICTING 0.001

PROF_ORDER(largest_saving_first, struct prof_prediction, PROF_DESCENDING(saved_ns),
           strcmp(x->rule->id, y->rule->id), PROF_ASCENDING(phase),
           prof_compare_texts(x->subject, y->subject))

static void add_predictions(struct prof_findings *result)
{
    for (size_t i = 0; i < result->count && result->prediction_count < PROF_PREDICTIONS; i++) {
        const struct prof_finding *row = &result->rows[i];
        const struct prof_phase_row *phase = &result->phases[row->phase];
        double times = phase->iterations > 0 ? (double)phase->iterations : 1;
        double before = (double)phase->analysed_ns / times;
        double most = (double)(prof_max(row->bound_ns, row->alone_ns) - row->slowed_ns) / times;
        double saved = fmin((double)row->whatif_ns / times, most);
        if (row->bound_ns == PROF_UNKNOWN || row->whatif_ns == PROF_UNKNOWN ||
            saved < WORTH_PREDICTING * before ||
            (double)row->whatif_ns / times > most * (1 + HONEST))
            continue;
        result->predictions[result->prediction_count++] =
            (struct prof_prediction){.rule = row->rule,
                                     .subject = row->subject,
                                     .phase = row->phase,
                                     .iteration_ns = before,
                                     .predicted_ns = before - saved,
                                     .saved_ns = saved,
                                     .speedup = before / (before - saved),
                                     .limit = row->whatif_limit,
                                     .limit_share = row->whatif_limit_share};
    }
    if (result->prediction_count)
        qsort(result->predictions, result->prediction_count, sizeof *result->predictions,
              largest_saving_first);
}

enum prof_status prof_findings_of_facts(struct prof_capture *capture,
                                        const struct prof_filter *filter,
                                        const struct prof_facts *facts,
                                        struct prof_findings *result, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    if (facts->impossible)
        result->why_none = "the capture holds times or sizes that cannot be";
    else
        status = prof_judge_facts(capture, filter, facts, result, err);
    if (!status && !result->why_none &&
        !prof_phase_rows(&facts->phases, &result->phases, &result->phase_count))
        status = prof_out_of_memory(err);
    if (!status && !result->why_none)
        add_predictions(result);
    result->window_ns = facts->phases.time_ns;
    result->begin_ns = facts->begin;
    result->steps = facts->steps;
    result->step_name = facts->step_name;
    if (facts->phases.list.count)
        result->overhead = facts->phases.list.data[facts->phases.main].overhead;
    result->missing_share = facts->missing_share;
    result->coverage = facts->phases.coverage;
    return status ? status : prof_place_lines(capture, result, err);
}

enum prof_status prof_findings(struct prof_capture *capture, const struct prof_filter *filter,
                               struct prof_findings *findings, struct prof_error *err)
{
    struct prof_facts facts;
    enum prof_status status = PROF_OK;
    *findings = (struct prof_findings){.why_none = prof_why_not_judged(capture, filter)};
    if (!findings->why_none) {
        status = prof_facts_load(&facts, capture, filter, err);
        if (!status)
            status = prof_findings_of_facts(capture, filter, &facts, findings, err);
        prof_facts_free(&facts);
    }
    if (status)
        prof_findings_free(findings);
    return status;
}

void prof_findings_free(struct prof_findings *result)
{
    free(result->rows);
    free(result->abstentions);
    free(result->waterfalls);
    free(result->phases);
    *result = (struct prof_findings){0};
}
