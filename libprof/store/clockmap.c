/* Piecewise linear clock conversion; see clockmap.h. Exact in 128-bit integers: device times are
 * around 2^60 ns, where a double steps by 128 ns, and rounding must not turn order around. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/store/clockmap.h"

__extension__ typedef __int128 wide;

/* Index of the last anchor at or before source_ns, -1 when there is none. */
static ptrdiff_t last_before(const struct prof_clockmap *map, uint64_t source_ns)
{
    size_t low;
    PROF_FIND_FIRST(low, at, map->count, map->anchors[at].source_ns > source_ns);
    return (ptrdiff_t)low - 1;
}

static void remove_anchor(struct prof_clockmap *map, size_t at)
{
    memmove(&map->anchors[at], &map->anchors[at + 1], (map->count - at - 1) * sizeof *map->anchors);
    map->count--;
    map->rejected++;
}

static void thin_anchors(struct prof_clockmap *map)
{
    size_t half = map->count / 2, kept = 0;
    for (size_t i = 0; i < map->count; i++) {
        if (i < half && (i & 1))
            continue;
        map->anchors[kept++] = map->anchors[i];
    }
    map->count = kept;
}

bool prof_clockmap_add(struct prof_clockmap *map, uint64_t source_ns, uint64_t mono_ns,
                       uint64_t error_ns)
{
    if (!prof_array_room(&map->anchors, &map->capacity, map->count + 1, sizeof *map->anchors))
        return false;
    ptrdiff_t before = last_before(map, source_ns);
    map->hint = 0;

    /* Contradictions: earlier anchors not earlier in mono time, later ones not later. */
    while (before >= 0 && (map->anchors[before].source_ns == source_ns ||
                           map->anchors[before].mono_ns >= mono_ns)) {
        if (map->anchors[before].error_ns <= error_ns) {
            map->rejected++;
            return true;
        }
        remove_anchor(map, (size_t)before--);
    }
    size_t at = (size_t)(before + 1);
    while (at < map->count && map->anchors[at].mono_ns <= mono_ns) {
        if (map->anchors[at].error_ns <= error_ns) {
            map->rejected++;
            return true;
        }
        remove_anchor(map, at);
    }

    memmove(&map->anchors[at + 1], &map->anchors[at], (map->count - at) * sizeof *map->anchors);
    map->anchors[at] = (struct prof_clock_anchor){source_ns, mono_ns, error_ns};
    map->count++;
    if (map->count >= PROF_CLOCKMAP_ANCHORS)
        thin_anchors(map);
    return true;
}

static wide floor_divide(wide a, wide b)
{
    wide q = a / b;
    return a % b < 0 ? q - 1 : q;
}

/* Source distance scaled by the slope of the segment from a to b. `limit`: hold the slope within
 * 1 +- 1e-3, as for extrapolation. */
static wide scale(const struct prof_clock_anchor *a, const struct prof_clock_anchor *b,
                  wide distance, bool limit)
{
    wide source = (wide)b->source_ns - a->source_ns, mono = (wide)b->mono_ns - a->mono_ns;
    if (limit) {
        wide drift = (mono - source) * 1000;
        if (drift > source)
            mono = 1001, source = 1000;
        else if (drift < -source)
            mono = 999, source = 1000;
    }
    return floor_divide(distance * mono, source);
}

uint64_t prof_clockmap_convert(struct prof_clockmap *map, uint64_t source_ns)
{
    if (!map->count)
        return source_ns;
    const struct prof_clock_anchor *a = map->anchors;
    size_t last = map->count - 1;
    wide t;
    if (!last) {
        t = (wide)a[0].mono_ns + ((wide)source_ns - a[0].source_ns);
    } else if (source_ns < a[0].source_ns) {
        t = a[0].mono_ns + scale(&a[0], &a[1], (wide)source_ns - a[0].source_ns, true);
    } else if (source_ns >= a[last].source_ns) {
        t = a[last].mono_ns +
            scale(&a[last - 1], &a[last], (wide)source_ns - a[last].source_ns, true);
    } else {
        size_t i = map->hint;
        if (i >= last || a[i].source_ns > source_ns || a[i + 1].source_ns <= source_ns)
            i = map->hint = (size_t)last_before(map, source_ns);
        t = a[i].mono_ns + scale(&a[i], &a[i + 1], (wide)source_ns - a[i].source_ns, false);
    }
    return t < 0 ? 0 : t > (wide)UINT64_MAX ? UINT64_MAX : (uint64_t)t;
}

void prof_clockmap_free(struct prof_clockmap *map)
{
    free(map->anchors);
    *map = (struct prof_clockmap){0};
}
