/* How much of the devices' work is not in a capture although the program asked for it: records that
 * found no room, or whose times never came. Where that is more than next to nothing, time that
 * looks idle may have been work. */
#include <string.h>

#include "libprof/analysis/facts/facts.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_trust.h"

static bool is_device_work_subject(const char *subject)
{
    return !strcmp(subject, "launch") || !strcmp(subject, "transfer") || !strcmp(subject, "memset");
}

/* Of what was called, the part that has no record; when it was called nobody knows. While a capture
 * is being made, records are on their way. */
static double unrecorded(const struct prof_facts *f, const struct prof_trust *trust)
{
    enum prof_state state = prof_info(f->capture)->state;
    bool made = state != PROF_STATE_RECORDING && state != PROF_STATE_CLOSING;
    int64_t called = 0, missing = 0;
    for (size_t i = 0; made && i < trust->total_count; i++) {
        const struct prof_balance *b = &trust->totals[i];
        if (!is_device_work_subject(b->subject) || b->called == PROF_UNKNOWN)
            continue;
        called = prof_add(called, b->called);
        missing = prof_add(missing, prof_add(b->dropped, b->remainder > 0 ? b->remainder : 0));
    }
    return called > 0 ? (double)missing / (double)called : 0;
}

/* Of what was asked for in the window, the part that has no times; what is still under way, or was
 * when the program ended, is not missing. */
static double untimed(const struct prof_facts *f)
{
    int64_t without = 0, with = 0, last = f->begin;
    for (size_t i = 0; i < f->shapes.count; i++)
        last = f->shapes.data[i].last_call_ns > last ? f->shapes.data[i].last_call_ns : last;
    last = last < f->end ? last : f->end;
    for (size_t i = 0; i < f->untimed.count; i++)
        without += prof_facts_has(f, f->untimed.data[i]) && f->untimed.data[i] < last;
    for (size_t i = 0; i < f->devices.count; i++)
        with += f->devices.data[i].kernels + f->devices.data[i].copies;
    return without ? (double)without / (double)(without + with) : 0;
}

enum prof_status prof_facts_missing(struct prof_facts *f, struct prof_error *err)
{
    struct prof_trust trust;
    enum prof_status status = prof_trust(f->capture, &trust, err);
    if (status)
        return status;
    f->missing_share = unrecorded(f, &trust) + untimed(f);
    prof_trust_free(&trust);
    return PROF_OK;
}
