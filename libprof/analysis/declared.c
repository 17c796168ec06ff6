/* See declared.h. */
#include <math.h>

#include "libprof/analysis/declared.h"
#include "libprof/base/saturate.h"

static int by_declared_begin(const void *a, const void *b)
{
    const struct prof_declaration *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* NULL, and numbers that no work can be, are not known. */
static double amount(sqlite3_stmt *row, int column)
{
    double value =
        sqlite3_column_type(row, column) == SQLITE_NULL ? NAN : sqlite3_column_double(row, column);
    return value >= 0 && isfinite(value) ? value : NAN;
}

enum prof_status prof_declared_open(struct prof_declared *declared, struct prof_capture *capture,
                                    struct prof_error *err)
{
    *declared = (struct prof_declared){0};
    sqlite3_stmt *row;
    enum prof_status status =
        prof_query(capture,
                   "SELECT range.id, thread, start, duration, flop, bytes_read, bytes_written "
                   "FROM work JOIN range ON range.id = work.range",
                   &row, err);
    if (status)
        return status;
    while (prof_row(row)) {
        struct prof_declaration *d = prof_array_add(&declared->list);
        if (!d) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
        int64_t begin = prof_column_int(row, 2), duration = prof_column_size(row, 3);
        *d = (struct prof_declaration){
            .range = prof_column_id(row, 0),
            .thread = prof_column_id(row, 1),
            .begin = begin,
            .end = duration == PROF_UNKNOWN ? INT64_MAX : prof_add(begin, duration),
            .flop = amount(row, 4),
            .bytes = amount(row, 5) + amount(row, 6),
        };
    }
    if (declared->list.count)
        qsort(declared->list.data, declared->list.count, sizeof *declared->list.data,
              by_declared_begin);
    return prof_query_end(capture, row, err);
}

void prof_declared_close(struct prof_declared *declared)
{
    prof_array_free(&declared->list);
}

struct prof_declaration *prof_declared_at(struct prof_declared *declared, int64_t thread,
                                          int64_t call_ns)
{
    size_t low = 0, high = declared->list.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct prof_declaration *d = &declared->list.data[mid];
        if (d->thread < thread || (d->thread == thread && d->begin <= call_ns))
            low = mid + 1;
        else
            high = mid;
    }
    struct prof_declaration *last = low ? &declared->list.data[low - 1] : NULL;
    return last && last->thread == thread && call_ns < last->end ? last : NULL;
}

void prof_declared_launch(struct prof_declaration *d, uint32_t point, bool counted,
                          int64_t duration_ns)
{
    if (d->launches && d->point != point)
        d->mixed = true;
    d->point = point;
    d->launches++;
    if (!counted || duration_ns == PROF_UNKNOWN)
        d->incomplete = true;
    else
        d->duration_ns = prof_add(d->duration_ns, duration_ns);
}
