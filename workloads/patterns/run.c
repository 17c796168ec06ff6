/* Variants to result rows. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "perfkit/annotate.h"
#include "workloads/common/grow.h"
#include "workloads/patterns/workload.h"

int unavailable(struct run *run, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(run->row->skipped, sizeof run->row->skipped, format, ap);
    va_end(ap);
    return UNAVAILABLE;
}

/* Adds `count` adjacent rows; NULL when memory ran out. */
static struct result *add_rows(struct results *results, size_t count)
{
    void *rows = results->rows;
    struct result *first =
        grow(&rows, &results->count, &results->capacity, count, sizeof results->rows[0]);

    results->rows = rows;
    for (size_t i = 0; first && i < count; i++)
        first[i].occupancy = NAN;
    return first;
}

/* One variant between open and close. */
struct opened {
    const struct variant *variant;
    struct run run;
};

/* Opens and verifies: 0, -1, or UNAVAILABLE. */
static int prepare(struct opened *o, struct subject *subject)
{
    const struct variant *variant = o->variant;
    int status;

    *subject =
        (struct subject){.name = variant->name, .step = variant->step, .whole = variant->whole};
    perfkit_range_push(variant->name);
    perfkit_range_push("setup");
    status = variant->open(&o->run, variant->argument, &subject->context);
    perfkit_range_pop();
    if (status == 0 && o->run.options->common.verify) {
        perfkit_range_push("verify");
        status = variant->verify(subject->context, &o->run.row->check);
        perfkit_range_pop();
        if (status != 0)
            variant->close(subject->context);
    }
    perfkit_range_pop();
    return status;
}

static void finish(const struct variant *variant, void *state)
{
    perfkit_range_push(variant->name);
    perfkit_range_push("teardown");
    variant->close(state);
    perfkit_range_pop();
    perfkit_range_pop();
}

int run_variants(const struct pattern_options *options, struct dev *dev,
                 const struct variant *variants, size_t count, struct results *results)
{
    struct result *rows = add_rows(results, count);
    struct subject subjects[RUN_TOGETHER];
    struct opened opened[RUN_TOGETHER];
    struct session session;
    const char *failing = variants[0].name;
    size_t ready = 0;
    int status;

    dev_clear_error(dev);
    status = rows ? session_open(&session, dev) : -1;
    if (status != 0) {
        fprintf(stderr, "patterns: %s: %s\n", failing, dev_error_text(dev));
        return -1;
    }
    for (size_t i = 0; i < count && status == 0; i++) {
        struct opened *o = &opened[ready];

        rows[i].variant = failing = variants[i].name;
        *o = (struct opened){&variants[i], {options, &session, &rows[i]}};
        status = prepare(o, &subjects[ready]);
        ready += status == 0;
        status = status == UNAVAILABLE ? 0 : status;
    }
    if (status == 0 && ready > 0)
        status =
            measure(&session, subjects, ready, options->common.iterations, options->common.warmup);
    for (size_t i = 0; i < ready; i++) {
        opened[i].run.row->measured = subjects[i].result;
        finish(opened[i].variant, subjects[i].context);
    }
    if (status != 0) {
        const char *why = dev_error_text(dev);

        fprintf(stderr, "patterns: %s: %s\n", failing, *why ? why : "out of memory");
    }
    session_close(&session);
    return status;
}
