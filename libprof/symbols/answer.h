/* The symboliser's side of the answer: texts once each, then the levels of every address that has a
 * name. See protocol.h. */
#ifndef PERFKIT_SYMBOLS_ANSWER_H
#define PERFKIT_SYMBOLS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/map.h"
#include "libprof/symbols/protocol.h"

struct answer {
    int fd;
    unsigned char *buffer; /* what is not yet written */
    size_t count, capacity;
    struct prof_names texts;
    struct symbols_level levels[SYMBOLS_MOST_LEVELS];
    uint32_t level_count;
    bool failed; /* nobody listens, or there is no memory */
};

/* A level of the address that answer_frame sends next, innermost first. `function` as the linker
 * knows it: made readable here. */
void answer_level(struct answer *answer, const char *function, const char *file, uint32_t line);
void answer_frame(struct answer *answer, uint32_t index);

void answer_state(struct answer *answer, enum symbols_quality quality, const char *text);
/* Send SYMBOLS_END and what is left. */
bool answer_end(struct answer *answer);

#endif
