/* Base64 (RFC 4648) through an ordinary FILE: bytes inside a text, as the HTML page carries them. */
#ifndef PERFKIT_REPORT_BASE64_H
#define PERFKIT_REPORT_BASE64_H

#include <stdio.h>

/* A stream whose bytes go to `out` (borrowed) as one line of base64, padded. fclose ends it: its
 * result tells, with errno, whether all was written; `out` is not flushed. NULL: out of memory. */
FILE *prof_report_base64(FILE *out);

#endif
