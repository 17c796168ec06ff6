/* What perfkit itself costs while it records, for the view Health of `perfkit top`. */
#ifndef PERFKIT_CLI_TOP_MEASURE_H
#define PERFKIT_CLI_TOP_MEASURE_H

#include "tui/app.h"

struct top_usage {
    int64_t pid;
    double cpu_s;
    uint64_t at_ns;
};

struct top_measure {
    const struct tui_model *model;
    struct top_usage recorder, own;
    uint64_t busy_ticks, all_ticks; /* of the machine, at the last look */
};

/* For tui_app.measure; context: struct top_measure. */
void top_measure(void *context, struct tui_health *health);

#endif
