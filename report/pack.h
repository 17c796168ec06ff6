/* Numbers as bytes for the page: columns of variable-length integers, which the page unpacks
 * (html/timeline_data.js reads exactly this).
 *
 * The whole, before compression: the length of the head as decimal digits, '\n', the head (JSON),
 * then the columns one after the other; the head says how many bytes each has. A number is LEB128:
 * seven bits a byte, lowest first, the highest bit set on all but the last. Signed ones are folded
 * first (0, -1, 1, -2 become 0, 1, 2, 3). */
#ifndef PERFKIT_REPORT_PACK_H
#define PERFKIT_REPORT_PACK_H

#include <stdio.h>

#include "libprof/base/array.h"
#include "libprof/base/error.h"

/* Starts as {0}; an error of memory is kept and returned by prof_html_pack_write. */
struct prof_html_pack {
    PROF_ARRAY(unsigned char) head, columns;
    bool failed;
};

void prof_html_pack_uint(struct prof_html_pack *pack, uint64_t value);
void prof_html_pack_int(struct prof_html_pack *pack, int64_t value);
void prof_html_pack_head(struct prof_html_pack *pack, const char *json, size_t length);

/* Compressed (gzip) and as base64, one line. */
enum prof_status prof_html_pack_write(const struct prof_html_pack *pack, FILE *out,
                                      struct prof_error *err);
void prof_html_pack_free(struct prof_html_pack *pack);

/* A stream whose bytes go to `out` (borrowed) as one line of base64, padded. fclose ends it: its
 * result is, with errno, whether all was written; `out` is not flushed. NULL: out of memory. */
FILE *prof_report_base64(FILE *out);

/* A stream whose bytes go to `out` (borrowed) in gzip's format. fclose ends it and writes what is
 * left: its result is, with errno, whether all was written; `out` is not flushed. The same input
 * gives the same output: no name and no time are stored. NULL: out of memory. */
FILE *prof_report_gzip(FILE *out);

/* The same in half the time and a fifth more bytes: for what is large. */
FILE *prof_report_gzip_fast(FILE *out);

#endif
