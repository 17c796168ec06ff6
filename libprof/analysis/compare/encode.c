/* A run as bytes and back. Own bytes rather than tables: a baseline keeps runs whole and asks
 * nothing of them, and a metric costs 100 bytes instead of a row per number. Little-endian, numbers
 * as LEB128 (signed ones zigzag), texts once, families by name so that a later version may order
 * them anew.
 *
 * Reading takes any bytes: counts are checked against what is left before room is made for them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/compare/metric.h"

#define MAGIC "PKRN"
#define VERSION 2 /* 1: without iteration_ns */

/* ---- runs and their texts ----------------------------------------------------------------------
 */

const char *prof_run_text(struct prof_run *run, const char *text, size_t length, bool *failed)
{
    if (!text)
        return NULL;
    if (!run->texts)
        run->texts = calloc(1, sizeof(struct prof_arena));
    const char *copy = run->texts ? prof_arena_copy(run->texts, text, length) : NULL;
    if (!copy)
        *failed = true;
    return copy;
}

void prof_run_init(struct prof_run *run)
{
    *run = (struct prof_run){.iteration_source = PROF_ITERATION_RUN,
                             .steady_ns = PROF_UNKNOWN,
                             .wall_ns = PROF_UNKNOWN,
                             .clock_hz = NAN};
}

void prof_run_free(struct prof_run *run)
{
    free(run->metrics);
    free(run->environment);
    if (run->texts)
        prof_arena_free(run->texts);
    free(run->texts);
    *run = (struct prof_run){0};
}

/* ---- writing -----------------------------------------------------------------------------------
 */

struct writer {
    PROF_ARRAY(unsigned char) out;
    struct prof_names known; /* text -> number */
    PROF_ARRAY(const char *) texts;
    bool failed;
};

static void encode_bytes(struct writer *w, const void *bytes, size_t length)
{
    if (w->failed || !prof_array_reserve(&w->out, length)) {
        w->failed = true;
        return;
    }
    if (length)
        memcpy(w->out.data + w->out.count, bytes, length);
    w->out.count += length;
}

static void put_uint(struct writer *w, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    encode_bytes(w, bytes, count);
}

static void put_int(struct writer *w, int64_t value)
{
    put_uint(w, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static void put_word(struct writer *w, uint64_t bits, int bytes)
{
    unsigned char out[8];
    for (int i = 0; i < bytes; i++)
        out[i] = (unsigned char)(bits >> (8 * i));
    encode_bytes(w, out, (size_t)bytes);
}

static void put_real(struct writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_word(w, bits, 8);
}

static void put_float(struct writer *w, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_word(w, bits, 4);
}

/* Texts go by number, 0 = NULL; the table of them stands in front. */
static uint64_t text_number(struct writer *w, const char *text)
{
    if (!text)
        return 0;
    uint32_t *known = prof_names_get(&w->known, text, strlen(text));
    if (known)
        return *known + 1;
    const char **slot = prof_array_add(&w->texts);
    if (slot)
        *slot = text;
    if (!slot || !prof_names_put(&w->known, text, strlen(text), (uint32_t)w->texts.count - 1)) {
        w->failed = true;
        return 0;
    }
    return w->texts.count;
}

static void put_text(struct writer *w, const char *text)
{
    put_uint(w, text_number(w, text));
}

static void put_sketch(struct writer *w, const struct prof_sketch *s)
{
    put_int(w, s->count);
    if (!s->count)
        return;
    put_real(w, s->sum);
    put_real(w, s->log_mean);
    put_uint(w, (uint64_t)s->batches);
    for (int i = 0; i < s->batches; i++)
        put_float(w, s->batch[i]);
    for (int i = 0; i < PROF_SKETCH_QUANTILES; i++)
        put_float(w, s->quantile[i]);
}

static void put_metric(struct writer *w, const struct prof_metric *m)
{
    const struct prof_metric_info *info = prof_metric_info(m->family);
    put_text(w, info->name);
    put_text(w, m->name);
    put_text(w, m->place);
    if (prof_metric_has_shape(m->family)) {
        for (int i = 0; i < 3; i++)
            put_int(w, m->grid[i]);
        for (int i = 0; i < 3; i++)
            put_int(w, m->block[i]);
    }
    put_int(w, m->device);
    put_int(w, m->order);
    put_int(w, m->inside);
    if (info->exact)
        put_int(w, m->outside);
    else {
        put_real(w, m->iteration_ns);
        put_sketch(w, &m->sketch);
    }
}

static void put_run(struct writer *w, const struct prof_run *run)
{
    put_text(w, run->iteration);
    put_uint(w, run->iteration_source);
    put_int(w, run->iterations);
    put_int(w, run->skipped);
    put_int(w, run->steady_ns);
    put_int(w, run->wall_ns);
    put_uint(w, run->complete);
    put_text(w, run->why_incomplete);
    put_real(w, run->clock_hz);
    put_int(w, run->left_out);
    put_uint(w, run->environment_count);
    for (size_t i = 0; i < run->environment_count; i++) {
        put_text(w, run->environment[i].name);
        put_text(w, run->environment[i].value);
        put_uint(w, run->environment[i].level);
    }
    put_uint(w, run->count);
    for (size_t i = 0; i < run->count; i++)
        put_metric(w, &run->metrics[i]);
}

static void put_head(struct writer *w, const struct writer *body)
{
    encode_bytes(w, MAGIC, sizeof MAGIC - 1);
    put_uint(w, VERSION);
    put_uint(w, body->texts.count);
    for (size_t i = 0; i < body->texts.count; i++) {
        size_t length = strlen(body->texts.data[i]);
        put_uint(w, length);
        encode_bytes(w, body->texts.data[i], length);
    }
    encode_bytes(w, body->out.data, body->out.count);
}

enum prof_status prof_run_encode(const struct prof_run *run, unsigned char **bytes, size_t *length,
                                 struct prof_error *err)
{
    struct writer body = {0}, whole = {0};
    put_run(&body, run);
    if (!body.failed)
        put_head(&whole, &body);
    bool failed = body.failed || whole.failed;
    prof_array_free(&body.out);
    prof_array_free(&body.texts);
    prof_names_free(&body.known);
    if (failed)
        prof_array_free(&whole.out);
    *bytes = whole.out.data;
    *length = whole.out.count;
    return failed ? prof_out_of_memory(err) : PROF_OK;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

struct reader {
    const unsigned char *at, *end;
    struct prof_run *run;
    PROF_ARRAY(const char *) texts;
    bool damaged, failed; /* failed: out of memory */
    uint64_t version;
};

static uint64_t get_uint(struct reader *r)
{
    uint64_t value = 0;
    for (int shift = 0; r->at < r->end && shift < 64; shift += 7) {
        unsigned char byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    r->damaged = true;
    return 0;
}

static int64_t get_int(struct reader *r)
{
    uint64_t value = get_uint(r);
    return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

static uint64_t get_word(struct reader *r, int bytes)
{
    uint64_t bits = 0;
    if (r->end - r->at < bytes) {
        r->damaged = true;
        return 0;
    }
    for (int i = 0; i < bytes; i++)
        bits |= (uint64_t)*r->at++ << (8 * i);
    return bits;
}

static double get_real(struct reader *r)
{
    uint64_t bits = get_word(r, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float get_finite(struct reader *r)
{
    uint32_t bits = (uint32_t)get_word(r, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
        r->damaged = true;
    return value;
}

/* A count of things that take at least `least` bytes each; 0 where so many cannot follow. */
static size_t get_count(struct reader *r, size_t least)
{
    uint64_t count = get_uint(r);
    if (count > (uint64_t)(r->end - r->at) / least)
        r->damaged = true;
    return r->damaged ? 0 : (size_t)count;
}

static const char *get_text(struct reader *r)
{
    uint64_t number = get_uint(r);
    if (number > r->texts.count)
        r->damaged = true;
    return !number || r->damaged ? NULL : r->texts.data[number - 1];
}

static void get_texts(struct reader *r)
{
    size_t count = get_count(r, 1);
    for (size_t i = 0; i < count && !r->damaged && !r->failed; i++) {
        size_t length = get_count(r, 1);
        const char **slot = prof_array_add(&r->texts);
        if (!slot) {
            r->failed = true;
            return;
        }
        *slot = prof_run_text(r->run, (const char *)r->at, length, &r->failed);
        r->at += length;
    }
}

static void get_sketch(struct reader *r, struct prof_sketch *s)
{
    s->count = get_int(r);
    if (!s->count)
        return;
    s->sum = get_real(r);
    s->log_mean = get_real(r);
    uint64_t batches = get_uint(r);
    if (s->count < 0 || batches > PROF_SKETCH_BATCHES || !isfinite(s->sum) ||
        !isfinite(s->log_mean) || fabs(s->log_mean) > 100) {
        r->damaged = true;
        return;
    }
    s->batches = (int)batches;
    for (int i = 0; i < s->batches; i++)
        s->batch[i] = get_finite(r);
    for (int i = 0; i < PROF_SKETCH_QUANTILES; i++)
        s->quantile[i] = get_finite(r);
}

static void get_metric(struct reader *r, struct prof_metric *m)
{
    const char *family = get_text(r);
    *m = (struct prof_metric){.family = family ? prof_metric_named(family) : PROF_METRICS};
    m->name = get_text(r);
    m->place = get_text(r);
    if (m->family == PROF_METRICS || !m->name || !m->place) {
        r->damaged = true;
        return;
    }
    for (int i = 0; prof_metric_has_shape(m->family) && i < 3; i++)
        m->grid[i] = get_int(r);
    for (int i = 0; prof_metric_has_shape(m->family) && i < 3; i++)
        m->block[i] = get_int(r);
    m->device = get_int(r);
    m->order = get_int(r);
    m->inside = get_int(r);
    if (prof_metric_info(m->family)->exact)
        m->outside = get_int(r);
    else {
        m->iteration_ns = r->version > 1 ? get_real(r) : NAN;
        r->damaged |= isinf(m->iteration_ns) || m->iteration_ns < 0;
        get_sketch(r, &m->sketch);
    }
}

static void get_environment(struct reader *r)
{
    struct prof_run *run = r->run;
    size_t count = get_count(r, 3);
    run->environment = calloc(count + 1, sizeof *run->environment);
    r->failed |= !run->environment;
    for (size_t i = 0; i < count && !r->damaged && !r->failed; i++) {
        struct prof_environment *e = &run->environment[run->environment_count++];
        e->name = get_text(r);
        e->value = get_text(r);
        uint64_t level = get_uint(r);
        if (!e->name || level > PROF_ENVIRONMENT_INFO)
            r->damaged = true;
        e->level = (enum prof_environment_level)level;
    }
}

static void get_run(struct reader *r)
{
    struct prof_run *run = r->run;
    run->iteration = get_text(r);
    uint64_t source = get_uint(r);
    run->iteration_source = (enum prof_iteration_source)source;
    run->iterations = get_int(r);
    run->skipped = get_int(r);
    run->steady_ns = get_int(r);
    run->wall_ns = get_int(r);
    run->complete = get_uint(r) == 1;
    run->why_incomplete = get_text(r);
    run->clock_hz = get_real(r);
    run->left_out = get_int(r);
    if (source >= PROF_ITERATION_SOURCES || run->iterations < 0)
        r->damaged = true;
    get_environment(r);
    size_t count = get_count(r, 7);
    run->metrics = r->failed || r->damaged ? NULL : calloc(count + 1, sizeof *run->metrics);
    r->failed |= !r->damaged && !run->metrics;
    while (run->count < count && !r->damaged && !r->failed)
        get_metric(r, &run->metrics[run->count++]);
    if (run->count && !r->damaged)
        qsort(run->metrics, run->count, sizeof *run->metrics, prof_metric_order);
    for (size_t i = 1; i < run->count && !r->damaged; i++)
        r->damaged = !prof_metric_order(&run->metrics[i - 1], &run->metrics[i]);
}

enum prof_status prof_run_decode(const unsigned char *bytes, size_t length, struct prof_run *run,
                                 struct prof_error *err)
{
    prof_run_init(run);
    size_t magic = sizeof MAGIC - 1;
    if (length < magic || memcmp(bytes, MAGIC, magic))
        return prof_fail(err, PROF_CORRUPT, "cannot read a kept run: it does not begin as one");
    struct reader r = {.at = bytes + magic, .end = bytes + length, .run = run};
    uint64_t version = get_uint(&r);
    r.version = version;
    if (!r.damaged && (!version || version > VERSION))
        return prof_fail(err, PROF_VERSION,
                         "cannot read a kept run of version %llu: a later perfkit wrote it",
                         (unsigned long long)version);
    get_texts(&r);
    if (!r.damaged && !r.failed)
        get_run(&r);
    r.damaged |= r.at != r.end;
    prof_array_free(&r.texts);
    if (!r.damaged && !r.failed)
        return PROF_OK;
    prof_run_free(run);
    return r.failed ? prof_out_of_memory(err)
                    : prof_fail(err, PROF_CORRUPT, "cannot read a kept run: it is damaged");
}
