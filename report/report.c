/* The table of writers, and saving a report so that no half file is ever left under its name. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/writers.h"

const struct prof_report_writer prof_report_writers[] = {
    {"text", ".txt", "tables for people, on a terminal", true, prof_report_write_text},
    {"json", ".json", "every summary with exact numbers, for programs", true,
     prof_report_write_json},
    {"csv", ".csv", "the summary tables, for spreadsheets", true, prof_report_write_csv},
    {"markdown", ".md", "the summary tables, to paste into an issue", true,
     prof_report_write_markdown},
    {"html", ".html", "one self-contained page: tables, timeline, flame graph", false,
     prof_report_write_html},
    {"chrome-trace", ".json", "every event in Chrome's trace format, for Perfetto and the like",
     false, prof_report_write_chrome_trace},
    {"flamegraph", ".folded", "folded stacks of ranges, calls and kernels, weighted by device ns",
     false, prof_report_write_flamegraph},
    {"speedscope", ".speedscope.json", "the same stacks by time, bytes and number, for speedscope",
     false, prof_report_write_speedscope},
    {"pprof", ".pb.gz", "the same stacks in pprof's format", false, prof_report_write_pprof},
    {"roofline-svg", ".svg", "the roofline, drawn by gnuplot", false,
     prof_report_write_roofline_svg},
    {"roofline-png", ".png", "the roofline, drawn by gnuplot", false,
     prof_report_write_roofline_png},
    {"roofline-script", ".gp", "the gnuplot script of that figure, to be changed by hand", false,
     prof_report_write_roofline_script},
    {0},
};

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
    return PROF_OK;
}

/* A writer knows its stream only: a full disk is told with the file's name. */
static enum prof_status write_to(const struct prof_report_writer *writer,
                                 struct prof_capture *capture,
                                 const struct prof_report_options *options, const char *path,
                                 FILE *out, struct prof_error *err)
{
    enum prof_status status = writer->write(capture, options, out, err);
    bool full = status == PROF_FULL && ferror(out);
    if (fclose(out) && !status)
        return prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    if (full)
        return prof_fail(err, status, "cannot write %s: %s: choose another place", path,
                         strerror(ENOSPC));
    return status;
}

static enum prof_status write_directly(const struct prof_report_writer *writer,
                                       struct prof_capture *capture,
                                       const struct prof_report_options *options, const char *path,
                                       struct prof_error *err)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    return write_to(writer, capture, options, path, out, err);
}

/* mkstemp makes 0600; a report gets what the user's umask gives any new file, or keeps its own. */
static void give_mode(int fd, const struct stat *old)
{
    mode_t mode = old ? old->st_mode & 07777 : 0666;
    if (!old) {
        mode_t mask = umask(0);
        umask(mask);
        mode &= ~mask;
    }
    if (fchmod(fd, mode))
        errno = 0; /* some file systems have no modes; the content is what counts */
}

enum prof_status prof_report_save(const struct prof_report_writer *writer,
                                  struct prof_capture *capture,
                                  const struct prof_report_options *options, const char *path,
                                  struct prof_error *err)
{
    struct stat old;
    bool exists = !stat(path, &old);
    /* /dev/stdout may lead to a regular file, which others write to as well. */
    bool special = !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
    if (exists && !S_ISDIR(old.st_mode) && (special || !S_ISREG(old.st_mode)))
        return write_directly(writer, capture, options, path, err);
    if (exists && S_ISDIR(old.st_mode))
        return prof_fail(err, PROF_IO, "cannot write %s: it is a folder: give a file name", path);
    size_t length = strlen(path);
    char *real = realpath(path, NULL); /* through a link, the file it names is replaced */
    const char *target = real ? real : path;
    char *temporary = malloc((real ? strlen(real) : length) + sizeof ".XXXXXX");
    enum prof_status status = PROF_OK;
    FILE *out = NULL;
    int fd = -1;
    if (!temporary) {
        status = prof_fail(err, PROF_NOMEM, "cannot write %s: out of memory", path);
        goto done;
    }
    strcpy(temporary, target);
    strcat(temporary, ".XXXXXX");
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        status = prof_fail_errno(err, PROF_IO, "cannot write %s", path);
        goto done;
    }
    give_mode(fd, exists ? &old : NULL);
    out = fdopen(fd, "w");
    if (!out) {
        status = prof_fail_errno(err, PROF_IO, "cannot write %s", path);
        close(fd);
        unlink(temporary);
        goto done;
    }
    status = write_to(writer, capture, options, path, out, err);
    if (!status && rename(temporary, target))
        status = prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    if (status)
        unlink(temporary);
done:
    free(temporary);
    free(real);
    return status;
}
