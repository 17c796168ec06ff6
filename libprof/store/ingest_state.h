/* What must survive a killed perfkit; the row of the capture; the trust block.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_STATE_H
#define PERFKIT_STORE_INGEST_STATE_H

#include "libprof/store/health.h"
#include "libprof/store/ingest.h"
#include "libprof/store/ingest_foreign.h"
#include "libprof/store/ingest_spool.h"

struct prof_ingest;

/* ingest_state.c */
enum prof_status ingest_state_create(struct prof_ingest *ingest);
/* PROF_INVALID when the capture is finished, PROF_VERSION when a newer perfkit began it. */
enum prof_status ingest_state_check(struct prof_ingest *ingest);
enum prof_status ingest_state_load(struct prof_ingest *ingest);
enum prof_status ingest_state_save(struct prof_ingest *ingest);
enum prof_status ingest_state_process(struct prof_ingest *ingest, uint32_t entry, int64_t row);
enum prof_status ingest_state_drop(struct prof_ingest *ingest);

/* ingest_health.c */
enum prof_status ingest_health_spool(struct prof_ingest *ingest, struct ingest_spool *spool);
enum prof_status ingest_health_finish(struct prof_ingest *ingest);
/* A row of capture_health; `item` NULL = that of the code. */
enum prof_status ingest_health_line(struct prof_ingest *ingest, int64_t process,
                                    enum prof_health_code code, const char *item,
                                    const int64_t *value, const char *note);

/* ingest_capture.c */
enum prof_status ingest_capture_begin(struct prof_ingest *ingest,
                                      const struct prof_ingest_about *about);
enum prof_status ingest_capture_end(struct prof_ingest *ingest, const char *state);
/* The same for a capture that is imported: what the machine was, `about` tells; an end that is not
 * known is < 0. */
enum prof_status ingest_capture_foreign(struct prof_ingest *ingest,
                                        const struct foreign_about *about);
enum prof_status ingest_capture_close(struct prof_ingest *ingest, const char *state,
                                      int64_t duration_ns);
/* Read the filter back from the capture's row, or compile it anew. */
enum prof_status ingest_filter_load(struct prof_ingest *ingest);
void ingest_filter_free(struct prof_ingest *ingest);
/* Is a kernel of this readable name to be left out? */
bool ingest_filters(const struct prof_ingest *ingest, const char *name);

#endif
