/* Text of the program under test, made fit for a terminal: escape sequences cannot reach it,
 * columns stay aligned with wide and combining characters, long names are cut where it hurts least.
 */
#ifndef PERFKIT_BASE_UTF8_H
#define PERFKIT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed UTF-8 sequence at `text` (RFC 3629), its code point in *code; 0 when
 * there is none. */
size_t prof_report_utf8(const char *text, size_t left, uint32_t *code);

/* True when every byte belongs to such a sequence. */
bool prof_is_utf8(const char *text, size_t length);

/* A copy in which each byte that belongs to none is \xNN: two texts that differ still do.
 * malloc'ed, NUL-terminated; NULL = out of memory. */
char *prof_escape_utf8(const char *text, size_t length);

/* For "%.*s": how many bytes of `text`, at most `most`, end with a whole character. */
int prof_report_head(const char *text, size_t most);

/* Columns a terminal gives to `text` (UTF-8, already clean). East Asian wide and emoji count 2,
 * combining marks 0; independent of the locale. */
size_t prof_report_cells(const char *text);

/* A copy without anything that moves the cursor or turns the text around: control characters,
 * bidirectional controls, line separators and bytes that are not UTF-8 become \n, \t, \xNN or
 * \u{NNNN}. NULL gives "n/a", "" gives "(empty)". malloc'ed; NULL = out of memory, which is
 * noted too (prof_note). */
char *prof_report_clean(const char *text);

/* The same of a text that is there, into `room` bytes without memory of its own: what does not fit
 * is left out. Returns the length. */
size_t prof_report_clean_into(const char *text, char *clean, size_t room);

/* A clean copy of at most `cells` columns (at least 8), cut in the middle: "a long f... (file.c:7)"
 * keeps its file. malloc'ed. */
char *prof_report_cut(const char *text, size_t cells);

/* As prof_report_cut, for kernel names, which lose first, as far as needed, their return type,
 * their argument list and what prof_name_reduced leaves out of templates:
 * "void gemm<float, 128>(int)", "gemm<float, 128>", "gemm<f...128>". */
char *prof_report_fit(const char *text, size_t cells);

/* As prof_report_fit for a name that it would shorten to the same as `other`: of at most `cells`
 * columns (at least 12), its start and the place from which on they differ. */
char *prof_report_fit_apart(const char *text, const char *other, size_t cells);

/* ---- regular expressions of options and of a capture file ------------------------------------ */

/* Why the C library's matcher cannot be given this POSIX extended regular expression ("it ..."), or
 * NULL: it recurses over the pattern (20,000 brackets overflow its stack), writes counted
 * repetitions out (a{255}){255}){255} takes 4 GB) and tries back-references in exponential time.
 * Other mistakes are reported by regcomp. A constant text. */
const char *prof_pattern_excess(const char *pattern);

#endif
