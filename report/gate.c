/* The table of writers of comparisons, and saving what they write. */
#include <string.h>

#include "report/gate_writers.h"
#include "report/report.h"

const struct prof_gate_writer prof_gate_writers[] = {
    {"text", prof_gate_write_text},   {"markdown", prof_gate_write_markdown},
    {"junit", prof_gate_write_junit}, {"github", prof_gate_write_github},
    {"json", prof_gate_write_json},   {NULL, NULL},
};

const struct prof_gate_writer prof_diff_writers[] = {
    {"text", prof_diff_write_text},
    {"markdown", prof_diff_write_markdown},
    {"json", prof_gate_write_json},
    {NULL, NULL},
};

const struct prof_gate_writer *prof_gate_writer(const struct prof_gate_writer *table,
                                                const char *name)
{
    for (; table->name; table++)
        if (!strcmp(table->name, name))
            return table;
    return NULL;
}

struct job {
    const struct prof_gate_writer *writer;
    const struct prof_gate_report *report;
};

static enum prof_status write_job(void *context, FILE *out, struct prof_error *err)
{
    const struct job *job = context;
    return job->writer->write(job->report, out, err);
}

enum prof_status prof_gate_save(const struct prof_gate_writer *writer,
                                const struct prof_gate_report *report, const char *path,
                                struct prof_error *err)
{
    struct job job = {writer, report};
    return prof_report_save_as(path, &job, write_job, err);
}
