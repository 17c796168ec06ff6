/* What is mapped where in a process.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_IMAGE_H
#define PERFKIT_STORE_INGEST_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/store/ingest_stack.h"

struct ingest_spool;
struct prof_ingest;

/* A module of a process. */
struct ingest_object {
    uint64_t start, end;
    int64_t row, segment; /* as in ingest_mapping */
    char build_id[48];    /* "" = unknown; longer ones are compared as far as this goes */
};

struct ingest_image {
    PROF_ARRAY(struct ingest_object) objects; /* all that it ever had */
    PROF_ARRAY(uint32_t) live;                /* numbers of those it has, by address, apart */
    struct prof_names known;                  /* address, segment, path -> newest number */
};

/* ingest_module.c */
enum prof_status ingest_modules(struct prof_ingest *ingest, struct ingest_spool *spool);

/* ingest_image.c */
/* What the process has at an address now; NULL = nothing known. Valid until the next mapping. */
const struct ingest_object *ingest_object_at(struct prof_ingest *ingest, int64_t process,
                                             uint64_t address);
/* Was the object seen before at this place? (Without a build id: in whatever version.) */
bool ingest_is_mapped(struct prof_ingest *ingest, int64_t process,
                      const struct ingest_mapping *mapping);
enum prof_status ingest_images_load(struct prof_ingest *ingest);
void ingest_images_free(struct prof_ingest *ingest);

#endif
