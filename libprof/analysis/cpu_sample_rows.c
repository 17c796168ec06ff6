/* See cpu_sample_rows.h. */
#include "libprof/analysis/cpu_sample_rows.h"
#include "libprof/analysis/recorded.h"
#include "libprof/base/saturate.h"

/* Take off what was not recorded; false when nothing is left. */
static bool cut(struct prof_cpu_sample *sample, const struct prof_recorded *recorded)
{
    int64_t length = sample->duration > 0 ? sample->duration : 1;
    if (!recorded->in_part)
        return true;
    int64_t inside = prof_recorded_length(recorded, sample->start, prof_add(sample->start, length));
    if (inside < length)
        sample->weight = (int64_t)((double)sample->weight * ((double)inside / (double)length));
    return inside > 0 && sample->weight > 0;
}

static bool sample_is_valid(const struct prof_cpu_sample *sample, const struct prof_scope *scope)
{
    return sample->weight > 0 && sample->weight <= PROF_CPU_SAMPLE_MOST_NS &&
           sample->duration <= PROF_CPU_SAMPLE_MOST_NS && prof_scope_time(scope, sample->start) &&
           prof_scope_place(scope, 0, sample->thread, 0, 0);
}

static enum prof_status read_cpu_sample_rows(struct prof_capture *capture,
                                             const struct prof_scope *scope,
                                             const struct prof_recorded *recorded,
                                             prof_cpu_sample_seen *seen, void *user,
                                             struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status = prof_query(
        capture, "SELECT start, thread, kind, duration, weight, stack FROM cpu_sample", &row, err);
    bool ok = true;
    if (status)
        return status;
    while (ok && prof_row(row)) {
        struct prof_cpu_sample sample = {.start = prof_column_int(row, 0),
                                         .thread = prof_column_id(row, 1),
                                         .kind = prof_column_int(row, 2),
                                         .duration = prof_column_id(row, 3),
                                         .weight = prof_column_id(row, 4),
                                         .stack = prof_column_id(row, 5)};
        if (sample_is_valid(&sample, scope) && cut(&sample, recorded))
            ok = seen(user, &sample);
    }
    status = prof_query_end(capture, row, err);
    return status ? status : ok ? PROF_OK : prof_out_of_memory(err);
}

enum prof_status prof_cpu_sample_rows(struct prof_capture *capture, const struct prof_scope *scope,
                                      prof_cpu_sample_seen *seen, void *user,
                                      struct prof_error *err)
{
    struct prof_recorded recorded;
    enum prof_status status = prof_recorded(capture, &recorded, err);
    if (!status)
        status = read_cpu_sample_rows(capture, scope, &recorded, seen, user, err);
    prof_recorded_free(&recorded);
    return status;
}
