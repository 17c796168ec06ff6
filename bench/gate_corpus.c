/* Runs of real programs, reduced to what a comparison needs and kept in one compressed file: so
 * that false alarms are counted on real noise, on every machine and in CI. What names the machine
 * is left out; logarithms are rounded to 2^-14 and batch means to 2^-10 (0.1 %), which noise is far
 * above; quantiles, which only people look at, are dropped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "bench/gate_power.h"

#define MOST_BYTES (16u << 20) /* of a run */

static void put_word(unsigned char *out, size_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

static size_t get_word(const unsigned char *in)
{
    size_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (size_t)in[i] << (8 * i);
    return value;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* "/a/b/patterns --variant x" -> "patterns --variant x" */
static void take_label(const struct prof_capture *capture, char *out, size_t size)
{
    const char *command = prof_info(capture)->command;
    size_t program = command ? strcspn(command, " ") : 0;
    const char *at = command ? command + program : "";
    while (command && at > command && at[-1] != '/')
        at--;
    snprintf(out, size, "%s", at);
}

/* To 12 binary digits: what is not compared but as a share of the time. */
static double round_share(double value)
{
    int exponent;
    double part = frexp(value, &exponent);
    return ldexp(round(part * 4096), exponent - 12);
}

static void round_run(struct prof_run *run)
{
    size_t kept = 0;
    for (size_t i = 0; i < run->environment_count; i++) {
        if (!strcmp(run->environment[i].name, "api"))
            run->environment[kept++] = run->environment[i];
    }
    run->environment_count = kept;
    for (size_t i = 0; i < run->count; i++) {
        struct prof_sketch *s = &run->metrics[i].sketch;
        if (s->count) {
            run->metrics[i].inside = (int64_t)round_share((double)run->metrics[i].inside);
            s->sum = round_share(s->sum);
        }
        s->log_mean = round(s->log_mean * 16384) / 16384;
        for (int b = 0; b < s->batches; b++)
            s->batch[b] = roundf(s->batch[b] * 1024) / 1024;
        memset(s->quantile, 0, sizeof s->quantile);
    }
}

static bool write_run(gzFile out, const char *path)
{
    struct prof_capture *capture = NULL;
    struct prof_error err = {0};
    struct prof_run run;
    char label[160] = "";
    unsigned char head[8];
    char *bytes = NULL;
    size_t length = 0;
    if (prof_open(path, &capture, &err)) {
        fprintf(stderr, "gate_power: %s\n", err.message);
        return false;
    }
    bool ok = !prof_run_extract(capture, NULL, &run, &err);
    if (ok) {
        take_label(capture, label, sizeof label);
        round_run(&run);
        ok = !prof_run_encode(&run, &bytes, &err);
        length = ok ? strlen(bytes) : 0;
        prof_run_free(&run);
    }
    prof_close(capture);
    put_word(head, strlen(label));
    put_word(head + 4, length);
    ok = ok && gzwrite(out, head, sizeof head) == (int)sizeof head &&
         (!*label || gzwrite(out, label, (unsigned)strlen(label)) > 0) &&
         gzwrite(out, bytes, (unsigned)length) > 0;
    if (!ok)
        fprintf(stderr, "gate_power: %s: %s\n", path, err.message);
    free(bytes);
    return ok;
}

bool corpus_write(const char *path, char **captures, int count)
{
    gzFile out = gzopen(path, "wb9");
    bool ok = out;
    for (int i = 0; out && i < count; i++) /* one that cannot be read does not cost the others */
        ok = write_run(out, captures[i]) && ok;
    return out && gzclose(out) == Z_OK && ok;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* 1: a run, 0: the end, -1: damaged. */
static int read_run(gzFile in, struct corpus_run *out)
{
    unsigned char head[8];
    int got = gzread(in, head, sizeof head);
    if (got <= 0)
        return got;
    size_t label = get_word(head), length = get_word(head + 4);
    if (got != (int)sizeof head || label >= sizeof out->label || length > MOST_BYTES)
        return -1;
    char *bytes = malloc(length + 1);
    bool ok = bytes && gzread(in, out->label, (unsigned)label) == (int)label &&
              gzread(in, bytes, (unsigned)length) == (int)length;
    if (ok)
        out->label[label] = bytes[length] = 0;
    ok = ok && !prof_run_decode(bytes, &out->run, NULL);
    free(bytes);
    return ok ? 1 : -1;
}

bool corpus_read(const char *path, struct corpus *corpus)
{
    gzFile in = gzopen(path, "rb");
    int got = in ? 1 : -1;
    size_t room = 0;
    *corpus = (struct corpus){0};
    while (got > 0) {
        if (corpus->count == room) {
            struct corpus_run *more = realloc(corpus->runs, (2 * room + 64) * sizeof *more);
            if (!more)
                break;
            corpus->runs = more;
            room = 2 * room + 64;
        }
        memset(&corpus->runs[corpus->count], 0, sizeof *corpus->runs);
        got = read_run(in, &corpus->runs[corpus->count]);
        corpus->count += got > 0;
    }
    if (in)
        gzclose(in);
    if (got)
        fprintf(stderr, "gate_power: cannot read %s: it is damaged or missing\n", path);
    return !got;
}

void corpus_free(struct corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++)
        prof_run_free(&corpus->runs[i].run);
    free(corpus->runs);
    *corpus = (struct corpus){0};
}
