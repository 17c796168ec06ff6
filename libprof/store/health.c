/* The codes of capture_health, and what rows of captures without codes mean. */
#include <stddef.h>
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/store/health.h"
#include "libprof/wire/record.h"

const struct prof_health prof_health[PROF_HEALTH_CODES] = {
#define X(code, level, ...) {#code, PROF_HEALTH_##level, __VA_ARGS__},
    PROF_HEALTH_MAP(X)
#undef X
};

const char *prof_health_level_text(enum prof_health_level level)
{
    static const char *const texts[] = {
#define X(name, text) text,
        PROF_HEALTH_LEVEL_MAP(X)
#undef X
    };
    return texts[level];
}

enum prof_health_code prof_health_find(const char *code)
{
    for (int i = 0; code && i < PROF_HEALTH_CODES; i++) {
        if (!strcmp(code, prof_health[i].code))
            return (enum prof_health_code)i;
    }
    return PROF_HEALTH_other;
}

static enum prof_health_code guess_collector(const char *item, const char *note)
{
    static const struct {
        const char *tail;
        enum prof_health_code code;
    } tails[] = {
        {" refused", PROF_HEALTH_collector_refused},
        {" degraded", PROF_HEALTH_collector_degraded},
        {" contended", PROF_HEALTH_collector_contended},
        {" running", PROF_HEALTH_collector_running},
        {" ended", PROF_HEALTH_collector_ended},
    };
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        if (prof_ends_with(item, tails[i].tail))
            return tails[i].code;
    }
    return !strcmp(item, "nested")     ? PROF_HEALTH_collector_nested
           : strstr(note, "(--cupti=") ? PROF_HEALTH_collector_yielded
                                       : PROF_HEALTH_collector_note;
}

enum prof_health_code prof_health_guess(const char *subject, const char *item, const char *note)
{
    static const char *const types[] = {
#define X(name, definition, record, first, now, text) [WIRE_##name] = text,
        WIRE_TYPE_MAP(X)
#undef X
    };
    static const char *const counted[] = {"launch", "transfer", "memset",    "allocation",
                                          "free",   "range",    "range_end", "graph"};
    subject = subject ? subject : "";
    item = item ? item : "";
    note = note ? note : "";
    if (!strcmp(subject, "collector"))
        return guess_collector(item, note);
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        if (!strcmp(subject, counted[i]))
            return PROF_HEALTH_count;
    }
    for (int i = 0; i < PROF_HEALTH_CODES; i++) {
        const struct prof_health *h = &prof_health[i];
        if (h->subject && !strcmp(subject, h->subject) && (!h->item || !strcmp(item, h->item)))
            return i == PROF_HEALTH_record_dropped && !strcmp(note, types[WIRE_WINDOW])
                       ? PROF_HEALTH_record_marks_dropped
                       : (enum prof_health_code)i;
    }
    return !strcmp(subject, "risk") ? PROF_HEALTH_risk_device_records : PROF_HEALTH_other;
}
