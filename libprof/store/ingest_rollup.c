/* Sums per second, stream and configuration, kept in memory while their second is young and written
 * with each commit. After a crash a key may have a second row: readers add rows up. */
#include <string.h>

#include "libprof/store/ingest_private.h"

#define SECOND_NS 1000000000
#define KEEP_SECONDS 5
#define FLUSH_AT 65536u

struct rollup_key {
    int64_t second, stream, config;
};

bool ingest_rollup_add(struct prof_ingest *ingest, int64_t stream, int64_t config, int64_t start,
                       uint64_t duration)
{
    struct rollup_key key = {start / SECOND_NS, stream, config};
    uint32_t *known = prof_names_get(&ingest->rollup_keys, (const char *)&key, sizeof key);
    struct ingest_rollup *sum;
    if (known)
        sum = &ingest->rollups.data[*known];
    else {
        sum = prof_array_add(&ingest->rollups);
        if (!sum || !prof_names_put(&ingest->rollup_keys, (const char *)&key, sizeof key,
                                    (uint32_t)ingest->rollups.count - 1))
            return false;
        *sum = (struct ingest_rollup){.id = ++ingest->last_rollup,
                                      .second = key.second,
                                      .stream = stream,
                                      .config = config,
                                      .min = UINT64_MAX};
        if (key.second > ingest->rollup_newest)
            ingest->rollup_newest = key.second;
    }
    unsigned bucket = duration ? 63u - (unsigned)__builtin_clzll(duration) : 0;
    sum->histogram[bucket < 48 ? bucket : 47]++;
    sum->count++;
    sum->sum += duration;
    if (duration < sum->min)
        sum->min = duration;
    if (duration > sum->max)
        sum->max = duration;
    sum->dirty = true;
    return true;
}

static bool write_rollup(struct prof_ingest *ingest, const struct ingest_rollup *sum)
{
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_ROLLUP];
    int buckets = 48;
    while (buckets > 0 && sum->histogram[buckets - 1] == 0)
        buckets--;
    ingest_bind(sql, 1, sum->id);
    ingest_bind(sql, 2, sum->second);
    ingest_bind_known(sql, 3, sum->stream);
    ingest_bind_known(sql, 4, sum->config);
    ingest_bind(sql, 5, (int64_t)sum->count);
    ingest_bind(sql, 6, (int64_t)sum->sum);
    ingest_bind(sql, 7, (int64_t)sum->min);
    ingest_bind(sql, 8, (int64_t)sum->max);
    sqlite3_bind_blob(sql, 9, sum->histogram, buckets * 4, SQLITE_STATIC);
    return ingest_run(ingest, INGEST_SQL_ROLLUP);
}

bool ingest_rollup_flush(struct prof_ingest *ingest)
{
    bool stale = false;
    for (size_t i = 0; i < ingest->rollups.count; i++) {
        struct ingest_rollup *sum = &ingest->rollups.data[i];
        if (sum->dirty && !write_rollup(ingest, sum))
            return false;
        sum->dirty = false;
        stale |= sum->second < ingest->rollup_newest - KEEP_SECONDS;
    }
    if (!stale && ingest->rollups.count < FLUSH_AT)
        return true;
    /* Forget old seconds; a late record merely opens another row. */
    size_t kept = 0;
    prof_names_free(&ingest->rollup_keys);
    bool all = ingest->rollups.count >= FLUSH_AT;
    for (size_t i = 0; i < ingest->rollups.count; i++) {
        struct ingest_rollup *sum = &ingest->rollups.data[i];
        if (all || sum->second < ingest->rollup_newest - KEEP_SECONDS)
            continue;
        struct rollup_key key = {sum->second, sum->stream, sum->config};
        if (!prof_names_put(&ingest->rollup_keys, (const char *)&key, sizeof key, (uint32_t)kept))
            return false;
        ingest->rollups.data[kept++] = *sum;
    }
    ingest->rollups.count = kept;
    return true;
}
