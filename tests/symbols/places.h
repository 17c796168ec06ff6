/* A place in a header that is compiled into its user. The program prints where it is and, innermost
 * first, FUNCTION@TAG of what should be found there: TAG stands behind the line that is meant. */
#ifndef PLACES_H
#define PLACES_H

void mark(const char *expected);

static inline __attribute__((always_inline)) void innermost(const char *expected)
{
    mark(expected); /* @header */
    __asm__ volatile("" ::: "memory");
}

#endif
