/* The table of writers. */
#include <errno.h>
#include <string.h>

#include "report/writers.h"

#define ROW(function, name, extension, summary, description)                                       \
    {name, extension, description, summary, prof_report_write_##function},
const struct prof_report_writer prof_report_writers[] = {PROF_REPORT_WRITERS(ROW){0}};

const struct prof_report_writer *prof_report_find(const char *name)
{
    for (const struct prof_report_writer *writer = prof_report_writers; writer->name; writer++) {
        if (name && !strcmp(writer->name, name))
            return writer;
    }
    return NULL;
}

enum prof_status prof_report_flush(FILE *out, struct prof_error *err)
{
    if (fflush(out) || ferror(out)) {
        if (!errno)
            errno = EIO;
        return prof_fail_errno(err, PROF_IO, "cannot write the report");
    }
    if (prof_take_note(PROF_NOMEM, NULL))
        return prof_fail(err, PROF_NOMEM, "cannot write the report: out of memory");
    return PROF_OK;
}
