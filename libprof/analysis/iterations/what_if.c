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

/* A replay that does not reproduce what was recorded predicts nothing. */
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

struct model {
    const struct prof_facts *facts;
    struct prof_replay replay;
    struct prof_replayed out;
    int64_t *steady; /* times of the iterations after warm-up */
    size_t count;
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
    m->steady = calloc(m->replay.iterations.count + 1, sizeof *m->steady);
    if (!m->out.iterations || !m->steady)
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
                                     .high_ns = predicted.high * scale};
    row->saved_ns = result->median_ns - row->predicted_ns;
    row->speedup = result->median_ns / row->predicted_ns;
    row->limit = largest_share(&m->out, row->share);
    struct prof_edit host_free = change->edit;
    host_free.cut_host = 1;
    if (!prof_replay_run(&m->replay, &host_free, &m->out))
        return false;
    row->host_free_ns = take_median(m, m->out.iterations).median * scale;
    return true;
}

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

static enum prof_status what_if_of_facts(const struct prof_facts *f,
                                         const struct prof_rank_parts *parts,
                                         const char *const *changes, size_t count,
                                         struct prof_what_if *result, struct prof_error *err)
{
    const struct prof_phase *phase =
        f->phases.list.count ? &f->phases.list.data[f->phases.main] : NULL;
    struct model m = {.facts = f};
    if (f->impossible || !phase || phase->iterations.source == PROF_ITERATION_RUN ||
        phase->iterations.main_begin == phase->iterations.main_end) {
        snprintf(result->why_none, sizeof result->why_none, "nothing repeats in this capture");
        return PROF_OK;
    }
    result->phase = result->texts = phase->label ? strdup(phase->label) : NULL;
    bool ok = (result->texts || !phase->label) && prof_replay_open(&m.replay, f, phase, parts) &&
              measure_base(&m, result);
    describe_joined_ranks(&m, parts, result);
    enum prof_status status =
        ok ? predict_all(&m, changes, count, result, err) : prof_out_of_memory(err);
    prof_replay_close(&m.replay);
    free(m.out.iterations);
    free(m.steady);
    return status;
}

enum prof_status prof_what_if(struct prof_capture *capture, const struct prof_filter *filter,
                              const char *const *changes, size_t count, struct prof_what_if *result,
                              struct prof_error *err)
{
    struct prof_facts facts;
    const char *why_none = prof_why_not_judged(capture, filter);
    *result =
        (struct prof_what_if){.median_ns = NAN, .low_ns = NAN, .high_ns = NAN, .replayed_ns = NAN};
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
