/* Growable typed arrays.
 *
 *     PROF_ARRAY(struct point) points = {0};
 *     struct point *p = prof_array_add(&points);   // NULL: out of memory; else uninitialised room
 *     prof_array_free(&points);
 *
 * Pointers into the array die when it grows. Not thread-safe. */
#ifndef PERFKIT_BASE_ARRAY_H
#define PERFKIT_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PROF_ARRAY(type)                                                                           \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t count, capacity;                                                                    \
    }

/* Room for `need` elements of `element` bytes behind *slot (a pointer to any object type, copied by
 * bytes so that no aliasing rule is bent). False: out of memory, nothing changed. */
static inline bool prof_array_room(void *slot, size_t *capacity, size_t need, size_t element)
{
    if (need <= *capacity)
        return true;
    size_t wanted = *capacity < 8 ? 8 : *capacity + *capacity / 2;
    if (wanted < need)
        wanted = need;
    if (wanted > SIZE_MAX / 2 / element)
        return false;
    void *old, *grown;
    memcpy(&old, slot, sizeof old);
    grown = realloc(old, wanted * element);
    if (!grown)
        return false;
    memcpy(slot, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

/* True when `more` further elements fit without growing again. */
#define prof_array_reserve(array, more)                                                            \
    prof_array_room(&(array)->data, &(array)->capacity, (array)->count + (size_t)(more),           \
                    sizeof *(array)->data)

/* Address of one new element at the end, uninitialised; NULL when out of memory. */
#define prof_array_add(array)                                                                      \
    (prof_array_reserve(array, 1) ? &(array)->data[(array)->count++] : NULL)

#define prof_array_free(array)                                                                     \
    (free((array)->data), (array)->data = NULL, (array)->count = (array)->capacity = 0)

#endif
