/* How long an iteration would take after a change: the replay that the findings use, of all from
 * the first to the last iteration of a phase. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/iterations/iterations.h"
#include "libprof/analysis/rules/replay.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_what_if.h"

/* A replay that does not reproduce what was recorded predicts nothing, and neither does one that
 * rests by more than that on time which recording may have made. */
#define FAITHFUL 0.05

static const struct prof_words limits[] = {PROF_LIMIT_KINDS(PROF_WORDS)};

const char *prof_limit_name(enum prof_limit limit)
{
    return limits[limit].name;
}

const char *prof_limit_text(enum prof_limit limit)
{
    return limits[limit].text;
}

/* What recording a call or a range took of the host, ns. It is what makes the replay as much
 * faster as the program is without perfkit: it differs from program to program, and no figure of
 * another machine is in it. */
struct recording {
    double least, likely, most;
    bool known;   /* likely is: the overhead is, and the replay reproduces it */
    bool bounded; /* most is, by the overhead; else it is what recording takes at most anywhere */
};

struct model {
    const struct prof_facts *facts;
    struct prof_replay replay;
    struct prof_replayed out;
    int64_t *steady; /* times of the iterations after warm-up */
    size_t count;
    struct recording recording;
    double bare_scale; /* of replayed times without recording */
};

static struct prof_median take_median(struct model *m, const int64_t *times)
{
    m->count = 0;
    for (size_t i = 0; i < m->replay.iterations.count; i++)
        if (m->replay.iterations.data[i].steady)
            m->steady[m->count++] = times[i];
    return prof_median_interval(m->steady, m->count);
}

/* Where iterations overlap, one may end by another way than the one on which it began: what is less
 * than none is none. */
static enum prof_limit largest_share(const struct prof_replayed *out, double share[PROF_LIMITS])
{
    int64_t sum = 0;
    enum prof_limit most = 0;
    for (int b = 0; b < PROF_LIMITS; b++)
        sum += prof_max(out->in_steady[b], 0);
    for (int b = 0; b < PROF_LIMITS; b++) {
        share[b] = sum > 0 ? (double)prof_max(out->in_steady[b], 0) / (double)sum : NAN;
        most = out->in_steady[b] > out->in_steady[most] ? (enum prof_limit)b : most;
    }
    return most;
}

/* Of all iterations, as recorded; then by the replay of just that. */
static bool measure_base(struct model *m, struct prof_what_if *result)
{
    static const struct prof_edit nothing = {0};
    int64_t done = INT64_MIN;
    m->out.iterations = calloc(m->replay.iterations.count + 1, sizeof *m->out.iterations);
    m->out.begins = calloc(m->replay.iterations.count + 1, sizeof *m->out.begins);
    m->steady = calloc(m->replay.iterations.count + 1, sizeof *m->steady);
    if (!m->out.iterations || !m->out.begins || !m->steady)
        return false;
    for (size_t i = 0; i < m->replay.iterations.count; i++)
        m->out.iterations[i] = prof_replay_iteration_time(&m->replay.iterations.data[i], &done);
    struct prof_median recorded = take_median(m, m->out.iterations);
    result->iterations = (int64_t)m->count;
    result->median_ns = recorded.median;
    result->low_ns = recorded.low;
    result->high_ns = recorded.high;
    if (!prof_replay_run(&m->replay, &nothing, &m->out))
        return false;
    result->replayed_ns = take_median(m, m->out.iterations).median;
    result->limit = largest_share(&m->out, result->share);
    double off = result->replayed_ns / result->median_ns - 1;
    if (!m->count)
        snprintf(result->why_none, sizeof result->why_none,
                 "no iteration is whole in the first part of the phase that is replayed");
    else if (!(fabs(off) <= FAITHFUL))
        snprintf(result->why_none, sizeof result->why_none,
                 "the replay of what was recorded takes %s per iteration, recorded are %s: more "
                 "than 5 %% apart",
                 prof_duration(result->replayed_ns).text, prof_duration(result->median_ns).text);
    return true;
}

/* ---- without recording ----------------------------------------------------------------------- */

/* The replay's time from the begin of an iteration to the next one's, as the overhead is measured,
 * by what recording a call or range took. */
#define CURVE_POINTS 32
#define CLOSE 1e-3

struct curve {
    struct {
        double each, period;
    } points[CURVE_POINTS]; /* by each */
    size_t count;
};

static bool add_point(struct model *m, struct curve *curve, double each)
{
    struct prof_edit edit = {.recording_ns = each};
    size_t at = curve->count, whole = m->replay.iterations.count;
    if (curve->count == CURVE_POINTS)
        return true;
    if (!prof_replay_run(&m->replay, &edit, &m->out))
        return false;
    m->count = 0;
    for (size_t i = 0; i + 1 < whole; i++)
        if (m->replay.iterations.data[i].steady)
            m->steady[m->count++] = m->out.begins[i + 1] - m->out.begins[i];
    for (; at && curve->points[at - 1].each > each; at--)
        curve->points[at] = curve->points[at - 1];
    curve->points[at].each = each;
    curve->points[at].period = prof_median_interval(m->steady, m->count).median;
    curve->count++;
    return true;
}

/* The least that makes the period at most `period`, which lies on the curve. */
static bool each_for(struct model *m, struct curve *curve, double period, double *each)
{
    for (int round = 0;; round++) {
        size_t at = 0;
        while (at + 1 < curve->count && curve->points[at].period > period * (1 + CLOSE))
            at++;
        double high = curve->points[at].each, above = curve->points[at].period;
        *each = high;
        if (!at || round == 8 || above > period * (1 - CLOSE))
            return true;
        double low = curve->points[at - 1].each, below = curve->points[at - 1].period;
        double part = (below - period) / (below - above);
        *each = low + (high - low) * part;
        if (round == 7 || below < period * (1 + 2 * CLOSE))
            return true;
        /* A curve that bends is followed by halves now and then. */
        double middle = low > 0 ? sqrt(low * high) : high / 16;
        if (!add_point(m, curve, round % 3 == 2 || high > 64 * (low + 100) ? middle : *each))
            return false;
    }
}

/* Calls and ranges of the thread that has the iterations, per iteration. */
static double recorded_events(const struct prof_replay *r)
{
    uint32_t thread = PROF_NO_ITEM;
    double events = 0;
    for (size_t i = 0; i < r->items.count && thread == PROF_NO_ITEM; i++)
        if (r->items.data[i].kind == PROF_REPLAY_BEGIN)
            thread = r->items.data[i].thread;
    for (size_t i = 0; i < r->items.count; i++)
        if (r->items.data[i].thread == thread &&
            (r->items.data[i].kind == PROF_REPLAY_OP || r->items.data[i].kind == PROF_REPLAY_CALL))
            events += 1 + r->items.data[i].ranges;
    return r->iterations.count ? events / (double)r->iterations.count : 0;
}

static double overhead_ratio(const struct prof_overhead *overhead, double ratio)
{
    bool sampled = overhead->source == PROF_OVERHEAD_SAMPLED && overhead->paused > 0;
    return fmax(ratio * (sampled ? overhead->paused : 1), 1);
}

/* What recording took of the host, from how much longer it made an iteration. Where it is not seen
 * how much, as the host waits for its device anyway, anything up to `price` is possible. */
static bool find_recording(struct model *m, const struct prof_overhead *overhead, double price,
                           struct prof_what_if *result)
{
    struct curve curve = {.count = 0};
    struct recording *found = &m->recording;
    *found = (struct recording){.likely = NAN, .most = price};
    if (overhead->source == PROF_OVERHEAD_UNKNOWN)
        return true;
    result->why_no_bare[0] = '\0';
    double ratio = overhead_ratio(overhead, overhead->ratio);
    double low = overhead_ratio(overhead, overhead->low);
    double high = overhead_ratio(overhead, overhead->high);
    result->overhead = ratio;
    result->estimated = overhead->source == PROF_OVERHEAD_ESTIMATED;
    result->bare_ns = result->median_ns / ratio;
    result->bare_low_ns = result->low_ns / high;
    result->bare_high_ns = result->high_ns / low;
    double events = recorded_events(&m->replay);
    if (!add_point(m, &curve, 0) || !add_point(m, &curve, result->median_ns))
        return false;
    double base = curve.points[0].period, least = curve.points[1].period;
    if (!(base > 0) || !(events > 0) || least > base / ratio / (1 - FAITHFUL)) {
        snprintf(result->why_no_bare, sizeof result->why_no_bare,
                 "recording made an iteration %.2fx as long, which is more than what the host does "
                 "in it: work of the device, or of other threads, took longer too",
                 ratio);
        return true;
    }
    if (!add_point(m, &curve, base * (1 - 1 / ratio) / events) ||
        !each_for(m, &curve, fmax(base / ratio, least), &found->likely) ||
        !each_for(m, &curve, fmax(base / low, least), &found->least))
        return false;
    found->bounded = base / high > least * (1 + 2 * CLOSE);
    if (found->bounded && !each_for(m, &curve, base / high, &found->most))
        return false;
    found->known = true;
    found->least = fmin(found->least, found->likely);
    found->most = fmax(found->most, found->likely);
    result->recording_ns = found->likely;
    return true;
}

static bool replay_without(struct model *m, const struct prof_edit *changed, double recording_ns,
                           struct prof_median *times)
{
    struct prof_edit edit = *changed;
    edit.recording_ns = recording_ns;
    bool ok = prof_replay_run(&m->replay, &edit, &m->out);
    *times = ok ? take_median(m, m->out.iterations) : (struct prof_median){NAN, NAN, NAN};
    return ok;
}

/* An iteration without perfkit after the change; no prediction where it rests on what recording
 * took, and that is not known. */
static bool predict_bare(struct model *m, const struct prof_edit *edit,
                         const struct prof_what_if *result, struct prof_what_if_row *row)
{
    const struct recording *recording = &m->recording;
    struct prof_median most, likely, least;
    if (!replay_without(m, edit, recording->most, &most) ||
        !replay_without(m, edit, recording->least, &least) ||
        !replay_without(m, edit, recording->known ? recording->likely : 0, &likely))
        return false;
    double low = most.low * m->bare_scale, high = least.high * m->bare_scale;
    bool changes = fabs(row->saved_ns) >= 1; /* else it is what was recorded */
    if (changes && !recording->bounded && most.median < (1 - FAITHFUL) * least.median) {
        row->predicted_ns = row->low_ns = row->high_ns = row->saved_ns = row->speedup = NAN;
        row->bare_low_ns = low;
        row->bare_high_ns = high;
        row->why_none =
            recording->known
                ? "recording slows the host, and its waits for the device hide by how much"
                : "recording slows the host, by how much is not known";
        return true;
    }
    if (!recording->known)
        return true;
    row->bare_ns = likely.median * m->bare_scale;
    row->bare_low_ns = low;
    row->bare_high_ns = high;
    row->bare_saved_ns = result->bare_ns - row->bare_ns;
    row->bare_speedup = result->bare_ns / row->bare_ns;
    return true;
}

/* Operations and calls that a change is about. */
static int64_t count_changed(const struct model *m, const struct prof_change *change)
{
    static const struct prof_op_edit nothing = {0};
    int64_t count = 0, iterations = (int64_t)m->replay.iterations.count;
    for (size_t i = 0; i < m->replay.items.count; i++) {
        const struct prof_replay_item *item = &m->replay.items.data[i];
        if (item->kind == PROF_REPLAY_OP)
            count += memcmp(&change->edit.ops[item->shape], &nothing, sizeof nothing) != 0;
        else if (item->kind == PROF_REPLAY_CALL)
            count += (change->classes >> item->class_) & 1;
    }
    bool about_some = change->shapes || change->classes;
    return about_some && iterations ? (count + iterations / 2) / iterations : PROF_UNKNOWN;
}

static bool predict(struct model *m, const struct prof_change *change, const char *text,
                    struct prof_what_if *result)
{
    if (!prof_replay_run(&m->replay, &change->edit, &m->out))
        return false;
    struct prof_median predicted = take_median(m, m->out.iterations);
    double scale = result->median_ns / result->replayed_ns;
    struct prof_what_if_row *row = &result->rows[result->count++];
    *row = (struct prof_what_if_row){.change = text,
                                     .changed = count_changed(m, change),
                                     .predicted_ns = predicted.median * scale,
                                     .low_ns = predicted.low * scale,
                                     .high_ns = predicted.high * scale,
                                     .bare_ns = NAN,
                                     .bare_low_ns = NAN,
                                     .bare_high_ns = NAN,
                                     .bare_saved_ns = NAN,
                                     .bare_speedup = NAN};
    row->saved_ns = result->median_ns - row->predicted_ns;
    row->speedup = result->median_ns / row->predicted_ns;
    row->limit = largest_share(&m->out, row->share);
    struct prof_edit host_free = change->edit;
    host_free.cut_host = 1;
    if (!prof_replay_run(&m->replay, &host_free, &m->out))
        return false;
    row->host_free_ns = take_median(m, m->out.iterations).median * scale;
    return predict_bare(m, &change->edit, result, row);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static enum prof_status predict_all(struct model *m, const char *const *changes, size_t count,
                                    struct prof_what_if *result, struct prof_error *err)
{
    struct prof_change all = {0};
    enum prof_status status = PROF_OK;
    result->rows = calloc(count + 1, sizeof *result->rows);
    bool ok = result->rows != NULL;
    for (size_t i = 0; ok && !status && i < count; i++) {
        struct prof_change one = {0};
        status = prof_change_add(&one, m->facts, changes[i], err);
        if (!status)
            status = prof_change_add(&all, m->facts, changes[i], err);
        ok = status || result->why_none[0] || predict(m, &one, changes[i], result);
        prof_change_free(&one);
    }
    if (ok && !status && count > 1 && !result->why_none[0])
        ok = predict(m, &all, NULL, result);
    prof_change_free(&all);
    return ok ? status : prof_out_of_memory(err);
}

static bool has_collectives(const struct prof_facts *f)
{
    bool any = false;
    for (size_t i = 0; i < f->shapes.count; i++)
        any |= f->shapes.data[i].collective;
    return any;
}

static void describe_joined_ranks(const struct model *m, const struct prof_rank_parts *parts,
                                  struct prof_what_if *result)
{
    result->joined = (int64_t)m->replay.met;
    if (!result->joined && (parts->why_unmatched || has_collectives(m->facts)))
        snprintf(result->ranks, sizeof result->ranks,
                 "collectives take as long as recorded, waiting included: %s",
                 parts->why_unmatched ? parts->why_unmatched
                                      : "the other ranks are not in this capture");
    if (!result->joined)
        return;
    snprintf(result->ranks, sizeof result->ranks, "%s between ranks %s for the last rank to arrive",
             prof_counted(result->joined, "operation", "operations").text,
             result->joined == 1 ? "waits" : "wait");
    if (parts->missing > 0)
        prof_append(result->ranks, sizeof result->ranks,
                    "; %s of %s ranks %s not in this capture: waits for %s stay as recorded",
                    prof_count(parts->missing).text, prof_count(parts->world_size).text,
                    parts->missing == 1 ? "is" : "are", parts->missing == 1 ? "it" : "them");
    if (parts->why_unmatched)
        prof_append(result->ranks, sizeof result->ranks, "; others take as long as recorded: %s",
                    parts->why_unmatched);
}

/* What recording a call or a range takes at most, with any device; and did PyTorch name its
 * operators? */
static enum prof_status find_price(const struct prof_facts *f, double *price, bool *operators,
                                   struct prof_error *err)
{
    bool stacks = false;
    *price = 0;
    *operators = false;
    PROF_TRY(prof_look_for_stacks(f->capture, &stacks, err));
    for (uint32_t d = 0; d < f->devices.count; d++) {
        struct prof_recording_delay sum;
        prof_recorded_events(f, d, stacks, &sum);
        *price = sum.events > 0 ? fmax(*price, sum.most_ns / sum.events) : *price;
        *operators |= sum.operators;
    }
    return PROF_OK;
}

static bool measure_bare(struct model *m, const struct prof_overhead *overhead, double price,
                         struct prof_what_if *result)
{
    static const struct prof_edit nothing = {0};
    struct prof_median bare;
    m->bare_scale = result->median_ns / result->replayed_ns;
    if (result->why_none[0])
        return true;
    if (!find_recording(m, overhead, price, result) ||
        (m->recording.known && !replay_without(m, &nothing, m->recording.likely, &bare)))
        return false;
    if (m->recording.known)
        m->bare_scale = result->bare_ns / bare.median;
    return true;
}

static enum prof_status what_if_of_facts(struct prof_facts *f, const struct prof_rank_parts *parts,
                                         const char *const *changes, size_t count,
                                         struct prof_what_if *result, struct prof_error *err)
{
    const struct prof_phase *phase =
        f->phases.list.count ? &f->phases.list.data[f->phases.main] : NULL;
    struct model m = {.facts = f};
    double price;
    bool operators;
    if (f->impossible || !phase || phase->iterations.source == PROF_ITERATION_RUN ||
        phase->iterations.main_begin == phase->iterations.main_end) {
        snprintf(result->why_none, sizeof result->why_none, "nothing repeats in this capture");
        return PROF_OK;
    }
    PROF_TRY(prof_facts_phase(f, f->phases.main, err));
    PROF_TRY(find_price(f, &price, &operators, err));
    static const struct prof_overhead unknown = {.source = PROF_OVERHEAD_UNKNOWN};
    bool in_part = phase->overhead.in_part;
    const struct prof_overhead *overhead = operators || in_part ? &unknown : &phase->overhead;
    snprintf(result->why_no_bare, sizeof result->why_no_bare, "%s",
             operators ? "PyTorch named its operators, which takes time also while nothing is "
                         "recorded: record with --overhead=measure and without --pytorch"
             : in_part ? "the measured overhead lacks what CUPTI costs in a pause, as no iteration "
                         "ended before CUPTI was switched on: let iterations begin earlier"
             : phase->overhead.pauses
                 ? "--overhead=measure had too few pauses beside iterations: record for longer"
                 : "the overhead was not measured: record with --overhead=measure");
    result->phase = result->texts = phase->label ? strdup(phase->label) : NULL;
    bool ok = (result->texts || !phase->label) && prof_replay_open(&m.replay, f, phase, parts) &&
              measure_base(&m, result) && measure_bare(&m, overhead, price, result);
    describe_joined_ranks(&m, parts, result);
    enum prof_status status =
        ok ? predict_all(&m, changes, count, result, err) : prof_out_of_memory(err);
    prof_replay_close(&m.replay);
    free(m.out.iterations);
    free(m.out.begins);
    free(m.steady);
    return status;
}

enum prof_status prof_what_if(struct prof_capture *capture, const struct prof_filter *filter,
                              const char *const *changes, size_t count, struct prof_what_if *result,
                              struct prof_error *err)
{
    struct prof_facts facts;
    const char *why_none = prof_why_not_judged(capture, filter);
    *result = (struct prof_what_if){.median_ns = NAN,
                                    .low_ns = NAN,
                                    .high_ns = NAN,
                                    .replayed_ns = NAN,
                                    .bare_ns = NAN,
                                    .bare_low_ns = NAN,
                                    .bare_high_ns = NAN,
                                    .overhead = NAN,
                                    .recording_ns = NAN};
    for (int b = 0; b < PROF_LIMITS; b++)
        result->share[b] = NAN;
    if (why_none) {
        snprintf(result->why_none, sizeof result->why_none, "%s", why_none);
        return PROF_OK;
    }
    struct prof_rank_parts parts = {0};
    enum prof_status status = prof_facts_load_phases(&facts, capture, filter, err);
    if (!status)
        status = prof_rank_parts_read(&facts, filter, &parts, err);
    if (!status)
        status = what_if_of_facts(&facts, &parts, changes, count, result, err);
    prof_array_free(&parts);
    prof_facts_free(&facts);
    if (status)
        prof_what_if_free(result);
    return status;
}

void prof_what_if_free(struct prof_what_if *result)
{
    free(result->rows);
    free(result->texts);
    *result = (struct prof_what_if){0};
}
