/* Growable typed arrays.
 *
 *     PROF_ARRAY(struct point) points = {0};
 *     struct point *p = prof_array_add(&points);   // NULL: out of memory; else zeros
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

/* Address of one new element at the end, all zeros: what frees the array may meet it before it is
 * filled. NULL when out of memory. */
#define prof_array_add(array)                                                                      \
    (prof_array_reserve(array, 1)                                                                  \
         ? (memset(&(array)->data[(array)->count], 0, sizeof *(array)->data),                      \
            &(array)->data[(array)->count++])                                                      \
         : NULL)

/* Append a value. False: out of memory. */
#define prof_array_push(array, ...)                                                                \
    (prof_array_reserve(array, 1) && ((array)->data[(array)->count++] = (__VA_ARGS__), true))

static inline bool prof_array_extend(void *slot, size_t *count, size_t *capacity, const void *from,
                                     size_t more, size_t element)
{
    char *data;
    if (!prof_array_room(slot, capacity, *count + more, element))
        return false;
    memcpy(&data, slot, sizeof data);
    if (more)
        memcpy(data + *count * element, from, more * element);
    *count += more;
    return true;
}

/* Append `more` elements that lie at `from`, of the same type (NULL for none). False: out of
 * memory. */
#define prof_array_append(array, from, more)                                                       \
    prof_array_extend(&(array)->data, &(array)->count, &(array)->capacity, from, more,             \
                      sizeof *(array)->data)

/* qsort, but for what is in order already, as most of a capture is: qsort would copy all of it. */
static inline void prof_sort(void *data, size_t count, size_t element,
                             int (*compare)(const void *, const void *))
{
    const char *row = data;
    for (size_t i = 1; i < count; i++, row += element)
        if (compare(row, row + element) > 0) {
            qsort(data, count, element, compare);
            return;
        }
}

/* In the order of `compare`, as qsort takes it. */
#define prof_array_sort(array, compare)                                                            \
    prof_sort((array)->data, (array)->count, sizeof *(array)->data, compare)

#define prof_array_free(array)                                                                     \
    (free((array)->data), (array)->data = NULL, (array)->count = (array)->capacity = 0)

/* Sets `low` to the first of the indices 0 .. count - 1, which the condition calls `at`, at which
 * it holds; to count where it holds nowhere. It holds at all behind the first. */
#define PROF_FIND_FIRST(low, at, count, holds)                                                     \
    for (size_t at, high_ = ((low) = 0, (count));                                                  \
         (low) < high_ && ((at) = (low) + (high_ - (low)) / 2, true);                              \
         (holds) ? (void)(high_ = (at)) : (void)((low) = (at) + 1)) {                              \
    }

/* For qsort, a before b: below 0, equal: 0. */
#define PROF_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static inline int prof_compare_texts(const char *a, const char *b) /* NULL as "" */
{
    return strcmp(a ? a : "", b ? b : "");
}

/* An order of rows for qsort and bsearch, by keys of two of them, x and y: where the first key is
 * the same, the second one decides.
 *
 *     PROF_ORDER(longest_first, struct row, PROF_DESCENDING(ns), PROF_ASCENDING(id)) */
#define PROF_ORDER(name, type, ...)                                                                \
    static int name(const void *a, const void *b)                                                  \
    {                                                                                              \
        const type *x = a, *y = b;                                                                 \
        return PROF_KEYS(__VA_ARGS__);                                                             \
    }
/* The same of pointers to rows. */
#define PROF_POINTER_ORDER(name, type, ...)                                                        \
    static int name(const void *a, const void *b)                                                  \
    {                                                                                              \
        const type *x = *(const type *const *)a, *y = *(const type *const *)b;                     \
        return PROF_KEYS(__VA_ARGS__);                                                             \
    }
#define PROF_ASCENDING(member) PROF_COMPARE(x->member, y->member)
#define PROF_DESCENDING(member) PROF_COMPARE(y->member, x->member)

#define PROF_KEYS(...)                                                                             \
    PROF_KEYS_OF(__VA_ARGS__, PROF_6_KEYS, PROF_5_KEYS, PROF_4_KEYS, PROF_3_KEYS, PROF_2_KEYS,     \
                 PROF_1_KEY, 0)                                                                    \
    (__VA_ARGS__)
#define PROF_KEYS_OF(a, b, c, d, e, f, macro, ...) macro
#define PROF_1_KEY(key) (key)
#define PROF_2_KEYS(key, last) ((key) ?: (last))
#define PROF_3_KEYS(key, ...) ((key) ?: PROF_2_KEYS(__VA_ARGS__))
#define PROF_4_KEYS(key, ...) ((key) ?: PROF_3_KEYS(__VA_ARGS__))
#define PROF_5_KEYS(key, ...) ((key) ?: PROF_4_KEYS(__VA_ARGS__))
#define PROF_6_KEYS(key, ...) ((key) ?: PROF_5_KEYS(__VA_ARGS__))

/* For qsort: int64_t and double in ascending order. */
static inline int prof_ascending_int64(const void *a, const void *b)
{
    return PROF_COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

static inline int prof_ascending_double(const void *a, const void *b)
{
    return PROF_COMPARE(*(const double *)a, *(const double *)b);
}

/* A heap: an array whose first element comes before all others, by before(a, b) of two addresses.
 * PUSH makes `value` one more of them, there is room for it; SINK puts it in the place of the
 * first, where `count` may have been lowered by one to take that out. */
#define PROF_HEAP_PUSH(heap, count, value, before)                                                 \
    do {                                                                                           \
        size_t at_ = (count)++;                                                                    \
        for (; at_ && before(&(value), &(heap)[(at_ - 1) / 2]); at_ = (at_ - 1) / 2)               \
            (heap)[at_] = (heap)[(at_ - 1) / 2];                                                   \
        (heap)[at_] = (value);                                                                     \
    } while (0)
#define PROF_HEAP_SINK(heap, count, value, before)                                                 \
    do {                                                                                           \
        size_t at_ = 0;                                                                            \
        for (size_t next_; (next_ = 2 * at_ + 1) < (count); at_ = next_) {                         \
            next_ += next_ + 1 < (count) && before(&(heap)[next_ + 1], &(heap)[next_]);            \
            if (!before(&(heap)[next_], &(value)))                                                 \
                break;                                                                             \
            (heap)[at_] = (heap)[next_];                                                           \
        }                                                                                          \
        (heap)[at_] = (value);                                                                     \
    } while (0)

/* Index of an id in a list sorted by id (first member int64_t id), or SIZE_MAX. Ids are normally
 * 1, 2, 3 ...: tried first. */
static inline size_t prof_find_id(const void *list, size_t count, size_t element, int64_t id)
{
    const char *base = list;
    int64_t found;
    if (id > 0 && (uint64_t)id <= count) {
        memcpy(&found, base + ((size_t)id - 1) * element, sizeof found);
        if (found == id)
            return (size_t)id - 1;
    }
    size_t low;
    PROF_FIND_FIRST(low, at, count,
                    (memcpy(&found, base + at * element, sizeof found), found >= id));
    if (low < count)
        memcpy(&found, base + low * element, sizeof found);
    return low < count && found == id ? low : SIZE_MAX;
}

#define prof_index_of(array, id)                                                                   \
    prof_find_id((array)->data, (array)->count, sizeof *(array)->data, id)

#endif
