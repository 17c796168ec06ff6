/* What a Perfetto trace tells once and knows by number afterwards: InternedData
 * (github.com/google/perfetto, protos/perfetto/trace/interned_data). Numbers are given at the first
 * use; the new entries wait in `fresh` and must be sent, on the same sequence, before or with the
 * packet that uses them. */
#ifndef PERFKIT_REPORT_PERFETTO_INTERNED_H
#define PERFKIT_REPORT_PERFETTO_INTERNED_H

#include "libprof/base/map.h"
#include "report/protobuf.h"
#include "report/stacks.h"

/* Field numbers of InternedData; each kind of entry has numbers of its own. */
enum prof_perfetto_kind {
    PROF_PERFETTO_CATEGORY = 1,
    PROF_PERFETTO_NAME = 2,
    PROF_PERFETTO_ANNOTATION = 3,
    PROF_PERFETTO_FUNCTION = 5,
    PROF_PERFETTO_FRAME = 6,
    PROF_PERFETTO_CALLSTACK = 7,
    PROF_PERFETTO_SOURCE_PATH = 18,
    PROF_PERFETTO_VALUE = 29, /* texts that annotations have as values */
    PROF_PERFETTO_KINDS
};

struct prof_perfetto_interned {
    struct prof_map numbers[PROF_PERFETTO_KINDS]; /* by what stands for an entry */
    struct prof_protobuf fresh;                   /* entries that were not sent */
    struct prof_protobuf entry;
    bool no_memory;
};

/* The number of a text of this kind. Its address stands for it: it stays where it is to the end. */
int64_t prof_perfetto_text(struct prof_perfetto_interned *interned, enum prof_perfetto_kind kind,
                           const char *text);

/* The number of the callstack that ends in `node` (not 0) of the tree, with all its frames. */
int64_t prof_perfetto_stack(struct prof_perfetto_interned *interned,
                            const struct prof_report_stacks *stacks, uint32_t node);

void prof_perfetto_interned_free(struct prof_perfetto_interned *interned);

#endif
