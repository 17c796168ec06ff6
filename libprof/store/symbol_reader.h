/* Requests the names of one file's addresses from perfkit_symbolizer (libprof/symbols/protocol.h).
 */
#ifndef PERFKIT_STORE_SYMBOL_READER_H
#define PERFKIT_STORE_SYMBOL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/array.h"
#include "libprof/base/error.h"
#include "libprof/symbols/protocol.h"

struct symbol_question {
    const char *helper; /* path of perfkit_symbolizer */
    enum symbols_source source;
    uint32_t flags;
    const char *path, *build_id; /* "" = unknown */
    const char *folders;         /* of debug files, each ended by NUL, the list by an empty one */
    int64_t segment, not_after_s, not_before_s; /* as in struct symbols_request */
    const uint64_t *addresses;                  /* ascending, each once */
    uint32_t count;
    unsigned timeout_ms;
    bool (*stop)(void *user); /* called ten times a second: true ends it. NULL = never */
    void *user;
};

struct symbol_span {
    uint32_t first, count; /* of levels; count 0 = no name */
};

struct symbol_text {
    size_t offset; /* in `bytes` */
    uint32_t length;
};

struct symbol_answer {
    enum symbols_quality quality;
    char note[1024];           /* the debug file that was used, or why there are no names */
    bool broken;               /* the symboliser crashed, or ran into a limit */
    bool stopped;              /* by the question's `stop`: what has come is not whole */
    struct symbol_span *spans; /* one an address */
    PROF_ARRAY(struct symbols_level) levels; /* of text numbers from 1; checked */
    PROF_ARRAY(struct symbol_text) texts;
    PROF_ARRAY(char) bytes;
};

/* PROF_OK also when the file has no names or the symboliser came to grief: the answer says so, and
 * holds what was said before. An error when it cannot be run at all, or memory ran out. Free the
 * answer either way. */
enum prof_status symbol_ask(const struct symbol_question *question, struct symbol_answer *answer,
                            struct prof_error *err);
void symbol_answer_free(struct symbol_answer *answer);

#endif
