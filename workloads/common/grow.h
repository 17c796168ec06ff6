/* Arrays that grow by doubling. */
#ifndef WORKLOADS_COMMON_GROW_H
#define WORKLOADS_COMMON_GROW_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` elements of `size` bytes behind the `*count` that `*rows` holds: counts them in,
 * zeroed, and returns the first; NULL when memory ran out, and nothing changed. *rows is the
 * caller's to free; elements move when the array grows. */
static inline void *grow(void **rows, size_t *count, size_t *capacity, size_t more, size_t size)
{
    char *first;

    if (*count + more > *capacity) {
        size_t wanted = 2 * *capacity + more + 16;
        void *moved = realloc(*rows, wanted * size);

        if (!moved)
            return NULL;
        *rows = moved;
        *capacity = wanted;
    }
    first = (char *)*rows + *count * size;
    memset(first, 0, more * size);
    *count += more;
    return first;
}

#endif
