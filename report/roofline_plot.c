/* The roofline as a picture: gnuplot draws what roofline_script.c writes. The script reaches it in
 * a file of our own and the picture comes back through a pipe, so that gnuplot writes no file
 * itself. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/roofline.h"
#include "report/writers.h"

extern char **environ;

/* An unlinked file with the script, at its begin; -1 and *err. */
static int script_file(struct prof_capture *capture, const struct prof_report_options *options,
                       const char *terminal, struct prof_error *err)
{
    struct prof_roofline roofline;
    FILE *file = tmpfile();
    if (!file) {
        prof_fail_errno(err, PROF_IO, "cannot make a temporary file for the figure");
        return -1;
    }
    enum prof_status status =
        prof_roofline(capture, options ? options->filter : NULL,
                      options ? options->roofline : PROF_ROOFLINE_KERNELS, &roofline, err);
    if (!status)
        status = prof_report_roofline_script(&roofline, capture, terminal, file, err);
    if (!status)
        status = prof_report_flush(file, err);
    int fd = status ? -1 : fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    if (!status && fd < 0)
        prof_fail_errno(err, PROF_SYSTEM, "cannot draw the roofline");
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    prof_roofline_free(&roofline);
    fclose(file);
    return fd;
}

/* gnuplot with the script as its input; *picture is the reading end of its output. 0, or errno. */
static int start(int script, pid_t *child, int *picture)
{
    static char *const arguments[] = {"gnuplot", "-d", "-", NULL}; /* nobody's own settings */
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, script, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    int code = posix_spawnp(child, "gnuplot", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (code)
        close(ends[0]);
    *picture = ends[0];
    return code;
}

static bool copy(int from, FILE *to, size_t *bytes)
{
    char block[1 << 16];
    for (;;) {
        ssize_t got = read(from, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        *bytes += (size_t)got;
        if (fwrite(block, 1, (size_t)got, to) != (size_t)got)
            return false;
    }
}

static enum prof_status draw(int script, FILE *out, struct prof_error *err)
{
    pid_t child;
    int picture = -1, ending = 0;
    size_t bytes = 0;
    int code = start(script, &child, &picture);
    if (code) {
        errno = code;
        return code == ENOENT
                   ? prof_fail(err, PROF_UNSUPPORTED,
                               "gnuplot is not installed (Debian: gnuplot-nox): install it, or "
                               "write OUT.gp and run gnuplot on that elsewhere")
                   : prof_fail_errno(err, PROF_SYSTEM, "cannot start gnuplot");
    }
    bool copied = copy(picture, out, &bytes);
    int why = errno;
    close(picture); /* before waiting: it may be writing still */
    while (waitpid(child, &ending, 0) < 0 && errno == EINTR)
        ;
    if (!copied) {
        errno = why;
        return prof_fail_errno(err, PROF_IO, "cannot write the figure");
    }
    if (!bytes || !WIFEXITED(ending) || WEXITSTATUS(ending))
        return prof_fail(err, PROF_SYSTEM,
                         "gnuplot drew nothing: write OUT.gp and run gnuplot on that to see why");
    return prof_report_flush(out, err);
}

static enum prof_status write_picture(struct prof_capture *capture,
                                      const struct prof_report_options *options,
                                      const char *terminal, FILE *out, struct prof_error *err)
{
    struct prof_error why = {0};
    int script = script_file(capture, options, terminal, &why);
    if (script < 0) {
        if (err)
            *err = why;
        return why.status;
    }
    enum prof_status status = draw(script, out, err);
    close(script);
    return status;
}

enum prof_status prof_report_write_roofline_svg(struct prof_capture *capture,
                                                const struct prof_report_options *options,
                                                FILE *out, struct prof_error *err)
{
    return write_picture(capture, options, "svg", out, err);
}

enum prof_status prof_report_write_roofline_png(struct prof_capture *capture,
                                                const struct prof_report_options *options,
                                                FILE *out, struct prof_error *err)
{
    return write_picture(capture, options, "pngcairo", out, err);
}

enum prof_status prof_report_write_roofline_script(struct prof_capture *capture,
                                                   const struct prof_report_options *options,
                                                   FILE *out, struct prof_error *err)
{
    struct prof_roofline roofline;
    enum prof_status status =
        prof_roofline(capture, options ? options->filter : NULL,
                      options ? options->roofline : PROF_ROOFLINE_KERNELS, &roofline, err);
    if (!status)
        status = prof_report_roofline_script(&roofline, capture, NULL, out, err);
    prof_roofline_free(&roofline);
    return status ? status : prof_report_flush(out, err);
}
