/* What makes a recording with --ring keep what it holds, and the keeping. Triggers are rows of
 * ring_trigger; some time after the first one the file is copied, and the copy is finished as
 * `perfkit recover` finishes a capture whose perfkit was killed, only that the program runs on: it
 * reads the spools and gives nothing back to them.
 *
 * An iteration is slow by those before it on its thread: several times their median, and many
 * standard deviations above it, where the deviation is that of the middle (MAD) or of the upper end
 * (95 %), whichever is larger: programs whose iterations scatter upwards have a higher threshold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/gpu/collective_name.h"
#include "libprof/gpu/names.h"
#include "libprof/store/ingest_private.h"

#define WARM_UP 32u          /* the first ones, which say nothing of the others */
#define LEAST_JUDGED 32u     /* after them; before there are so many nothing is slow */
#define JUDGED_AGAIN 16u     /* the threshold is computed anew after so many more */
#define MOST_DETECTORS 4096u /* 2 KiB each; where there are more, judging begins anew */
#define LATE_NS 100000000u   /* a record may be that late */
#define DEFAULT_TIMES 3.0
#define DEFAULT_SIGMAS 8.0
#define DEFAULT_MOST_TIMES 9.0     /* what takes so long is slow however much the others scatter */
#define DEFAULT_LEAST_NS 25000000u /* above the median; less is the work of a busy scheduler */
#define CALM_SHARE 8192u           /* the calm median comes so much nearer each JUDGED_AGAIN */

static const char *const reason_words[] = {
#define X(name, text) text,
    PROF_RING_REASON_MAP(X)
#undef X
};

static bool wants_reason(const struct prof_ingest *ingest, enum prof_ring_reason reason)
{
    return ingest->ring.ns && !ingest->ring.window && ingest->ring.reasons >> reason & 1;
}

/* ---- triggers -------------------------------------------------------------------------------- */

/* What is known of one; 0 = unknown. */
struct trigger {
    int64_t process, thread, name;
    uint64_t duration, usual, threshold;
};

static enum prof_status add_trigger(struct prof_ingest *ingest, enum prof_ring_reason reason,
                                    const struct trigger *trigger)
{
    struct ingest_ring *ring = &ingest->ring;
    sqlite3_stmt *sql = ingest->insert[SCHEMA_ring_trigger];
    uint64_t now = ingest->now_ns, due = now + ring->ns / 12;
    /* Windows of perfkit's own choice follow each other at least half a ring apart: what comes soon
     * after a window is in the next one. */
    if (reason < PROF_RING_SIGNAL && ring->kept_ns && due < ring->kept_ns + ring->ns / 2)
        due = ring->kept_ns + ring->ns / 2;
    if (!ring->due_ns || due < ring->due_ns)
        ring->due_ns = due;
    ingest_bind(sql, COLUMN_AT(ring_trigger, start), (int64_t)(now - ingest->zero_ns));
    ingest_bind_text(ingest, sql, COLUMN_AT(ring_trigger, reason), reason_words[reason]);
    ingest_bind_known(sql, COLUMN_AT(ring_trigger, process), trigger->process);
    ingest_bind_known(sql, COLUMN_AT(ring_trigger, thread), trigger->thread);
    ingest_bind_known(sql, COLUMN_AT(ring_trigger, name), trigger->name);
    ingest_bind_known(sql, COLUMN_AT(ring_trigger, duration), (int64_t)trigger->duration);
    ingest_bind_known(sql, COLUMN_AT(ring_trigger, usual), (int64_t)trigger->usual);
    ingest_bind_known(sql, COLUMN_AT(ring_trigger, threshold), (int64_t)trigger->threshold);
    return ingest_insert(ingest, SCHEMA_ring_trigger);
}

enum prof_status ingest_ring_trigger(struct prof_ingest *ingest, enum prof_ring_reason reason,
                                     int64_t process, int64_t thread)
{
    return wants_reason(ingest, reason)
               ? add_trigger(ingest, reason,
                             &(struct trigger){.process = process, .thread = thread})
               : PROF_OK;
}

/* After all of its records: a process that ends at once may have no spool when its end is seen.
 * Helpers of a program (grep, test) end with failures every day, and have none. */
enum prof_status ingest_ring_end(struct prof_ingest *ingest, const struct ingest_spool *spool)
{
    const struct ingest_process *process = ingest_process_find(ingest, spool->process);
    const struct lifecycle_entry *entry =
        process ? ingest_lifecycle_entry(ingest, process->entry) : NULL;
    if (!process || !process->gone)
        return PROF_OK;
    bool unseen = process->how == LIFECYCLE_UNSEEN && entry && entry->facts & LIFECYCLE_HOOKED;
    bool failed = process->signal || unseen || (process->has_status && process->status);
    return failed ? ingest_ring_trigger(ingest, PROF_RING_END, process->row, 0) : PROF_OK;
}

/* ---- what is slow ---------------------------------------------------------------------------- */

PROF_ORDER(by_duration, uint64_t, PROF_COMPARE(*x, *y))

static void compute_threshold(const struct ingest_ring *ring, struct ingest_detector *detector)
{
    uint64_t sorted[INGEST_JUDGED], away[INGEST_JUDGED];
    size_t count = detector->count < INGEST_JUDGED ? detector->count : INGEST_JUDGED;
    memcpy(sorted, detector->recent, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_duration);
    uint64_t median = sorted[count / 2];
    for (size_t i = 0; i < count; i++)
        away[i] = sorted[i] > median ? sorted[i] - median : median - sorted[i];
    qsort(away, count, sizeof *away, by_duration);
    double sigma = 1.4826 * (double)away[count / 2];
    double upper = (double)(sorted[count * 95 / 100] - median) / 1.645;
    double by_sigma = (double)median + ring->sigmas * (upper > sigma ? upper : sigma);
    double by_times = ring->times * (double)median;
    /* On a machine that is busy all iterations become longer and scatter, for minutes: what would
     * have been slow before is so now, down to half as many times today's median. */
    if (!detector->calm || median < detector->calm)
        detector->calm = median;
    else
        detector->calm += (median - detector->calm) / CALM_SHARE;
    uint64_t calm = detector->calm > median / 2 ? detector->calm : median / 2;
    double most = ring->most_times > 0 ? ring->most_times * (double)calm : by_sigma;
    double threshold = by_sigma < most ? by_sigma : most;
    detector->usual = median;
    detector->threshold = (uint64_t)(by_times > threshold ? by_times : threshold);
    if (detector->threshold < median + ring->least_ns)
        detector->threshold = median + ring->least_ns;
}

/* Is this one slow by those before it? It is one of those from now on. */
static bool judge_duration(const struct ingest_ring *ring, struct ingest_detector *detector,
                           uint64_t duration)
{
    if (detector->seen++ < WARM_UP)
        return false;
    if (detector->count >= LEAST_JUDGED && detector->count % JUDGED_AGAIN == 0)
        compute_threshold(ring, detector);
    bool slow = detector->count >= LEAST_JUDGED && duration > detector->threshold;
    detector->recent[detector->count++ % INGEST_JUDGED] = duration;
    return slow;
}

/* Of what repeats under these numbers; NULL = not known, or none of it is judged. */
static struct ingest_detector *find_detector(struct ingest_ring *ring, const int64_t key[3],
                                             bool make)
{
    const uint32_t *known = prof_names_get(&ring->detector_at, (const char *)key, 3 * sizeof *key);
    if (known)
        return &ring->detectors.data[*known];
    if (!make)
        return NULL;
    if (ring->detectors.count >= MOST_DETECTORS) { /* of threads that are long gone, most likely */
        ring->detectors.count = 0;
        prof_names_free(&ring->detector_at);
    }
    struct ingest_detector *made = prof_array_add(&ring->detectors);
    if (!made || !prof_names_put(&ring->detector_at, (const char *)key, 3 * sizeof *key,
                                 (uint32_t)ring->detectors.count - 1))
        return NULL;
    return made;
}

static char *query_id_text(struct prof_ingest *ingest, const char *query, int64_t id)
{
    sqlite3_stmt *sql;
    char *text = NULL;
    if (!id || ingest_query(ingest, query, &sql) != PROF_OK)
        return NULL;
    sqlite3_bind_int64(sql, 1, id);
    const char *value =
        sqlite3_step(sql) == SQLITE_ROW ? (const char *)sqlite3_column_text(sql, 0) : NULL;
    text = value ? strdup(value) : NULL;
    ingest_query_end(ingest, sql, PROF_OK);
    return text;
}

static const char string_text[] = "SELECT value FROM string WHERE id=?1";

/* RANGE or RANGE@DOMAIN, where names may hold both signs. */
static bool is_requested(struct prof_ingest *ingest, const char *name, int64_t domain)
{
    const char *wanted = ingest->ring.iteration, *at = strrchr(wanted, '@');
    if (strcmp(wanted, name) == 0)
        return true;
    if (!at || strlen(name) != (size_t)(at - wanted) || strncmp(wanted, name, strlen(name)) != 0)
        return false;
    PROF_FREED char *text = query_id_text(ingest, string_text, domain);
    bool same = strcmp(at + 1, text ? text : "") == 0;
    return same;
}

/* The number that all names of an iteration have ("step 1", "step 2"); 0 = it is none. */
static int64_t iteration_name(struct prof_ingest *ingest, int64_t name, int64_t domain)
{
    struct ingest_ring *ring = &ingest->ring;
    const int64_t key[2] = {name, domain};
    const uint32_t *known = prof_names_get(&ring->iteration_names, (const char *)key, sizeof key);
    if (known || !name)
        return known ? *known : 0;
    char simple[PROF_RANGE_NAME_ROOM];
    char *text = query_id_text(ingest, string_text, name);
    uint32_t number = 0;
    if (text && ring->iteration)
        number = is_requested(ingest, text, domain);
    else if (text && prof_simplify_range_name(text, simple) &&
             prof_range_name_is_iteration(simple)) {
        const uint32_t *same = prof_names_get(&ring->iteration_names, simple, strlen(simple));
        number = same ? *same : (uint32_t)ring->iteration_names.count + 1;
        if (!same)
            prof_names_put(&ring->iteration_names, simple, strlen(simple), number);
    }
    free(text);
    prof_names_put(&ring->iteration_names, (const char *)key, sizeof key, number);
    return number;
}

enum prof_status ingest_ring_range(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                   int64_t thread, const struct ingest_open_range *open,
                                   uint64_t end)
{
    int64_t name = ingest_global(spool, open->range.message, WIRE_STRING);
    int64_t domain = ingest_global(spool, open->range.head.aux, WIRE_STRING);
    int64_t number =
        wants_reason(ingest, PROF_RING_SLOW) ? iteration_name(ingest, name, domain) : 0;
    struct ingest_detector *detector =
        number ? find_detector(&ingest->ring, (const int64_t[]){thread, number, domain}, true)
               : NULL;
    uint64_t duration = end - open->range.time;
    bool slow = detector && judge_duration(&ingest->ring, detector, duration);
    if (open->trigger) {
        ingest_bind(ingest->sql[INGEST_SQL_RING_DURATION], 1, open->trigger);
        ingest_bind(ingest->sql[INGEST_SQL_RING_DURATION], 2, (int64_t)duration);
        PROF_TRY(ingest_run(ingest, INGEST_SQL_RING_DURATION));
        slow = detector && sqlite3_changes(ingest->db) == 0; /* its copy was written before it ended */
    }
    if (!slow)
        return PROF_OK;
    return add_trigger(ingest, PROF_RING_SLOW,
                       &(struct trigger){spool->process, thread, name, duration, detector->usual,
                                         detector->threshold});
}

/* An iteration that does not end is slow before it has ended. */
static enum prof_status look_at_open_range(struct prof_ingest *ingest,
                                           const struct ingest_spool *spool, int64_t thread,
                                           struct ingest_open_range *open)
{
    int64_t domain = ingest_global(spool, open->range.head.aux, WIRE_STRING);
    int64_t name = ingest_global(spool, open->range.message, WIRE_STRING);
    uint64_t age = ingest->now_ns - open->range.time;
    if (open->trigger || open->range.time + LATE_NS > ingest->now_ns)
        return PROF_OK;
    int64_t number = iteration_name(ingest, name, domain);
    const struct ingest_detector *detector =
        number ? find_detector(&ingest->ring, (const int64_t[]){thread, number, domain}, false)
               : NULL;
    if (!detector || !detector->threshold || age < detector->threshold + LATE_NS)
        return PROF_OK;
    PROF_TRY(add_trigger(ingest, PROF_RING_SLOW,
                         &(struct trigger){spool->process, thread, name, age, detector->usual,
                                           detector->threshold}));
    open->trigger = sqlite3_last_insert_rowid(ingest->db);
    return PROF_OK;
}

enum prof_status ingest_ring_look(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    if (!wants_reason(ingest, PROF_RING_SLOW) || !ingest->ring.detectors.count)
        return PROF_OK;
    for (size_t t = 0; t < spool->thread_list.count; t++) {
        struct ingest_thread *thread = &spool->thread_list.data[t];
        for (size_t i = 0; i < thread->stack.count; i++)
            PROF_TRY(look_at_open_range(ingest, spool, thread->row, &thread->stack.data[i]));
    }
    return PROF_OK;
}

/* Collectives by launch configuration and stream. */
enum prof_status ingest_ring_kernel(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                    int64_t config, int64_t stream, uint64_t duration)
{
    static const char text[] = "SELECT value FROM string WHERE id=(SELECT coalesce(demangled,name) "
                               "FROM launch_config WHERE id=?1)";
    struct ingest_ring *ring = &ingest->ring;
    if (!config || !wants_reason(ingest, PROF_RING_COLLECTIVE))
        return PROF_OK;
    const uint64_t *known = prof_map_get(&ring->collectives, (uint64_t)config);
    if (!known) {
        char *name = query_id_text(ingest, text, config);
        bool is = prof_collective_kernel(name) != PROF_COLLECTIVE_NONE;
        free(name);
        PROF_TRY(ingest_memory(ingest, prof_map_put(&ring->collectives, (uint64_t)config, is),
                               "names of collectives"));
        known = prof_map_get(&ring->collectives, (uint64_t)config);
    }
    struct ingest_detector *detector =
        *known ? find_detector(ring, (const int64_t[]){-stream, config, 0}, true) : NULL;
    if (!detector || !judge_duration(ring, detector, duration))
        return PROF_OK;
    return add_trigger(
        ingest, PROF_RING_COLLECTIVE,
        &(struct trigger){spool->process, 0, 0, duration, detector->usual, detector->threshold});
}

/* ---- windows --------------------------------------------------------------------------------- */

static enum prof_status write_reasons(struct prof_ingest *window, int64_t number, char *why,
                                      size_t size)
{
    sqlite3_stmt *row;
    int64_t count = 0;
    PROF_TRY(ingest_query(window,
                          "SELECT reason,start,duration,usual,(SELECT value FROM string WHERE "
                          "id=name),(SELECT pid FROM process WHERE id=process) FROM ring_trigger "
                          "WHERE window=?1 ORDER BY id",
                          &row));
    sqlite3_bind_int64(row, 1, number);
    enum prof_status status = PROF_OK;
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        static const struct {
            const char *reason, *text;
        } texts[] = {{"slow", "a slow iteration"},
                     {"collective", "a late collective"},
                     {"allocation", "a failed allocation"},
                     {"end", "an abnormal end"},
                     {"signal", "a signal"},
                     {"ctl", "perfkit ctl keep"}};
        const char *reason = (const char *)sqlite3_column_text(row, 0), *text = "";
        const char *name = (const char *)sqlite3_column_text(row, 4);
        char note[400];
        for (size_t i = 0; reason && i < sizeof texts / sizeof *texts; i++)
            text = strcmp(texts[i].reason, reason) ? text : texts[i].text;
        snprintf(note, sizeof note, "%s at %s", text,
                 prof_duration_ns(sqlite3_column_int64(row, 1)).text);
        if (sqlite3_column_type(row, 5) != SQLITE_NULL)
            prof_append(note, sizeof note, " in process %lld",
                        (long long)sqlite3_column_int64(row, 5));
        if (sqlite3_column_int64(row, 2))
            prof_append(note, sizeof note, ": %s%.100s%s%s, usually %s", name ? "\"" : "",
                        name ? name : "", name ? "\" " : "",
                        prof_duration_ns(sqlite3_column_int64(row, 2)).text,
                        prof_duration_ns(sqlite3_column_int64(row, 3)).text);
        if (!count++)
            snprintf(why, size, "%s", note);
        if (count <= 20)
            status = ingest_health_line(window, 0, PROF_HEALTH_capture_kept, NULL, NULL, note);
    }
    PROF_TRY(ingest_query_end(window, row, status));
    if (count > 1)
        prof_append(why, size, " (and %lld more)", (long long)count - 1);
    return PROF_OK;
}

/* All pages in one go: no other process writes, and readers go on reading. */
static enum prof_status copy_capture(struct prof_ingest *ingest, const char *path,
                                     struct prof_error *err)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(
        path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (!code)
        code =
            sqlite3_exec(db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF", NULL, NULL, NULL);
    sqlite3_backup *backup = code ? NULL : sqlite3_backup_init(db, "main", ingest->db, "main");
    if (backup) {
        int step = sqlite3_backup_step(backup, -1);
        code = sqlite3_backup_finish(backup);
        code = code || step == SQLITE_DONE ? code : step; /* BUSY is no failure to SQLite */
    }
    if (!code && !backup)
        code = sqlite3_errcode(db);
    sqlite3_close(db);
    return code ? prof_fail(err, prof_sql_status(code), "cannot write %s: %s", path,
                            sqlite3_errstr(code))
                : PROF_OK;
}

static enum prof_status finish_window(struct prof_ingest *ingest, struct prof_store *store,
                                      int64_t number, char *why, size_t size,
                                      struct prof_error *err)
{
    struct prof_ingest *window;
    PROF_TRY(ingest_open_window(store, ingest, &window, err));
    char *sql = sqlite3_mprintf("DELETE FROM ring_rollup; DELETE FROM ring_trigger WHERE window IS "
                                "NOT %lld",
                                (long long)number);
    enum prof_status status = sql ? ingest_exec(window, sql) : ingest_no_memory(window, "SQL");
    sqlite3_free(sql);
    status = status ?: write_reasons(window, number, why, size);
    if (status)
        prof_fail(err, status, "%s", window->error.message);
    else
        status = prof_ingest_finish(window, "kept", true, err);
    prof_ingest_close(window);
    return status;
}

/* Those that have none yet belong to this window. */
static enum prof_status give_triggers(struct prof_ingest *ingest, const char *of, int64_t window)
{
    PROF_SQL_FREED char *sql =
        sqlite3_mprintf("UPDATE ring_trigger SET window=%lld WHERE %s", (long long)window, of);
    return sql ? ingest_exec(ingest, sql) : ingest_no_memory(ingest, "SQL");
}

enum prof_status prof_ingest_trigger(struct prof_ingest *ingest, enum prof_ring_reason reason,
                                     struct prof_error *err)
{
    PROF_TRY(ingest_refresh(ingest, err));
    ingest->now_ns = prof_now_ns();
    return add_trigger(ingest, reason, &(struct trigger){0}) ? ingest_roll_back(ingest, err)
                                                             : PROF_OK;
}

int64_t prof_ingest_window_due(const struct prof_ingest *ingest)
{
    const struct ingest_ring *ring = &ingest->ring;
    return ring->due_ns && prof_now_ns() >= ring->due_ns ? ring->windows + 1 : 0;
}

void prof_ingest_unkeep(struct prof_ingest *ingest, int64_t number)
{
    char mine[64];
    snprintf(mine, sizeof mine, "window=%lld", (long long)number);
    if (!ingest_refresh(ingest, NULL) && give_triggers(ingest, mine, 0))
        ingest_roll_back(ingest, NULL);
}

enum prof_status prof_ingest_keep(struct prof_ingest *ingest, const char *path,
                                  struct prof_store **window, char *why, size_t size,
                                  struct prof_error *err)
{
    struct ingest_ring *ring = &ingest->ring;
    *window = NULL;
    *why = '\0';
    PROF_TRY(ingest_refresh(ingest, err));
    int64_t number = path ? ring->windows + 1 : 0;
    ring->due_ns = 0;
    if (give_triggers(ingest, "window IS NULL", number))
        return ingest_roll_back(ingest, err);
    if (!path)
        return PROF_OK;
    ring->kept_ns = prof_now_ns();
    enum prof_status status = copy_capture(ingest, path, err);
    status = status ?: prof_store_reopen(path, window, err);
    status = status ?: finish_window(ingest, *window, number, why, size, err);
    if (!status) {
        ring->windows = number;
        return PROF_OK;
    }
    prof_store_close(*window);
    *window = NULL;
    prof_ingest_unkeep(ingest, number);
    return status;
}

int64_t prof_ingest_unkept(struct prof_ingest *ingest)
{
    const struct ingest_ring *ring = &ingest->ring;
    sqlite3_stmt *row;
    int64_t count = 0;
    if (!ring->cut.ns || ingest_refresh(ingest, NULL) ||
        ingest_query(ingest,
                     "SELECT count(*) FROM ring_trigger WHERE reason='slow' AND window=0 AND "
                     "start<?1",
                     &row))
        return 0;
    sqlite3_bind_int64(row, 1, (int64_t)(ring->cut.ns - ingest->zero_ns));
    if (sqlite3_step(row) == SQLITE_ROW)
        count = sqlite3_column_int64(row, 0);
    ingest_query_end(ingest, row, PROF_OK);
    return count;
}

void ingest_ring_free(struct prof_ingest *ingest)
{
    struct ingest_ring *ring = &ingest->ring;
    prof_array_free(&ring->marks);
    prof_array_free(&ring->detectors);
    prof_names_free(&ring->detector_at);
    prof_names_free(&ring->iteration_names);
    prof_map_free(&ring->collectives);
    ring->detector_at = ring->iteration_names = (struct prof_names){0};
    ring->collectives = (struct prof_map){0};
}

enum prof_status ingest_ring_options(struct prof_ingest *ingest,
                                     const struct prof_ingest_ring *options)
{
    struct ingest_ring *ring = &ingest->ring;
    if (!options)
        return PROF_OK;
    bool chosen = options->times > 0;
    ring->ns = options->ns;
    ring->reasons = options->reasons | 1u << PROF_RING_SIGNAL | 1u << PROF_RING_CTL;
    ring->times = chosen ? options->times : DEFAULT_TIMES;
    ring->sigmas = chosen ? options->sigmas : DEFAULT_SIGMAS;
    ring->most_times = chosen ? 0 : DEFAULT_MOST_TIMES;
    ring->least_ns = chosen ? 0 : DEFAULT_LEAST_NS;
    ring->iteration = options->iteration ? strdup(options->iteration) : NULL;
    PROF_TRY(ingest_memory(ingest, !options->iteration || ring->iteration, "the iteration's name"));
    /* Zeros over what has left would be written for nothing; a long transaction leaves a long -wal.
     */
    return ingest_exec(ingest, "PRAGMA secure_delete=OFF; PRAGMA journal_size_limit=67108864");
}
