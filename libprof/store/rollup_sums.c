/* Sums per second, stream and configuration, kept in memory while their second is young. A second
 * that was forgotten may come again (after a crash, or with a late record) and then has a second
 * row: readers add rows up. */
#include "libprof/store/rollup_sums.h"
#include "libprof/store/schema.h"

#define SECOND_NS 1000000000

struct key {
    int64_t second, stream, config;
};

static struct rollup_sum *find_rollup_sum(struct rollup_sums *sums, const struct key *key)
{
    uint32_t *known = prof_names_get(&sums->keys, (const char *)key, sizeof *key);
    if (known)
        return &sums->list.data[*known];
    struct rollup_sum *sum = prof_array_add(&sums->list);
    if (!sum || !prof_names_put(&sums->keys, (const char *)key, sizeof *key,
                                (uint32_t)sums->list.count - 1))
        return NULL;
    *sum = (struct rollup_sum){.id = ++sums->last,
                               .second = key->second,
                               .stream = key->stream,
                               .config = key->config,
                               .min = UINT64_MAX};
    if (key->second > sums->newest)
        sums->newest = key->second;
    return sum;
}

bool rollup_sums_add(struct rollup_sums *sums, int64_t stream, int64_t config, int64_t start,
                     uint64_t duration)
{
    struct key key = {start / SECOND_NS, stream, config};
    struct rollup_sum *sum = find_rollup_sum(sums, &key);
    if (!sum)
        return false;
    unsigned bucket = duration ? 63u - (unsigned)__builtin_clzll(duration) : 0;
    sum->histogram[bucket < ROLLUP_BUCKETS ? bucket : ROLLUP_BUCKETS - 1]++;
    sum->count++;
    sum->sum += duration;
    if (duration < sum->min)
        sum->min = duration;
    if (duration > sum->max)
        sum->max = duration;
    sum->dirty = true;
    return true;
}

static void bind_id_or_null(sqlite3_stmt *insert, int at, int64_t id)
{
    if (id)
        sqlite3_bind_int64(insert, at, id);
    else
        sqlite3_bind_null(insert, at);
}

static int write_sum(const struct rollup_sum *sum, sqlite3_stmt *insert)
{
    int buckets = ROLLUP_BUCKETS;
    while (buckets > 0 && sum->histogram[buckets - 1] == 0)
        buckets--;
    sqlite3_bind_int64(insert, COLUMN_AT(rollup, id), sum->id);
    sqlite3_bind_int64(insert, COLUMN_AT(rollup, second), sum->second);
    bind_id_or_null(insert, COLUMN_AT(rollup, stream), sum->stream);
    bind_id_or_null(insert, COLUMN_AT(rollup, config), sum->config);
    sqlite3_bind_int64(insert, COLUMN_AT(rollup, count), (int64_t)sum->count);
    sqlite3_bind_int64(insert, COLUMN_AT(rollup, sum), (int64_t)sum->sum);
    sqlite3_bind_int64(insert, COLUMN_AT(rollup, min), (int64_t)sum->min);
    sqlite3_bind_int64(insert, COLUMN_AT(rollup, max), (int64_t)sum->max);
    sqlite3_bind_blob(insert, COLUMN_AT(rollup, histogram), sum->histogram, buckets * 4,
                      SQLITE_STATIC);
    int code = sqlite3_step(insert);
    sqlite3_reset(insert);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Seconds that are long past, or all when there are too many. */
static bool drop_old_sums(struct rollup_sums *sums)
{
    size_t kept = 0;
    bool all = sums->list.count >= ROLLUP_MOST;
    prof_names_free(&sums->keys);
    for (size_t i = 0; i < sums->list.count; i++) {
        struct rollup_sum *sum = &sums->list.data[i];
        if (all || sum->second < sums->newest - ROLLUP_KEEP_SECONDS)
            continue;
        struct key key = {sum->second, sum->stream, sum->config};
        if (!prof_names_put(&sums->keys, (const char *)&key, sizeof key, (uint32_t)kept))
            return false;
        sums->list.data[kept++] = *sum;
    }
    sums->list.count = kept;
    return true;
}

int rollup_sums_flush(struct rollup_sums *sums, sqlite3_stmt *insert)
{
    bool stale = false;
    int code = SQLITE_OK;
    for (size_t i = 0; i < sums->list.count; i++) {
        struct rollup_sum *sum = &sums->list.data[i];
        if (sum->dirty && (code = write_sum(sum, insert)) != SQLITE_OK)
            return code;
        sum->dirty = false;
        stale |= sum->second < sums->newest - ROLLUP_KEEP_SECONDS;
    }
    bool room = (!stale && sums->list.count < ROLLUP_MOST) || drop_old_sums(sums);
    return room ? SQLITE_OK : SQLITE_NOMEM;
}

void rollup_sums_free(struct rollup_sums *sums)
{
    prof_names_free(&sums->keys);
    prof_array_free(&sums->list);
    *sums = (struct rollup_sums){.last = sums->last};
}
