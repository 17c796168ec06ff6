/* The table of writers, and saving a report so that no half file is left: neither under its name
 * nor, when the program is interrupted, under a temporary one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/regular.h"
#include "report/pack.h"
#include "report/writers.h"

/* ---- the writers ----------------------------------------------------------------------------- */

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

/* The name of the file that this thread writes, which a writer does not know; NULL = a stream. */
static _Thread_local const char *file_name;

enum prof_status prof_report_write_failed(struct prof_error *err)
{
    return prof_fail_errno(err, PROF_IO, "cannot write %s", file_name ? file_name : "the report");
}

enum prof_status prof_report_flush(FILE *out, struct prof_error *err)
{
    if (fflush(out) || ferror(out))
        return prof_report_write_failed(err);
    if (prof_take_note(PROF_NOMEM, NULL))
        return prof_fail(err, PROF_NOMEM, "cannot write the report: out of memory");
    return PROF_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* The temporary file of the running save; NULL = none. */
static char *_Atomic unfinished;

void prof_report_abandon(void)
{
    int saved = errno;
    const char *path = atomic_exchange(&unfinished, NULL);
    if (path)
        unlink(path);
    errno = saved;
}

/* No signal comes between the file's birth and the moment from which prof_report_abandon knows it.
 */
static int make_temporary(char *path)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int fd = mkostemp(path, O_CLOEXEC);
    int saved = errno;
    if (fd >= 0)
        atomic_store(&unfinished, path);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return fd;
}

/* What is to be written, whatever it is. */
struct job {
    enum prof_status (*write)(void *context, FILE *out, struct prof_error *err);
    void *context;
    bool compressed; /* the writer compresses by its own rule: not once more for the file's name */
};

static enum prof_status write_gzip(const struct job *job, FILE *out, struct prof_error *err)
{
    FILE *file = prof_report_gzip_fast(out);
    if (!file)
        return prof_fail(err, PROF_NOMEM, "cannot compress the report: out of memory");
    enum prof_status status = job->write(job->context, file, err);
    if (fclose(file) && !status)
        status = prof_report_write_failed(err);
    return status ? status : prof_report_flush(out, err);
}

static enum prof_status write_to(const struct job *job, const char *path, FILE *out,
                                 struct prof_error *err)
{
    const char *outer = file_name;
    file_name = path;
    enum prof_status status = prof_ends_with(path, ".gz") && !job->compressed
                                  ? write_gzip(job, out, err)
                                  : job->write(job->context, out, err);
    file_name = outer;
    if (!status && prof_take_note(PROF_NOMEM, NULL))
        status = prof_fail(err, PROF_NOMEM, "cannot write %s: out of memory", path);
    bool full = status == PROF_FULL && ferror(out);
    if (fclose(out) && !status)
        return prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    if (full)
        return prof_fail(err, status, "cannot write %s: %s: choose another place", path,
                         strerror(ENOSPC));
    return status;
}

static enum prof_status write_directly(const struct job *job, const char *path,
                                       struct prof_error *err)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    return write_to(job, path, out, err);
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

static enum prof_status save_report(const struct job *job, const char *path, struct prof_error *err)
{
    struct stat old;
    bool exists = !stat(path, &old);
    /* /dev/stdout may lead to a regular file, which others write to as well. */
    bool memory = !strncmp(path, "/dev/shm/", 9); /* files like any other */
    bool special = (!strncmp(path, "/dev/", 5) && !memory) || !strncmp(path, "/proc/", 6);
    if (exists && !S_ISDIR(old.st_mode) && (special || !S_ISREG(old.st_mode)))
        return write_directly(job, path, err);
    if (exists && S_ISDIR(old.st_mode))
        return prof_fail(err, PROF_IO, "cannot write %s: it is a folder: give a file name", path);
    size_t length = strlen(path);
    PROF_FREED char *real =
        realpath(path, NULL); /* through a link, the file it names is replaced */
    const char *target = real ? real : path;
    PROF_FREED char *temporary = malloc((real ? strlen(real) : length) + sizeof ".XXXXXX");
    enum prof_status status = PROF_OK;
    FILE *out = NULL;
    int fd = -1;
    if (!temporary) {
        status = prof_fail(err, PROF_NOMEM, "cannot write %s: out of memory", path);
        goto done;
    }
    strcpy(temporary, target);
    strcat(temporary, ".XXXXXX");
    fd = make_temporary(temporary);
    if (fd < 0) {
        status = prof_fail_errno(err, PROF_IO, "cannot write %s", path);
        goto done;
    }
    give_mode(fd, exists ? &old : NULL);
    out = fdopen(fd, "w");
    if (!out) {
        status = prof_fail_errno(err, PROF_IO, "cannot write %s", path);
        close(fd);
        prof_report_abandon();
        goto done;
    }
    status = write_to(job, path, out, err);
    if (!status && rename(temporary, target))
        status = prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    if (status)
        prof_report_abandon();
done:
    atomic_store(&unfinished, NULL);
    return status;
}

struct report_job {
    const struct prof_report_writer *writer;
    struct prof_capture *capture;
    const struct prof_report_options *options;
};

static enum prof_status write_report(void *context, FILE *out, struct prof_error *err)
{
    const struct report_job *job = context;
    return job->writer->write(job->capture, job->options, out, err);
}

enum prof_status prof_report_save(const struct prof_report_writer *writer,
                                  struct prof_capture *capture,
                                  const struct prof_report_options *options, const char *path,
                                  struct prof_error *err)
{
    struct report_job report = {writer, capture, options};
    struct job job = {write_report, &report,
                      writer->extension && prof_ends_with(writer->extension, ".gz")};
    return save_report(&job, path, err);
}

enum prof_status prof_report_save_as(const char *path, void *context,
                                     enum prof_status (*write)(void *context, FILE *out,
                                                               struct prof_error *err),
                                     struct prof_error *err)
{
    struct job job = {write, context, false};
    return save_report(&job, path, err);
}
