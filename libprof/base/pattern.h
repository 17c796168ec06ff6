/* Regular expressions that come from outside: the option --kernel, and the filter that a capture
 * file carries, which may be anybody's. */
#ifndef PERFKIT_BASE_PATTERN_H
#define PERFKIT_BASE_PATTERN_H

/* Why the C library's matcher cannot be given this POSIX extended regular expression ("it ..."), or
 * NULL: it recurses over the pattern (20,000 brackets overflow its stack), writes counted
 * repetitions out (a{255}){255}){255} takes 4 GB) and tries back-references in exponential time.
 * What is wrong beyond that regcomp says. A constant text. */
const char *prof_pattern_excess(const char *pattern);

#endif
