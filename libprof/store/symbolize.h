/* Names for the stacks of a capture, after the run: from the object files that the program had,
 * their debug files, and what JITs left behind. */
#ifndef PERFKIT_STORE_SYMBOLIZE_H
#define PERFKIT_STORE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/array.h"
#include "libprof/base/error.h"
#include "libprof/store/store.h"
#include "libprof/symbols/protocol.h"

struct prof_symbolize_options {
    const char *helper;         /* path of perfkit_symbolizer */
    const char *const *folders; /* of debug files, searched before the usual places; ends with NULL;
                                   NULL = none */
    const char *map_folder;     /* where JITs leave perf-PID.map; NULL = /tmp */
    /* Called before each file and while it is read: `done` of `all` frames are named. False stops.
     * NULL = none. */
    bool (*progress)(void *user, uint64_t done, uint64_t all, const char *path);
    void *user;
};

/* A file that gave no names. */
struct prof_symbolize_gap {
    uint64_t frames;
    char path[160]; /* its end where it is longer */
    char why[160];
};
#define PROF_SYMBOLIZE_GAPS 8

struct prof_symbolize_result {
    uint64_t frames;        /* native ones in the capture */
    uint64_t named;         /* of them, by this call or before */
    uint64_t lines;         /* of them, with a source line */
    uint64_t files;         /* object files that frames are of */
    uint64_t files_without; /* of them, those that gave no name; module.symbols says why */
    uint64_t files_broken;  /* of those, files that could not be parsed */
    struct prof_symbolize_gap gaps[PROF_SYMBOLIZE_GAPS]; /* those without, most frames first */
    size_t gap_count;
    bool stopped; /* by `progress`: the files after that were not read */
};

/* Has the capture frames that could be named? */
bool prof_symbolize_has(struct prof_store *store);

/* Fill table symbol and module.symbols. Names that were there are replaced where this finds any,
 * kept where it does not: files may be gone by now. One transaction: all, or after an error
 * nothing; after a stop what was found until then. Frames of Python have their names already.
 * PROF_NOTFOUND when the helper cannot be run. */
enum prof_status prof_symbolize(struct prof_store *store,
                                const struct prof_symbolize_options *options,
                                struct prof_symbolize_result *result, struct prof_error *err);

/* ---- lines of kernels (stall_lines.c) -------------------------------------------------------- */

/* Fill stall.file, .line and .sass and stall_function.lines from the machine code that the
 * collector kept in `folder`. Instructions are disassembled by NVIDIA's nvdisasm where that is on
 * the PATH or in /usr/local/cuda. One transaction: all, or after an error nothing. No more code is
 * read once `stop` (NULL = never) says so. */
enum prof_status prof_stall_lines(struct prof_store *store, const char *folder, bool (*stop)(void),
                                  struct prof_error *err);

/* ---- the process that reads object files ----------------------------------------------------- */

/* Requests the names of one file's addresses from perfkit_symbolizer (libprof/symbols/protocol.h).
 */

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
